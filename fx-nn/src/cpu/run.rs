//! Running a program: its arguments into registers, its steps in order, its results out.
//!
//! Invariant: a frame whose run failed is not used again.

use std::borrow::Cow;

use fx_core::passes::backend::StepRun;
use fx_core::value::Value;
use fx_core::{Error, Result};
use smallvec::SmallVec;
use web_time::Instant;

use super::array::{Array, Memory};
use super::draft::Kind;
use super::frame::{Frame, Reading, Register, give, slice};
use super::memory::Pool;
use super::over;
use super::program::{Kernel, Program, Step};
use crate::Tensor;

/// Gets what each step took.
pub(super) type OnStep<'o> = &'o mut dyn FnMut(StepRun<'_>);

impl Program {
    /// Runs on one value for each placeholder. `on_step` gets what each step took, if there is one.
    pub fn run(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: Option<OnStep<'_>>,
    ) -> Result<()> {
        let mut frame = self.frame();
        self.run_in(&mut frame, inputs, out, on_step)?;
        self.keep(frame);
        Ok(())
    }

    fn run_in(
        &self,
        frame: &mut Frame,
        inputs: &[&Value],
        out: &mut Value,
        on_step: Option<OnStep<'_>>,
    ) -> Result<()> {
        let mut given: SmallVec<[Option<Cow<'_, candle_core::Tensor>>; 4]> = SmallVec::new();
        for (place, _, is_floats) in &self.arguments {
            let value = inputs.get(*place).copied();
            let value = value.ok_or_else(|| Error::msg("an argument is missing"))?;
            given.push(match is_floats {
                true => Some(dense(value)?),
                false => None,
            });
        }
        let guards: SmallVec<[_; 4]> = given
            .iter()
            .map(|data| data.as_ref().map(|data| data.storage_and_layout()))
            .collect();
        let mut floats: SmallVec<[&[f32]; 4]> = SmallVec::from_elem(&[][..], inputs.len());
        for (guard, (place, id, _)) in guards.iter().zip(&self.arguments) {
            frame.registers[*id] = match guard {
                Some((storage, layout)) => {
                    floats[*place] = slice(storage)?;
                    Register::Array(Array {
                        memory: Memory::Input(*place),
                        start: layout.start_offset(),
                        dims: layout.dims().iter().copied().collect(),
                        strides: layout.stride().iter().copied().collect(),
                    })
                }
                None => Register::Value(inputs[*place].clone()),
            };
        }
        self.steps_in(frame, &floats, on_step)?;
        let Frame { registers, .. } = frame;
        for (node, id) in &self.returned {
            if !self.halves.contains_key(node) {
                give(&mut registers[*id])?;
            }
        }
        let reading = Reading {
            registers,
            inputs: &floats,
            level: self.level,
            halves: &self.halves,
        };
        let result = self.output.to_value(&mut |node| {
            let found = self.returned.iter().find(|(other, _)| *other == node);
            let (_, id) = found.ok_or_else(|| Error::msg("a result was not computed"))?;
            let mut arguments = self.arguments.iter();
            match arguments.find(|(_, argument, _)| argument == id) {
                Some((place, ..)) => Ok(inputs[*place].clone()),
                None => reading.value(*id, self.halves.get(&node).copied()),
            }
        })?;
        *out = result;
        for (_, id, _) in &self.arguments {
            registers[*id] = Register::Empty;
        }
        Ok(())
    }

    /// Runs the steps; the arguments are in their registers.
    pub(super) fn steps_in(
        &self,
        frame: &mut Frame,
        floats: &[&[f32]],
        mut on_step: Option<OnStep<'_>>,
    ) -> Result<()> {
        frame.pool.restart();
        for part in &self.parts {
            let steps = &self.steps[part.steps.clone()];
            match (&mut on_step, &part.pace) {
                (None, Some(pace)) => pace.run(|| self.some_steps(steps, frame, floats, None))?,
                (None, None) => self.some_steps(steps, frame, floats, None)?,
                (Some(on_step), _) => self.some_steps(steps, frame, floats, Some(*on_step))?,
            }
        }
        Ok(())
    }

    /// Runs steps on this thread.
    fn some_steps(
        &self,
        steps: &[Step],
        frame: &mut Frame,
        floats: &[&[f32]],
        mut on_step: Option<OnStep<'_>>,
    ) -> Result<()> {
        let Frame { registers, pool } = frame;
        for step in steps {
            let changed = step
                .changes
                .iter()
                .map(|id| std::mem::take(&mut registers[*id]));
            let changed: SmallVec<[Register; 3]> = changed.collect();
            let taken = step.adds_to.map(|id| std::mem::take(&mut registers[id]));
            pool.adds_to = match taken {
                Some(Register::Image(image)) => Some(image),
                _ => None,
            };
            over::lend(registers, &step.over, pool);
            let reading = Reading {
                registers,
                inputs: floats,
                level: self.level,
                halves: &self.halves,
            };
            pool.gives_result = step.gives_result;
            let start = on_step.is_some().then(Instant::now);
            let made = match changed.is_empty() {
                true => reading.step(step, pool)?,
                false => reading.changed(step, changed, pool)?,
            };
            if let (Some(on_step), Some(start)) = (&mut on_step, start) {
                on_step(StepRun {
                    step: &step.report,
                    time: start.elapsed(),
                    flops: reading.flops(step, &made),
                });
            }
            registers[step.out] = made;
            for id in &step.frees {
                registers[*id] = Register::Empty;
            }
        }
        Ok(())
    }
}

impl Reading<'_> {
    /// Runs a step that changes registers in place.
    fn changed(
        &self,
        step: &Step,
        changed: SmallVec<[Register; 3]>,
        pool: &mut Pool,
    ) -> Result<Register> {
        let Kernel::Plain(Kind::Update(rule)) = &step.kernel else {
            return Err(Error::msg("only updates change what they are given"));
        };
        let arrays = changed.into_iter().map(|register| match register {
            Register::Array(array) => Ok(array),
            _ => Err(Error::msg("a parameter is not there as an array")),
        });
        self.update(*rule, &step.inputs, arrays.collect::<Result<_>>()?, pool)
    }
}

/// The elements of an argument, which a run holds on to: of a copy where another run may append to them meanwhile.
fn dense(value: &Value) -> Result<Cow<'_, candle_core::Tensor>> {
    let tensor = value.downcast_ref::<Tensor>();
    let tensor = tensor.ok_or_else(|| Error::msg("an argument is no tensor"))?;
    let data = tensor.candle()?;
    Ok(match tensor.is_front() {
        true => Cow::Owned(data.copy().map_err(Error::other)?),
        false => Cow::Borrowed(data),
    })
}
