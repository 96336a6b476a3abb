//! Three hundred random programs on every path of this process; `programs.py` runs more, and other engines.
#![allow(clippy::print_stdout, reason = "its figures are read with --nocapture")]

use fx_differential::recorded;
use fx_nn::Result;
use fx_programs::calls::Calls;
use fx_programs::generate::Generator;
use fx_programs::judge::{self, Verdict};
use fx_programs::paths;
use fx_programs::plants::Plant;

#[test]
fn programs_give_the_same_on_every_path() -> Result<()> {
    let calls = Calls::parse(&recorded()?)?;
    let mut generator = Generator::new(&calls);
    let (mut run, mut compared, mut refused) = (0, 0, 0);
    let mut wrong = String::new();
    for seed in 0..300 {
        let case = generator.case(seed)?;
        let expected = match judge::expected(&case) {
            Ok(None) => continue,
            Ok(Some(expected)) => Ok(expected),
            Err(error) => Err(error),
        };
        run += 1;
        for path in paths::all() {
            if !path.is_inside() || !(path.takes)(&case) {
                continue;
            }
            match judge::judge(&case, &expected, &path, None, &Plant::default()) {
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
    assert!(run >= 270, "{run} of 300 programs ran");
    Ok(())
}

/// The judge sees what is wrong on purpose.
#[test]
fn planted_faults_are_seen() -> Result<()> {
    let calls = Calls::parse(&recorded()?)?;
    let mut unseen: Vec<&str> = Plant::ALL.to_vec();
    let paths = paths::all();
    let mut generator = Generator::new(&calls);
    for seed in 0..400 {
        let case = generator.case(seed)?;
        let Ok(Some(expected)) = judge::expected(&case) else {
            continue;
        };
        let expected = Ok(expected);
        unseen.retain(|name| {
            let path = match *name {
                "decomposition" => "decomposed",
                "train" => "compiled, train()",
                _ => "traced",
            };
            let path = paths.iter().find(|of| of.name == path && (of.takes)(&case));
            let verdict =
                path.map(|path| judge::judge(&case, &expected, path, None, &Plant((*name).into())));
            !matches!(verdict, Some(Verdict::Wrong(_)))
        });
        if unseen.is_empty() {
            break;
        }
    }
    assert_eq!(unseen, Vec::<&str>::new());
    Ok(())
}
