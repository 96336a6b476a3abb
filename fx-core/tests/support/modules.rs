//! Modules over `Array`: a leaf layer, a stateless activation, and a block with every kind of
//! field.

use std::sync::Arc;

use fx_core::module::Module;
use fx_core::prelude::*;

use super::{Array, linear};

/// x Wᵀ + b, a leaf by default.
#[derive(Module, Debug)]
pub struct Linear {
    pub weight: Array,
    pub bias: Option<Array>,
}

impl Linear {
    /// A square layer that multiplies by `factor`.
    pub fn square(n: usize, factor: f64) -> Self {
        let data = (0..n * n).map(|i| if i / n == i % n { factor } else { 0.0 });
        Linear {
            weight: Array::new(&[n, n], data.collect()),
            bias: Some(Array::vec(&vec![0.5; n])),
        }
    }
}

#[trace(leaf)]
impl Linear {
    pub fn forward(&self, x: &Array) -> Result<Array> {
        linear(x, &self.weight, self.bias.as_ref())
    }
}

/// A leaf on numbers.
#[derive(Module)]
pub struct Scale {
    pub by: f64,
}

#[trace(leaf)]
impl Scale {
    pub fn forward(&self, x: Float) -> Result<Float> {
        x * self.by
    }
}

/// Traced through by default; has no state, and a tag that distinguishes it from others.
#[derive(Module, Debug, Default)]
pub struct Activation(Tag);

#[trace]
impl Activation {
    pub fn forward(&self, x: &Array) -> Result<Array> {
        x.relu()
    }
}

/// Adds its parameter, and doubles while training.
#[derive(Module, Debug)]
pub struct Shift {
    pub by: Array,
    pub training: bool,
}

#[trace]
impl Shift {
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let y = (x + &self.by)?;
        if self.training { y * 2.0 } else { Ok(y) }
    }
}

/// Every kind of field.
#[derive(Module)]
pub struct Block {
    pub first: Linear,
    pub second: Option<Linear>,
    pub layers: Vec<Shift>,
    pub boxed: Box<dyn Module>,
    pub shared: Arc<Linear>,
    #[module(buffer)]
    pub mean: Array,
    #[module(skip)]
    pub note: String,
    pub training: bool,
}

impl Block {
    pub fn new(n: usize) -> Self {
        Block {
            first: Linear::square(n, 2.0),
            second: Some(Linear::square(n, 3.0)),
            layers: (0..2)
                .map(|i| Shift {
                    by: Array::vec(&vec![f64::from(i); n]),
                    training: false,
                })
                .collect(),
            boxed: Box::new(Activation::default()),
            shared: Arc::new(Linear::square(n, -1.0)),
            mean: Array::vec(&vec![0.25; n]),
            note: "kept".into(),
            training: true,
        }
    }
}

#[trace]
impl Block {
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let mut h = self.first.forward(x)?;
        if let Some(second) = &self.second {
            h = second.forward(&h)?;
        }
        for layer in &self.layers {
            h = layer.forward(&h)?;
        }
        h = (self.shared.forward(&h)? - &self.mean)?;
        self.boxed.forward(&h)
    }
}

/// One leaf under two names, and one parameter under two names.
#[derive(Module)]
pub struct Tied {
    pub a: Arc<Linear>,
    pub b: Arc<Linear>,
    pub p: Array,
    pub q: Array,
}

impl Tied {
    pub fn new(n: usize) -> Self {
        let (layer, p) = (Arc::new(Linear::square(n, 2.0)), Array::vec(&vec![1.0; n]));
        Tied {
            a: layer.clone(),
            b: layer,
            p: p.clone(),
            q: p,
        }
    }
}

#[trace]
impl Tied {
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let h = self.b.forward(&self.a.forward(x)?)?;
        (h + &self.q)? * &self.p
    }
}
