//! `Attributes`: what a graph names, by path.
//!
//! Invariant: no path is both a module's and a tensor's, or inside a module's, where `conflict` is asked before adding.

use std::fmt;

use super::items::Items;
use super::module::Module;
use super::walk::TensorKind;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::value::value::Value;

/// The modules, parameters, buffers and constants that a graph names.
#[derive(Default, Clone)]
pub struct Attributes {
    /// Called modules, by path.
    pub modules: Items<Box<dyn Module>>,
    /// Tensors of `get_attr` nodes, by path.
    pub tensors: Items<(TensorKind, Value)>,
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attributes")
            .field("modules", &self.modules.keys().collect::<Vec<_>>())
            .field("tensors", &self.tensors.keys().collect::<Vec<_>>())
            .finish()
    }
}

impl Attributes {
    /// Those of the attributes that a graph names.
    pub(crate) fn named_by(&self, graph: &Graph) -> Attributes {
        let mut named = Attributes::default();
        for node in graph.nodes() {
            match node.op() {
                Op::GetAttr(path) => {
                    if let Some(tensor) = self.tensors.get(path) {
                        named.tensors.insert(path.clone(), tensor.clone());
                    }
                }
                Op::CallModule(path) if !named.modules.contains_key(path) => {
                    if let Some(module) = self.modules.get(path) {
                        named.modules.insert(path.clone(), module.clone());
                    }
                }
                _ => {}
            }
        }
        named
    }

    /// The module at a path.
    ///
    /// # Errors
    /// When there is none.
    pub fn module(&self, path: &str) -> Result<&dyn Module> {
        let found = self.modules.get(path);
        found
            .map(|module| &**module)
            .ok_or_else(|| not_found("module", path))
    }

    /// The parameter, buffer or constant at a path.
    ///
    /// # Errors
    /// When there is none.
    pub fn tensor(&self, path: &str) -> Result<&Value> {
        let found = self.tensors.get(path);
        found
            .map(|(_, value)| value)
            .ok_or_else(|| not_found(TENSOR, path))
    }

    /// The module that a path is inside of, or that is inside the path: both cannot be there.
    pub(crate) fn conflict(&self, path: &str) -> Option<&str> {
        self.enclosing(path).or_else(|| {
            let mut others = self.modules.keys();
            let other = others.find(|other| is_inside(other, path));
            other.map(|other| &**other)
        })
    }

    /// The outermost module that a path is inside of.
    pub(crate) fn enclosing(&self, path: &str) -> Option<&str> {
        path.match_indices('.').find_map(|(dot, _)| {
            let (outer, _) = self.modules.get_key_value(&path[..dot])?;
            Some(&**outer)
        })
    }
}

/// What `get_attr` nodes name, in messages.
pub(crate) const TENSOR: &str = "parameter, buffer or constant";

/// The error of a path at which there is nothing.
pub(crate) fn not_found(what: &'static str, path: &str) -> Error {
    ErrorKind::NotFound {
        what,
        path: path.to_string(),
        hint: "; add it to the attributes of the graph module".to_string(),
    }
    .into()
}

/// Whether a path is inside of what is at another one.
pub(crate) fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with('.'))
}
