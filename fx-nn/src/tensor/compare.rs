//! Comparisons as methods: `x.gt(0.0)` is `x > 0.0` where operators are plain Rust's.

use fx_core::{Operand, Operator, Result, binary};

use super::Tensor;

macro_rules! comparisons {
    ($($name:ident $op:ident $sign:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("Where `self ", $sign, " other`, as truth values; shapes broadcast.")]
            ///
            /// # Errors
            /// When the shapes do not broadcast.
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
