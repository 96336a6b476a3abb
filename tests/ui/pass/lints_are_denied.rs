//! A user's crate that denies all that it can.
#![deny(
    warnings,
    missing_docs,
    unused,
    rust_2018_idioms,
    nonstandard_style,
    future_incompatible
)]
#![deny(
    missing_debug_implementations,
    unreachable_pub,
    single_use_lifetimes,
    trivial_casts
)]
#![deny(
    trivial_numeric_casts,
    unused_qualifications,
    unused_lifetimes,
    private_interfaces
)]
#![forbid(unsafe_code)]
#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

/// A documented function.
#[trace]
#[must_use]
fn documented(x: &Tensor, flag: bool) -> Result<Tensor> {
    if flag { (x > 0.5)? * x } else { Ok(x.clone()) }
}

/// A documented leaf.
#[wrap(method)]
#[cfg(all())]
pub fn twice(
    x: &Tensor,
    #[kw]
    #[default(2)]
    n: i64,
) -> Result<Tensor> {
    x * n
}

/// Not there.
#[trace]
#[cfg(any())]
fn absent(x: &Missing) -> Result<Missing> {
    x
}

/// A layer.
#[derive(Module, Debug)]
struct Layer {
    /// A parameter.
    weight: Tensor,
    /// Not there.
    #[cfg(any())]
    absent: Missing,
    /// A private type.
    private: Private,
}

#[derive(Module, Debug)]
struct Private(Tag);

#[trace]
impl Layer {
    /// Runs it.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _ = &self.private;
        x * &self.weight
    }
}

fn main() -> Result<()> {
    let x = tensor("x");
    documented(&x, true)?;
    let layer = Layer {
        weight: x.twice(3)?,
        private: Private(Tag::default()),
    };
    layer.forward(&x)?;
    let _ = (
        traced!(documented),
        function!(twice),
        symbolic_trace(&layer)?,
    );
    Ok(())
}
