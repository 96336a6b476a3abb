//! Transforms of functions beside torch.func: `tests/goldens/func.py` has the same functions, by name.

use std::collections::{BTreeMap, BTreeSet};

use fx_nn::func::{
    Randomness, Transform, grad, hessian, jacfwd, jacrev, jvp, parameters, value_and_grad, vjp,
    vmap,
};
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::trace::TracedFn;
use fx_nn::{Error, Result};

/// How far an element may be from torch.func's, in proportion to the largest.
const NEAR: f64 = 1e-9;

fn tensor(json: &serde_json::Value) -> Result<Tensor> {
    let wrong = || Error::msg("a tensor of the file is none");
    let list = |name: &str| json[name].as_array().ok_or_else(wrong);
    let shape: Vec<usize> = list("shape")?
        .iter()
        .filter_map(|n| n.as_u64().map(|n| n as usize))
        .collect();
    match json["dtype"].as_str() {
        Some("int64") => Tensor::from_vec(
            list("data")?
                .iter()
                .filter_map(serde_json::Value::as_i64)
                .collect::<Vec<_>>(),
            shape,
        ),
        _ => Tensor::from_vec(
            list("data")?
                .iter()
                .filter_map(serde_json::Value::as_f64)
                .collect::<Vec<_>>(),
            shape,
        ),
    }
}

/// The tensors of a result, in order.
pub(super) fn flat(value: &Value) -> Vec<Tensor> {
    let mut found = Vec::new();
    value.for_each(&mut |value| found.extend(value.downcast_ref::<Tensor>().cloned()));
    found
}

fn call(of: &impl Transform, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let args = inputs.iter().map(|x| Value::object(x.clone())).collect();
    let value: Value = of.call(fx_nn::trace::CallArgs {
        args,
        kwargs: Vec::new(),
    })?;
    Ok(flat(&value))
}

fn mlp() -> TracedFn {
    traced!(
        |w: &Tensor, b: &Tensor, v: &Tensor, x: &Tensor, y: &Tensor| {
            let h = (x.matmul(w)? + b)?.tanh()?;
            (h.matmul(v)? - y)?.square()?.sum(..)
        }
    )
}

fn f() -> TracedFn {
    traced!(|x: &Tensor| (x.sin()? * ops::prod(x, None, false)?)? + x.cumsum(0)?)
}

fn energy() -> TracedFn {
    traced!(|x: &Tensor| ops::logsumexp(&(x * x)?, 0, false)? + ops::softmax(x, 0)?.i(0)?)
}

fn net() -> TracedFn {
    traced!(
        |k: &Tensor, c: &Tensor, w: &Tensor, b: &Tensor, x: &Tensor, t: &Tensor| {
            let h = ops::conv2d(&x.unsqueeze(0)?, k, Some(c), 1, 1, 1, 1)?.relu()?;
            let h = ops::max_pool2d(&h, 2, 2, 0, 1, false)?.flatten(1, -1)?;
            let scores = ops::linear(&h, w, Some(b))?;
            ops::cross_entropy(&scores, &t.unsqueeze(0)?, None, -100, "mean", 0.0)
        }
    )
}

fn attention() -> TracedFn {
    traced!(|wq: &Tensor, wk: &Tensor, wv: &Tensor, x: &Tensor| {
        let heads = |m: &Tensor| x.matmul(m)?.unsqueeze(0);
        let (q, k, v) = (heads(wq)?, heads(wk)?, heads(wv)?);
        let h = ops::scaled_dot_product_attention(&q, &k, &v, None, 0.0, true, None, false)?
            .squeeze(0)?;
        let normal = ops::layer_norm(&h, [4], None, None, 1e-5)?
            .square()?
            .mean(..)?;
        normal + ops::gelu(&h, "none")?.sum(..)?
    })
}

fn cell() -> TracedFn {
    traced!(|w_ih: &Tensor, w_hh: &Tensor, b: &Tensor, xs: &Tensor| {
        let (mut h, mut c) = (
            ops::zeros(3, Some(DType::F64))?,
            ops::zeros(3, Some(DType::F64))?,
        );
        for step in 0..4 {
            let gates = ((w_ih.matmul(&xs.i(step)?)? + w_hh.matmul(&h)?)? + b)?;
            let [i, f, g, o] = gates.chunk(4, 0)?.unpack()?;
            c = ((f.sigmoid()? * &c)? + (i.sigmoid()? * g.tanh()?)?)?;
            h = (o.sigmoid()? * c.tanh()?)?;
        }
        (&h * &h)?.sum(..)
    })
}

/// A module whose forward is a loss.
#[derive(Module)]
struct Loss {
    net: nn::Sequential,
}

#[trace]
impl Loss {
    fn forward(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let out: Tensor = self.net.forward(x)?;
        ops::mse_loss(&out, y, "mean")
    }
}

/// Two layers, of their weights and biases.
pub(super) fn model(given: &[Tensor]) -> Result<nn::Sequential> {
    let layer = |weight: &Tensor, bias: &Tensor| -> Result<nn::Linear> {
        let [out, inner] = *weight.dims()? else {
            return Err(Error::msg("a weight has two dims"));
        };
        let mut layer = nn::Linear::new(inner, out)?;
        layer.weight = weight.clone().into_parameter()?;
        layer.bias = Some(bias.clone().into_parameter()?);
        Ok(layer)
    };
    Ok(nn::Sequential::new()
        .push(layer(&given[0], &given[1])?)
        .push(nn::Tanh::new())
        .push(layer(&given[2], &given[3])?))
}

fn run(name: &str, x: &[Tensor], names: &[String]) -> Result<Vec<Tensor>> {
    let rows = [None, None, None, Some(0), Some(0)];
    match name {
        "grad_of_first" => call(&grad(mlp()), x),
        "grad_of_several" => call(&grad(mlp()).wrt([0, 1, 2]), x),
        "value_and_grad" => call(&value_and_grad(mlp()).wrt("x"), x),
        "per_sample" => call(&vmap(&grad(mlp()).wrt(["w", "b", "v"])).in_axes(rows), x),
        "per_model" => call(
            &vmap(&grad(mlp())).in_axes([Some(0), None, None, None, None]),
            x,
        ),
        "both_batched" => call(
            &vmap(mlp()).in_axes([Some(0), None, None, Some(0), Some(0)]),
            x,
        ),
        "vjp" => call(&vjp(f()), x),
        "jvp" => call(&jvp(f()), x),
        "jacrev" => call(&jacrev(f()), x),
        "jacfwd" => call(&jacfwd(f()), x),
        "jacrev_of_jacfwd" => call(&jacrev(&jacfwd(f())), x),
        "jacfwd_of_jacfwd" => call(&jacfwd(&jacfwd(f())), x),
        "hessian" => call(&hessian(energy()), x),
        "hessian_product" => Ok(call(&jvp(&grad(energy())), x)?.split_off(1)),
        "third" => {
            let cubic = traced!(|x: &Tensor| x.sin()? * x.pow(3)?);
            call(&grad(&grad(&grad(cubic))), x)
        }
        "vmap_of_hessian" => call(&vmap(&hessian(energy())), x),
        "out_dims" => call(&vmap(traced!(|x: &Tensor| ops::outer(x, x))).out_axes(2), x),
        "in_dims" => call(&vmap(energy()).in_axes(1), x),
        "nested_vmap" => {
            let product = traced!(|a: &Tensor, b: &Tensor| (a * b)?.exp());
            call(
                &vmap(&vmap(product).in_axes([None, Some(0)])).in_axes([Some(0), None]),
                x,
            )
        }
        "reductions" => {
            let all = traced!(|x: &Tensor| {
                let (sorted, _) = ops::sort(x, 0, false)?;
                Ok((
                    x.sum(0)?,
                    x.mean(-1)?,
                    x.amax(..)?,
                    sorted,
                    x.argmax(1, false)?,
                    x.softmax(1)?,
                ))
            });
            call(&vmap(all), x)
        }
        "indexing" => {
            let picked = traced!(|t: &Tensor, i: &Tensor| {
                let rows = ops::index_select(t, 0, i)?;
                Ok((rows, ops::embedding(i, t, None)?, t.index_select(0, i)?))
            });
            call(&vmap(picked), x)
        }
        "per_sample_cnn" => {
            let of = grad(net()).wrt([0, 1, 2, 3]);
            call(
                &vmap(&of).in_axes([None, None, None, None, Some(0), Some(0)]),
                x,
            )
        }
        "per_sample_attention" => {
            let of = grad(attention()).wrt([0, 1, 2]);
            call(&vmap(&of).in_axes([None, None, None, Some(0)]), x)
        }
        "per_sample_lstm" => {
            let of = grad(cell()).wrt([0, 1, 2]);
            call(&vmap(&of).in_axes([None, None, None, Some(0)]), x)
        }
        "of_parameters" => {
            let loss = Loss { net: model(x)? };
            call(&grad(&loss).wrt(parameters("**")), &x[4..])
        }
        "tangent_kernel" => {
            let net = model(x)?;
            let of_one = |xs: &Tensor| {
                call(
                    &vmap(&jacobian_of(&net)?).in_axes([None, None, None, None, Some(0)]),
                    &[&x[..4], std::slice::from_ref(xs)].concat(),
                )
            };
            let (left, right) = (of_one(&x[4])?, of_one(&x[5])?);
            let mut sum: Option<Tensor> = None;
            for (a, b) in left.iter().zip(&right) {
                let (a, b) = (a.flatten(2, -1)?, b.flatten(2, -1)?);
                let part = ops::einsum("nap,mbp->nmab", &[a, b])?;
                sum = Some(match sum {
                    Some(sum) => (sum + part)?,
                    None => part,
                });
            }
            Ok(sum.into_iter().collect())
        }
        "mixed_partials" => {
            let both = traced!(|a: &Tensor, b: &Tensor| (a.sin()? * b.exp()?)?.sum(..));
            call(&jacfwd(&jacrev(both)).wrt(1), x)
        }
        "solve" => {
            let solve = traced!(|a: &Tensor, b: &Tensor| ops::linalg::solve(a, b, true));
            call(&jacrev(solve).wrt([0, 1]), x)
        }
        "divergence" => Ok(vec![ops::trace(&call(&jacrev(f()), x)?[0])?]),
        "where_and_masks" => {
            let bent = traced!(|x: &Tensor| {
                let y = ops::r#where(&x.gt(0.0)?, &x.pow(3)?, &(-x)?)?;
                y.masked_fill(&x.gt(1.0)?, 0.5)?.sum(..)
            });
            call(&vmap(&grad(bent)), x)
        }
        other => super::func_cases::run(other, x, names),
    }
}

/// The Jacobian of a network by its parameters, which are arguments.
fn jacobian_of(net: &nn::Sequential) -> Result<fx_nn::func::JacRev> {
    let net = std::rc::Rc::new(net.clone());
    let of = traced!(
        move |w: &Tensor, b: &Tensor, v: &Tensor, c: &Tensor, x: &Tensor| {
            let _ = &net;
            let h = ops::linear(x, w, Some(b))?.tanh()?;
            ops::linear(&h, v, Some(c))
        }
    );
    Ok(jacrev(of).wrt([0, 1, 2, 3]))
}

#[test]
fn transforms_give_what_torch_func_gives() -> Result<()> {
    let text = include_str!("../../tests/goldens/func.json");
    let file: serde_json::Value = serde_json::from_str(text).map_err(Error::other)?;
    let cases = file["cases"]
        .as_object()
        .ok_or_else(|| Error::msg("the file has cases"))?;
    let mut wrong = BTreeMap::new();
    let mut functions = BTreeSet::new();
    for (name, case) in cases {
        let tensors = |of: &str| {
            case[of]
                .as_array()
                .into_iter()
                .flatten()
                .map(tensor)
                .collect::<Result<Vec<_>>>()
        };
        let (inputs, expected) = (tensors("inputs")?, tensors("outputs")?);
        let names: Vec<String> = case["names"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_string))
            .collect();
        // What follows a slash is another size of the same function.
        let function = name.split('/').next().unwrap_or_default();
        functions.insert(function);
        match run(function, &inputs, &names) {
            Ok(found) => {
                if found.len() != expected.len() {
                    wrong.insert(
                        name,
                        format!("{} results, not {}", found.len(), expected.len()),
                    );
                    continue;
                }
                for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let (a, b) = (found.to_vec()?, expected.to_vec()?);
                    let largest = b.iter().fold(1e-3f64, |most, x| most.max(x.abs()));
                    let is_near = a
                        .iter()
                        .zip(&b)
                        .all(|(a, b)| (a - b).abs() <= NEAR * largest);
                    if found.dims()? != expected.dims()? || !is_near {
                        wrong.entry(name).or_insert(format!(
                            "result {at}: {:?} {a:?}, not {:?} {b:?}",
                            found.dims()?,
                            expected.dims()?
                        ));
                    }
                }
            }
            Err(error) => {
                wrong.insert(name, format!("refused: {error}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((functions.len(), cases.len()), (63, 75));
    Ok(())
}

fn refusal(result: Result<impl Sized>) -> String {
    result.err().map_or_else(
        || "it is not refused".to_string(),
        |error| error.to_string(),
    )
}

#[test]
fn what_cannot_be_transformed_is_refused_by_name() -> Result<()> {
    let x = Tensor::randn((4, 3))?;
    let matrix = traced!(|x: &Tensor| x * 2.0);
    let text = refusal(grad(matrix).call::<Tensor>(&x));
    assert!(
        text.contains("a gradient is of one number, and the function gives a tensor of shape"),
        "{text}"
    );

    let ids = Tensor::from_vec(vec![1i64, 2], 2)?;
    let text = refusal(grad(traced!(|x: &Tensor| (x * 2.0)?.sum(..))).call::<Tensor>(&ids));
    assert!(
        text.contains("argument `x` is a tensor int64[2]: gradients are of floats"),
        "{text}"
    );

    let text = refusal(grad(mlp()).wrt("z").call::<Tensor>((&x, &x, &x, &x, &x)));
    assert!(
        text.contains("there is no argument `z`: there are w, b, v, x, y"),
        "{text}"
    );

    let pair = || traced!(|x: &Tensor, y: &Tensor| x + y);
    let text = refusal(vmap(pair()).call::<Tensor>((&x, &x.narrow(0, 0, 3)?)));
    assert!(
        text.contains("vmap: the examples of arguments `x` (4) and `y` (3) differ in number"),
        "{text}"
    );
    let text = refusal(vmap(pair()).in_axes([None, None]).call::<Tensor>((&x, &x)));
    assert!(
        text.contains("vmap: no argument has a dim of examples"),
        "{text}"
    );
    let text = refusal(vmap(pair()).in_axes(2).call::<Tensor>((&x, &x)));
    assert!(
        text.contains("vmap: argument `x` has 2 dims, and no dim 2 of examples"),
        "{text}"
    );
    let text = refusal(
        vmap(pair())
            .out_axes(None::<i64>.into_axes())
            .call::<Tensor>((&x, &x)),
    );
    assert!(
        text.contains("vmap: result 0 differs between the examples"),
        "{text}"
    );

    let dropped = || traced!(|x: &Tensor| ops::dropout(x, 0.5, true));
    let text = refusal(vmap(dropped()).call::<Tensor>(&x));
    assert!(
        text.contains("it draws random numbers: say by `randomness`"),
        "{text}"
    );
    let same: Tensor = vmap(dropped())
        .randomness(Randomness::Same)
        .call(&Tensor::ones((4, 64))?)?;
    let rows = same.to_vec()?;
    assert!(rows.chunks(64).all(|row| row == &rows[..64]));
    let each: Tensor = vmap(dropped())
        .randomness(Randomness::Different)
        .call(&Tensor::ones((4, 64))?)?;
    let rows = each.to_vec()?;
    assert!(rows.chunks(64).skip(1).any(|row| row != &rows[..64]));
    Ok(())
}

/// An axis of results that is the same for all of them.
trait IntoAxes {
    fn into_axes(self) -> [Option<i64>; 1];
}

impl IntoAxes for Option<i64> {
    fn into_axes(self) -> [Option<i64>; 1] {
        [self]
    }
}

#[test]
fn a_gradient_is_a_graph_with_the_names_of_the_model() -> Result<()> {
    let net = nn::Sequential::new()
        .push(nn::Linear::new(3, 4)?)
        .push(nn::ReLU::new())
        .push(nn::Linear::new(4, 2)?);
    let loss = Loss { net };
    let of = value_and_grad(&loss).wrt(parameters("net.*.weight"));
    let gm = of.graph_module(&[spec!["batch", 3; F32], spec!["batch", 2; F32]])?;
    let (x, y) = (Tensor::randn((5, 3))?, Tensor::randn((5, 2))?);
    let (value, grads): (Tensor, fx_nn::IndexMap<String, Tensor>) = gm.forward((&x, &y))?;
    assert_eq!(
        grads.keys().collect::<Vec<_>>(),
        ["net.0.weight", "net.2.weight"]
    );
    // The tape of the same module.
    let expected = loss.forward(&x, &y)?;
    assert!((value.item()? - expected.item()?).abs() < 1e-6);
    let store = expected.backward()?;
    for (path, grad) in &grads {
        let weight = gm.parameter(path)?;
        let weight = weight
            .downcast_ref::<Tensor>()
            .ok_or_else(|| Error::msg("a weight"))?;
        let own = store.get(weight)?.ok_or_else(|| Error::msg("a gradient"))?;
        assert!(fx_nn::allclose(grad, &own, 1e-5, 1e-6)?.close, "{path}");
    }
    // It is saved, loaded and compiled like any other.
    let again = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let (other, _): (Tensor, fx_nn::IndexMap<String, Tensor>) = again.forward((&x, &y))?;
    assert_eq!(other.to_vec()?, value.to_vec()?);
    let fast =
        gm.compile(fx_nn::passes::backend::Compile::new(fx_nn::cpu::Cpu::new()).like((&x, &y)))?;
    let (other, of_fast): (Tensor, fx_nn::IndexMap<String, Tensor>) =
        fx_nn::no_grad(|| fast.forward((&x, &y)))?;
    assert!((other.item()? - value.item()?).abs() < 1e-5);
    for (path, grad) in &grads {
        assert!(
            fx_nn::allclose(&of_fast[path.as_str()], grad, 1e-5, 1e-5)?.close,
            "{path}"
        );
    }
    Ok(())
}

#[test]
fn a_gradient_is_taken_inside_of_a_trace() -> Result<()> {
    /// A step of gradient descent.
    fn descend(w: &Tensor, x: &Tensor) -> Result<Tensor> {
        let loss = traced!(|w: &Tensor, x: &Tensor| (x.matmul(w)? - 1.0)?.square()?.sum(..));
        let slope: Tensor = grad(loss).call((w, x))?;
        w - (slope * 0.1)?
    }
    let step = traced!(|w: &Tensor, x: &Tensor| descend(w, x));
    let gm = Trace::new(step)
        .inputs([spec![3; F64], spec![5, 3; F64]])
        .graph_module()?;
    let (w, x) = (
        Tensor::randn(3)?.to_dtype(DType::F64)?,
        Tensor::randn((5, 3))?.to_dtype(DType::F64)?,
    );
    let (graph, eager): (Tensor, Tensor) = (gm.forward((&w, &x))?, descend(&w, &x)?);
    assert!(fx_nn::allclose(&graph, &eager, 1e-12, 1e-12)?.close);
    // Without shapes it says what is missing.
    let text = refusal(symbolic_trace(traced!(|w: &Tensor, x: &Tensor| descend(
        w, x
    ))));
    assert!(text.contains("Trace::inputs"), "{text}");
    Ok(())
}

#[test]
fn second_derivatives_hold_where_both_sides_are_equal() -> Result<()> {
    use fx_nn::testing::{check_op, routes, samples};
    let mut second = routes();
    second.retain(|route| route.name() == "second derivative");
    for function in [
        function!(ops::hypot),
        function!(ops::logaddexp),
        function!(ops::logaddexp2),
    ] {
        // Some of these pairs are equal, and some numbers are 0.
        let report = check_op(function.name(), &samples::two_floats(function)?, &second);
        assert!(report.is_right(), "{report}");
        assert!(report.routes["second derivative"].compared > 0, "{report}");
    }
    Ok(())
}
