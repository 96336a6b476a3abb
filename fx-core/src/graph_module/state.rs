//! Adds, replaces and removes the modules that a graph module holds, by path.
//!
//! Invariant: no path belongs to both a module and a tensor, or is inside another module.

use std::any::Any;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::GraphModule;
use crate::error::{Error, Result};
use crate::ir::op::Op;
use crate::module::attributes::{is_inside, not_found};
use crate::module::module::Module;

/// Editing what a graph module holds.
///
/// ```
/// use fx_core::prelude::*;
/// #[derive(Module)]
/// struct Scale { by: f64 }
/// #[trace(leaf)]
/// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
///
/// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
/// gm.add_submodule("adapter.scale", Scale { by: 3.0 })?;
/// let add = gm.graph().find_name("add").map(|node| node.id());
/// let add = add.ok_or_else(|| Error::msg("the graph adds"))?;
/// let mut graph = gm.graph_mut();
/// let scaled = graph.inserting_after(add)?.call_module("adapter.scale", (add,), ())?;
/// graph.node_mut(add)?.replace_uses_with_filter(scaled, |user| user.id() != scaled)?;
/// drop(graph);
/// assert_eq!(gm.forward::<f64>(1.0)?, 6.0);
/// gm.set_submodule("adapter.scale", Scale { by: 5.0 })?;
/// assert_eq!(gm.forward::<f64>(1.0)?, 10.0);
/// assert_eq!(gm.delete_all_unused_submodules(), 0);
/// # Ok::<(), Error>(())
/// ```
impl GraphModule {
    /// Adds a module under a path, or replaces the one there.
    ///
    /// # Errors
    /// Returns an error if the path is empty, belongs to a tensor, or lies inside a module or
    /// around one.
    pub fn add_submodule(&mut self, path: &str, module: impl Module) -> Result<()> {
        self.check_path(path)?;
        if self
            .holders()
            .iter()
            .any(|held| held.attributes.tensors.contains_key(path))
        {
            return Err(Error::taken(
                path,
                format_args!("`{path}` is a tensor of this module: a module needs another path"),
            ));
        }
        let path: Arc<str> = path.into();
        if !self.put_module(&path, &module)? {
            self.forget_part(&path);
            let mut edit = self.graph_mut();
            let (_, attributes) = edit.parts();
            attributes.modules.insert(path.clone(), Box::new(module));
        }
        self.forget_calls(&path)
    }

    /// Replaces the module at a path. Known shapes of nodes that depend on its calls are removed.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn set_submodule(&mut self, path: &str, module: impl Module) -> Result<()> {
        self.set_submodule_of_same_shapes(path, module)?;
        self.forget_calls(&path.into())
    }

    /// [`set_submodule`](GraphModule::set_submodule) with a module whose results have the same
    /// shapes and types as those of the old one: what is known of nodes stays.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn set_submodule_of_same_shapes(&mut self, path: &str, module: impl Module) -> Result<()> {
        match self.put_module(&path.into(), &module)? {
            true => Ok(()),
            false => Err(not_found("module", path)),
        }
    }

    /// The modules of a type that the graph can call, with their paths.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Net { first: Scale }
    /// #[trace]
    /// impl Net { fn forward(&self, x: Float) -> Result<Float> { self.first.forward(x) } }
    ///
    /// let gm = symbolic_trace(&Net { first: Scale { by: 3.0 } })?;
    /// let factors: Vec<(&str, f64)> = gm.modules_of::<Scale>().map(|(path, scale)| (path, scale.by)).collect();
    /// assert_eq!(factors, [("first", 3.0)]);
    /// assert_eq!(gm.submodule_as::<Scale>("first")?.by, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn modules_of<M: Module>(&self) -> impl Iterator<Item = (&str, &M)> {
        let held = self.held_modules().into_iter();
        held.filter_map(|(path, module)| {
            let any: &dyn Any = module;
            Some((&**path, any.downcast_ref()?))
        })
    }

    /// Removes the module at a path and returns it as its own type. Nodes that call it no longer
    /// run.
    ///
    /// # Errors
    /// Returns an error if there is none, or it is of another type.
    pub fn take_submodule<M: Module>(&mut self, path: &str) -> Result<M> {
        if let [part] = &self.parts_with(path)[..]
            && !self.attributes.modules.contains_key(path)
        {
            return self.in_part(part, |inner| inner.take_submodule(path));
        }
        self.attributes.module(path)?;
        self.submodule_as::<M>(path)?;
        self.forget_part(path);
        let mut edit = self.graph_mut();
        let (_, attributes) = edit.parts();
        let taken = match attributes.modules.is_open() {
            // The module itself stays with the edit, which may have to put it back.
            true => {
                let copy = attributes.modules.get(path).cloned();
                attributes.modules.remove(path);
                copy
            }
            false => attributes.modules.take(path),
        };
        let taken = taken.and_then(|module| (module as Box<dyn Any>).downcast().ok());
        taken
            .map(|module| *module)
            .ok_or_else(|| not_found("module", path))
    }

    /// Removes the module at a path, or all modules under it; returns `false` if there is none.
    /// Nodes that call one no longer run: erase them too.
    pub fn delete_submodule(&mut self, path: &str) -> bool {
        self.forget_part(path);
        self.retain_held(&mut |at, _| at != path && !is_inside(at, path)) > 0
    }

    /// Removes every module that the graph neither calls nor passes to a function, and returns how
    /// many. Parameters and buffers that the graph could name stay.
    pub fn delete_all_unused_submodules(&mut self) -> usize {
        let mut unused = self.parts();
        unused.retain(|path| !self.graph.has_op(&Op::CallModule(path.clone())));
        for path in &unused {
            self.delete_submodule(path);
        }
        let holders = self.holders().into_iter();
        let nodes = holders.flat_map(|held| held.graph.nodes());
        let called: FxHashSet<Arc<str>> = nodes
            .filter_map(|node| match node.op() {
                Op::CallModule(path) | Op::GetAttr(path) => Some(path.clone()),
                _ => None,
            })
            .collect();
        unused.len() + self.retain_submodules(|path, _| called.contains(path))
    }

    /// Removes every module that `keep` refuses, in one walk, and returns how many. Nodes that call
    /// one no longer run: erase them too.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    ///
    /// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// gm.add_submodule("a.scale", Scale { by: 3.0 })?;
    /// gm.add_submodule("b.scale", Scale { by: 3.0 })?;
    /// assert_eq!(gm.retain_submodules(|path, _| path.starts_with("a.")), 1);
    /// assert!(gm.submodule("a.scale").is_ok() && gm.submodule("b.scale").is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn retain_submodules(&mut self, mut keep: impl FnMut(&str, &dyn Module) -> bool) -> usize {
        self.retain_held(&mut keep)
    }

    /// Removes what `keep` refuses, from the parts too, which stay themselves.
    fn retain_held(&mut self, keep: &mut dyn FnMut(&str, &dyn Module) -> bool) -> usize {
        let parts = self.parts();
        let mut edit = self.graph_mut();
        let (_, attributes) = edit.parts();
        let mut removed = attributes
            .modules
            .retain(|path, module| parts.contains(path) || keep(path, &**module));
        drop(edit);
        let inside = self.for_each_part(|part| {
            removed += part.retain_held(keep);
            Ok(())
        });
        inside.expect("removing does not fail");
        removed
    }

    /// Checks that a path has names between its dots, and is not inside a module's path or around
    /// one.
    pub(super) fn check_path(&self, path: &str) -> Result<()> {
        if path.split('.').any(str::is_empty) {
            return Err(Error::msg(format_args!(
                "`{path}` is not a path: a path is names separated by dots"
            )));
        }
        let mut holders = self.holders().into_iter();
        match holders.find_map(|held| held.attributes.conflict(path)) {
            None => Ok(()),
            Some(other) => Err(Error::taken(
                path,
                format_args!(
                    "`{path}` and the module `{other}` cannot both be there: one is inside the other, which is a whole"
                ),
            )),
        }
    }
}
