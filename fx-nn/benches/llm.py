"""A language model in fx beside llama.cpp, on the same weights: python fx-nn/benches/llm.py DIR [--threads 1,2]

Needs xllamacpp (llama.cpp as a wheel, AVX2), gguf and numpy. The models have the shapes of Qwen2.5-0.5B and Llama-3.2-1B
and random weights, written into DIR once: in bfloat16 as a folder of Hugging Face's and as a GGUF file, and as GGUF files
in Q8_0 and Q4_0. fx reads the folder, and the same GGUF files. Each engine runs in a process of its own, in turns; times
are minima. `gap` is the largest difference of the five likeliest tokens' logarithms of probabilities behind a prompt:
llama.cpp rounds inputs to 8 bits before a product with blocks, fx does not.
"""

import argparse
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

import fx_program

TURNS = 5
# The largest gap of a format.
FORMATS = {"bf16": 0.05, "q8_0": 0.1, "q4_0": 0.3}
BEHIND, COUNT, PROMPT = 128, 32, 512
SHAPES = {
    "qwen2.5-0.5b": dict(
        model_type="qwen2", vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
        num_attention_heads=14, num_key_value_heads=2, rope_theta=1e6, rms_norm_eps=1e-6,
    ),
    "llama-3.2-1b": dict(
        model_type="llama", vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
        num_attention_heads=32, num_key_value_heads=8, rope_theta=5e5, rms_norm_eps=1e-5, head_dim=64,
    ),
}


def bf16(x):
    """The upper halves of floats, to the nearest, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def tensors(shape):
    """The name, GGUF's name and the values of each tensor, in bfloat16."""
    random = np.random.default_rng(7)
    width, inside = shape["hidden_size"], shape["intermediate_size"]
    size = shape.get("head_dim", width // shape["num_attention_heads"])
    queries, keys = shape["num_attention_heads"] * size, shape["num_key_value_heads"] * size

    def matrix(rows, columns):
        values = random.standard_normal((rows, columns), dtype=np.float32)
        return bf16(values * np.float32(columns**-0.5))

    def ones(count):
        return bf16(1 + 0.1 * random.standard_normal(count, dtype=np.float32))

    yield "model.embed_tokens.weight", "token_embd.weight", matrix(shape["vocab_size"], width)
    for at in range(shape["num_hidden_layers"]):
        ours, theirs = f"model.layers.{at}", f"blk.{at}"
        for name, of, rows in [("q", "self_attn.q_proj", queries), ("k", "self_attn.k_proj", keys), ("v", "self_attn.v_proj", keys)]:
            yield f"{ours}.{of}.weight", f"{theirs}.attn_{name}.weight", matrix(rows, width)
            if shape["model_type"] == "qwen2":
                yield f"{ours}.{of}.bias", f"{theirs}.attn_{name}.bias", bf16(0.1 * random.standard_normal(rows, dtype=np.float32))
        yield f"{ours}.self_attn.o_proj.weight", f"{theirs}.attn_output.weight", matrix(width, queries)
        yield f"{ours}.mlp.gate_proj.weight", f"{theirs}.ffn_gate.weight", matrix(inside, width)
        yield f"{ours}.mlp.up_proj.weight", f"{theirs}.ffn_up.weight", matrix(inside, width)
        yield f"{ours}.mlp.down_proj.weight", f"{theirs}.ffn_down.weight", matrix(width, inside)
        yield f"{ours}.input_layernorm.weight", f"{theirs}.attn_norm.weight", ones(width)
        yield f"{ours}.post_attention_layernorm.weight", f"{theirs}.ffn_norm.weight", ones(width)
    yield "model.norm.weight", "output_norm.weight", ones(width)


def turned(values, heads):
    """The rows of queries or keys in llama.cpp's order for Llama: pairs that are rotated lie side by side."""
    rest = values.shape[1:]
    return values.reshape(heads, 2, -1, *rest).swapaxes(1, 2).reshape(values.shape)


def write(name, folder):
    """Writes a model as a folder, and as a GGUF file of each format."""
    shape = SHAPES[name]
    folder.mkdir(parents=True)
    config = dict(shape, tie_word_embeddings=True, max_position_embeddings=8192, hidden_act="silu", torch_dtype="bfloat16")
    (folder / "config.json").write_text(json.dumps(config))
    header, data, start = {}, [], 0
    for ours, _, values in tensors(shape):
        header[ours] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [start, start + values.nbytes]}
        start += values.nbytes
        data.append(values.tobytes())
    header = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for part in data:
            file.write(part)
    del data
    for kind in FORMATS:
        write_gguf(shape, kind, folder / f"{kind}.gguf")


def write_gguf(shape, kind, path):
    import gguf

    writer = gguf.GGUFWriter(path, shape["model_type"])
    writer.add_context_length(8192)
    writer.add_embedding_length(shape["hidden_size"])
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_feed_forward_length(shape["intermediate_size"])
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(shape["rms_norm_eps"])
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_vocab_size(shape["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{kind.upper()}"])
    # Nobody reads texts: tokens are numbers.
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([f"t{at}" for at in range(shape["vocab_size"])])
    writer.add_token_merges(["t 1"])
    for _, theirs, values in tensors(shape):
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(theirs.split(".")[-2])
        if shape["model_type"] == "llama" and heads:
            values = turned(values, shape[heads])
        wide = (values.astype(np.uint32) << 16).view(np.float32)
        dtype = gguf.GGMLQuantizationType[kind.upper()]
        if values.ndim == 1:
            writer.add_tensor(theirs, wide)
        elif kind == "bf16":
            writer.add_tensor(theirs, values.view(np.uint8), raw_dtype=dtype)
        else:
            writer.add_tensor(theirs, gguf.quants.quantize(wide, dtype), raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(path, threads):
    """llama.cpp: answers the lines that the fx program answers."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 4096
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.warmup = True
    params.verbosity = -1
    server = xllamacpp.Server(params)

    def ask(count, more, **options):
        tokens = [100 + at * 37 % 5000 for at in range(count)]
        request = dict(prompt=tokens, max_tokens=more, temperature=0, ignore_eos=True, cache_prompt=False, **options)
        answer = server.handle_completions(request)
        return json.loads(answer) if isinstance(answer, str) else answer

    print("loaded", flush=True)
    for line in sys.stdin:
        what, *numbers = line.split()
        if what == "prompt":
            print(ask(int(numbers[0]), 1)["timings"]["prompt_per_token_ms"], flush=True)
        elif what == "decode":
            print(ask(int(numbers[0]), int(numbers[1]))["timings"]["predicted_per_token_ms"], flush=True)
        elif what == "scores":
            answer = ask(int(numbers[0]), 1, logprobs=5)["choices"][0]
            found = answer["logprobs"]["content"][0]["top_logprobs"]
            print(json.dumps([one["id"] for one in found]), json.dumps([one["logprob"] for one in found]), flush=True)


def gap(ours, theirs):
    """The largest difference of what both give for a token; infinite where the likeliest tokens differ."""
    read = lambda text: [json.loads(part + "]") for part in text.split("]")[:2]]
    (our_tokens, our_values), (tokens, values) = read(ours), read(theirs)
    ours = dict(zip(map(int, our_tokens), our_values))
    both = [abs(ours[token] - value) for token, value in zip(tokens, values) if token in ours]
    return max(both, default=float("inf")) if len(both) >= 3 else float("inf")


def compared(program, folder, kind, threads):
    """Prints the figures of a model in a format; the bars that were missed."""
    fx = fx_program.Fx(program, threads)
    file = folder / f"{kind}.gguf"
    command = [sys.executable, __file__, str(file), "--serve", str(threads)]
    llama = fx_program.Lines(command, OMP_NUM_THREADS=str(threads))
    llama.name = "llama.cpp"
    fx.ask(f"load {folder if kind == 'bf16' else file}")
    llama.process.stdout.readline()
    label = f"{folder.name} {kind} threads {threads}"
    found = gap(fx.ask("scores 64"), llama.ask("scores 64"))
    print(f"{label}: gap {found:.4f}")
    missed = [f"{label} gap {found:.4f}"] if found > FORMATS[kind] else []
    for what, line, bar in [("decode", f"decode {BEHIND} {COUNT}", 1.05), ("prompt", f"prompt {PROMPT}", 0.6)]:
        times = [(float(fx.ask(line)), float(llama.ask(line))) for _ in range(TURNS)]
        ours, theirs = (min(column) for column in zip(*times))
        ratio = ours / theirs
        print(f"{label}: {what} fx_ms {ours:.2f} llama_ms {theirs:.2f} ratio {ratio:.2f} (bar {bar})", flush=True)
        if ratio > bar:
            missed.append(f"{label} {what} {ratio:.2f}")
    for engine in (fx, llama):
        engine.process.stdin.close()
        engine.process.wait()
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", type=Path)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default=",".join(SHAPES))
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.dir, options.serve)
    program = fx_program.build("llm")
    missed = []
    for name in options.only.split(","):
        folder = options.dir / name
        if not (folder / "q4_0.gguf").exists():
            print(f"writing {name}", file=sys.stderr)
            write(name, folder)
        for kind in options.formats.split(","):
            for threads in map(int, options.threads.split(",")):
                missed += compared(program, folder, kind, threads)
    print("all bars held" if not missed else "missed: " + ", ".join(missed))


if __name__ == "__main__":
    main()
