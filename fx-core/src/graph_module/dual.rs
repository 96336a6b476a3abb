//! `DualGraphModule`: a graph for training and one for evaluation, over the same layers.
//!
//! Invariant: the graph of the current mode has the modules and tensors of both; the other one has
//! none.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::GraphModule;
use crate::error::{Error, Result};
use crate::file::json::{self, Json, JsonMap};
use crate::file::loader::Loader;
use crate::file::saver::Saver;
use crate::ir::function::Effects;
use crate::ir::graph::Graph;
use crate::ir::signature::ParamSpec;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::module::registry::{ModuleOf, ModuleType};
use crate::module::saved_fields::save_field;
use crate::module::walk::{Component, Walk, WalkMut};
use crate::value::tree::Tree;
use crate::value::value::Value;

/// Two graphs of one module: one runs in training mode, the other in evaluation mode. Both call the
/// same layers, with the same tensors: torchvision's `DualGraphModule`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::graph_module::DualGraphModule;
/// #[derive(Module, Clone)]
/// struct Noisy { training: bool }
/// #[trace]
/// impl Noisy {
///     fn forward(&self, x: Float) -> Result<Float> {
///         if self.training { x + 0.5 } else { Ok(x) }
///     }
/// }
/// let mut model = Noisy { training: true };
/// let train = symbolic_trace(&model)?;
/// model.eval();
/// let mut both = DualGraphModule::new(train, symbolic_trace(&model)?)?;
/// assert_eq!(both.forward::<f64>(1.0)?, 1.5);
/// both.eval();
/// assert_eq!(both.forward::<f64>(1.0)?, 1.0);
/// # Ok::<(), Error>(())
/// ```
///
/// It is a module like others: it is called by [`Forward`](crate::trace::Forward), has parameters
/// and a mode, and can be a part of another one. To edit a graph, take it out with
/// [`into_graph_module`](DualGraphModule::into_graph_module).
pub struct DualGraphModule {
    /// The graph of the mode, with all modules and tensors.
    current: GraphModule,
    /// The graph of the other mode, with nothing that it names.
    other: GraphModule,
    training: bool,
}

impl DualGraphModule {
    /// A module in training mode, of the graph of each mode. What both have at one path is taken
    /// from `train`.
    ///
    /// # Errors
    /// Returns an error if the graphs take different arguments, or have different things at one
    /// path.
    pub fn new(mut train: GraphModule, mut eval: GraphModule) -> Result<Self> {
        let names = |gm: &GraphModule| -> Vec<String> {
            gm.params
                .iter()
                .map(|param| param.name.to_string())
                .collect()
        };
        let (of_train, of_eval) = (names(&train), names(&eval));
        if of_train != of_eval {
            return Err(Error::msg(format_args!(
                "the graph for training takes ({}), that for evaluation ({}): both take the same arguments",
                of_train.join(", "),
                of_eval.join(", ")
            )));
        }
        let Attributes { modules, tensors } = std::mem::take(&mut *eval.attributes);
        let attributes = &mut train.attributes;
        let mut around: FxHashSet<Arc<str>> = FxHashSet::default();
        for path in attributes.modules.keys() {
            around.extend(
                path.match_indices('.')
                    .map(|(dot, _)| Arc::from(&path[..dot])),
            );
        }
        let is_free = |attributes: &Attributes, path: &str| {
            !attributes.has(path) && attributes.enclosing(path).is_none() && !around.contains(path)
        };
        for (path, module) in modules {
            if attributes.modules.contains_key(&path) {
                continue;
            }
            if !is_free(attributes, &path) {
                return Err(different(&path));
            }
            attributes.modules.insert(path, module);
        }
        for (path, (kind, value)) in tensors {
            if let Some((_, there)) = attributes.tensors.get(&path) {
                let id = |value: &Value| value.as_object().and_then(|object| object.object_id());
                if id(there) != id(&value) {
                    return Err(different(&path));
                }
                continue;
            }
            // A graph may name a tensor of a layer that it calls, too.
            if attributes.modules.contains_key(&path) || around.contains(&path) {
                return Err(different(&path));
            }
            attributes.tensors.insert(path, (kind, value));
        }
        train.settle();
        eval.settle();
        Ok(DualGraphModule {
            current: train,
            other: eval,
            training: true,
        })
    }

    /// The graph module of the current mode, with the modules and tensors of both.
    pub fn graph_module(&self) -> &GraphModule {
        &self.current
    }

    /// The graph that runs in training mode.
    pub fn train_graph(&self) -> &Graph {
        match self.training {
            true => &self.current.graph,
            false => &self.other.graph,
        }
    }

    /// The graph that runs in evaluation mode.
    pub fn eval_graph(&self) -> &Graph {
        match self.training {
            true => &self.other.graph,
            false => &self.current.graph,
        }
    }

    /// Whether it is in training mode.
    pub fn is_training(&self) -> bool {
        self.training
    }

    /// The graph module of the current mode, with what its graph names.
    pub fn into_graph_module(self) -> GraphModule {
        let mut module = self.current;
        *module.attributes = module.attributes.named_by(&module.graph);
        module.settle();
        module
    }

    /// Changes to the graph of a mode. Its program stays while modules and tensors are the same.
    fn switch(&mut self, training: bool) {
        if self.training != training {
            std::mem::swap(&mut self.current, &mut self.other);
            std::mem::swap(&mut self.current.attributes, &mut self.other.attributes);
            self.current.settle();
            self.training = training;
        }
    }

    /// The graph module of the other mode, with what its graph names.
    fn whole_other(&self) -> GraphModule {
        let mut other = self.other.duplicate();
        *other.attributes = self.current.attributes.named_by(&other.graph);
        other
    }
}

fn different(path: &str) -> Error {
    Error::taken(
        path,
        format_args!(
            "the graph for training and that for evaluation have different things at `{path}`: give one another path"
        ),
    )
}

impl Clone for DualGraphModule {
    fn clone(&self) -> Self {
        self.duplicate()
    }
}

impl fmt::Debug for DualGraphModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.training {
            "training"
        } else {
            "evaluation"
        };
        write!(f, "{:?} in {mode} mode", self.current)
    }
}

impl Component for DualGraphModule {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.component(self, |walk| {
            walk.training(self.training);
            self.current.visit_parts(walk);
        });
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        walk.module(self);
        let knows = self.other.graph.knows_anything();
        for op in self.current.visit_watched(None, walk, knows) {
            self.other.graph.forget_op(&op);
        }
        let mut training = self.training;
        walk.training(&mut training);
        self.switch(training);
    }

    fn part(&self, path: &str) -> Option<&dyn Component> {
        self.current.part(path)
    }

    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        self.current.part_mut(path)
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
        DualGraphModule {
            current: self.current.duplicate(),
            other: self.other.duplicate(),
            training: self.training,
        }
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        saver.nested(|saver| {
            let other = self.whole_other();
            let (train, eval) = match self.training {
                true => (&self.current, &other),
                false => (&other, &self.current),
            };
            let mut fields = JsonMap::new();
            save_field(train, "train", &mut fields, saver)?;
            save_field(eval, "eval", &mut fields, saver)?;
            save_field(&self.training, "training", &mut fields, saver)?;
            Ok(Json::Object(fields))
        })
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        let fields = json::object(saved)?;
        loader.nested(|loader| {
            let train = GraphModule::from_field("train", fields, loader)?;
            let eval = GraphModule::from_field("eval", fields, loader)?;
            let training = bool::from_field("training", fields, loader)?;
            let mut both = DualGraphModule::new(train, eval)?;
            both.switch(training);
            Ok(both)
        })
    }
}

crate::__private::submit! { ModuleType, ModuleType::named::<DualGraphModule>(|| "fx_core::DualGraphModule") }

impl Module for DualGraphModule {
    fn params(&self) -> &[ParamSpec] {
        self.current.params()
    }

    fn input_trees(&self) -> &[Tree] {
        self.current.input_trees()
    }

    fn as_graph(&self) -> Option<(&Graph, &Attributes)> {
        self.current.as_graph()
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        self.current.run(args, out)
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.duplicate())
    }

    fn effects(&self) -> Effects {
        self.current.effects()
    }
}
