//! Calls that random programs were wrong with on some path, shrunk.

use fx_differential::Call;
use fx_nn::prelude::*;
use fx_nn::{Error, Result};
use fx_programs::generate::Case;
use fx_programs::judge::{Judge, Verdict};
use fx_programs::paths;
use fx_programs::plants::Plant;
use fx_programs::program::{Body, Results, Step};
use serde_json::{Value as Json, json};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn call(kind: &str, name: &str, args: Json, made: Option<Json>) -> Result<Call> {
    let mut line = json!({
        "id": 0, "kind": kind, "name": name, "args": args, "tensors": [], "outcome": {"refused": true},
    });
    if let Some(options) = made {
        line["made"] =
            json!({"options": options, "dtype": "float32", "training": false, "state": {}});
    }
    Call::parse(&line.to_string())
}

/// A tensor as an argument.
fn t(at: usize) -> Json {
    json!({"tensor": at})
}

fn tensor<S: Into<Vec<usize>>>(dtype: DType, shape: S, numbers: &[f64]) -> Result<Tensor> {
    let shape = shape.into();
    let count = shape.iter().product();
    let numbers: Vec<f64> = numbers.iter().copied().cycle().take(count).collect();
    Tensor::from_vec(numbers, shape)?.to_dtype(dtype)
}

fn f32s(shape: impl Into<Vec<usize>>, numbers: &[f64]) -> Result<Tensor> {
    tensor(DType::F32, shape, numbers)
}

fn halves(shape: impl Into<Vec<usize>>, numbers: &[f64]) -> Result<Tensor> {
    tensor(DType::F16, shape, numbers)
}

fn wholes(shape: impl Into<Vec<usize>>, numbers: &[f64]) -> Result<Tensor> {
    tensor(DType::I64, shape, numbers)
}

fn judged(call: Call, tensors: &[Tensor]) -> Result<()> {
    let name = call.name.clone();
    on_every_path(&name, &Case::of_call(call, tensors)?)
}

fn on_every_path(name: &str, case: &Case) -> Result<()> {
    let plant = Plant::default();
    let judge = Judge::new(case, &plant)
        .ok_or_else(|| Error::msg(format!("{name} is decided by noise")))?;
    for path in paths::all() {
        if !path.is_inside() || !(path.takes)(case) {
            continue;
        }
        if let Verdict::Wrong(text) | Verdict::Panic(text) = judge.verdict(&path, None) {
            return Err(Error::msg(format!("{name}: {}: {text}", path.name)));
        }
    }
    Ok(())
}

fn function(name: &str, args: Json, tensors: &[Tensor]) -> Result<()> {
    judged(call("function", name, args, None)?, tensors)
}

#[test]
fn results_without_elements() -> Result<()> {
    let none = || tensor(DType::I16, [0], &[]);
    function("cat", json!([[t(0)], 4]), &[none()?])?;
    function(
        "hstack",
        json!([[t(0), t(1)]]),
        &[none()?, f32s([3, 3], &[1.0])?],
    )?;
    function(
        "channel_shuffle",
        json!([t(0), 3]),
        &[f32s([3, 0, 6, 6], &[])?],
    )?;
    function(
        "repeat_interleave",
        json!([t(0), [0], -1]),
        &[f32s([1], &[2.0])?],
    )?;
    function(
        "diff",
        json!([t(0), 0, -3, null, null]),
        &[f32s([3, 1], &[1.0, 2.0, 4.0])?],
    )
}

#[test]
fn places_without_elements() -> Result<()> {
    let x = || f32s([3, 2], &[1.0, 2.0, 3.0]);
    let index = wholes([0, 4], &[])?;
    function("gather", json!([t(0), 0, t(1)]), &[x()?, index.clone()])?;
    function(
        "index_copy",
        json!([t(0), -1, t(1), t(2)]),
        &[f32s([], &[2.0])?, wholes([0], &[])?, f32s([0], &[])?],
    )?;
    function(
        "index_put",
        json!([t(0), [t(1)], t(2), false]),
        &[x()?, wholes([0], &[])?, f32s([1, 2], &[7.0])?],
    )?;
    let source = f32s([0, 4], &[])?;
    function(
        "scatter",
        json!([t(0), 1, t(1), t(2)]),
        &[x()?, index.clone(), source.clone()],
    )?;
    let vector = f32s([3], &[1.0, 2.0, 3.0])?;
    function(
        "scatter_add",
        json!([t(0), 0, t(1), t(2)]),
        &[vector, index, source],
    )?;
    let index = wholes([0], &[])?;
    function("index_fill", json!([t(0), -1, t(1), 2.0]), &[x()?, index])?;
    let (x, target) = (f32s([0], &[])?, wholes([], &[0.0])?);
    function(
        "nll_loss",
        json!([t(0), t(1), null, 0, "sum"]),
        &[x, target],
    )
}

#[test]
fn numbers_as_tensors() -> Result<()> {
    function("one_hot", json!([t(0), 2]), &[wholes([], &[1.0])?])?;
    let rows = [f32s([4, 2], &[1.0, 2.0, 3.0])?, wholes([], &[1.0])?];
    function("index_select", json!([t(0), 1, t(1)]), &rows)?;
    let places = wholes([3], &[0.0])?;
    function(
        "gather",
        json!([t(0), 0, t(1)]),
        &[f32s([], &[2.0])?, places],
    )?;
    let number = |n: f64| tensor(DType::I32, [], &[n]);
    let tensors = [number(2_147_483_647.0)?, wholes([], &[0.0])?, number(0.0)?];
    function(
        "scatter_reduce",
        json!([t(0), 0, t(1), t(2), "amax", false]),
        &tensors,
    )?;
    // Each of two devices has one row of it.
    let halved = f32s([2, 4, 3], &[1.0, 2.0, 3.0, 4.0, 5.0])?;
    function("squeeze", json!([t(0), 0]), &[halved])?;
    let of_one = [f32s([2, 3], &[1.0, 2.0])?, f32s([4, 3], &[1.0, -1.0])?];
    for bias in [f32s([], &[0.5])?, f32s([1], &[0.5])?] {
        let tensors = [&of_one[..], &[bias]].concat();
        function("linear", json!([t(0), t(1), t(2)]), &tensors)?;
    }
    // A number is converted to the type of the tensor, as PyTorch does: 252.
    let less = call("operator", "lt", json!([t(0), -4]), None)?;
    judged(less, &[tensor(DType::U8, [], &[0.0])?])?;
    function(
        "pad",
        json!([t(0), [], "constant", 0.0]),
        &[wholes([], &[-1.0])?],
    )?;
    function("neg", json!([t(0)]), &[tensor(DType::I32, [1], &[9.0])?])
}

#[test]
fn steps_of_decompositions() -> Result<()> {
    function(
        "softsign",
        json!([t(0)]),
        &[tensor(DType::I16, [3], &[-32767.0, 7.0, 0.0])?],
    )?;
    let mixed = [
        f32s([4], &[1.0])?,
        halves([4], &[1.7, 2.9, 0.3, 5.1])?,
        f32s([], &[0.3])?,
    ];
    function("addcdiv", json!([t(0), t(1), t(2), 1]), &mixed)?;
    function("addcmul", json!([t(0), t(1), t(2), 1]), &mixed)?;
    let large = [
        halves([2, 3], &[1473.0, 982.0, 2.9])?,
        halves([2, 3], &[3.5, 8.0, 0.5])?,
    ];
    function("kl_div", json!([t(0), t(1), "batchmean", true]), &large)?;
    let rows = [
        f32s([2, 2], &[0.0, -1.0, INF, 2.0])?,
        f32s([2, 3], &[1.0, 0.0, -1.0])?,
        f32s([3, 1], &[1.0, -1.0, 0.0])?,
        f32s([1, 5], &[0.0, INF, 1.0, -2.0, 0.0])?,
    ];
    function("chain_matmul", json!([[t(0), t(1), t(2), t(3)]]), &rows)?;
    let values = f32s([4], &[2.0, 3.0, 4.0, 5.0])?;
    function(
        "heaviside",
        json!([t(0), t(1)]),
        &[f32s([4], &[0.0, 1.0, -1.0, 0.0])?, values],
    )
}

#[test]
fn digits_of_small_numbers() -> Result<()> {
    let x = f32s([6], &[1e-10, -1e-7, 0.0, 0.5, -0.9, INF])?;
    function("log1p", json!([t(0)]), std::slice::from_ref(&x))?;
    function("expm1", json!([t(0)]), std::slice::from_ref(&x))?;
    let x = f32s([4], &[-12.0, -6.0, 0.0, 3.0])?;
    function("softplus", json!([t(0), 1.0, 20.0]), &[x])
}

#[test]
fn images_of_other_sizes() -> Result<()> {
    let row = f32s([1, 1, 3], &[-2.0, 2.0, -2.0])?;
    let by = json!({"scale_factor": 1.3, "mode": "nearest"});
    judged(call("layer", "Upsample", json!([t(0)]), Some(by))?, &[row])?;
    let x = f32s([1, 1, 2, 2], &[INF, 1.0, -INF, NAN])?;
    function(
        "interpolate",
        json!([t(0), [4, 4], null, "nearest", null]),
        &[x],
    )?;
    let (x, weight, bias) = (
        f32s([2, 1, 4], &[1.0, -3.0])?,
        f32s([1, 2, 1], &[2.0, 0.5])?,
        f32s([2], &[0.5, 1.5])?,
    );
    function(
        "conv_transpose1d",
        json!([t(0), t(1), t(2), 1, 0, 1, 1, 2]),
        &[x, weight, bias],
    )?;
    let (x, mean) = (
        halves([2, 3, 4], &[1.0, -2.0, 0.5])?,
        halves([3], &[0.1, 0.2, 0.3])?,
    );
    let args = json!([t(0), t(1), t(2), null, null, false, 0.1, 1e-5]);
    function("instance_norm", args, &[x, mean.clone(), mean])
}

/// Its steps are written one by one: nothing that a run knows decides them.
#[test]
fn a_scan_that_does_not_read_what_it_scans() -> Result<()> {
    let call = call("function", "neg", json!([t(0)]), None)?;
    let mut case = Case::of_call(
        call,
        &[f32s([2, 3], &[1.0, 2.0, 3.0])?, f32s([2], &[4.0, 5.0])?],
    )?;
    let step = Body {
        inputs: vec![4, 5],
        steps: Vec::new(),
        results: vec![4, 4],
    };
    let scan = Step::Scan(0, vec![1], Box::new(step), vec![6, 7]);
    case.program.steps = vec![scan];
    case.program.results = Results::Flat(vec![6, 7]);
    on_every_path("scan", &case)
}

/// Steps that round, or are infinite, in halves.
#[test]
fn steps_of_halves() -> Result<()> {
    let x = || halves([4], &[300.0, 0.0, 0.0, 1.0]);
    function(
        "mse_loss",
        json!([t(0), t(1), "mean"]),
        &[x()?, halves([4], &[0.0])?],
    )?;
    let scores = halves([2, 2], &[164.875, 198.0, -102.625, -124.25])?;
    function(
        "multilabel_soft_margin_loss",
        json!([t(0), t(1), null, "mean"]),
        &[scores.clone(), scores],
    )?;
    function(
        "glu",
        json!([t(0), 0]),
        &[halves([6], &[0.0, 0.0, -INF, 0.0, 0.0, -46.0])?],
    )?;
    let small = halves([3], &[-0.000_361, 0.4, -1.0])?;
    function("addcdiv", json!([t(0), t(0), t(0), 1.5]), &[small])?;
    function(
        "gelu",
        json!([t(0), "none"]),
        &[halves([2], &[-3.78125, 1.25])?],
    )?;
    function(
        "hardsigmoid",
        json!([t(0)]),
        &[halves([2], &[-2.998, 2.999])?],
    )
}

/// The slope of a quotient is a difference of large numbers near 0.
#[test]
fn slopes_near_zero() -> Result<()> {
    function(
        "sinc",
        json!([t(0)]),
        &[f32s([4], &[0.0, 1e-8, 0.0031, -0.5])?],
    )
}

#[test]
fn attention_over_no_numbers() -> Result<()> {
    let none = || f32s([2, 2, 0], &[]);
    function(
        "scaled_dot_product_attention",
        json!([t(0), t(1), t(2), null, 0.0, true, null, false]),
        &[none()?, none()?, f32s([2, 2, 3], &[1.0, 2.0])?],
    )
}

#[test]
fn differences_behind_nothing() -> Result<()> {
    let x = f32s([1, 1], &[-2.0])?;
    function(
        "diff",
        json!([t(0), 2, 0, t(1), null]),
        &[x, f32s([0, 1], &[])?],
    )
}
