//! The graph modules inside of a graph module that a crate writes as structs with a `forward`.
//!
//! Invariant: what is not written is loaded, as a field of the type `GraphModule`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::GraphModule;
use crate::emit::hooks::Hooks;
use crate::emit::input::Own;
use crate::emit::rust::forward_source;
use crate::emit::source::CodeOptions;
use crate::emit::structs::{Places, add_types};
use crate::emit::structures::Definitions;
use crate::error::Result;
use crate::ir::meta::{Meta, MetaPolicy};
use crate::ir::names::is_identifier;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::{Attributes, within};
use crate::value::handle::NodeId;
use crate::value::object::short_type_name;
use crate::value::tree::Tree;

/// Says of a graph module that it was a module of the trace, and no module that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TracedThrough;

impl Meta for TracedThrough {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

/// The graph modules that are written, with their paths, outer ones first.
pub(super) struct Nested<'g> {
    all: Vec<(String, &'g GraphModule)>,
}

/// The functions of the graph modules that are written.
pub(super) struct Forwards {
    /// By path.
    pub code: FxHashMap<String, String>,
    pub problems: Vec<String>,
}

impl<'g> Nested<'g> {
    pub fn of(gm: &'g GraphModule) -> Self {
        let mut all = Vec::new();
        let mut left = VecDeque::from([(String::new(), gm)]);
        while let Some((around, outer)) = left.pop_front() {
            for (path, inner) in outer.graph_modules() {
                if is_written(inner) {
                    let path = within(&around, path);
                    all.push((path.clone(), inner));
                    left.push_back((path, inner));
                }
            }
        }
        Nested { all }
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(path, _)| &**path)
    }

    /// The paths of those in the graph module at a path, as its graph names them.
    pub fn inside(&self, around: &str) -> FxHashSet<String> {
        let own = self.paths().filter_map(|path| match around {
            "" => Some(path),
            around => path.strip_prefix(around)?.strip_prefix('.'),
        });
        own.map(str::to_string).collect()
    }

    /// Replaces the graph modules by what they hold, each at its path in the whole.
    pub fn open(&self, held: &mut Attributes) {
        for (around, inner) in &self.all {
            held.modules.remove(around);
            for (path, module) in &inner.attributes.modules {
                let path: Arc<str> = within(around, path).into();
                held.modules.insert(path, module.clone());
            }
            for (path, tensor) in &inner.attributes.tensors {
                let path: Arc<str> = within(around, path).into();
                held.tensors.insert(path, tensor.clone());
            }
        }
    }

    /// The types of modules by path.
    pub fn types(&self, gm: &GraphModule) -> FxHashMap<String, String> {
        let mut types = FxHashMap::default();
        for (path, inner) in &self.all {
            types.insert(path.clone(), short_type_name(inner.class_name()));
        }
        add_types(&gm.graph, "", &mut types);
        for (path, inner) in &self.all {
            add_types(&inner.graph, path, &mut types);
        }
        types
    }

    /// The functions, each as it stands in its struct.
    pub fn forwards(
        &self,
        places: &Places,
        definitions: &RefCell<Definitions>,
        core: &str,
    ) -> Forwards {
        let sides = FxHashMap::default();
        let mut forwards = Forwards {
            code: FxHashMap::default(),
            problems: Vec::new(),
        };
        for (path, inner) in &self.all {
            let (fields, written) = (places.inside(path), self.inside(path));
            let own = Own {
                fields: &fields,
                sides: &sides,
                written: &written,
                definitions,
            };
            let input = inner.source_input(Some(own), core);
            let generated = forward_source(&input, &Hooks::default(), &CodeOptions::new());
            let problems = generated.problems.iter();
            forwards
                .problems
                .extend(problems.map(|problem| format!("`{path}`: {problem}")));
            let mut code = String::from(
                "    /// What was traced.\n    ///\n    /// # Errors\n    /// When the arguments do not fit.\n",
            );
            for line in generated.code.source().lines() {
                let _ = match line.is_empty() {
                    true => writeln!(code),
                    false => writeln!(code, "    {line}"),
                };
            }
            forwards.code.insert(path.clone(), code);
        }
        forwards
    }

    /// The module with the nodes of the graph modules that are written in its own graph.
    ///
    /// # Errors
    /// Returns an error if a call cannot be opened.
    pub fn opened(&self, gm: &GraphModule) -> Result<GraphModule> {
        let mut whole = gm.clone();
        loop {
            let is_call = |node: &NodeRef<'_>| match node.op() {
                Op::CallModule(path) => self.paths().any(|own| *own == **path),
                _ => false,
            };
            let calls: Vec<NodeId> = (whole.graph().nodes().filter(is_call))
                .map(NodeRef::id)
                .collect();
            if calls.is_empty() {
                return Ok(whole);
            }
            for call in calls {
                whole.inline_module(call)?;
            }
        }
    }
}

/// Whether a graph module's function can be written: its arguments and branches have no structures of their own.
fn is_written(gm: &GraphModule) -> bool {
    let has_regions = || {
        let mut modules = gm.attributes.modules.values();
        modules.any(|module| !module.graph_names().is_empty())
    };
    gm.meta::<TracedThrough>().is_some()
        && gm.trees.iter().all(Tree::is_leaf)
        && is_identifier(gm.class_name())
        && gm.part_paths().is_none()
        && !has_regions()
}
