//! `GraphModule` as a module: its parts, its copies, and how a call runs it.
//!
//! Invariant: a copy has the graph, the entries and the code of the original, and shares its tensors.

use std::any::Any;

use rustc_hash::FxHashSet;

use super::GraphModule;
use super::parts::as_graph_module;
use crate::error::Result;
use crate::file::json::{self, Json, JsonMap};
use crate::file::loader::Loader;
use crate::file::saver::Saver;
use crate::ir::function::Effects;
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::ir::param_type::ParamType;
use crate::ir::signature::ParamSpec;
use crate::ir::unnamed::Unnamed;
use crate::ir::value_meta::ValueMeta;
use crate::module::argument::{OfModule, module_of, module_value};
use crate::module::attributes::{Attributes, is_inside};
use crate::module::call::Call;
use crate::module::module::Module;
use crate::module::order::{Part, PartOrder};
use crate::module::registry::{ModuleOf, ModuleType};
use crate::module::walk::{Component, TensorKind, Visitor, Walk, WalkMut, walk};
use crate::outlined::Outlined;
use crate::trace::convert::Param;
use crate::value::object::Object;
use crate::value::tree::Tree;
use crate::value::value::Value;

impl Clone for GraphModule {
    fn clone(&self) -> Self {
        self.duplicate()
    }
}

impl GraphModule {
    /// Visits modules and tensors.
    pub(super) fn visit_parts(&self, walk: &mut Walk<'_, '_>) {
        for (path, what) in self.meta::<Unnamed>().into_iter().flat_map(|of| &of.0) {
            walk.unnamed_at(path, what);
        }
        self.visit_held(None, walk);
    }

    /// Walks the parts inside a path, or all; a part that is replaced may have another shape.
    pub(super) fn visit_below(&mut self, around: Option<&str>, walk: &mut WalkMut<'_, '_>) {
        self.visit_watched(around, walk, false);
    }

    /// [`visit_below`](GraphModule::visit_below), which returns the nodes' ops whose parts have
    /// another shape now, if this graph or another one, `knows`, has shapes.
    pub(super) fn visit_watched(
        &mut self,
        around: Option<&str>,
        walk: &mut WalkMut<'_, '_>,
        knows: bool,
    ) -> Vec<Op> {
        let knows = knows || self.graph.knows_anything();
        let mut changed: Vec<Op> = Vec::new();
        let parts = self.part_paths().cloned().unwrap_or_default();
        let name = |path: &'_ str| -> Option<usize> {
            match around {
                None => Some(0),
                Some(around) => is_inside(path, around).then_some(around.len() + 1),
            }
        };
        for part in PartOrder::parts(self.meta(), &self.attributes) {
            match part {
                Part::Module(at) => {
                    let path = self.attributes.modules.get_index(at);
                    let is_part = path.is_some_and(|(path, module)| {
                        parts.contains(path) && as_graph_module(&**module).is_some()
                    });
                    let from = path.and_then(|(path, _)| name(path));
                    if from.is_none() && !is_part {
                        continue;
                    }
                    let Some((path, module)) = self.attributes.modules.lend(at) else {
                        continue;
                    };
                    if is_part {
                        // What a part holds is at the paths of the whole.
                        let any: &mut dyn Any = &mut **module;
                        let part = any.downcast_mut::<GraphModule>();
                        let inside = part.map(|part| part.visit_watched(around, walk, knows));
                        if inside.is_some_and(|inside| !inside.is_empty()) {
                            changed.push(Op::CallModule(path.clone()));
                        }
                        continue;
                    }
                    let from = from.unwrap_or_default();
                    let before = knows.then(|| shapes_inside(&**module));
                    walk.child(&path[from..], module);
                    if before.is_some_and(|before| before != shapes_inside(&**module)) {
                        changed.push(Op::CallModule(path.clone()));
                    }
                }
                Part::Tensor(at) => {
                    let path = self.attributes.tensors.get_index(at);
                    let Some(from) = path.and_then(|(path, _)| name(path)) else {
                        continue;
                    };
                    let Some((path, (kind, value))) = self.attributes.tensors.lend(at) else {
                        continue;
                    };
                    let before = knows.then(|| ValueMeta::of(value));
                    if let Value::Object(handle) = value
                        && let Some(tensor) = handle.make_mut()
                    {
                        walk.tensor_at(&path[from..], *kind, tensor);
                    }
                    if before.is_some_and(|before| before != ValueMeta::of(value)) {
                        changed.push(Op::GetAttr(path.clone()));
                    }
                }
            }
        }
        for op in &changed {
            self.graph.forget_op(op);
        }
        changed
    }
}

/// The shapes of the tensors in a module, in order.
fn shapes_inside(module: &dyn Module) -> Vec<ValueMeta> {
    struct Shapes(Vec<ValueMeta>);
    impl Visitor for Shapes {
        fn tensor(&mut self, _: &str, _: TensorKind, tensor: &dyn Object) {
            self.0.push(ValueMeta::of(&tensor.to_value()));
        }
    }
    let mut shapes = Shapes(Vec::new());
    walk(module, &mut shapes);
    shapes.0
}

impl Component for GraphModule {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.component(self, |walk| self.visit_parts(walk));
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        self.visit_below(None, walk);
    }

    fn part(&self, path: &str) -> Option<&dyn Component> {
        self.component(path)
    }

    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        self.component_mut(path)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn module_entry(&self) -> Option<&'static dyn Any> {
        Some(const { &ModuleOf::of::<Self>() })
    }

    fn duplicate(&self) -> Self {
        let (graph, attributes) = (self.graph.clone(), self.attributes.clone());
        let mut copy = GraphModule::of_parts(graph, attributes, &self.name);
        copy.params = self.params.clone();
        copy.trees = self.trees.clone();
        *copy.hooks = self.hooks.clone();
        *copy.entries = self.entries.clone();
        copy.compiled = self
            .compiled()
            .map(|code| Outlined::new(code.of(self, &copy)));
        if self.followed != self.graph.inputs_version() {
            copy.follow_placeholders();
        }
        copy
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let mut fields = JsonMap::new();
        saver.nested(|saver| self.save_fields(&mut fields, saver))?;
        Ok(Json::Object(fields))
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        GraphModule::load_fields(json::object(saved)?, loader)
    }
}

crate::__private::submit! { ModuleType, ModuleType::named::<GraphModule>(|| "fx_core::GraphModule") }

#[diagnostic::do_not_recommend]
impl<'v> Param<'v> for &'v GraphModule {
    type Guard = &'v GraphModule;
    const SYMBOLIC: bool = false;
    const TYPE: ParamType = <OfModule<GraphModule>>::TYPE;

    fn guard(value: &'v Value) -> Result<Self::Guard> {
        module_of(value)
    }

    fn lend(guard: &'v Self::Guard) -> Self {
        guard
    }

    fn to_value(&self) -> Value {
        module_value(*self)
    }
}

impl Module for GraphModule {
    fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    fn input_trees(&self) -> &[Tree] {
        &self.trees
    }

    fn as_graph(&self) -> Option<(&Graph, &Attributes)> {
        Some((&self.graph, &self.attributes))
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        *out = self.run_values(args.iter().map(|v| (*v).clone()).collect(), None)?;
        Ok(())
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.duplicate())
    }

    fn open_edit(&mut self) -> bool {
        self.open_edits();
        true
    }

    fn close_edit(&mut self, keep: bool) {
        if let Some(depth) = self.edits_open().checked_sub(1) {
            self.close_edits(depth, keep);
        }
    }

    fn effects(&self) -> Effects {
        let mut called: FxHashSet<&str> = FxHashSet::default();
        let mut effects = Effects::PURE;
        for node in self.graph.nodes() {
            let counts = match node.op() {
                Op::Placeholder(_) | Op::Output | Op::GetAttr(_) => false,
                // Each module is asked once, however often it is called.
                Op::CallModule(path) => called.insert(path),
                _ => true,
            };
            if counts {
                effects = effects.union(Call::of(node, &self.attributes).effects());
            }
        }
        effects
    }
}
