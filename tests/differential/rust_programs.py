"""Programs written as Rust with `#[trace(control_flow)]`: nested branches, loops, jumps, `match`, attributes, moves.

Each program is compiled twice: with the attribute, on `Float`, `Int` and `Bool`, and without it, on plain numbers. The
second one says what is right; the first one runs eagerly and as a graph. A program that rustc takes without the
attribute and refuses with it is wrong too.

    python tests/differential/rust_programs.py --count 400 --seed 1
    python tests/differential/rust_programs.py --record      # the 40 programs that the tests run
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "tests" / "programs.rs"
RECORDED_COUNT = 40
PER_CRATE = 100

# What all programs stand on; `Pair` is moved, not copied.
SHARED = """/// For the graph.
pub mod on_graph {
    pub use fx_core::prelude::*;
    pub type F = Float;
    pub type N = Int;
    pub type B = Bool;
    #[derive(Tree, Clone)]
    pub struct Pair {
        pub x: F,
        pub y: F,
    }
    pub fn total(pair: Pair) -> Result<F> {
        pair.x + pair.y
    }
    pub fn known(truth: bool) -> B {
        truth.into()
    }
    pub fn number(number: f64) -> F {
        number.into()
    }
    pub fn count(count: i64) -> N {
        count.into()
    }
}

/// The same for plain Rust.
pub mod on_plain {
    pub use fx_core::prelude::*;
    pub type F = f64;
    pub type N = i64;
    pub type B = bool;
    #[derive(Clone)]
    pub struct Pair {
        pub x: F,
        pub y: F,
    }
    pub fn total(pair: Pair) -> Result<F> {
        Ok(pair.x + pair.y)
    }
    pub fn known(truth: bool) -> B {
        truth
    }
    pub fn number(number: f64) -> F {
        number
    }
    pub fn count(count: i64) -> N {
        count
    }
}
"""
LINTS = """#![allow(
    missing_docs,
    dead_code,
    unused,
    unreachable_code,
    unreachable_pub,
    unexpected_cfgs,
    clippy::all,
    clippy::pedantic,
    reason = "programs made by chance"
)]
"""
JUDGE = """use fx_core::prelude::*;

const NUMBERS: [(f64, f64); 4] = [(0.5, -1.0), (-2.0, 3.0), (1.5, 1.5), (0.0, 4.0)];
const COUNTS: [(i64, i64); 4] = [(0, 2), (3, 1), (-1, 0), (2, 5)];

/// The first input for which a program gives something else with the attribute.
macro_rules! judged {
    ($program:ident) => {{
        let mut wrong = None;
        for flag in [false, true] {
            let traced = Trace::new(traced!($program::graph::run)).concrete("flag", flag);
            let gm = match traced.graph_module() {
                Ok(gm) => Some(gm),
                Err(error) => {
                    wrong.get_or_insert_with(|| format!("it cannot be traced: {error}"));
                    None
                }
            };
            for (a, b) in NUMBERS {
                for (n, m) in COUNTS {
                    for t in [false, true] {
                        let want = $program::plain::run(a, b, n, m, t, flag).ok();
                        let eager =
                            $program::graph::run(a.into(), b.into(), n.into(), m.into(), t.into(), flag);
                        let eager = eager.ok().and_then(|x| x.concrete());
                        let graph: Option<Option<f64>> =
                            gm.as_ref().map(|gm| gm.forward((a, b, n, m, t, flag)).ok());
                        let bits = |x: Option<f64>| x.map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() });
                        if bits(eager) != bits(want) || graph.is_some_and(|graph| bits(graph) != bits(want)) {
                            let inputs = format!("a {a} b {b} n {n} m {m} t {t} flag {flag}");
                            wrong.get_or_insert_with(|| {
                                format!("{inputs}: eager {eager:?} graph {graph:?}, plain Rust {want:?}")
                            });
                        }
                    }
                }
            }
        }
        wrong
    }};
}
"""


class Program:
    """A program; `text(graph)` writes it, with `?` behind each operation for the graph."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0
        self.lines = []
        self.scopes = [{"a": "F", "b": "F", "n": "N", "m": "N", "t": "B", "flag": "bool", "v": "Pair", "h": "mut F", "k": "mut N"}]
        self.block(2, "function", self.random.randint(3, 6))
        self.lines.append(("end", self.end()))

    # Names.

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def known(self):
        found = {}
        for scope in self.scopes:
            found.update(scope)
        return found

    def of(self, *kinds):
        return [name for name, kind in self.known().items() if kind.removeprefix("mut ") in kinds]

    def changing(self, kind):
        return [name for name, of in self.known().items() if of == f"mut {kind}"]

    def pick(self, options):
        return self.random.choice(options)

    def chance(self, share):
        return self.random.random() < share

    # Expressions: `?` stands for the mark of a call that can fail.

    def float(self, depth=2):
        kind = self.random.randrange(8) if depth else self.random.randrange(3)
        if kind < 2:
            return self.pick(self.of("F"))
        if kind == 2:
            return f"number({self.random.randint(-6, 6) / 2})"
        if kind == 3 and self.of("N"):
            return f"number_of!({self.pick(self.of('N'))})"
        if kind == 4 and self.of("Pair"):
            pair = self.pick(self.of("Pair"))
            return self.pick([f"{pair}.x", f"{pair}.y", f"total({pair}.clone())?"])
        op = self.pick(["+", "-", "*"]) if depth == 2 else self.pick(["+", "-"])
        right = self.float(depth - 1) if op != "*" else str(self.pick([0.5, 2.0, -1.0]))
        return f"op!({self.float(depth - 1)} {op} {right})"

    def whole(self):
        kind = self.random.randrange(4)
        name = self.pick(self.of("N"))
        if kind < 2:
            return name
        if kind == 2:
            return f"count({self.random.randint(-2, 4)})"
        return f"op!({name} {self.pick(['+', '-'])} {self.random.randint(1, 3)})"

    def test(self):
        kind = self.random.randrange(10)
        compare = self.pick(["<", ">", "<=", ">="])
        if kind < 4:
            return f"{self.float(1)} {compare} {self.random.randint(-4, 6) / 2}"
        if kind < 7:
            return f"{self.whole()} {self.pick([compare, '==', '!='])} {self.random.randint(-1, 4)}"
        if kind < 8:
            return self.pick(self.of("B"))
        if kind < 9:
            return self.pick(["flag", "!flag", "flag && true"])
        return f"{self.pick(self.of('F'))} {compare} {self.pick(self.of('F'))}"

    def end(self):
        kind = self.random.randrange(5)
        pairs = self.of("Pair")
        if pairs and kind == 0:
            pair = self.pick(pairs)
            return f"if {self.test()} {{ total({pair}) }} else {{ result!({pair}.x * 2.0) }}"
        if pairs and kind == 1:
            pair = self.pick(pairs)
            return (f"match {self.pick(self.of('N'))} {{ 0 => total({pair}), 1 | 2 => Ok({self.float()}), "
                    f"_ => {{ let last = {pair}; Ok(last.y) }} }}")
        return f"Ok({self.float()})"

    # Statements.

    def scoped(self, write):
        self.scopes.append({})
        before, self.lines = self.lines, []
        write()
        self.scopes.pop()
        written, self.lines = self.lines, before
        return written

    def say(self, text):
        self.lines.append(("line", text))

    def put(self, head, inner, tail="}"):
        self.lines.append(("block", head, inner, tail))

    def block(self, depth, place, count):
        for _ in range(count):
            self.statement(depth, place)

    def attributes(self):
        if self.chance(0.15):
            self.say(self.pick(["#[allow(unused_variables)]", "#[cfg(all())]", "#[cfg(not(any()))]", "/// A comment.",
                                "#[cfg_attr(all(), allow(unused))]", "#[allow(unused_assignments)]"]))

    def assign(self):
        kind = self.pick(["F", "F", "N"])
        name = self.pick(self.changing(kind))
        if kind == "F":
            self.say(f"{name} = {self.float()};")
        else:
            self.say(f"{name} = op!({name} {self.pick(['+', '-'])} {self.random.randint(1, 2)});")

    def statement(self, depth, place):
        kinds = [self.assign, self.assign, self.let, self.shadow, self.left_out]
        if depth:
            kinds += [lambda: self.branch(depth, place), lambda: self.branch(depth, place), lambda: self.value(depth),
                      lambda: self.choice(depth, place), lambda: self.range(depth), lambda: self.while_(depth),
                      lambda: self.loop(depth), lambda: self.each(depth), lambda: self.pair(depth),
                      lambda: self.plain(depth), lambda: self.jump(depth, place)]
        self.pick(kinds)()

    def let(self):
        name, kind = self.fresh("x"), self.pick(["F", "F", "N", "B"])
        value = {"F": self.float, "N": self.whole, "B": lambda: f"known({self.pick(['true', 'false', 'flag'])})"}[kind]()
        changes = kind != "B" and self.chance(0.5)
        self.attributes_of_let()
        self.say(f"let {'mut ' if changes else ''}{name}: {kind} = {value};")
        self.scopes[-1][name] = f"mut {kind}" if changes else kind

    def attributes_of_let(self):
        if self.chance(0.2):
            self.say(self.pick(["#[allow(unused_mut)]", "#[rustfmt::skip]", "#[cfg(all())]"]))

    def shadow(self):
        name = self.pick(["a", "b"])
        self.say(f"let {name} = {self.float()};")
        self.scopes[-1][name] = "F"

    def left_out(self):
        attr = self.pick(["#[cfg(any())]", "#[cfg(not(all()))]", "#[cfg_attr(all(), cfg(any()))]", "#[cfg(no_such_option)]"])
        name = self.pick(self.changing("F"))
        self.say(attr)
        self.say(self.pick([
            f"if missing {{ {name} = nothing; }}", f"while {name} < missing {{ {name} = 3; break; }}",
            "return Ok(missing);", f"let {name} = \"text\";", f"{{ {name} = number(1000.0); }}",
            f"match n {{ 0 => {name} = missing, _ => return }}", f"for i in 0..n {{ {name} = missing(i); }}",
            f"loop {{ {name} = number(7.0); }}", "total(missing)?;",
        ]))

    def side(self, depth, place="side", count=2):
        return self.scoped(lambda: self.block(depth - 1, place, self.random.randint(1, count)))

    def branch(self, depth, place):
        self.attributes()
        self.put(f"if {self.test()} {{", self.side(depth), "}")
        while self.chance(0.3):
            self.put(f"else if {self.test()} {{", self.side(depth))
        if self.chance(0.6):
            self.put("else {", self.side(depth))

    def value(self, depth):
        name = self.fresh("y")

        def inner():
            self.block(depth - 1, "side", self.random.randint(0, 1))
            self.say(self.float())
        self.put(f"let {name}: F = if {self.test()} {{", self.scoped(inner))
        while self.chance(0.25):
            self.put(f"else if {self.test()} {{", self.scoped(inner))
        self.put("else {", self.scoped(inner), "};")
        self.scopes[-1][name] = "F"

    def choice(self, depth, place):
        patterns = self.pick([["0", "1 | 2", "_"], ["..=-1", "0..=2", "_"], ["3", "other"], ["1", "2", "0 | 4..=9", "_"]])
        self.attributes()
        arms, ends = [], place == "function"
        for at, pattern in enumerate(patterns):
            if self.chance(0.2):
                arms.append(("line", self.pick(["#[cfg(any())]", "#[cfg(not(all()))]"]) + f" {self.random.randint(0, 3)} => missing,"))
            if self.chance(0.2):
                arms.append(("line", self.pick(["#[cfg(all())]", "#[allow(unused)]", "/// A comment.", "#[rustfmt::skip]"])))
            scope = {"other": "N"} if pattern == "other" else {}
            self.scopes.append(scope)
            # An arm that returns behind one that does not would leave two regions.
            ends = ends and self.chance(0.5) and at + 1 < len(patterns)
            inner = self.scoped(lambda: (self.block(depth - 1, "side", 1), ends and self.say(f"return {self.given()};")))
            self.scopes.pop()
            arms.append(("block", f"{pattern} => {{", inner, "}"))
        self.put(f"match {self.whole()} {{", arms)

    def given(self):
        pairs = self.of("Pair")
        if pairs and self.chance(0.4):
            return f"total({self.pick(pairs)})"
        return f"Ok({self.float()})"

    def jump(self, depth, place):
        jumps = {"function": ["return"], "loop": ["break", "continue"]}.get(place)
        if jumps is None:
            return self.assign()
        jump = self.pick(jumps)

        def ended(inner_depth):
            self.block(inner_depth, "side", self.random.randint(0, 1))
            if inner_depth and self.chance(0.3):
                # Several ways out of one kind.
                self.put(f"if {self.test()} {{", self.scoped(lambda: ended(inner_depth - 1)))
                if self.chance(0.5):
                    self.put("else {", self.scoped(lambda: ended(inner_depth - 1)))
                    return
                self.block(0, "side", self.random.randint(0, 1))
            self.say(f"return {self.given()};" if jump == "return" else f"{jump};")
        self.attributes()
        self.put(f"if {self.test()} {{", self.scoped(lambda: ended(depth - 1)))
        if self.chance(0.2):
            self.put("else {", self.side(depth))

    def looped(self, depth, before=()):
        def inner():
            for text in before:
                self.say(text)
            pairs = {name: "hidden" for name in self.of("Pair")}
            self.scopes[-1].update(pairs)
            self.block(depth - 1, "loop", self.random.randint(1, 3))
        return self.scoped(inner)

    def range(self, depth):
        step = self.fresh("i")
        bounds = self.pick([f"0..{self.whole_small()}", f"0..={self.whole_small()}", f"{self.whole_small()}..3", "0..2", "1..=2"])
        is_plain = bounds in ("0..2", "1..=2")
        self.attributes()
        self.scopes.append({} if is_plain else {step: "N"})
        inner = self.looped(depth)
        self.scopes.pop()
        self.put(f"for {step} in {bounds} {{", inner)

    def whole_small(self):
        return self.pick(["n", "m"])

    def while_(self, depth):
        turns = self.fresh("w")
        self.say(f"let mut {turns} = count(0);")
        self.scopes[-1][turns] = "N"
        limit = self.pick(["m", "n", "3"])
        self.attributes()
        inner = self.looped(depth, [f"{turns} = op!({turns} + 1);"])
        self.put(f"while {turns} < {limit} {{", inner)

    def loop(self, depth):
        turns = self.fresh("l")
        self.say(f"let mut {turns} = count(0);")
        self.scopes[-1][turns] = "N"
        self.attributes()
        inner = self.looped(depth, [f"{turns} = op!({turns} + 1);", f"if {turns} > {self.pick(['2', 'm', 'n'])} {{ break; }}"])
        self.put("loop {", inner)

    def each(self, depth):
        item = self.fresh("e")
        self.attributes()
        self.scopes.append({item: "item"})
        inner = self.looped(depth)
        self.scopes.pop()
        name = self.pick(self.changing("F"))
        self.put(f"for {item} in [0.5, -1.0] {{", inner + [("line", f"{name} = op!({name} + {item});")])

    def pair(self, depth):
        name = self.fresh("p")
        old = self.pick(self.of("Pair") or [""])
        makes = f"Pair {{ x: {self.float()}, #[cfg(all())] y: {self.float()} }}"
        kind = self.random.randrange(3) if old else 2
        if kind == 0:
            self.say(f"let {name} = if {self.test()} {{ {old} }} else {{ Pair {{ x: {old}.y, y: {old}.x }} }};")
        elif kind == 1:
            self.say(f"let {name} = match {self.whole()} {{ 0 => {makes}, 1 => {old}, _ => Pair {{ x: total({old})?, y: a }} }};")
        else:
            self.say(f"let mut {name} = {makes};")
            self.put(f"if {self.test()} {{", [("line", f"{name} = Pair {{ x: {name}.y, y: {self.float(1)} }};")])
        if kind < 2:
            for scope in self.scopes:
                scope.pop(old, None)
        self.scopes[-1][name] = "Pair"

    def plain(self, depth):
        name = self.fresh("q")
        self.say(self.pick([
            f"let Some({name}) = Some({self.float()}) else {{ return Ok(a); }};",
            f"let {name} = if let Some(x) = Some({self.float()}) {{ x }} else {{ a }};",
            f"let {name} = {{ let twice = |x: F| op_in!(x + x); twice({self.pick(self.of('F'))})? }};",
            f"let {name} = [{self.float()}, {self.float()}][usize::from(flag)];",
            f"let {name} = 'block: {{ if flag {{ break 'block {self.float()}; }} {self.float()} }};",
        ]))
        self.scopes[-1][name] = "F"

    def text(self, graph):
        """The body of the function."""
        out = []

        def write(lines, indent):
            for line in lines:
                if line[0] == "line":
                    out.append("    " * indent + line[1])
                elif line[0] == "end":
                    out.append("    " * indent + line[1])
                else:
                    out.append("    " * indent + line[1])
                    write(line[2], indent + 1)
                    out.append("    " * indent + line[3])
        write([("line", "let mut h: F = a;"), ("line", "let mut k: N = n;"),
               ("line", "let v = Pair { x: a, y: b };")] + self.lines, 1)
        return macros("\n".join(out), graph)


def macros(text, graph):
    """Writes `op!(..)` and its like as the graph or as plain Rust has them."""
    forms = {
        "op": (lambda x: f"({x})?") if graph else (lambda x: f"({x})"),
        "op_in": (lambda x: f"{x}") if graph else (lambda x: f"Ok::<F, Error>({x})"),
        "result": (lambda x: f"{x}") if graph else (lambda x: f"Ok({x})"),
        "number_of": (lambda x: f"({x} * 1.0)?") if graph else (lambda x: f"({x} as f64 * 1.0)"),
    }
    found = re.compile(r"\b(op|op_in|result|number_of)!\(")
    while (at := found.search(text)) is not None:
        depth, end = 1, at.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[:at.start()] + forms[at[1]](text[at.end():end - 1]) + text[end:]
    return text


def module(name, seed):
    program = Program(seed)
    signature = "pub fn run(a: F, b: F, n: N, m: N, t: B, flag: bool) -> Result<F>"
    return "\n".join([
        f"pub mod {name} {{", "pub mod plain {", "use crate::on_plain::*;", f"{signature} {{", program.text(False), "}", "}",
        "pub mod graph {", "use crate::on_graph::*;", "#[trace(control_flow)]", f"{signature} {{", program.text(True), "}", "}", "}", "",
    ])


def rustfmt(path):
    subprocess.run(["rustfmt", "--edition", "2024", str(path)], check=True)


def record():
    """Writes the programs that the tests run."""
    names = [f"program_{seed}" for seed in range(RECORDED_COUNT)]
    tests = [f"#[test]\nfn {name}_gives_what_plain_rust_gives() {{ assert_eq!(judged!({name}), None); }}\n" for name in names]
    RECORDED.write_text("\n".join([
        "//! Programs made by `tests/differential/rust_programs.py --record`: `#[trace(control_flow)]` and plain Rust",
        "//! give the same, eager and as a graph.", "", LINTS, JUDGE, SHARED, *tests,
        *(module(name, seed) for seed, name in enumerate(names)),
    ]))
    rustfmt(RECORDED)
    print(f"recorded {RECORDED_COUNT}")


def crate(folder, seeds):
    """A crate with a program a file, and a `main` that judges them."""
    (folder / "src").mkdir(parents=True, exist_ok=True)
    core = os.path.relpath(ROOT / "fx-core", folder)
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "{folder.name}"\nversion = "0.0.0"\nedition = "2024"\n\n[workspace]\n\n'
        f'[dependencies]\nfx-core = {{ path = "{core}" }}\n')
    shutil.copy(ROOT / "Cargo.lock", folder / "Cargo.lock")
    for seed in seeds:
        text = module(f"program_{seed}", seed)
        (folder / "src" / f"program_{seed}.rs").write_text(text)
    calls = [f'    judge("{seed}", judged!(program_{seed}));' for seed in seeds]
    files = [f"mod file_{seed} {{ include!(\"program_{seed}.rs\"); }} use file_{seed}::program_{seed};" for seed in seeds]
    (folder / "src" / "main.rs").write_text("\n".join([
        LINTS, JUDGE, SHARED, *files, "fn judge(seed: &str, wrong: Option<String>) {",
        '    println!("{seed} {}", wrong.as_deref().unwrap_or("right"));', "}", "fn main() {", *calls, "}", ""]))


def built(folder, target, seeds):
    """Compiles a crate; leaves out what rustc refuses, which comes back with its first error."""
    refused = {}
    while True:
        left = [seed for seed in seeds if seed not in refused]
        crate(folder, left)
        done = subprocess.run(
            ["cargo", "build", "--offline", "--quiet", "--message-format=json", "--target-dir", str(target)],
            cwd=folder, capture_output=True, text=True)
        if done.returncode == 0:
            return refused
        before = len(refused)
        for line in done.stdout.splitlines():
            message = json.loads(line).get("message") or {}
            if message.get("level") != "error":
                continue
            for span in message.get("spans", []):
                name = re.search(r"program_(\d+)\.rs$", span["file_name"])
                if name:
                    refused.setdefault(int(name[1]), message["rendered"] or message["message"])
        if len(refused) == before:
            raise RuntimeError(done.stdout[-4000:] + done.stderr[-4000:])


def run(count, seed, verbose=True):
    """Judges `count` programs; returns how many are written, and what is wrong with which."""
    wrong, written = {}, 0
    (ROOT / "target").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rust_programs_", dir=ROOT / "target") as temporary:
        folder = Path(temporary)
        target = Path(os.environ.get("FX_PROGRAMS_TARGET", folder / "target"))
        seeds = list(range(seed * 1_000_000, seed * 1_000_000 + count))
        for at in range(0, count, PER_CRATE):
            part = seeds[at:at + PER_CRATE]
            here = folder / f"programs_{at // PER_CRATE}"
            refused = built(here, target, part)
            for program, error in refused.items():
                wrong[program] = f"rustc refuses it: {error}"
            output = subprocess.run([str(target / "debug" / here.name)], capture_output=True, text=True)
            lines = output.stdout.splitlines()
            for line in lines:
                name, result = line.split(" ", 1)
                if result != "right":
                    wrong[int(name)] = result
            missing = set(part) - set(refused) - {int(line.split(" ", 1)[0]) for line in lines if line[:1].isdigit()}
            for program in missing:
                wrong.setdefault(program, f"it did not end: {output.stderr[-300:]}")
            written += len(part)
    if verbose:
        for program, words in wrong.items():
            print(f"program {program}: {words}")
    return written, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="write the programs that the tests run")
    parser.add_argument("--show", type=int, help="print a program of this seed")
    given = parser.parse_args()
    if given.record:
        return record()
    if given.show is not None:
        return print(module("program", given.show))
    written, wrong = run(given.count, given.seed)
    print(f"written {written} wrong {len(wrong)}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
