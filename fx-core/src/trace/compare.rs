//! The comparisons `>`, `<`, `>=`, `<=`, `==`, `!=` and the conditions of a traced body: plain
//! values answer as always, traced values record an op.
//!
//! `#[trace]` writes `gt(&a, &b)` for `a > b`. Whatever has `PartialOrd` or `PartialEq` returns its
//! plain `bool`; a traced type implements the traits here (see
//! [`impl_comparisons`](crate::impl_comparisons)) and must not implement those two. A condition
//! becomes `condition(e)`, which takes only a `bool`.

use crate::value::operator::Operator;

/// One of the six comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `>`
    Gt,
    /// `<`
    Lt,
    /// `>=`
    Ge,
    /// `<=`
    Le,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

impl Comparison {
    /// The name of the op: `gt`, `lt`, `ge`, `le`, `eq` or `ne`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gt => "gt",
            Self::Lt => "lt",
            Self::Ge => "ge",
            Self::Le => "le",
            Self::Eq => "eq",
            Self::Ne => "ne",
        }
    }

    /// The built-in operator that is recorded for it.
    pub const fn operator(self) -> Operator {
        match self {
            Self::Gt => Operator::Gt,
            Self::Lt => Operator::Lt,
            Self::Ge => Operator::Ge,
            Self::Le => Operator::Le,
            Self::Eq => Operator::Eq,
            Self::Ne => Operator::Ne,
        }
    }

    /// The comparison that holds for `(b, a)` when this one holds for `(a, b)`: `2.0 < x` is
    /// `x > 2.0`.
    pub const fn reflected(self) -> Self {
        match self {
            Self::Gt => Self::Lt,
            Self::Lt => Self::Gt,
            Self::Ge => Self::Le,
            Self::Le => Self::Ge,
            same => same,
        }
    }
}

macro_rules! comparison {
    ($trait:ident, $function:ident, $std:ident, $symbol:literal, $message:literal, $label:literal, $note:literal) => {
        #[doc = concat!("The operator `", $symbol, "` inside a traced body.")]
        #[diagnostic::on_unimplemented(message = $message, label = $label, note = $note)]
        #[diagnostic::on_unimplemented(
            note = "traced values compare with traced values, `f64` and `i64`"
        )]
        pub trait $trait<Rhs: ?Sized = Self> {
            /// The result of the comparison: `bool` for plain values.
            type Output;

            #[doc = concat!("`self ", $symbol, " rhs`.")]
            #[track_caller]
            fn $function(&self, rhs: &Rhs) -> Self::Output;
        }

        #[diagnostic::do_not_recommend]
        impl<A: ?Sized + $std<B>, B: ?Sized> $trait<B> for A {
            type Output = bool;

            #[inline(always)]
            fn $function(&self, rhs: &B) -> bool {
                $std::$function(self, rhs)
            }
        }

        // Never holds. With a second candidate rustc looks at the bounds of both before
        // it takes one, so a missing comparison is one error; with one candidate it
        // would take the `bool` above and complain of that as well.
        #[doc(hidden)]
        #[diagnostic::do_not_recommend]
        impl<A: ?Sized, B: ?Sized> $trait<B> for A
        where
            A: never::Compares<B>,
            never::Pair<A, B>: never::Holds,
        {
            type Output = bool;

            fn $function(&self, _: &B) -> bool {
                false
            }
        }
    };
}

comparison!(
    Greater,
    gt,
    PartialOrd,
    ">",
    "`{Self}` cannot be compared with `{Rhs}` by `>`",
    "no `{Self} > {Rhs}`",
    "of plain types, those that implement `PartialOrd` can: `#[derive(PartialOrd)]`"
);
comparison!(
    Less,
    lt,
    PartialOrd,
    "<",
    "`{Self}` cannot be compared with `{Rhs}` by `<`",
    "no `{Self} < {Rhs}`",
    "of plain types, those that implement `PartialOrd` can: `#[derive(PartialOrd)]`"
);
comparison!(
    GreaterEqual,
    ge,
    PartialOrd,
    ">=",
    "`{Self}` cannot be compared with `{Rhs}` by `>=`",
    "no `{Self} >= {Rhs}`",
    "of plain types, those that implement `PartialOrd` can: `#[derive(PartialOrd)]`"
);
comparison!(
    LessEqual,
    le,
    PartialOrd,
    "<=",
    "`{Self}` cannot be compared with `{Rhs}` by `<=`",
    "no `{Self} <= {Rhs}`",
    "of plain types, those that implement `PartialOrd` can: `#[derive(PartialOrd)]`"
);
comparison!(
    Equal,
    eq,
    PartialEq,
    "==",
    "`{Self}` cannot be compared with `{Rhs}` by `==`",
    "no `{Self} == {Rhs}`",
    "of plain types, those that implement `PartialEq` can: `#[derive(PartialEq)]`"
);
comparison!(
    NotEqual,
    ne,
    PartialEq,
    "!=",
    "`{Self}` cannot be compared with `{Rhs}` by `!=`",
    "no `{Self} != {Rhs}`",
    "of plain types, those that implement `PartialEq` can: `#[derive(PartialEq)]`"
);

/// `a > b` of a traced body.
#[must_use = "a comparison only returns its result"]
#[track_caller]
#[inline(always)]
pub fn gt<A: Greater<B, Output = O> + ?Sized, B: ?Sized, O>(a: &A, b: &B) -> O {
    a.gt(b)
}

/// `a < b` of a traced body.
#[must_use = "a comparison only returns its result"]
#[track_caller]
#[inline(always)]
pub fn lt<A: Less<B, Output = O> + ?Sized, B: ?Sized, O>(a: &A, b: &B) -> O {
    a.lt(b)
}

/// `a >= b` of a traced body.
#[must_use = "a comparison only returns its result"]
#[track_caller]
#[inline(always)]
pub fn ge<A: GreaterEqual<B, Output = O> + ?Sized, B: ?Sized, O>(a: &A, b: &B) -> O {
    a.ge(b)
}

/// `a <= b` of a traced body.
#[must_use = "a comparison only returns its result"]
#[track_caller]
#[inline(always)]
pub fn le<A: LessEqual<B, Output = O> + ?Sized, B: ?Sized, O>(a: &A, b: &B) -> O {
    a.le(b)
}

/// `a == b` of a traced body.
#[must_use = "a comparison only returns its result"]
#[track_caller]
#[inline(always)]
pub fn eq<A: Equal<B, Output = O> + ?Sized, B: ?Sized, O>(a: &A, b: &B) -> O {
    a.eq(b)
}

/// `a != b` of a traced body.
#[must_use = "a comparison only returns its result"]
#[track_caller]
#[inline(always)]
pub fn ne<A: NotEqual<B, Output = O> + ?Sized, B: ?Sized, O>(a: &A, b: &B) -> O {
    a.ne(b)
}

/// What a condition of a traced body may be: a plain `bool`.
#[diagnostic::on_unimplemented(
    message = "symbolically traced variables cannot be used as inputs to control flow",
    label = "expected a plain `bool`, found `{Self}`",
    note = "a plain `bool` (a field or an argument bound with `Trace::concrete`) can decide here",
    note = "a `#[wrap]` function is recorded as one call and may branch inside",
    note = "`#[trace(control_flow)]` records both ways, as `control::cond` and `control::while_loop` do, and the graph decides when it runs"
)]
pub trait Condition: sealed::Sealed {
    /// The `bool` that decides.
    fn decide(self) -> bool;
}

impl Condition for bool {
    #[inline(always)]
    fn decide(self) -> bool {
        self
    }
}

/// A condition of a traced body: anything but a plain `bool` does not compile.
#[inline(always)]
pub fn condition<C: Condition>(value: C) -> bool {
    value.decide()
}

/// A bound that no type meets. Coherence sees this here by the pair, for which other crates cannot
/// implement it, and in another crate by that crate's type.
mod never {
    pub trait Compares<B: ?Sized> {}

    pub trait Holds {}

    pub struct Pair<A: ?Sized, B: ?Sized>(std::marker::PhantomData<A>, std::marker::PhantomData<B>);
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for bool {}
}

/// Implements the six comparisons of traced types: every type of the first list
/// against every type of the second.
///
/// The body is evaluated for each pair, with `op` a [`Comparison`] and `a`, `b`
/// references to the two sides. It is part of a `#[track_caller]` method, so
/// `Location::caller()` in it is the user's comparison.
///
/// ```
/// use fx_core::__private::compare::Comparison;
/// use fx_core::impl_comparisons;
///
/// struct Traced(f64);
/// struct Recorded(Comparison, f64);
///
/// impl_comparisons! {
///     [Traced, &Traced] with [f64] -> Result<Recorded, String>,
///     |op, a, b| Ok(Recorded(op, a.0 - b))
/// }
/// impl_comparisons! {
///     [f64] with [Traced, &Traced] -> Result<Recorded, String>,
///     |op, a, b| Ok(Recorded(op.reflected(), b.0 - a))
/// }
///
/// let half = fx_core::__private::compare::lt(&0.5, &Traced(2.0)).unwrap();
/// assert_eq!((half.0, half.1), (Comparison::Gt, 1.5));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! impl_comparisons {
    (@lhs $lhs:ty, [$($rhs:ty),+ $(,)?], $how:tt) => {
        $($crate::impl_comparisons!(@pair $lhs, $rhs, $how);)+
    };
    (@pair $lhs:ty, $rhs:ty, $how:tt) => {
        $crate::impl_comparisons!(@one Greater gt Gt $lhs, $rhs, $how);
        $crate::impl_comparisons!(@one Less lt Lt $lhs, $rhs, $how);
        $crate::impl_comparisons!(@one GreaterEqual ge Ge $lhs, $rhs, $how);
        $crate::impl_comparisons!(@one LessEqual le Le $lhs, $rhs, $how);
        $crate::impl_comparisons!(@one Equal eq Eq $lhs, $rhs, $how);
        $crate::impl_comparisons!(@one NotEqual ne Ne $lhs, $rhs, $how);
    };
    (@one $trait:ident $function:ident $variant:ident $lhs:ty, $rhs:ty,
        ($output:ty, $op:ident, $a:ident, $b:ident, $body:expr)) => {
        impl $crate::__private::compare::$trait<$rhs> for $lhs {
            type Output = $output;

            #[inline]
            #[track_caller]
            fn $function(&self, rhs: &$rhs) -> $output {
                let $op = $crate::__private::compare::Comparison::$variant;
                let ($a, $b) = (self, rhs);
                $body
            }
        }
    };
    ([$($lhs:ty),+ $(,)?] with $rhs:tt -> $output:ty,
        |$op:ident, $a:ident, $b:ident| $body:expr $(,)?) => {
        $($crate::impl_comparisons!(@lhs $lhs, $rhs, ($output, $op, $a, $b, $body));)+
    };
}
