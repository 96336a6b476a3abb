//! What a comparison found: distances from the numbers of the library, and how traced numbers differ from eager ones.

use fx_nn::prelude::*;

/// What the model of one folder gave.
#[derive(Default)]
pub struct Found {
    /// How far each way of running is from the library's numbers.
    pub distances: Vec<(&'static str, f64)>,
    /// How many numbers of the traced model are not those of the eager one.
    pub differing: usize,
}

impl Found {
    /// A way of running gave `eager`, the traced model `traced`, and the library `expected`.
    pub fn add(
        &mut self,
        mode: &'static str,
        eager: &Tensor,
        traced: &Tensor,
        expected: &Tensor,
    ) -> Result<()> {
        self.distances.push((mode, distance(eager, expected)?));
        let differing = eager.ne(traced)?.to_dtype(DType::I64)?.sum(..)?.item()?;
        self.differing += differing as usize;
        Ok(())
    }
}

/// The largest distance, over the largest of the numbers that are expected.
fn distance(found: &Tensor, expected: &Tensor) -> Result<f64> {
    let largest = |x: Tensor| x.to_dtype(DType::F32)?.abs()?.amax(..)?.item();
    let found = found.to_dtype(DType::F32)?;
    if found.dims()? != expected.dims()? {
        return Err(Error::msg(format_args!(
            "the model gave the shape {:?}, and the library {:?}",
            found.dims()?,
            expected.dims()?
        )));
    }
    Ok(largest((found - expected)?)? / largest(expected.clone())?)
}
