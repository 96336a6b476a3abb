//! Elements of one tensor or another, by a condition.
//!
//! Candle compiles a loop for each dtype of the condition with each of the values, in every program; here a condition is
//! `u8`.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::rows::{Rows, in_rows};
use crate::dtype::dtype_name;

struct Choice;

fn chosen<T: Copy>(rows: &Rows<3>, condition: &[u8], a: &[T], b: &[T]) -> Vec<T> {
    let len = rows.len;
    let [one_condition, one_a, one_b] = rows.is_one_value;
    let mut out = Vec::with_capacity(rows.count() * len);
    for [at, i, j] in rows.starts() {
        let (condition, a, b) = (&condition[at..], &a[i..], &b[j..]);
        if one_condition {
            let (from, is_one_value) = match condition[0] {
                0 => (b, one_b),
                _ => (a, one_a),
            };
            match is_one_value {
                true => out.resize(out.len() + len, from[0]),
                false => out.extend_from_slice(&from[..len]),
            }
            continue;
        }
        let condition = &condition[..len];
        match (one_a, one_b) {
            (true, true) => {
                out.extend(condition.iter().map(|c| if *c != 0 { a[0] } else { b[0] }));
            }
            (true, false) => {
                let each = condition.iter().zip(&b[..len]);
                out.extend(each.map(|(c, b)| if *c != 0 { a[0] } else { *b }));
            }
            (false, true) => {
                let each = condition.iter().zip(&a[..len]);
                out.extend(each.map(|(c, a)| if *c != 0 { *a } else { b[0] }));
            }
            (false, false) => {
                let each = condition.iter().zip(&a[..len]).zip(&b[..len]);
                out.extend(each.map(|((c, a), b)| if *c != 0 { *a } else { *b }));
            }
        }
    }
    out
}

impl CustomOp3 for Choice {
    fn name(&self) -> &'static str {
        "where"
    }

    fn cpu_fwd(
        &self,
        condition: &CpuStorage,
        of_condition: &Layout,
        a: &CpuStorage,
        of_a: &Layout,
        b: &CpuStorage,
        of_b: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Some(rows) = Rows::of([of_condition, of_a, of_b]) else {
            bail!("where: the last elements of a tensor lie apart")
        };
        let CpuStorage::U8(condition) = condition else {
            bail!("where: the condition is not of truth values")
        };
        macro_rules! by_dtype {
            ($($dtype:ident)*) => {
                match (a, b) {
                    $((CpuStorage::$dtype(a), CpuStorage::$dtype(b)) => {
                        CpuStorage::$dtype(chosen(&rows, condition, a, b))
                    })*
                    _ => bail!("where: the dtype cannot be chosen from"),
                }
            };
        }
        let found = by_dtype!(U8 U32 I16 I32 I64 BF16 F16 F32 F64);
        Ok((found, of_a.shape().clone()))
    }

    fn bwd(
        &self,
        condition: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let zero = grad.zeros_like()?;
        Ok((
            None,
            Some(where_cond(condition, grad, &zero)?),
            Some(where_cond(condition, &zero, grad)?),
        ))
    }
}

/// `a` where `condition` (`u8`) is not 0, `b` elsewhere; the three have one shape.
///
/// # Errors
/// Returns an error if the shapes differ, or the dtypes of `a` and `b`.
pub fn where_cond(condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if condition.dims() != a.dims() || a.dims() != b.dims() {
        let (a, b, condition) = (a.dims(), b.dims(), condition.dims());
        bail!("where: shapes {condition:?}, {a:?} and {b:?} differ")
    }
    if a.dtype() != b.dtype() {
        let (a, b) = (dtype_name(a.dtype()), dtype_name(b.dtype()));
        bail!("where: {a} and {b} are two dtypes")
    }
    if a.elem_count() == 0 {
        return Ok(a.clone());
    }
    if cfg!(any(feature = "cuda", feature = "metal")) && !a.device().is_cpu() {
        #[allow(clippy::disallowed_methods)]
        return condition.where_cond(a, b);
    }
    let [condition, a, b] = in_rows([condition, a, b])?;
    condition.apply_op3(&a, &b, Choice)
}
