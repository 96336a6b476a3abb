//! Whether parameters are trained: autograd records operations on trained ones, not on frozen ones.

use std::collections::HashSet;

use candle_core::Var;
use fx_core::module::{Component, ComponentExt, PathPattern, TensorKind};
use fx_core::tensor::Object;
use fx_core::value::Value;
use fx_core::{ErrorKind, Result};
use indexmap::IndexMap;

use super::replace::replace;
use crate::error::Fx;
use crate::tensor::Tensor;

/// Makes every parameter of a module trainable, or freezes it; frozen modules run with less memory and time.
///
/// # Errors
/// Returns an error if a parameter is symbolic.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Linear::new(4, 5)?;
/// nn::set_requires_grad(&mut layer, false)?;
/// assert!(!layer.weight.candle()?.is_variable());
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub fn set_requires_grad(
    module: &mut (impl Component + ?Sized),
    requires_grad: bool,
) -> Result<()> {
    replace(module, |kind, tensor| match kind {
        TensorKind::Parameter => trained(tensor, requires_grad).map(Some),
        _ => Ok(None),
    })
}

/// Makes the parameters at the paths that a pattern matches trainable, or freezes them; returns how many parameters.
///
/// The pattern is a [`PathPattern`] of parameters: `fc1.**` is a layer's, `**.bias` every bias. A
/// parameter with several paths counts once, and each of its paths may match.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut net = nn::Sequential::new();
/// for _ in 0..4 {
///     net = net.push(nn::Linear::new(3, 3)?);
/// }
/// assert_eq!(nn::set_requires_grad_at(&mut net, "{0,1}.**", false)?, 4);
/// assert_eq!(nn::set_requires_grad_at(&mut net, "*.bias", false)?, 4);
/// assert_eq!(nn::variables(&net)?.len(), 2);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the pattern matches no parameter, or one is symbolic.
pub fn set_requires_grad_at(
    module: &mut (impl Component + ?Sized),
    pattern: &str,
    requires_grad: bool,
) -> Result<usize> {
    let chosen = PathPattern::new(pattern)?;
    let id = |value: &Value| value.downcast_ref::<Tensor>()?.object_id();
    let parameters = module.named_parameters();
    let all: HashSet<u64> = parameters.values().filter_map(id).collect();
    // The state has every path of a shared tensor.
    let matching: HashSet<u64> = module
        .state_dict()
        .iter()
        .filter(|(path, _)| chosen.matches(path))
        .filter_map(|(_, value)| id(value).filter(|id| all.contains(id)))
        .collect();
    if matching.is_empty() {
        let some: Vec<&str> = parameters.keys().map(String::as_str).take(4).collect();
        let (name, problem) = (
            pattern.to_string(),
            format!("no parameter is at such a path; the first are {some:?}"),
        );
        return Err(ErrorKind::Unknown { name, problem }.into());
    }
    replace(module, |kind, tensor| {
        let is_one = tensor.object_id().is_some_and(|id| matching.contains(&id));
        match kind {
            TensorKind::Parameter if is_one => trained(tensor, requires_grad).map(Some),
            _ => Ok(None),
        }
    })?;
    Ok(matching.len())
}

/// A tensor as a trained parameter, or as a frozen one.
fn trained(tensor: &Tensor, requires_grad: bool) -> Result<Tensor> {
    match requires_grad {
        true => tensor.clone().into_parameter(),
        false => tensor.detach(),
    }
}

/// The parameters that are trained, as candle's optimizers take them: they share the module's data, and a shared
/// parameter is there once.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::Linear::new(4, 5)?;
/// assert_eq!(nn::variables(&layer)?.len(), 2);
/// // let optimizer = candle_nn::AdamW::new(nn::variables(&layer)?, Default::default())?;
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a parameter is symbolic.
pub fn variables(module: &(impl Component + ?Sized)) -> Result<Vec<Var>> {
    let named = named_variables(module)?.into_iter();
    Ok(named.map(|(_, variable)| variable).collect())
}

/// The parameters that are trained, by path; a shared one is there once.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut net = nn::Sequential::new().push(nn::Linear::new(3, 3)?).push(nn::Linear::new(3, 2)?.bias(false));
/// nn::set_requires_grad_at(&mut net, "0.**", false)?;
/// assert_eq!(nn::trainable_parameters(&net).keys().collect::<Vec<_>>(), ["1.weight"]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub fn trainable_parameters(module: &(impl Component + ?Sized)) -> IndexMap<String, Tensor> {
    let all = module.named_parameters().into_iter();
    let trained = all.filter_map(|(path, value)| {
        let tensor = value.downcast_ref::<Tensor>()?;
        let is_trained = Object::requires_grad(tensor) == Some(true);
        is_trained.then(|| (path, tensor.clone()))
    });
    trained.collect()
}

/// The parameters that are trained, with their paths.
pub(crate) fn named_variables(module: &(impl Component + ?Sized)) -> Result<Vec<(String, Var)>> {
    let mut found = Vec::new();
    for (path, value) in module.named_parameters() {
        if let Some(tensor) = value.downcast_ref::<Tensor>() {
            let data = tensor.candle()?;
            if data.is_variable() {
                found.push((path, Var::from_tensor(data).fx()?));
            }
        }
    }
    Ok(found)
}
