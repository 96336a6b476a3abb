//! `wrap_fn!`: functions of other crates as leaves, their plain arguments and results turned into
//! traced ones.

use super::convert::Output;
use crate::error::{Error, Result};
use crate::value::symbol::{Bool, Float, Int, Sym};

/// An argument of a leaf as the foreign function takes it.
#[diagnostic::on_unimplemented(
    message = "an argument of type `{Self}` cannot be given to a function that takes `{T}`",
    label = "of `Int`, `Float` and `Bool`, plain numbers and `bool`s can be made; other types are given as they are"
)]
pub trait ToForeign<T> {
    /// The argument.
    ///
    /// # Errors
    /// Returns an error if the number does not fit in the foreign type.
    fn to_foreign(self) -> Result<T>;
}

impl<T> ToForeign<T> for T {
    fn to_foreign(self) -> Result<T> {
        Ok(self)
    }
}

fn known<T: Copy + 'static>(value: Sym<T>) -> Result<T> {
    value
        .concrete()
        .ok_or_else(|| Error::msg("a leaf runs on known values"))
}

impl ToForeign<f64> for Float {
    fn to_foreign(self) -> Result<f64> {
        known(self)
    }
}

impl ToForeign<bool> for Bool {
    fn to_foreign(self) -> Result<bool> {
        known(self)
    }
}

impl ToForeign<i64> for Int {
    fn to_foreign(self) -> Result<i64> {
        known(self)
    }
}

macro_rules! narrower {
    ($($t:ty),*) => {$(
        impl ToForeign<$t> for Int {
            fn to_foreign(self) -> Result<$t> {
                let n = known(self)?;
                <$t>::try_from(n).map_err(|_| {
                    Error::expected(concat!("a number that fits in `", stringify!($t), "`"), n)
                })
            }
        }
    )*};
}
narrower!(i32, u32, u64, usize);

/// What a foreign function returns as the result of a leaf.
#[diagnostic::on_unimplemented(
    message = "a leaf that returns `{O}` cannot be a function that returns `{Self}`",
    label = "expected a value of the leaf's type, a plain number for `Int` or `Float`, or a `Result` of those"
)]
pub trait IntoLeaf<O> {
    /// The result.
    ///
    /// # Errors
    /// Returns the foreign function's own error.
    fn into_leaf(self) -> Result<O>;
}

impl<O: Output> IntoLeaf<O> for O {
    fn into_leaf(self) -> Result<O> {
        Ok(self)
    }
}

macro_rules! plain_result {
    ($($t:ty => $o:ty),*) => {$(
        impl IntoLeaf<$o> for $t {
            fn into_leaf(self) -> Result<$o> {
                Ok(Sym::Concrete(self.into()))
            }
        }
    )*};
}
plain_result!(f64 => Float, f32 => Float, i64 => Int, i32 => Int, u32 => Int, bool => Bool);

impl<O, T, E> IntoLeaf<O> for std::result::Result<T, E>
where
    T: IntoLeaf<O>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn into_leaf(self) -> Result<O> {
        self.map_err(Error::other)?.into_leaf()
    }
}

/// Makes functions of other crates leaves: a call with a symbolic argument is one node.
///
/// The leaf takes and returns traced types; the function behind it may take and return plain ones.
/// Options of [`#[wrap]`](macro@crate::wrap) stand before the function.
///
/// ```
/// use fx_core::prelude::*;
///
/// wrap_fn! {
///     /// The hypotenuse.
///     fn hypot(x: Float, y: Float) -> Result<Float> = f64::hypot;
///     #[wrap(impure)]
///     pub fn parse(text: &str) -> Result<Int> = str::parse::<i64>;
/// }
///
/// let gm = symbolic_trace(traced!(|x: Float| hypot(x, 4.0.into())? * 2.0))?;
/// assert_eq!(gm.graph().find_name("hypot").map(|n| n.num_users()), Some(1));
/// assert_eq!(gm.forward::<f64>(3.0)?, 10.0);
/// assert!(parse("three").is_err());
/// # Ok::<(), Error>(())
/// ```
#[macro_export]
macro_rules! wrap_fn {
    ($(
        $(#[doc = $doc:expr])*
        $(#[wrap($($options:tt)*)])?
        $vis:vis fn $name:ident($($(#[$attr:meta])* $arg:ident: $ty:ty),* $(,)?) -> $ret:ty = $target:expr;
    )*) => {$(
        $(#[doc = $doc])*
        #[$crate::wrap($($($options)*)?)]
        $vis fn $name($($(#[$attr])* $arg: $ty),*) -> $ret {
            $crate::__private::into_leaf(($target)($($crate::__private::to_foreign($arg)?),*))
        }
    )*};
}

/// See [`ToForeign`].
///
/// # Errors
/// Returns an error if the number does not fit.
#[doc(hidden)]
pub fn to_foreign<T>(argument: impl ToForeign<T>) -> Result<T> {
    argument.to_foreign()
}

/// See [`IntoLeaf`].
///
/// # Errors
/// Returns the foreign function's own error.
#[doc(hidden)]
pub fn into_leaf<O>(result: impl IntoLeaf<O>) -> Result<O> {
    result.into_leaf()
}
