//! The gradients of attention: the rule beside those of its parts, and compiled code beside the rule.

use fx_nn::cpu::Cpu;
use fx_nn::func::{Transform, vjp};
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::{CallArgs, TracedFn};
use fx_nn::value::IntoValue;

/// What a call has beside its tensors.
#[derive(Clone, Copy, Default)]
struct How {
    is_causal: bool,
    scale: Option<f64>,
    enable_gqa: bool,
    is_masked: bool,
}

fn attention(how: How) -> TracedFn {
    traced!(move |q: &Tensor, k: &Tensor, v: &Tensor, mask: &Tensor| {
        let How {
            is_causal,
            scale,
            enable_gqa,
            is_masked,
        } = how;
        let mask = is_masked.then_some(mask);
        ops::scaled_dot_product_attention(q, k, v, mask, 0.0, is_causal, scale, enable_gqa)
    })
}

/// The same, written out.
fn by_parts(how: How) -> TracedFn {
    traced!(move |q: &Tensor, k: &Tensor, v: &Tensor, mask: &Tensor| {
        let each = |x: &Tensor| match how.enable_gqa {
            true => ops::repeat_interleave(x, 2, Some(-3)),
            false => Ok(x.clone()),
        };
        let scale = how.scale.unwrap_or(1.0 / 8f64.sqrt());
        let mut scores = (q.matmul(&each(k)?.transpose(-1, -2)?)? * scale)?;
        if how.is_causal {
            let seen = Tensor::ones((q.dims()?[2], k.dims()?[2]))?.tril(0)?.ne(0)?;
            scores = ops::r#where(&seen, &scores, f64::NEG_INFINITY)?;
        }
        if how.is_masked {
            scores = (scores + mask)?;
        }
        scores.softmax(-1)?.matmul(&each(v)?)
    })
}

fn double(shape: &[usize]) -> Result<Tensor> {
    Tensor::randn(shape)?.to_dtype(DType::F64)
}

/// Queries, keys, values, and the gradient of the result.
fn operands(queries: usize, keys: usize, kv_heads: usize) -> Result<[Tensor; 4]> {
    Ok([
        double(&[2, 4, queries, 8])?,
        double(&[2, kv_heads, keys, 8])?,
        double(&[2, kv_heads, keys, 6])?,
        double(&[2, 4, queries, 6])?,
    ])
}

fn call(of: &[Tensor; 4], mask: &Tensor) -> CallArgs {
    let [q, k, v, grad] = of;
    CallArgs {
        args: vec![
            q.into_value(),
            k.into_value(),
            v.into_value(),
            mask.into_value(),
            grad.into_value(),
        ],
        kwargs: Vec::new(),
    }
}

fn leaves(value: &Value) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    let mut result = Ok(());
    value.for_each(&mut |value| {
        if let Some(tensor) = value.downcast_ref::<Tensor>() {
            match tensor.to_vec() {
                Ok(numbers) => all.extend(numbers),
                Err(error) => result = Err(error),
            }
        }
    });
    result.map(|()| all)
}

/// What differs most, beside the largest.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let largest = b.iter().fold(1e-300f64, |most, x| most.max(x.abs()));
    let pairs = a.iter().zip(b);
    pairs.fold(0.0f64, |most, (a, b)| most.max((a - b).abs())) / largest
}

fn check(how: How, of: &[Tensor; 4], mask: Option<&Tensor>, wrt: &[usize]) -> Result<()> {
    let how = How {
        is_masked: mask.is_some(),
        ..how
    };
    let unused = double(&[1])?;
    let mask = mask.unwrap_or(&unused);
    let slopes = |f: TracedFn| -> Result<Vec<f64>> {
        let (_, grads): (Value, Value) = vjp(f).wrt(wrt.to_vec()).call(call(of, mask))?;
        leaves(&grads)
    };
    let (found, expected) = (slopes(attention(how))?, slopes(by_parts(how))?);
    assert!(difference(&found, &expected) < 1e-12);
    // Compiled, without a matrix of scores.
    let single = of.each_ref().map(|x| x.to_dtype(DType::F32));
    let [q, k, v, grad] = single;
    let single = [q?, k?, v?, grad?];
    let mask = mask.to_dtype(DType::F32)?;
    let args = || call(&single, &mask);
    let specs: Vec<Spec> = args().args.into_iter().map(Spec::of).collect();
    let gm = vjp(attention(how)).wrt(wrt.to_vec()).graph_module(&specs)?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(args()))?;
    let mut bits: Option<Vec<f64>> = None;
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(Error::other)?;
        let (_, grads): (Value, Value) = pool.install(|| fast.forward(args()))?;
        let found = leaves(&grads)?;
        assert!(
            difference(&found, &expected) < 2e-6,
            "{}",
            difference(&found, &expected)
        );
        assert!(bits.replace(found.clone()).is_none_or(|bits| bits == found));
    }
    if wrt.len() == 3 {
        let report = fast.meta::<LowerReport>();
        let parts = report.iter().flat_map(|report| &report.parts);
        let mut names = Vec::new();
        for part in parts {
            let part = fast.submodule_as::<GraphModule>(&part.path)?;
            let steps = part.compiled().map(|code| code.steps());
            names.extend(steps.into_iter().flatten().map(|step| step.name.clone()));
        }
        assert!(
            names.iter().any(|name| name == "gradients of attention"),
            "{names:?}"
        );
        assert!(!names.iter().any(|name| name == "softmax"), "{names:?}");
    }
    Ok(())
}

const QKV: [usize; 3] = [0, 1, 2];

#[test]
fn they_are_those_of_the_parts() -> Result<()> {
    fx_nn::manual_seed(0);
    let causal = How {
        is_causal: true,
        ..How::default()
    };
    for (queries, keys) in [(5, 5), (1, 9), (70, 70), (150, 33)] {
        let of = operands(queries, keys, 4)?;
        check(How::default(), &of, None, &QKV)?;
        check(causal, &of, None, &QKV)?;
        let scale = Some(0.7);
        check(How { scale, ..causal }, &of, None, &QKV)?;
    }
    Ok(())
}

#[test]
fn heads_share_keys() -> Result<()> {
    fx_nn::manual_seed(1);
    let enable_gqa = true;
    let of = operands(20, 12, 2)?;
    check(
        How {
            enable_gqa,
            ..How::default()
        },
        &of,
        None,
        &QKV,
    )?;
    check(
        How {
            enable_gqa,
            is_causal: true,
            ..How::default()
        },
        &of,
        None,
        &QKV,
    )
}

#[test]
fn a_mask_is_added_and_has_a_gradient() -> Result<()> {
    fx_nn::manual_seed(2);
    let of = operands(7, 9, 4)?;
    for shape in [&[2, 4, 7, 9][..], &[7, 9], &[2, 1, 1, 9]] {
        let mask = double(shape)?;
        check(How::default(), &of, Some(&mask), &QKV)?;
        check(How::default(), &of, Some(&mask), &[0, 1, 2, 3])?;
    }
    Ok(())
}

#[test]
fn a_query_that_sees_no_key_has_no_gradient() -> Result<()> {
    let masked = How {
        is_masked: true,
        ..How::default()
    };
    let of = operands(3, 4, 4)?;
    let seen: Vec<f64> = (0..12).map(|at| f64::from(u8::from(at >= 4))).collect();
    let mask = Tensor::from_vec(seen, (3, 4))?.ne(0)?;
    let (_, grads): (Value, Value) = vjp(attention(masked)).wrt(0).call(call(&of, &mask))?;
    let rows = leaves(&grads)?;
    let rows: Vec<&[f64]> = rows.chunks(8).collect();
    assert!(
        rows.iter()
            .step_by(3)
            .flat_map(|row| row.iter())
            .all(|x| *x == 0.0)
    );
    assert!(
        rows.iter()
            .skip(1)
            .step_by(3)
            .flat_map(|row| row.iter())
            .any(|x| *x != 0.0)
    );
    Ok(())
}
