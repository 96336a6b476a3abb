//! Arguments of operations besides tensors: shapes, and the dims to work on.

use std::ops::RangeFull;
use std::sync::Arc;

use fx_core::tensor::Param;
use fx_core::trace::{FromValue, List};
use fx_core::value::{Int, IntoValue, Proxy, Value};
use fx_core::{Error, Result};

/// Which dims an operation works on: `..` for all, one, or several; negative ones count from the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dims {
    /// All of them.
    All,
    /// One.
    One(i64),
    /// Several.
    Many(Vec<i64>),
}

impl Dims {
    /// As indices of a tensor's dims.
    pub(crate) fn resolve(&self, op: &str, rank: usize) -> candle_core::Result<Vec<usize>> {
        let one = |d: i64| crate::kernels::dim::dim(op, d, rank);
        match self {
            Dims::All => Ok((0..rank).collect()),
            Dims::One(d) => {
                let d = one(*d)?;
                Ok(if rank == 0 { Vec::new() } else { vec![d] })
            }
            Dims::Many(dims) => {
                let mut found = Vec::with_capacity(dims.len());
                for d in dims {
                    let d = one(*d)?;
                    if found.contains(&d) {
                        candle_core::bail!("{op}: dim {d} appears more than once in {dims:?}");
                    }
                    found.push(d);
                }
                // A scalar accepts a dim, but has none.
                found.truncate(rank);
                Ok(found)
            }
        }
    }
}

impl From<RangeFull> for Dims {
    fn from(_: RangeFull) -> Self {
        Dims::All
    }
}

impl From<i64> for Dims {
    fn from(dim: i64) -> Self {
        Dims::One(dim)
    }
}

impl From<i32> for Dims {
    fn from(dim: i32) -> Self {
        Dims::One(dim.into())
    }
}

impl From<Option<i64>> for Dims {
    /// `None` is all dims.
    fn from(dim: Option<i64>) -> Self {
        dim.map_or(Dims::All, Dims::One)
    }
}

impl<const N: usize> From<[i64; N]> for Dims {
    fn from(dims: [i64; N]) -> Self {
        Dims::Many(dims.to_vec())
    }
}

impl From<Vec<i64>> for Dims {
    fn from(dims: Vec<i64>) -> Self {
        Dims::Many(dims)
    }
}

/// A list of numbers that a function takes is as well written as a tuple: `(2, 3)`.
macro_rules! from_tuples {
    ($($to:ident of $item:ident),+) => {$(
        from_tuples!(@each $to $item: [] [a] [a b] [a b c] [a b c d] [a b c d e] [a b c d e f]);
    )+};
    (@each $to:ident $item:ident: $([$($name:ident)*])+) => {$(
        impl From<($(from_tuples!(@item $item $name),)*)> for $to {
            fn from(($($name,)*): ($(from_tuples!(@item $item $name),)*)) -> Self {
                let items: [$item; _] = [$($name),*];
                items.into()
            }
        }
    )+};
    (@item $item:ident $name:ident) => { $item };
}
pub(super) use from_tuples;
from_tuples!(Dims of i64, Shape of usize);

impl IntoValue for Dims {
    fn into_value(self) -> Value {
        match self {
            Dims::All => Value::None,
            Dims::One(dim) => Value::Int(dim),
            Dims::Many(dims) => dims.into_value(),
        }
    }
}

/// The sizes of a new tensor: `[2, 3]`, `(2, 3)` or one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(pub Vec<usize>);

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape(dims.to_vec())
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Shape(dims)
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Shape(dims.to_vec())
    }
}

impl From<usize> for Shape {
    fn from(dim: usize) -> Self {
        Shape(vec![dim])
    }
}

impl IntoValue for Shape {
    fn into_value(self) -> Value {
        self.0.into_value()
    }
}

/// Sizes, which may include a traced tensor's sizes, and -1 for the remaining one: `(2, -1)`,
/// `[x.size(0)?, 4.into()]`, or all of another tensor's: `x.shape()?`.
#[derive(Debug, Clone)]
pub struct Sizes(Held);

#[derive(Debug, Clone)]
enum Held {
    // Shared: a call keeps its arguments until it has succeeded.
    Each(Arc<[Int]>),
    /// A list whose length only the run knows.
    List(Proxy),
}

impl Sizes {
    /// Not inlined: a program has many of these lists.
    #[inline(never)]
    fn of(sizes: &[Int]) -> Sizes {
        Sizes(Held::Each(sizes.into()))
    }

    /// The numbers, during a run.
    pub(crate) fn known(&self) -> Result<Vec<i64>> {
        let symbolic = || Error::msg("a size is symbolic where the operation runs");
        match &self.0 {
            Held::Each(sizes) => sizes
                .iter()
                .map(|n| n.concrete().ok_or_else(symbolic))
                .collect(),
            Held::List(_) => Err(symbolic()),
        }
    }
}

impl From<Vec<Int>> for Sizes {
    fn from(sizes: Vec<Int>) -> Self {
        Sizes(Held::Each(sizes.into()))
    }
}

impl From<List<Int>> for Sizes {
    fn from(sizes: List<Int>) -> Self {
        match sizes.proxy() {
            Some(list) => Sizes(Held::List(list)),
            None => Sizes(Held::Each(sizes.known().into())),
        }
    }
}

/// What can stand for one size among several: a whole number, or an `Int`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a size",
    label = "expected a whole number or an `Int`",
    note = "`/` gives a `Float`: a size is divided by `c.floordiv(2)?`",
    note = "a calculation with an `Int` gives a `Result`: `(b * c)?` is the size"
)]
pub trait Size {
    /// The size, known or symbolic.
    fn into_size(self) -> Int;
}

macro_rules! sizes_from {
    ($($t:ty),*) => {$(
        impl Size for $t {
            fn into_size(self) -> Int {
                self.into()
            }
        }
        impl From<$t> for Sizes {
            fn from(size: $t) -> Self {
                Sizes(Held::Each([size.into_size()].into()))
            }
        }
        impl<const N: usize> From<[$t; N]> for Sizes {
            fn from(sizes: [$t; N]) -> Self {
                Sizes(Held::Each(sizes.into_iter().map(Int::from).collect()))
            }
        }
    )*};
}
sizes_from!(i32, i64, usize, Int);

macro_rules! sizes_from_known {
    ($($t:ty),*) => {$(
        impl From<$t> for Sizes {
            fn from(sizes: $t) -> Self {
                Sizes(Held::Each(sizes.iter().map(|n| Int::from(*n)).collect()))
            }
        }
    )*};
}
sizes_from_known!(Vec<usize>, &[usize], &Vec<usize>, &[i64]);

impl From<Shape> for Sizes {
    fn from(shape: Shape) -> Self {
        shape.0.into()
    }
}

impl From<Vec<i64>> for Sizes {
    fn from(sizes: Vec<i64>) -> Self {
        Sizes(Held::Each(sizes.into_iter().map(Int::from).collect()))
    }
}

impl From<()> for Sizes {
    fn from((): ()) -> Self {
        Sizes(Held::Each([].into()))
    }
}

macro_rules! sizes_from_tuple {
    ($($name:ident)+) => {
        impl<$($name: Size),+> From<($($name,)+)> for Sizes {
            #[allow(non_snake_case)]
            fn from(sizes: ($($name,)+)) -> Self {
                let ($($name,)+) = sizes;
                Sizes::of(&[$($name.into_size()),+])
            }
        }
    };
}
sizes_from_tuple! { A }
sizes_from_tuple! { A B }
sizes_from_tuple! { A B C }
sizes_from_tuple! { A B C D }
sizes_from_tuple! { A B C D E }
sizes_from_tuple! { A B C D E F }

impl IntoValue for Sizes {
    fn into_value(self) -> Value {
        match self.0 {
            Held::Each(sizes) => sizes.to_vec().into_value(),
            Held::List(list) => Value::Proxy(list),
        }
    }
}

impl<'v> Param<'v> for Sizes {
    type Guard = Sizes;

    fn guard(value: &'v Value) -> Result<Sizes> {
        match value {
            Value::Int(n) => Ok(Sizes::from(*n)),
            Value::Proxy(list) => Ok(Sizes(Held::List(*list))),
            other => Vec::from_value(other.clone()).map(|sizes: Vec<Int>| sizes.into()),
        }
    }

    fn lend(guard: &'v Sizes) -> Sizes {
        guard.clone()
    }

    fn is_symbolic(&self) -> bool {
        match &self.0 {
            Held::Each(sizes) => sizes.iter().any(|n| n.proxy().is_some()),
            Held::List(_) => true,
        }
    }

    fn to_value(&self) -> Value {
        self.clone().into_value()
    }
}

impl FromValue for Sizes {
    fn from_value(value: Value) -> Result<Sizes> {
        <Sizes as Param<'_>>::guard(&value)
    }
}

macro_rules! plain_param {
    ($t:ty, $value:ident => $guard:expr) => {
        impl<'v> Param<'v> for $t {
            type Guard = $t;
            const SYMBOLIC: bool = false;

            fn guard($value: &'v Value) -> Result<$t> {
                $guard
            }

            fn lend(guard: &'v $t) -> $t {
                guard.clone()
            }

            fn to_value(&self) -> Value {
                self.clone().into_value()
            }
        }

        impl FromValue for $t {
            fn from_value(value: Value) -> Result<$t> {
                <$t as Param<'_>>::guard(&value)
            }
        }
    };
}

plain_param!(Dims, value => match value {
    Value::None => Ok(Dims::All),
    Value::Int(dim) => Ok(Dims::One(*dim)),
    Value::List(_) | Value::Tuple(_) => Ok(Dims::Many(Vec::from_value(value.clone())?)),
    other => Err(Error::expected("a dim or a list of dims", other.describe())),
});

plain_param!(Shape, value => match value {
    Value::Int(_) => Ok(Shape(vec![usize::from_value(value.clone())?])),
    other => Ok(Shape(Vec::from_value(other.clone())?)),
});

/// Height and width of a window, a stride or a padding: one number, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair(pub usize, pub usize);

impl Pair {
    pub(crate) fn tuple(self) -> (usize, usize) {
        (self.0, self.1)
    }

    pub(crate) fn array(self) -> [usize; 2] {
        [self.0, self.1]
    }
}

impl From<usize> for Pair {
    fn from(n: usize) -> Self {
        Pair(n, n)
    }
}

impl From<(usize, usize)> for Pair {
    fn from((height, width): (usize, usize)) -> Self {
        Pair(height, width)
    }
}

impl IntoValue for Pair {
    fn into_value(self) -> Value {
        (self.0, self.1).into_value()
    }
}

plain_param!(Pair, value => match value {
    Value::Int(_) => Ok(usize::from_value(value.clone())?.into()),
    other => Ok(<(usize, usize)>::from_value(other.clone())?.into()),
});

impl fx_core::module::Component for Pair {
    fn is_plain() -> bool {
        true
    }

    fn duplicate(&self) -> Self {
        *self
    }

    fn to_saved(&self, saver: &mut fx_core::file::Saver) -> Result<fx_core::file::Json> {
        self.tuple().to_saved(saver)
    }

    fn from_saved(
        saved: &fx_core::file::Json,
        loader: &mut fx_core::file::Loader<'_>,
    ) -> Result<Self> {
        <(usize, usize)>::from_saved(saved, loader).map(Pair::from)
    }
}

/// Depth, height and width of a window, a stride or a padding: one number, or three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triple(pub usize, pub usize, pub usize);

impl Triple {
    pub(crate) fn array(self) -> [usize; 3] {
        [self.0, self.1, self.2]
    }
}

impl From<usize> for Triple {
    fn from(n: usize) -> Self {
        Triple(n, n, n)
    }
}

impl From<(usize, usize, usize)> for Triple {
    fn from((depth, height, width): (usize, usize, usize)) -> Self {
        Triple(depth, height, width)
    }
}

impl IntoValue for Triple {
    fn into_value(self) -> Value {
        (self.0, self.1, self.2).into_value()
    }
}

plain_param!(Triple, value => match value {
    Value::Int(_) => Ok(usize::from_value(value.clone())?.into()),
    other => Ok(<(usize, usize, usize)>::from_value(other.clone())?.into()),
});

impl fx_core::module::Component for Triple {
    fn is_plain() -> bool {
        true
    }

    fn duplicate(&self) -> Self {
        *self
    }

    fn to_saved(&self, saver: &mut fx_core::file::Saver) -> Result<fx_core::file::Json> {
        (self.0, self.1, self.2).to_saved(saver)
    }

    fn from_saved(
        saved: &fx_core::file::Json,
        loader: &mut fx_core::file::Loader<'_>,
    ) -> Result<Self> {
        <(usize, usize, usize)>::from_saved(saved, loader).map(Triple::from)
    }
}

/// Which norm of a matrix: by its name (`"fro"`, `"nuc"`), or by its number.
#[derive(Debug, Clone, PartialEq)]
pub enum NormOrder {
    /// By its name.
    Named(String),
    /// By its number, which may be infinite.
    Number(f64),
}

impl std::fmt::Display for NormOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NormOrder::Named(name) => write!(f, "{name:?}"),
            NormOrder::Number(number) => write!(f, "{number}"),
        }
    }
}

impl From<&str> for NormOrder {
    fn from(name: &str) -> Self {
        NormOrder::Named(name.into())
    }
}

impl From<f64> for NormOrder {
    fn from(number: f64) -> Self {
        NormOrder::Number(number)
    }
}

impl From<i32> for NormOrder {
    fn from(number: i32) -> Self {
        NormOrder::Number(number.into())
    }
}

impl IntoValue for NormOrder {
    fn into_value(self) -> Value {
        match self {
            NormOrder::Named(name) => name.into_value(),
            NormOrder::Number(number) => number.into_value(),
        }
    }
}

plain_param!(NormOrder, value => match value {
    Value::Str(name) => Ok(NormOrder::Named(name.to_string())),
    other => f64::from_value(other.clone()).map(NormOrder::Number),
});
