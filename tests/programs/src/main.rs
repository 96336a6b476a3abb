//! Makes programs and judges them on every path; `programs.py` starts it.
#![allow(clippy::print_stdout, reason = "a program of the command line")]

use std::path::PathBuf;

use fx_nn::{Error, Result};
use fx_programs::calls::Calls;
use fx_programs::emitted;
use fx_programs::engines::Engines;
use fx_programs::generate::{Case, Generator};
use fx_programs::judge::{Judge, Verdict, caught};
use fx_programs::paths;
use fx_programs::plants::Plant;
use fx_programs::report::Counts;
use fx_programs::shrink;

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
    xla: bool,
    recorded: bool,
    emit: Option<PathBuf>,
    emitted: u64,
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
            "--xla" => options.xla = true,
            "--recorded" => options.recorded = true,
            "--emit" => options.emit = Some(value()?.into()),
            "--emitted" => options.emitted = value()?.parse().map_err(Error::other)?,
            other => return Err(Error::msg(format_args!("no option {other}"))),
        }
    }
    Ok(options)
}

fn still_fails(
    case: &Case,
    path: &paths::Path,
    engines: Option<&mut Engines>,
    plant: &Plant,
) -> bool {
    let judge = Judge::new(case, plant);
    judge.is_some_and(|judge| is_fault(&judge.verdict(path, engines)))
}

fn is_fault(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Wrong(_) | Verdict::Panic(_))
}

fn main() -> Result<()> {
    let options = options()?;
    if !options.verbose {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let calls = Calls::parse(&fx_differential::recorded()?)?;
    let mut engines = match &options.python {
        Some(python) => Some(Engines::start(
            python,
            concat!(env!("CARGO_MANIFEST_DIR"), "/../differential/programs.py").as_ref(),
        )?),
        None => None,
    };
    let mut paths = paths::all();
    paths.retain(|path| options.xla || path.name != paths::XLA);
    let mut counts = Counts::new(calls.names());
    let mut emitted = 0;
    let mut generator = Generator::new(&calls);
    let recorded = if options.recorded {
        calls.all()
    } else {
        Vec::new()
    };
    let mut end = options.first + options.count;
    if options.recorded {
        end = end.min(recorded.len() as u64);
    }
    for seed in options.first..end {
        counts.add("programs", 1);
        let case = match recorded.get(seed as usize) {
            Some(call) => Case::of_call(call.as_ref().clone(), &call.tensors()?),
            None => generator.case(seed),
        };
        let case = match case {
            Ok(case) => case,
            // What is too large for a program.
            Err(_) if options.recorded => continue,
            Err(error) => return Err(error),
        };
        if options.verbose {
            println!("{seed}: {:#?} {:?}", case.program.steps, case.specs);
        }
        let Some(judge) = Judge::new(&case, &options.plant) else {
            continue;
        };
        if judge.is_refused() {
            counts.add("refused_by_all", 1);
        }
        match caught(|| judge.traced().map(|_| ())) {
            Ok(Ok(_)) => {}
            Ok(Err(_)) if judge.is_refused() => continue,
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
        if let Some(folder) = &options.emit
            && emitted < options.emitted
            && emitted::takes(&case)
        {
            emitted += 1;
            if let Err(error) = emitted::write(folder, &case) {
                let verdict = judge.refused(emitted::EMITTED, error);
                counts
                    .verdict(emitted::EMITTED, seed, &verdict)
                    .into_iter()
                    .for_each(|line| println!("{line}"));
            }
        }
        let mut gone = true;
        for path in &paths {
            if !(path.takes)(&case) || options.only.as_ref().is_some_and(|only| only != path.name) {
                continue;
            }
            let verdict = judge.verdict(path, engines.as_mut());
            if let Some(line) = counts.verdict(path.name, seed, &verdict) {
                println!("{line}");
            }
            if let (true, Verdict::Refused(rule, text)) = (options.verbose, &verdict) {
                println!("{seed}: {}: by the rule \"{rule}\": {text}", path.name);
            }
            if options.shrink && gone && is_fault(&verdict) {
                let mut fails =
                    |case: &Case| still_fails(case, path, engines.as_mut(), &options.plant);
                println!("{}", shrink::shown(&shrink::shrunk(&case, &mut fails)));
                gone = false;
            }
        }
    }
    let report = counts.report();
    match &options.report {
        Some(path) => std::fs::write(path, report.to_string()).map_err(Error::other)?,
        None => println!("{report:#}"),
    }
    Ok(())
}
