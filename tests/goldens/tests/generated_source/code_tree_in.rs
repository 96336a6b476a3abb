//! What `code()` gives, where it was traced.

use fx_nn::prelude::*;
use crate::emitted::Cache;

/// Where a function stands.
#[derive(Module)]
pub struct Code {
    /// Tells it from others.
    pub tag: Tag,
}

#[trace]
impl Code {
    pub fn forward(&self, x: &Tensor, c: Cache) -> Result<Tensor> {
        let c_1 = &c.k;
        let add = (x + c_1)?;
        Ok(add)
    }
}
