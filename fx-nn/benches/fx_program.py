"""The fx side of a comparison: a bench that answers lines; and what the scripts that compare engines have in common."""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path


class Lines:
    """A program that answers lines."""

    def __init__(self, command, **env):
        pipe = subprocess.PIPE
        env = dict(os.environ, **env)
        self.name = Path(command[-1]).stem
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            sys.exit(f"{self.name}: {line}: {answer or 'it ended'}")
        return answer


class Fx(Lines):
    def __init__(self, program, threads):
        super().__init__([program], RAYON_NUM_THREADS=str(threads))
        self.name = "fx"


def build(bench, package="fx-nn"):
    """Builds a bench of a package for release; the path of the program."""
    root = Path(__file__).resolve().parents[2]
    command = ["cargo", "build", "--release", "-p", package, "--bench", bench, "--message-format=json"]
    print("building the fx program", file=sys.stderr)
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{bench}.py needs cargo, and the fx program has to build")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == bench:
            return message["executable"]
    sys.exit("cargo has built no program")


def options_of(description, models):
    """The options of a script that compares models in turns."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(models))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    if options.profile:
        options.profile = options.profile.resolve()
        options.profile.mkdir(parents=True, exist_ok=True)
    unknown = [name for name in options.models if name not in models]
    if unknown:
        sys.exit(f"the models are {', '.join(models)}; there is no {', '.join(unknown)}")
    return options


def timed(run):
    """The least of some times in ms."""

    def least(count):
        best = math.inf
        for _ in range(count):
            start = time.perf_counter()
            run()
            best = min(best, (time.perf_counter() - start) * 1e3)
        return best

    return least


def in_turns(engines, turns, count):
    """The least time of each engine, which runs so often in each turn."""
    least = dict.fromkeys(engines, math.inf)
    for _ in range(turns):
        for engine, run in engines.items():
            run(2)
            least[engine] = min(least[engine], run(count))
    return least
