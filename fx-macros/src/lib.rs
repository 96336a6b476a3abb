//! The macros of fx: `#[trace]`, `#[wrap]`, `#[derive(Module)]`, `traced!` and `function!`.
//!
//! Each works in the same way: `parse` reads the item into a model, `check` refuses what cannot be
//! traced, `expand` writes the code. A refused item is still written out, with what its users need
//! of it (`expand::stub`), so that only the actual mistake is reported.

mod attributes;
mod body;
mod check;
mod configured;
mod control;
mod expand;
mod options;
mod parse;
mod paths;
mod refusal;
mod spans;

use proc_macro::TokenStream;

/// Makes a `forward` traceable: on an `impl` block that has one, or on a function.
///
/// Inside, comparisons of traced values are recorded (`(x > 0.5)?`), and a traced value as a condition does
/// not compile. Trace the result with `symbolic_trace(&module)`, or `Trace::new(&module).tracer(MyTracer)`.
///
/// ```
/// use fx_nn::prelude::*;
///
/// #[derive(Module, Clone)]
/// struct Gate { linear: nn::Linear }
///
/// #[trace]
/// impl Gate {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         let y = self.linear.forward(x)?;
///         &y * (y > 0.0)?
///     }
/// }
///
/// #[trace]
/// fn twice(x: &Tensor) -> Result<Tensor> { x * 2.0 }
///
/// assert_eq!(symbolic_trace(&Gate { linear: nn::Linear::new(4, 4)? })?.graph().len(), 5);
/// assert_eq!(symbolic_trace(traced!(twice))?.graph().len(), 3);
/// # Ok::<(), Error>(())
/// ```
///
/// # Options
///
/// - `leaf`: tracers record a call of the module instead of tracing into it. A root is always traced into.
/// - `opaque`: a leaf whose body works on data and calls no operations: nothing traces into it, not even
///   `GraphModule::opened`.
/// - `container`: the module only passes values between its parts, so what it records is at the line of its own call.
/// - `impure`: running the module does more than compute its result, so that its calls are never merged or removed.
///   `impure = method` asks the module's method of that name, which returns a `bool`.
/// - `path = "my_crate::Layer"`: the public path of the type, where its module is private.
/// - `control_flow`: an `if`, a `match`, a loop and a jump whose condition is traced are decided by the graph, when it
///   runs.
/// - `handle = name`: another name for the handle that `traced!` looks up, where a module has the function's name.
///
/// ```
/// use fx_nn::prelude::*;
///
/// #[derive(Module, Clone)]
/// struct Noise { std: f64, training: bool }
///
/// /// One node in every graph; in evaluation mode an unused call may go.
/// #[trace(leaf, impure = is_noisy)]
/// impl Noise {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         if !self.training { return Ok(x.clone()) }
///         x + (ops::randn_like(x, None)? * self.std)?
///     }
/// }
///
/// impl Noise {
///     fn is_noisy(&self) -> bool { self.training }
/// }
///
/// let net = nn::Sequential::new().push(Noise { std: 0.1, training: false });
/// let gm = symbolic_trace(&net)?;
/// assert!(gm.code().contains("Noise") || gm.graph().to_string().contains("call_module[target=0]"));
/// # Ok::<(), Error>(())
/// ```
#[proc_macro_attribute]
pub fn trace(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::trace(options.into(), item.into()).into()
}

/// Makes a function a leaf: a call with a symbolic argument is recorded as one node.
///
/// On a function, or on an `impl` block whose methods all become leaves. The body is plain Rust, which runs when the
/// graph runs: it may look at numbers, and it compares tensors by methods, `x.gt(0.5)?`.
///
/// ```
/// use fx_nn::prelude::*;
///
/// /// `x` cut to `[-limit, limit]`.
/// #[wrap]
/// fn clip(x: &Tensor, #[kw] #[default(1.0)] limit: f64) -> Result<Tensor> {
///     x.clamp(-limit, limit)
/// }
///
/// let gm = symbolic_trace(traced!(|x: &Tensor| clip(&clip(x, 1.0)?, 0.5)))?;
/// let text = gm.graph().to_string();
/// assert!(text.contains("clip](args = (%x,), kwargs = {})")); // the default is not recorded
/// assert!(text.contains("clip](args = (%clip,), kwargs = {limit: 0.5})"));
/// # Ok::<(), Error>(())
/// ```
///
/// # Parameters
///
/// - `#[default(value)]`: a graph need not hold this value, and a call in a graph that leaves it out gets it. A call in
///   Rust passes it like any other.
/// - `#[kw]`: the argument is recorded by name. A call in Rust passes it in its place.
///
/// # Options
///
/// - `method`: also a method of the first argument's type, in the crate that defines the type. With `method = custom`
///   the author writes the methods by hand, over `name::method(..)`, and `written = function` names the function that
///   generated source calls instead.
/// - `random`, `effects(random, reads, writes, io)`: what a call does besides computing its result. Calls with effects
///   are neither merged nor moved past each other, and those that write are not removed. `impure` is all of these.
///   `impure = training` and `random = training` name a boolean parameter: a call for which it is `false` has no effects.
/// - `always`: recorded whatever the arguments are, also where none of them is traced.
/// - `commutative`: patterns may swap the first two arguments.
/// - `path = "my_crate::name"`: the public path, where the module is private.
///
/// ```
/// use fx_nn::prelude::*;
///
/// /// Drawn again by each run: without `always` it would be a constant of the graph.
/// #[wrap(random, always)]
/// fn jitter(scale: f64) -> Result<Tensor> { Tensor::rand(1)? * scale }
///
/// #[wrap(commutative)]
/// fn mean_of(a: &Tensor, b: &Tensor) -> Result<Tensor> { (a + b)? * 0.5 }
///
/// let gm = symbolic_trace(traced!(|x: &Tensor| mean_of(x, &jitter(0.1)?)))?;
/// assert_eq!(gm.graph().len(), 4);
/// # Ok::<(), Error>(())
/// ```
#[proc_macro_attribute]
pub fn wrap(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::wrap(options.into(), item.into()).into()
}

/// Makes a function a leaf, as [`macro@wrap`] does, and states what is known of it: its record. `fx_nn::OpInfo` reads
/// it.
///
/// The options of `#[wrap]` are options here too. A kind (`unary`, `binary`, `compare`, `reduce`, `along`, `view`, `pick`,
/// `pool`, `conv`, `norm`, `loss`, `draw`, `create`) says how the result's dims relate to those of the arguments. The facts:
///
/// | fact | what |
/// |---|---|
/// | `rule = f` | the shape rule, a function of `RuleCall`, if the body reads elements |
/// | `member` | a member of the core set |
/// | `decomposed = f` | not a member: how others write it, a function of `DecomposedCall` |
/// | `composed = f` | how others write a member, for formats without a form for it |
/// | `cost = f` | its multiplications with an addition, a function of `CountedCall` |
/// | `cpu = f` | the steps of compiled code, a function of `Points` |
/// | `flat = "why"` | no gradient runs through it |
/// | `vjp = f` | its gradients in reverse mode: `fn(&mut func::Pullback<'_>) -> Result<()>` |
/// | `batch = f` | its call for many examples: `fn(&func::BatchCall<'_>) -> Result<Value>` |
/// | `samples = f` | calls for `fx_nn::testing::check_op`, in tests of its crate |
///
/// The rule is the contract: a call that fails is refused in its words, if it refuses the arguments. The arguments are
/// cloned for that, which costs nothing where they are borrowed or plain.
///
/// ```
/// use fx_nn::cpu::{Point, Points, Unary};
/// use fx_nn::prelude::*;
/// use fx_nn::{OpInfo, OpKind, op};
///
/// /// x · |x|.
/// #[op(unary, cpu = steps)]
/// fn signed_square(x: &Tensor) -> Result<Tensor> {
///     x * x.abs()?
/// }
///
/// fn steps(points: &mut Points<'_, '_>) -> Option<Point> {
///     let x = points.tensor("x")?;
///     let size = points.unary(Unary::Abs, x);
///     Some(points.binary(fx_nn::cpu::Binary::Mul, x, size))
/// }
///
/// let info = OpInfo::of(function!(signed_square))?;
/// assert_eq!(info.kind, Some(OpKind::Unary));
/// assert!(info.cpu.is_some());
/// # Ok::<(), Error>(())
/// ```
#[proc_macro_attribute]
pub fn op(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::op(options.into(), item.into()).into()
}

/// Makes a struct or enum a part of modules: its fields are children, parameters, buffers or plain data.
///
/// A field of a module type, a container of modules (`Vec`, `Option`, `Box<dyn Module>`, `IndexMap<String, _>`) or a
/// structure of these is a child; a `Tensor` is a parameter; numbers, texts and the like are plain data, which files keep.
/// Paths are the fields' names, as in PyTorch: `layers.0.weight`.
///
/// ```
/// use fx_nn::prelude::*;
///
/// #[derive(Module, Clone)]
/// struct Block {
///     layers: Vec<nn::Linear>,
///     scale: Tensor,
///     width: usize,
/// }
///
/// let block = Block { layers: vec![nn::Linear::new(4, 4)?], scale: Tensor::ones(4)?.into_parameter()?, width: 4 };
/// let names: Vec<String> = block.named_parameters().into_keys().collect();
/// assert_eq!(names, ["layers.0.weight", "layers.0.bias", "scale"]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Field options
///
/// - `#[module(buffer)]`: a tensor that is saved and not trained. With `persistent = false` the constructor computes it,
///   and no file has it; it follows the module's dtype and device.
/// - `#[module(name = "gamma")]`: the field's name in paths, where Rust's differs.
/// - `#[module(flatten)]`: the field's parts are named as if they were the struct's own. That is how to extend a layer
///   and keep the names of its parameters, and how a map of modules has their names without its own.
/// - `#[module(skip)]`: no part of the module. Its tensors are in no list and no file, and a saved module has the
///   field's `Default`.
/// - `#[module(training)]`: the flag that `train()` and `eval()` set; a field `training: bool` is one without the option.
///
/// ```
/// use fx_nn::prelude::*;
///
/// #[derive(Module, Clone)]
/// struct RunningMean {
///     #[module(name = "gamma")]
///     weight: Tensor,
///     #[module(buffer)]
///     mean: Tensor,
///     #[module(buffer, persistent = false)]
///     positions: Tensor,
///     #[module(flatten)]
///     heads: IndexMap<String, nn::Linear>,
///     #[module(skip)]
///     calls: Vec<String>,
///     #[module(training)]
///     learns: bool,
/// }
///
/// let mut module = RunningMean {
///     weight: Tensor::ones(2)?.into_parameter()?,
///     mean: Tensor::zeros(2)?,
///     positions: Tensor::zeros(8)?,
///     heads: [("age".to_string(), nn::Linear::new(2, 1)?)].into_iter().collect(),
///     calls: Vec::new(),
///     learns: true,
/// };
/// let parameters: Vec<String> = module.named_parameters().into_keys().collect();
/// assert_eq!(parameters, ["gamma", "age.weight", "age.bias"]);
/// assert!(module.state_dict().contains_key("mean") && !module.state_dict().contains_key("positions"));
/// module.eval();
/// assert!(!module.learns);
/// # Ok::<(), Error>(())
/// ```
///
/// # Types without data
///
/// A module is identified by its address, which a type without a size does not have: a struct without data has a field
/// `tag: Tag` (`Tag` is in the preludes), and does not compile without it.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(item: TokenStream) -> TokenStream {
    expand::module(item.into()).into()
}

/// Makes a struct a structure of values, as lists, tuples and dicts are: its fields go through graphs by name.
///
/// It can be an argument and a result of `#[trace]` and `#[wrap]` functions, and flows as a dict with its
/// fields' names; a tuple struct flows as a tuple. The struct is `Clone`.
///
/// ```
/// use fx_nn::prelude::*;
///
/// #[derive(Tree, Clone)]
/// struct Batch { ids: Tensor, mask: Option<Tensor> }
///
/// #[trace]
/// fn total(batch: Batch) -> Result<Tensor> {
///     match &batch.mask {
///         Some(mask) => (&batch.ids * mask)?.sum(..),
///         None => batch.ids.sum(..),
///     }
/// }
///
/// // Which fields are traced is said before the trace; `PH` stands for a traced value.
/// let trace = Trace::new(traced!(total)).concrete("batch", tree!({"ids": PH, "mask": PH}));
/// let gm = trace.graph_module()?;
/// let (ids, mask) = (Tensor::full(3, 2.0, DType::F32)?, Tensor::ones(3)?);
/// let sum: Tensor = gm.forward(Batch { ids, mask: Some(mask) })?;
/// assert_eq!(sum.item()?, 6.0);
/// # Ok::<(), Error>(())
/// ```
#[proc_macro_derive(Tree)]
pub fn derive_tree(item: TokenStream) -> TokenStream {
    expand::tree(item.into()).into()
}

/// A function marked `#[trace]`, or a closure, as the root of a trace.
///
/// ```
/// use fx_nn::prelude::*;
///
/// #[trace]
/// fn double(x: &Tensor) -> Result<Tensor> { x * 2.0 }
///
/// let named = symbolic_trace(traced!(double))?;
/// let closure = symbolic_trace(traced!(|x: &Tensor| x * 2.0))?;
/// assert_eq!(named.graph().to_string(), closure.graph().to_string());
/// # Ok::<(), Error>(())
/// ```
#[proc_macro]
pub fn traced(input: TokenStream) -> TokenStream {
    expand::traced(input.into()).into()
}

/// The `fx_core::ir::Function` of a `#[wrap]` function, as graphs call it.
///
/// ```
/// use fx_nn::ir::Op;
/// use fx_nn::prelude::*;
///
/// let gm = symbolic_trace(traced!(|x: &Tensor| ops::relu(x)))?;
/// assert_eq!(gm.graph().find_nodes(&Op::CallFunction(function!(ops::relu))).len(), 1);
/// # Ok::<(), Error>(())
/// ```
#[proc_macro]
pub fn function(input: TokenStream) -> TokenStream {
    expand::function(input.into()).into()
}

/// Adds an entry to a table of the registry: `(path of fx-core) Table, entry`.
#[doc(hidden)]
#[proc_macro]
pub fn entry(input: TokenStream) -> TokenStream {
    expand::entry_of(input.into()).into()
}

/// Adds an entry to a table of functions: `(path of fx-core) (type) (function) (entry)`.
#[doc(hidden)]
#[proc_macro]
pub fn table_entry(input: TokenStream) -> TokenStream {
    expand::table_entry(input.into()).into()
}

/// Declares a table of the registry: `(path of fx-core) Table`.
#[doc(hidden)]
#[proc_macro]
pub fn table(input: TokenStream) -> TokenStream {
    expand::table(input.into()).into()
}
