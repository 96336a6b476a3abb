"""Judges tokenizers beside llama.cpp, and records what the tests compare.

Needs: pip install xllamacpp gguf numpy. It is no part of the gate.

    python fx-lm/tests/tokenizers.py --record
        writes fx-lm/tests/data: two small vocabularies, and the ids that llama.cpp gives with them
    python fx-lm/tests/tokenizers.py VOCABULARIES DIR [TEXT ..]
        has llama.cpp encode generated texts, and the files TEXT, with each .gguf file of the folder VOCABULARIES (the
        folder models of llama.cpp's sources has such files), and with one of them under each other name of
        `tokenizer.ggml.pre`; then `cargo run --release -p fx-lm --example tokens -- DIR` compares
"""

import collections
import ctypes
import json
import os
import random
import sys
from pathlib import Path

import gguf
import numpy
import xllamacpp

DATA = Path(__file__).parent / "data"


class Params(ctypes.Structure):
    """`llama_model_params` of llama.h."""

    _fields_ = (
        [("devices", ctypes.c_void_p), ("buffers", ctypes.c_void_p)]
        + [(name, ctypes.c_int32) for name in ["n_gpu_layers", "split", "load", "lazy", "main_gpu"]]
        + [(name, ctypes.c_void_p) for name in ["tensor_split", "progress", "progress_data", "overrides"]]
        + [(name, ctypes.c_bool) for name in ["vocab_only", "check", "extra", "no_host", "no_alloc", "mtp", "a", "b"]]
    )


LLAMA = ctypes.CDLL(os.path.join(os.path.dirname(xllamacpp.__file__), "xllamacpp.abi3.so"))
LLAMA.llama_model_default_params.restype = Params
LLAMA.llama_model_load_from_file.restype = ctypes.c_void_p
LLAMA.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
LLAMA.llama_model_free.argtypes = [ctypes.c_void_p]
LLAMA.llama_model_get_vocab.restype = ctypes.c_void_p
LLAMA.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
LLAMA.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32]
LLAMA.llama_tokenize.argtypes += [ctypes.c_bool, ctypes.c_bool]
LLAMA.llama_token_to_piece.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32]
LLAMA.llama_token_to_piece.argtypes += [ctypes.c_int32, ctypes.c_bool]
for name in ["n_tokens", "bos", "eos"]:
    getattr(LLAMA, f"llama_vocab_{name}").argtypes = [ctypes.c_void_p]
LLAMA.llama_vocab_is_eog.argtypes = [ctypes.c_void_p, ctypes.c_int32]
LLAMA.llama_vocab_is_eog.restype = ctypes.c_bool
QUIET = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
LLAMA.llama_log_set(QUIET, None)
LLAMA.llama_backend_init()


class Judge:
    """llama.cpp's vocabulary of a file."""

    def __init__(self, path):
        params = LLAMA.llama_model_default_params()
        params.vocab_only = True
        self.model = LLAMA.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise ValueError(f"llama.cpp does not read {path}")
        self.vocab = LLAMA.llama_model_get_vocab(self.model)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        LLAMA.llama_model_free(self.model)

    def encode(self, text, special, control):
        raw = text.encode()
        ids = (ctypes.c_int32 * (2 * len(raw) + 16))()
        count = LLAMA.llama_tokenize(self.vocab, raw, len(raw), ids, len(ids), special, control)
        assert count >= 0
        return list(ids[:count])

    def piece(self, token):
        text = ctypes.create_string_buffer(4096)
        count = LLAMA.llama_token_to_piece(self.vocab, token, text, len(text), 0, True)
        return text.raw[:count]

    def size(self):
        return LLAMA.llama_vocab_n_tokens(self.vocab)

    def ends(self):
        return [token for token in range(self.size()) if LLAMA.llama_vocab_is_eog(self.vocab, token)]


WORDS = """the of and a to in is you that it he was for on are as with his they at be this have from or one had by word but
not what all were we when your can said there use an each which she do how their if will up other about out many then
them these so some her would make like him into time has look two more write go see number no way could people my than
first water been call who oil its now find long down day did get come made may part Tokenizer Vocabulary HTTPServer
camelCase snake_case SCREAMING_CASE iPhone McDonald XMLHttpRequest""".split()
SCRIPTS = {
    "latin": (0xC0, 0x24F), "greek": (0x370, 0x3FF), "cyrillic": (0x400, 0x52F), "hebrew": (0x5D0, 0x5EA),
    "arabic": (0x620, 0x6FF), "devanagari": (0x900, 0x97F), "bengali": (0x980, 0x9FF), "thai": (0xE01, 0xE5B),
    "georgian": (0x10A0, 0x10FF), "hangul": (0xAC00, 0xD7A3), "hiragana": (0x3040, 0x309F), "katakana": (0x30A0, 0x30FF),
    "han": (0x4E00, 0x9FA5), "punctuation": (0x2010, 0x205E), "signs": (0x20A0, 0x2BFF), "wide": (0xFF01, 0xFF5E),
    "deseret": (0x10400, 0x1044F), "maths": (0x1D400, 0x1D7FF), "yi": (0xA000, 0xA4C6), "extension": (0x20000, 0x2A6DF),
    "marks": (0x300, 0x36F), "greek_more": (0x1F00, 0x1FFF), "letterlike": (0x2100, 0x214F), "garay": (0x10D40, 0x10D8F),
    "digits": (0x660, 0x669), "numbers": (0x2150, 0x218B), "ideographic": (0x2EBF0, 0x2EE5D), "braille": (0x2800, 0x28FF),
}
EMOJI = "😀 👩‍👩‍👧‍👦 👨🏽‍💻 🏳️‍🌈 🇩🇪🇫🇷 ☺️ 👍🏿 🧑‍🚀 ❤️‍🔥 🤷🏻‍♀️ 1️⃣ ‍ ️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿".split(" ")
SPACES = [" ", "\n", "\t", "\r\n", "\r", "\u00a0", "\u3000", "\u2028", "\u0085", "\x0b", "\x0c", "\u2003", "\u200b"]
ENDINGS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'Re", "'x", "'", "’s", "'ſ", "'K"]


def characters(rng, ranges, count):
    low, high = ranges
    return "".join(chr(rng.randint(low, high)) for _ in range(count))


def english(rng):
    words = [rng.choice(WORDS) for _ in range(rng.randint(3, 14))]
    for _ in range(rng.randint(0, 2)):
        place = rng.randrange(len(words))
        words[place] += rng.choice(ENDINGS)
    if rng.random() < 0.2:
        words = [word.upper() for word in words]
    return " ".join(words) + rng.choice([".", "!", "?", "...", ",", ";", ":", " -- ", "!!?", ".)", "\"", " ."])


def code(rng):
    lines = []
    for _ in range(rng.randint(2, 8)):
        name, other = rng.choice(WORDS), rng.choice(WORDS)
        indent = rng.choice(["", "  ", "    ", "        ", "\t", "\t\t", "            "])
        lines.append(indent + rng.choice([
            f"for (int i = 0; i < {rng.randint(0, 10**6)}; ++i) {{", f"def {name}_{other}(self, x: int = -1) -> None:",
            f"{name}.{other}[{rng.randint(0, 99)}] += 0x{rng.randint(0, 2**32):08X} // {other}", "}", "#include <stdio.h>",
            f"let {name}: Vec<&'static str> = vec![\"{other}\"; 3];", f"<div class=\"{name}\">&nbsp;</div>", "",
            f"SELECT * FROM {name} WHERE id=$1 AND x<>'{other}';", f"/* {english(rng)} */", "return a&&b||!c==d^e|~f`g`;",
        ]))
    return rng.choice(["\n", "\r\n"]).join(lines)


def numbers(rng):
    digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, rng.choice([4, 12, 300]))))
    return rng.choice([digits, f"-{digits}.{digits[:3]}e+10", f"${digits[:9]:0>4},00", f"{digits[:2]}:{digits[:2]} ½٣४ ²³"])


def spaces(rng):
    if rng.random() < 0.5:
        return rng.choice(SPACES) * rng.randint(1, rng.choice([3, 20, 400]))
    return "".join(rng.choice(SPACES[: rng.choice([3, 5, 13])]) for _ in range(rng.randint(1, 12)))


def anything(rng):
    points = (rng.randint(1, rng.choice([0x7F, 0x7FF, 0xFFFF, 0x10FFFF])) for _ in range(rng.randint(1, 20)))
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def generated(rng, specials, length):
    """A text of about that many bytes."""
    parts, done = [], 0
    while done < length:
        kind = rng.random()
        if kind < 0.25:
            part = english(rng)
        elif kind < 0.35:
            part = code(rng)
        elif kind < 0.43:
            part = numbers(rng)
        elif kind < 0.55:
            part = spaces(rng)
        elif kind < 0.72:
            part = characters(rng, rng.choice(list(SCRIPTS.values())), rng.randint(1, 12))
        elif kind < 0.78:
            part = rng.choice(EMOJI) * rng.randint(1, 2)
        elif kind < 0.83:
            part = "".join(chr(rng.choice([*range(0, 32), 127, 0x80, 0x9F, 0xAD])) for _ in range(rng.randint(1, 3)))
        elif kind < 0.9 and specials:
            part = rng.choice(specials)
            part = rng.choice([part, part, part + " ", " " + part + "\n", part[:-1], part[1:], part + part])
        else:
            part = anything(rng)
        part += rng.choice(["", "", " ", " ", "\n", "\n\n", "  "])
        parts.append(part)
        done += len(part.encode())
    return "".join(parts)


def specials(tokens, kinds):
    """Some control and user-defined tokens."""
    found = [token for token, kind in zip(tokens, kinds) if kind in (2, 3, 4)]
    return found[:40] + found[-20:]


def pairs(words):
    counts = collections.Counter()
    for word, count in words.items():
        for pair in zip(word, word[1:]):
            counts[pair] += count
    return counts


def merged(words, pair):
    result = collections.Counter()
    for word, count in words.items():
        out, at = [], 0
        while at < len(word):
            if word[at : at + 2] == pair:
                out.append(word[at] + word[at + 1])
                at += 2
            else:
                out.append(word[at])
                at += 1
        result[tuple(out)] += count
    return result


def trained(words, count):
    """The merges of words."""
    merges = []
    while len(merges) < count:
        pair = max(pairs(words).items(), key=lambda item: (item[1], item[0]))[0]
        merges.append(pair)
        words = merged(words, pair)
    return merges


def letters():
    """The characters that stand for bytes."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = iter(range(0x100, 0x200))
    return [chr(byte if byte in own else next(other)) for byte in range(256)]


def corpus():
    rng = random.Random(7)
    text = " ".join(english(rng) + " " + code(rng) + "\n\n" for _ in range(300)) + " 123 2024 100 000 世界 你好 世界 "
    # Merges across what patterns cut apart show where they do.
    across = " 1 16 160 01 08:4 \u2003 \u2003\u2003 \r\n\r\n \u2028 ...x ).. a1 1a" * 60
    return text.encode("ascii", "ignore").decode() + "世界 你好 世界" * 40 + across


def write(path, model, fields):
    # The kind of model is of no matter here, but llama.cpp wants the keys of one.
    writer = gguf.GGUFWriter(path, "llama")
    for add in [writer.add_context_length, writer.add_embedding_length, writer.add_block_count, writer.add_head_count]:
        add(1)
    writer.add_feed_forward_length(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model(model)
    fields(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def byte_vocabulary(path):
    """A byte-level vocabulary; bytes that no UTF-8 has, and one control character, are no tokens."""
    symbols = letters()
    words = collections.Counter()
    for word in corpus().replace(" ", "\0 ").replace("\n", "\0\n").split("\0"):
        words[tuple(symbols[byte] for byte in word.encode())] += 1
    merges = trained(words, 700)
    missing = {symbols[byte] for byte in [3, 0xC0, 0xC1, *range(0xF5, 0x100)]}
    tokens = [symbol for symbol in symbols if symbol not in missing]
    tokens += dict.fromkeys(first + second for first, second in merges)
    kinds = [1] * len(tokens)
    for token, kind in [("<|begin|>", 3), ("<|end|>", 3), ("<|tool|>", 4), ("<|tool|>x", 4), ("<unk>", 2), ("\n\n\n", 4)]:
        tokens.append(token)
        kinds.append(kind)
    merges = [f"{first} {second}" for first, second in merges]

    def fields(writer):
        writer.add_tokenizer_pre("default")
        writer.add_token_list(tokens)
        writer.add_token_types(kinds)
        writer.add_token_merges(merges)
        writer.add_bos_token_id(tokens.index("<|begin|>"))
        writer.add_eos_token_id(tokens.index("<|end|>"))
        writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>\n{% endfor %}")

    write(path, "gpt2", fields)
    return tokens, kinds


def piece_vocabulary(path):
    """A vocabulary with scores, of which some are equal."""
    words = collections.Counter(tuple("▁" + word) for word in corpus().split())
    merges = trained(words, 500)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    scores = [0.0] * len(tokens)
    pieces = dict.fromkeys(first + second for first, second in merges)
    for rank, piece in enumerate(pieces):
        tokens.append(piece)
        kinds.append(5 if rank == 100 else 1)
        scores.append(-float(rank // 3))
    for character in sorted({character for word in words for character in word}):
        tokens.append(character)
        kinds.append(1)
        scores.append(-1000.0)
    for token, kind in [("<start_of_turn>", 3), ("<end_of_turn>", 3), ("<|endoftext|>", 3), ("\n\n", 4), ("▁▁▁▁", 4), ("<b>", 4)]:
        tokens.append(token)
        kinds.append(kind)
        scores.append(0.0)

    def fields(writer):
        writer.add_token_list(tokens)
        writer.add_token_scores(scores)
        writer.add_token_types(kinds)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)

    write(path, "llama", fields)
    return tokens, kinds


def names():
    """The names of `tokenizer.ggml.pre` in fx-lm/src/tokenizer/split.rs, that of each family first."""
    source = (Path(__file__).parent / "../src/tokenizer/split.rs").read_text()
    table = source[source.index("const FAMILIES") : source.index("const GPT4O_LETTERS")]
    families, inside = [], False
    for piece in table.split("&[")[1:]:
        listed = piece.split("]")[0]
        if listed.strip().startswith('"'):
            families.append([name.strip().strip('"') for name in listed.split(",") if name.strip()])
    return families


def renamed(path, to, **values):
    """A copy of a file whose keys have other values."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(to, "llama")
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or key in values:
            continue
        kind = field.types[0]
        writer.add_key_value(key, field.contents(), kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for key, value in values.items():
        writer.add_key_value(key, value, gguf.GGUFValueType.BOOL if isinstance(value, bool) else gguf.GGUFValueType.STRING)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def record():
    DATA.mkdir(exist_ok=True)
    work = DATA / "work.gguf"
    cases, both = [], [(True, True), (False, False)]

    def add(name, text, path, modes=((True, True),), **values):
        renamed(path, work, **values)
        with Judge(work) as judge:
            for special, control in modes:
                ids = numpy.array(judge.encode(text, special, control), dtype="<u2")
                file = f"{name}-{'with' if control else 'plain'}.u16"
                (DATA / file).write_bytes(ids.tobytes())
                cases.append(dict(vocabulary=path.name, values=values, special=special, control=control, ids=file))

    for path, vocabulary in [(DATA / "bytes.gguf", byte_vocabulary), (DATA / "pieces.gguf", piece_vocabulary)]:
        tokens, kinds = vocabulary(path)
        text = generated(random.Random(11), specials(tokens, kinds), 9000)
        text_file = DATA / f"{path.stem}.txt"
        text_file.write_bytes(text.encode())
        with Judge(path) as judge:
            (DATA / f"{path.stem}.json").write_text(json.dumps(dict(
                ends=judge.ends(), pieces=[judge.piece(token).hex() for token in range(judge.size())])))
        if path.stem == "bytes":
            add("bytes-default", text, path, both, **{"tokenizer.ggml.pre": "default"})
            for family in names():
                add(f"bytes-{family[0]}", text, path, **{"tokenizer.ggml.pre": family[0]})
        else:
            add("pieces", text, path, both)
            add("pieces-nospace", text, path, **{"tokenizer.ggml.add_space_prefix": False,
                                                 "tokenizer.ggml.add_eos_token": True})
            add("pieces-strip", text, path, **{"general.name": "Phi-3 small"})
    work.unlink()
    (DATA / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    print("bytes", sum(file.stat().st_size for file in DATA.iterdir()))


def judged(folder, out, files):
    out.mkdir(parents=True, exist_ok=True)
    cases = []

    def judge_file(path, label, judge_pieces, sizes=(30000,) * 4, files=files):
        reader = gguf.GGUFReader(path)
        tokens = reader.fields["tokenizer.ggml.tokens"].contents()
        kinds = reader.fields["tokenizer.ggml.token_type"].contents()
        rng = random.Random(label)
        texts = [generated(rng, specials(tokens, kinds), size) for size in sizes]
        texts += [Path(file).read_bytes().decode("utf-8", "replace")[:40000] for file in files]
        try:
            judge = Judge(path)
        except ValueError as error:
            print(error)
            return
        with judge:
            for place, text in enumerate(texts):
                (out / f"{label}-{place}.txt").write_bytes(text.encode())
                for special, control in [(True, True), (False, False)]:
                    ids = numpy.array(judge.encode(text, special, control), dtype="<u4")
                    file = f"{label}-{place}-{control}.u32"
                    (out / file).write_bytes(ids.tobytes())
                    cases.append(dict(label=label, vocabulary=str(path.resolve()), text=f"{label}-{place}.txt",
                                      special=special, control=control, ids=file))
            if judge_pieces:
                (out / f"{label}.json").write_text(json.dumps(dict(
                    ends=judge.ends(), pieces=[judge.piece(token).hex() for token in range(judge.size())])))
        print(label, flush=True)

    for path in sorted(folder.glob("*.gguf")):
        kind = gguf.GGUFReader(path).fields["tokenizer.ggml.model"].contents()
        if kind in ("gpt2", "llama", "gemma4"):
            judge_file(path, path.stem.removeprefix("ggml-vocab-"), True)
            (out / "cases.json").write_text(json.dumps(cases))
    for family in names():
        for name in family:
            if name not in ("gemma4", "default"):
                path = out / f"as-{name}.gguf"
                renamed(folder / "ggml-vocab-refact.gguf", path, **{"tokenizer.ggml.pre": name})
                # The other names of a family are the same way.
                judge_file(path, f"as-{name}", False, (30000,) * 3 if name == family[0] else (4000,), [])
                (out / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        record()
    elif len(sys.argv) > 2:
        judged(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(__doc__)
