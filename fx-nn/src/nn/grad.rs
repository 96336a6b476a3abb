//! Whether parameters are trained: trained ones remember how results came from them, frozen ones do not.

use candle_core::Var;
use fx_core::Result;
use fx_core::module::{Component, ComponentExt, TensorKind, VisitorMut, walk_mut};
use fx_core::tensor::Object;

use crate::error::Fx;
use crate::tensor::Tensor;

/// Makes every parameter of a module trainable, or freezes it; frozen modules run with less memory and time.
///
/// # Errors
/// When a parameter is symbolic.
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
    struct Grad {
        requires: bool,
        /// New tensors by the id of the old one, so that tied parameters stay tied.
        done: std::collections::HashMap<u64, Tensor>,
        problem: Result<()>,
    }
    impl VisitorMut for Grad {
        fn tensor(&mut self, _: &str, kind: TensorKind, tensor: &mut dyn Object) {
            let any: &mut dyn std::any::Any = tensor;
            let Some(tensor) = any.downcast_mut::<Tensor>() else {
                return;
            };
            let Some(id) = tensor.object_id() else {
                return;
            };
            if kind != TensorKind::Parameter || self.problem.is_err() {
                return;
            }
            let changed = match self.done.get(&id) {
                Some(done) => Ok(done.clone()),
                None if self.requires => tensor.clone().into_parameter(),
                None => tensor.detach(),
            };
            match changed {
                Ok(changed) => {
                    *tensor = changed.clone();
                    self.done.insert(id, changed);
                }
                Err(error) => self.problem = Err(error),
            }
        }
    }
    let mut visitor = Grad {
        requires: requires_grad,
        done: std::collections::HashMap::new(),
        problem: Ok(()),
    };
    walk_mut(module, &mut visitor);
    visitor.problem
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
/// When a parameter is symbolic.
pub fn variables(module: &(impl Component + ?Sized)) -> Result<Vec<Var>> {
    let named = named_variables(module)?.into_iter();
    Ok(named.map(|(_, variable)| variable).collect())
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
