"""The fx side of a comparison: a bench of fx-nn that answers lines."""

import json
import os
import subprocess
import sys
from pathlib import Path


class Fx:
    def __init__(self, program, threads):
        env = dict(os.environ, RAYON_NUM_THREADS=str(threads))
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True, env=env)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            sys.exit(f"fx: {line}: {answer or 'it ended'}")
        return answer


def build(bench):
    """Builds a bench for release; the path of the program."""
    root = Path(__file__).resolve().parents[2]
    command = ["cargo", "build", "--release", "-p", "fx-nn", "--bench", bench, "--message-format=json"]
    print("building the fx program", file=sys.stderr)
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{bench}.py needs cargo, and the fx program has to build")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == bench:
            return message["executable"]
    sys.exit("cargo has built no program")
