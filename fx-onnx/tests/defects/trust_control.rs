//! Branches and loops in files, each by the number of its defect: none may come back.

use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::value::IntoValue;
use fx_nn::{control, operator};
use fx_onnx::{Export, Load, OnnxExt};

use super::programs::{Program, Random, State, numbers, specs};

/// What a file takes and gives.
type Five = (Tensor, Tensor, Tensor, Tensor, Tensor);

fn of(number: f64) -> Result<Tensor> {
    Tensor::from_vec(vec![number], ())
}

fn elements((h, k, a, n, b): &Five) -> Result<Vec<f64>> {
    let all = [h, k, a, n, b].into_iter().map(Tensor::to_vec);
    Ok(all.collect::<Result<Vec<_>>>()?.concat())
}

/// Functions of a tensor and a whole number, each with what it is about.
fn counted() -> Result<Vec<(&'static str, GraphModule)>> {
    #[derive(Module)]
    struct Counted {
        which: usize,
    }
    #[trace(control_flow)]
    impl Counted {
        fn forward(&self, x: &Tensor, n: Int) -> Result<Tensor> {
            let mut h = x.clone();
            match self.which {
                0 => {
                    for i in 0..n {
                        if i == 0 {
                            h = (&h + 100.0)?;
                        }
                    }
                }
                1 => {
                    if n == 0 {
                        h = (&h + 100.0)?;
                    }
                }
                2 => {
                    let mut k = (n % 4)?;
                    while k != 0 {
                        k = (k - 1)?;
                        h = (&h * 2.0)?;
                    }
                }
                3 => {
                    // Two numbers that a loop carries are two.
                    let (mut up, mut down) = (Int::from(0), n);
                    while up < 3 {
                        if up == down {
                            h = (&h + 10.0)?;
                        }
                        if down < 0 {
                            h = (&h - 1.0)?;
                        }
                        up = (up + 1)?;
                        down = (down - 1)?;
                    }
                    h = (&h + down)?;
                }
                4 => {
                    // What a loop leaves is not what it began with.
                    let mut k = n;
                    while k > 2 {
                        k = (k - 2)?;
                    }
                    let before = k;
                    while k < 0 {
                        k = (k + 2)?;
                    }
                    if before == k {
                        h = (&h + 50.0)?;
                    }
                }
                5 => {
                    // A condition that is a tensor, and a count that ends the loop.
                    let mut turns = Int::from(0);
                    while h.sum(..)?.lt(40.0)? {
                        h = (&h + 1.0)?;
                        turns = (turns + 1)?;
                        if turns > n {
                            break;
                        }
                    }
                }
                6 => {
                    // A condition of one element that has a dim.
                    let mut turns = Int::from(0);
                    while h.i(..1)?.lt(9.0)? {
                        h = (&h + 1.0)?;
                        turns = (turns + 1)?;
                        if turns == n {
                            break;
                        }
                    }
                }
                _ => {
                    for i in (0 - n)?..=n {
                        if i < 0 {
                            h = (&h - i)?;
                            continue;
                        }
                        h = (&h + x.i(0)?)?;
                        if i >= 2 {
                            break;
                        }
                    }
                }
            }
            Ok(h)
        }
    }
    let names = [
        "a counter at 0",
        "an input at 0",
        "a number that a loop carries",
        "two numbers",
        "a number before and after a loop",
        "a tensor's condition and a count",
        "a condition of one element",
        "negative counters",
    ];
    let traced =
        |(which, name): (usize, &'static str)| Ok((name, symbolic_trace(&Counted { which })?));
    names.into_iter().enumerate().map(traced).collect()
}

#[test]
fn defect_t3_e3_whole_numbers_keep_their_ranges_in_a_file() -> Result<()> {
    let x = Tensor::from_vec(vec![1f32, 2.0, 3.0], 3)?;
    for (name, gm) in counted()? {
        for n in [Spec::int("n"), Spec::int("n").constrained("n >= -8")] {
            let export = Export::specs([spec![3; F32], n]);
            let (bytes, _) = gm.to_onnx_bytes(&export)?;
            let back = Load::new().from_bytes(bytes)?.module;
            for n in [0i64, 1, -3, 5] {
                let eager: Tensor = gm.forward((&x, n))?;
                let given = Tensor::from_vec(vec![n], ())?;
                let found: Tensor = back.forward((&x, &given))?;
                assert_eq!(eager.to_vec()?, found.to_vec()?, "{name}, n = {n}");
            }
        }
        // What a constraint says is known.
        let n = Spec::int("n").constrained("n >= 0");
        let (bytes, _) = gm.to_onnx_bytes(&Export::specs([spec![3; F32], n]))?;
        let back = Load::new().from_bytes(bytes)?.module;
        for n in [0i64, 1, 5] {
            let eager: Tensor = gm.forward((&x, n))?;
            let found: Tensor = back.forward((&x, &Tensor::from_vec(vec![n], ())?))?;
            assert_eq!(
                eager.to_vec()?,
                found.to_vec()?,
                "{name}, n = {n}, at least 0"
            );
        }
    }
    Ok(())
}

#[test]
fn defect_t3_e13_tensors_and_numbers_have_a_shape_in_common() -> Result<()> {
    // One way gives a tensor without dims, the other a number.
    let joined = traced!(|x: &Tensor, n: Int, a: Float| {
        let up: Bool = operator::gt.call_as((n, 0))?;
        let whole: Value = control::cond(
            up,
            || Ok(x.argmax(0, false)?.into_value()),
            || Ok((n - 1)?.into_value()),
        )?;
        let number: Value = control::cond(
            up,
            || Ok(x.sum(..)?.into_value()),
            || Ok((a * 2.0)?.into_value()),
        )?;
        let truth: Value = control::cond(
            up,
            || Ok(x.sum(..)?.gt(3.0)?.into_value()),
            || Ok(operator::lt.call_as::<Bool>((a, 1.0))?.into_value()),
        )?;
        Ok((whole, number, truth))
    });
    let gm = symbolic_trace(joined)?;
    let export = Export::specs([spec![3; F32], Spec::int("n"), Spec::float()]);
    let (bytes, _) = gm.to_onnx_bytes(&export)?;
    let back = Load::new().from_bytes(bytes)?.module;
    let x = Tensor::from_vec(vec![1f32, 4.0, 3.0], 3)?;
    for (n, wanted) in [(2i64, [1.0, 8.0, 1.0]), (-3, [-4.0, 1.0, 1.0])] {
        let given = (&x, &Tensor::from_vec(vec![n], ())?, &of(0.5)?);
        let (whole, number, truth): (Tensor, Tensor, Tensor) = back.forward(given)?;
        let found = [
            whole.item()?,
            number.item()?,
            truth.to_dtype(DType::F64)?.item()?,
        ];
        assert_eq!(found, wanted);
        assert_eq!(whole.dtype()?, DType::I64);
    }
    Ok(())
}

fn wrong(program: &Program, seed: u64, what: impl std::fmt::Display) -> Error {
    Error::msg(format_args!("seed {seed}: {what}\n{:#?}", program.steps))
}

#[test]
fn defect_t3_e3_random_programs_are_the_same_in_a_file() -> Result<()> {
    let count = std::env::var("FX_PROGRAMS").ok();
    let count: u64 = count
        .map_or(Ok(60), |count| count.parse())
        .map_err(Error::other)?;
    let first = std::env::var("FX_FIRST").ok();
    let first: u64 = first
        .map_or(Ok(0), |count| count.parse())
        .map_err(Error::other)?;
    let folder = std::env::var_os("FX_FILES");
    let mut problems = Vec::new();
    for seed in first..first + count {
        let mut random = Random(seed);
        let program = random.program();
        let gm = symbolic_trace(&program)?;
        let mut one = || -> Result<()> {
            let (bytes, _) = gm.to_onnx_bytes(&Export::specs(specs()))?;
            let back = Load::new().from_bytes(bytes.clone())?.module;
            let mut lines = String::new();
            for n in [0, 1, -3, 5] {
                let state = random.state(n)?;
                let given = numbers(&state)?;
                let (h, k, a, n, b) = state;
                let eager = program.forward(h.clone(), k.clone(), a, n, b)?;
                let eager = numbers(&eager)?;
                lines += &format!("{given:?} {eager:?}\n");
                let traced: State = gm.forward((h.clone(), k.clone(), a, n, b))?;
                let read = back.forward::<Five>((
                    h,
                    k,
                    of(given[4])?,
                    of(given[5])?.to_dtype(DType::I64)?,
                    of(given[6])?.to_dtype(DType::Bool)?,
                ))?;
                let ways = [
                    ("traced", numbers(&traced)?),
                    ("read back", elements(&read)?),
                ];
                for (way, found) in ways {
                    let pairs = eager.iter().zip(&found);
                    if pairs
                        .clone()
                        .any(|(a, b)| (a - b).abs() > 1e-4 * a.abs().max(1.0))
                    {
                        return Err(Error::msg(format_args!(
                            "{way} {given:?}: {found:?}, eager {eager:?}"
                        )));
                    }
                }
            }
            if let Some(folder) = &folder {
                let folder = std::path::Path::new(folder);
                std::fs::write(folder.join(format!("{seed}.onnx")), &bytes)
                    .map_err(Error::other)?;
                std::fs::write(folder.join(format!("{seed}.txt")), lines).map_err(Error::other)?;
            }
            Ok(())
        };
        if let Err(error) = one() {
            problems.push(wrong(&program, seed, error).to_string());
        }
    }
    let count = problems.len();
    problems.truncate(3);
    assert!(
        problems.is_empty(),
        "{count} programs\n{}",
        problems.join("\n")
    );
    Ok(())
}
