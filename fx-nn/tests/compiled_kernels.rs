//! Each kind of step of compiled code gives the numbers of its source, at odd sizes, with every level of instructions, and
//! is a step of its own: no call.

use fx_core::trace::CallArgs;
use fx_core::value::Value;
use fx_nn::cpu::{Cpu, Level};
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::{allclose, no_grad};

/// The names of the steps.
fn steps(fast: &GraphModule) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let report = fast.meta::<LowerReport>();
    let report = report.ok_or_else(|| Error::msg("the report stays with the module"))?;
    for part in &report.parts {
        let code = fast.submodule_as::<GraphModule>(&part.path)?;
        let code = code.compiled();
        let code = code.ok_or_else(|| Error::msg("it is compiled"))?;
        names.extend(code.steps().iter().map(|step| step.name.clone()));
        names.extend(code.fallbacks().iter().map(|(why, _)| why.clone()));
    }
    Ok(names)
}

/// Whether a step has a name that starts so.
fn has(names: &[String], start: &str) -> bool {
    names.iter().any(|name| name.starts_with(start))
}

/// Tensors as the arguments of a call.
fn call(inputs: &[Tensor]) -> CallArgs {
    CallArgs {
        args: inputs.iter().map(|x| Value::of(x.clone())).collect(),
        kwargs: Vec::new(),
    }
}

/// Runs a graph and its code at each level: one result, close to the graph's, without calls. Returns the steps.
fn agree(gm: &GraphModule, inputs: &[Tensor]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for level in Level::available() {
        let fast = gm.compile(Compile::new(Cpu::new().level(level)).like(call(inputs)))?;
        // The second run has the memory of the first.
        for _ in 0..2 {
            let (expected, found): (Tensor, Tensor) = no_grad(|| {
                Ok::<_, Error>((gm.forward(call(inputs))?, fast.forward(call(inputs))?))
            })?;
            let close = allclose(&found, &expected, 2e-5, 2e-5)?;
            names = steps(&fast)?;
            assert!(close.close, "{level:?} {close}\n{names:?}");
        }
        let is_called = |name: &String| name.starts_with("call of") || name.contains("instead");
        assert!(!names.iter().any(is_called), "{level:?} {names:?}");
    }
    Ok(names)
}

fn parameters(
    unit: usize,
    sizes: [usize; 2],
    count: usize,
    has_biases: bool,
) -> Result<Vec<Tensor>> {
    let [inputs, hidden] = sizes;
    let (rows, directions) = (unit * hidden, if count > 1 { 2 } else { 1 });
    let mut made = Vec::new();
    for at in 0..count {
        let inputs = if at < directions {
            inputs
        } else {
            directions * hidden
        };
        made.push((Tensor::randn((rows, inputs))? * 0.3)?);
        made.push((Tensor::randn((rows, hidden))? * 0.3)?);
        if has_biases {
            made.push(Tensor::randn(rows)?);
            made.push(Tensor::randn(rows)?);
        }
    }
    Ok(made)
}

/// A network over sequences whose weights it holds.
#[derive(Module)]
struct Sequences {
    weights: Vec<Tensor>,
    unit: usize,
    layers: usize,
    has_biases: bool,
    batch_first: bool,
}

#[trace]
impl Sequences {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::relu(x)?;
        let each = if self.has_biases { 4 } else { 2 };
        let both = self.weights.len() / each / self.layers == 2;
        let (w, b, n, first) = (
            &self.weights,
            self.has_biases,
            self.layers,
            self.batch_first,
        );
        if self.unit == 4 {
            let (y, h, c) = ops::lstm(&x, None, None, w, b, n, 0.5, false, both, first)?;
            return y.sum(..)? + (h.sum(..)? + ops::tanh(&c)?.sum(..)?)?;
        }
        let (y, h) = match self.unit {
            3 => ops::gru(&x, None, w, b, n, 0.5, false, both, first)?,
            1 => ops::rnn_tanh(&x, None, w, b, n, 0.5, false, both, first)?,
            _ => ops::rnn_relu(&x, None, w, b, n, 0.5, false, both, first)?,
        };
        ops::cat(&[ops::flatten(&y, 0, -1)?, ops::flatten(&h, 0, -1)?], 0)
    }
}

#[test]
fn networks_over_sequences() -> Result<()> {
    fx_nn::manual_seed(0);
    for (unit, name) in [(4, "LSTM"), (3, "GRU"), (1, "RNN"), (0, "RNN")] {
        for (layers, directions, has_biases, batch_first) in [
            (1, 1, true, false),
            (2, 2, true, true),
            (1, 2, false, false),
        ] {
            let module = Sequences {
                weights: parameters(unit.max(1), [5, 7], layers * directions, has_biases)?,
                unit,
                layers,
                has_biases,
                batch_first,
            };
            let gm = symbolic_trace(&module)?;
            for shape in [&[3usize, 2, 5][..], &[4, 5]] {
                let names = agree(&gm, &[Tensor::randn(shape.to_vec())?])?;
                assert!(has(&names, &format!("{name} 5 to 7")), "{names:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn weights_of_a_run() -> Result<()> {
    fx_nn::manual_seed(1);
    let gm = symbolic_trace(traced!(|x: Tensor, h: Tensor, w: Tensor, u: Tensor| {
        let (y, last) = ops::gru(
            &ops::relu(&x)?,
            Some(&h),
            &[w, u],
            false,
            1,
            0.0,
            false,
            false,
            false,
        )?;
        ops::cat(&[y, last], 0)? * 2.0
    }))?;
    let inputs = [
        Tensor::randn((3, 2, 5))?,
        Tensor::randn((1, 2, 4))?,
        Tensor::randn((12, 5))?,
        Tensor::randn((12, 4))?,
    ];
    let names = agree(&gm, &inputs)?;
    assert!(
        has(&names, "recurrent network by weights of the run"),
        "{names:?}"
    );
    let gm = symbolic_trace(traced!(|x: Tensor, w: Tensor, b: Tensor| {
        ops::conv2d(&ops::relu(&x)?, &w, Some(&b), (2, 1), (1, 0), (1, 2), 3)
    }))?;
    let inputs = [
        Tensor::randn((2, 9, 7, 8))?,
        Tensor::randn((6, 3, 3, 2))?,
        Tensor::randn(6)?,
    ];
    let names = agree(&gm, &inputs)?;
    assert!(
        has(&names, "convolution by a weight of the run"),
        "{names:?}"
    );
    let gm = symbolic_trace(traced!(|x: Tensor, w: Tensor| {
        ops::conv1d(&ops::relu(&x)?, &w, None, 2, 1, 1, 1)
    }))?;
    let names = agree(
        &gm,
        &[Tensor::randn((2, 1, 40))?, Tensor::randn((33, 1, 5))?],
    )?;
    assert!(
        has(&names, "convolution by a weight of the run"),
        "{names:?}"
    );
    Ok(())
}

#[test]
fn reductions_and_places() -> Result<()> {
    fx_nn::manual_seed(2);
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let x = ops::relu(x)?;
        let sums = (x.sum([1, -1])? * x.amax(1)?.amin(-1)?)?;
        let rest = (x.mean_keepdim([0, 2])? + x.sum_keepdim(1)?)?;
        (rest.sum(..)? + sums)? * x.amax(..)?
    }))?;
    for shape in [[2, 3, 5], [4, 1, 33], [3, 70, 129]] {
        agree(&gm, &[Tensor::randn(shape)?])?;
    }
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let x = ops::relu(x)?;
        let pick = |at: Vec<i64>| -> Result<Tensor> {
            let count = at.len();
            ops::index_select(&x, -1, &Tensor::from_vec(at, count)?)
        };
        let all = [pick(vec![1, 3, 5])?, pick(vec![4, 0, 0])?, pick(vec![2])?];
        let joined = ops::cat(&all, -1)?;
        ops::pad(&joined, (1, 2, 0, 3), "constant", -1.5)? * 2.0
    }))?;
    let names = agree(&gm, &[Tensor::randn((2, 3, 6))?])?;
    assert!(has(&names, "places") && has(&names, "padding"), "{names:?}");
    let error = gm
        .compile(Compile::new(Cpu::new()).like(&Tensor::zeros((2, 3, 6))?))?
        .forward::<Tensor>(&Tensor::zeros((2, 3, 5))?);
    assert!(error.is_err(), "an index is behind the end");
    let gm = symbolic_trace(traced!(|x: Tensor, mask: Tensor| {
        let mask = ops::to_dtype(&mask, DType::F32)?;
        ops::to_dtype(&(ops::relu(&x)? * mask)?, DType::F32)
    }))?;
    let mask = Tensor::from_vec(vec![1i64, 0, 7], 3)?;
    let names = agree(&gm, &[Tensor::randn((2, 3))?, mask])?;
    assert!(has(&names, "floats of other elements"), "{names:?}");
    Ok(())
}

/// Convolutions of images whose channels are last, with factors and shifts behind each.
#[derive(Module)]
struct Last {
    first: nn::Conv2d,
    second: nn::Conv2d,
    factor: Tensor,
    shift: Tensor,
}

#[trace]
impl Last {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let of = |conv: &nn::Conv2d, x: &Tensor| -> Result<Tensor> {
            let y = conv.forward(&ops::permute(x, [0, 3, 1, 2])?)?;
            let y = (ops::permute(&y, [0, 2, 3, 1])? - &self.shift)?;
            ((y * &self.factor)? + &self.shift)? / 2.0
        };
        let y = ops::relu(&of(&self.first, x)?)?;
        let z = ops::relu(&(of(&self.second, &y)? + &y)?)?;
        ops::cat(&[(&z * &self.factor)?, (1.0 - &y)?], -1)
    }
}

#[test]
fn factors_and_shifts_become_weights() -> Result<()> {
    fx_nn::manual_seed(3);
    let mut module = Last {
        first: nn::Conv2d::new(5, 19, 3)?.padding(1),
        second: nn::Conv2d::new(19, 19, 3)?.padding(1),
        factor: Tensor::randn(19)?,
        shift: Tensor::randn((1, 1, 19))?,
    };
    nn::set_requires_grad(&mut module, false)?;
    let gm = symbolic_trace(&module)?;
    let names = agree(&gm, &[Tensor::randn((2, 7, 9, 5))?])?;
    let count = |start: &str| names.iter().filter(|name| name.starts_with(start)).count();
    assert_eq!(count("convolution 3x3, Relu"), 2, "{names:?}");
    assert_eq!(count("pointwise"), 2, "{names:?}");
    let layer = nn::Linear::new(6, 5)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = layer.forward(x)?;
        (1.0 - (y / 4.0)?)? * 3.0
    }))?;
    let names = agree(&gm, &[Tensor::randn((4, 6))?])?;
    assert_eq!(names.len(), 1, "{names:?}");
    Ok(())
}

#[test]
fn steps_of_images() -> Result<()> {
    fx_nn::manual_seed(4);
    let (first, second) = (
        nn::Conv2d::new(3, 20, 3)?.padding(1),
        nn::Conv2d::new(20, 4, 3)?.padding(1),
    );
    let scale = Tensor::randn((20, 1, 1))?;
    let (gated, other, line) = (first.clone(), first.clone(), first.clone());
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = first.forward(x)?;
        // Two readers, so that nothing becomes part of the convolution.
        let gate = ops::sigmoid(&ops::adaptive_avg_pool2d(&y, (1, 1))?)?;
        let z = ((ops::tanh(&y)? * &scale)? + ops::clamp(&y, -0.5, 0.7)?)?;
        let z = (ops::tanh(&(z * &gate)?)? + &y)?;
        let rows = Tensor::from_vec(vec![0i64, 0, 1, 1, 2, 2], 6)?;
        let wide = ops::index_select(&ops::index_select(&z, 2, &rows)?, 3, &rows)?;
        second.forward(&ops::pad(&wide, (0, 1, 2, 0), "constant", 0.25)?)
    }))?;
    let names = agree(&gm, &[Tensor::randn((2, 3, 5, 6))?])?;
    let count = |start: &str| names.iter().filter(|name| name.starts_with(start)).count();
    assert_eq!((count("places"), count("padding")), (2, 1), "{names:?}");
    // A gate that is written out, around numbers of one pixel for each channel.
    let third = nn::Conv2d::new(20, 20, 1)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = gated.forward(x)?;
        let z = ((&y * ops::clamp(&(&y + 3.0)?, 0.0, 6.0)?)? / 6.0)?;
        let gate = third.forward(&ops::adaptive_avg_pool2d(&z, (1, 1))?)?;
        let gate = ops::clamp(&((gate * 0.2)? + 0.5)?, 0.0, 1.0)?;
        ops::relu(&((z * gate)? - 0.25)?)
    }))?;
    let names = agree(&gm, &[Tensor::randn((2, 3, 5, 6))?])?;
    assert!(has(&names, "convolution 3x3, Hardswish"), "{names:?}");
    // However it is scaled, and only with its numbers.
    for (add, low, high, by, is_gate) in [
        (3.0, 0.0, 6.0, 6.0, true),
        (3.0, 0.0, 6.0, 5.0, false),
        (2.0, 0.0, 6.0, 6.0, false),
        (3.0, -0.5, 6.0, 6.0, false),
        (3.0, 0.0, 7.0, 6.0, false),
    ] {
        let other = other.clone();
        let gm = symbolic_trace(traced!(move |x: &Tensor| {
            let y = other.forward(x)?;
            (&y * ops::clamp(&(&y + add)?, low, high)?)? / by
        }))?;
        let names = agree(&gm, &[Tensor::randn((2, 3, 5, 6))?])?;
        let found = has(&names, "convolution 3x3, Hardswish");
        assert_eq!(found, is_gate, "{add} {low} {high} {by}: {names:?}");
    }
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = line.forward(x)?;
        &y * ops::clamp(&((&y / 6.0)? + 0.5)?, 0.0, 1.0)?
    }))?;
    let names = agree(&gm, &[Tensor::randn((2, 3, 5, 6))?])?;
    assert!(has(&names, "convolution 3x3, Hardswish"), "{names:?}");
    // A column is computed as a row.
    let tall = nn::Conv2d::new(5, 33, (5, 1))?.stride((2, 1));
    let gm = symbolic_trace(traced!(|x: &Tensor| tall.forward(x)))?;
    for height in [5, 6, 40, 333] {
        agree(&gm, &[Tensor::randn((2, 5, height, 1))?])?;
    }
    Ok(())
}
