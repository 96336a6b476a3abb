//! A module's contents as lists: named modules, parameters and buffers; and its training flag.

use std::any::Any;
use std::marker::PhantomData;

use indexmap::IndexMap;
use rustc_hash::FxHashSet;

use super::paths::check_paths;
use super::walk::{Component, ComponentKey, TensorKind, Visitor, VisitorMut, walk, walk_mut};
use crate::error::Result;
use crate::value::object::Object;
use crate::value::value::Value;

/// Queries on any component: torch's `nn.Module` methods.
///
/// A parameter or module reachable under several names is listed under the first.
pub trait ComponentExt: Component {
    /// Paths and values of the parameters, in the order of the fields.
    fn named_parameters(&self) -> IndexMap<String, Value> {
        tensors(self, |kind| kind == TensorKind::Parameter, true)
    }

    /// Paths and values of the buffers, in the order of the fields.
    fn named_buffers(&self) -> IndexMap<String, Value> {
        tensors(self, TensorKind::is_buffer, true)
    }

    /// Parameters and persistent buffers, shared ones under each of their names.
    fn state_dict(&self) -> IndexMap<String, Value> {
        tensors(self, TensorKind::is_persistent, false)
    }

    /// Paths and type names of the modules inside, the root (`""`) first.
    fn named_modules(&self) -> IndexMap<String, &'static str> {
        struct Modules {
            seen: FxHashSet<ComponentKey>,
            found: IndexMap<String, &'static str>,
        }
        impl Visitor for Modules {
            fn enter(&mut self, path: &str, key: ComponentKey, name: &'static str) -> bool {
                let new = self.seen.insert(key);
                if new {
                    // What is flattened is at the path of the module that has it.
                    self.found.entry(path.to_string()).or_insert(name);
                }
                new
            }
        }
        let mut visitor = Modules {
            seen: FxHashSet::default(),
            found: IndexMap::new(),
        };
        walk(self, &mut visitor);
        visitor.found
    }

    /// Calls `change` with the path of each module of type `M` and the module itself, to change it
    /// in place. Outer modules come first, shared ones once. The walk continues into the result of
    /// `change`.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// # #[derive(Module)] struct Scale { by: f64 }
    /// # #[trace(leaf)] impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Net { scales: Vec<Scale> }
    /// let mut net = Net { scales: vec![Scale { by: 2.0 }, Scale { by: 3.0 }] };
    /// let mut paths = Vec::new();
    /// net.modules_mut::<Scale>(|path, scale| {
    ///     scale.by *= 10.0;
    ///     paths.push(path.to_string());
    /// });
    /// assert_eq!((net.scales[0].by, net.scales[1].by), (20.0, 30.0));
    /// assert_eq!(paths, ["scales.0", "scales.1"]);
    /// ```
    fn modules_mut<M: Any>(&mut self, change: impl FnMut(&str, &mut M)) {
        struct Modules<M, F> {
            change: F,
            of: PhantomData<M>,
        }
        impl<M: Any, F: FnMut(&str, &mut M)> VisitorMut for Modules<M, F> {
            fn module(&mut self, path: &str, module: &mut dyn Any) {
                if let Some(module) = module.downcast_mut() {
                    (self.change)(path, module);
                }
            }
        }
        let of = PhantomData;
        walk_mut(self, &mut Modules { change, of });
    }

    /// Rejects a hierarchy in which a path leads to two modules or tensors, or a map has a key that
    /// is empty or contains a dot. Traces, files and weights run this check; the lists here do not.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// # #[derive(Module)] struct Scale { by: f64 }
    /// # #[trace(leaf)] impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Net { a: Scale, #[module(flatten)] more: IndexMap<String, Scale> }
    /// let mut net = Net { a: Scale { by: 2.0 }, more: IndexMap::new() };
    /// net.more.insert("b".to_string(), Scale { by: 3.0 });
    /// net.check_paths()?;
    /// net.more.insert("a".to_string(), Scale { by: 5.0 });
    /// let error = net.check_paths().unwrap_err();
    /// assert!(error.to_string().starts_with("two parts are at `a`, a `Scale` and a `Scale`"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error that names the parts, their path, and how to fix it.
    fn check_paths(&self) -> Result<()> {
        check_paths(self)
    }

    /// Sets the training flag of everything inside.
    fn set_training(&mut self, mode: bool) {
        walk_mut(self, &mut SetTraining(mode));
    }

    /// Training mode: dropout drops, batch norm uses the batch's statistics.
    fn train(&mut self) {
        self.set_training(true);
    }

    /// Evaluation mode.
    fn eval(&mut self) {
        self.set_training(false);
    }
}

impl<C: Component + ?Sized> ComponentExt for C {}

/// Sets every training flag in a walk.
pub(crate) struct SetTraining(pub bool);

impl VisitorMut for SetTraining {
    fn training(&mut self, _: &str, training: &mut bool) {
        *training = self.0;
    }
}

fn tensors(
    component: &(impl Component + ?Sized),
    wanted: fn(TensorKind) -> bool,
    once: bool,
) -> IndexMap<String, Value> {
    struct Tensors {
        wanted: fn(TensorKind) -> bool,
        once: bool,
        seen: FxHashSet<u64>,
        found: IndexMap<String, Value>,
    }
    impl Visitor for Tensors {
        fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
            let new = tensor.object_id().is_none_or(|id| self.seen.insert(id));
            if (self.wanted)(kind) && (new || !self.once) {
                self.found.insert(path.to_string(), tensor.to_value());
            }
        }
    }
    let mut visitor = Tensors {
        wanted,
        once,
        seen: FxHashSet::default(),
        found: IndexMap::new(),
    };
    walk(component, &mut visitor);
    visitor.found
}
