//! Functions that graphs call: a public path, a signature, a kernel and declared effects.

use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::argument::Argument;
use super::param_type::ParamType;
use super::signature::ParamSpec;
use crate::error::{Error, Result};
use crate::value::operator::Operator;
use crate::value::value::Value;

/// The code that runs: arguments by reference in signature order, the result into a recycled value.
pub type Kernel = fn(&[&Value], &mut Value) -> Result<()>;

/// The set of effects that a call may have besides returning its result.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::Effects;
/// #[wrap(effects(reads, random))] fn sample(x: Float) -> Result<Float> { Ok(x) }
/// let effects = function!(sample).def().effects;
/// assert_eq!(effects, Effects::READS.union(Effects::RANDOM));
/// assert!(!effects.contains(Effects::WRITES));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    bits: u8,
}

impl Effects {
    /// No effects: equal calls give equal results and may be merged or dropped.
    pub const PURE: Effects = Effects { bits: 0 };
    /// Draws random numbers.
    pub const RANDOM: Effects = Effects { bits: 1 };
    /// Reads state that others change.
    pub const READS: Effects = Effects { bits: 2 };
    /// Changes state.
    pub const WRITES: Effects = Effects { bits: 4 };
    /// Interacts with the outside, or stops the run.
    pub const IO: Effects = Effects { bits: 8 };
    /// All of them.
    pub const ALL: Effects = Effects { bits: 15 };

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Effects) -> Effects {
        Effects {
            bits: self.bits | other.bits,
        }
    }

    /// Whether the set is empty.
    pub const fn is_pure(self) -> bool {
        self.bits == 0
    }

    /// Whether all of `other` is in the set.
    pub const fn contains(self, other: Effects) -> bool {
        self.bits & other.bits == other.bits
    }
}

/// The code of a function created at run time.
pub(crate) type DynamicKernel = dyn Fn(&[&Value]) -> Result<Value> + Send + Sync;

/// The definition of a [`Function`]. `#[wrap]` generates it.
#[derive(Clone)]
#[non_exhaustive]
pub struct FunctionDef {
    /// The public path, `crate::module::name`.
    pub path: &'static str,
    /// The parameters.
    pub params: &'static [ParamSpec],
    /// The result's Rust type, as written, without `Result`; empty if it depends on the arguments.
    pub returns: &'static str,
    /// The same as data; `None` if it depends on the arguments.
    pub result: Option<&'static ParamType>,
    /// Declared effects.
    pub effects: Effects,
    /// The index of the boolean parameter without which a call has no effects (`#[wrap(random = training)]`).
    pub effects_if: Option<usize>,
    /// Whether it is recorded whatever its arguments are (`#[wrap(always)]`).
    pub always: bool,
    /// Whether its first two arguments may be swapped (`#[wrap(commutative)]`).
    pub commutative: bool,
    /// For methods: the receiver's type.
    pub receiver: Option<fn() -> TypeId>,
    /// The built-in operator that it implements, if any.
    pub operator: Option<Operator>,
    /// How a method call is written if its name and signature do not determine it. Called with all
    /// arguments of the signature, the receiver first (`#[wrap(method = custom, written = ..)]`).
    pub written: Option<WriteCall>,
    kernel: Kernel,
    dynamic: Option<&'static DynamicKernel>,
}

impl FunctionDef {
    /// Creates a pure function with an unspecified result type.
    pub const fn new(
        path: &'static str,
        params: &'static [ParamSpec],
        kernel: Kernel,
    ) -> FunctionDef {
        FunctionDef {
            path,
            params,
            returns: "",
            result: None,
            effects: Effects::PURE,
            effects_if: None,
            always: false,
            commutative: false,
            receiver: None,
            operator: None,
            written: None,
            kernel,
            dynamic: None,
        }
    }

    /// Sets the result's type, as text and as data.
    #[must_use]
    pub const fn returns(mut self, text: &'static str, ty: &'static ParamType) -> Self {
        self.returns = text;
        self.result = Some(ty);
        self
    }

    /// Sets the effects.
    #[must_use]
    pub const fn effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// Sets the boolean parameter without which a call has no effects, by its index.
    #[must_use]
    pub const fn effects_if(mut self, parameter: usize) -> Self {
        self.effects_if = Some(parameter);
        self
    }

    /// Sets whether it is recorded whatever its arguments are.
    #[must_use]
    pub const fn always(mut self, always: bool) -> Self {
        self.always = always;
        self
    }

    /// Sets whether its first two arguments may be swapped.
    #[must_use]
    pub const fn commutative(mut self, commutative: bool) -> Self {
        self.commutative = commutative;
        self
    }

    /// Makes it a method of a type.
    #[must_use]
    pub const fn method_of(mut self, receiver: fn() -> TypeId) -> Self {
        self.receiver = Some(receiver);
        self
    }

    /// Makes it a built-in operator.
    pub(crate) const fn operator(mut self, operator: Operator) -> Self {
        self.operator = Some(operator);
        self.commutative = operator.is_commutative();
        self
    }

    /// Sets how a call to the method is written.
    #[must_use]
    pub const fn written(mut self, written: WriteCall) -> Self {
        self.written = Some(written);
        self
    }

    /// Sets the code of a function created at run time.
    pub(super) fn dynamic(mut self, run: &'static DynamicKernel) -> Self {
        self.dynamic = Some(run);
        self
    }

    /// The code that runs, unless it is a closure.
    pub(crate) fn kernel(&self) -> Option<Kernel> {
        self.dynamic.is_none().then_some(self.kernel)
    }
}

impl fmt::Debug for FunctionDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionDef")
            .field("path", &self.path)
            .field("params", &self.params)
            .field("returns", &self.returns)
            .field("effects", &self.effects)
            .finish_non_exhaustive()
    }
}

/// Returns how a call with these arguments is written; `None` if it follows the signature.
pub type WriteCall = fn(&[Argument]) -> Option<Written>;

/// How a method's call is written in Rust: `x.sum_keepdim(1)` for `sum(x, 1, true)`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The method's name.
    pub method: &'static str,
    /// The arguments in its parentheses.
    pub args: Vec<WrittenArg>,
    /// The result's type, if it depends on the arguments.
    pub result: Option<ParamType>,
}

impl Written {
    /// A call to a method with these arguments, whose result has the function's type.
    pub fn new(method: &'static str, args: impl IntoIterator<Item = WrittenArg>) -> Self {
        Written {
            method,
            args: args.into_iter().collect(),
            result: None,
        }
    }

    /// Sets the result's type.
    #[must_use]
    pub fn with_result(mut self, result: ParamType) -> Self {
        self.result = Some(result);
        self
    }
}

/// An argument of a method call in source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrittenArg {
    /// An argument, by its position in the signature; for an optional one, the inner value.
    Of(usize),
    /// Literal Rust text.
    Text(&'static str),
}

/// A function that a graph can call; functions are equal if their paths are.
#[derive(Clone, Copy)]
pub struct Function(&'static FunctionDef);

impl Function {
    /// Creates the function from its definition.
    pub const fn new(def: &'static FunctionDef) -> Self {
        Function(def)
    }

    /// The definition.
    pub fn def(self) -> &'static FunctionDef {
        self.0
    }

    /// The public path.
    pub const fn path(self) -> &'static str {
        self.0.path
    }

    /// The last segment of the path, without `r#`.
    pub fn name(self) -> &'static str {
        name_of(self.0.path)
    }

    /// The parameters.
    pub fn params(self) -> &'static [ParamSpec] {
        self.0.params
    }

    /// Whether calls may be dropped or merged.
    pub fn is_pure(self) -> bool {
        self.0.effects.is_pure()
    }

    /// Whether it was created at run time by [`Function::dynamic`], so that neither files nor
    /// source can name it.
    pub fn is_dynamic(self) -> bool {
        self.0.dynamic.is_some()
    }

    /// Runs the function on bound arguments, one per parameter, without consulting modes or a
    /// trace.
    ///
    /// # Errors
    /// Returns the error of the function.
    #[inline]
    pub fn run(self, args: &[&Value], out: &mut Value) -> Result<()> {
        match self.0.dynamic {
            None => (self.0.kernel)(args, out),
            Some(run) => {
                *out = run(args)?;
                Ok(())
            }
        }
    }
}

/// The last segment of a path, without `r#`.
pub(super) fn name_of(path: &str) -> &str {
    let last = match path.bytes().rposition(|b| b == b':') {
        Some(colon) => &path[colon + 1..],
        None => path,
    };
    last.strip_prefix("r#").unwrap_or(last)
}

/// The error for a function created at run time, which no file or source can contain.
pub(crate) fn dynamic_error(function: Function) -> Error {
    Error::unregistered(
        function.path(),
        format_args!(
            "`{}` was made at run time, by `Function::dynamic`, and nothing else can name it: declare it with #[wrap] in a library, or decompose its calls first",
            function.path()
        ),
    )
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0) || self.0.path == other.0.path
    }
}
impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.path.hash(state);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.0.path)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.path)
    }
}
