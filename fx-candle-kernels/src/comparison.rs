//! Comparisons of two tensors, with PyTorch's implicit broadcasting; the result is `u8`.
//!
//! Candle compiles a loop for each comparison, dtype and pair of layouts, in every program. Here a row is a slice or one
//! value, and all layouts share two loops.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::expand::{broadcast, same_shape};
use super::rows::{Rows, in_rows};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    fn name(self) -> &'static str {
        match self {
            Comparison::Eq => "eq",
            Comparison::Ne => "ne",
            Comparison::Lt => "lt",
            Comparison::Le => "le",
            Comparison::Gt => "gt",
            Comparison::Ge => "ge",
        }
    }

    /// The comparison that holds for `b` and `a` where this one holds for `a` and `b`.
    fn swapped(self) -> Self {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            Comparison::Eq | Comparison::Ne => self,
        }
    }
}

/// The results of two operands, row by row.
fn each<T: Copy>(rows: &Rows<2>, a: &[T], b: &[T], holds: impl Fn(T, T) -> bool) -> Vec<u8> {
    let len = rows.len;
    let mut out = Vec::with_capacity(rows.count() * len);
    for [i, j] in rows.starts() {
        let (a, b) = (&a[i..], &b[j..]);
        match rows.is_one_value {
            [true, _] => out.resize(out.len() + len, u8::from(holds(a[0], b[0]))),
            [_, true] => out.extend(a[..len].iter().map(|a| u8::from(holds(*a, b[0])))),
            _ => {
                let pairs = a[..len].iter().zip(&b[..len]);
                out.extend(pairs.map(|(a, b)| u8::from(holds(*a, *b))));
            }
        }
    }
    out
}

fn compared<T: Copy + PartialOrd>(by: Comparison, rows: &Rows<2>, a: &[T], b: &[T]) -> Vec<u8> {
    match by {
        Comparison::Eq => each(rows, a, b, |a, b| a == b),
        Comparison::Ne => each(rows, a, b, |a, b| a != b),
        Comparison::Lt => each(rows, a, b, |a, b| a < b),
        Comparison::Le => each(rows, a, b, |a, b| a <= b),
        Comparison::Gt => each(rows, a, b, |a, b| a > b),
        Comparison::Ge => each(rows, a, b, |a, b| a >= b),
    }
}

impl CustomOp2 for Comparison {
    fn name(&self) -> &'static str {
        Comparison::name(*self)
    }

    fn cpu_fwd(
        &self,
        a: &CpuStorage,
        of_a: &Layout,
        b: &CpuStorage,
        of_b: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        if of_a.shape().elem_count() == 0 {
            return Ok((CpuStorage::U8(Vec::new()), of_a.shape().clone()));
        }
        let Some(rows) = Rows::of([of_a, of_b]) else {
            bail!("{}: the last elements of a tensor lie apart", self.name())
        };
        // The one value of a row stands on the right.
        let (by, rows, a, b) = match rows.is_one_value {
            [true, false] => (self.swapped(), rows.swapped(), b, a),
            _ => (*self, rows, a, b),
        };
        macro_rules! by_dtype {
            ($($dtype:ident)*) => {
                match (a, b) {
                    $((CpuStorage::$dtype(a), CpuStorage::$dtype(b)) => compared(by, &rows, a, b),)*
                    _ => bail!("{}: the dtype has no comparison", self.name()),
                }
            };
        }
        let found = by_dtype!(U8 U32 I16 I32 I64 BF16 F16 F32 F64);
        Ok((CpuStorage::U8(found), of_a.shape().clone()))
    }
}

/// Candle's comparison, which other devices have.
#[allow(clippy::disallowed_methods)]
fn on_the_device(by: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match by {
        Comparison::Eq => a.eq(b),
        Comparison::Ne => a.ne(b),
        Comparison::Lt => a.lt(b),
        Comparison::Le => a.le(b),
        Comparison::Gt => a.gt(b),
        Comparison::Ge => a.ge(b),
    }
}

fn compare(by: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if !same_shape(a, b) {
        let (a, b) = broadcast(by.name(), a, b)?;
        return compare(by, &a, &b);
    }
    if a.dtype() != b.dtype() {
        let (a, b) = (a.dtype(), b.dtype());
        bail!("{}: {a:?} and {b:?} do not compare", by.name())
    }
    if cfg!(any(feature = "cuda", feature = "metal")) && !a.device().is_cpu() {
        return on_the_device(by, a, b);
    }
    let [a, b] = in_rows([a, b])?;
    a.apply_op2_no_bwd(&b, &by)
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $by:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// `a` and `b` have the same dtype; the result has their broadcast shape.
        ///
        /// # Errors
        /// Returns an error if the shapes do not broadcast or the dtypes differ.
        pub fn $name(a: &Tensor, b: &Tensor) -> Result<Tensor> {
            compare(Comparison::$by, a, b)
        }
    )*};
}

comparisons! {
    /// `a == b`, as `u8`.
    eq => Eq;
    /// `a != b`, as `u8`.
    ne => Ne;
    /// `a < b`, as `u8`.
    lt => Lt;
    /// `a <= b`, as `u8`.
    le => Le;
    /// `a > b`, as `u8`.
    gt => Gt;
    /// `a >= b`, as `u8`.
    ge => Ge;
}
