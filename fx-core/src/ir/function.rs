//! Functions that graphs call: a public path, a signature, a kernel and declared effects.

use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::argument::Argument;
use super::param_type::ParamType;
use super::signature::ParamSpec;
use crate::error::Result;
use crate::value::operator::Operator;
use crate::value::value::Value;

/// What runs: arguments by reference in the signature's order, the result into a recycled value.
pub type Kernel = fn(&[&Value], &mut Value) -> Result<()>;

/// What a call may do besides returning its result.
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

/// The definition behind a [`Function`]. `#[wrap]` writes it.
#[derive(Debug)]
pub struct FunctionDef {
    /// The public path, `crate::module::name`.
    pub path: &'static str,
    /// The parameters.
    pub params: &'static [ParamSpec],
    /// The result's Rust type, as written, without `Result`; empty where it depends on the arguments.
    pub returns: &'static str,
    /// The same as data; none where it depends on the arguments.
    pub result: Option<ParamType>,
    /// What runs.
    pub kernel: Kernel,
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
}

/// Tells how a call with these arguments is written; `None` where it is as its signature says.
pub type WriteCall = fn(&[Argument]) -> Option<Written>;

/// How a method's call is written in Rust: `x.sum_keepdim(1)` for `sum(x, 1, true)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The method's name.
    pub method: &'static str,
    /// What stands in its parentheses.
    pub args: Vec<WrittenArg>,
    /// The result's type, where it depends on the arguments.
    pub result: Option<ParamType>,
}

/// An argument of a method's call as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
