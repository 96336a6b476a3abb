//! The named differences between PyTorch and Rust; it owns that each has a name and a reason, and none is silent.

use std::fmt;

use crate::golden::Literal;

/// A difference that a comparison accepts, where and only where it is needed.
///
/// Pass those that a golden needs to [`crate::compare::compare_graphs`]; one that was not needed is a difference
/// itself. The first group is fixed and applies to the whole graph; the second names one place and says why itself.
/// Callees are given by their last name segment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Exception {
    /// PyTorch passes `inplace=False` where our function has no such parameter.
    PythonInplaceFlag,
    /// PyTorch passes an integer as `_stacklevel` where our function has no such parameter.
    PythonStacklevel,
    /// PyTorch passes `dtype=None` where our function has no such parameter.
    NoneDtype,
    /// PyTorch has an integer where we have the float of the same value.
    IntLiteralForFloatParameter,
    /// PyTorch passes values one by one (`view(x, 2, 3)`) where we pass them as one list or tuple at the end.
    VariadicAsOneSequence,
    /// PyTorch has a tuple where we have a list of the same elements.
    ListForTuple,
    /// PyTorch has a list where we have a tuple of the same elements.
    TupleForList,
    /// PyTorch's placeholder `input_1` is our `input`.
    PythonReservedName,
    /// PyTorch's placeholder has a default value, ours has none.
    PythonDefaultValue,

    /// PyTorch returns a list of the flattened results where our graph returns the result itself.
    FlattenedOutput,

    /// An argument that has another name here.
    PlaceholderRenamed {
        /// Its name in the golden.
        theirs: &'static str,
        /// Its name here.
        ours: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// PyTorch passes the keyword `name` with `value` where our function has no such parameter.
    PythonOnlyArgument {
        /// The golden's function, method or module path.
        callee: &'static str,
        /// The keyword.
        name: &'static str,
        /// The one value for which this holds.
        value: Literal,
        /// The reason.
        why: &'static str,
    },
    /// A function that has another name here.
    FunctionRenamed {
        /// Its name in the golden.
        theirs: &'static str,
        /// Its name here.
        ours: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A method that has another name here.
    MethodRenamed {
        /// Its name in the golden.
        theirs: &'static str,
        /// Its name here.
        ours: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A function there that is a method here.
    MethodForFunction {
        /// The golden's function.
        theirs: &'static str,
        /// Our method.
        ours: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A method there that is a function here.
    FunctionForMethod {
        /// The golden's method.
        theirs: &'static str,
        /// Our function.
        ours: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A keyword that has another name here.
    ArgumentRenamed {
        /// The golden's function, method or module path.
        callee: &'static str,
        /// The keyword in the golden.
        theirs: &'static str,
        /// Our parameter.
        ours: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A golden node, by name, that has no counterpart here.
    OnlyInTorch {
        /// The golden node's name.
        node: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A node of ours, by name, that has no counterpart in the golden.
    OnlyInRust {
        /// Our node's name.
        node: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A golden node that repeats an earlier one (same opcode, target and arguments); here both are one.
    RepeatedInTorch {
        /// The golden node's name.
        node: &'static str,
        /// The name of the golden node that it repeats.
        first: &'static str,
        /// The reason.
        why: &'static str,
    },
}

impl Exception {
    /// The exception's name, as it stands in a list of those used.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Exception::PythonInplaceFlag => "PythonInplaceFlag",
            Exception::PythonStacklevel => "PythonStacklevel",
            Exception::NoneDtype => "NoneDtype",
            Exception::IntLiteralForFloatParameter => "IntLiteralForFloatParameter",
            Exception::VariadicAsOneSequence => "VariadicAsOneSequence",
            Exception::ListForTuple => "ListForTuple",
            Exception::TupleForList => "TupleForList",
            Exception::PythonReservedName => "PythonReservedName",
            Exception::PythonDefaultValue => "PythonDefaultValue",
            Exception::FlattenedOutput => "FlattenedOutput",
            Exception::PlaceholderRenamed { .. } => "PlaceholderRenamed",
            Exception::PythonOnlyArgument { .. } => "PythonOnlyArgument",
            Exception::FunctionRenamed { .. } => "FunctionRenamed",
            Exception::MethodRenamed { .. } => "MethodRenamed",
            Exception::MethodForFunction { .. } => "MethodForFunction",
            Exception::FunctionForMethod { .. } => "FunctionForMethod",
            Exception::ArgumentRenamed { .. } => "ArgumentRenamed",
            Exception::OnlyInTorch { .. } => "OnlyInTorch",
            Exception::OnlyInRust { .. } => "OnlyInRust",
            Exception::RepeatedInTorch { .. } => "RepeatedInTorch",
        }
    }

    /// Why the difference is right.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Exception::PythonInplaceFlag => {
                "a Rust op does not write into its argument behind a flag, so there is no flag to be off"
            }
            Exception::PythonStacklevel => {
                "_stacklevel only tells Python's warnings which caller to blame"
            }
            Exception::NoneDtype => {
                "dtype=None means `as the input is`; a Rust op without the parameter does just that"
            }
            Exception::IntLiteralForFloatParameter => {
                "the parameter is a float: Rust writes 0.0 where Python takes 0"
            }
            Exception::VariadicAsOneSequence => {
                "Rust functions are not variadic: sizes and dims are one argument"
            }
            Exception::ListForTuple => {
                "the Rust parameter is a slice or Vec, recorded as a list, where Python was given a tuple"
            }
            Exception::TupleForList => {
                "the Rust caller passes a tuple where Python was given a list"
            }
            Exception::PythonReservedName => {
                "PyTorch numbers names that are Python builtins; they are not builtins in Rust"
            }
            Exception::PythonDefaultValue => {
                "Rust functions have no default arguments, and an option that was traced as there needs to be there"
            }
            Exception::FlattenedOutput => {
                "our output node holds the structure of the result, so there is nothing to put together afterwards"
            }
            Exception::PythonOnlyArgument { why, .. }
            | Exception::PlaceholderRenamed { why, .. }
            | Exception::FunctionRenamed { why, .. }
            | Exception::MethodRenamed { why, .. }
            | Exception::MethodForFunction { why, .. }
            | Exception::FunctionForMethod { why, .. }
            | Exception::ArgumentRenamed { why, .. }
            | Exception::OnlyInTorch { why, .. }
            | Exception::OnlyInRust { why, .. }
            | Exception::RepeatedInTorch { why, .. } => why,
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Exception::PythonOnlyArgument {
                callee,
                name,
                value,
                ..
            } => write!(f, " ({callee}: {name}={value})"),
            Exception::PlaceholderRenamed { theirs, ours, .. }
            | Exception::FunctionRenamed { theirs, ours, .. }
            | Exception::MethodRenamed { theirs, ours, .. }
            | Exception::MethodForFunction { theirs, ours, .. }
            | Exception::FunctionForMethod { theirs, ours, .. } => {
                write!(f, " ({theirs} -> {ours})")
            }
            Exception::ArgumentRenamed {
                callee,
                theirs,
                ours,
                ..
            } => write!(f, " ({callee}: {theirs} -> {ours})"),
            Exception::OnlyInTorch { node, .. } | Exception::OnlyInRust { node, .. } => {
                write!(f, " (%{node})")
            }
            Exception::RepeatedInTorch { node, first, .. } => write!(f, " (%{node} is %{first})"),
            _ => Ok(()),
        }
    }
}
