//! The built-in operators: Rust's and PyTorch's `a + b`, `a > b`, `a[i]`, as data.

use std::fmt;

/// A built-in operator. Its name in graphs is PyTorch's: `a + b` is `add`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are PyTorch's and say all")]
pub enum Operator {
    Add,
    Sub,
    Mul,
    Truediv,
    Mod,
    Neg,
    Invert,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Getitem,
    Matmul,
    Pow,
    Floordiv,
    And,
    Or,
    Xor,
    Lshift,
    Rshift,
    Abs,
}

impl Operator {
    /// The name in graphs, as in PyTorch's `operator` module.
    pub fn name(self) -> &'static str {
        match self {
            Operator::Add => "add",
            Operator::Sub => "sub",
            Operator::Mul => "mul",
            Operator::Truediv => "truediv",
            Operator::Mod => "mod",
            Operator::Neg => "neg",
            Operator::Invert => "invert",
            Operator::Eq => "eq",
            Operator::Ne => "ne",
            Operator::Lt => "lt",
            Operator::Le => "le",
            Operator::Gt => "gt",
            Operator::Ge => "ge",
            Operator::Getitem => "getitem",
            Operator::Matmul => "matmul",
            Operator::Pow => "pow",
            Operator::Floordiv => "floordiv",
            Operator::And => "and_",
            Operator::Or => "or_",
            Operator::Xor => "xor",
            Operator::Lshift => "lshift",
            Operator::Rshift => "rshift",
            Operator::Abs => "abs",
        }
    }

    /// Whether `a op b` equals `b op a`, for numbers and tensors.
    pub const fn is_commutative(self) -> bool {
        matches!(
            self,
            Operator::Add
                | Operator::Mul
                | Operator::And
                | Operator::Or
                | Operator::Xor
                | Operator::Eq
                | Operator::Ne
        )
    }

    /// The infix symbol in Rust, if there is one.
    pub fn infix(self) -> Option<&'static str> {
        Some(match self {
            Operator::Add => "+",
            Operator::Sub => "-",
            Operator::Mul => "*",
            Operator::Truediv => "/",
            Operator::Mod => "%",
            Operator::Eq => "==",
            Operator::Ne => "!=",
            Operator::Lt => "<",
            Operator::Le => "<=",
            Operator::Gt => ">",
            Operator::Ge => ">=",
            Operator::And => "&",
            Operator::Or => "|",
            Operator::Xor => "^",
            Operator::Lshift => "<<",
            Operator::Rshift => ">>",
            _ => return None,
        })
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.infix().unwrap_or(self.name()))
    }
}
