//! How fx-nn's functions and fx's operators are called for many examples at once, a family a file.
//!
//! Invariant: each example of the result is what the function gives for that example.

mod elementwise;
mod picks;
mod products;
mod views;
mod windows;

/// Rules: the function, the call, and what it gives for all examples.
macro_rules! batching {
    ($($($function:ident)::+ => |$call:ident| $rule:expr;)*) => {$(
        ::fx_core::function_table! { $crate::func::Batching {
            ::fx_core::function!($($function)::+) => $crate::func::Batching(|$call| {
                let result: ::fx_core::Result<_> = $rule;
                result.map(::fx_core::value::IntoValue::into_value)
            })
        } }
    )*};
}
use batching;
