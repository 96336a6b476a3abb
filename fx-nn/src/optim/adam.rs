//! `Adam` and `AdamW`: steps scaled by the moments of gradients.

use fx_core::Result;
use fx_core::module::Component;
use indexmap::IndexMap;

use super::optimizer::Optimizer;
use super::trained::Trained;
use super::update::UpdateRule;
use crate::tensor::{Gradients, Tensor};

/// The state and the options of both.
#[derive(Debug)]
struct Moments {
    trained: Trained,
    lr: f64,
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
    /// Whether the decay changes the parameter itself, and not its gradient.
    is_decoupled: bool,
}

impl Moments {
    fn of(
        module: &(impl Component + ?Sized),
        weight_decay: f64,
        is_decoupled: bool,
    ) -> Result<Self> {
        Ok(Moments {
            trained: Trained::of(module, &["exp_avg", "exp_avg_sq"])?,
            lr: 1e-3,
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay,
            is_decoupled,
        })
    }

    fn step(&mut self, gradients: &Gradients) -> Result<()> {
        let Moments {
            lr,
            betas: (beta1, beta2),
            eps,
            weight_decay,
            is_decoupled,
            ..
        } = *self;
        self.trained.step(gradients, |parameter, mut gradient| {
            let mut value = parameter.value();
            if weight_decay != 0.0 {
                match is_decoupled {
                    true => value = (value * (1.0 - lr * weight_decay))?,
                    false => gradient = (gradient + (&value * weight_decay)?)?,
                }
            }
            let first = ((parameter.remembered(0)? * beta1)? + (&gradient * (1.0 - beta1))?)?;
            let second =
                ((parameter.remembered(1)? * beta2)? + (gradient.sqr()? * (1.0 - beta2))?)?;
            let step = (parameter.step + 1) as f64;
            let (unbiased1, unbiased2) = (1.0 - beta1.powf(step), 1.0 - beta2.powf(step));
            let scale = ((second.sqrt()? / unbiased2.sqrt())? + eps)?;
            let change = (first.div(&scale)? * (lr / unbiased1))?;
            parameter.change(&(value - change)?, vec![first, second])
        })
    }
}

macro_rules! optimizer {
    ($(#[$doc:meta])* $name:ident, $weight_decay:literal, $is_decoupled:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use]
        pub struct $name(Moments);

        impl $name {
            /// An optimizer of a module's trained parameters, which it changes in place.
            ///
            /// # Errors
            /// Returns an error if a parameter is symbolic, or none is trained.
            pub fn new(module: &(impl Component + ?Sized)) -> Result<Self> {
                Moments::of(module, $weight_decay, $is_decoupled).map($name)
            }

            /// The learning rate: 0.001.
            pub fn lr(mut self, lr: f64) -> Self {
                self.0.lr = lr;
                self
            }

            /// How much of the previous averages of gradients and of their squares is kept: 0.9 and
            /// 0.999.
            pub fn betas(mut self, of_gradients: f64, of_squares: f64) -> Self {
                self.0.betas = (of_gradients, of_squares);
                self
            }

            /// The number added to the divisor: 1e-8.
            pub fn eps(mut self, eps: f64) -> Self {
                self.0.eps = eps;
                self
            }

            #[doc = concat!("How much parameters decay: ", stringify!($weight_decay), ".")]
            pub fn weight_decay(mut self, weight_decay: f64) -> Self {
                self.0.weight_decay = weight_decay;
                self
            }
        }

        impl Optimizer for $name {
            fn step(&mut self, gradients: &Gradients) -> Result<()> {
                self.0.step(gradients)
            }

            fn learning_rate(&self) -> f64 {
                self.0.lr
            }

            fn set_learning_rate(&mut self, lr: f64) {
                self.0.lr = lr;
            }

            fn update_rule(&self) -> Option<UpdateRule> {
                Some(UpdateRule::Adam {
                    betas: self.0.betas,
                    eps: self.0.eps,
                    weight_decay: self.0.weight_decay,
                    is_decoupled: self.0.is_decoupled,
                })
            }

            fn state_dict(&self) -> Result<IndexMap<String, Tensor>> {
                self.0.trained.state_dict()
            }

            fn load_state_dict(&mut self, state: &IndexMap<String, Tensor>) -> Result<()> {
                self.0.trained.load_state_dict(state)
            }
        }
    };
}

optimizer! {
    /// Adam: steps by the average gradient over the root of the average square. The decay is added to the gradient.
    Adam, 0.0, false
}

optimizer! {
    /// AdamW: Adam whose decay shrinks the parameters themselves.
    AdamW, 0.01, true
}
