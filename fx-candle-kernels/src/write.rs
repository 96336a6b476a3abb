//! Writes into the memory of a tensor, whichever view of it the tensor is.

use candle_core::{CpuStorage, InplaceOp2, Layout, Result, Tensor, bail};

struct Write;

fn put<T: Copy>(into: &mut [T], places: &Layout, values: &[T]) {
    let (dims, steps) = (places.dims(), places.stride());
    let mut index = vec![0; dims.len()];
    let mut place = places.start_offset();
    for value in values {
        into[place] = *value;
        for d in (0..dims.len()).rev() {
            (index[d], place) = (index[d] + 1, place + steps[d]);
            if index[d] < dims[d] {
                break;
            }
            place -= steps[d] * dims[d];
            index[d] = 0;
        }
    }
}

impl InplaceOp2 for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn cpu_fwd(
        &self,
        into: &mut CpuStorage,
        places: &Layout,
        values: &CpuStorage,
        of_values: &Layout,
    ) -> Result<()> {
        let Some((from, to)) = of_values.contiguous_offsets() else {
            bail!("write: the values are not contiguous")
        };
        macro_rules! by_dtype {
            ($($dtype:ident)*) => {
                match (into, values) {
                    $((CpuStorage::$dtype(into), CpuStorage::$dtype(values)) => {
                        put(into, places, &values[from..to]);
                    })*
                    _ => bail!("write: the dtype cannot be written"),
                }
            };
        }
        by_dtype!(BF16 F16 F32 F64);
        Ok(())
    }
}

/// Writes floats `values` of the shape and dtype of `x` into its memory.
///
/// # Errors
/// Returns an error if two elements of `x` are one place in memory.
pub fn write(op: &str, x: &Tensor, values: &Tensor) -> Result<()> {
    if x.is_contiguous() {
        return x.slice_set(&values.contiguous()?, 0, 0);
    }
    let mut steps = x.dims().iter().zip(x.stride());
    if steps.any(|(size, stride)| *size > 1 && *stride == 0) {
        bail!(
            "{op}: a tensor {:?} that is written to is expanded: several elements are one place in memory; copy it first, with `contiguous`",
            x.dims()
        )
    }
    x.detach()
        .inplace_op2(&values.detach().contiguous()?, &Write)
}
