//! The parameters of several modules as one.

use fx_core::module::{Component, ComponentExt, Visitor, walk};
use fx_core::trace::FromValue;
use fx_core::value::Value;
use fx_core::{Error, IndexMap, Result};

use crate::ops;
use crate::tensor::Tensor;

/// The parameters and the buffers of several modules of one structure, each stacked along a new
/// first dim: `torch.func.stack_module_state`.
///
/// ```
/// use fx_nn::func::{functional_call, stack_module_state};
/// use fx_nn::prelude::*;
/// let models = [nn::Linear::new(3, 2)?, nn::Linear::new(3, 2)?];
/// let (params, buffers) = stack_module_state(&[&models[0], &models[1]])?;
/// assert_eq!(params["weight"].dims()?, [2, 2, 3]);
/// assert!(buffers.is_empty());
///
/// // Each model of the ensemble, from the stacked parameters: gradients flow to these.
/// let x = Tensor::ones((1, 3))?;
/// for (i, model) in models.iter().enumerate() {
///     let own: IndexMap<&str, Tensor> =
///         params.iter().map(|(path, all)| Ok((path.as_str(), all.i(i)?))).collect::<Result<_>>()?;
///     let y: Tensor = functional_call(&models[0], &own, &x)?;
///     assert_eq!(y.to_vec()?, model.forward(&x)?.to_vec()?);
/// }
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// The paths are those of [`named_parameters`](ComponentExt::named_parameters) and
/// [`named_buffers`](ComponentExt::named_buffers). What is stacked is new, without a history; a
/// stack of parameters that are trained is one, too.
///
/// # Errors
/// Returns an error if there are no modules, their modes or the paths and shapes of their tensors
/// differ, a parameter is trained in some alone, or a tensor is no [`Tensor`] with data.
pub fn stack_module_state<M: Component + ?Sized>(
    modules: &[&M],
) -> Result<(IndexMap<String, Tensor>, IndexMap<String, Tensor>)> {
    let Some((first, others)) = modules.split_first() else {
        return Err(Error::msg("stack_module_state: there are no modules"));
    };
    let modes = modes(*first);
    if let Some(at) = others.iter().position(|other| self::modes(*other) != modes) {
        return Err(Error::msg(format_args!(
            "stack_module_state: module {} is of another structure or in another mode than module 0; call `train()` or `eval()` on all",
            at + 1
        )));
    }
    let parameters = modules.iter().map(|module| module.named_parameters());
    let buffers = modules.iter().map(|module| module.named_buffers());
    Ok((
        stacked(&parameters.collect::<Vec<_>>())?,
        stacked(&buffers.collect::<Vec<_>>())?,
    ))
}

/// The training flags of a module, by path.
fn modes(module: &(impl Component + ?Sized)) -> Vec<(String, bool)> {
    struct Modes(Vec<(String, bool)>);
    impl Visitor for Modes {
        fn training(&mut self, path: &str, training: bool) {
            self.0.push((path.to_string(), training));
        }
    }
    let mut modes = Modes(Vec::new());
    walk(module, &mut modes);
    modes.0
}

/// The tensors of each path as one.
fn stacked(all: &[IndexMap<String, Value>]) -> Result<IndexMap<String, Tensor>> {
    let Some((first, others)) = all.split_first() else {
        return Ok(IndexMap::new());
    };
    for (at, other) in others.iter().enumerate() {
        let lacks = |a: &IndexMap<String, Value>, b: &IndexMap<String, Value>| {
            a.keys().find(|path| !b.contains_key(*path)).cloned()
        };
        if let Some(path) = lacks(first, other).or_else(|| lacks(other, first)) {
            return Err(Error::msg(format_args!(
                "stack_module_state: module 0 and module {} have not both a tensor at `{path}`: all must be of one structure",
                at + 1
            )));
        }
    }
    let mut found = IndexMap::with_capacity(first.len());
    for path in first.keys() {
        let wrong = |problem: &dyn std::fmt::Display| {
            Error::msg(format_args!("stack_module_state: `{path}`: {problem}"))
        };
        let mut tensors = Vec::with_capacity(all.len());
        let mut trained = 0;
        for module in all {
            let value = &module[path.as_str()];
            let tensor = Tensor::from_value(value.clone()).map_err(|error| wrong(&error))?;
            trained += usize::from(tensor.requires_grad()?);
            tensors.push(tensor.detach()?);
        }
        let stack = ops::stack(&tensors, 0).map_err(|error| wrong(&error))?;
        let stack = match trained {
            0 => stack,
            n if n == all.len() => stack.into_parameter()?,
            n => {
                return Err(wrong(&format_args!(
                    "it is trained in {n} of {} modules; `nn::set_requires_grad` makes them alike",
                    all.len()
                )));
            }
        };
        found.insert(path.clone(), stack);
    }
    Ok(found)
}
