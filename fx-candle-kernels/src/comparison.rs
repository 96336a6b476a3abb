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

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;
    use candle_core::{DType, Device};

    type Compare = fn(&Tensor, &Tensor) -> Result<Tensor>;
    const ALL: [(Compare, Compare); 6] = [
        (eq, |a, b| a.eq(b)),
        (ne, |a, b| a.ne(b)),
        (lt, |a, b| a.lt(b)),
        (le, |a, b| a.le(b)),
        (gt, |a, b| a.gt(b)),
        (ge, |a, b| a.ge(b)),
    ];

    /// So many numbers of few values.
    fn numbers(dims: &[usize], seed: usize) -> Result<Tensor> {
        let len = dims.iter().product();
        let numbers: Vec<f32> = (0..len).map(|i| ((i * 7 + seed) % 5) as f32).collect();
        Tensor::from_vec(numbers, dims, &Device::Cpu)
    }

    fn same_as_candle(a: &Tensor, b: &Tensor) -> Result<()> {
        for (ours, theirs) in ALL {
            let (ours, theirs) = (ours(a, b)?, theirs(a, b)?);
            assert_eq!(ours.dtype(), DType::U8);
            assert_eq!(ours.dims(), theirs.dims());
            assert_eq!(
                ours.flatten_all()?.to_vec1::<u8>()?,
                theirs.flatten_all()?.to_vec1::<u8>()?,
                "{:?} and {:?}",
                a.layout(),
                b.layout()
            );
        }
        Ok(())
    }

    #[test]
    fn every_layout_gives_candles_result() -> Result<()> {
        let dims = [2, 3, 4];
        let of = |seed| -> Result<Vec<Tensor>> {
            Ok(vec![
                numbers(&dims, seed)?,
                numbers(&[], seed)?.broadcast_as(&dims)?,
                numbers(&[4], seed)?.broadcast_as(&dims)?,
                numbers(&[3, 1], seed)?.broadcast_as(&dims)?,
                numbers(&[2, 1, 1], seed)?.broadcast_as(&dims)?,
                numbers(&[2, 1, 4], seed)?.broadcast_as(&dims)?,
                numbers(&[4, 3, 2], seed)?.permute((2, 1, 0))?,
                numbers(&[3, 2, 4], seed)?.transpose(0, 1)?,
                numbers(&[2, 4, 3], seed)?.t()?,
                numbers(&[3, 3, 4], seed)?.narrow(0, 1, 2)?,
                numbers(&[2, 5, 4], seed)?.narrow(1, 2, 3)?,
                numbers(&[2, 3, 6], seed)?.narrow(2, 1, 4)?,
            ])
        };
        for a in &of(1)? {
            for b in &of(3)? {
                same_as_candle(a, b)?;
            }
        }
        Ok(())
    }

    #[test]
    fn every_dtype_gives_candles_result() -> Result<()> {
        use DType::*;
        for dtype in [U8, U32, I16, I32, I64, BF16, F16, F32, F64] {
            let a = numbers(&[3, 4], 1)?.to_dtype(dtype)?;
            let b = numbers(&[3, 4], 2)?.to_dtype(dtype)?;
            same_as_candle(&a, &b)?;
        }
        Ok(())
    }

    #[test]
    fn small_and_empty_shapes() -> Result<()> {
        for dims in [&[][..], &[1], &[1, 1], &[4, 1], &[1, 4]] {
            same_as_candle(&numbers(dims, 1)?, &numbers(dims, 2)?)?;
        }
        let empty = numbers(&[0, 3], 1)?;
        assert_eq!(lt(&empty, &numbers(&[3], 1)?)?.dims(), &[0, 3]);
        assert_eq!(lt(&empty, &empty.t()?.t()?)?.dims(), &[0, 3]);
        Ok(())
    }

    #[test]
    fn nan_equals_nothing() -> Result<()> {
        let a = Tensor::new(&[f32::NAN, 1.0], &Device::Cpu)?;
        same_as_candle(&a, &a)?;
        assert_eq!(ne(&a, &a)?.to_vec1::<u8>()?, [1, 0]);
        assert_eq!(ge(&a, &a)?.to_vec1::<u8>()?, [0, 1]);
        Ok(())
    }

    #[test]
    fn broadcasts_both_ways() -> Result<()> {
        let a = Tensor::new(&[[1f32], [2.0]], &Device::Cpu)?;
        let less = lt(&a, &Tensor::new(&[1f32, 2.0, 3.0], &Device::Cpu)?)?;
        assert_eq!(less.to_vec2::<u8>()?, [[0, 1, 1], [0, 0, 1]]);
        Ok(())
    }

    #[test]
    fn errors_name_the_comparison() -> Result<()> {
        let a = numbers(&[2], 1)?;
        let text = lt(&a, &numbers(&[3], 1)?).unwrap_err().to_string();
        assert!(
            text.contains("lt: shapes [2] and [3] do not broadcast"),
            "{text}"
        );
        let text = lt(&a, &a.to_dtype(DType::F64)?).unwrap_err().to_string();
        assert!(text.contains("lt: F32 and F64 do not compare"), "{text}");
        Ok(())
    }
}
