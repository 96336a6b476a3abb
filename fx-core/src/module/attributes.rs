//! What is looked up in [`Attributes`], the modules and tensors that a graph names, and where they come
//! from.
//!
//! Invariant: no path is both a module's and a tensor's, or inside a module's, if `conflict` is
//! checked before adding.

use rustc_hash::FxHashMap;

use super::argument::module_value;
use super::hierarchy::ComponentExt;
pub use super::module::Attributes;
use super::module::Module;
use super::registry::as_module;
use super::walk::{Component, TensorKind, Visitor, walk};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::submit::REGISTRY_HINT;
use crate::value::object::Object;
use crate::value::value::Value;

impl Attributes {
    /// The attributes that a graph names.
    pub(crate) fn named_by(&self, graph: &Graph) -> Attributes {
        let mut places: (Vec<usize>, Vec<usize>) = Default::default();
        for node in graph.nodes() {
            match node.op() {
                Op::GetAttr(path) if let Some(at) = self.tensors.get_index_of(path) => {
                    places.1.push(at);
                }
                Op::CallModule(path) | Op::GetAttr(path) => {
                    places.0.extend(self.modules.get_index_of(path));
                }
                _ => {}
            }
        }
        // In the order in which they are here.
        let mut named = Attributes::default();
        places.0.sort_unstable();
        places.1.sort_unstable();
        places.0.dedup();
        places.1.dedup();
        for at in places.0 {
            if let Some((path, module)) = self.modules.get_index(at) {
                named.modules.insert(path.clone(), module.clone());
            }
        }
        for at in places.1 {
            if let Some((path, tensor)) = self.tensors.get_index(at) {
                named.tensors.insert(path.clone(), tensor.clone());
            }
        }
        named
    }

    /// The module at a path.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn module(&self, path: &str) -> Result<&dyn Module> {
        let found = self.modules.get(path);
        found
            .map(|module| &**module)
            .ok_or_else(|| not_found("module", path))
    }

    /// The parameter, buffer or constant at a path.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn tensor(&self, path: &str) -> Result<&Value> {
        let found = self.tensors.get(path);
        found
            .map(|(_, value)| value)
            .ok_or_else(|| not_found(TENSOR, path))
    }

    /// Whether something is at a path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.tensors.contains_key(path) || self.modules.contains_key(path)
    }

    /// The value of a `get_attr` node: a tensor, or a module that a function takes.
    pub(crate) fn value(&self, path: &str) -> Result<Value> {
        match (self.tensors.get(path), self.modules.get(path)) {
            (None, Some(module)) => Ok(module_value(&**module)),
            _ => self.tensor(path).cloned(),
        }
    }

    /// Collects what a graph names from a module: modules are copied, sharing their tensors.
    ///
    /// Submodules are recognised by their types: `#[trace]` registers them, and
    /// [`register_module!`](crate::register_module) registers an instantiation of a generic one.
    ///
    /// # Errors
    /// Returns an error if the module lacks something that a node names, or one of its paths is
    /// ambiguous.
    pub fn of(module: &(impl Component + ?Sized), graph: &Graph) -> Result<Self> {
        module.check_paths()?;
        let mut tensors = wanted_tensors(module, graph);
        let mut attributes = Attributes::default();
        for node in graph.nodes() {
            let collected = match node.op() {
                Op::GetAttr(path) if attributes.modules.contains_key(path) => Ok(()),
                Op::GetAttr(path)
                    if tensors.get(&**path).is_some_and(Option::is_none)
                        && module.part(path).is_some() =>
                {
                    collected_module(module, path).map(|given| {
                        attributes.modules.insert(path.clone(), given);
                    })
                }
                Op::GetAttr(path) if !attributes.tensors.contains_key(path) => {
                    let found = tensors.remove(&**path).flatten();
                    found
                        .ok_or_else(|| not_collected(TENSOR, path))
                        .map(|tensor| {
                            attributes.tensors.insert(path.clone(), tensor);
                        })
                }
                Op::CallModule(path) if !attributes.modules.contains_key(path) => {
                    collected_module(module, path).map(|called| {
                        attributes.modules.insert(path.clone(), called);
                    })
                }
                _ => Ok(()),
            };
            collected.map_err(|error| node.blame("collecting", error))?;
        }
        Ok(attributes)
    }

    /// A module that the path is inside of, or that is inside the path; the two cannot coexist.
    pub(crate) fn conflict(&self, path: &str) -> Option<&str> {
        self.enclosing(path).or_else(|| {
            let mut others = self.modules.keys();
            let other = others.find(|other| is_inside(other, path));
            other.map(|other| &**other)
        })
    }

    /// The outermost module that contains the path.
    pub(crate) fn enclosing(&self, path: &str) -> Option<&str> {
        path.match_indices('.').find_map(|(dot, _)| {
            let (outer, _) = self.modules.get_key_value(&path[..dot])?;
            Some(&**outer)
        })
    }
}

/// The tensors of a module that a graph names, collected in one walk.
fn wanted_tensors<'g>(
    module: &(impl Component + ?Sized),
    graph: &'g Graph,
) -> FxHashMap<&'g str, Option<(TensorKind, Value)>> {
    struct Wanted<'g>(FxHashMap<&'g str, Option<(TensorKind, Value)>>);
    impl Visitor for Wanted<'_> {
        fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
            if let Some(found) = self.0.get_mut(path) {
                *found = Some((kind, tensor.to_value()));
            }
        }
    }
    let named = graph.nodes().filter_map(|node| match node.op() {
        Op::GetAttr(_) => Some((node.target(), None)),
        _ => None,
    });
    let mut wanted = Wanted(named.collect());
    walk(module, &mut wanted);
    wanted.0
}

/// A copy of the module at a path.
fn collected_module(module: &(impl Component + ?Sized), path: &str) -> Result<Box<dyn Module>> {
    let part = module.part(path);
    let part = part.ok_or_else(|| not_collected("module", path))?;
    let called = as_module(part).ok_or_else(|| {
        Error::unregistered(path, format_args!(
            "what is at `{path}` is not known as a module: if it has a `forward`, register its type with `fx_core::register_module!`{REGISTRY_HINT}"
        ))
    })?;
    Ok(called.duplicate_box())
}

fn not_collected(what: &'static str, path: &str) -> Error {
    ErrorKind::NotFound {
        what,
        path: path.to_string(),
        hint: " in the module that the graph is to run with".to_string(),
    }
    .into()
}

/// The name of tensor attributes in messages.
pub(crate) const TENSOR: &str = "parameter, buffer or constant";

/// The error for a path that leads to nothing.
pub(crate) fn not_found(what: &'static str, path: &str) -> Error {
    ErrorKind::NotFound {
        what,
        path: path.to_string(),
        hint: match what {
            "module" => "; add it with `GraphModule::add_submodule`",
            _ => "; add it with `GraphModule::set_parameter` or `set_buffer`",
        }
        .to_string(),
    }
    .into()
}

/// Whether a path is inside another path.
pub(crate) fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// The path of a step inside of a path; either may be empty.
pub(crate) fn within(outer: &str, step: &str) -> String {
    match (outer, step) {
        ("", path) | (path, "") => path.to_string(),
        (outer, step) => format!("{outer}.{step}"),
    }
}
