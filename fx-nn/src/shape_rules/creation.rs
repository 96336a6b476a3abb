//! New tensors: of sizes that are given, or like another one.

use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::{like, rules, tensor, x};
use crate::ops;

rules! {
    |call| of_sizes(call, "shape") => ops::zeros, ops::ones, ops::empty, ops::rand, ops::randn;
    |call| of_sizes(call, "size") => ops::normal;
    full => ops::full;
    |call| of_type(call, "shape") => ops::new_zeros, ops::new_ones, ops::new_empty;
    |call| of_type(call, "size") => ops::new_full;
    as_another => ops::zeros_like, ops::ones_like, ops::empty_like, ops::rand_like, ops::randn_like,
        ops::full_like, ops::randint_like;
    arange => ops::arange;
    eye => ops::eye;
    steps => ops::linspace, ops::logspace;
    whole_numbers => ops::randint;
    permutation => ops::randperm;
}

fn of_sizes(call: &mut RuleCall<'_>, param: &str) -> Result<Fake> {
    let dtype = call.dtype("dtype")?.unwrap_or(DType::F32);
    Ok(tensor(call.sizes(param)?, Some(dtype)))
}

fn full(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = match (call.dtype("dtype")?, call.arg("fill_value")?) {
        (Some(dtype), _) => dtype,
        (None, Fake::Int(_)) => DType::I64,
        (None, Fake::Bool(_)) => DType::Bool,
        (None, _) => DType::F32,
    };
    Ok(tensor(call.sizes("size")?, Some(dtype)))
}

fn of_type(call: &mut RuleCall<'_>, param: &str) -> Result<Fake> {
    let dtype = call.dtype("dtype")?.or(x(call)?.dtype);
    Ok(tensor(call.sizes(param)?, dtype))
}

fn as_another(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    Ok(like(x, call.dtype("dtype")?.or(x.dtype)))
}

fn arange(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (start, end) = (call.size("start")?, call.size("end")?);
    let step = call.int("step")?;
    if step == 0 {
        return Err(Error::msg("arange: the step is 0"));
    }
    // Rounded up.
    let count = ((end - start)? + (step - step.signum()))?.div(step)?;
    let (least, _) = call.env().bounds(&count);
    let count = match least {
        Some(0..) => count,
        _ => count.max(0)?,
    };
    let dtype = call.dtype("dtype")?.unwrap_or(DType::I64);
    Ok(tensor(vec![count], Some(dtype)))
}

fn eye(call: &mut RuleCall<'_>) -> Result<Fake> {
    let n = call.size("n")?;
    let m = match call.arg("m")? {
        none if none.is_none() => n.clone(),
        m => m.dim()?,
    };
    Ok(tensor(
        vec![n, m],
        Some(call.dtype("dtype")?.unwrap_or(DType::F32)),
    ))
}

fn steps(call: &mut RuleCall<'_>) -> Result<Fake> {
    let steps: Dim = call.size("steps")?;
    Ok(tensor(
        vec![steps],
        Some(call.dtype("dtype")?.unwrap_or(DType::F32)),
    ))
}

fn whole_numbers(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = call.dtype("dtype")?.unwrap_or(DType::I64);
    Ok(tensor(call.sizes("size")?, Some(dtype)))
}

fn permutation(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = call.dtype("dtype")?.unwrap_or(DType::I64);
    Ok(tensor(vec![call.size("n")?], Some(dtype)))
}
