//! The parts that a graph was divided into: graph modules that hold what their nodes name, under
//! the paths of the module around them.
//!
//! Invariant: dividing a graph changes no path. What several parts name is held by each of them, and
//! replaced in all of them.

use std::any::Any;
use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::GraphModule;
use super::parts::as_graph_module;
use crate::error::Result;
use crate::file::json::{self, Json};
use crate::file::meta::{MetaType, SavedMeta};
use crate::ir::meta::{Meta, MetaPolicy};
use crate::ir::op::Op;
use crate::module::attributes::{Attributes, is_inside};
use crate::module::module::Module;
use crate::module::order::PartOrder;
use crate::module::walk::{TensorKind, Walk};
use crate::value::object::Object;

/// Which modules of a graph module are its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PartPaths(IndexSet<Arc<str>, FxBuildHasher>);

impl Meta for PartPaths {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

impl SavedMeta for PartPaths {
    const NAME: &'static str = "fx_core::PartPaths";

    fn to_saved(&self) -> Result<Json> {
        Ok(self.0.iter().map(|path| Json::from(&**path)).collect())
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let paths = json::items(saved, |path| json::name(path).map(Arc::<str>::from))?;
        Ok(PartPaths(paths.into_iter().collect()))
    }
}

crate::__private::submit! { MetaType, MetaType::of::<PartPaths>() }

impl PartPaths {
    pub fn contains(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}

/// Paths that a walk met before: several parts may hold one.
struct Met<'m>(Option<FxHashSet<&'m str>>);

impl<'m> Met<'m> {
    fn is_new(&mut self, path: &'m str) -> bool {
        self.0.as_mut().is_none_or(|met| met.insert(path))
    }
}

impl GraphModule {
    /// Notes that modules of it are its parts.
    pub(crate) fn add_parts<'p>(&mut self, paths: impl IntoIterator<Item = &'p Arc<str>>) {
        let mut paths = paths.into_iter().cloned().peekable();
        if paths.peek().is_none() {
            return;
        }
        match self.entries.get_mut::<PartPaths>() {
            Some(parts) => parts.0.extend(paths),
            None => self.set_meta(PartPaths(paths.collect())),
        }
    }

    /// Notes that a module of it is a part no more.
    pub(crate) fn forget_part(&mut self, path: &str) {
        let Some(parts) = self.entries.get_mut::<PartPaths>() else {
            return;
        };
        parts.0.shift_remove(path);
        if parts.0.is_empty() {
            self.remove_meta::<PartPaths>();
        }
    }

    pub(super) fn part_paths(&self) -> Option<&PartPaths> {
        self.entries.get()
    }

    /// The paths of the parts.
    pub(crate) fn parts(&self) -> Vec<Arc<str>> {
        self.divided().map(|(path, _)| path.clone()).collect()
    }

    /// Whether the module at a path is a part of the graph.
    pub(crate) fn is_part(&self, path: &str) -> bool {
        let is_graph = || {
            let module = self.attributes.modules.get(path);
            module.is_some_and(|module| as_graph_module(&**module).is_some())
        };
        self.part_paths().is_some_and(|parts| parts.contains(path)) && is_graph()
    }

    /// The parts, with their paths.
    pub(super) fn divided(&self) -> impl DoubleEndedIterator<Item = (&Arc<str>, &GraphModule)> {
        let paths = self.part_paths().into_iter().flat_map(|parts| &parts.0);
        paths.filter_map(|path| {
            let module = self.attributes.modules.get(path)?;
            Some((path, as_graph_module(&**module)?))
        })
    }

    /// The module and its parts, and theirs: all that hold something under its paths.
    pub(super) fn holders(&self) -> Vec<&GraphModule> {
        let mut holders = vec![self];
        let mut next = 0;
        while let Some(holder) = holders.get(next).copied() {
            holders.extend(holder.divided().map(|(_, part)| part));
            next += 1;
        }
        holders
    }

    /// The modules that are held, by path: the first of each, or all copies.
    fn modules_held(&self, all_copies: bool) -> Vec<(&Arc<str>, &dyn Module)> {
        let holders = self.holders();
        let mut met = Met((holders.len() > 1 && !all_copies).then(FxHashSet::default));
        let mut found = Vec::new();
        for holder in holders {
            for (path, module) in &holder.attributes.modules {
                if !holder.is_part(path) && met.is_new(path) {
                    found.push((path, &**module));
                }
            }
        }
        found
    }

    /// The modules that are held, by path.
    pub(super) fn held_modules(&self) -> Vec<(&Arc<str>, &dyn Module)> {
        self.modules_held(false)
    }

    /// The module at exactly this path.
    pub(super) fn held_module(&self, path: &str) -> Option<&dyn Module> {
        let mut holders = self.holders().into_iter();
        holders.find_map(|holder| holder.attributes.modules.get(path).map(|module| &**module))
    }

    /// Whether something is at a path, or below it.
    pub(super) fn holds(&self, path: &str) -> bool {
        let holds = |holder: &&GraphModule| {
            let Attributes { modules, tensors } = &*holder.attributes;
            modules.contains_key(path)
                || tensors.contains_key(path)
                || holder.attributes.enclosing(path).is_some()
                || modules.keys().any(|key| is_inside(key, path))
                || tensors.keys().any(|key| is_inside(key, path))
        };
        self.holders().iter().any(holds)
    }

    /// The parts that hold something at a path, or below it.
    pub(super) fn parts_with(&self, path: &str) -> Vec<Arc<str>> {
        let parts = self.divided().filter(|(_, part)| part.holds(path));
        parts.map(|(key, _)| key.clone()).collect()
    }

    /// Changes each part; modules and tensors in it may be others afterwards.
    pub(super) fn for_each_part(
        &mut self,
        mut change: impl FnMut(&mut GraphModule) -> Result<()>,
    ) -> Result<()> {
        for path in self.parts() {
            self.in_part(&path, &mut change)?;
        }
        Ok(())
    }

    /// Changes the part at a path.
    pub(super) fn in_part<R>(
        &mut self,
        path: &str,
        change: impl FnOnce(&mut GraphModule) -> Result<R>,
    ) -> Result<R> {
        let at = self.attributes.modules.get_index_of(path);
        let lent = at.and_then(|at| self.attributes.modules.lend(at));
        let part = lent.and_then(|(_, module)| {
            let any: &mut dyn Any = &mut **module;
            any.downcast_mut::<GraphModule>()
        });
        change(part.expect("a part is a graph module of the graph"))
    }

    /// Puts a module wherever one is held at exactly this path; returns whether there was one.
    pub(super) fn put_module(&mut self, path: &Arc<str>, module: &dyn Module) -> Result<bool> {
        let mut is_there = self.attributes.modules.contains_key(path);
        if is_there {
            let mut edit = self.graph_mut();
            let (_, attributes) = edit.parts();
            attributes
                .modules
                .insert(path.clone(), module.duplicate_box());
        }
        for part in self.parts_with(path) {
            is_there |= self.in_part(&part, |part| part.put_module(path, module))?;
        }
        Ok(is_there)
    }

    /// Forgets what is known of nodes that depend on a module's calls, in parts too.
    pub(super) fn forget_calls(&mut self, path: &Arc<str>) -> Result<()> {
        self.graph.forget_op(&Op::CallModule(path.clone()));
        for part in self.parts_with(path) {
            self.in_part(&part, |inner| inner.forget_calls(path))?;
            self.graph.forget_op(&Op::CallModule(part));
        }
        Ok(())
    }

    /// Visits what is held, or what is below a path.
    pub(super) fn visit_held(&self, around: Option<&str>, walk: &mut Walk<'_, '_>) {
        let below = |path: &'_ str| -> Option<usize> {
            match around {
                None => Some(0),
                Some(around) => is_inside(path, around).then_some(around.len() + 1),
            }
        };
        let mut held: Vec<(&Arc<str>, Held<'_>)> = Vec::new();
        for (path, module) in self.modules_held(walk.sees_copies()) {
            held.push((path, Held::Module(module)));
        }
        let holders = self.holders();
        let mut met = Met((holders.len() > 1).then(FxHashSet::default));
        for holder in holders {
            for (path, (kind, value)) in &holder.attributes.tensors {
                if below(path).is_some()
                    && met.is_new(path)
                    && let Some(tensor) = value.as_object()
                {
                    held.push((path, Held::Tensor(*kind, tensor)));
                }
            }
        }
        if let Some(order) = self.meta::<PartOrder>() {
            let ranks = order.ranks();
            held.sort_by_key(|(path, _)| ranks.get(&***path).copied().unwrap_or(usize::MAX));
        }
        for (path, held) in held {
            let Some(from) = below(path) else {
                continue;
            };
            match held {
                Held::Module(module) => walk.child(&path[from..], module),
                Held::Tensor(kind, tensor) => walk.tensor_at(&path[from..], kind, tensor),
            }
        }
    }
}

/// What a graph module or one of its parts holds.
enum Held<'h> {
    Module(&'h dyn Module),
    Tensor(TensorKind, &'h dyn Object),
}
