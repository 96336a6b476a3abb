//! `GraphModule`: a graph with the modules, parameters and constants that it names, ready to run.
//!
//! Invariant: parameters and program match the current graph, which `edit` ensures.

pub(crate) mod around;
mod as_module;
pub(crate) mod compiled;
mod contract;
mod dead_code;
mod divided;
mod dual;
pub(crate) mod edit;
pub(crate) mod folder;
mod functional;
mod hoisted;
mod kept;
pub(crate) mod nested_source;
pub(crate) mod open_edits;
pub(crate) mod parts;
mod regions;
mod saved;
mod source;
mod state;
pub(crate) mod surgery;
mod tensors;

pub use self::dual::DualGraphModule;
pub use self::edit::GraphEdit;
pub use self::folder::Folder;
pub use self::functional::functional_call;
pub use self::parts::{Submodule, SubmoduleMut};
pub use self::surgery::{ReplacedModule, Surgery};

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use self::compiled::Compiled;
use self::kept::KeptProgram;
use self::open_edits::Edits;
use crate::emit::hooks::Hooks;
use crate::error::{Error, Result};
use crate::ir::graph::Graph;
use crate::ir::lint::all_findings;
use crate::ir::meta::{Entries, Entry, Meta};
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::{ParamSpec, arguments_error};
use crate::ir::version::Version;
use crate::module::attributes::{Attributes, TENSOR, not_found, within};
use crate::module::call::Call;
use crate::module::order::PartOrder;
use crate::module::walk::Component;
use crate::outlined::Outlined;
use crate::region::ordered::Ordered;
use crate::run::interpreter::{Interpretation, Interpreter, PlainInterpreter};
use crate::run::program::StepObserver;
use crate::run::transform;
use crate::text::Escaped;
use crate::trace::call_args::{CallArgs, IntoArgs, argument_error, bind_values};
use crate::trace::convert::FromValue;
use crate::trace::dispatch::{call_module, is_symbolic_call};
use crate::trace::root::{Outcome, Root, Trace};
use crate::trace::scope::may_record;
use crate::value::handle::NodeId;
use crate::value::object::short_type_name;
use crate::value::tree::Tree;
use crate::value::value::Value;

/// A traced computation that runs: its graph and what the graph names.
///
/// ```
/// use fx_core::prelude::*;
/// let f = traced!(|x: Value| Ok(x));
/// let gm = symbolic_trace(f)?;
/// let y: f64 = gm.forward(2.5)?;
/// assert_eq!(y, 2.5);
/// # Ok::<(), fx_core::Error>(())
/// ```
pub struct GraphModule {
    graph: Outlined<Graph>,
    attributes: Outlined<Attributes>,
    params: Arc<Vec<ParamSpec>>,
    /// The structure of each parameter; empty if each is one input.
    trees: Arc<Vec<Tree>>,
    name: String,
    program: Outlined<OnceLock<KeptProgram>>,
    /// A backend's code.
    compiled: Option<Outlined<Compiled>>,
    /// Hooks that change generated source.
    hooks: Outlined<Hooks>,
    /// The entries of the module as a whole.
    entries: Outlined<Entries>,
    /// The version of the placeholders that the parameters match.
    followed: Version,
    /// The versions at which lint found nothing.
    checked: Option<[Version; 3]>,
    edits: Outlined<Edits<GraphModule>>,
}

/// Traces a module or a [`traced!`](crate::traced) function.
///
/// The modules that the graph calls are copied, with their current training flags; their tensors
/// share storage with the originals, so weights that are loaded or trained in place later are seen
/// by both. Switch the traced module itself with [`train`](crate::module::ComponentExt::train) and
/// [`eval`](crate::module::ComponentExt::eval).
///
/// # Errors
/// Returns an error if the root's forward fails, or something cannot be traced.
pub fn symbolic_trace<'r>(root: impl Root<'r>) -> Result<GraphModule> {
    Trace::new(root).graph_module()
}

impl Trace<'_> {
    /// Runs the trace and returns a module that runs its graph.
    ///
    /// # Errors
    /// As [`run`](Trace::run).
    pub fn graph_module(self) -> Result<GraphModule> {
        self.run().map(GraphModule::from)
    }
}

impl From<Outcome> for GraphModule {
    fn from(outcome: Outcome) -> Self {
        let mut module = GraphModule::of_parts(outcome.graph, outcome.attributes, &outcome.name);
        module.params = Arc::new(outcome.params);
        module.trees = Arc::new(outcome.inputs);
        module.follow_placeholders();
        if let Some(contract) = outcome.contract {
            module.set_meta(contract);
        }
        if !outcome.unnamed.0.is_empty() {
            module.set_meta(outcome.unnamed);
        }
        if let Some(order) = outcome.order {
            module.set_meta(order);
        }
        module
    }
}

impl GraphModule {
    /// A module of a graph and the attributes that it names.
    ///
    /// # Errors
    /// Returns an error if the graph names something that the attributes do not have, or breaks its
    /// rules.
    pub fn new(attributes: Attributes, graph: Graph, name: &str) -> Result<Self> {
        let module = GraphModule::of_checked(attributes, graph, name);
        module.program()?;
        Ok(module)
    }

    /// The same for a part of a graph whose calls were checked.
    pub(crate) fn of_checked(attributes: Attributes, graph: Graph, name: &str) -> Self {
        let mut module = GraphModule::of_parts(graph, attributes, name);
        module.follow_placeholders();
        module
    }

    /// A module of a graph, with what it names in another module, which need not have been traced:
    /// modules are copied, sharing their tensors, and the parameters are the graph's placeholders.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Graph;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    /// #[derive(Module)]
    /// struct Net { layers: Vec<Scale> }
    ///
    /// let net = Net { layers: vec![Scale { by: 2.0 }, Scale { by: 3.0 }] };
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let scaled = graph.call_module("layers.1", (x,), ())?;
    /// graph.output(scaled)?;
    /// let gm = GraphModule::of(&net, graph)?;
    /// assert_eq!((gm.class_name(), gm.forward::<f64>(2.0)?), ("Net", 6.0));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the module does not have what a node names (the error names the node), a
    /// path in it leads to two things, or the graph breaks its rules.
    pub fn of<C: Component>(module: &C, graph: Graph) -> Result<Self> {
        let attributes = Attributes::of(module, &graph)?;
        let order = PartOrder::of_module(module, &attributes);
        let name = short_type_name(std::any::type_name::<C>());
        let mut made = GraphModule::new(attributes, graph, &name)?;
        if let Some(order) = order {
            made.set_meta(order);
        }
        Ok(made)
    }

    /// A module whose parameters are not known yet.
    fn of_parts(graph: Graph, attributes: Attributes, name: &str) -> Self {
        GraphModule {
            followed: graph.inputs_version(),
            graph: Outlined::new(graph),
            attributes: Outlined::new(attributes),
            params: Arc::default(),
            trees: Arc::default(),
            name: name.to_string(),
            program: Outlined::default(),
            compiled: None,
            hooks: Outlined::default(),
            entries: Outlined::default(),
            checked: None,
            edits: Outlined::default(),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Graph and attributes, for another module.
    pub(crate) fn into_parts(mut self) -> (Graph, Attributes) {
        (
            std::mem::take(&mut *self.graph),
            std::mem::take(&mut *self.attributes),
        )
    }

    /// The structure of each parameter; empty if each is one input.
    pub(crate) fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// The modules, parameters and constants that the graph names.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The root's name.
    pub fn class_name(&self) -> &str {
        &self.name
    }

    /// The module's entry of a type: metadata of the module as a whole, beside the entries of its
    /// nodes.
    ///
    /// A clone has its entries, a [`transform`](GraphModule::transform) those whose policy is to be
    /// copied, and a file those whose type is registered
    /// ([`register_meta!`](crate::register_meta)). A failed edit leaves them unchanged.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::{Meta, MetaPolicy};
    /// #[derive(Debug, PartialEq)]
    /// struct Revision(u32);
    /// impl Meta for Revision {
    ///     const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    ///     const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
    /// }
    /// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// gm.set_meta(Revision(3));
    /// assert_eq!(gm.clone().meta(), Some(&Revision(3)));
    /// assert!(gm.remove_meta::<Revision>() && gm.meta::<Revision>().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn meta<T: Meta>(&self) -> Option<&T> {
        self.entries.get()
    }

    /// Sets the module's entry of a type.
    pub fn set_meta<T: Meta>(&mut self, value: T) {
        self.entries.put(Entry::of(value));
    }

    /// Has the entries that parts of another module have.
    pub(crate) fn put_entries_of(&mut self, whole: &GraphModule) {
        self.entries.put_all(whole.entries.of_part());
    }

    /// Removes the module's entry of a type; returns `false` if there was none.
    pub fn remove_meta<T: Meta>(&mut self) -> bool {
        self.entries.remove::<T>()
    }

    /// Runs the graph. A tuple is the argument list, [`args!`](crate::args) adds keywords; where the
    /// result's type is not inferred, write `forward::<Tensor>(..)`.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit, or a node fails: the error names it and its
    /// source line.
    #[track_caller]
    pub fn forward<R: FromValue>(&self, args: impl IntoArgs) -> Result<R> {
        R::from_value(self.result_of(args.into_args(), Location::caller())?)
    }

    /// What a call gives. Not generic, so that other crates do not compile it again.
    fn result_of(&self, args: CallArgs, caller: &'static Location<'static>) -> Result<Value> {
        let args = self.bind(args)?;
        let result = match may_record() {
            true => call_module(self, args, caller)?,
            false => self.run_values(args, None)?,
        };
        self.process_outputs(result)
    }

    /// [`forward`](GraphModule::forward), with an observer that is shown each call's node and its
    /// result, as soon as it is computed. The run stops with the error that the observer returns,
    /// so that it can be cancelled.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let mut seen = Vec::new();
    /// let y: f64 = gm.forward_observed(1.5, |node, value| {
    ///     seen.push(format!("{} = {}", node.name(), f64::from_value(value.clone())?));
    ///     Ok(())
    /// })?;
    /// assert_eq!((y, seen.join(", ")), (4.0, "mul = 3, add = 4".to_string()));
    ///
    /// let stopped = gm.forward_observed::<f64>(1.5, |_, _| Err(Error::msg("time is up")));
    /// assert!(stopped.is_err_and(|e| e.to_string().starts_with("while executing %mul")));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`forward`](GraphModule::forward), and the observer's error. Symbolic values cannot be
    /// observed, which is an error too: [`interpret`](GraphModule::interpret) runs on them.
    pub fn forward_observed<R: FromValue>(
        &self,
        args: impl IntoArgs,
        mut observer: impl FnMut(NodeRef<'_>, &Value) -> Result<()>,
    ) -> Result<R> {
        let args = self.bind(args.into_args())?;
        let result = self.run_values(args, Some(&mut observer))?;
        R::from_value(self.process_outputs(result)?)
    }

    /// Runs the graph node by node, each step by the interpreter: `forward` with every step
    /// overridable.
    ///
    /// # Errors
    /// As [`forward`](GraphModule::forward), and the error of an override.
    pub fn interpret<R: FromValue>(
        &self,
        interpreter: &mut (impl Interpreter + ?Sized),
        args: impl IntoArgs,
    ) -> Result<R> {
        let inputs = self.process_inputs(args)?;
        if let Some(contract) = self.contract() {
            contract.check(&inputs)?;
        }
        let result = self.interpretation().run(interpreter, inputs)?;
        R::from_value(self.process_outputs(result)?)
    }

    /// A run of the graph, node by node, to configure: values to keep, values that are known.
    pub fn interpretation(&self) -> Interpretation<'_> {
        Interpretation::new(&self.graph, &self.attributes)
    }

    /// A new module: the graph run node by node on symbolic values, each step by the interpreter.
    /// The result of an override replaces the node; the rest is recorded as it was, with names,
    /// types, defaults, entries and places in the source.
    ///
    /// # Errors
    /// Returns the error of an override or of the recording.
    pub fn transform(&self, interpreter: &mut impl Interpreter) -> Result<GraphModule> {
        self.transformed(interpreter, "")
    }

    /// As [`transform`](GraphModule::transform), of a module at a path inside of another one.
    fn transformed(&self, interpreter: &mut dyn Interpreter, path: &str) -> Result<GraphModule> {
        let run = self.interpretation().at(path);
        let mut module = GraphModule::from(transform::transform(self, run, interpreter)?);
        module.name.clone_from(&self.name);
        *module.hooks = self.hooks.clone();
        *module.entries = self.entries.copied();
        module.for_each_side(|at, side| {
            *side = side.transformed(interpreter, &within(path, at))?;
            Ok(())
        })?;
        Ok(module)
    }

    /// Checks the graph's rules, and that the attributes have what it names.
    ///
    /// # Errors
    /// Returns an error with all findings, one per line.
    pub fn lint(&self) -> Result<()> {
        let mut found = self.graph.findings();
        for node in self.graph.nodes() {
            let fits = match node.op() {
                Op::GetAttr(path) => match self.attributes.has(path) {
                    true => Ok(()),
                    false => Err(not_found(TENSOR, path)),
                },
                Op::CallModule(path) => match self.attributes.modules.get(path) {
                    Some(module) => node.fits(path, module.params()),
                    None => Err(not_found("module", path)),
                },
                _ => Ok(()),
            };
            if let Err(error) = fits {
                found.push(node.blame("checking", error));
            }
        }
        all_findings(found)
    }

    /// Whether a node does more than compute its result; modules declare this themselves.
    pub fn is_impure_node(&self, node: NodeRef<'_>) -> bool {
        !Call::of(node, &self.attributes).effects().is_pure()
    }

    /// A node as a call: what it calls, its arguments bound to the parameters, its effects.
    ///
    /// # Errors
    /// Returns an error if the node is not of this graph.
    pub fn call(&self, node: impl Into<NodeId>) -> Result<Call<'_>> {
        Ok(Call::of(self.graph.node(node.into())?, &self.attributes))
    }

    /// The nodes whose relative order matters, as the graph is now.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[wrap(impure)] fn tick(x: Float) -> Result<Float> { Ok(x) }
    /// let gm = symbolic_trace(traced!(|x: Float| tick(x)? + 1.0))?;
    /// let ordered = gm.ordered();
    /// let names = gm.graph().nodes().filter(|node| ordered.contains(*node)).map(|node| node.name().to_string());
    /// assert_eq!(names.collect::<Vec<_>>(), ["tick"]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn ordered(&self) -> Ordered {
        Ordered::of(&self.graph, &self.attributes)
    }

    /// The nodes between inputs and output that do more than compute their results: draw random
    /// numbers, change state.
    pub fn impure_nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        let nodes = self.graph.nodes();
        let inner = nodes.filter(|node| !matches!(node.op(), Op::Placeholder(_) | Op::Output));
        inner.filter(|node| self.is_impure_node(*node))
    }

    /// The values of the graph's placeholders for a call: arguments as the module's
    /// [`CodeGen`](crate::emit::CodeGen) takes them, bound to the parameters, defaults filled in,
    /// structures taken apart.
    ///
    /// # Errors
    /// Returns an error if the `CodeGen` fails, the arguments do not fit the parameters, or one has
    /// another structure than it was specialised to.
    pub fn process_inputs(&self, args: impl IntoArgs) -> Result<Vec<Value>> {
        self.flatten(self.bind(args.into_args())?)
    }

    /// The result of a call, from what the graph returned: the same, unless the module's
    /// [`CodeGen`](crate::emit::CodeGen) changes it.
    ///
    /// # Errors
    /// Returns the error of the `CodeGen`.
    pub fn process_outputs(&self, result: Value) -> Result<Value> {
        match self.hooks.own() {
            Some(codegen) => codegen.process_outputs(result),
            None => Ok(result),
        }
    }

    /// The arguments of a call, in the order of the parameters.
    fn bind(&self, args: CallArgs) -> Result<Vec<Value>> {
        let call = match self.hooks.own() {
            Some(codegen) => codegen.process_inputs(args)?,
            None => args,
        };
        bind_values(&self.name, &self.params, call)
    }

    /// Returns an error if an optional argument is absent that was traced as present.
    fn check_presence(&self, args: &[Value]) -> Result<()> {
        let absent = args.iter().zip(&*self.params).find(|(arg, param)| {
            matches!(arg, Value::None) && param.default.is_none() && param.is_optional()
        });
        match absent {
            None => Ok(()),
            Some((_, param)) => Err(arguments_error(
                &self.name,
                &self.params,
                format!(
                    "needs its argument `{0}`, which was there when this was traced: trace it without `.concrete(\"{0}\", PH)` for runs in which it is absent",
                    param.name
                ),
            )),
        }
    }

    /// Bound arguments, taken apart.
    fn flatten(&self, args: Vec<Value>) -> Result<Vec<Value>> {
        self.check_presence(&args)?;
        if self.trees.is_empty() {
            return Ok(args);
        }
        let mut flat = Vec::with_capacity(args.len());
        for (position, (arg, tree)) in args.into_iter().zip(&*self.trees).enumerate() {
            let leaves = tree
                .flatten(arg)
                .map_err(|e| argument_error(&self.name, &self.params, position, e))?;
            flat.extend(leaves);
        }
        Ok(flat)
    }

    /// Runs on bound arguments.
    fn run_values(
        &self,
        args: Vec<Value>,
        observer: Option<&mut StepObserver<'_>>,
    ) -> Result<Value> {
        self.run_with(&self.attributes, args, observer)
    }

    /// Runs on bound arguments, with modules and tensors in the same order as its own.
    fn run_with(
        &self,
        attributes: &Attributes,
        args: Vec<Value>,
        observer: Option<&mut StepObserver<'_>>,
    ) -> Result<Value> {
        let args = self.flatten(args)?;
        if is_symbolic_call(&args) {
            if observer.is_some() {
                return Err(Error::msg(
                    "symbolic values are recorded, not computed, so that there is nothing to observe; use `interpret`",
                ));
            }
            let mut run = Interpretation::new(&self.graph, attributes);
            return run.run(&mut PlainInterpreter, args);
        }
        if let Some(contract) = self.contract() {
            contract.check(&args)?;
        }
        // A backend's code has the tensors that it was made with.
        if observer.is_none()
            && std::ptr::eq(attributes, &*self.attributes)
            && let Some(result) = self.run_compiled(&args)
        {
            return result;
        }
        let program = self.program()?;
        let (Some(around), None) = (program.around(), &observer) else {
            return program.run(&self.graph, attributes, args, observer);
        };
        let (mut args, mut result) = (Some(args), None);
        around.run(&mut || {
            let args = args.take();
            result = args.map(|args| program.run(&self.graph, attributes, args, None));
        });
        result.unwrap_or_else(|| Err(Error::msg("what the graph runs in did not run it once")))
    }
}

impl fmt::Debug for GraphModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphModule({}, {} nodes)", self.name, self.graph.len())
    }
}

impl fmt::Display for GraphModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}(", Escaped(&self.name))?;
        for (path, module) in &self.attributes.modules {
            let name = short_type_name(module.type_name());
            writeln!(f, "  ({}): {name}", Escaped(path))?;
        }
        writeln!(f, ")\n")?;
        f.write_str(&self.code())
    }
}
