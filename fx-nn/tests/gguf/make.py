"""Writes small random models as GGUF files, with the scores that llama.cpp computes: `python make.py FOLDER [NAME ..]`.

`pip install xllamacpp gguf numpy safetensors`; nothing is fetched. Texts are longer than the windows, and caches are in
float32. `cargo test -p fx-nn gguf` compares.
"""

import ctypes
import os
import pathlib
import struct
import sys

import gguf
import numpy
import xllamacpp
from safetensors.numpy import save_file

LAYERS, WIDTH, INSIDE, WORDS, HEADS, KEYS, LENGTH, CONTEXT = 2, 32, 48, 96, 4, 2, 40, 64


class Model:
    """The keys and tensors of a file."""

    def __init__(self, architecture, layers=LAYERS, head=8, **keys):
        self.architecture, self.layers, self.head, self.keys = architecture, layers, head, keys
        self.rng = numpy.random.default_rng(sum(map(ord, architecture)) + len(keys))
        self.tensors = {}

    def matrix(self, name, rows, columns):
        self.tensors[name] = self.rng.normal(0, columns**-0.5, (rows, columns)).astype(numpy.float32)

    def vector(self, name, size, center=0.0):
        self.tensors[name] = (center + self.rng.normal(0, 0.1, size)).astype(numpy.float32)

    def common(self, is_tied=True, norms=("attn_norm", "ffn_norm"), biases=False, head_norms=False, fused=False):
        queries, keys = HEADS * self.head, KEYS * self.head
        self.matrix("token_embd.weight", WORDS, WIDTH)
        self.vector("output_norm.weight", WIDTH, 1.0)
        if not is_tied:
            self.matrix("output.weight", WORDS, WIDTH)
        for layer in range(self.layers):
            part = f"blk.{layer}."
            for norm in norms:
                self.vector(f"{part}{norm}.weight", WIDTH, 1.0)
            if fused:
                self.matrix(f"{part}attn_qkv.weight", queries + 2 * keys, WIDTH)
                self.matrix(f"{part}ffn_up.weight", 2 * INSIDE, WIDTH)
            else:
                for name, rows in [("attn_q", queries), ("attn_k", keys), ("attn_v", keys)]:
                    self.matrix(f"{part}{name}.weight", rows, WIDTH)
                    if biases:
                        self.vector(f"{part}{name}.bias", rows)
                self.matrix(f"{part}ffn_gate.weight", INSIDE, WIDTH)
                self.matrix(f"{part}ffn_up.weight", INSIDE, WIDTH)
            if head_norms:
                self.vector(f"{part}attn_q_norm.weight", self.head, 1.0)
                self.vector(f"{part}attn_k_norm.weight", self.head, 1.0)
            self.matrix(f"{part}attn_output.weight", WIDTH, queries)
            self.matrix(f"{part}ffn_down.weight", WIDTH, INSIDE)
        return self

    def write(self, path):
        writer = gguf.GGUFWriter(path, self.architecture)
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(WIDTH)
        writer.add_feed_forward_length(INSIDE)
        writer.add_block_count(self.layers)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KEYS)
        writer.add_key_length(self.head)
        writer.add_value_length(self.head)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_vocab_size(WORDS)
        writer.add_tokenizer_model("none")
        for key, value in self.keys.items():
            name = f"{self.architecture}.{key.replace('__', '.')}"
            if isinstance(value, str):
                writer.add_string(name, value)
            elif isinstance(value, float):
                writer.add_float32(name, value)
            else:
                writer.add_uint32(name, value)
        for name, tensor in self.tensors.items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


BOTH = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")


def llama3():
    model = Model("llama", rope__freq_base=10000.0, rope__dimension_count=8).common(is_tied=False)
    model.tensors["rope_freqs.weight"] = numpy.array([1.0, 1.0, 3.0, 8.0], numpy.float32)
    return model


def phi3():
    keys = {"rope__dimension_count": 6, "rope__scaling__original_context_length": 16, "rope__scaling__attn_factor": 1.2}
    model = Model("phi3", rope__freq_base=10000.0, **keys).common(is_tied=False, fused=True)
    model.tensors["rope_factors_short.weight"] = numpy.array([1.0, 1.1, 1.3], numpy.float32)
    model.tensors["rope_factors_long.weight"] = numpy.array([1.0, 2.0, 6.0], numpy.float32)
    return model


MODELS = {
    "llama": lambda: Model("llama", rope__freq_base=10000.0, rope__dimension_count=8).common(),
    "llama3": llama3,
    "qwen2": lambda: Model("qwen2", rope__freq_base=1000000.0).common(biases=True),
    "qwen3": lambda: Model("qwen3", head=16, rope__freq_base=1000000.0).common(is_tied=False, head_norms=True),
    "qwen3_yarn": lambda: Model(
        "qwen3",
        head=16,
        rope__freq_base=10000.0,
        rope__scaling__type="yarn",
        rope__scaling__factor=4.0,
        rope__scaling__original_context_length=16,
    ).common(head_norms=True),
    "gemma2": lambda: Model(
        "gemma2",
        head=16,
        attention__sliding_window=6,
        attn_logit_softcapping=20.0,
        final_logit_softcapping=10.0,
    ).common(norms=BOTH),
    "gemma3": lambda: Model(
        "gemma3",
        layers=7,
        head=16,
        rope__freq_base=1000000.0,
        rope__scaling__type="linear",
        rope__scaling__factor=8.0,
        attention__sliding_window=6,
    ).common(norms=BOTH, head_norms=True),
    "phi3": phi3,
}


class Params(ctypes.Structure):
    """`llama_model_params`, or `llama_context_params`, of llama.h."""

    _fields_ = [("bytes", ctypes.c_uint8 * 256)]

    def set(self, offset, value):
        struct.pack_into("<i", (ctypes.c_uint8 * 256).from_buffer(self), offset, value)


class Batch(ctypes.Structure):
    """`llama_batch` of llama.h."""

    _fields_ = [("n_tokens", ctypes.c_int32)] + [
        (name, ctypes.c_void_p) for name in ["token", "embd", "pos", "n_seq_id", "seq_id", "logits"]
    ]


LLAMA = ctypes.CDLL(os.path.join(os.path.dirname(xllamacpp.__file__), "xllamacpp.abi3.so"))
LLAMA.llama_model_default_params.restype = Params
LLAMA.llama_context_default_params.restype = Params
LLAMA.llama_model_load_from_file.restype = ctypes.c_void_p
LLAMA.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
LLAMA.llama_init_from_model.restype = ctypes.c_void_p
LLAMA.llama_init_from_model.argtypes = [ctypes.c_void_p, Params]
LLAMA.llama_batch_init.restype = Batch
LLAMA.llama_decode.argtypes = [ctypes.c_void_p, Batch]
LLAMA.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
LLAMA.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
QUIET = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
LLAMA.llama_log_set(QUIET, None)
LLAMA.llama_backend_init()
# Where the fields are: n_ctx, flash_attn_type, type_k, type_v.
N_CTX, FLASH, TYPE_K, TYPE_V = 0, 52, 104, 108


def scores(path, words):
    """llama.cpp's scores of the word behind each."""
    params = LLAMA.llama_context_default_params()
    defaults = [struct.unpack_from("<i", bytes(params.bytes), at)[0] for at in (N_CTX, FLASH, TYPE_K, TYPE_V)]
    assert defaults == [512, -1, 1, 1], f"llama_context_params has other fields than this script knows: {defaults}"
    for at, value in [(N_CTX, CONTEXT), (FLASH, 0), (TYPE_K, 0), (TYPE_V, 0)]:
        params.set(at, value)
    model = LLAMA.llama_model_load_from_file(str(path).encode(), LLAMA.llama_model_default_params())
    assert model, f"llama.cpp does not read {path}"
    context = LLAMA.llama_init_from_model(model, params)
    batch = LLAMA.llama_batch_init(len(words), 0, 1)

    def field(name, kind):
        return ctypes.cast(getattr(batch, name), ctypes.POINTER(kind))

    for at, word in enumerate(words):
        field("token", ctypes.c_int32)[at] = int(word)
        field("pos", ctypes.c_int32)[at] = at
        field("n_seq_id", ctypes.c_int32)[at] = 1
        field("seq_id", ctypes.POINTER(ctypes.c_int32))[at][0] = 0
        field("logits", ctypes.c_int8)[at] = 1
    batch.n_tokens = len(words)
    assert LLAMA.llama_decode(context, batch) == 0
    rows = [list(LLAMA.llama_get_logits_ith(context, at)[:WORDS]) for at in range(len(words))]
    return numpy.array(rows, numpy.float32)


def main():
    folder, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    for name, make in MODELS.items():
        if names and name not in names:
            continue
        path = folder / f"{name}.gguf"
        make().write(path)
        words = numpy.random.default_rng(1).integers(0, WORDS, LENGTH)
        save_file({"tokens": words[None], "expected": scores(path, words)[None]}, folder / f"{name}.safetensors")
        print(name)


main()
