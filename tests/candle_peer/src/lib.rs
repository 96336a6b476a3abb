//! Candle's loading of weights from a mapped file, to compare with; the one place with `unsafe`, which candle asks for.

use std::path::Path;

use candle_core::{DType, Device, Result};
use candle_nn::VarBuilder;

/// The weights of a safetensors file in `float32`, mapped into memory as candle's examples do it.
///
/// # Errors
/// When the file cannot be mapped, or is not a safetensors file.
#[allow(
    unsafe_code,
    reason = "candle maps the file, whose contents may change under it"
)]
pub fn mapped(file: &Path) -> Result<VarBuilder<'static>> {
    // SAFETY: who measures with this writes the file beforehand, and nobody writes it meanwhile.
    unsafe { VarBuilder::from_mmaped_safetensors(&[file], DType::F32, &Device::Cpu) }
}
