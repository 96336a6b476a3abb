//! `Save`: how a module's tensors are written, to one file or to several with an index.
//!
//! Invariant: an index does not name files of a previous save that the new one does not have.

use std::collections::HashSet;
use std::path::Path as FilePath;

use fx_core::__private::{Outgoing, Prepared};
use fx_core::module::{Component, ComponentExt};
use fx_core::tensor::Object;
use fx_core::value::{DType, Value};
use fx_core::{Error, Result};
use serde_json::{Map, json};

use super::checkpoint::in_file;
use crate::tensor::{Tensor, candle_dtype};

/// How a module's parameters and buffers are saved as safetensors: the element type of floats, and the size of files.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::weights::{Checkpoint, Save};
/// let layer = nn::Linear::new(64, 64)?;
/// let folder = std::env::temp_dir().join(format!("fx_doc_save_{}", std::process::id()));
/// Save::new().dtype(DType::BF16).max_shard_size(4096).write(&layer, &folder)?;
/// // `model-00001-of-00002.safetensors`, `model-00002-of-00002.safetensors` and `model.safetensors.index.json`
/// assert_eq!(std::fs::read_dir(&folder).map_err(Error::other)?.count(), 3);
/// assert_eq!(Checkpoint::open(&folder)?.tensor("weight")?.dtype()?, DType::BF16);
/// # std::fs::remove_dir_all(&folder).map_err(Error::other)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Save {
    dtype: Option<DType>,
    max_shard_size: Option<u64>,
}

impl Save {
    /// One file, every tensor in its own type.
    pub fn new() -> Self {
        Save::default()
    }

    /// The type that floats are saved in; integers and truth values keep theirs.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// Writes several files of at most so many bytes of tensors into a folder, with an index beside
    /// them. A larger tensor gets a file of its own. If everything fits into one file, there is no
    /// index.
    pub fn max_shard_size(mut self, bytes: u64) -> Self {
        self.max_shard_size = Some(bytes);
        self
    }

    /// Writes a module's parameters and persistent buffers to a file, or to a folder if shards have
    /// a size. A tensor with several names is written once, under its first one: any of them sets it. A symbolic link to a
    /// file stays one.
    ///
    /// # Errors
    /// Returns an error if the type is not a float type of candle, a path of the module leads to
    /// two tensors, or a file cannot be written. Each file is replaced in one step, the index last.
    pub fn write(
        &self,
        module: &(impl Component + ?Sized),
        path: impl AsRef<FilePath>,
    ) -> Result<()> {
        let path = path.as_ref();
        module.check_paths()?;
        if let Some(dtype) = self.dtype
            && (!dtype.is_floating_point() || candle_dtype(dtype).is_err())
        {
            let problem = format!("floats cannot be saved as {dtype}: give a floating point type");
            return Err(in_file(path, &problem));
        }
        let state = module.state_dict().into_iter();
        let mut written = HashSet::new();
        self.write_tensors(
            state.filter_map(|(name, value)| {
                let tensor = value.downcast_ref::<Tensor>()?;
                let is_new = tensor.object_id().is_none_or(|id| written.insert(id));
                is_new.then(|| (name, tensor.clone()))
            }),
            path,
        )
    }

    /// Like [`write`](Save::write), for tensors by name.
    pub(super) fn write_tensors(
        &self,
        tensors: impl Iterator<Item = (String, Tensor)>,
        path: &FilePath,
    ) -> Result<()> {
        let tensors = tensors.map(|(name, tensor)| {
            let outgoing = self.outgoing(&tensor);
            let outgoing = outgoing.map_err(|e| in_file(path, &format_args!("`{name}`: {e}")))?;
            Ok((name, outgoing))
        });
        let tensors = tensors.collect::<Result<_>>()?;
        match self.max_shard_size {
            None => prepared(tensors).map_err(|e| in_file(path, &e))?.save(path),
            Some(size) => shards(tensors, size, path),
        }
    }

    fn outgoing(&self, tensor: &Tensor) -> Result<Outgoing> {
        let own = tensor.dtype()?;
        match self.dtype {
            Some(dtype) if own.is_floating_point() && dtype != own => {
                Outgoing::cast(tensor, dtype, cast)
            }
            _ => Outgoing::of(tensor),
        }
    }
}

fn cast(tensor: &dyn Object, dtype: DType) -> Result<Value> {
    let tensor: &dyn std::any::Any = tensor;
    match tensor.downcast_ref::<Tensor>() {
        Some(tensor) => Ok(Value::object(tensor.detach()?.cast(dtype)?)),
        None => Err(Error::msg(
            "only a tensor of fx-nn is saved in another type",
        )),
    }
}

/// A file with the metadata that PyTorch's libraries expect.
fn prepared(tensors: Vec<(String, Outgoing)>) -> Result<Prepared> {
    Prepared::new(tensors, Some(("format", "pt".to_string())))
}

fn shards(tensors: Vec<(String, Outgoing)>, size: u64, folder: &FilePath) -> Result<()> {
    let mut files: Vec<Vec<(String, Outgoing)>> = vec![Vec::new()];
    let (mut filled, mut total) = (0u64, 0u64);
    for (name, tensor) in tensors {
        let bytes = tensor.byte_len() as u64;
        let last = files.last_mut().expect("there is always a file to fill");
        if filled + bytes > size && !last.is_empty() {
            files.push(vec![(name, tensor)]);
            filled = bytes;
        } else {
            last.push((name, tensor));
            filled += bytes;
        }
        total += bytes;
    }
    std::fs::create_dir_all(folder).map_err(|e| in_file(folder, &e))?;
    let count = files.len();
    let mut map = Map::new();
    let index = folder.join("model.safetensors.index.json");
    for (at, tensors) in files.into_iter().enumerate() {
        let file = match count {
            1 => "model.safetensors".to_string(),
            _ => format!("model-{:05}-of-{count:05}.safetensors", at + 1),
        };
        for (name, _) in &tensors {
            map.insert(name.clone(), file.clone().into());
        }
        let path = folder.join(file);
        prepared(tensors)
            .map_err(|e| in_file(&path, &e))?
            .save(&path)?;
    }
    if count == 1 {
        // The index of a previous save would be found before the file.
        return match std::fs::remove_file(&index) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(in_file(&index, &e)),
            _ => Ok(()),
        };
    }
    let text = json!({ "metadata": { "total_size": total }, "weight_map": map });
    let text = serde_json::to_string_pretty(&text).map_err(|e| in_file(&index, &e))?;
    std::fs::write(&index, text).map_err(|e| in_file(&index, &e))
}
