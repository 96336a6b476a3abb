//! Makes programs and judges them on every path; `programs.py` starts it.
#![allow(clippy::print_stdout, reason = "a program of the command line")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use fx_nn::{Error, Result};
use fx_programs::calls::Calls;
use fx_programs::engines::Engines;
use fx_programs::generate::{Case, Generator};
use fx_programs::judge::{self, Verdict, caught};
use fx_programs::paths;
use fx_programs::plants::Plant;
use fx_programs::program::{Results, Step};
use fx_programs::shrink;
use serde_json::json;

#[derive(Default)]
struct Options {
    first: u64,
    count: u64,
    python: Option<String>,
    report: Option<PathBuf>,
    plant: Plant,
    only: Option<String>,
    verbose: bool,
    shrink: bool,
}

fn options() -> Result<Options> {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .ok_or_else(|| Error::msg(format_args!("{arg} needs a value")))
        };
        match &*arg {
            "--first" => options.first = value()?.parse().map_err(Error::other)?,
            "--count" => options.count = value()?.parse().map_err(Error::other)?,
            "--python" => options.python = Some(value()?),
            "--report" => options.report = Some(value()?.into()),
            "--plant" => options.plant = Plant(value()?),
            "--path" => options.only = Some(value()?),
            "--verbose" => options.verbose = true,
            "--shrink" => options.shrink = true,
            other => return Err(Error::msg(format_args!("no option {other}"))),
        }
    }
    Ok(options)
}

#[derive(Default)]
struct Counts {
    counts: BTreeMap<&'static str, usize>,
    paths: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    shares: BTreeMap<&'static str, usize>,
    names: BTreeMap<String, usize>,
    reasons: BTreeMap<String, usize>,
}

impl Counts {
    fn add(&mut self, name: &'static str, count: usize) {
        *self.counts.entry(name).or_default() += count;
    }

    fn program(&mut self, case: &Case) {
        let mut steps = Vec::new();
        flat(&case.program.steps, &mut steps);
        self.add("steps", steps.len());
        let mut names: Vec<&str> = Vec::new();
        for step in &steps {
            if let Step::Call { call, .. } = step {
                names.push(&call.name);
            }
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            *self.names.entry(name.to_string()).or_default() += 1;
        }
        let any = |of: fn(&Step) -> bool| steps.iter().any(|step| of(step));
        let shares = [
            (
                "branch or loop",
                any(|s| matches!(s, Step::Cond(..) | Step::While(..) | Step::Scan(..))),
            ),
            (
                "layer",
                any(|s| matches!(s, Step::Call { layer: Some(_), .. })),
            ),
            ("index", any(|s| matches!(s, Step::Index(..)))),
            (
                "structure",
                matches!(case.program.results, Results::Nested(_)) || any(|s| s.gives().len() > 1),
            ),
            ("named size", case.named),
        ];
        for (name, is) in shares {
            *self.shares.entry(name).or_default() += usize::from(is);
        }
    }

    fn path(&mut self, path: &'static str, kind: &'static str) {
        *self.paths.entry(path).or_default().entry(kind).or_default() += 1;
    }
}

fn flat<'s>(steps: &'s [Step], out: &mut Vec<&'s Step>) {
    for step in steps {
        out.push(step);
        match step {
            Step::Cond(_, sides, _) => sides.iter().for_each(|side| flat(&side.steps, out)),
            Step::While(_, _, body, _) | Step::Scan(_, _, body, _) => flat(&body.steps, out),
            _ => {}
        }
    }
}

fn still_fails(
    case: &Case,
    path: &paths::Path,
    engines: Option<&mut Engines>,
    plant: &Plant,
) -> bool {
    let expected = match judge::expected(case) {
        Ok(None) => return false,
        Ok(Some(expected)) => Ok(expected),
        Err(error) => Err(error),
    };
    matches!(
        judge::judge(case, &expected, path, engines, plant),
        Verdict::Wrong(_)
    )
}

fn main() -> Result<()> {
    let options = options()?;
    std::panic::set_hook(Box::new(|_| {}));
    let calls = Calls::parse(&fx_differential::recorded()?)?;
    let mut engines = match &options.python {
        Some(python) => Some(Engines::start(
            python,
            concat!(env!("CARGO_MANIFEST_DIR"), "/../differential/programs.py").as_ref(),
        )?),
        None => None,
    };
    let paths = paths::all();
    let mut counts = Counts::default();
    for name in [
        "programs",
        "run",
        "refused_by_all",
        "compared",
        "unread",
        "open",
        "wrong",
        "panics",
        "refused_by_one_path",
        "steps",
    ] {
        counts.add(name, 0);
    }
    for name in calls.names() {
        counts.names.insert(name.to_string(), 0);
    }
    let mut generator = Generator::new(&calls);
    for seed in options.first..options.first + options.count {
        counts.add("programs", 1);
        let case = generator.case(seed)?;
        if options.verbose {
            println!("{seed}: {:#?} {:?}", case.program.steps, case.specs);
        }
        let expected = match judge::expected(&case) {
            Ok(None) => continue,
            Ok(Some(expected)) => Ok(expected),
            Err(error) => Err(error),
        };
        if expected.is_err() {
            counts.add("refused_by_all", 1);
        }
        match caught(|| judge::traced(&case)) {
            Ok(Ok(_)) => {}
            Ok(Err(_)) if expected.is_err() => continue,
            Ok(Err(error)) => {
                counts.add("wrong", 1);
                println!("{seed}: cannot be traced: {error}");
                continue;
            }
            Err(panic) => {
                counts.add("panics", 1);
                println!("{seed}: a panic while it is traced: {panic}");
                continue;
            }
        }
        counts.add("run", 1);
        counts.program(&case);
        let mut gone = true;
        for path in &paths {
            if !(path.takes)(&case) || options.only.as_ref().is_some_and(|only| only != path.name) {
                continue;
            }
            counts.path(path.name, "takes");
            match judge::judge(&case, &expected, path, engines.as_mut(), &options.plant) {
                Verdict::Same(values) => {
                    counts.add("compared", values);
                    counts.path(path.name, "compared");
                }
                Verdict::RefusedByAll => counts.path(path.name, "refused_by_all"),
                Verdict::Refused(rule) => {
                    counts.add("refused_by_one_path", 1);
                    counts.path(path.name, "refused");
                    *counts
                        .reasons
                        .entry(format!("{}: {rule}", path.name))
                        .or_default() += 1;
                }
                Verdict::Open(fault) => {
                    counts.add("open", 1);
                    counts.path(path.name, "open");
                    *counts
                        .reasons
                        .entry(format!("open, {}: {fault}", path.name))
                        .or_default() += 1;
                }
                Verdict::Unread => {
                    counts.add("unread", 1);
                    counts.path(path.name, "unread");
                }
                Verdict::Wrong(text) => {
                    counts.add("wrong", 1);
                    counts.path(path.name, "wrong");
                    println!("{seed}: {}: {text}", path.name);
                    if options.shrink && gone {
                        let mut fails =
                            |case: &Case| still_fails(case, path, engines.as_mut(), &options.plant);
                        println!("{}", shrink::shown(&shrink::shrunk(&case, &mut fails)));
                        gone = false;
                    }
                }
                Verdict::Panic(text) => {
                    counts.add("panics", 1);
                    counts.path(path.name, "panics");
                    println!("{seed}: {}: a panic: {text}", path.name);
                }
            }
        }
    }
    let report = json!({
        "counts": counts.counts, "paths": counts.paths, "shares": counts.shares, "names": counts.names,
        "reasons": counts.reasons,
    });
    match &options.report {
        Some(path) => std::fs::write(path, report.to_string()).map_err(Error::other)?,
        None => println!("{report:#}"),
    }
    Ok(())
}
