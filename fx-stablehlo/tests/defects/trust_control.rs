//! Branches and loops in programs, each by the number of its defect: none may come back.

use fx_nn::prelude::*;
use fx_stablehlo::{Export, StableHloExt};

use crate::defects::programs::{Program, Random, numbers, specs};
use crate::evaluate::{Array, evaluate};
use crate::parse::{Type, parse};

fn array(element: &str, shape: &[i64], numbers: &[f64]) -> Array {
    let ty = Type {
        element: element.to_string(),
        shape: shape.to_vec(),
    };
    let numbers = numbers.to_vec();
    Array { ty, numbers }
}

#[test]
fn defect_t3_e3_random_programs_are_the_same_in_stablehlo() -> Result<()> {
    let count = std::env::var("FX_PROGRAMS").ok();
    let count: u64 = count
        .map_or(Ok(60), |count| count.parse())
        .map_err(Error::other)?;
    let mut problems = Vec::new();
    for seed in 0..count {
        let mut random = Random(seed);
        let program: Program = random.program();
        let mut one = || -> Result<()> {
            let gm = symbolic_trace(&program)?;
            let text = gm.to_stablehlo_text(&Export::specs(specs()))?;
            let parsed =
                parse(&text).map_err(|error| Error::msg(format_args!("{error}\n{text}")))?;
            for n in [0, 1, -3, 5] {
                let state = random.state(n)?;
                let given = numbers(&state)?;
                let (h, k, a, n, b) = state;
                let eager = numbers(&program.forward(h, k, a, n, b)?)?;
                let arguments = vec![
                    array("f32", &[3], &given[..3]),
                    array("i64", &[], &given[3..4]),
                    array("f64", &[], &given[4..5]),
                    array("i64", &[], &given[5..6]),
                    array("i1", &[], &given[6..]),
                ];
                let found = evaluate(&parsed, arguments);
                let found = found.map_err(|error| Error::msg(format_args!("{error}\n{text}")))?;
                let found: Vec<f64> = found.into_iter().flat_map(|of| of.numbers).collect();
                let mut pairs = eager.iter().zip(&found);
                if found.len() != eager.len()
                    || pairs.any(|(a, b)| (a - b).abs() > 1e-4 * a.abs().max(1.0))
                {
                    return Err(Error::msg(format_args!(
                        "{given:?}: {found:?}, eager {eager:?}\n{text}"
                    )));
                }
            }
            Ok(())
        };
        if let Err(error) = one() {
            problems.push(format!("seed {seed}: {error}\n{:#?}", program.steps));
        }
    }
    let count = problems.len();
    problems.truncate(2);
    assert!(
        problems.is_empty(),
        "{count} programs\n{}",
        problems.join("\n")
    );
    Ok(())
}
