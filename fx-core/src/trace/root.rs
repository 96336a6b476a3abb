//! Roots of traces, modules and functions, and the run of a trace from placeholders to output.

use std::any::TypeId;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

use super::concrete::PH;
use super::concrete::{all_symbolic, params_of_trace, specialised_to};
use super::context::{Specialised, TraceContext};
use super::infers::Infers;
use super::report::Report;
use super::scope::{Active, Running};
use super::tracer::{SymbolicTracer, Tracer};
use crate::error::{Error, Result};
use crate::ir::argument::{Args, Kwargs};
use crate::ir::function::Kernel;
use crate::ir::graph::Graph;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;
use crate::ir::unnamed::Unnamed;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::module::order::PartOrder;
use crate::shapes::Contract;
use crate::value::tree::Tree;
use crate::value::value::{IntoValue, Value};

/// A kernel that has captured something.
type CapturingKernel = dyn Fn(&[&Value], &mut Value) -> Result<()>;

/// What runs a traced function's body: a function, or a closure with what it captured.
#[derive(Clone)]
enum Body {
    Function(Kernel),
    Closure(Rc<CapturingKernel>),
}

/// A function that can be traced: what [`traced!`](crate::traced) makes.
#[derive(Clone)]
pub struct TracedFn {
    name: &'static str,
    params: &'static [ParamSpec],
    body: Body,
    location: &'static Location<'static>,
    /// The function that `#[trace]` stands on.
    function: Option<fn() -> TypeId>,
    unlike: Option<&'static str>,
}

impl TracedFn {
    /// Written by `#[trace]`: the twin of a function.
    #[doc(hidden)]
    pub const fn twin(
        name: &'static str,
        params: &'static [ParamSpec],
        kernel: Kernel,
        location: &'static Location<'static>,
        function: fn() -> TypeId,
    ) -> Self {
        TracedFn {
            name,
            params,
            body: Body::Function(kernel),
            location,
            function: Some(function),
            unlike: None,
        }
    }

    /// Written by `traced!` for a closure.
    #[doc(hidden)]
    #[track_caller]
    pub fn closure(
        params: &'static [ParamSpec],
        body: impl Fn(&[&Value], &mut Value) -> Result<()> + 'static,
    ) -> Self {
        TracedFn {
            name: "closure",
            params,
            body: Body::Closure(Rc::new(body)),
            location: Location::caller(),
            function: None,
            unlike: None,
        }
    }

    /// Written by `traced!` for a name: makes sure that the name's function is the annotated one.
    #[doc(hidden)]
    #[must_use]
    pub fn checked<F: 'static>(mut self, _value: F) -> Self {
        if self.function.is_some_and(|f| f() != TypeId::of::<F>()) {
            self.unlike = Some(std::any::type_name::<F>());
        }
        self
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The function's parameters.
    pub fn params(&self) -> &'static [ParamSpec] {
        self.params
    }
}

impl fmt::Debug for TracedFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "traced!({})", self.name)
    }
}

/// A root: a module or a function, or what records a function of them.
#[derive(Clone)]
pub enum Rooted<'r> {
    /// A module.
    Module(&'r dyn Module),
    /// A function.
    Function(TracedFn),
    /// What records a function that has no body of its own.
    Recorder(&'r dyn Recorder),
}

/// What records a function that has no body of its own, such as the gradient of another one: a root of a trace.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::ParamSpec;
/// use fx_core::trace::{Recorder, Rooted};
/// /// A function that is called twice.
/// #[derive(Clone)]
/// struct Twice(Vec<ParamSpec>, fn(Float) -> Result<Float>);
/// impl Recorder for Twice {
///     fn name(&self) -> &str { "twice" }
///     fn params(&self) -> &[ParamSpec] { &self.0 }
///     fn record(&self, args: &[&Value], out: &mut Value) -> Result<()> {
///         use fx_core::value::IntoValue;
///         *out = self.1(self.1(Float::from_value(args[0].clone())?)?)?.into_value();
///         Ok(())
///     }
///     fn duplicate(&self) -> Box<dyn Recorder> { Box::new(self.clone()) }
/// }
/// let twice = Twice(vec![ParamSpec::of_text("x", "Float")], |x| x * 3.0);
/// let gm = symbolic_trace(&twice as &dyn Recorder)?;
/// assert_eq!(gm.forward::<f64>(2.0)?, 18.0);
/// # Ok::<(), Error>(())
/// ```
pub trait Recorder {
    /// Its name.
    fn name(&self) -> &str;

    /// Its parameters.
    fn params(&self) -> &[ParamSpec];

    /// The structure of each parameter, if one is no single leaf.
    fn input_trees(&self) -> &[Tree] {
        &[]
    }

    /// The module whose parameters and buffers it reads, if there is one: they keep their paths.
    fn module(&self) -> Option<&dyn Module> {
        None
    }

    /// Computes the function on symbolic values, which records it.
    ///
    /// # Errors
    /// Returns an error if the function cannot be recorded for these arguments.
    fn record(&self, args: &[&Value], out: &mut Value) -> Result<()>;

    /// A copy that shares the tensors.
    fn duplicate(&self) -> Box<dyn Recorder>;
}

impl<'r> Root<'r> for &'r dyn Recorder {
    fn into_rooted(self) -> Rooted<'r> {
        Rooted::Recorder(self)
    }
}

/// What can be traced: a reference to a module, or a [`traced!`](crate::traced) function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be traced",
    label = "expected a reference to a module, or `traced!(function)`",
    note = "a module derives `Module` and has its `forward` in an impl block marked #[trace]"
)]
pub trait Root<'r> {
    /// The root, as a module or a function.
    fn into_rooted(self) -> Rooted<'r>;
}

impl<'r, M: Module + ?Sized> Root<'r> for &'r M {
    fn into_rooted(self) -> Rooted<'r> {
        Rooted::Module(self.as_module())
    }
}

impl Root<'_> for TracedFn {
    fn into_rooted(self) -> Rooted<'static> {
        Rooted::Function(self)
    }
}

/// What a trace recorded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// The computation.
    pub graph: Graph,
    /// What it names.
    pub attributes: Attributes,
    /// The root's parameters.
    pub params: Vec<ParamSpec>,
    /// The structure of each parameter: an input for each leaf.
    pub inputs: Vec<Tree>,
    /// What was frozen.
    pub report: Report,
    /// The root's name.
    pub name: String,
    /// What the shapes hold for, if the trace knew those of its [inputs](Trace::inputs).
    pub contract: Option<Contract>,
    /// The parts of the root that source cannot name.
    pub(crate) unnamed: Unnamed,
    /// The order of the root's parts, if the graph names them in another one.
    pub(crate) order: Option<PartOrder>,
}

/// A trace to run: the root, the tracer, and arguments to specialise.
#[must_use = "a trace runs when its graph is asked for"]
pub struct Trace<'r> {
    root: Rooted<'r>,
    /// The module of which a function is a method.
    owner: Option<&'r dyn Module>,
    tracer: Rc<dyn Tracer>,
    specialised: Specialised,
    /// What infers shapes while recording.
    pub(crate) shapes: Option<Box<dyn Infers>>,
}

/// The default tracer. Here and not inlined, so that a user's crate does not compile it again.
#[inline(never)]
fn default_tracer() -> Rc<dyn Tracer> {
    Rc::new(SymbolicTracer)
}

impl<'r> Trace<'r> {
    /// A trace of a root with the default tracer.
    pub fn new(root: impl Root<'r>) -> Self {
        Trace {
            root: root.into_rooted(),
            owner: None,
            tracer: default_tracer(),
            specialised: Specialised::default(),
            shapes: None,
        }
    }

    /// Uses another tracer.
    pub fn tracer(mut self, tracer: impl Tracer) -> Self {
        self.tracer = Rc::new(tracer);
        self
    }

    /// Traces a function as a method of a module other than `forward` (torch.fx's
    /// `traced_func_name`): the module's layers and tensors that it uses have their paths in the
    /// module.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use fx_core::prelude::*;
    /// #[derive(Module)]
    /// struct Scale { by: f64 }
    /// #[trace(leaf)]
    /// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
    ///
    /// #[derive(Module)]
    /// struct Coder { scale: Scale }
    /// #[trace]
    /// impl Coder { fn forward(&self, x: Float) -> Result<Float> { self.encode(x)? - 1.0 } }
    /// impl Coder { fn encode(&self, x: Float) -> Result<Float> { self.scale.forward(x)? + 1.0 } }
    ///
    /// let coder = Rc::new(Coder { scale: Scale { by: 2.0 } });
    /// let same = coder.clone();
    /// let encode = traced!(move |x: Float| same.encode(x));
    /// let gm = Trace::new(encode).method_of(&*coder).graph_module()?;
    /// assert_eq!(gm.graph().find_name("scale").map(|node| node.target()), Some("scale"));
    /// assert_eq!(gm.forward::<f64>(3.0)?, 7.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// The function has to use the module itself, shared by an `Rc`, and not a copy. A trace of a
    /// module is not affected.
    pub fn method_of<M: Module + ?Sized>(mut self, module: &'r M) -> Self {
        self.owner = Some(module.as_module());
        self
    }

    /// Specialises an argument: the graph is for this value, and guards it.
    ///
    /// Each leaf of a structure (a list, a tuple, a dict; see [`tree!`](crate::tree)) becomes an
    /// input: [`PH`](crate::trace::PH) leaves stay symbolic, the others are guarded. The traced
    /// module is called like the function, with the structure. A tensor is specialised without a
    /// guard. A plain argument with a default that is left open is specialised to its default, and
    /// an `Option` to its absence: [`PH`](crate::trace::PH) traces it as present, and the graph
    /// then needs it.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[trace]
    /// fn scaled(x: Float, by: Option<Float>) -> Result<Float> {
    ///     match by { Some(by) => x * by, None => Ok(x) }
    /// }
    /// let absent = symbolic_trace(traced!(scaled))?;
    /// assert_eq!(absent.forward::<f64>(2.5)?, 2.5);
    /// let there = Trace::new(traced!(scaled)).concrete("by", PH).graph_module()?;
    /// assert_eq!(there.forward::<f64>((2.5, 2.0))?, 5.0);
    /// assert!(absent.forward::<f64>((2.5, 2.0)).is_err() && there.forward::<f64>(2.5).is_err());
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// #[trace]
    /// fn scaled(x: Value, twice: bool) -> Result<(Value, Int)> {
    ///     Ok((x, Int::from(if twice { 2 } else { 1 })))
    /// }
    /// let gm = Trace::new(traced!(scaled)).concrete("twice", true).graph_module()?;
    /// let (_, times): (f64, i64) = gm.forward((2.5, true))?;
    /// assert_eq!(times, 2);
    /// let error = gm.forward::<(f64, i64)>((2.5, false)).unwrap_err();
    /// assert!(error.to_string().contains("\"twice\" was specialised to true"));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn concrete(mut self, argument: &str, value: impl IntoValue) -> Self {
        self.specialised
            .values
            .insert(argument.to_string(), value.into_value());
        self
    }

    /// Leaves the guards of specialised arguments out: the graph runs on any value as if it were
    /// the one that the argument was specialised to.
    pub fn unguarded(mut self) -> Self {
        self.specialised.unguarded = true;
        self
    }

    /// Traces an optional parameter as present; others are anyway.
    pub(crate) fn present(self, param: &ParamSpec) -> Self {
        match param.is_optional() {
            true => self.concrete(&param.name, PH),
            false => self,
        }
    }

    /// Runs the trace and returns what it froze.
    ///
    /// # Errors
    /// As [`run`](Trace::run).
    pub fn report(self) -> Result<Report> {
        self.run().map(|outcome| outcome.report)
    }

    /// Runs the trace.
    ///
    /// # Errors
    /// Returns an error if the root's forward fails, or something cannot be traced.
    pub fn run(self) -> Result<Outcome> {
        trace(self)
    }

    /// Runs the trace and returns its graph.
    ///
    /// # Errors
    /// As [`run`](Trace::run).
    pub fn graph(self) -> Result<Graph> {
        self.run().map(|outcome| outcome.graph)
    }
}

fn trace(trace: Trace<'_>) -> Result<Outcome> {
    let Trace {
        root,
        owner,
        tracer,
        mut specialised,
        shapes,
    } = trace;
    let root = &root;
    let type_of = |module: &dyn Module| crate::value::object::short_type_name(module.type_name());
    let (module, name, params) = match root {
        Rooted::Module(module) => (Some(*module), type_of(*module), module.params()),
        Rooted::Function(function) => {
            let name = owner.map_or_else(|| function.name.to_string(), type_of);
            (owner, name, function.params)
        }
        Rooted::Recorder(recorder) => (
            recorder.module(),
            recorder.name().to_string(),
            recorder.params(),
        ),
    };
    if let Rooted::Function(TracedFn {
        unlike: Some(found),
        name,
        location,
        ..
    }) = root
    {
        return Err(Error::msg(format_args!(
            "`traced!({name})` found the annotated function of {}:{}, but `{name}` here is `{found}`: annotate that one with #[trace], or name the other by its path",
            location.file(),
            location.line()
        )));
    }
    let trees = match root {
        Rooted::Module(module) => module.input_trees(),
        Rooted::Recorder(recorder) => recorder.input_trees(),
        Rooted::Function(_) => &[],
    };
    for (param, tree) in params.iter().zip(trees) {
        if !tree.is_leaf() && !specialised.values.contains_key(param.name.as_ref()) {
            let value = all_symbolic(tree)?;
            specialised.values.insert(param.name.to_string(), value);
        }
    }
    if let Rooted::Module(module) = root
        && let Some((graph, _)) = module.as_graph()
    {
        for (param, value) in specialised_to(graph, params)? {
            specialised.values.entry(param).or_insert(value);
        }
    }
    let active = Rc::new(Active {
        tracer,
        context: TraceContext::new(module, specialised),
    });
    active.context.shapes.replace(shapes);
    if let Some(module) = module {
        active.context.take_path_check().finish(module)?;
    }
    let result = recorded(&active, |context| {
        context.check_concrete(&name, params)?;
        let location = match root {
            Rooted::Module(module) => module.location(),
            Rooted::Function(function) => Some(function.location),
            Rooted::Recorder(_) => None,
        };
        if let Some(location) = location {
            context.set_body(location);
        }
        let args = active.tracer.create_args_for_root(context, params)?;
        context.start_shapes(params)?;
        let args: Vec<&Value> = args.iter().collect();
        let mut out = Value::None;
        let mut run = || match root {
            Rooted::Module(module) => module.run(&args, &mut out),
            Rooted::Recorder(recorder) => recorder.record(&args, &mut out),
            Rooted::Function(function) => {
                context.set_body(function.location);
                match &function.body {
                    Body::Function(kernel) => kernel(&args, &mut out),
                    Body::Closure(body) => body(&args, &mut out),
                }
            }
        };
        match module {
            Some(module) => context.in_scope("".into(), module, run)?,
            None => run()?,
        }
        context.at_body();
        context.repacked(out)
    });
    result?;
    let contract = active.context.finish_shapes()?;
    let recorded = active.context.take_parts();
    Ok(Outcome {
        contract,
        graph: recorded.graph,
        attributes: recorded.attributes,
        order: recorded.order,
        params: params_of_trace(params, &active.context),
        inputs: recorded.inputs,
        report: recorded.report,
        unnamed: recorded.unnamed,
        name,
    })
}

/// Runs `body` inside a trace, and makes its result the graph's output.
fn recorded(active: &Rc<Active>, body: impl FnOnce(&TraceContext) -> Result<Value>) -> Result<()> {
    let _running = Running::start(active.clone());
    let context = &active.context;
    let out = body(context)?;
    context.check_sides()?;
    let result = active.tracer.create_arg(context, &out)?;
    active.tracer.create_node(
        context,
        Op::Output,
        Args::from_iter([result]),
        Kwargs::new(),
        None,
    )?;
    Ok(())
}

/// A new graph for a module, made by `body`, placeholders and all.
pub(crate) fn retraced(
    tracer: impl Tracer,
    module: &dyn Module,
    body: impl FnOnce(&TraceContext) -> Result<Value>,
) -> Result<Outcome> {
    let active = Rc::new(Active {
        tracer: Rc::new(tracer),
        context: TraceContext::new(Some(module), Specialised::default()),
    });
    recorded(&active, body)?;
    let recorded = active.context.take_parts();
    Ok(Outcome {
        contract: None,
        graph: recorded.graph,
        attributes: recorded.attributes,
        order: recorded.order,
        params: module.params().to_vec(),
        inputs: module.input_trees().to_vec(),
        report: recorded.report,
        unnamed: recorded.unnamed,
        name: crate::value::object::short_type_name(module.type_name()),
    })
}
