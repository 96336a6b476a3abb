//! Three hundred random programs on every path of this process; `programs.py` runs more, and other engines.
#![allow(clippy::print_stdout, reason = "its figures are read with --nocapture")]

use fx_differential::recorded;
use fx_nn::Result;
use fx_programs::calls::Calls;
use fx_programs::generate::Generator;
use fx_programs::judge::{Judge, Verdict};
use fx_programs::paths;
use fx_programs::plants::Plant;

/// How many programs are judged; noise moves the results of some too far, where they are rounded.
const COUNT: u64 = 160;

/// Judges so many programs.
fn the_same_on_every_path(first: u64) -> Result<()> {
    let calls = Calls::parse(&recorded()?)?;
    let mut generator = Generator::new(&calls);
    let paths = paths::all();
    let (mut run, mut compared, mut refused) = (0, 0, 0);
    let mut wrong = String::new();
    for seed in first..first + COUNT {
        let case = generator.case(seed)?;
        let plant = Plant::default();
        let Some(judge) = Judge::new(&case, &plant) else {
            continue;
        };
        run += 1;
        for path in &paths {
            if !path.is_inside() || !(path.takes)(&case) {
                continue;
            }
            match judge.verdict(path, None) {
                Verdict::Same(values) => compared += values,
                Verdict::RefusedByAll | Verdict::Unread => {}
                Verdict::Refused(..) => refused += 1,
                Verdict::Wrong(text) | Verdict::Panic(text) => {
                    wrong += &format!("{seed}: {}: {text}\n", path.name);
                }
            }
        }
    }
    println!("run {run} compared {compared} refused {refused}");
    assert_eq!(wrong, "");
    assert!(run >= 135, "{run} of {COUNT} programs ran");
    Ok(())
}

// Two tests run beside each other.
#[test]
fn programs_give_the_same_on_every_path() -> Result<()> {
    the_same_on_every_path(0)
}

#[test]
fn more_programs_give_the_same_on_every_path() -> Result<()> {
    the_same_on_every_path(COUNT)
}

/// The judge sees what is wrong on purpose.
#[test]
fn planted_faults_are_seen() -> Result<()> {
    let calls = Calls::parse(&recorded()?)?;
    let mut unseen: Vec<Plant> = Plant::ALL.map(|name| Plant(name.into())).into();
    let paths = paths::all();
    let none = Plant::default();
    let mut generator = Generator::new(&calls);
    // A tie at which a slope is another one comes at 565.
    for seed in 560..960 {
        let case = generator.case(seed)?;
        let Some(judge) = Judge::new(&case, &none).filter(|judge| !judge.is_refused()) else {
            continue;
        };
        unseen.retain(|plant| {
            let name = match &*plant.0 {
                "decomposition" => "decomposed",
                "subgradient" => "decomposed, gradients",
                "onnx" => "onnx read back",
                "train" => "compiled, train()",
                _ => "traced",
            };
            let path = paths
                .iter()
                .find(|path| path.name == name && (path.takes)(&case));
            let verdict = path.map(|path| judge.planted(plant).verdict(path, None));
            !matches!(verdict, Some(Verdict::Wrong(_)))
        });
        if unseen.is_empty() {
            break;
        }
    }
    assert_eq!(unseen, Vec::new());
    Ok(())
}
