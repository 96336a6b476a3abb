//! What decides a branch or a loop, as a type: a plain `bool`, or a value that may be traced.
//!
//! Invariant: of a plain `bool` nothing that belongs to a traced condition has a value.

use std::convert::Infallible;
use std::marker::PhantomData;

/// What decides: a plain `bool`, or what may be traced.
pub trait Kind: Sized {
    #[doc(hidden)]
    const IS_PLAIN: bool;
    /// What stands before the code that only traced conditions have.
    type Token;
    /// What is kept of a traced condition.
    type Traced<T>;

    #[doc(hidden)]
    fn token() -> Self::Token;

    /// Keeps it, where there can be a traced condition.
    #[doc(hidden)]
    fn traced<T>(kept: T) -> Option<Self::Traced<T>>;

    #[doc(hidden)]
    fn as_traced<T>(traced: &Self::Traced<T>) -> &T;

    #[doc(hidden)]
    fn as_traced_mut<T>(traced: &mut Self::Traced<T>) -> &mut T;

    #[doc(hidden)]
    fn into_traced<T>(traced: Self::Traced<T>) -> Box<T>;
}

/// Decided by a plain `bool`.
#[derive(Debug)]
pub enum Plain {}

/// Decided by a value that may be traced.
#[derive(Debug)]
pub enum Symbolic {}

impl Kind for Plain {
    const IS_PLAIN: bool = true;
    type Token = Infallible;
    type Traced<T> = Infallible;

    #[inline(always)]
    fn token() -> Infallible {
        unreachable!("a plain condition is known")
    }

    #[inline(always)]
    fn traced<T>(_: T) -> Option<Infallible> {
        None
    }

    #[inline(always)]
    fn as_traced<T>(traced: &Infallible) -> &T {
        match *traced {}
    }

    #[inline(always)]
    fn as_traced_mut<T>(traced: &mut Infallible) -> &mut T {
        match *traced {}
    }

    #[inline(always)]
    fn into_traced<T>(traced: Infallible) -> Box<T> {
        match traced {}
    }
}

impl Kind for Symbolic {
    const IS_PLAIN: bool = false;
    type Token = ();
    type Traced<T> = Box<T>;

    #[inline(always)]
    fn token() {}

    fn traced<T>(kept: T) -> Option<Box<T>> {
        Some(Box::new(kept))
    }

    fn as_traced<T>(traced: &Box<T>) -> &T {
        traced
    }

    fn as_traced_mut<T>(traced: &mut Box<T>) -> &mut T {
        traced
    }

    fn into_traced<T>(traced: Box<T>) -> Box<T> {
        traced
    }
}

/// What decides at two places.
pub trait Or<B: Kind>: Kind {
    /// A value that may be traced, if one does at either.
    type Kind: Kind;
}

impl<B: Kind> Or<B> for Plain {
    type Kind = B;
}

impl<B: Kind> Or<B> for Symbolic {
    type Kind = Symbolic;
}

/// What has a kind, by its type.
pub trait HasKind {
    #[doc(hidden)]
    type Kind: Kind;
}

/// What decides at several places of a loop: a traced value, if one does at any of them.
pub struct KindOf<K>(PhantomData<K>);

impl<K> Clone for KindOf<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for KindOf<K> {}

impl<K> Default for KindOf<K> {
    #[inline(always)]
    fn default() -> Self {
        KindOf(PhantomData)
    }
}

impl<K: Kind> KindOf<K> {
    /// What decides if this does or the other one.
    #[inline(always)]
    pub fn either<B: Kind>(&self, _: &KindOf<B>) -> KindOf<<K as Or<B>>::Kind>
    where
        K: Or<B>,
    {
        KindOf::default()
    }
}

impl<K: Kind> HasKind for KindOf<K> {
    type Kind = K;
}
