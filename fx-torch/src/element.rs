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
