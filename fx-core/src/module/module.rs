//! `Module`: a component with a `forward`, callable without knowing its type; and `Attributes`, the
//! modules and tensors that a graph names, which a module with a graph has.
//!
//! Invariant: a module is whole at any time: it can be run, copied and saved.

use std::any::Any;
use std::fmt;
use std::panic::Location;

use super::items::{Item, Items};
use super::walk::{Component, TensorKind};
use crate::error::Result;
use crate::ir::function::Effects;
use crate::ir::graph::Graph;
use crate::ir::param_type::ParamType;
use crate::ir::signature::ParamSpec;
use crate::value::tree::Tree;
use crate::value::value::Value;

impl std::fmt::Debug for dyn Module {
    /// The type's name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::value::object::short_type_name(self.type_name()))
    }
}

/// Runs one graph of a module: its name, itself, its arguments, and the place of its result.
pub type RunGraph<'a> =
    &'a mut dyn FnMut(&'static str, &dyn Module, &[&Value], &mut Value) -> Result<()>;

/// A component with a `forward`. `#[trace] impl` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "has no traced `forward`",
    note = "derive `Module` for the struct, and annotate the impl block that has `forward` with #[trace]"
)]
pub trait Module: Component + Any + Send + Sync {
    /// The parameters of `forward`.
    fn params(&self) -> &[ParamSpec];

    /// The type that `forward` returns inside its `Result`, as written; empty if unknown.
    fn returns(&self) -> &str {
        ""
    }

    /// The same as data; `None` if unknown.
    fn result_type(&self) -> Option<ParamType> {
        None
    }

    /// Runs the body of `forward` on bound arguments, without consulting a tracer.
    ///
    /// # Errors
    /// Returns an error if an argument has the wrong type, or the body fails.
    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()>;

    /// This module as a trait object.
    fn as_module(&self) -> &dyn Module;

    /// A copy whose tensors share storage with this one's.
    fn duplicate_box(&self) -> Box<dyn Module>;

    /// Whether tracers record a call to it instead of tracing its body (`#[trace(leaf)]`).
    fn is_leaf(&self) -> bool {
        false
    }

    /// Whether its body works on data and calls no operations, so that nothing traces into it
    /// (`#[trace(opaque)]`).
    fn is_opaque(&self) -> bool {
        false
    }

    /// Whether it only passes values between its parts (`#[trace(container)]`), so that what it
    /// records is at the line of its own call, and not at one of its lines.
    fn is_container(&self) -> bool {
        false
    }

    /// The effects of running it besides its result: drawing random numbers, updating statistics.
    fn effects(&self) -> Effects {
        Effects::PURE
    }

    /// Why generated source cannot call it; `None` if it can.
    fn source_problem(&self) -> Option<&'static str> {
        None
    }

    /// The names of its parts that are graph modules and may run in a call of it: the sides of a
    /// branch, the body of a loop. What is done to nested graph modules is done to these too.
    fn graph_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Runs it as [`run`](Module::run) does, and each graph that
    /// [`graph_names`](Module::graph_names) names by `run`, which gets its name, itself and its
    /// arguments: a run step by step takes the steps inside too.
    ///
    /// # Errors
    /// As [`run`](Module::run), and the error of `run`.
    fn run_graphs(&self, args: &[&Value], out: &mut Value, run: RunGraph<'_>) -> Result<()> {
        let _ = run;
        self.run(args, out)
    }

    /// How many values its graph carries from one run to the next in one call; 0 if it runs once.
    #[doc(hidden)]
    fn carried(&self) -> usize {
        0
    }

    /// Its graph, and what that names, if it is a graph module.
    #[doc(hidden)]
    fn as_graph(&self) -> Option<(&Graph, &Attributes)> {
        None
    }

    /// Forgets what was derived from the graphs that [`graph_names`](Module::graph_names) names:
    /// they were edited.
    #[doc(hidden)]
    fn graphs_changed(&mut self) {}

    /// The source location of its `forward`.
    fn location(&self) -> Option<&'static Location<'static>> {
        None
    }

    /// The structure of each parameter, if a graph has an input for each of its leaves; empty if
    /// every parameter is one input. A trace of the module flattens its arguments the same way.
    fn input_trees(&self) -> &[Tree] {
        &[]
    }

    /// Starts an undoable edit if the module keeps a journal. Returns `false` if it does not; a
    /// copy of the module is then kept instead.
    #[doc(hidden)]
    fn open_edit(&mut self) -> bool {
        false
    }

    /// Ends the innermost edit, and undoes it unless `keep` is set.
    #[doc(hidden)]
    fn close_edit(&mut self, keep: bool) {
        let _ = keep;
    }

    /// The type's full name.
    fn type_name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }
}

/// What a container takes as a layer: a module, or one in a box.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer",
    label = "expected a module, or a `Box<dyn Module>`",
    note = "a constructor that can fail needs a `?`: `push(nn::Linear::new(4, 8)?)`",
    note = "a module derives `Module`, and the impl block of its `forward` is marked #[trace]; a function is a layer as such a struct"
)]
pub trait IntoModule {
    /// The module in a box.
    fn into_module(self) -> Box<dyn Module>;
}

impl<M: Module> IntoModule for M {
    fn into_module(self) -> Box<dyn Module> {
        Box::new(self)
    }
}

impl IntoModule for Box<dyn Module> {
    fn into_module(self) -> Box<dyn Module> {
        self
    }
}

impl<M: Module> From<M> for Box<dyn Module> {
    fn from(module: M) -> Self {
        Box::new(module)
    }
}

impl Item for Box<dyn Module> {
    fn open_edit(&mut self) -> bool {
        (**self).open_edit()
    }

    fn close_edit(&mut self, keep: bool) {
        (**self).close_edit(keep);
    }
}

/// The modules, parameters, buffers and constants that a graph names.
#[derive(Default, Clone)]
#[non_exhaustive]
pub struct Attributes {
    /// Called modules, by path.
    pub modules: Items<Box<dyn Module>>,
    /// Tensors of `get_attr` nodes, by path. Such a node may also name a module, which is then
    /// passed to a function.
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
