//! Weights of a module: set by name, loaded from and saved to safetensors files.
//!
//! Invariant: everything is checked before anything is changed, so that a load that is refused has changed nothing.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path as FilePath;

use fx_core::__private::{Container, Outgoing, Prepared};
use fx_core::module::{Component, ComponentExt, TensorKind, VisitorMut, walk_mut};
use fx_core::tensor::{Object, TensorData};
use fx_core::value::DType;
use fx_core::{Error, ErrorKind, Result};
use indexmap::IndexMap;

use crate::error::Fx;
use crate::tensor::saved::PATH;
use crate::tensor::{Tensor, candle_dtype, wider};

fn weights(text: String) -> Error {
    ErrorKind::Weights(text).into()
}

/// Sets every parameter and buffer of a module by name; dtypes are converted to the module's.
///
/// A tensor with several names is set by any of them.
///
/// # Errors
/// Every tensor that is missing, unknown, or of another shape; and when a path of the module leads to two of them. The
/// module is unchanged then.
pub fn load_state_dict(
    module: &mut (impl Component + ?Sized),
    state: &IndexMap<String, Tensor>,
) -> Result<()> {
    let mut given = IndexMap::with_capacity(state.len());
    for (name, value) in state {
        given.insert(name.as_str(), value.dims()?);
    }
    let names = names(module, &given)?;
    let apart = apart(module, state)?;
    set(module, &names, |name, own| {
        own.copy_from(apart.get(name).unwrap_or(&state[name]))
    })
}

/// Copies of the tensors that are the module's own, under whatever names: setting one must not change what another is
/// set to.
fn apart<'s>(
    module: &(impl Component + ?Sized),
    state: &'s IndexMap<String, Tensor>,
) -> Result<HashMap<&'s str, Tensor>> {
    let place = |tensor: &Tensor| -> Result<usize> {
        let (storage, _) = tensor.candle()?.storage_and_layout();
        Ok(std::ptr::from_ref(&*storage).addr())
    };
    let own = module.state_dict();
    let own = own.values().filter_map(|v| v.downcast_ref::<Tensor>());
    let own: HashSet<usize> = own.map(place).collect::<Result<_>>()?;
    let mut apart = HashMap::new();
    for (name, value) in state {
        if own.contains(&place(value)?) {
            let copy = value.candle()?.copy().fx()?;
            apart.insert(name.as_str(), value.with_data(copy));
        }
    }
    Ok(apart)
}

/// The name that each tensor of a module is set by, by the tensor's id, once what is given was found to fit: tensors of
/// these shapes.
fn names<'g>(
    module: &(impl Component + ?Sized),
    given: &IndexMap<&'g str, &[usize]>,
) -> Result<HashMap<u64, &'g str>> {
    module.check_paths()?;
    let own = module.state_dict();
    let mut problems = Vec::new();
    let mut names: HashMap<u64, &str> = HashMap::new();
    for (name, found) in given {
        let Some(object) = own.get(*name).and_then(|v| v.as_object()) else {
            problems.push(format!("`{name}` is in the file but not in the model"));
            continue;
        };
        let expected = object.shape().unwrap_or(&[]);
        if expected != *found {
            problems.push(format!(
                "`{name}` has shape {found:?} in the file and {expected:?} in the model"
            ));
        }
        if let Some(id) = object.object_id() {
            names.insert(id, name);
        }
    }
    for (name, value) in &own {
        let id = value.as_object().and_then(|o| o.object_id());
        let is_set = id.is_some_and(|id| names.contains_key(&id));
        if !is_set && !given.contains_key(name.as_str()) {
            let shape = value
                .as_object()
                .and_then(|o| o.shape().map(<[usize]>::to_vec));
            problems.push(format!(
                "`{name}` of shape {:?} is in the model but not in the file",
                shape.unwrap_or_default()
            ));
        }
    }
    match problems.is_empty() {
        true => Ok(names),
        false => Err(weights(problems.join("\n"))),
    }
}

/// Sets the tensors of a module, each once.
fn set(
    module: &mut (impl Component + ?Sized),
    names: &HashMap<u64, &str>,
    read: impl Fn(&str, &mut Tensor) -> Result<()>,
) -> Result<()> {
    struct Load<'s, F> {
        names: &'s HashMap<u64, &'s str>,
        read: F,
        done: HashMap<u64, Tensor>,
        problem: Result<()>,
    }
    impl<F: Fn(&str, &mut Tensor) -> Result<()>> VisitorMut for Load<'_, F> {
        fn tensor(&mut self, path: &str, _: TensorKind, tensor: &mut dyn Object) {
            let any: &mut dyn Any = tensor;
            let Some(tensor) = any.downcast_mut::<Tensor>() else {
                return;
            };
            let Some(id) = tensor.object_id() else {
                return;
            };
            if let Some(done) = self.done.get(&id) {
                *tensor = done.clone();
                return;
            }
            let Some(name) = self.names.get(&id) else {
                return;
            };
            if self.problem.is_err() {
                return;
            }
            match (self.read)(name, tensor) {
                Ok(()) => {
                    self.done.insert(id, tensor.clone());
                }
                Err(error) => self.problem = Err(weights(format!("`{path}`: {error}"))),
            }
        }
    }
    let mut load = Load {
        names,
        read,
        done: HashMap::new(),
        problem: Ok(()),
    };
    walk_mut(module, &mut load);
    load.problem
}

/// Loads a safetensors file into a module: each tensor straight into the memory that the module has for it. The file's
/// header is checked against its length, and its names and shapes against the module's, before anything is read.
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
/// When the file cannot be read or is no whole safetensors file, it has elements of a type that candle has not
/// ([`load_widened`] reads some of them), and as [`load_state_dict`]: the module is unchanged then. Where the disk fails
/// in the middle of a file that was whole when it was opened, the error names the tensor; those before it are set.
pub fn load(module: &mut (impl Component + ?Sized), path: impl AsRef<FilePath>) -> Result<()> {
    load_as(module, path.as_ref(), |tensor| {
        let wide = match candle_dtype(tensor.dtype()) {
            Ok(_) => return Ok(tensor),
            Err(error) => wider(tensor.dtype()).ok_or(error)?,
        };
        Err(Error::msg(format_args!(
            "candle has no element type for {}: `weights::load_widened` reads it as {wide}",
            tensor.dtype()
        )))
    })
}

/// As [`load`], of a file that may have tensors of `int8` or `uint16` too. Candle has no such tensors: they are read as
/// `int16` and `int32`, which have the same numbers, and become of the type of the module's tensor, as all others do.
///
/// # Errors
/// As [`load`], which refuses such tensors.
pub fn load_widened(
    module: &mut (impl Component + ?Sized),
    path: impl AsRef<FilePath>,
) -> Result<()> {
    load_as(module, path.as_ref(), widened)
}

/// The elements of a type that candle has not, as they are asked for, as those of a wider type.
fn widened(tensor: TensorData<'_>) -> Result<TensorData<'_>> {
    let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
    let Some(wide) = wider(dtype) else {
        return candle_dtype(dtype).map(|_| tensor);
    };
    TensorData::streamed(PATH, wide, shape, move |sink| {
        tensor.for_each_chunk(&mut |bytes| {
            let wide: Vec<u8> = match dtype {
                DType::I8 => {
                    let elements = bytes.iter().map(|byte| i16::from(byte.cast_signed()));
                    elements.flat_map(i16::to_le_bytes).collect()
                }
                _ => {
                    let elements = bytes.as_chunks().0.iter();
                    let elements = elements.map(|bytes| i32::from(u16::from_le_bytes(*bytes)));
                    elements.flat_map(i32::to_le_bytes).collect()
                }
            };
            sink(&wide)
        })
    })
}

/// Loads a file's tensors, as what `held` makes of them or with its error.
fn load_as(
    module: &mut (impl Component + ?Sized),
    path: &FilePath,
    held: impl for<'f> Fn(TensorData<'f>) -> Result<TensorData<'f>>,
) -> Result<()> {
    let in_file = |text: String| weights(format!("{}: {text}", path.display()));
    let file = File::open(path).map_err(|e| in_file(e.to_string()))?;
    let file = Container::open(file).map_err(|e| in_file(e.to_string()))?;
    let mut tensors: IndexMap<&str, TensorData<'_>> = IndexMap::new();
    for name in file.names() {
        let tensor = file.tensor(name, PATH).and_then(&held);
        let tensor = tensor.map_err(|e| in_file(format!("`{name}`: {e}")))?;
        tensors.insert(name, tensor);
    }
    let given = tensors.iter().map(|(name, data)| (*name, data.shape()));
    let names = names(module, &given.collect()).map_err(|e| in_file(format!("\n{e}")))?;
    set(module, &names, |name, own| own.read_from(&tensors[name]))
        .map_err(|e| in_file(e.to_string()))
}

/// Saves a module's parameters and buffers as a safetensors file, tensor by tensor. A symbolic link stays one, and the
/// file that it leads to gets the contents.
///
/// # Errors
/// When the file cannot be written, and when a path of the module leads to two tensors. What is there and no file is left
/// as it is.
pub fn save(module: &(impl Component + ?Sized), path: impl AsRef<FilePath>) -> Result<()> {
    let path = path.as_ref();
    let in_file = |text: String| weights(format!("{}: {text}", path.display()));
    module.check_paths()?;
    let mut tensors = Vec::new();
    for (name, value) in module.state_dict() {
        let Some(tensor) = value.downcast_ref::<Tensor>() else {
            continue;
        };
        let tensor = Outgoing::of(tensor).map_err(|e| in_file(format!("`{name}`: {e}")))?;
        tensors.push((name, tensor));
    }
    let file = Prepared::new(tensors, None).map_err(|e| in_file(e.to_string()))?;
    file.save(path)
}
