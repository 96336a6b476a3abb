//! `SGD`: stochastic gradient descent.

use fx_core::module::Component;
use fx_core::{Error, Result};
use indexmap::IndexMap;

use super::optimizer::Optimizer;
use super::trained::Trained;
use super::update::UpdateRule;
use crate::tensor::{Gradients, Tensor};

/// Stochastic gradient descent, with optional momentum; `lr` is 0.001.
///
/// ```
/// use fx_nn::optim::{Optimizer, SGD};
/// use fx_nn::prelude::*;
/// #[derive(Module)]
/// struct Scalar { w: Tensor }
/// let model = Scalar { w: Tensor::from_vec(vec![3.0f64], ())?.into_parameter()? };
/// let mut optimizer = SGD::new(&model)?.lr(0.1).momentum(0.9);
/// for _ in 0..2 {
///     optimizer.step(&model.w.square()?.backward()?)?;
/// }
/// // 3 - 0.1 * 6 = 2.4; the second step goes 4.8 + 0.9 * 6.
/// assert!((model.w.item()? - (2.4 - 0.1 * (4.8 + 5.4))).abs() < 1e-12);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct SGD {
    trained: Trained,
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
}

impl SGD {
    /// An optimizer of a module's trained parameters, which it changes in place.
    ///
    /// # Errors
    /// Returns an error if a parameter is symbolic, or none is trained.
    pub fn new(module: &(impl Component + ?Sized)) -> Result<Self> {
        Ok(SGD {
            trained: Trained::of(module, &["momentum_buffer"])?,
            lr: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            weight_decay: 0.0,
            nesterov: false,
        })
    }

    /// The learning rate.
    pub fn lr(mut self, lr: f64) -> Self {
        self.lr = lr;
        self
    }

    /// How much of the previous direction is kept: 0.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// How much of the gradient the momentum leaves out: 0.
    pub fn dampening(mut self, dampening: f64) -> Self {
        self.dampening = dampening;
        self
    }

    /// How much of the parameter is added to its gradient: 0.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Nesterov's momentum, which needs a momentum and no dampening.
    pub fn nesterov(mut self, nesterov: bool) -> Self {
        self.nesterov = nesterov;
        self
    }
}

impl Optimizer for SGD {
    fn step(&mut self, gradients: &Gradients) -> Result<()> {
        if self.nesterov && (self.momentum <= 0.0 || self.dampening != 0.0) {
            return Err(Error::msg(
                "SGD: nesterov needs a momentum above 0 and no dampening",
            ));
        }
        let (lr, momentum, dampening) = (self.lr, self.momentum, self.dampening);
        let (weight_decay, nesterov) = (self.weight_decay, self.nesterov);
        self.trained.step(gradients, |parameter, mut gradient| {
            let value = parameter.value();
            if weight_decay != 0.0 {
                gradient = (gradient + (&value * weight_decay)?)?;
            }
            let mut remembered = Vec::new();
            if momentum != 0.0 {
                let buffer = match parameter.step {
                    0 => gradient.clone(),
                    _ => {
                        ((parameter.remembered(0)? * momentum)? + (&gradient * (1.0 - dampening))?)?
                    }
                };
                gradient = match nesterov {
                    true => (gradient + (&buffer * momentum)?)?,
                    false => buffer.clone(),
                };
                remembered.push(buffer);
            }
            parameter.change(&(value - (gradient * lr)?)?, remembered)
        })
    }

    fn learning_rate(&self) -> f64 {
        self.lr
    }

    fn set_learning_rate(&mut self, lr: f64) {
        self.lr = lr;
    }

    fn update_rule(&self) -> Option<UpdateRule> {
        Some(UpdateRule::Sgd {
            momentum: self.momentum,
            dampening: self.dampening,
            weight_decay: self.weight_decay,
            nesterov: self.nesterov,
        })
    }

    fn state_dict(&self) -> Result<IndexMap<String, Tensor>> {
        self.trained.state_dict()
    }

    fn load_state_dict(&mut self, state: &IndexMap<String, Tensor>) -> Result<()> {
        self.trained.load_state_dict(state)
    }
}
