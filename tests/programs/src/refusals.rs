//! Why one path may refuse what others run: a fixed list. A refusal that is not here is a fault.

use crate::calls::plain;
use crate::expected::given_limits;
use crate::generate::Case;
use crate::probe::Limit;
use crate::program::Step;

/// A rule: the start of the path's name, a part of the error's text, and why that is right.
const RULES: &[(&str, &str, &str)] = &[
    (
        "",
        "is a layer whose body works on data, and calls no functions",
        "blocks of integers are no tensor, so that no function takes them",
    ),
    ("onnx", "engine: not asked for", "the engine is not there"),
    (
        "onnx",
        "cannot be written as ONNX:",
        "ONNX has no operators for a function; its page says why",
    ),
    (
        "stablehlo",
        "cannot be written as StableHLO:",
        "StableHLO has no form of a function; its page says why",
    ),
    (
        "onnx runtime",
        "engine: NotImplemented",
        "ONNX Runtime has no kernel of an operator for a type that ONNX gives it",
    ),
    (
        "onnx",
        "an adaptive pool to",
        "ONNX has adaptive pools to size 1, and those whose windows have one size",
    ),
    (
        "onnx",
        "a local response norm over an even number",
        "ONNX centres the window of a local response norm",
    ),
    (
        "onnx",
        "export the model in evaluation mode",
        "ONNX has no such function in training",
    ),
    (
        "onnx",
        "images of other than four dims",
        "ONNX has no form of it without a batch",
    ),
    (
        "onnx",
        "an LP pool of a broken power",
        "ONNX has LP pools of whole powers, and none with `ceil_mode`",
    ),
    (
        "onnx",
        "an instance norm by running statistics",
        "it is a batch norm, which is to be written instead",
    ),
    (
        "stablehlo",
        "alpha dropout while training",
        "StableHLO has no such function in training",
    ),
    (
        "",
        "uint8 images between places are rounded by PyTorch's own rule",
        "no format has PyTorch's rounding of images of bytes",
    ),
    (
        "onnx",
        "ONNX's loss has no label smoothing",
        "ONNX has no label smoothing; the error says how to write it",
    ),
    (
        "stablehlo",
        "a negative power needs an inverse",
        "StableHLO has no inverse of a matrix",
    ),
    (
        "sharded",
        "each device would draw other numbers, or change the same state",
        "what draws or trains is not partitioned",
    ),
    (
        "sharded",
        "is no tensor whose sizes are numbers",
        "a result whose size the data decides is not partitioned",
    ),
    (
        "onnx",
        "ONNX has the one point of a dim of size 1 at its start",
        "ONNX's grid of one point is at another place where corners are aligned",
    ),
    (
        "onnx runtime",
        "Unexpected mode of 3",
        "ONNX Runtime has no padding that wraps for a type that ONNX gives it",
    ),
    (
        "onnx runtime",
        "does not support double yet",
        "ONNX Runtime has no recurrent layers of float64",
    ),
    (
        "onnx",
        "ONNX always includes what is there before",
        "ONNX scatters onto what is there; the error says so",
    ),
    (
        "stablehlo",
        "StableHLO's rule has \"bilinear\" and \"nearest\"",
        "points of a grid by a cubic curve are not written",
    ),
    (
        "stablehlo",
        "points in volumes: StableHLO's rule is for images",
        "points of a grid in volumes are not written",
    ),
    (
        "onnx runtime",
        "Tensor shape.Size() must be >= 0",
        "a size that the data decides, less one, is no size where there is nothing",
    ),
    (
        "onnx runtime",
        "relu_clip_fusion.cc",
        "ONNX Runtime's optimizer refuses to join a relu and a clip of float64",
    ),
    (
        "onnx runtime",
        "lrn.cc",
        "ONNX Runtime has local response norms of images alone",
    ),
    (
        "",
        "a sorter: gather the sequence before",
        "no format has a sorter beside a sequence; the error says how to write it",
    ),
    (
        "onnx",
        "columns of other than three dims",
        "ONNX folds batches",
    ),
    (
        "onnx",
        "is not known where it is used",
        "a size that the data decides is no size of a tensor before",
    ),
    (
        "stablehlo",
        "XLA's programs have fixed sizes",
        "XLA's programs have fixed sizes",
    ),
    (
        "sharded",
        "is no tensor of known sizes",
        "what has a size that the data decides is not partitioned",
    ),
    (
        "",
        "Infer its shapes with other specs, or drop the guards",
        "a size that broadcasts is taken to be no 1: a guard refuses the run in which it is",
    ),
    (
        "split",
        "and its effects come between theirs",
        "what a layer that is trained writes is between what is read",
    ),
    (
        "split",
        "and they have no effect",
        "a part that nothing uses is refused by its name",
    ),
    (
        "stablehlo",
        "random numbers inside of a branch or a loop",
        "a key is split before a loop, and not in it",
    ),
    (
        "decomposed",
        "is empty over dims",
        "a named size is 0 in one run of several: the largest number of nothing is refused, and the function gives nothing",
    ),
    (
        "stablehlo",
        "a dim without elements has no least one",
        "attention over no positions is written by the largest score, and there is none",
    ),
    (
        "",
        "the number of pieces depends on",
        "how many results there are is known before a run",
    ),
    (
        "",
        "is known only when the graph runs: give `size`",
        "a named size times a factor is rounded by a run",
    ),
    (
        "onnx",
        "scattering by \"mean\"",
        "ONNX scatters by sums, products and limits",
    ),
    (
        "stablehlo",
        "write it by the sum and the count",
        "a mean of what is scattered is no one reduction",
    ),
    (
        "onnx",
        "the hidden size of a recurrent layer is not known",
        "ONNX has the size of a recurrent layer as a number",
    ),
    (
        "onnx",
        "another number of windows with `ceil_mode`",
        "ONNX rounds the number of windows up by another rule, and places have no padding that evens it out",
    ),
    (
        "onnx",
        "ONNX moves points to the border before it weighs pixels by a curve",
        "ONNX's cubic samples at borders are other ones; the error says what to take",
    ),
    (
        "sharded",
        "have one value to normalize",
        "a device has one value of a group that has several on all of them; a norm refuses one value",
    ),
    (
        "decomposed",
        "the matrix is singular, pivot",
        "a matrix of equal numbers is singular, or not, by what the steps round",
    ),
    (
        "decomposed",
        "the matrix is not positive definite",
        "a matrix of equal numbers is positive definite, or not, by what the steps round",
    ),
    (
        "",
        "`quantized_linear` needs the value of",
        "a layer of int8 reads its weights while it is opened",
    ),
];

/// The rule of a refusal.
pub fn rule(path: &str, text: &str) -> Option<&'static str> {
    if text.contains("while inferring the shape") {
        let is_decided = |word: &str| {
            let number = word.strip_prefix('u');
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let mut words = text.split(|of: char| !of.is_alphanumeric());
        if words.any(is_decided) {
            return Some("a size that the data decides is not known before a run");
        }
        if ["//", "min(", "max("]
            .iter()
            .any(|part| text.contains(part))
        {
            return Some(
                "whether a size that is computed from a named one is 0 or 1 is not decided",
            );
        }
    }
    if text.contains("in pass `Decompositions`") && text.contains("is not known") {
        return Some("a side that no run takes has no types");
    }
    let mut rules = RULES.iter();
    let found = rules.find(|(of, part, _)| path.starts_with(of) && text.contains(part));
    found.map(|(_, _, why)| *why)
}

/// What another engine computes by a rule of its own where a function is given a limit.
pub(crate) struct OwnRule {
    /// The start of the path's name.
    path: &'static str,
    /// Parts of the functions' names.
    functions: &'static [&'static str],
    limits: &'static [Limit],
    pub(crate) why: &'static str,
}

impl OwnRule {
    /// Whether a call of a function that is given these limits has it.
    pub(crate) fn takes(&self, function: &str, given: &[Limit]) -> bool {
        self.functions.iter().any(|part| function.contains(part))
            && given.iter().any(|limit| self.limits.contains(limit))
    }
}

const OWN_RULES: &[OwnRule] = &[
    OwnRule {
        path: "decomposed, gradients",
        functions: &["attention", "transformer"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "what 0 times infinity is where a mask hides it depends on the steps",
    },
    OwnRule {
        path: "decomposed",
        functions: &["std", "var"],
        limits: &[Limit::LargeSquare],
        why: "a square beyond float32 is infinite where it is a step, and not where sums are double",
    },
    OwnRule {
        path: "",
        functions: &["multidot", "chainmatmul"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "the order of several products depends on sizes that only a run knows, and NaN depends on the order",
    },
    OwnRule {
        path: "",
        functions: &["signbit", "copysign"],
        limits: &[Limit::Nan],
        why: "the sign of NaN is no part of its value",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["maxpool"],
        limits: &[Limit::Nan],
        why: "ONNX Runtime's largest number of a window leaves NaN out",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["rnn", "gru", "lstm"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "ONNX Runtime's recurrent layers leave NaN out",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["softm"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "ONNX Runtime's largest number of a softmax leaves NaN out",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["loss"],
        limits: &[Limit::Nothing],
        why: "ONNX Runtime's mean of nothing is 0; a writer that knows a size to be 0 says NaN",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["scatterreduce"],
        limits: &[Limit::Nan],
        why: "ONNX Runtime's least and largest numbers of what is scattered leave NaN out",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["logsumexp"],
        limits: &[Limit::Nan],
        why: "ONNX Runtime's sum of powers leaves NaN out",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["localresponsenorm"],
        limits: &[Limit::Infinity],
        why: "ONNX Runtime moves the window of a local response norm by differences, in which infinities stay",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["gridsample"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "ONNX Runtime takes a pixel for a point that is no number",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["prelu"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "ONNX's `PRelu` gives 0 for 0, whatever its slope is",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["prod"],
        limits: &[Limit::LargeProduct],
        why: "a product of whole numbers beyond 64 bits wraps around in fx, and not in ONNX Runtime",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["localresponsenorm"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "ONNX Runtime takes the squares that leave a window off its sum, and NaN stays",
    },
    OwnRule {
        path: "onnx runtime",
        functions: &["conv"],
        limits: &[Limit::Nothing],
        why: "ONNX Runtime leaves a convolution of nothing as its memory was",
    },
    OwnRule {
        path: "onnx",
        functions: &["upsampl", "interpolate", "adaptiveavgpool"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "an infinity times a weight of 0 is NaN in a product of matrices",
    },
    OwnRule {
        path: "stablehlo",
        functions: &["upsampl", "interpolate", "adaptiveavgpool"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "an infinity times a weight of 0 is NaN in a product of matrices",
    },
    OwnRule {
        path: "stablehlo, xla",
        functions: &["convtranspose"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "XLA multiplies the zeros between the pixels of a transposed convolution too",
    },
    OwnRule {
        path: "stablehlo, xla",
        functions: &["todtype", "typeas"],
        limits: &[Limit::Nan, Limit::Infinity],
        why: "what whole number NaN becomes is not defined, and XLA takes 0",
    },
    OwnRule {
        path: "stablehlo, xla",
        functions: &["relu", "max", "min", "clamp", "clip", "hardtanh"],
        limits: &[Limit::NegativeZero],
        why: "which of two zeros is the larger one is not said",
    },
    OwnRule {
        path: "stablehlo, xla",
        functions: &[""],
        limits: &[Limit::Subnormal],
        why: "XLA takes numbers below the least normal one for 0",
    },
    OwnRule {
        path: "stablehlo, xla",
        functions: &[
            "exp",
            "soft",
            "sigmoid",
            "loss",
            "logaddexp",
            "logsumexp",
            "elu",
            "attention",
            "transformer",
        ],
        limits: &[Limit::Nan, Limit::Infinity, Limit::MadeNan],
        why: "XLA holds what it takes a power of between two numbers, NaN too, where it computes several at once",
    },
];

/// The relative difference of numbers that a file has as `float32`.
const SINGLE: f64 = 1e-6;

/// The numbers of a difference: what a path gives, and what is expected.
fn numbers(text: &str) -> Option<(f64, f64)> {
    let (found, expected) = text.split_once(" is ")?.1.split_once(", expected ")?;
    let expected = expected.split(',').next()?;
    Some((found.parse().ok()?, expected.parse().ok()?))
}

/// The rule by which another engine gives another value.
pub fn difference(path: &str, case: &Case, text: &str) -> Option<&'static str> {
    if path.starts_with("onnx")
        && numbers(text).is_some_and(|(a, b)| (a - b).abs() <= SINGLE * b.abs())
    {
        return Some("numbers that are attributes of ONNX are float32");
    }
    let calls = |step: &&Step| matches!(step, Step::Call { call, .. } if plain(&call.name) == "floordivide");
    if path == "onnx runtime"
        && text.contains("inf, expected ")
        && case.program.all_steps().iter().any(calls)
    {
        return Some("ONNX Runtime's quotients have another sign of 0");
    }
    None
}

/// The rule by which an engine gives NaN for what it does not check, where noise decides whether eager code refuses it.
pub(crate) fn unchecked(path: &str, is_by_noise: bool, text: &str) -> Option<&'static str> {
    let is_engine = ["onnx runtime", "stablehlo, xla"].contains(&path);
    (is_engine && is_by_noise && text.contains(" is NaN, expected "))
        .then_some("an engine checks no probabilities: NaN is what fx refuses")
}

/// The rules of a path that calls of a case have.
pub(crate) fn own_rules(path: &str, case: &Case) -> Vec<&'static OwnRule> {
    let given = given_limits(case);
    let has = |rule: &&OwnRule| {
        let mut given = given.iter();
        path.starts_with(rule.path) && given.any(|(name, limit)| rule.takes(name, &[*limit]))
    };
    OWN_RULES.iter().filter(has).collect()
}
