//! `FoldedConstants`: the constant part of a graph as a module that computes once.
//!
//! Invariant: the kept values were computed from the current tensors, by a computation that is not
//! impure.

use std::any::Any;
use std::sync::OnceLock;

use crate::error::Result;
use crate::file::json::Json;
use crate::file::loader::Loader;
use crate::file::saver::Saver;
use crate::graph_module::GraphModule;
use crate::ir::function::Effects;
use crate::ir::signature::ParamSpec;
use crate::module::module::Module;
use crate::module::registry::{ModuleOf, ModuleType};
use crate::module::walk::{Component, Walk, WalkMut};
use crate::value::value::Value;

/// Computes a graph without inputs on the first call, and returns the same results from then on:
/// made by [`FoldConstants::lazily`](crate::passes::FoldConstants::lazily).
///
/// If its tensors are replaced (by a change of dtype, say), it computes again; a write in place to
/// a tensor's storage after the first call is not noticed. A copy computes for itself. While its
/// computation is impure (a dropout in training), it computes in every call.
#[derive(Debug)]
pub struct FoldedConstants {
    inner: GraphModule,
    values: OnceLock<Value>,
    /// Whether the computation is impure, once known.
    effects: OnceLock<Effects>,
}

impl FoldedConstants {
    pub(super) fn new(inner: GraphModule) -> Self {
        FoldedConstants {
            inner,
            values: OnceLock::new(),
            effects: OnceLock::new(),
        }
    }

    /// The computation.
    pub fn graph_module(&self) -> &GraphModule {
        &self.inner
    }

    /// Whether it has run.
    pub fn is_folded(&self) -> bool {
        self.values.get().is_some()
    }

    fn values(&self) -> Result<Value> {
        if let Some(values) = self.values.get() {
            return Ok(values.clone());
        }
        let mut values = Value::None;
        self.inner.run(&[], &mut values)?;
        if !self.effects().is_pure() {
            return Ok(values);
        }
        Ok(self.values.get_or_init(|| detached(values)).clone())
    }
}

/// The same structure of objects, detached from autograd.
fn detached(mut value: Value) -> Value {
    let detach = |item: &mut Value| *item = detached(std::mem::take(item));
    match &mut value {
        Value::List(items) | Value::Tuple(items) => items.iter_mut().for_each(detach),
        Value::Dict(items) => items.values_mut().for_each(detach),
        _ => {}
    }
    match value.as_object() {
        Some(object) => object.detached(),
        None => value,
    }
}

impl Component for FoldedConstants {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        self.inner.visit(walk);
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        self.values = OnceLock::new();
        self.effects = OnceLock::new();
        self.inner.visit_mut(walk);
    }

    fn part(&self, path: &str) -> Option<&dyn Component> {
        self.inner.part(path)
    }

    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        self.values = OnceLock::new();
        self.effects = OnceLock::new();
        self.inner.part_mut(path)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        self.values = OnceLock::new();
        self.effects = OnceLock::new();
        Some(self)
    }

    fn module_entry(&self) -> Option<&'static dyn Any> {
        Some(const { &ModuleOf::of::<Self>() })
    }

    fn duplicate(&self) -> Self {
        FoldedConstants::new(self.inner.duplicate())
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        self.inner.to_saved(saver)
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        GraphModule::from_saved(saved, loader).map(FoldedConstants::new)
    }
}

crate::__private::submit! { ModuleType, ModuleType::named::<FoldedConstants>(|| "fx_core::passes::FoldedConstants") }

impl Module for FoldedConstants {
    fn params(&self) -> &[ParamSpec] {
        &[]
    }

    fn run(&self, _: &[&Value], out: &mut Value) -> Result<()> {
        *out = self.values()?;
        Ok(())
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.duplicate())
    }

    fn is_leaf(&self) -> bool {
        true
    }

    /// A graph computes them, inside a module that has no `forward` of its own.
    fn source_problem(&self) -> Option<&'static str> {
        Some(
            "has constants that are folded lazily, which source cannot call: fold with `FoldConstants::new()`, at once, in a graph module that is to be written",
        )
    }

    fn effects(&self) -> Effects {
        *self.effects.get_or_init(|| self.inner.effects())
    }
}
