//! The results of a comparison: distances from the library's numbers, and how traced numbers differ
//! from eager ones.

use fx_nn::prelude::*;

use super::experts::Experts;

/// The results of one folder's model.
#[derive(Default)]
pub struct Found {
    /// The distance of each way of running from the library's numbers.
    pub distances: Vec<(&'static str, f64)>,
    /// How many numbers differ between the traced and the eager model.
    pub differing: usize,
    /// The experts of the last run of the graph.
    pub experts: Experts,
}

impl Found {
    /// Adds a way of running with its eager, traced and expected (the library's) results.
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

impl Found {
    /// Adds a way of running compiled code, which may round otherwise than the graph.
    pub fn add_compiled(
        &mut self,
        mode: &'static str,
        compiled: &Tensor,
        expected: &Tensor,
    ) -> Result<()> {
        self.distances.push((mode, distance(compiled, expected)?));
        Ok(())
    }
}

/// The largest distance, over the largest expected number.
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
