//! Setting the tensors of a module by name.
//!
//! Invariant: the given tensors are compared with the module before anything is changed.

use std::any::Any;
use std::collections::{HashMap, HashSet};

use fx_core::module::{Component, ComponentExt, TensorKind, VisitorMut, walk_mut};
use fx_core::tensor::Object;
use fx_core::value::{DType, Value};
use fx_core::{ErrorKind, Result};
use indexmap::IndexMap;

use super::report::{Mismatched, Missing, Report};
use crate::error::Fx;
use crate::tensor::Tensor;

/// Sets every parameter and buffer of a module by name; dtypes are converted to the module's.
///
/// A tensor with several names is set by any of them. The count of batches of a batch norm may be missing, as in
/// PyTorch: it stays what it is.
///
/// # Errors
/// Returns an error if a tensor is missing, unknown, or of a different shape, or if a path of the
/// module leads to two tensors. The module is unchanged then.
pub fn load_state_dict(
    module: &mut (impl Component + ?Sized),
    state: &IndexMap<String, Tensor>,
) -> Result<()> {
    let mut given = IndexMap::with_capacity(state.len());
    for (name, value) in state {
        given.insert(name.as_str(), value.dims()?);
    }
    let (names, report) = fit(module, &given)?;
    report.strict()?;
    let apart = apart(module, state)?;
    set(module, &names, |name, own| {
        own.copy_from(apart.get(name).unwrap_or(&state[name]))
    })
}

/// Copies of the given tensors that are the module's own, by name: setting one must not change what
/// another is set to.
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
    let own = own.filter(|tensor| tensor.as_fake().is_none());
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

/// The name that sets each tensor of a module, by the tensor's id, and how the given tensors, of
/// these shapes, fit.
///
/// # Errors
/// Returns an error if a path of the module leads to two things.
pub(super) fn fit<'g>(
    module: &(impl Component + ?Sized),
    given: &IndexMap<&'g str, &[usize]>,
) -> Result<(HashMap<u64, &'g str>, Report)> {
    module.check_paths()?;
    let own = module.state_dict();
    let mut report = Report::default();
    let mut names: HashMap<u64, &str> = HashMap::new();
    for (name, found) in given {
        let Some(object) = own.get(*name).and_then(|v| v.as_object()) else {
            report.unexpected.push((*name).to_string());
            continue;
        };
        let expected = object.shape().unwrap_or(&[]);
        if expected != *found {
            report.mismatched.push(Mismatched {
                name: (*name).to_string(),
                found: found.to_vec(),
                expected: expected.to_vec(),
            });
        } else if let Some(id) = object.object_id() {
            names.insert(id, name);
        }
    }
    for (name, value) in &own {
        let object = value.as_object();
        let id = object.and_then(|o| o.object_id());
        let is_set = id.is_some_and(|id| names.contains_key(&id));
        if !is_set && !given.contains_key(name.as_str()) && !is_count(name, &own) {
            let shape = object.and_then(|o| o.shape().map(<[usize]>::to_vec));
            report.missing.push(Missing {
                name: name.clone(),
                shape: shape.unwrap_or_default(),
            });
        }
    }
    Ok((names, report))
}

/// Whether a name is that of the count of batches beside running statistics. Checkpoints of PyTorch before 0.4.1 and of
/// candle do not have it, and the statistics do not depend on it.
fn is_count(name: &str, own: &IndexMap<String, Value>) -> bool {
    name.strip_suffix(COUNT).is_some_and(|path| {
        (path.is_empty() || path.ends_with('.')) && own.contains_key(&format!("{path}running_mean"))
    })
}

/// The name of the count of batches.
const COUNT: &str = "num_batches_tracked";

/// Sets the tensors of a module, each once.
pub(super) fn set(
    module: &mut (impl Component + ?Sized),
    names: &HashMap<u64, &str>,
    read: impl FnMut(&str, &mut Tensor) -> Result<()>,
) -> Result<()> {
    struct Load<'s, F> {
        names: &'s HashMap<u64, &'s str>,
        read: F,
        done: HashMap<u64, Tensor>,
        problem: Result<()>,
    }
    impl<F: FnMut(&str, &mut Tensor) -> Result<()>> VisitorMut for Load<'_, F> {
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
                // A count that no checkpoint has begins at 0.
                if path.ends_with(COUNT) && tensor.as_fake().is_some() {
                    match tensor
                        .dims()
                        .and_then(|dims| Tensor::full(dims, 0, DType::I64))
                    {
                        Ok(zero) => *tensor = zero,
                        Err(error) => self.problem = Err(error),
                    }
                }
                return;
            };
            if self.problem.is_err() {
                return;
            }
            match (self.read)(name, tensor) {
                Ok(()) => {
                    self.done.insert(id, tensor.clone());
                }
                Err(error) => {
                    let problem = ErrorKind::Weights(format!("`{path}`: {error}"));
                    self.problem = Err(problem.into());
                }
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
