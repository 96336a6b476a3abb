"""Checks the server with OpenAI's own client: `pip install openai`, then

    python examples/serve/tests/openai_client.py MODEL.gguf [--seconds 60] [--clients 32] [--server PROGRAM]

Without PROGRAM it is built. The last line has what was counted.
"""

import argparse
import json
import random
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import openai

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--clients", type=int, default=32)
parser.add_argument("--server")
arguments = parser.parse_args()

WORDS = "the a river naïve 世界 🦀 <|end|> 42 \n code() “quoted” Ünïcödé مرحبا it is so".split(" ")


def built():
    build = "cargo build --release -p fx-serve --message-format json".split()
    lines = subprocess.run(build, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return next(program for line in lines if (program := json.loads(line).get("executable")))


def start():
    program = arguments.server or built()
    server = subprocess.Popen([program, arguments.model, "--port", "0"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if " is at http://" in line:
            return server, line.strip().rsplit(" ", 1)[1]
    raise SystemExit(f"the server ended with {server.wait()}")


def prompt(chance):
    text = " ".join(chance.choices(WORDS, k=chance.randrange(1, 60)))
    return [{"role": "user", "content": text}]


def check(client, url, model):
    hello = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 12}
    whole = client.chat.completions.create(**hello)
    assert whole.choices[0].finish_reason in ("stop", "length"), whole
    assert whole.usage.completion_tokens <= 12, whole
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, whole
    chunks = list(client.chat.completions.create(**hello, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content, (text, whole)
    assert chunks[-1].usage == whole.usage, (chunks[-1], whole)
    assert all(chunk.usage is None for chunk in chunks[:-1]), chunks
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    same = client.chat.completions.create(**{**hello, "messages": parts}, extra_body={"top_k": 5})
    assert same.choices[0].message.content == text, same
    drawn = [client.chat.completions.create(**{**hello, "temperature": 1, "seed": 5}) for _ in range(2)]
    assert drawn[0].choices[0].message.content == drawn[1].choices[0].message.content, drawn

    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b.png"}}]}]
    for kind, param, more in [
        (openai.BadRequestError, "n", {"n": 2}),
        (openai.BadRequestError, "presence_penalty", {"presence_penalty": 1}),
        (openai.BadRequestError, "temperature", {"temperature": "hot"}),
        (openai.BadRequestError, "messages[0].content", {"messages": image}),
        (openai.NotFoundError, None, {"model": "another"}),
    ]:
        try:
            client.chat.completions.create(**{**hello, **more})
            raise AssertionError(more)
        except kind as error:
            assert error.param == param and error.type == "invalid_request_error", error
    for path, body, status in [("chat/completions", b"{", 400), ("nothing", None, 404)]:
        try:
            urllib.request.urlopen(f"{url}/v1/{path}", data=body)
            raise AssertionError(path)
        except urllib.error.HTTPError as error:
            assert error.code == status and json.load(error)["error"]["message"], error


class Counts:
    def __init__(self):
        self.lock = threading.Lock()
        self.requests = self.failed = self.left = self.tokens = self.refused = self.ended = 0
        self.firsts = []


def one(client, model, chance, counts):
    """One request: whole, as a stream, or a stream that its client leaves."""
    kind = chance.choice(["whole", "stream", "stream", "left"])
    more = {"model": model, "messages": prompt(chance), "max_tokens": chance.randrange(1, 48)}
    more |= {"temperature": chance.choice([0, 0.7, 1.3]), "seed": chance.randrange(1000)}
    started, first, tokens = time.monotonic(), None, 0
    if kind == "whole":
        answer = client.chat.completions.create(**more)
        assert answer.choices[0].finish_reason, answer
        tokens = answer.usage.completion_tokens
    else:
        leaves = chance.randrange(4) if kind == "left" else None
        usage = None
        with client.chat.completions.create(**more, stream=True, stream_options={"include_usage": True}) as stream:
            for at, chunk in enumerate(stream):
                if chunk.choices and chunk.choices[0].delta.content and first is None:
                    first = time.monotonic() - started
                usage = chunk.usage or usage
                if at == leaves:
                    break
        assert usage or leaves is not None, "the stream has no usage"
        tokens = usage.completion_tokens if usage else 0
    with counts.lock:
        counts.left += kind == "left"
        counts.tokens += tokens
        if first is not None:
            counts.firsts.append(first)


def client_until(url, model, seed, counts, closing, ended):
    """Asks until the server is gone."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120)
    chance = random.Random(seed)
    while not ended.is_set():
        was_closing = closing.is_set()
        with counts.lock:
            counts.requests += 1
        try:
            one(client, model, chance, counts)
            with counts.lock:
                counts.ended += closing.is_set()
        except openai.InternalServerError as error:
            with counts.lock:
                if error.status_code == 503 and closing.is_set():
                    assert error.response.headers["retry-after"], error
                    counts.refused += 1
                else:
                    counts.failed += 1
                    print("failed:", error)
            time.sleep(0.05)
        except openai.APIConnectionError as error:
            # The server is gone: that is no failure of a request that began after it was closed.
            if not was_closing:
                with counts.lock:
                    counts.failed += 1
                print("failed:", repr(error))
            if closing.is_set():
                return
        except Exception as error:
            with counts.lock:
                counts.failed += 1
            print("failed:", repr(error))


server, url = start()
try:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    check(client, url, model)
    print("completion, streaming, usage and errors are as they should be")

    counts, closing, ended = Counts(), threading.Event(), threading.Event()
    started = time.monotonic()
    work = (url, model)
    clients = [
        threading.Thread(target=client_until, args=(*work, seed, counts, closing, ended))
        for seed in range(arguments.clients)
    ]
    for thread in clients:
        thread.start()
    time.sleep(arguments.seconds)
    with counts.lock:
        speed = counts.tokens / (time.monotonic() - started)
    # A text that runs beyond the others, so that the server is seen while it closes.
    last = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "Hello"}], max_tokens=200, temperature=1, stream=True
    )
    last = iter(last)
    next(last)
    closing.set()
    server.send_signal(signal.SIGTERM)
    reason = [chunk.choices[0].finish_reason for chunk in last][-1]
    assert reason in ("stop", "length"), reason
    code = server.wait(60)
    ended.set()
    for thread in clients:
        thread.join()
    assert code == 0, f"the server ended with {code}"
    firsts = sorted(counts.firsts)
    p99 = firsts[len(firsts) * 99 // 100] * 1000
    print(
        f"requests {counts.requests} failed {counts.failed} left {counts.left} tokens/s {speed:.1f}"
        f" first_token_p99_ms {p99:.0f} refused_while_closing {counts.refused} ended_while_closing {counts.ended}"
    )
    raise SystemExit(counts.failed > 0)
finally:
    server.kill()
