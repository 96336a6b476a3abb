//! More transforms beside torch.func: structures, second derivatives, linear algebra, places, corners, and whole models.

use std::sync::Arc;

use fx_nn::func::{
    Randomness, Transform, functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state,
    stop_gradient, value_and_grad, vjp, vmap,
};
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, FromValue, TracedFn};
use fx_nn::value::IntoValue;
use fx_nn::{Error, IndexMap, Result};

use super::func::flat;

/// The tensors of what a transform gives for arguments, which may be structures.
fn given(of: &impl Transform, args: Vec<Value>) -> Result<Vec<Tensor>> {
    let kwargs = Vec::new();
    Ok(flat(&of.call::<Value>(CallArgs { args, kwargs })?))
}

fn call(of: &impl Transform, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    given(of, inputs.iter().map(IntoValue::into_value).collect())
}

/// Tensors by their names.
fn named(names: &[String], tensors: &[Tensor]) -> Value {
    let pairs = names.iter().zip(tensors);
    let pairs = pairs.map(|(name, x)| (Arc::from(name.as_str()), x.into_value()));
    Value::Dict(Box::new(pairs.collect()))
}

type State = IndexMap<String, Tensor>;

/// What of each case: `names` are those of the first inputs.
pub(super) fn run(name: &str, x: &[Tensor], names: &[String]) -> Result<Vec<Tensor>> {
    match name {
        "aux_and_structures" => {
            let p = tree!({"w": (&x[0]), "layers": [(&x[1]), (&x[2])]});
            let of = value_and_grad(traced!(structured)).wrt([0, 1]).has_aux();
            given(&of, vec![p, (&x[3]).into_value()])
        }
        "vjp_of_structures" => {
            let start = tree!(((&x[2]), {"s": (&x[3]), "list": [(&x[4]), (&x[5])]}));
            let args = vec![(&x[0]).into_value(), (&x[1]).into_value(), start];
            given(&vjp(traced!(outputs)), args)
        }
        "jvp_of_structures" => {
            let tangents = tree!(((&x[2]), (&x[3])));
            let args = vec![(&x[0]).into_value(), (&x[1]).into_value(), tangents];
            given(&jvp(traced!(outputs)), args)
        }
        "jacrev_of_structures" => call(&jacrev(traced!(outputs)).wrt([0, 1]), x),
        "jacfwd_of_structures" => call(&jacfwd(traced!(outputs)).wrt([1, 0]), x),
        "hessian_of_several" => {
            let blocks = traced!(|a: &Tensor, b: &Tensor, c: &Tensor| {
                ((a.relu()? * a)?.matmul(&b.sin()?)?.matmul(c))?.sum(..)
            });
            call(&hessian(blocks).wrt([0, 1, 2]), x)
        }
        "hessian_of_vector" => {
            let f = traced!(|x: &Tensor| x.cumsum(0)?.sin()? * ops::prod(x, None, false)?);
            call(&hessian(f), x)
        }
        "third_of_vector" => {
            let f = traced!(|x: &Tensor| (ops::outer(x, x)?.sum(0)? * x)?.tanh());
            call(&jacrev(&jacfwd(&jacrev(f))), x)
        }
        "laplacian_loss" => call(&value_and_grad(traced!(residual)).wrt([0, 1, 2]), x),
        "gradient_of_gradient_steps" => call(&grad(traced!(of_tasks)), x),
        "gauss_newton" => {
            let of = traced!(|w: &Tensor, b: &Tensor, v: &Tensor, x: &Tensor| {
                (x.matmul(w)? + b)?.tanh()?.matmul(v)
            });
            let product =
                traced!(
                    move |w: &Tensor, b: &Tensor, v: &Tensor, x: &Tensor, dw: &Tensor| {
                        let forward = jvp(of.clone()).wrt(0);
                        let (out, change): (Tensor, Tensor) = forward.call((w, b, v, x, dw))?;
                        let back = vjp(of.clone()).wrt(0);
                        let (_, pulled): (Tensor, Tensor) = back.call((w, b, v, x, &change))?;
                        Ok((out, pulled))
                    }
                );
            // Traced as one: of a batch of one.
            let first = x.iter().map(|x| x.unsqueeze(0));
            let found = call(&vmap(product), &first.collect::<Result<Vec<_>>>()?)?;
            found.iter().map(|y| y.squeeze(0)).collect()
        }
        "rollout" => {
            let both = traced!(|state: &Tensor, k: &Tensor| {
                let forward = jacfwd(traced!(rollout)).wrt([0, 1]);
                let (of_state, of_k): (Tensor, Tensor) = forward.call((state, k))?;
                let back: Tensor = jacrev(traced!(rollout)).call((state, k))?;
                Ok((of_state, of_k, back))
            });
            call(&vmap(both).out_axes(1), x)
        }
        "cholesky" => {
            let both = traced!(|l: &Tensor, mean: &Tensor, x: &Tensor| {
                let first = grad(traced!(log_density)).wrt([0, 1]);
                let (of_l, of_mean): (Tensor, Tensor) = first.call((l, mean, x))?;
                let second: Tensor = hessian(traced!(log_density)).wrt(1).call((l, mean, x))?;
                Ok((of_l, of_mean, second))
            });
            call(&vmap(both).in_axes([None, None, Some(0)]), x)
        }
        "eigh" => {
            let spectral = traced!(|a: &Tensor| {
                let whole = (a + a.transpose(-2, -1)?)?;
                let (values, vectors) = ops::linalg::eigh(&whole, "L")?;
                let scaled = (&vectors * values.sin()?)?;
                Ok((values, scaled.matmul(&vectors.transpose(-2, -1)?)?))
            });
            call(&vmap(&jacrev(spectral)), x)
        }
        "qr" => call(&jvp(traced!(|a: &Tensor| ops::linalg::qr(a, "reduced"))), x),
        "svd" => {
            let both = traced!(|a: &Tensor| {
                let sum = traced!(|a: &Tensor| ops::linalg::svdvals(a)?.log()?.sum(..));
                let all = traced!(|a: &Tensor| ops::linalg::svdvals(a));
                let of_sum: Tensor = grad(sum).call(a)?;
                Ok((of_sum, jacfwd(all).call::<Tensor>(a)?))
            });
            call(&vmap(both), x)
        }
        "inverses" => {
            let both = traced!(|a: &Tensor, b: &Tensor| {
                let solve = traced!(|a: &Tensor, b: &Tensor| ops::linalg::solve(a, b, true));
                let of = traced!(|a: &Tensor| {
                    ops::linalg::det(a)? + ops::trace(&ops::linalg::inv(a)?)?
                });
                let (of_a, of_b): (Tensor, Tensor) = jacrev(solve).wrt([0, 1]).call((a, b))?;
                Ok((of_a, of_b, grad(of).call::<Tensor>(a)?))
            });
            call(&vmap(both).in_axes([Some(0), None]), x)
        }
        "fft" => {
            let spectrum = traced!(|x: &Tensor| ops::fft::rfft(x, None, 0, None));
            let cut = traced!(|x: &Tensor| {
                let half = ops::fft::rfft(x, None, -1, None)?.i(1..)?;
                ops::fft::irfft(&half, Some(5.into()), -1, None)
            });
            let many = vmap(&jacrev(spectrum)).in_axes(2).out_axes(-1);
            let mut found = call(&many, &x[..1])?;
            found.extend(call(&hessian(traced!(power)), &x[1..])?);
            found.extend(call(&jacfwd(cut), &[x[1].i(0)?])?);
            Ok(found)
        }
        "scans" => {
            let scans = traced!(|x: &Tensor| {
                let (largest, _) = ops::cummax(x, 1)?;
                Ok((
                    x.cumprod(0)?.sum(0)?,
                    ops::logcumsumexp(x, 1)?,
                    largest,
                    x.cumsum(-1)?.flip(0)?,
                ))
            });
            call(&vmap(&jacrev(scans)), x)
        }
        "orders" => {
            let both = traced!(|x: &Tensor, weights: &Tensor| {
                let first = traced!(|x: &Tensor, w: &Tensor| Ok(orders(x, w)?.0));
                let (out, places) = orders(x, weights)?;
                let (of_x, of_w): (Tensor, Tensor) =
                    jacrev(first).wrt([0, 1]).call((x, weights))?;
                Ok((out, of_x, of_w, places))
            });
            call(&vmap(both).in_axes([Some(0), None]), x)
        }
        "corners" => {
            let mut found = call(&grad(traced!(corners)).wrt([0, 1]), x)?;
            let rows = [x[0].unsqueeze(1)?, x[1].unsqueeze(1)?];
            found.extend(call(&vmap(&grad(traced!(corners)).wrt([1, 0])), &rows)?);
            let ones = ops::ones_like(&x[0], None)?;
            let tangents = tree!((ones, (&x[0])));
            let args = vec![(&x[0]).into_value(), (&x[1]).into_value(), tangents];
            found.extend(given(&jvp(traced!(corners)), args)?);
            Ok(found)
        }
        "norms_at_zero" => {
            let cubed = traced!(|x: &Tensor| ops::norm(x, 2.0, None, false)? + x.pow(3)?.sum(..)?);
            let sizes = traced!(|x: &Tensor| ops::vector_norm(x, 1.0, None, false));
            let product = || traced!(|x: &Tensor| ops::prod(x, None, false));
            let mut found = call(&grad(cubed), &x[..1])?;
            found.extend(call(&vmap(&grad(sizes)), &x[1..])?);
            let one = Tensor::from_vec(vec![0.0f64, 2.0, 3.0], 3)?;
            found.extend(call(&grad(product()), &[one])?);
            found.extend(call(&hessian(product()), &x[..1])?);
            Ok(found)
        }
        "places" => {
            let of = jacrev(traced!(places)).wrt([0, 1, 3]);
            call(&vmap(&of).in_axes([Some(0), None, Some(0), Some(0)]), x)
        }
        "pieces" => call(
            &vmap(&jacrev(traced!(pieces)).wrt([0, 1])).in_axes([0, -1]),
            x,
        ),
        "axes" => {
            let nest = traced!(|a: &Tensor, b: &Tensor, c: &Tensor| {
                Ok(((a * b)?.sum(0)?, ops::outer(a, c)?, c.sin()?))
            });
            let inner = vmap(nest)
                .in_axes([Some(1), None, Some(0)])
                .out_axes([0, -1, 1]);
            let outer = vmap(&inner)
                .in_axes([Some(0), None, None])
                .out_axes([-1, 1, 0]);
            call(&outer, x)
        }
        "randomness" => {
            let noisy = || {
                traced!(|w: &Tensor, x: &Tensor| {
                    let noise = ops::rand(3, Some(DType::F64))?;
                    let kept = ((((w * x)? + &noise)? - &noise)?).square()?.sum(..)?;
                    let all = ops::dropout(x, 0.0, true)?.sum(..)?;
                    (kept + all)? + ops::dropout(w, 1.0, true)?.sum(..)?
                })
            };
            let of = |how| {
                let of = vmap(&grad(noisy()).wrt([0, 1])).in_axes([None, Some(0)]);
                call(&of.randomness(how), x)
            };
            let mut found = of(Randomness::Same)?;
            found.extend(of(Randomness::Different)?);
            Ok(found)
        }
        "gradient_of_vmap" => {
            let sum = traced!(|w: &Tensor, x: &Tensor| {
                let one = traced!(|w: &Tensor, x: &Tensor| {
                    (w * x)?.softmax(0)?.log()?.square()?.sum(..)
                });
                let each: Tensor = vmap(one).in_axes([None, Some(0)]).call((w, x))?;
                each.sum(..)
            });
            call(&grad(sum).wrt([0, 1]), x)
        }
        "stopped" => {
            let mut found = call(&grad(traced!(straight_through)).wrt([0, 1]), x)?;
            found.extend(call(&hessian(traced!(straight_through)), x)?);
            Ok(found)
        }
        other => modules(other, x, names),
    }
}

/// The cases of whole modules.
fn modules(name: &str, x: &[Tensor], names: &[String]) -> Result<Vec<Tensor>> {
    let state = named(names, x);
    let rest = x.get(names.len()..).unwrap_or_default();
    let mut args = vec![state];
    args.extend(rest.iter().map(IntoValue::into_value));
    match name {
        "per_sample_words" => {
            let [words, width] = *x[0].dims()? else {
                return Err(Error::msg("a table has two dims"));
            };
            let model = Words {
                emb: nn::Embedding::new(words, width)?,
                norm: nn::LayerNorm::new(width)?,
                fc: nn::Linear::new(width, 3)?,
            };
            let model = std::rc::Rc::new(model);
            let loss = traced!(move |p: State, x: &Tensor, t: &Tensor| {
                let scores: Tensor = functional_call(&*model, &p, x)?;
                let (scores, t) = (scores.unsqueeze(0)?, t.unsqueeze(0)?);
                ops::cross_entropy(&scores, &t, None, -100, "mean", 0.1)
            });
            let of = value_and_grad(loss);
            given(&vmap(&of).in_axes([None, Some(0), Some(0)]), args)
        }
        "per_sample_transformer" => {
            let width = rest[0].dims()?[2];
            let model = nn::TransformerEncoderLayer::new(width, width / 2)?
                .dim_feedforward(6)?
                .dropout(0.0)?
                .activation("gelu")
                .batch_first(true);
            let model = std::rc::Rc::new(model);
            let loss = traced!(move |p: State, x: &Tensor| {
                let y: Tensor = functional_call(&*model, &p, x.unsqueeze(0)?)?;
                y.pow(3)?.sum(..)
            });
            let of = grad(loss).wrt([0, 1]);
            given(&vmap(&of).in_axes([None, Some(0)]), args)
        }
        "per_sample_recurrent" => {
            let inputs = rest[0].dims()?[2];
            let layers = names.len() / 8;
            let model = nn::LSTM::new(inputs, x[1].dims()?[1])?
                .num_layers(layers)?
                .bidirectional(true)?
                .batch_first(true);
            let model = std::rc::Rc::new(model);
            let loss = traced!(move |p: State, x: &Tensor| {
                let (y, (_, c)): (Tensor, (Tensor, Tensor)) =
                    functional_call(&*model, &p, x.unsqueeze(0)?)?;
                y.square()?.sum(..)? + c.sin()?.sum(..)?
            });
            let of = grad(loss).wrt([0, 1]);
            given(&vmap(&of).in_axes([None, Some(0)]), args)
        }
        "per_sample_batch_norm" => {
            let (channels, features) = (x[0].dims()?[0], x[4].dims()?);
            let mut model = nn::Sequential::new()
                .push(nn::Conv2d::new(2, channels, 3)?.padding(1))
                .push(nn::BatchNorm2d::new(channels)?)
                .push(nn::ReLU::new())
                .push(nn::AvgPool2d::new(2))
                .push(nn::Flatten::new())
                .push(nn::Linear::new(features[1], features[0])?);
            fx_nn::module::ComponentExt::eval(&mut model);
            let model = std::rc::Rc::new(model);
            let split = names.len() - 2;
            let loss = traced!(move |p: State, b: State, x: &Tensor, t: &Tensor| {
                let both = p.iter().chain(&b);
                let scores: Tensor = functional_call(&*model, both, x.unsqueeze(0)?)?;
                ops::cross_entropy(&scores, &t.unsqueeze(0)?, None, -100, "mean", 0.0)
            });
            let mut args = vec![
                named(&names[..split], x),
                named(&names[split..], &x[split..]),
            ];
            args.extend(rest.iter().map(IntoValue::into_value));
            let of = value_and_grad(loss);
            given(&vmap(&of).in_axes([None, None, Some(0), Some(0)]), args)
        }
        "ensemble" => {
            let count = x[0].dims()?[0];
            let models = (0..count)
                .map(|at| {
                    let own = x[..4].iter().map(|all| all.i(at));
                    super::func::model(&own.collect::<Result<Vec<_>>>()?)
                })
                .collect::<Result<Vec<_>>>()?;
            let (stacked, _) = stack_module_state(&models.iter().collect::<Vec<_>>())?;
            let paths: Vec<String> = stacked.keys().cloned().collect();
            if paths != names {
                return Err(Error::msg(format_args!("{paths:?} are not {names:?}")));
            }
            let all: Vec<Tensor> = stacked.values().cloned().collect();
            args[0] = named(&paths, &all);
            let base = std::rc::Rc::new(models[0].clone());
            let loss = traced!(move |p: State, x: &Tensor, y: &Tensor| {
                let out: Tensor = functional_call(&*base, &p, x)?;
                (out - y)?.square()?.mean(..)
            });
            let of = value_and_grad(loss);
            given(&vmap(&of).in_axes([Some(0), None, None]), args)
        }
        other => Err(Error::msg(format_args!("no function is called `{other}`"))),
    }
}

/// A loss with what else is of interest.
#[trace]
fn structured(p: IndexMap<String, Value>, x: &Tensor) -> Result<(Tensor, Value)> {
    let w = Tensor::from_value(p["w"].clone())?;
    let [bias, scale] = <[Tensor; 2]>::from_value(p["layers"].clone())?;
    let h = (x.matmul(&w)? + bias)?.tanh()?;
    let loss = (&h * scale)?.square()?.sum(..)?;
    let (total, double) = (h.sum(..)?, (&w * 2.0)?);
    let aux = tree!({"h": h, "parts": [total, (double, x)]});
    Ok((loss, aux))
}

/// A tensor, and a dict with a list.
#[trace]
fn outputs(a: &Tensor, b: &Tensor) -> Result<(Tensor, Value)> {
    let scaled = (a * b.sum(..)?)?;
    let product = a.sin()?.matmul(b)?.sum(..)?;
    let (raised, squares) = (b.exp()?, (a * a)?.sum(0)?);
    Ok((scaled, tree!({"s": product, "list": [raised, squares]})))
}

#[trace]
fn field(w: &Tensor, b: &Tensor, v: &Tensor, x: &Tensor) -> Result<Tensor> {
    (x.matmul(w)? + b)?.tanh()?.matmul(v)?.tanh()?.sum(..)
}

/// How far a network is from a solution of a differential equation.
#[trace]
fn residual(w: &Tensor, b: &Tensor, v: &Tensor, points: &Tensor) -> Result<Tensor> {
    let laplacian = traced!(|w: &Tensor, b: &Tensor, v: &Tensor, x: &Tensor| {
        let second: Tensor = hessian(traced!(field)).wrt(3).call((w, b, v, x))?;
        ops::trace(&second)
    });
    let axes = [None, None, None, Some(0)];
    let left: Tensor = vmap(laplacian).in_axes(axes).call((w, b, v, points))?;
    let right: Tensor = vmap(traced!(field)).in_axes(axes).call((w, b, v, points))?;
    (left + right)?.square()?.mean(..)
}

/// The loss of one task after two steps of gradient descent for it.
fn adapted() -> TracedFn {
    traced!(
        |w: &Tensor, x: &Tensor, y: &Tensor, x2: &Tensor, y2: &Tensor| {
            let loss = traced!(|w: &Tensor, x: &Tensor, y: &Tensor| {
                (x.matmul(w)?.tanh()? - y)?.square()?.mean(..)
            });
            let mut w = w.clone();
            for _ in 0..2 {
                let slope: Tensor = grad(loss.clone()).call((&w, x, y))?;
                w = (w - (slope * 0.3)?)?;
            }
            (x2.matmul(&w)?.tanh()? - y2)?.square()?.mean(..)
        }
    )
}

#[trace]
fn of_tasks(w: &Tensor, x: &Tensor, y: &Tensor, x2: &Tensor, y2: &Tensor) -> Result<Tensor> {
    let each = vmap(adapted()).in_axes([None, Some(0), Some(0), Some(0), Some(0)]);
    each.call::<Tensor>((w, x, y, x2, y2))?.sum(..)
}

/// A pendulum after four steps.
#[trace]
fn rollout(state: &Tensor, k: &Tensor) -> Result<Tensor> {
    let slope = |s: &Tensor| {
        let pull = ((k * s.i(0)?.sin()?)? * -1.0)?;
        ops::stack(&[s.i(1)?, (pull - (s.i(1)? * 0.1)?)?], 0)
    };
    let mut state = state.clone();
    for _ in 0..4 {
        let k1 = slope(&state)?;
        let k2 = slope(&(&state + (&k1 * 0.1)?)?)?;
        let k3 = slope(&(&state + (&k2 * 0.1)?)?)?;
        state = (&state + (((k1 + (k2 * 4.0)?)? + k3)? * (0.2 / 6.0))?)?;
    }
    Ok(state)
}

#[trace]
fn log_density(l: &Tensor, mean: &Tensor, x: &Tensor) -> Result<Tensor> {
    let cov = (l.matmul(&l.transpose(-2, -1)?)? + ops::eye(3, None, Some(DType::F64))?)?;
    let factor = ops::linalg::cholesky(&cov, false)?;
    let near = ops::linalg::solve(&factor, &(x - mean)?, true)?;
    let (_, size) = ops::linalg::slogdet(&cov)?;
    let volume = factor.diagonal(0, 0, 1)?.log()?.sum(..)?;
    ((near.square()?.sum(..)? * -0.5)? - volume)? + (size * 0.1)?
}

/// The logarithm of a weighted power of a signal of two dims.
#[trace]
fn power(x: &Tensor) -> Result<Tensor> {
    let whole = ops::stack(&[x.clone(), ops::zeros_like(x, None)?], -1)?;
    let strength = ops::fft::fft2(&whole, None, None, None)?
        .square()?
        .sum(-1)?;
    let weights = ops::arange(0, 12, 1, Some(DType::F64))?.reshape((3, 4))?;
    (strength * weights)?.sum(..)?.log()
}

fn orders(x: &Tensor, weights: &Tensor) -> Result<(Tensor, Tensor)> {
    let (values, places) = ops::topk(x, 3, 0, true, true)?;
    let (median, _) = ops::median(x, 0, false)?;
    let (second, _) = ops::kthvalue(x, 2, 0, false)?;
    let (falling, _) = ops::sort(x, 0, true)?;
    let ordered = (falling * weights.unsqueeze(1)?)?.sum(0)?;
    let low = ops::quantile(x, 0.3, Some(0), false, "linear")?;
    let product = ops::prod(&values, Some(0), false)?;
    Ok((
        (((product + (median * second)?)? + ordered)? + low)?,
        places,
    ))
}

/// Functions at points where they have two slopes.
#[trace]
fn corners(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let parts = [
        x.maximum(y)?.sum(..)?,
        (x.minimum(&(y * 2.0)?)?.sum(..)? * 2.0)?,
        ops::clamp(x, -1.0, 1.0)?.square()?.sum(..)?,
        (ops::clamp(x, 0.0, None)?.exp()?.sum(..)? * 3.0)?,
        (x.relu()?.sum(..)? * 5.0)?,
        (x.abs()?.sum(..)? * 7.0)?,
        (x.amax(..)? * 11.0)?,
        (x.amin(0)?.sum(..)? * 13.0)?,
        (ops::max(x, 0, false)?.0.sum(..)? * 17.0)?,
        ops::r#where(&x.ge(y)?, &(x * x)?, y)?.sum(..)?,
        (ops::hardtanh(x, -1.0, 1.0)?.sum(..)? * 19.0)?,
        (ops::leaky_relu(x, 0.01)?.sum(..)? * 23.0)?,
    ];
    ops::stack(&parts, 0)?.sum(..)
}

#[trace]
fn places(
    x: &Tensor,
    table: &Tensor,
    index: &Tensor,
    source: &Tensor,
) -> Result<(Tensor, Tensor, Tensor)> {
    let gathered = ops::gather(x, 0, index)?;
    let added = ops::scatter_add(&ops::zeros_like(x, None)?, 0, index, source)?;
    let values = source.i((.., ..2))?.sum(0)?.expand((3, 2))?;
    let put = ops::index_put(table, &[index.i(0)?], &values, true)?;
    let new = source.transpose(-2, -1)?.i((.., ..2))?;
    let rows = ops::index_add(table, 0, &index.i(1)?, &new, 0.5)?;
    let taken = ops::take(&ops::scatter(x, 0, index, source)?, &index.flatten(0, -1)?)?;
    Ok((
        (gathered.sin()? * added.i(1..3)?)?.sum(0)?,
        (put.exp()? + rows)?,
        taken,
    ))
}

#[trace]
fn pieces(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let x = ops::slice_scatter(x, y, 1, 1, 3, 1)?;
    let x = ops::select_scatter(&x, &y.i((.., 0))?.sin()?, 1, 0)?.i((.., ..3))?;
    let joined = ops::cat(&[x.roll(1, 1)?, x.flip(0)?.tril(0)?], 1)?;
    // Windows of two columns, side by side.
    let windows = joined.reshape((2, 3, 2))?.pow(2)?.movedim(2, 0)?;
    let mask = Tensor::from_vec(vec![1i64, 0], (2, 1))?.gt(0)?;
    let padded = ops::pad(&windows, (1, 2), "constant", None)?;
    let filled = padded.diagonal(0, 1, 2)?.masked_fill(&mask, 2.0)?;
    filled * x.std(.., true)?
}

#[trace]
fn straight_through(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let inner = traced!(|x: &Tensor| ((stop_gradient(x)? * x)? * x)?.sum(..));
    let hard = ((x.gt(0.0)?.to_dtype(DType::F64)? + x)? - x.detach()?)?;
    let slope: Tensor = grad(inner).call(x)?;
    ((hard * y)?.sum(..)? * y.detach()?.sum(..)?)? + slope.square()?.sum(..)?
}

/// Words, a norm of each, and classes of their mean.
#[derive(Module)]
struct Words {
    emb: nn::Embedding,
    norm: nn::LayerNorm,
    fc: nn::Linear,
}

#[trace]
impl Words {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.norm.forward(&self.emb.forward(x)?)?;
        self.fc.forward(&ops::gelu(&h.mean(0)?, "none")?)
    }
}
