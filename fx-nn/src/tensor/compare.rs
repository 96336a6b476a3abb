//! Operators as methods: `x.gt(0.0)` for `x > 0.0` where the operators are plain Rust's, and powers
//! and other operators of Python that Rust lacks.

use fx_core::Result;
use fx_core::tensor::{Operand, binary, unary};
use fx_core::value::Operator;

use super::Tensor;

macro_rules! comparisons {
    ($($name:ident $op:ident $sign:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("Where `self ", $sign, " other`, as truth values; shapes broadcast.")]
            ///
            /// # Errors
            /// Returns an error if the shapes do not broadcast.
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Result<Tensor> {
                binary(Operator::$op, self, &other)
            }
        )*}
    };
}

comparisons! {
    eq Eq "==";
    ne Ne "!=";
    lt Lt "<";
    le Le "<=";
    gt Gt ">";
    ge Ge ">=";
}

impl Tensor {
    /// Each element to the power of `exponent`, PyTorch's `x ** exponent`; shapes broadcast.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast.
    #[track_caller]
    pub fn pow(&self, exponent: impl Operand) -> Result<Tensor> {
        binary(Operator::Pow, &self, &exponent)
    }

    /// The quotient rounded down, PyTorch's `x // divisor`; shapes broadcast.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or an integer is divided by zero.
    #[track_caller]
    pub fn floor_divide(&self, divisor: impl Operand) -> Result<Tensor> {
        binary(Operator::Floordiv, &self, &divisor)
    }

    /// The absolute values.
    ///
    /// # Errors
    /// Returns an error if the tensor is of truth values.
    #[track_caller]
    pub fn abs(&self) -> Result<Tensor> {
        unary(Operator::Abs, &self)
    }
}
