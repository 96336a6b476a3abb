//! Weights of a module: set by name, loaded from checkpoints of every kind, saved as safetensors.
//!
//! [`load`] and [`save`] take one file; [`Checkpoint`] reads sharded files, PyTorch's and GGUF
//! files, with other names or in part; [`Save`] writes other types and shards.
//!
//! Invariant: everything is checked before anything is changed, so that a refused load has changed
//! nothing.

mod checkpoint;
mod materialise;
mod nested;
mod part;
mod pickle;
mod place;
mod pt2;
mod pth;
mod report;
mod save;
mod state;
mod stored;

use std::path::Path as FilePath;

use fx_core::Result;
use fx_core::module::Component;

use crate::tensor::Tensor;

pub use checkpoint::{Checkpoint, Progress};
pub use materialise::Materialise;
pub use pt2::exported_dtype;
pub use report::{Mismatched, Missing, Report};
pub use save::Save;
pub use state::load_state_dict;

/// Loads a checkpoint into a module, like [`Checkpoint::load`]: each tensor is read straight into
/// the module's memory, in the module's type. The file's header is checked against its length, and
/// its names and shapes against the module's, before anything is read.
///
/// ```
/// use fx_nn::prelude::*;
/// let (mut layer, other) = (nn::Linear::new(4, 4)?, nn::Linear::new(4, 4)?);
/// let path = std::env::temp_dir().join(format!("fx_doc_weights_{}.safetensors", std::process::id()));
/// fx_nn::weights::save(&other, &path)?;
/// fx_nn::weights::load(&mut layer, &path)?;
/// # std::fs::remove_file(&path).map_err(Error::other)?;
/// assert_eq!(layer.weight.to_vec()?, other.weight.to_vec()?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`Checkpoint::open`] and [`Checkpoint::load`].
pub fn load(module: &mut (impl Component + ?Sized), path: impl AsRef<FilePath>) -> Result<()> {
    Checkpoint::open(path)?.load(module)
}

/// Like [`load`], for a file that may also have tensors of `int8` or `uint16`, read as by
/// [`Checkpoint::widen`].
///
/// # Errors
/// Returns the errors of [`load`], which refuses such tensors.
pub fn load_widened(
    module: &mut (impl Component + ?Sized),
    path: impl AsRef<FilePath>,
) -> Result<()> {
    Checkpoint::open(path)?.widen().load(module)
}

/// Saves tensors by name as a safetensors file, which [`Checkpoint`] reads.
///
/// # Errors
/// Returns an error if a tensor is symbolic, or the file cannot be written.
pub fn save_tensors(
    tensors: impl IntoIterator<Item = (String, Tensor)>,
    path: impl AsRef<FilePath>,
) -> Result<()> {
    Save::new().write_tensors(tensors.into_iter(), path.as_ref())
}

/// Saves a module's parameters and persistent buffers as a safetensors file, tensor by tensor, as
/// [`Save::write`] does. A symbolic link stays one, and its target is written.
///
/// # Errors
/// Returns an error if the file cannot be written, or if a path of the module leads to two tensors.
/// A path that exists and is not a file is left unchanged.
pub fn save(module: &(impl Component + ?Sized), path: impl AsRef<FilePath>) -> Result<()> {
    Save::new().write(module, path)
}
