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

/// What runs: arguments by reference in the signature's order, the result into a recycled value.
pub type Kernel = fn(&[&Value], &mut Value) -> Result<()>;

/// What a call may do besides returning its result: a set.
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
    /// None: equal calls give equal results and may be merged or dropped.
    pub const PURE: Effects = Effects { bits: 0 };
    /// Draws random numbers.
    pub const RANDOM: Effects = Effects { bits: 1 };
    /// Reads state that others change.
    pub const READS: Effects = Effects { bits: 2 };
    /// Changes state.
    pub const WRITES: Effects = Effects { bits: 4 };
    /// Talks to the outside, or stops the run.
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

/// What runs of a function that was made at run time.
pub(crate) type DynamicKernel = dyn Fn(&[&Value]) -> Result<Value> + Send + Sync;

/// The definition behind a [`Function`]. `#[wrap]` writes it.
#[derive(Clone)]
#[non_exhaustive]
pub struct FunctionDef {
    /// The public path, `crate::module::name`.
    pub path: &'static str,
    /// The parameters.
    pub params: &'static [ParamSpec],
    /// The result's Rust type, as written, without `Result`; empty where it depends on the arguments.
    pub returns: &'static str,
    /// The same as data; none where it depends on the arguments.
    pub result: Option<&'static ParamType>,
    /// Declared effects.
    pub effects: Effects,
    /// Recorded whatever its arguments (`#[wrap(always)]`).
    pub always: bool,
    /// Its first two arguments may change places (`#[wrap(commutative)]`).
    pub commutative: bool,
    /// For methods: the receiver's type.
    pub receiver: Option<fn() -> TypeId>,
    /// The built-in operator that it is, if it is one.
    pub operator: Option<Operator>,
    /// How a call of the method is written, where its name and its signature do not say it; of the call's arguments, all
    /// of the signature's, the receiver first (`#[wrap(method = custom, written = ..)]`).
    pub written: Option<WriteCall>,
    kernel: Kernel,
    dynamic: Option<&'static DynamicKernel>,
}

impl FunctionDef {
    /// A pure function of any result.
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
            always: false,
            commutative: false,
            receiver: None,
            operator: None,
            written: None,
            kernel,
            dynamic: None,
        }
    }

    /// With the result's type, as text and as data.
    #[must_use]
    pub const fn returns(mut self, text: &'static str, ty: &'static ParamType) -> Self {
        self.returns = text;
        self.result = Some(ty);
        self
    }

    /// With effects.
    #[must_use]
    pub const fn effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// Whether it is recorded whatever its arguments.
    #[must_use]
    pub const fn always(mut self, always: bool) -> Self {
        self.always = always;
        self
    }

    /// Whether its first two arguments may change places.
    #[must_use]
    pub const fn commutative(mut self, commutative: bool) -> Self {
        self.commutative = commutative;
        self
    }

    /// As a method of a type.
    #[must_use]
    pub const fn method_of(mut self, receiver: fn() -> TypeId) -> Self {
        self.receiver = Some(receiver);
        self
    }

    /// As a built-in operator.
    pub(crate) const fn operator(mut self, operator: Operator) -> Self {
        self.operator = Some(operator);
        self.commutative = operator.is_commutative();
        self
    }

    /// With how a call of the method is written.
    #[must_use]
    pub const fn written(mut self, written: WriteCall) -> Self {
        self.written = Some(written);
        self
    }

    /// With what runs made at run time.
    pub(super) fn dynamic(mut self, run: &'static DynamicKernel) -> Self {
        self.dynamic = Some(run);
        self
    }

    /// What runs, where that is no closure.
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

/// Tells how a call with these arguments is written; `None` where it is as its signature says.
pub type WriteCall = fn(&[Argument]) -> Option<Written>;

/// How a method's call is written in Rust: `x.sum_keepdim(1)` for `sum(x, 1, true)`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The method's name.
    pub method: &'static str,
    /// What stands in its parentheses.
    pub args: Vec<WrittenArg>,
    /// The result's type, where it depends on the arguments.
    pub result: Option<ParamType>,
}

impl Written {
    /// The call of a method with these arguments, whose result is of the function's type.
    pub fn new(method: &'static str, args: impl IntoIterator<Item = WrittenArg>) -> Self {
        Written {
            method,
            args: args.into_iter().collect(),
            result: None,
        }
    }

    /// With a result of this type.
    #[must_use]
    pub fn with_result(mut self, result: ParamType) -> Self {
        self.result = Some(result);
        self
    }
}

/// An argument of a method's call as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrittenArg {
    /// An argument, by its place in the signature; of an optional one the value that is there.
    Of(usize),
    /// Rust's text.
    Text(&'static str),
}

/// A function that a graph can call; two are equal when their paths are.
#[derive(Clone, Copy)]
pub struct Function(&'static FunctionDef);

impl Function {
    /// The function of a definition.
    pub const fn new(def: &'static FunctionDef) -> Self {
        Function(def)
    }

    /// The definition.
    pub fn def(self) -> &'static FunctionDef {
        self.0
    }

    /// The public path.
    pub fn path(self) -> &'static str {
        self.0.path
    }

    /// The last segment of the path, without `r#`.
    pub fn name(self) -> &'static str {
        let path = self.0.path;
        let last = match path.bytes().rposition(|b| b == b':') {
            Some(colon) => &path[colon + 1..],
            None => path,
        };
        last.strip_prefix("r#").unwrap_or(last)
    }

    /// The parameters.
    pub fn params(self) -> &'static [ParamSpec] {
        self.0.params
    }

    /// Whether calls may be dropped or merged.
    pub fn is_pure(self) -> bool {
        self.0.effects.is_pure()
    }

    /// Whether it was made at run time, by [`Function::dynamic`], so that neither files nor source can name it.
    pub fn is_dynamic(self) -> bool {
        self.0.dynamic.is_some()
    }

    /// Runs the function on bound arguments, one for each parameter, without asking modes or a trace.
    ///
    /// # Errors
    /// What the function says.
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

/// Why a function made at run time is in no file and in no source.
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
