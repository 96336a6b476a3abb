//! In.
use fx_nn::prelude::*;
use bytes::Bytes;
/// What was read.
#[derive(Debug)]
pub struct Import { /// The module.
 pub module: GraphModule }
/// Reads bytes.
/// # Errors
/// stub
pub fn from_bytes(_: &Bytes) -> Result<Import> { Err(Error::msg("stub")) }
/// Reads a file.
/// # Errors
/// stub
pub fn load(_: impl AsRef<std::path::Path>) -> Result<Import> { Err(Error::msg("stub")) }
