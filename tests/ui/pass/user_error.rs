#[path = "../support/mod.rs"]
mod support;

use std::fmt;

use fx_core::prelude::*;
use support::{Tensor, tensor};

#[derive(Debug)]
enum ModelError {
    TooDeep(usize),
    Fx(fx_core::Error),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::TooDeep(depth) => write!(f, "too deep: {depth}"),
            ModelError::Fx(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ModelError {}

impl From<fx_core::Error> for ModelError {
    fn from(error: fx_core::Error) -> Self {
        ModelError::Fx(error)
    }
}

#[wrap]
pub fn checked(x: &Tensor, depth: usize) -> Result<Tensor, ModelError> {
    if depth > 3 {
        return Err(ModelError::TooDeep(depth));
    }
    Ok((x + depth)?)
}

#[derive(Module)]
struct Layer {
    depth: usize,
}

#[trace]
impl Layer {
    fn forward(&self, x: &Tensor) -> Result<Tensor, ModelError> {
        Ok(checked(x, self.depth)?.relu()?)
    }
}

#[trace]
fn anyhow_like(x: &Tensor, n: i64) -> Result<Tensor, Box<dyn std::error::Error + Send + Sync>> {
    if n > 3 {
        return Err("too large".into());
    }
    Ok((x > n)?)
}

fn main() {
    let x = tensor("x");
    let deep = Layer { depth: 4 };
    let error = deep.forward(&x).map(|_| ()).expect_err("too deep");
    assert!(matches!(error, ModelError::TooDeep(4)));
    let gm = symbolic_trace(&deep).expect("traces");
    let error = gm.forward::<Tensor>(&x).map(|_| ()).expect_err("too deep");
    assert!(error.to_string().contains("too deep: 4"), "{error}");
    let source = std::error::Error::source(&error).expect("a source");
    assert!(source.downcast_ref::<ModelError>().is_some());
    let traced = Trace::new(traced!(anyhow_like)).concrete("n", 4i64).graph();
    assert!(
        traced
            .map(|_| ())
            .expect_err("too large")
            .to_string()
            .contains("too large")
    );
    let unbound = symbolic_trace(traced!(anyhow_like))
        .map(|_| ())
        .expect_err("n is not bound");
    assert!(
        matches!(unbound.kind(), fx_core::ErrorKind::Unspecialised { .. }),
        "{unbound}"
    );
}
