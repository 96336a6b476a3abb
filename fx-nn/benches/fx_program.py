"""The fx side of a comparison: a bench of fx-nn that answers lines."""

import json
import os
import subprocess
import sys
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
