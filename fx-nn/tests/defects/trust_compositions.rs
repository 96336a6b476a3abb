//! What writers of formats share: every composition gives the numbers of its function, on zeros of both signs,
//! infinities, NaN, large and tiny numbers, in every element type; every kind of argument is a value or an error.

use std::sync::Arc;

use fx_nn::ir::{Argument, Function, FunctionTable};
use fx_nn::lowering::{Composed, Val, Values, val_of};
use fx_nn::passes::Decompositions;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::CallArgs;
use fx_nn::value::{Device, Dim};
use fx_nn::{Error, GraphModule, Result};

const DTYPES: [DType; 8] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::U8,
    DType::Bool,
];

/// Numbers of a type that formulas go wrong at.
fn numbers(dtype: DType) -> Vec<f64> {
    let large = match dtype {
        DType::F64 => 3e300,
        DType::F16 => 6e4,
        _ => 3e30,
    };
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    match dtype {
        DType::Bool => vec![0.0, 1.0],
        DType::U8 => vec![0.0, 1.0, 7.0, 255.0],
        dtype if !dtype.is_floating_point() => vec![0.0, 1.0, -3.0, 7.0, 100_000.0],
        _ => vec![
            0.0, -0.0, 1.0, -1.5, 1e-5, 1.00001, large, -large, inf, -inf, nan,
        ],
    }
}

fn tensor(all: &[f64], dtype: DType) -> Result<Tensor> {
    Tensor::from_vec(all.to_vec(), all.len())?.to_dtype(dtype)
}

/// Every pair of the numbers of a type.
fn pairs(dtype: DType) -> Result<Vec<Value>> {
    let all = numbers(dtype);
    let firsts: Vec<f64> = all.iter().flat_map(|a| all.iter().map(|_| *a)).collect();
    let seconds: Vec<f64> = all.iter().flat_map(|_| all.iter().copied()).collect();
    Ok(vec![
        Value::object(tensor(&firsts, dtype)?),
        Value::object(tensor(&seconds, dtype)?),
    ])
}

/// Calls: a graph of one call, and its arguments.
type Calls = Vec<(GraphModule, Vec<Value>)>;

/// A call for every type, of as many tensors as the graph takes.
fn of_every_type(gm: &GraphModule, calls: &mut Calls) -> Result<()> {
    for dtype in DTYPES {
        let mut args = pairs(dtype)?;
        args.truncate(gm.graph().placeholders().count());
        calls.push((gm.clone(), args));
    }
    Ok(())
}

/// Finite numbers of a shape, other ones for each seed.
fn varied(shape: &[usize], seed: usize) -> Result<Value> {
    let count: usize = shape.iter().product();
    let all = (0..count).map(|at| ((at * 7 + seed * 5) % 11) as f64 / 4.0 - 1.0);
    let x = Tensor::from_vec(all.collect::<Vec<f64>>(), shape.to_vec())?;
    Ok(Value::object(x.to_dtype(DType::F32)?))
}

/// Calls of a function that a composition writes; none of one without a sample.
fn calls_of(name: &str) -> Result<Calls> {
    let mut calls = Calls::new();
    let every = &mut calls;
    macro_rules! of_every_type {
        ($($root:expr),+ $(,)?) => {{ $(of_every_type(&symbolic_trace($root)?, every)?;)+ }};
    }
    macro_rules! of_shapes {
        ($root:expr, $($shape:expr),+) => {{
            let shapes: &[&[usize]] = &[$(&$shape),+];
            let args = shapes.iter().enumerate().map(|(at, shape)| varied(shape, at));
            every.push((symbolic_trace($root)?, args.collect::<Result<_>>()?));
        }};
    }
    match name {
        "binary_cross_entropy" => {
            let x = Tensor::from_vec(vec![0f64, 1.0, 0.5, 0.25], 4)?;
            let target = Tensor::from_vec(vec![0f64, 1.0, 1.0, 0.5], 4)?;
            let losses = traced!(|x: &Tensor, target: &Tensor| {
                ops::binary_cross_entropy(x, target, None, "none")
            });
            every.push((
                symbolic_trace(losses)?,
                vec![Value::object(x), Value::object(target)],
            ));
        }
        "hypot" => of_every_type!(traced!(|x: &Tensor, y: &Tensor| ops::hypot(x, y))),
        "copysign" => of_every_type!(
            traced!(|x: &Tensor, y: &Tensor| ops::copysign(x, y)),
            traced!(|x: &Tensor| ops::copysign(x, -0.0)),
            traced!(|x: &Tensor| ops::copysign(x, 2)),
        ),
        "detach" => of_every_type!(traced!(|x: &Tensor| ops::detach(x))),
        "quantize_affine" => of_every_type!(
            traced!(|x: &Tensor| ops::quantize_affine(x, 0.1, 100, 0, 255, DType::U8, None)),
            traced!(|x: &Tensor| ops::quantize_affine(x, 0.25, 0, -8, 7, DType::I8, None)),
        ),
        "fake_quantize_affine" => of_every_type!(traced!(|x: &Tensor| ops::fake_quantize_affine(
            x, 0.1, 3, -8, 7, None
        )),),
        "dequantize_affine" => of_every_type!(traced!(|x: &Tensor| ops::dequantize_affine(
            &x.to_dtype(DType::I64)?,
            0.3,
            -2,
            None
        )),),
        "signbit" => of_every_type!(traced!(|x: &Tensor| ops::signbit(x))),
        "xlogy" => of_every_type!(
            traced!(|x: &Tensor, y: &Tensor| ops::xlogy(x, y)),
            traced!(|x: &Tensor| ops::xlogy(x, 2.5)),
            traced!(|x: &Tensor| ops::xlogy(x, f64::NAN)),
            traced!(|x: &Tensor| ops::xlogy(x, 0)),
        ),
        "xlog1py" => of_every_type!(
            traced!(|x: &Tensor, y: &Tensor| ops::special::xlog1py(x, y)),
            traced!(|x: &Tensor| ops::special::xlog1py(x, 2.5)),
            traced!(|x: &Tensor| ops::special::xlog1py(x, f64::NAN)),
            traced!(|x: &Tensor| ops::special::xlog1py(x, -1)),
        ),
        "entr" => of_every_type!(traced!(|x: &Tensor| ops::special::entr(x))),
        "logaddexp" => of_every_type!(traced!(|x: &Tensor, y: &Tensor| ops::logaddexp(x, y))),
        "logaddexp2" => of_every_type!(traced!(|x: &Tensor, y: &Tensor| ops::logaddexp2(x, y))),
        "nan_to_num" => of_every_type!(
            traced!(|x: &Tensor| ops::nan_to_num(x, None, None, None)),
            traced!(|x: &Tensor| ops::nan_to_num(x, Some(f64::INFINITY), Some(2.5), Some(-7.0))),
        ),
        "isclose" => of_every_type!(
            traced!(|x: &Tensor, y: &Tensor| ops::isclose(x, y, 1e-5, 1e-8, false)),
            traced!(|x: &Tensor, y: &Tensor| ops::isclose(x, y, 1e-5, 1e-8, true)),
            traced!(|x: &Tensor, y: &Tensor| ops::isclose(x, y, 0.5, 2.0, true)),
            traced!(|x: &Tensor, y: &Tensor| ops::isclose(x, y, 0.0, 0.0, false)),
        ),
        "allclose" => of_every_type!(
            traced!(|x: &Tensor, y: &Tensor| ops::allclose(x, y, 1e-5, 1e-8, false)),
            traced!(|x: &Tensor| ops::allclose(x, x, 1e-5, 1e-8, false)),
            traced!(|x: &Tensor| ops::allclose(x, x, 1e-5, 1e-8, true)),
        ),
        "var" => {
            of_every_type!(
                traced!(|x: &Tensor| ops::var(x, 0, true, false)),
                traced!(|x: &Tensor| ops::var(x, Dims::All, false, true)),
            );
            of_shapes!(traced!(|x: &Tensor| ops::var(x, 1, true, true)), [3, 5]);
            of_shapes!(traced!(|x: &Tensor| ops::var(x, 1, true, false)), [3, 1]);
            of_shapes!(
                traced!(|x: &Tensor| ops::var(x, 0, false, false)),
                [4096, 2]
            );
        }
        "inner" => {
            of_shapes!(
                traced!(|x: &Tensor, y: &Tensor| ops::inner(x, y)),
                [2, 3],
                [4, 3]
            );
            of_shapes!(traced!(|x: &Tensor, y: &Tensor| ops::inner(x, y)), [3], [3]);
        }
        "diff" => {
            of_shapes!(traced!(|x: &Tensor| ops::diff(x, 2, 1, None, None)), [3, 5]);
            of_shapes!(
                traced!(|x: &Tensor, y: &Tensor| ops::diff(x, 1, -1, Some(y), Some(y))),
                [3, 5],
                [3, 2]
            );
            of_every_type!(traced!(|x: &Tensor| ops::diff(x, 1, 0, None, None)));
        }
        "gru_cell" | "lstm_cell" | "rnn_tanh_cell" | "rnn_relu_cell" => {
            // As many gates as the cell has.
            macro_rules! cell {
                ($gates:literal, |$x:ident, $h:ident, $a:ident, $b:ident, $c:ident| $call:expr) => {{
                    let given = |shapes: &[&[usize]]| -> Result<Vec<Value>> {
                        shapes
                            .iter()
                            .enumerate()
                            .map(|(at, shape)| varied(shape, at))
                            .collect()
                    };
                    let gates = 4 * $gates;
                    let gm =
                        symbolic_trace(traced!(|$x: &Tensor,
                                                h: &Tensor,
                                                $a: &Tensor,
                                                $b: &Tensor| {
                            let ($h, $c) = (Some(h), None::<&Tensor>);
                            $call
                        }))?;
                    every.push((gm, given(&[&[2, 3], &[2, 4], &[gates, 3], &[gates, 4]])?));
                    for x in [&[2, 3][..], &[3]] {
                        let gm = symbolic_trace(traced!(
                            |$x: &Tensor, $a: &Tensor, $b: &Tensor, c: &Tensor| {
                                let ($h, $c) = (None::<&Tensor>, Some(c));
                                $call
                            }
                        ))?;
                        every.push((gm, given(&[x, &[gates, 3], &[gates, 4], &[gates]])?));
                    }
                }};
            }
            match name {
                "gru_cell" => cell!(3, |x, h, a, b, c| ops::gru_cell(x, h, a, b, c, c)),
                "lstm_cell" => cell!(
                    4,
                    |x, h, a, b, c| Ok(ops::lstm_cell(x, h, h, a, b, c, c)?.1)
                ),
                "rnn_tanh_cell" => cell!(1, |x, h, a, b, c| ops::rnn_tanh_cell(x, h, a, b, c, c)),
                _ => cell!(1, |x, h, a, b, c| ops::rnn_relu_cell(x, h, a, b, c, c)),
            }
        }
        "vstack" | "dstack" => {
            macro_rules! stack {
                ($stack:ident) => {
                    for shape in [&[][..], &[3], &[2, 3], &[2, 3, 4]] {
                        let gm =
                            symbolic_trace(traced!(|x: &Tensor, y: &Tensor| ops::$stack(&[x, y])))?;
                        every.push((gm, vec![varied(shape, 0)?, varied(shape, 1)?]));
                    }
                };
            }
            match name {
                "vstack" => stack!(vstack),
                _ => stack!(dstack),
            }
        }
        "isin" => of_every_type!(
            traced!(|x: &Tensor, y: &Tensor| ops::isin(x, y, false, false)),
            traced!(|x: &Tensor, y: &Tensor| ops::isin(x, y, false, true)),
            traced!(|x: &Tensor| ops::isin(x, &x.i(..0)?, false, false)),
        ),
        "bucketize" => {
            let bounds = tensor(
                &[f64::NEG_INFINITY, -1.5, 0.0, 1.0, f64::INFINITY],
                DType::F64,
            )?;
            for dtype in DTYPES.into_iter().filter(|dtype| dtype.is_floating_point()) {
                for (right, narrow) in [(false, false), (true, true)] {
                    let gm = symbolic_trace(traced!(|x: &Tensor, b: &Tensor| ops::bucketize(
                        x, b, narrow, right
                    )))?;
                    let x = Value::object(tensor(&numbers(dtype), dtype)?);
                    every.push((gm, vec![x, Value::object(bounds.to_dtype(dtype)?)]));
                }
            }
        }
        "bilinear" => {
            of_shapes!(
                traced!(
                    |x: &Tensor, y: &Tensor, w: &Tensor, b: &Tensor| ops::bilinear(
                        x,
                        y,
                        w,
                        Some(b)
                    )
                ),
                [5, 2],
                [5, 3],
                [4, 2, 3],
                [4]
            );
        }
        _ => {}
    }
    Ok(calls)
}

/// The element type, the sizes and the elements of a result.
fn elements(value: &Value) -> Result<(Option<DType>, Vec<usize>, Vec<f64>)> {
    match value.downcast_ref::<Tensor>() {
        Some(x) => Ok((Some(x.dtype()?), x.dims()?.to_vec(), x.to_vec()?)),
        None => match value {
            Value::Bool(truth) => Ok((None, Vec::new(), vec![f64::from(u8::from(*truth))])),
            other => Err(Error::msg(format_args!(
                "{} is no result here",
                other.describe()
            ))),
        },
    }
}

/// What differs between a function and its composition.
fn difference(
    function: Function,
    composed: Composed,
    gm: &GraphModule,
    args: &[Value],
) -> Result<Option<String>> {
    let call = || CallArgs {
        args: args.to_vec(),
        kwargs: Vec::new(),
    };
    // What the function refuses, a composition is not asked for.
    let Ok(own) = gm.forward::<Value>(call()) else {
        return Ok(None);
    };
    let mut other = gm.clone();
    let specs: Vec<Spec> = args.iter().map(|arg| Spec::of(arg.clone())).collect();
    other.infer_shapes(&specs)?;
    let changed = other
        .apply(&Decompositions::new().rule(function, composed.0))?
        .changed;
    if !changed {
        return Ok(Some("the composition was not used".to_string()));
    }
    let other = other.forward::<Value>(call())?;
    let ((dtype, shape, own), (other_dtype, other_shape, other)) =
        (elements(&own)?, elements(&other)?);
    if (dtype, &shape) != (other_dtype, &other_shape) {
        return Ok(Some(format!(
            "{dtype:?} {shape:?} for {other_dtype:?} {other_shape:?}"
        )));
    }
    let step = match dtype {
        Some(DType::F64) => f64::EPSILON,
        Some(DType::F16) => 2f64.powi(-10),
        Some(DType::BF16) => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    };
    for (at, (a, b)) in own.iter().zip(&other).enumerate() {
        let same =
            (a == b && a.is_sign_negative() == b.is_sign_negative()) || (a.is_nan() && b.is_nan());
        // The zero of a function that is no zero of another has no sign to keep.
        let close =
            a == b && function.name() != "copysign" || (a - b).abs() <= 4.0 * step * a.abs();
        if !(same || close) {
            return Ok(Some(format!(
                "{dtype:?}: element {at} is {b}, and {a} of the function"
            )));
        }
    }
    Ok(None)
}

#[test]
fn defect_t3_e2_every_composition_gives_the_numbers_of_its_function() -> Result<()> {
    let table = FunctionTable::<Composed>::registered()?;
    let mut wrong = Vec::new();
    for (function, composed) in table.iter() {
        let calls = calls_of(function.name())?;
        if calls.is_empty() {
            wrong.push(format!("`{}` has no sample here", function.path()));
        }
        for (gm, args) in calls {
            let shown = args
                .iter()
                .map(Value::describe)
                .collect::<Vec<_>>()
                .join(", ");
            match difference(function, *composed, &gm, &args) {
                Ok(None) => {}
                Ok(Some(text)) => wrong.push(format!("{}({shown}): {text}", function.name())),
                Err(error) => wrong.push(format!("{}({shown}): {error}", function.name())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn defect_t3_e1_every_kind_of_argument_is_a_value_or_an_error() -> Result<()> {
    let of = |argument: &Argument| val_of(argument, &Values::default());
    assert_eq!(of(&Argument::Ellipsis)?, Val::Ellipsis);
    assert_eq!(of(&Argument::None)?, Val::None);
    assert_eq!(
        of(&Argument::Device(Device::Cpu))?,
        Val::Device(Device::Cpu)
    );
    let slice = Argument::Slice(Arc::new([Argument::Int(1), Argument::None, Argument::None]));
    assert_eq!(
        of(&slice)?,
        Val::Slice(Box::new([Val::Dim(Dim::from(1)), Val::None, Val::None]))
    );
    let index = Argument::Tuple(Arc::new(vec![Argument::Ellipsis, Argument::Int(-1)]));
    assert_eq!(
        of(&index)?,
        Val::List(vec![Val::Ellipsis, Val::Dim(Dim::from(-1))])
    );
    let range = Argument::Range(Arc::new([
        Argument::Int(0),
        Argument::Int(3),
        Argument::Int(1),
    ]));
    let error = of(&range)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(error.contains("pass its numbers as a list"), "{error}");
    Ok(())
}
