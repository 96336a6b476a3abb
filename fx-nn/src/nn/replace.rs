//! Every tensor of a module, changed once.
//!
//! Invariant: shared tensors stay shared within the module.

use std::any::Any;
use std::collections::HashMap;

use fx_core::Result;
use fx_core::module::{Component, TensorKind, VisitorMut, walk_mut};
use fx_core::tensor::Object;

use crate::tensor::Tensor;

/// Replaces each tensor of a module by what `change` returns; `None` keeps the tensor.
pub(crate) fn replace(
    module: &mut (impl Component + ?Sized),
    change: impl FnMut(TensorKind, &Tensor) -> Result<Option<Tensor>>,
) -> Result<()> {
    struct Replace<F> {
        change: F,
        /// New tensors by the id of the old one.
        done: HashMap<u64, Tensor>,
        problem: Result<()>,
    }
    impl<F: FnMut(TensorKind, &Tensor) -> Result<Option<Tensor>>> VisitorMut for Replace<F> {
        fn tensor(&mut self, _: &str, kind: TensorKind, tensor: &mut dyn Object) {
            let any: &mut dyn Any = tensor;
            let Some(tensor) = any.downcast_mut::<Tensor>() else {
                return;
            };
            if self.problem.is_err() {
                return;
            }
            let id = tensor.object_id();
            let known = id.and_then(|id| self.done.get(&id).cloned());
            match known.map_or_else(|| (self.change)(kind, tensor), |known| Ok(Some(known))) {
                Ok(None) => {}
                Ok(Some(changed)) => {
                    if let Some(id) = id {
                        self.done.insert(id, changed.clone());
                    }
                    *tensor = changed;
                }
                Err(error) => self.problem = Err(error),
            }
        }
    }
    let mut visitor = Replace {
        change,
        done: HashMap::new(),
        problem: Ok(()),
    };
    walk_mut(module, &mut visitor);
    visitor.problem
}
