//! `Split`: how a text becomes words, which merges never cross, by the names that GGUF files have for it.
//!
//! Invariant: the words of a text are the text, and finding them takes time in its length.

use fx_core::{Error, Result};
use regex::Regex;

/// The name where a file has none.
pub(super) const DEFAULT: &str = "default";
/// The name of files of the kind `gemma4`, which have none.
pub(super) const GEMMA: &str = "gemma4";

/// How the words of a family are found.
struct Family {
    names: &'static [&'static str],
    steps: &'static [Step],
    /// Whether a word that is a token is that token, whatever the merges say.
    whole_words: bool,
    /// Whether a text begins with the token for that, where the file does not say.
    adds_bos: bool,
}

/// What cuts each word of the step before.
#[derive(Clone, Copy)]
enum Step {
    /// Matches are words, and so is what is between them.
    Pattern(&'static str),
    /// Behind groups of three digits, from the right of a run, and behind what is left of it.
    Threes,
    /// Before groups of three digits, from the right of a run.
    BeforeThrees,
    /// Runs of newlines, and what is between them.
    Lines,
}

use Step::{BeforeThrees, Lines, Pattern, Threes};

// Of `\s+(?!\S)|\s+` the patterns have `\s+`: a run that text follows loses its last character (`Cutter::cut`).
const GPT2: Step = Pattern(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+");
const QWEN2: Step = Pattern(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
);
const LLAMA3: Step = Pattern(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
);
const QWEN35: Step = Pattern(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
);
const TEKKEN: Step = Pattern(
    r"[^\r\n\p{L}\p{N}]?[\p{L}--a-z]*[\p{L}--A-Z]+|[^\r\n\p{L}\p{N}]?[\p{L}--a-z]+[\p{L}--A-Z]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
);
const GPT4O: Step = Pattern(
    r"[^\r\n\p{L}\p{N}]?[\p{L}--a-z]*[\p{L}--A-Z]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{L}--a-z]+[\p{L}--A-Z]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
);
const BAILING: Step = Pattern(
    r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+",
);
const SEED: Step = Pattern(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+",
);
const MINICPM: Step = Pattern(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
);
const DEEPSEEK3: Step = Pattern(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+"##,
);
const DIGIT: Step = Pattern(r"\p{N}");
const DIGITS: Step = Pattern(r"\p{N}{1,3}");
/// Latin, Greek, Cyrillic and other letters with two cases.
const CASED: Step = Pattern(
    r"\s?[A-Za-z\u{00B5}\u{00C0}-\u{00D6}\u{00D8}-\u{00F6}\u{00F8}-\u{01BA}\u{01BC}-\u{01BF}\u{01C4}-\u{0293}\u{0295}-\u{02AF}\u{0370}-\u{0373}\u{0376}\u{0377}\u{037B}-\u{037D}\u{037F}\u{0386}\u{0388}-\u{038A}\u{038C}\u{038E}-\u{03A1}\u{03A3}-\u{03F5}\u{03F7}-\u{0481}\u{048A}-\u{052F}\u{0531}-\u{0556}\u{10A0}-\u{10C5}\u{13A0}-\u{13F5}\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}\u{1D00}-\u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}\u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}\u{1F5D}\u{1F5F}-\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-\u{1FFC}\u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}\u{212A}-\u{212D}\u{212F}-\u{2134}\u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}\u{2183}\u{2184}\u{2C00}-\u{2C7B}\u{2C7E}-\u{2CE4}\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\u{A640}-\u{A66D}\u{A680}-\u{A69B}\u{A722}-\u{A76F}\u{A771}-\u{A787}\u{A78B}-\u{A78E}\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}]+",
);
/// Chinese, and what lies beside it in Unicode but for spaces, which llama.cpp takes for ASCII's.
const WIDE: Step = Pattern(r"[\u{0800}-\u{9FA5}\u{AC00}-\u{D7FF}--\s]+");
const CHINESE: Step = Pattern(r"[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+");

const FAMILIES: &[Family] = &[
    family(
        &[DEFAULT],
        &[
            Pattern(r"[\p{P}\$\+<=>\^~\|]+"),
            GPT2,
            Pattern(r"\p{N}+"),
            Pattern(r"[0-9][0-9][0-9]"),
        ],
    ),
    family(
        &[
            "gpt-2",
            "phi-2",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
        ],
        &[GPT2],
    ),
    Family {
        adds_bos: true,
        ..words(
            &[
                "llama-bpe",
                "llama3",
                "llama-v3",
                "falcon3",
                "falcon-h1",
                "pixtral",
                "midm-2.0",
                "lfm2",
            ],
            &[LLAMA3],
        )
    },
    family(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[LLAMA3]),
    words(&["glm4", "glm5"], &[LLAMA3]),
    family(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
        ],
        &[QWEN2],
    ),
    family(&["qwen35"], &[QWEN35]),
    Family {
        adds_bos: true,
        ..words(&["tekken"], &[TEKKEN])
    },
    family(
        &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        &[GPT4O],
    ),
    family(
        &[
            "starcoder",
            "refact",
            "command-r",
            "smollm",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        &[DIGIT, GPT2],
    ),
    family(
        &["falcon"],
        &[
            Pattern(r"[\p{P}\$\+<=>\^~\|`]+"),
            GPT2,
            Pattern(r"[0-9][0-9][0-9]"),
        ],
    ),
    family(
        &["deepseek-llm"],
        &[
            Pattern("[\r\n]"),
            CASED,
            Pattern(
                r"\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3001}-\u{3002}]+",
            ),
            Pattern(r"\s+$"),
            WIDE,
            Pattern(r"\p{N}+"),
        ],
    ),
    family(
        &["deepseek-coder"],
        &[
            Pattern("[\r\n]"),
            Pattern(r"\s?\p{L}+"),
            Pattern(r"\s?\p{P}+"),
            WIDE,
            DIGIT,
        ],
    ),
    family(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[DIGITS, CHINESE, DEEPSEEK3],
    ),
    family(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    family(&["seed-coder"], &[SEED]),
    words(&["minicpm5"], &[DIGITS, MINICPM]),
    family(&["laguna"], &[Lines, QWEN2]),
    family(&["superbpe"], &[Pattern(r"\p{N}+"), BeforeThrees]),
    family(&["tiny_aya", "cohere2moe"], &[Threes, GPT4O_LETTERS]),
    family(
        &["poro-chat", "bloom", "gpt3-finnish"],
        &[Pattern(
            r" ?[^(\s|.,!?\u{2026}\u{3002}\u{FF0C}\u{3001}\u{0964}\u{06D4}\u{060C})]+",
        )],
    ),
    family(
        &["viking"],
        &[
            Pattern(r" ?[^(\s|.,!?\u{2026}\u{3002}\u{FF0C}\u{3001}\u{0964}\u{06D4}\u{060C})]+"),
            DIGIT,
        ],
    ),
    family(&[GEMMA], &[Lines]),
];

/// As `GPT4O`, but that llama.cpp takes every letter for one of both cases, and marks for letters.
const GPT4O_LETTERS: Step = Pattern(
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
);

const fn family(names: &'static [&'static str], steps: &'static [Step]) -> Family {
    Family {
        names,
        steps,
        whole_words: false,
        adds_bos: false,
    }
}

const fn words(names: &'static [&'static str], steps: &'static [Step]) -> Family {
    Family {
        names,
        steps,
        whole_words: true,
        adds_bos: false,
    }
}

/// How the words of a text are found.
pub(super) struct Split {
    cutters: Vec<Cutter>,
    /// Whether a word that is a token is that token, whatever the merges say.
    pub whole_words: bool,
    /// Whether a text begins with the token for that, where the file does not say.
    pub adds_bos: bool,
    /// Whether the characters of tokens stand for bytes.
    pub has_bytes: bool,
}

enum Cutter {
    Pattern {
        pattern: Regex,
        /// Whether a run of whitespace gives its last character to the word behind it.
        gives: bool,
        /// Whether a run that ends with a newline keeps it.
        keeps_newlines: bool,
    },
    Threes {
        digits: Regex,
        /// Whether the text is cut before groups, and not behind them.
        before: bool,
    },
    Lines,
}

/// The names that are supported.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.names).copied()
}

/// A pattern whose classes are those of Unicode 15.1, which llama.cpp has.
fn compiled(pattern: &str) -> Result<Regex> {
    let mut pattern = pattern.to_string();
    for class in ["L", "M", "N", "P", "S"] {
        let dated = format!(r"[\p{{{class}}}&&\p{{age:15.1}}]");
        pattern = pattern.replace(&format!(r"\p{{{class}}}"), &dated);
    }
    Regex::new(&pattern).map_err(Error::other)
}

impl Split {
    /// The way of a name, which `tokenizer.ggml.pre` has.
    ///
    /// # Errors
    /// Returns an error with all names if there is none of that one.
    pub fn of(name: &str) -> Result<Self> {
        let mut families = FAMILIES.iter();
        let Some(family) = families.find(|family| family.names.contains(&name)) else {
            let names: Vec<_> = names().collect();
            return Err(Error::msg(format_args!(
                "`tokenizer.ggml.pre` is `{name}`: supported are {}",
                names.join(", ")
            )));
        };
        let cutter = |step: &Step| {
            Ok(match step {
                Pattern(text) => Cutter::Pattern {
                    pattern: compiled(text)?,
                    gives: text.ends_with(r"|\s+"),
                    keeps_newlines: text.contains(r"\s*[\r\n]"),
                },
                Threes => Cutter::Threes {
                    digits: compiled(r"\p{N}+")?,
                    before: false,
                },
                BeforeThrees => Cutter::Threes {
                    digits: compiled("[0-9]+")?,
                    before: true,
                },
                Lines => Cutter::Lines,
            })
        };
        Ok(Split {
            cutters: family.steps.iter().map(cutter).collect::<Result<_>>()?,
            whole_words: family.whole_words,
            adds_bos: family.adds_bos,
            has_bytes: name != GEMMA,
        })
    }

    /// The words of a text.
    pub fn words<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut words = vec![text];
        for cutter in &self.cutters {
            let mut next = Vec::with_capacity(words.len());
            for word in words {
                cutter.cut(word, &mut next);
            }
            words = next;
        }
        words
    }
}

impl Cutter {
    fn cut<'a>(&self, text: &'a str, words: &mut Vec<&'a str>) {
        let mut at = 0;
        let mut add = |at: &mut usize, end: usize| {
            if *at < end {
                words.push(&text[*at..end]);
                *at = end;
            }
        };
        match self {
            Cutter::Pattern {
                pattern,
                gives,
                keeps_newlines,
            } => {
                while let Some(found) = pattern.find_at(text, at) {
                    let mut end = found.end();
                    let last = found.as_str().chars().next_back();
                    let last = last.filter(|last| last.is_whitespace());
                    if *gives
                        && end < text.len()
                        && let Some(last) = last
                        && !(*keeps_newlines && matches!(last, '\r' | '\n'))
                        && found.len() > last.len_utf8()
                    {
                        end -= last.len_utf8();
                    }
                    add(&mut at, found.start());
                    add(&mut at, end);
                }
            }
            Cutter::Threes { digits, before } => {
                for found in digits.find_iter(text) {
                    let places = found.as_str().char_indices().map(|(place, _)| place);
                    let places: Vec<usize> = places.chain([found.len()]).collect();
                    let count = places.len() - 1;
                    let groups = (count % 3..=count).step_by(3);
                    // Groups end where the text is cut, or begin there.
                    let cuts: Vec<usize> = match before {
                        true => groups.filter(|cut| *cut < count).collect(),
                        false => groups.filter(|cut| *cut > 0).collect(),
                    };
                    for cut in cuts {
                        add(&mut at, found.start() + places[cut]);
                    }
                }
            }
            Cutter::Lines => {
                let mut is_newline = text.starts_with('\n');
                for (place, byte) in text.bytes().enumerate() {
                    if (byte == b'\n') != is_newline {
                        is_newline = !is_newline;
                        add(&mut at, place);
                    }
                }
            }
        }
        add(&mut at, text.len());
    }
}
