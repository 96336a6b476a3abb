//! Reductions of dims, scans along one, sorting and losses.

use fx_core::Result;
use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};

use super::{Elements, fractional, like, require, rules, tensor, x};
use crate::ops;

rules! {
    |call| reduced(call, Some) => ops::amax, ops::amin;
    |call| reduced(call, |dtype| Some(summed(dtype))) => ops::sum, ops::nansum;
    reduced_fractions => ops::mean, ops::nanmean, ops::var, ops::std,
        ops::logsumexp, ops::norm, ops::vector_norm;
    |call| reduced(call, |dtype| Some(truth(dtype))) => ops::all, ops::any;
    reduced_without_keepdim => ops::count_nonzero;
    |call| one_dim(call, |dtype| Some(summed(dtype))) => ops::prod;
    place_of_extreme => ops::argmax, ops::argmin;
    extreme_and_place => ops::max, ops::min, ops::median, ops::nanmedian, ops::mode, ops::kthvalue;
    moments => ops::var_mean, ops::std_mean;
    extremes => ops::aminmax;
    |call| scanned(call, summed) => ops::cumsum, ops::cumprod;
    |call| scanned(call, |dtype| dtype) => ops::logcumsumexp;
    scan_and_place => ops::cummax, ops::cummin;
    sorted => ops::sort;
    |call| scanned(call, |_| DType::I64) => ops::argsort;
    topk => ops::topk;
    loss => ops::mse_loss, ops::l1_loss, ops::smooth_l1_loss, ops::huber_loss,
        ops::binary_cross_entropy_with_logits, ops::binary_cross_entropy, ops::kl_div,
        ops::poisson_nll_loss, ops::soft_margin_loss, ops::hinge_embedding_loss;
    loss_of_three => ops::margin_ranking_loss;
    class_loss => ops::cross_entropy, ops::nll_loss;
}

/// Bytes stay bytes.
fn truth(dtype: DType) -> DType {
    match dtype {
        DType::U8 => DType::U8,
        _ => DType::Bool,
    }
}

fn reduced_fractions(call: &mut RuleCall<'_>) -> Result<Fake> {
    if call.function() != fx_core::function!(ops::logsumexp) {
        require(call, x(call)?, Elements::Fractions)?;
    }
    reduced(call, |dtype| fractional(Some(dtype)))
}

/// Whole numbers are summed as `i64`.
pub(super) fn summed(dtype: DType) -> DType {
    match dtype.is_floating_point() {
        true => dtype,
        false => DType::I64,
    }
}

fn without(shape: &[Dim], places: &[usize], keepdim: bool) -> Vec<Dim> {
    let sizes = shape.iter().enumerate();
    let kept = sizes.filter_map(|(at, size)| match (places.contains(&at), keepdim) {
        (false, _) => Some(size.clone()),
        (true, true) => Some(Dim::known(1)),
        (true, false) => None,
    });
    kept.collect()
}

fn reduced(call: &mut RuleCall<'_>, dtype: fn(DType) -> Option<DType>) -> Result<Fake> {
    let x = x(call)?;
    let places = call.places("dim", x.shape.len())?;
    let shape = without(&x.shape, &places, call.flag("keepdim")?);
    Ok(tensor(shape, x.dtype.and_then(dtype)))
}

fn reduced_without_keepdim(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let places = call.places("dim", x.shape.len())?;
    Ok(tensor(without(&x.shape, &places, false), Some(DType::I64)))
}

fn one_dim(call: &mut RuleCall<'_>, dtype: fn(DType) -> Option<DType>) -> Result<Fake> {
    reduced(call, dtype)
}

fn place_of_extreme(call: &mut RuleCall<'_>) -> Result<Fake> {
    require(call, x(call)?, Elements::Numbers)?;
    one_dim(call, |_| Some(DType::I64))
}

/// What is left of a dim.
fn left(call: &mut RuleCall<'_>) -> Result<Vec<Dim>> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let keepdim = call.flag("keepdim")?;
    Ok(without(&x.shape, &[place], keepdim))
}

fn extreme_and_place(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (shape, dtype) = (left(call)?, x(call)?.dtype);
    let places = tensor(shape.clone(), Some(DType::I64));
    Ok(Fake::Tuple(vec![tensor(shape, dtype), places]))
}

fn moments(call: &mut RuleCall<'_>) -> Result<Fake> {
    let one = reduced_fractions(call)?;
    Ok(Fake::Tuple(vec![one.clone(), one]))
}

fn extremes(call: &mut RuleCall<'_>) -> Result<Fake> {
    let one = reduced(call, Some)?;
    Ok(Fake::Tuple(vec![one.clone(), one]))
}

fn scanned(call: &mut RuleCall<'_>, dtype: fn(DType) -> DType) -> Result<Fake> {
    let x = x(call)?;
    call.place(call.int("dim")?, x.shape.len())?;
    Ok(like(x, x.dtype.map(dtype)))
}

fn scan_and_place(call: &mut RuleCall<'_>) -> Result<Fake> {
    let places = scanned(call, |_| DType::I64)?;
    Ok(Fake::Tuple(vec![scanned(call, |dtype| dtype)?, places]))
}

fn sorted(call: &mut RuleCall<'_>) -> Result<Fake> {
    scan_and_place(call)
}

fn topk(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(place) {
        let k = call.size("k")?;
        let most = (&*size - &k)?;
        if !call.env().at_least(&most, 0)? {
            return Err(fx_core::Error::msg(format_args!("topk: {k} of {size}")));
        }
        *size = k;
    }
    let places = tensor(shape.clone(), Some(DType::I64));
    Ok(Fake::Tuple(vec![tensor(shape, x.dtype), places]))
}

/// The mean or the sum is a number, otherwise there is one per element.
fn loss(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b) = (x(call)?, call.tensor("target")?);
    let shape = call.broadcast(&[&a.shape, &b.shape])?;
    let dtype = a.dtype.zip(b.dtype).map(|(a, b)| a.promote(b));
    let dtype = fractional(dtype);
    Ok(match call.text("reduction")? {
        "none" => tensor(shape, dtype),
        _ => tensor(Vec::new(), dtype),
    })
}

fn loss_of_three(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (a, b, target) = (
        call.tensor("x1")?,
        call.tensor("x2")?,
        call.tensor("target")?,
    );
    let shape = call.broadcast(&[&a.shape, &b.shape, &target.shape])?;
    let dtype = a.dtype.zip(b.dtype).map(|(a, b)| a.promote(b));
    Ok(match call.text("reduction")? {
        "none" => tensor(shape, dtype),
        _ => tensor(Vec::new(), dtype),
    })
}

/// One number per place of the classes' dim.
fn class_loss(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, target) = (x(call)?, call.tensor("target")?);
    let mut shape = x.shape.clone();
    if !shape.is_empty() {
        shape.remove(usize::from(shape.len() > 1));
    }
    if target.shape.len() == shape.len() {
        for (size, other) in shape.iter().zip(&target.shape) {
            call.same(size, other, || {
                format!("the shapes {:?} and {:?} do not fit", x.shape, target.shape)
            })?;
        }
    }
    Ok(match call.text("reduction")? {
        "none" => tensor(shape, x.dtype),
        _ => tensor(Vec::new(), x.dtype),
    })
}
