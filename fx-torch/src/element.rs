//! PyTorch's numbers of element types.

use fx_nn::value::DType;
use fx_nn::{Error, Result};

/// The element type of a number.
///
/// # Errors
/// Returns an error if fx has no such elements.
pub(crate) fn dtype(code: u64) -> Result<DType> {
    fx_nn::weights::exported_dtype(code)
        .map_err(|name| Error::msg(format_args!("fx has no element type for {name}")))
}

/// The name of a number that stands for complex elements: rules of complex tensors know it, and others refuse it.
pub(crate) fn complex(code: u64) -> Option<&'static str> {
    match code {
        10 => Some("complex64"),
        11 => Some("complex128"),
        _ => None,
    }
}
