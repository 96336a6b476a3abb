//! `LossScale`: by what a loss is multiplied before its gradient is taken, so that small gradients of few digits are not
//! zero, and what a step does whose gradients are not finite.

use fx_core::trace::FromValue;
use fx_core::value::{DType, IntoValue, Value};
use fx_core::{Error, Result};

use crate::func::known;
use crate::ops;
use crate::tensor::{Dims, Tensor};

/// By what a loss is multiplied before its gradient is taken, as `torch.amp.GradScaler` does. The gradients are divided by
/// it again. A step with a gradient that is not finite changes neither parameters nor the state of the optimizer, and does
/// not count as a step for it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum LossScale {
    /// By one number: by 1, steps that are not finite are left out, and no more.
    Fixed(f64),
    /// By a number that is halved when a step is not finite, and doubled after so many steps in a row that are.
    Dynamic {
        /// The number at first.
        initial: f64,
        /// After how many finite steps it is doubled.
        growth_interval: u32,
    },
}

impl Default for LossScale {
    /// PyTorch's: from 65,536 on, doubled after 2,000 steps.
    fn default() -> Self {
        LossScale::Dynamic {
            initial: 65536.0,
            growth_interval: 2000,
        }
    }
}

/// What steps carry: the number, how many finite steps there were since it changed, and how many were left out.
pub(super) const STATE: [&str; 3] = ["scale", "good_steps", "skipped"];

/// What a step has from the one before.
pub(super) struct Scaling {
    how: LossScale,
    pub scale: Tensor,
    good_steps: Tensor,
    skipped: Tensor,
}

impl LossScale {
    /// What the first step has.
    pub(super) fn initial(self) -> Result<Vec<Value>> {
        let scale = match self {
            LossScale::Fixed(scale) => scale,
            LossScale::Dynamic { initial, .. } => initial,
        };
        if !(scale.is_finite() && scale > 0.0) {
            return Err(Error::msg(format_args!(
                "a loss is multiplied by a number above 0, not by {scale}"
            )));
        }
        let number =
            |number: f64| Tensor::from_vec(vec![number as f32], ()).map(IntoValue::into_value);
        [scale, 0.0, 0.0].into_iter().map(number).collect()
    }

    /// What a step has, by [`STATE`].
    pub(super) fn of(self, state: &[Value]) -> Result<Scaling> {
        let [scale, good_steps, skipped] = state else {
            return Err(Error::msg("the state of the loss scale is missing"));
        };
        let tensor = |value: &Value| Tensor::from_value(value.clone());
        Ok(Scaling {
            how: self,
            scale: tensor(scale)?,
            good_steps: tensor(good_steps)?,
            skipped: tensor(skipped)?,
        })
    }
}

impl Scaling {
    /// One number: 1 if a gradient is not finite, else 0.
    pub fn found_inf(&self, grads: &[Tensor]) -> Result<Tensor> {
        let mut sum = ops::zeros_like(&self.scale, None)?;
        for grad in grads {
            // Zero times what is not finite is NaN, and all else is zero.
            let own = ops::sum(&(grad * 0.0)?, Dims::All, false)?;
            sum = (sum + ops::to_dtype(&own, DType::F32)?)?;
        }
        ops::to_dtype(&sum.ne(0.0)?, DType::F32)
    }

    /// A value after the step, or that before it if the step is left out.
    pub fn chosen(found_inf: &Tensor, before: &Value, after: &Value) -> Result<Value> {
        let (before, after) = (
            Tensor::from_value(before.clone())?,
            Tensor::from_value(after.clone())?,
        );
        let after = match known::dtype(&before)? {
            dtype if dtype == known::dtype(&after)? => after,
            dtype => ops::to_dtype(&after, dtype)?,
        };
        ops::r#where(&found_inf.gt(0.0)?, &before, &after).map(IntoValue::into_value)
    }

    /// What the next step has.
    pub fn after(&self, found_inf: &Tensor) -> Result<Vec<Value>> {
        let is_skipped = found_inf.gt(0.0)?;
        let skipped = (&self.skipped + found_inf)?;
        let (scale, good_steps) = match self.how {
            LossScale::Fixed(_) => (self.scale.clone(), self.good_steps.clone()),
            LossScale::Dynamic {
                growth_interval, ..
            } => {
                let good = ops::r#where(&is_skipped, 0.0, &(&self.good_steps + 1.0)?)?;
                let has_grown = good.ge(f64::from(growth_interval))?;
                let grown = ops::r#where(&has_grown, &(&self.scale * 2.0)?, &self.scale)?;
                let scale = ops::r#where(&is_skipped, &(&self.scale * 0.5)?, &grown)?;
                (scale, ops::r#where(&has_grown, 0.0, &good)?)
            }
        };
        let all = [scale, good_steps, skipped];
        Ok(all.into_iter().map(IntoValue::into_value).collect())
    }
}
