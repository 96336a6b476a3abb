//! Steps of optimizers: a parameter and its state are changed where they are.
//!
//! Invariant: what nothing else reads is changed in place; what something reads is copied first.

use std::sync::Arc;

use fx_core::trace::FromValue;
use fx_core::{Error, Result};
use fx_kernels::Buffer;
use fx_kernels::update::{Adam, Sgd};
use smallvec::SmallVec;

use super::array::{Array, Memory};
use super::call::{Args, Lowering};
use super::draft::{Id, Kind};
use super::frame::{Reading, Register, sizes_differ};
use super::memory::Pool;
use crate::optim::UpdateRule;

impl Lowering<'_> {
    pub fn adam(&mut self, args: &Args<'_>) -> Option<Id> {
        let rule = UpdateRule::Adam {
            betas: (args.float("beta1")?, args.float("beta2")?),
            eps: args.float("eps")?,
            weight_decay: args.float("weight_decay")?,
            is_decoupled: args.flag("is_decoupled"),
        };
        self.updated(args, rule, &["parameter", "exp_avg", "exp_avg_sq"])
    }

    pub fn sgd(&mut self, args: &Args<'_>) -> Option<Id> {
        let rule = UpdateRule::Sgd {
            momentum: args.float("momentum")?,
            dampening: args.float("dampening")?,
            weight_decay: args.float("weight_decay")?,
            nesterov: args.flag("nesterov"),
        };
        let state: &[&str] = match args.is_none("momentum_buffer") {
            true => &["parameter"],
            false => &["parameter", "momentum_buffer"],
        };
        self.updated(args, rule, state)
    }

    fn updated(&mut self, args: &Args<'_>, rule: UpdateRule, changed: &[&str]) -> Option<Id> {
        let is_alone = args.is_none("grad_scale") && !args.is_none("found_inf");
        if is_alone || changed.len() != 1 + rule.state().len() {
            return None;
        }
        let mut inputs = vec![self.floats(args, "gradient")?];
        for name in ["lr", "step"] {
            inputs.push(self.item_of(&*args.get(name)?)?);
        }
        for name in changed {
            inputs.push(self.floats(args, name)?);
        }
        for name in ["grad_scale", "found_inf"] {
            if !args.is_none(name) {
                inputs.push(self.floats(args, name)?);
            }
        }
        let id = self.push(args, Kind::Update(rule), inputs)?;
        self.draft.items[id].is_floats = false;
        Some(id)
    }
}

/// Where the inputs of an update begin that are changed.
pub(super) const CHANGED: usize = 3;

/// The floats of an array in memory that nothing else reads.
fn alone(reading: &Reading<'_>, array: Array, pool: &mut Pool) -> Result<Arc<Buffer>> {
    let array = reading.contiguous(array, pool)?;
    match array.memory {
        Memory::Buffer(mut buffer)
            if array.start == 0 && buffer.len() == array.dims.iter().product::<usize>() =>
        {
            match Arc::get_mut(&mut buffer) {
                Some(_) => Ok(buffer),
                None => Ok(Arc::new(Buffer::from_slice(&buffer))),
            }
        }
        _ => Ok(Arc::new(Buffer::from_slice(reading.floats(&array)))),
    }
}

impl Reading<'_> {
    /// The parameter and its state after a step; `taken` are those before it.
    pub fn update(
        &self,
        rule: UpdateRule,
        inputs: &[Id],
        taken: SmallVec<[Array; 3]>,
        pool: &mut Pool,
    ) -> Result<Register> {
        let gradient = self.in_order(inputs[0], pool)?;
        let gradient = self.floats(&gradient);
        let [lr, step] = [self.float(inputs[1])?, self.float(inputs[2])?];
        let mut one = |at: usize, otherwise: f32| match inputs.get(CHANGED + taken.len() + at) {
            Some(id) => {
                let number = self.in_order(*id, pool)?;
                let found = self.floats(&number).first().copied();
                found.ok_or_else(|| Error::msg("what multiplies a gradient has no elements"))
            }
            None => Ok(otherwise),
        };
        let (scale, found_inf) = (one(0, 1.0)?, one(1, 0.0)?);
        let dims: SmallVec<[_; 3]> = taken.iter().map(|array| array.dims.clone()).collect();
        let buffers = taken.into_iter().map(|array| alone(self, array, pool));
        let mut buffers = buffers.collect::<Result<SmallVec<[Arc<Buffer>; 3]>>>()?;
        let mut floats: SmallVec<[&mut [f32]; 3]> = SmallVec::new();
        for buffer in &mut buffers {
            let buffer = Arc::get_mut(buffer);
            floats.push(buffer.ok_or_else(|| Error::msg("a parameter is still read"))?);
        }
        match (rule, &mut floats[..]) {
            _ if found_inf > 0.0 => Ok(()),
            (
                UpdateRule::Adam {
                    betas: (beta1, beta2),
                    eps,
                    weight_decay,
                    is_decoupled,
                },
                [parameter, average, square],
            ) => {
                let (left1, left2) = (1.0 - beta1.powf(step), 1.0 - beta2.powf(step));
                let (shrink, decay) = match is_decoupled {
                    true => (1.0 - lr * weight_decay, 0.0),
                    false => (1.0, weight_decay),
                };
                let how = Adam {
                    scale,
                    decay: decay as f32,
                    shrink: shrink as f32,
                    beta1: beta1 as f32,
                    beta2: beta2 as f32,
                    rate: (lr / left1) as f32,
                    root: left2.sqrt() as f32,
                    eps: eps as f32,
                };
                how.run(gradient, parameter, average, square)
            }
            (
                UpdateRule::Sgd {
                    momentum,
                    dampening,
                    weight_decay,
                    nesterov,
                },
                [parameter, rest @ ..],
            ) => {
                let share = if step == 1.0 { 1.0 } else { 1.0 - dampening };
                let how = Sgd {
                    scale,
                    decay: weight_decay as f32,
                    rate: lr as f32,
                    momentum: momentum as f32,
                    share: share as f32,
                    nesterov,
                };
                how.run(
                    gradient,
                    parameter,
                    rest.first_mut().map(|buffer| &mut **buffer),
                )
            }
            _ => return Err(Error::msg("an optimizer has another state")),
        }
        .map_err(sizes_differ)?;
        drop(floats);
        let parts = buffers
            .into_iter()
            .zip(dims)
            .map(|(buffer, dims)| Array::of(Memory::Buffer(buffer), dims));
        Ok(Register::Parts(parts.collect()))
    }

    fn float(&self, id: Id) -> Result<f64> {
        match &self.registers[id] {
            Register::Value(value) => f64::from_value(value.clone()),
            _ => Err(Error::msg("a learning rate is no number")),
        }
    }
}
