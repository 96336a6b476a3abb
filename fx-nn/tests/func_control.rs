//! Transforms of functions with branches, loops and scans, beside central differences and a call for each example.

use fx_nn::IndexMap;
use fx_nn::control::{self, While};
use fx_nn::func::{Transform, grad, hessian, jvp, parameters, vmap};
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::trace::{CallArgs, TracedFn};

fn numbers(count: usize, shape: impl Into<fx_nn::tensor::Shape>) -> Result<Tensor> {
    let data = (0..count).map(|i| ((i * 7 % 11) as f64 - 4.8) / 6.0);
    Tensor::from_vec(data.collect::<Vec<_>>(), shape)
}

fn args_of(args: &[Tensor]) -> CallArgs {
    CallArgs {
        args: args.iter().map(|x| Value::object(x.clone())).collect(),
        kwargs: Vec::new(),
    }
}

fn flat(value: &Value) -> Vec<f64> {
    let mut found = Vec::new();
    value.for_each(&mut |value| {
        let tensor = value.downcast_ref::<Tensor>();
        found.extend(tensor.iter().flat_map(|x| x.to_vec().unwrap_or_default()));
    });
    found
}

fn near(found: &[f64], expected: &[f64], by: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= by * expected.abs().max(1.0),
            "{found} is not {expected}"
        );
    }
}

/// What a graph of numbers changes by, for each element of an argument.
fn differences(gm: &GraphModule, args: &[Tensor], at: usize) -> Result<Vec<f64>> {
    const STEP: f64 = 1e-6;
    let count = args[at].to_vec()?.len();
    let mut found = Vec::new();
    let run = |element: usize, by: f64| -> Result<Vec<f64>> {
        let mut args = args.to_vec();
        let mut x = args[at].to_vec()?;
        x[element] += by;
        args[at] = Tensor::from_vec(x, args[at].dims()?.to_vec())?;
        Ok(flat(&gm.forward::<Value>(args_of(&args))?))
    };
    for element in 0..count {
        let (more, less) = (run(element, STEP)?, run(element, -STEP)?);
        let pairs = more.iter().zip(&less);
        found.extend(pairs.map(|(more, less)| (more - less) / (2.0 * STEP)));
    }
    Ok(found)
}

/// The gradient of each argument, and the products with tangents of ones, beside differences.
fn check(f: &TracedFn, args: &[Tensor]) -> Result<()> {
    let gm = symbolic_trace(f.clone())?;
    let mut along = 0.0;
    for at in 0..args.len() {
        let expected = differences(&gm, args, at)?;
        along += expected.iter().sum::<f64>();
        let found: Value = grad(f.clone()).wrt(at).call(args_of(args))?;
        near(&flat(&found), &expected, 1e-7);
    }
    let ones = args
        .iter()
        .map(|x| ops::ones_like(x, None).map(Value::object));
    let mut given = args_of(args);
    given.args.push(match args.len() {
        1 => ones.collect::<Result<Vec<_>>>()?.swap_remove(0),
        _ => Value::Tuple(ones.collect::<Result<_>>()?),
    });
    let found: Value = jvp(f.clone()).call(given)?;
    near(&flat(&found)[1..], &[along], 1e-6);
    Ok(())
}

/// A function of many examples along the first dim of one argument, beside a call for each.
fn check_examples(f: &TracedFn, args: &[Tensor], at: usize) -> Result<()> {
    let mut axes = vec![None; args.len()];
    axes[at] = Some(0);
    let all: Value = vmap(f.clone()).in_axes(axes.clone()).call(args_of(args))?;
    let grads: Value = vmap(&grad(f.clone()).wrt(at))
        .in_axes(axes)
        .call(args_of(args))?;
    let gm = symbolic_trace(f.clone())?;
    let (mut expected, mut expected_grads) = (Vec::new(), Vec::new());
    for example in 0..args[at].dims()?[0] {
        let mut args = args.to_vec();
        args[at] = args[at].i(example as i64)?;
        expected.extend(flat(&gm.forward::<Value>(args_of(&args))?));
        let grad: Value = grad(f.clone()).wrt(at).call(args_of(&args))?;
        expected_grads.extend(flat(&grad));
    }
    near(&flat(&all), &expected, 1e-12);
    near(&flat(&grads), &expected_grads, 1e-12);
    Ok(())
}

fn branch() -> TracedFn {
    traced!(|x: &Tensor, w: &Tensor| {
        let (y, z): (Tensor, Tensor) = control::cond(
            x.sum(..)?.gt(0.0)?,
            || Ok(((x * w)?.sin()?, x.square()?)),
            || Ok((w.exp()?, (x.square()? * 3.0)?)),
        )?;
        (y * z)?.sum(..)
    })
}

fn recurrent() -> TracedFn {
    traced!(|xs: &Tensor, h: &Tensor, m: &Tensor| {
        let (last, all): (Tensor, Tensor) =
            control::scan(h.clone(), xs.clone(), |h: Tensor, x: Tensor| {
                let h = (h.unsqueeze(0)?.matmul(m)?.squeeze(0)? + x)?.tanh()?;
                Ok((h.clone(), (h.square()? * 2.0)?))
            })?;
        last.sum(..)? + all.sin()?.sum(..)?
    })
}

/// A branch inside of a scan.
fn gated() -> TracedFn {
    traced!(|xs: &Tensor, h: &Tensor| {
        let (last, _): (Tensor, Tensor) =
            control::scan(h.clone(), xs.clone(), |h: Tensor, x: Tensor| {
                let h: Tensor = control::cond(
                    x.sum(..)?.gt(0.0)?,
                    || (&h * &x)?.sin(),
                    || (&h * 0.5)? + x.square()?,
                )?;
                Ok((h.clone(), h))
            })?;
        last.square()?.sum(..)
    })
}

#[test]
fn gradients_run_through_both_sides_of_a_branch() -> Result<()> {
    let (x, w) = (numbers(4, 4)?, (numbers(4, 4)? + 0.3)?);
    check(&branch(), &[x.clone(), w.clone()])?;
    check(&branch(), &[x.abs()?, w])
}

#[test]
fn gradients_run_through_scans_of_any_length() -> Result<()> {
    for length in [1, 5] {
        let args = [
            numbers(4 * length, (length, 4))?,
            numbers(4, 4)?,
            numbers(16, (4, 4))?,
        ];
        check(&recurrent(), &args)?;
        check(&gated(), &args[..2])?;
    }
    Ok(())
}

#[test]
fn a_hessian_runs_through_a_scan_and_a_branch() -> Result<()> {
    let args = [numbers(12, (3, 4))?, numbers(4, 4)?, numbers(16, (4, 4))?];
    for (f, args) in [(recurrent(), &args[..]), (gated(), &args[..2])] {
        let found: Value = hessian(f.clone()).wrt(1).call(args_of(args))?;
        let of = grad(f.clone()).wrt(1);
        let specs: Vec<_> = args
            .iter()
            .map(|x| Ok(fx_nn::shapes::Spec::tensor(x.dims()?.to_vec(), DType::F64)))
            .collect::<Result<_>>()?;
        let expected = differences(&of.graph_module(&specs)?, args, 1)?;
        near(&flat(&found), &expected, 1e-7);
    }
    Ok(())
}

fn growth() -> TracedFn {
    traced!(|x: &Tensor, w: &Tensor| {
        let (x, _) = control::while_loop(
            (x.clone(), ops::zeros(1, Some(DType::F64))?),
            |(x, _)| x.abs()?.sum(..)?.lt(20.0),
            |(x, n)| Ok((((x * 1.5)? + (w.sin()? * 0.1)?)?, (n + 1.0)?)),
        )?;
        x.square()?.sum(..)
    })
}

#[test]
fn gradients_run_through_a_loop_with_a_limit() -> Result<()> {
    let args = [numbers(4, 4)?, (numbers(4, 4)? + 0.3)?];
    let mut gm = symbolic_trace(growth())?;
    gm.submodule_as_mut::<While>("while_loop_0")?
        .set_limit(Some(12));
    for at in [0, 1] {
        let found: Value = grad(&gm).wrt(at).call(args_of(&args))?;
        near(&flat(&found), &differences(&gm, &args, at)?, 1e-7);
    }
    // A limit that is too low is an error, and no wrong number.
    gm.submodule_as_mut::<While>("while_loop_0")?
        .set_limit(Some(2));
    let error = grad(&gm).call::<Value>(args_of(&args)).unwrap_err();
    assert!(error.to_string().contains("its limit"), "{error}");
    Ok(())
}

#[test]
fn a_loop_without_a_limit_has_no_gradient() -> Result<()> {
    let error = grad(growth())
        .call::<Value>((&numbers(4, 4)?, &numbers(4, 4)?))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("While::set_limit") && text.contains("func_control.rs"),
        "{text}"
    );
    Ok(())
}

#[test]
fn what_draws_inside_of_a_branch_has_no_gradient() -> Result<()> {
    let f = traced!(|x: &Tensor| {
        let y: Tensor = control::cond(
            x.sum(..)?.gt(0.0)?,
            || ops::dropout(x, 0.5, true),
            || Ok(x.clone()),
        )?;
        y.sum(..)
    });
    let error = grad(f).call::<Value>(&numbers(4, 4)?).unwrap_err();
    assert!(error.to_string().contains("draw before it"), "{error}");
    Ok(())
}

#[test]
fn many_examples_go_through_branches_loops_and_scans() -> Result<()> {
    let many = numbers(12, (3, 4))?;
    let w = (numbers(4, 4)? + 0.3)?;
    check_examples(&branch(), &[many.clone(), w.clone()], 0)?;
    check_examples(&branch(), &[w.clone(), many.clone()], 1)?;
    let m = numbers(16, (4, 4))?;
    check_examples(
        &recurrent(),
        &[numbers(20, (5, 4))?, many.clone(), m.clone()],
        1,
    )?;
    check_examples(&recurrent(), &[numbers(24, (2, 3, 4))?, w.clone(), m], 0)?;
    check_examples(&gated(), &[numbers(20, (5, 4))?, many.clone()], 1)?;
    check_examples(&gated(), &[numbers(40, (2, 5, 4))?, w], 0)?;
    let steps = traced!(|x: &Tensor, n: &Tensor| {
        let (x, _) = control::while_loop(
            (x.clone(), n.clone()),
            |(_, n)| n.gt(0.0),
            |(x, n)| Ok(((x.sin()? + 0.5)?, (n - 1.0)?)),
        )?;
        x.sum(..)
    });
    let n = Tensor::from_vec(vec![3.0], 1)?;
    let all: Tensor = vmap(steps.clone())
        .in_axes([Some(0), None])
        .call((&many, &n))?;
    let gm = symbolic_trace(steps)?;
    for (example, found) in all.to_vec()?.into_iter().enumerate() {
        let expected: Tensor = gm.forward((&many.i(example as i64)?, &n))?;
        near(&[found], &expected.to_vec()?, 1e-12);
    }
    Ok(())
}

#[test]
fn a_branch_that_each_example_decides_is_a_line_of_the_report() -> Result<()> {
    let many = vmap(branch()).in_axes([Some(0), None]);
    let report = Trace::new(&many)
        .inputs([spec![3, 4; F64], spec![4; F64]])
        .report()?;
    let text = report.to_string();
    assert!(
        text.contains("both sides of `cond_0` run: it is decided for each example"),
        "{text}"
    );
    Ok(())
}

#[test]
fn a_loop_that_each_example_ends_is_refused() -> Result<()> {
    let error = vmap(growth())
        .in_axes([Some(0), None])
        .call::<Value>((&numbers(12, (3, 4))?, &numbers(4, 4)?))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("whether while_loop_0 goes on differs"),
        "{text}"
    );
    Ok(())
}

/// Two layers, by a condition.
#[derive(Module)]
struct Either {
    a: nn::Linear,
    b: nn::Linear,
}

#[trace]
impl Either {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = control::cond(
            x.sum(..)?.gt(0.0)?,
            || self.a.forward(x),
            || self.b.forward(&self.a.forward(x)?)?.tanh(),
        )?;
        y.square()?.sum(..)
    }
}

#[test]
fn parameters_that_a_branch_reads_have_gradients() -> Result<()> {
    let model = Either {
        a: nn::Linear::new(4, 4)?,
        b: nn::Linear::new(4, 4)?,
    };
    let gm = symbolic_trace(&model)?;
    for x in [numbers(4, (1, 4))?, (numbers(4, (1, 4))? + 2.0)?] {
        let x = x.to_dtype(DType::F32)?;
        let tape = model.forward(&x)?.backward()?;
        let of = |found: Value, named: IndexMap<String, Value>| -> Result<()> {
            let Value::Dict(grads) = &found else {
                return Err(Error::msg("gradients have paths"));
            };
            assert_eq!(grads.len(), 4);
            for (path, parameter) in named {
                let parameter = Tensor::from_value(parameter)?;
                let expected = match tape.get(&parameter)? {
                    Some(grad) => grad.to_vec()?,
                    None => vec![0.0; parameter.to_vec()?.len()],
                };
                let grad = grads.get(&*path).ok_or_else(|| {
                    Error::msg(format_args!("{path} is not among {:?}", grads.keys()))
                })?;
                near(&flat(grad), &expected, 1e-5);
            }
            Ok(())
        };
        let everything = || parameters("**");
        of(
            grad(&model).wrt(everything()).call(&x)?,
            model.named_parameters(),
        )?;
        of(grad(&gm).wrt(everything()).call(&x)?, gm.named_parameters())?;
    }
    Ok(())
}
