//! Weights of a module: set by name, loaded from and saved to safetensors files.
//!
//! Invariant: a load that fails has changed nothing.

use std::any::Any;
use std::collections::HashMap;
use std::path::Path as FilePath;

use fx_core::{
    Component, ComponentExt, DType, Error, ErrorKind, Object, Result, TensorKind, VisitorMut,
    walk_mut,
};
use indexmap::IndexMap;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::error::Fx;
use crate::tensor::Tensor;

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
    module.check_paths()?;
    let own = module.state_dict();
    let mut problems = Vec::new();
    let mut ids_given: HashMap<u64, &Tensor> = HashMap::new();
    for (name, value) in state {
        let Some(object) = own.get(name).and_then(|v| v.as_object()) else {
            problems.push(format!("`{name}` is in the file but not in the model"));
            continue;
        };
        let (expected, found) = (object.shape().unwrap_or(&[]), value.dims()?);
        if expected != found {
            problems.push(format!(
                "`{name}` has shape {found:?} in the file and {expected:?} in the model"
            ));
        }
        if let Some(id) = object.object_id() {
            ids_given.insert(id, value);
        }
    }
    for (name, value) in &own {
        let id = value.as_object().and_then(|o| o.object_id());
        if !state.contains_key(name) && !id.is_some_and(|id| ids_given.contains_key(&id)) {
            let shape = value
                .as_object()
                .and_then(|o| o.shape().map(<[usize]>::to_vec));
            problems.push(format!(
                "`{name}` of shape {:?} is in the model but not in the file",
                shape.unwrap_or_default()
            ));
        }
    }
    if !problems.is_empty() {
        return Err(weights(problems.join("\n")));
    }

    struct Load<'s> {
        given: HashMap<u64, &'s Tensor>,
        done: HashMap<u64, Tensor>,
        problem: Result<()>,
    }
    impl VisitorMut for Load<'_> {
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
            let Some(source) = self.given.get(&id) else {
                return;
            };
            match tensor.copy_from(source) {
                Ok(()) => {
                    self.done.insert(id, tensor.clone());
                }
                Err(error) if self.problem.is_ok() => {
                    self.problem = Err(weights(format!("`{path}`: {error}")));
                }
                Err(_) => {}
            }
        }
    }
    let mut load = Load {
        given: ids_given,
        done: HashMap::new(),
        problem: Ok(()),
    };
    walk_mut(module, &mut load);
    load.problem
}

/// Loads a safetensors file into a module.
///
/// # Errors
/// When the file cannot be read or is no safetensors file, and as [`load_state_dict`].
pub fn load(module: &mut (impl Component + ?Sized), path: impl AsRef<FilePath>) -> Result<()> {
    let path = path.as_ref();
    let in_file = |text: String| weights(format!("{}: {text}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| in_file(e.to_string()))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| in_file(e.to_string()))?;
    let mut state = IndexMap::new();
    for (name, view) in file.iter() {
        let tensor = from_view(&view).map_err(|e| in_file(format!("`{name}`: {e}")))?;
        state.insert(name.to_string(), tensor);
    }
    load_state_dict(module, &state).map_err(|e| in_file(format!("\n{e}")))
}

/// Saves a module's parameters and buffers as a safetensors file. A symbolic link stays one, and the file that it leads to
/// gets the contents.
///
/// # Errors
/// When the file cannot be written, and when a path of the module leads to two tensors. What is there and no file is left
/// as it is.
pub fn save(module: &(impl Component + ?Sized), path: impl AsRef<FilePath>) -> Result<()> {
    let path = path.as_ref();
    module.check_paths()?;
    let mut held: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    for (name, value) in module.state_dict() {
        let Some(tensor) = value.downcast_ref::<Tensor>() else {
            continue;
        };
        let (dtype, bytes) = to_bytes(tensor)?;
        held.push((name, dtype, tensor.dims()?.to_vec(), bytes));
    }
    let views = held
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            TensorView::new(*dtype, shape.clone(), bytes)
                .map(|view| (name.as_str(), view))
                .map_err(|e| weights(format!("`{name}`: {e}")))
        })
        .collect::<Result<Vec<_>>>()?;
    let in_file = |e: &dyn std::fmt::Display| weights(format!("{}: {e}", path.display()));
    let bytes = safetensors::serialize(views, None).map_err(|e| in_file(&e))?;
    fx_core::__private::write_file(path, &bytes)
}

fn from_view(view: &TensorView<'_>) -> Result<Tensor> {
    fn decode<const N: usize, T>(bytes: &[u8], number: fn([u8; N]) -> T) -> Vec<T> {
        bytes
            .chunks_exact(N)
            .filter_map(|chunk| chunk.try_into().ok())
            .map(number)
            .collect()
    }
    let (bytes, shape) = (view.data(), view.shape().to_vec());
    match view.dtype() {
        Dtype::F32 => Tensor::from_vec(decode(bytes, f32::from_le_bytes), shape),
        Dtype::F64 => Tensor::from_vec(decode(bytes, f64::from_le_bytes), shape),
        Dtype::I64 => Tensor::from_vec(decode(bytes, i64::from_le_bytes), shape),
        Dtype::U32 => Tensor::from_vec(decode(bytes, u32::from_le_bytes), shape),
        Dtype::U8 => Tensor::from_vec(bytes.to_vec(), shape),
        Dtype::BOOL => {
            let data = candle_core::Tensor::from_vec(
                bytes.iter().map(|b| u8::from(*b != 0)).collect::<Vec<u8>>(),
                shape,
                &candle_core::Device::Cpu,
            );
            data.map(Tensor::from_bools).fx()
        }
        other => Err(weights(format!("element type {other:?} is not supported"))),
    }
}

fn to_bytes(tensor: &Tensor) -> Result<(Dtype, Vec<u8>)> {
    macro_rules! encode {
        ($t:ty) => {
            tensor
                .candle()?
                .flatten_all()
                .and_then(|t| t.to_vec1::<$t>())
                .fx()?
                .into_iter()
                .flat_map(<$t>::to_le_bytes)
                .collect()
        };
    }
    Ok(match tensor.dtype()? {
        DType::F32 => (Dtype::F32, encode!(f32)),
        DType::F64 => (Dtype::F64, encode!(f64)),
        DType::I64 => (Dtype::I64, encode!(i64)),
        DType::U32 => (Dtype::U32, encode!(u32)),
        DType::U8 => (Dtype::U8, encode!(u8)),
        DType::Bool => (Dtype::BOOL, encode!(u8)),
        other => {
            return Err(weights(format!("element type {other} cannot be saved yet")));
        }
    })
}
