#![deny(missing_docs)]
//! A documented program.
#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

/// Documented.
#[derive(Module)]
pub struct Scale {
    /// Documented.
    pub by: Tensor,
    #[cfg(any())]
    pub never: Never,
}

#[trace]
impl Scale {
    /// Documented.
    ///
    /// # Errors
    /// Never.
    #[must_use = "it computes"]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        #[cfg(any())]
        never();
        #[cfg(not(any()))]
        let x = (x + 1)?;
        #[allow(unused_parens)]
        let y = (x * &self.by);
        y
    }
}

/// Documented.
///
/// # Errors
/// Never.
#[cfg(not(any()))]
#[trace]
#[inline(never)]
pub fn f(#[allow(unused_variables)] x: &Tensor) -> Result<Tensor> {
    x.clone() + 1
}

/// Documented.
///
/// # Errors
/// Never.
#[wrap]
#[inline]
pub fn leaf(x: &Tensor) -> Result<Tensor> {
    x * 2
}

fn main() -> Result<()> {
    let scale = Scale { by: tensor("s") };
    assert_eq!(symbolic_trace(&scale)?.forward::<Tensor>(&tensor("x"))?.text, scale.forward(&tensor("x"))?.text);
    symbolic_trace(traced!(f))?;
    symbolic_trace(traced!(|x: &Tensor| leaf(x))).map(drop)
}
