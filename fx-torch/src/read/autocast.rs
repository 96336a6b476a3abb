//! Regions of `torch.autocast`: which operators compute in the lower element type, and which in single precision.
//!
//! Invariant: the lists are PyTorch's of the CPU; a region of another device is refused.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::memory::Memory;
use super::values::argument;
use crate::call::{Call, element_type};
use crate::rules;
use crate::schema::NamedArgument;

/// Operators whose tensors are cast to the region's element type.
const LOWER: [&str; 21] = [
    "aten._convolution",
    "aten.addbmm",
    "aten.addmm",
    "aten.baddbmm",
    "aten.bmm",
    "aten.chain_matmul",
    "aten.conv1d",
    "aten.conv2d",
    "aten.conv3d",
    "aten.conv_tbc",
    "aten.conv_transpose1d",
    "aten.conv_transpose2d",
    "aten.conv_transpose3d",
    "aten.convolution",
    "aten.linalg_multi_dot",
    "aten.linalg_vecdot",
    "aten.linear",
    "aten.matmul",
    "aten.mm",
    "aten.prelu",
    "aten.scaled_dot_product_attention",
];

/// Operators whose tensors are cast to single precision.
const SINGLE: [&str; 40] = [
    "aten.avg_pool3d",
    "aten.binary_cross_entropy",
    "aten.cdist",
    "aten.cholesky",
    "aten.cosine_embedding_loss",
    "aten.cross_entropy_loss",
    "aten.ctc_loss",
    "aten.fft_fft",
    "aten.fft_ifft",
    "aten.fft_irfft",
    "aten.fft_rfft",
    "aten.grid_sampler",
    "aten.grid_sampler_2d",
    "aten.grid_sampler_3d",
    "aten.hinge_embedding_loss",
    "aten.huber_loss",
    "aten.inverse",
    "aten.kl_div",
    "aten.l1_loss",
    "aten.linalg_inv",
    "aten.linalg_matrix_norm",
    "aten.linalg_norm",
    "aten.linalg_solve",
    "aten.margin_ranking_loss",
    "aten.mse_loss",
    "aten.multi_margin_loss",
    "aten.multilabel_margin_loss",
    "aten.nanquantile",
    "aten.nll_loss",
    "aten.pinverse",
    "aten.poisson_nll_loss",
    "aten.polar",
    "aten.prod",
    "aten.quantile",
    "aten.smooth_l1_loss",
    "aten.soft_margin_loss",
    "aten.stft",
    "aten.trace",
    "aten.triplet_margin_loss",
    "aten.view_as_complex",
];

/// Operators whose tensors are cast to the widest type among them.
const WIDEST: [&str; 3] = ["aten.cat", "aten.index_copy", "aten.stack"];

/// The element type that a region computes in, where that is another than its operators'.
///
/// # Errors
/// Returns an error if the region is of another device than the CPU.
pub(super) fn of_region(inputs: &[NamedArgument], around: Option<DType>) -> Result<Option<DType>> {
    let mut none = Memory::default();
    let values = inputs.iter().map(|input| argument(&input.arg, &mut none));
    let values = values.collect::<Result<Vec<Value>>>()?;
    match values.as_slice() {
        [Value::Str(device), _, Value::Bool(false), ..] => match &**device {
            "cpu" => Ok(None),
            _ => Ok(around),
        },
        [Value::Str(device), dtype, Value::Bool(true), ..] => match (&**device, dtype) {
            ("cpu", Value::DType(dtype)) => Ok(Some(*dtype)),
            ("cpu", _) => Ok(Some(DType::BF16)),
            _ => Err(Error::msg(format_args!(
                "`torch.autocast` for `{device}`, whose operators have other element types: export the model on the CPU"
            ))),
        },
        _ => Err(Error::msg("`torch.autocast` has other arguments")),
    }
}

/// The same call on tensors of the type that it has in a region.
///
/// # Errors
/// Returns an error if a tensor cannot be cast.
pub(super) fn cast<'n>(mut call: Call<'n>, lower: DType) -> Result<Call<'n>> {
    let operator = rules::short(call.target).1;
    let is = |list: &[&str]| list.contains(&operator);
    let to = match () {
        () if is(&LOWER) => lower,
        () if is(&SINGLE) => DType::F32,
        () if is(&WIDEST) && is_any(&call, DType::F32) => DType::F32,
        () => return Ok(call),
    };
    for at in 0..call.args.len() {
        let known = call.dtypes.get(at).copied().flatten();
        let (_, value) = &mut call.args[at];
        match value {
            Value::List(items) | Value::Tuple(items) => {
                for item in items.iter_mut() {
                    *item = in_type(item, None, to)?;
                }
            }
            value => {
                let is_cast = is_half_or_single(value, known);
                *value = in_type(value, known, to)?;
                if let Some(slot) = call.dtypes.get_mut(at).filter(|_| is_cast) {
                    *slot = Some(to);
                }
            }
        }
    }
    Ok(call)
}

/// A value in an element type, if it is a tensor that a region casts.
fn in_type(value: &Value, known: Option<DType>, to: DType) -> Result<Value> {
    if !is_half_or_single(value, known) || known.or_else(|| element_type(value)) == Some(to) {
        return Ok(value.clone());
    }
    let own = Tensor::from_value(value.clone())?;
    Ok(Value::object(ops::to_dtype(&own, to)?))
}

/// Whether it is a tensor of halves or of single precision; a region leaves others.
fn is_half_or_single(value: &Value, known: Option<DType>) -> bool {
    let dtype = known.or_else(|| element_type(value));
    dtype.is_some_and(|dtype| [DType::F32, DType::F16, DType::BF16].contains(&dtype))
}

fn is_any(call: &Call<'_>, dtype: DType) -> bool {
    let mut all = Vec::new();
    for (_, value) in &call.args {
        match value {
            Value::List(items) | Value::Tuple(items) => all.extend(items.iter()),
            value => all.push(value),
        }
    }
    all.into_iter()
        .any(|value| element_type(value) == Some(dtype))
}
