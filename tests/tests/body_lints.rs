//! Expansions in a crate that denies clippy's lints and rustc's: `cargo clippy -p fx-tests --tests` is the test.

#![deny(warnings, missing_docs, unused, clippy::all, clippy::pedantic)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![forbid(unsafe_code)]

use crate::support;

use std::sync::Arc;

use fx_core::prelude::*;
use support::{Tensor, tensor};

/// Documented.
///
/// # Errors
/// When the operands do not fit.
#[trace]
pub fn gated(x: &Tensor, n: i64, flag: bool) -> Result<Tensor> {
    if flag && n > 3 || n == 1 {
        return (x > 0.5)? * x;
    }
    Ok(x.clone())
}

/// Documented.
///
/// # Errors
/// When the operands do not fit.
#[wrap(method)]
pub fn scaled(
    x: &Tensor,
    #[kw]
    #[default(2.0)]
    by: impl Into<f64>,
    #[kw] bias: Option<&Tensor>,
) -> Result<Tensor> {
    let scaled = (x * by)?;
    match bias {
        Some(bias) => scaled + bias,
        None => Ok(scaled),
    }
}

#[wrap]
impl Tensor {
    /// Documented.
    ///
    /// # Errors
    /// When the operands do not fit.
    pub fn same(&self) -> Result<Tensor> {
        self * 1.0
    }
}

/// Documented.
#[derive(Module, Debug)]
pub struct Layer<T> {
    weight: Tensor,
    #[module(buffer)]
    mean: Tensor,
    inner: Option<Arc<T>>,
    training: bool,
    #[module(skip)]
    names: Vec<String>,
}

#[trace]
impl<T: Module> Layer<T> {
    /// Documented.
    ///
    /// # Errors
    /// When the operands do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = ((x * &self.weight)? + &self.mean)?;
        match &self.inner {
            Some(inner) if !self.training && self.names.len() > 1 => inner.forward(&h),
            _ => Ok(h),
        }
    }
}

/// Documented.
#[derive(Module, Debug)]
pub enum Kind {
    /// Documented.
    Tensor(Tensor),
    /// Documented.
    Nothing,
}

#[trace(leaf, impure)]
impl Kind {
    /// Documented.
    ///
    /// # Errors
    /// When the operands do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Kind::Tensor(weight) => x * weight,
            Kind::Nothing => x.same(),
        }
    }
}

#[test]
fn they_run() -> Result<()> {
    let layer = Layer {
        weight: tensor("w"),
        mean: tensor("m"),
        inner: Some(Arc::new(Kind::Tensor(tensor("k")))),
        training: false,
        names: vec![String::new(); 2],
    };
    assert_eq!(
        layer.forward(&tensor("x"))?.text,
        "mul(add(mul(x, w), m), k)"
    );
    let calls = symbolic_trace(traced!(|x: &Tensor| x.scaled(3.0, Some(x))))?;
    assert_eq!(calls.graph().nodes().count(), 3);
    assert_eq!(symbolic_trace(&layer)?.graph().nodes().count(), 7);
    assert_eq!(gated(&tensor("x"), 1, false)?.text, "mul(gt(x, 0.5), x)");
    let _ = (traced!(gated), function!(scaled));
    Ok(())
}
