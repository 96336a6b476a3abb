//! The gradient of every operation, eager and traced, compared with central differences in `f64`.

use std::collections::BTreeSet;

use fx_nn::OpInfo;
use fx_nn::ir::registry;
use fx_nn::prelude::*;

use crate::elementwise;
use crate::measures;
use crate::support::{check, varied};

/// Checks one operation's gradient, and records its name.
macro_rules! held {
    ($seen:ident: $op:literal($($name:ident: [$($dim:expr),*]),+) using $constant:ident: $body:expr) => {{
        let other = $constant.clone();
        held!(@ $seen: $op($($name: [$($dim),*]),+) { let $constant = other; } $body)
    }};
    ($seen:ident: $op:literal($($name:ident: [$($dim:expr),*]),+) $body:expr) => {
        held!(@ $seen: $op($($name: [$($dim),*]),+) {} $body)
    };
    (@ $seen:ident: $op:literal($($name:ident: [$($dim:expr),*]),+) { $($own:stmt;)* } $body:expr) => {{
        let mut seed = 0;
        $(
            seed += 1;
            let $name = varied(&[$($dim),*], seed)?.into_parameter()?;
        )+
        let of = [$($name.clone()),+];
        let gm = {
            $($own)*
            symbolic_trace(traced!(|$($name: &Tensor),+| $body))?
        };
        check(
            $op,
            &of,
            || {
                $(let $name = &$name;)+
                $body
            },
            || gm.forward(($(&$name,)+)),
        )?;
        $seen.insert($op);
    }};
}

pub(crate) use held;

/// Integers of a shape.
pub(crate) fn ints(values: &[i64], shape: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), shape)
}

fn pointwise(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "abs"(x: [2, 3]) x.abs());
    held!(seen: "add"(x: [2, 3], y: [3]) x + y);
    held!(seen: "sub"(x: [2, 3], y: [2, 1]) x - y);
    held!(seen: "mul"(x: [2, 3], y: [3]) x * y);
    held!(seen: "truediv"(x: [2, 3], y: [3]) x / (y + 2.0)?);
    held!(seen: "neg"(x: [2, 3]) ops::neg(&ops::neg(&(-x)?)?));
    held!(seen: "pow"(x: [2, 3]) (x + 2.0)?.pow(3.5));
    held!(seen: "mod"(x: [2, 3]) x % 0.7);
    held!(seen: "exp"(x: [2, 3]) ops::exp(x));
    held!(seen: "log"(x: [2, 3]) ops::log(&(x + 2.0)?));
    held!(seen: "sqrt"(x: [2, 3]) ops::sqrt(&(x + 2.0)?));
    held!(seen: "rsqrt"(x: [2, 3]) ops::rsqrt(&(x + 2.0)?));
    held!(seen: "sin"(x: [2, 3]) ops::sin(x));
    held!(seen: "cos"(x: [2, 3]) ops::cos(x));
    held!(seen: "erf"(x: [2, 3]) ops::erf(x));
    held!(seen: "square"(x: [2, 3]) ops::square(x));
    held!(seen: "reciprocal"(x: [2, 3]) ops::reciprocal(&(x + 2.0)?));
    held!(seen: "clamp"(x: [2, 3]) ops::clamp(x, -0.5, 0.6));
    held!(seen: "maximum"(x: [2, 3], y: [3]) ops::maximum(x, y));
    held!(seen: "minimum"(x: [2, 3], y: [3]) ops::minimum(x, y));
    held!(seen: "to_dtype"(x: [2, 3]) ops::to_dtype(x, DType::F64));
    held!(seen: "to_device"(x: [2, 3]) ops::to_device(x, Device::Cpu));
    held!(seen: "type_as"(x: [2, 3]) ops::type_as(x, &Tensor::ones(1)?.to_dtype(DType::F64)?));
    Ok(())
}

fn activations(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "relu"(x: [2, 5]) ops::relu(x));
    held!(seen: "relu6"(x: [2, 5]) ops::relu6(&(x * 9.0)?));
    held!(seen: "leaky_relu"(x: [2, 5]) ops::leaky_relu(x, 0.2));
    held!(seen: "elu"(x: [2, 5]) ops::elu(x, 1.5));
    held!(seen: "gelu"(x: [2, 5]) ops::gelu(x, "none")? + ops::gelu(x, "tanh")?);
    held!(seen: "silu"(x: [2, 5]) ops::silu(x));
    held!(seen: "sigmoid"(x: [2, 5]) ops::sigmoid(x));
    held!(seen: "tanh"(x: [2, 5]) ops::tanh(x));
    held!(seen: "softmax"(x: [2, 5]) ops::softmax(x, -1));
    held!(seen: "log_softmax"(x: [2, 5]) ops::log_softmax(x, 0));
    held!(seen: "dropout"(x: [2, 5]) ops::dropout(x, 0.5, false));
    Ok(())
}

fn shapes(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "reshape"(x: [2, 6]) ops::reshape(x, (3, -1)));
    held!(seen: "view"(x: [2, 6]) ops::view(x, (3, 4)));
    held!(seen: "flatten"(x: [2, 3, 2]) ops::flatten(x, 1, -1));
    held!(seen: "expand"(x: [2, 1]) ops::expand(x, (3, -1, 4)));
    held!(seen: "permute"(x: [2, 3, 4]) ops::permute(x, (2, 0, 1)));
    held!(seen: "transpose"(x: [2, 3, 4]) ops::transpose(x, 0, -1));
    held!(seen: "t"(x: [2, 3]) ops::t(x));
    held!(seen: "squeeze"(x: [2, 1, 3]) ops::squeeze(x, 1));
    held!(seen: "unsqueeze"(x: [2, 3]) ops::unsqueeze(x, -1));
    held!(seen: "contiguous"(x: [2, 3]) ops::contiguous(&x.t()?));
    held!(seen: "chunk"(x: [5, 2]) ops::chunk(x, 2, 0)?.get(1));
    held!(seen: "split"(x: [5, 2]) ops::split(x, 2, 0)?.get(2));
    held!(seen: "split_with_sizes"(x: [5, 2]) ops::split_with_sizes(x, vec![1, 4], 0)?.get(1));
    held!(seen: "unbind"(x: [2, 3]) ops::unbind(x, 1)?.get(2));
    held!(seen: "cat"(x: [2, 3], y: [1, 3]) ops::cat(&[x.clone(), y.clone()], 0));
    held!(seen: "stack"(x: [2, 3], y: [2, 3]) ops::stack(&[x.clone(), y.clone()], 1));
    held!(seen: "getitem"(x: [3, 4, 2]) x.i((.., 1..3, NewAxis, 0)));
    Ok(())
}

fn selections(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    let mask = varied(&[4], 3)?.gt(0.0)?;
    held!(seen: "where"(x: [2, 4], y: [2, 1]) using mask: ops::r#where(&mask, x, y));
    held!(seen: "masked_fill"(x: [2, 4]) using mask: ops::masked_fill(x, &mask, 3.0));
    held!(seen: "tril"(x: [3, 4]) ops::tril(x, 1));
    held!(seen: "triu"(x: [3, 4]) ops::triu(x, 0));
    let at = ints(&[2, 0, 1, 1], &[2, 2])?;
    held!(seen: "gather"(x: [2, 3]) using at: ops::gather(x, 1, &at));
    let rows = ints(&[1, 1, 0], &[3])?;
    held!(seen: "index_select"(x: [2, 3]) using rows: ops::index_select(x, 0, &rows));
    held!(seen: "embedding"(weight: [3, 4]) using at: ops::embedding(&at, weight, None));
    Ok(())
}

fn reductions(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "sum"(x: [2, 3, 2]) ops::sum(x, [0, 2], false));
    held!(seen: "mean"(x: [2, 3, 2]) ops::mean(x, 1, true));
    held!(seen: "var"(x: [2, 3, 2]) ops::var(x, [0, 2], true, false));
    held!(seen: "std"(x: [2, 3, 2]) ops::std(x, .., false, false));
    held!(seen: "amax"(x: [2, 3, 2]) ops::amax(x, 1, false));
    held!(seen: "amin"(x: [2, 3, 2]) ops::amin(x, .., false));
    held!(seen: "min"(x: [2, 5]) Ok(ops::min(x, 0, true)?.0));
    held!(seen: "max"(x: [2, 5]) Ok(ops::max(x, -1, false)?.0));
    held!(seen: "topk"(x: [2, 5]) Ok(ops::topk(x, 2, -1, true, true)?.0));
    held!(seen: "cumsum"(x: [2, 5]) ops::cumsum(x, 1));
    held!(seen: "cosine_similarity"(x: [2, 5], y: [2, 5]) ops::cosine_similarity(x, y, 1, 1e-8));
    Ok(())
}

fn products(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "matmul"(x: [2, 1, 3, 2], y: [2, 2, 3]) ops::matmul(x, y));
    held!(seen: "linear"(x: [2, 3], w: [4, 3], b: [4]) ops::linear(x, w, Some(b)));
    held!(seen: "einsum"(x: [2, 3], y: [3, 4]) ops::einsum("ij,jk->ki", &[x.clone(), y.clone()]));
    held!(seen: "scaled_dot_product_attention"(q: [2, 3, 2], k: [1, 3, 2], v: [1, 3, 4]) {
        let causal = ops::scaled_dot_product_attention(q, k, v, None, 0.0, true, None, true)?;
        causal + ops::scaled_dot_product_attention(q, q, q, None, 0.0, false, Some(0.3), false)?.sum(..)?
    });
    held!(seen: "mask_scores"(x: [2, 3], mask: [2, 3]) ops::mask_scores(x, mask));
    held!(seen: "conv1d"(x: [1, 2, 6], w: [4, 1, 3], b: [4]) ops::conv1d(x, w, Some(b), 2, 1, 1, 2));
    held!(seen: "conv2d"(x: [1, 2, 4, 4], w: [2, 2, 3, 2], b: [2]) {
        ops::conv2d(x, w, Some(b), (1, 2), (1, 0), 1, 1)
    });
    held!(seen: "conv_transpose2d"(x: [1, 2, 3, 2], w: [2, 1, 3, 2], b: [1]) {
        ops::conv_transpose2d(x, w, Some(b), 2, 1, 1, 1, 1)
    });
    Ok(())
}

fn images(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "max_pool2d"(x: [1, 2, 5, 4]) ops::max_pool2d(x, 2, 2, 0, 1, true));
    held!(seen: "avg_pool2d"(x: [1, 2, 5, 4]) ops::avg_pool2d(x, 3, 2, 1, false, true));
    held!(seen: "adaptive_avg_pool2d"(x: [1, 2, 5, 4]) ops::adaptive_avg_pool2d(x, (2, 3)));
    held!(seen: "interpolate"(x: [1, 2, 3, 4]) {
        let nearest = ops::interpolate(x, None, 2.0, "nearest", None)?;
        nearest + ops::interpolate(x, Some([6, 8].into()), None, "bilinear", Some(true))?
    });
    held!(seen: "interpolate"(x: [2, 1, 4]) {
        let nearest = ops::interpolate(x, None, 1.7, "nearest-exact", None)?;
        nearest + ops::interpolate(x, None, 1.7, "linear", None)?
    });
    held!(seen: "interpolate"(x: [1, 1, 2, 3, 2]) {
        let area = ops::interpolate(x, Some([3, 2, 3].into()), None, "area", None)?;
        area + ops::interpolate(x, Some([3, 2, 3].into()), None, "trilinear", Some(false))?
    });
    held!(seen: "interpolate_with"(x: [1, 1, 5, 4]) {
        let small = ops::interpolate_with(x, None, [0.5, 0.7], "bilinear", None, Some(true), true)?;
        let curve = ops::interpolate_with(x, None, [0.5, 0.7], "bicubic", Some(true), None, true)?;
        (small + curve)? + ops::interpolate_with(x, None, [0.5, 0.7], "bicubic", None, None, false)?
    });
    Ok(())
}

fn norms(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "batch_norm"(x: [3, 2, 2], w: [2], b: [2]) {
        ops::batch_norm(x, None, None, Some(w), Some(b), true, 0.1, 1e-3)
    });
    held!(seen: "layer_norm"(x: [2, 4], w: [4], b: [4]) ops::layer_norm(x, 4, Some(w), Some(b), 1e-3));
    held!(seen: "rms_norm"(x: [2, 4], w: [4]) ops::rms_norm(x, 4, Some(w), 1e-3));
    held!(seen: "group_norm"(x: [2, 4, 3], w: [4], b: [4]) {
        ops::group_norm(x, 2, Some(w), Some(b), 1e-3)
    });
    Ok(())
}

fn losses(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    let classes = ints(&[2, 0], &[2])?;
    held!(seen: "cross_entropy"(x: [2, 3]) using classes: ops::cross_entropy(x, &classes, None, -100, "mean", 0.1));
    held!(seen: "nll_loss"(x: [2, 3]) using classes: ops::nll_loss(x, &classes, None, -100, "sum"));
    held!(seen: "mse_loss"(x: [2, 3], y: [2, 3]) ops::mse_loss(x, y, "mean"));
    held!(seen: "l1_loss"(x: [2, 3], y: [2, 3]) ops::l1_loss(x, y, "none"));
    held!(seen: "lstm"(x: [3, 2, 2], w: [8, 2], u: [8, 2], h: [1, 2, 2]) {
        let weights = [w.clone(), u.clone()];
        let (y, h, c) = ops::lstm(x, Some(h), Some(h), &weights, false, 1, 0.0, false, false, false)?;
        (y + h)? * c
    });
    Ok(())
}

#[test]
fn gradients_are_the_differences_eager_and_traced() -> Result<()> {
    let mut seen = BTreeSet::new();
    for family in [
        pointwise,
        activations,
        shapes,
        selections,
        reductions,
        products,
        images,
        norms,
        losses,
        crate::structure::all,
        elementwise::functions,
        elementwise::couples,
        elementwise::activations,
        measures::measures,
        measures::losses,
        crate::spectral::linalg,
        crate::spectral::fft,
    ] {
        family(&mut seen)?;
    }
    let mut missing = Vec::new();
    for function in registry::functions() {
        let is_op = function.path().starts_with("fx_nn::ops::");
        let is_flat = OpInfo::of(function)?.no_gradient.is_some();
        if is_op && !is_flat && !seen.contains(function.name()) {
            missing.push(function.name());
        }
    }
    assert!(missing.is_empty(), "no gradient is held of {missing:?}");
    Ok(())
}
