//! A counterexample made small: fewer elements, simpler numbers.
//!
//! Invariant: what is returned is still a counterexample.

use std::time::Duration;

use fx_core::Result;
use fx_core::value::{DType, Value};
use web_time::Instant;

use super::case::{Trial, Verdict, Wrong};
use super::close::{leaves, map_tensors};
use super::draw::made;
use super::rewrite::Instance;
use crate::ops;
use crate::tensor::Tensor;

/// How long a counterexample is made smaller.
const LONGEST: Duration = Duration::from_millis(400);

struct Search<'t, 'r> {
    trial: &'t Trial<'r>,
    best: Instance,
    wrong: Wrong,
    until: Instant,
}

/// The smallest counterexample that is found, and how it is wrong.
pub(super) fn shrink(trial: &Trial<'_>, instance: Instance, wrong: Wrong) -> (Instance, Wrong) {
    let mut search = Search {
        trial,
        best: instance,
        wrong,
        until: Instant::now() + LONGEST,
    };
    // What cannot be made smaller stays as it is.
    let _ = search.run();
    (search.best, search.wrong)
}

impl Search<'_, '_> {
    fn run(&mut self) -> Result<()> {
        while self.smaller()? {}
        for with_truths in [true, false] {
            let wide = self.tensors().into_iter().map(|x| match x.dtype()? {
                DType::Bool if !with_truths => Ok(x),
                _ => x.to_dtype(DType::F64),
            });
            let wide = wide.collect::<Result<Vec<_>>>()?;
            if self.keep(&wide)? {
                break;
            }
        }
        for at in 0..self.tensors().len() {
            self.simpler(at)?;
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<Tensor> {
        leaves(&Value::List(self.best.inputs.clone().into())).0
    }

    /// Keeps the tensors if they are a counterexample.
    fn keep(&mut self, tensors: &[Tensor]) -> Result<bool> {
        if Instant::now() > self.until {
            return Ok(false);
        }
        let mut at = 0;
        let inputs = self.best.inputs.iter().map(|value| {
            map_tensors(value, &mut |_| {
                at += 1;
                Ok(tensors[at - 1].clone())
            })
        });
        let inputs = inputs.collect::<Result<Vec<Value>>>()?;
        let other = self.best.with_inputs(inputs);
        match self.trial.judge(&other)? {
            Verdict::Wrong(wrong) if wrong.gradient == self.wrong.gradient => {
                self.best = other;
                self.wrong = wrong;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Shortens all dims of one size, or takes the first dim away.
    fn smaller(&mut self) -> Result<bool> {
        let tensors = self.tensors();
        let mut sizes: Vec<usize> = Vec::new();
        for x in &tensors {
            sizes.extend(x.dims()?);
        }
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes.into_iter().rev().filter(|size| *size > 1) {
            for (start, len) in [
                (0, 1),
                (size - 1, 1),
                (size / 2, 1),
                (0, size / 2),
                (0, size - 1),
            ] {
                let cut = tensors.iter().map(|x| {
                    let mut x = x.clone();
                    for (dim, _) in x
                        .dims()?
                        .to_vec()
                        .iter()
                        .enumerate()
                        .filter(|(_, n)| **n == size)
                    {
                        x = ops::narrow(&x, dim as i64, start as i64, len as i64)?;
                    }
                    fresh(&x)
                });
                let Ok(cut) = cut.collect::<Result<Vec<_>>>() else {
                    continue;
                };
                if len < size && self.keep(&cut)? {
                    return Ok(true);
                }
            }
        }
        let flat = tensors.iter().map(|x| match x.dims()? {
            [1, rest @ ..] => made(x.to_vec()?, rest, x.dtype()?),
            _ => Ok(x.clone()),
        });
        let flat = flat.collect::<Result<Vec<_>>>()?;
        let ranks = |all: &[Tensor]| {
            all.iter()
                .filter_map(|x| Some(x.dims().ok()?.len()))
                .sum::<usize>()
        };
        Ok(ranks(&flat) < ranks(&tensors) && self.keep(&flat)?)
    }

    /// Simpler numbers in one tensor: the same one everywhere, else element by element.
    fn simpler(&mut self, at: usize) -> Result<()> {
        let with = |search: &Self, numbers: Vec<f64>| -> Result<Vec<Tensor>> {
            let mut tensors = search.tensors();
            let x = &tensors[at];
            tensors[at] = made(numbers, x.dims()?, x.dtype()?)?;
            Ok(tensors)
        };
        let x = &self.tensors()[at];
        if x.dtype()? == DType::Bool || x.candle()?.elem_count() == 0 {
            return Ok(());
        }
        let numbers = x.to_vec()?;
        for number in [0.0, 1.0, 2.0, -1.0] {
            let tensors = with(self, vec![number; numbers.len()])?;
            if self.keep(&tensors)? {
                return Ok(());
            }
        }
        let whole = numbers.iter().map(|x| x.round()).collect();
        let tensors = with(self, whole)?;
        self.keep(&tensors)?;
        for element in 0..numbers.len().min(24) {
            let now = self.tensors()[at].to_vec()?;
            let x = now[element];
            for number in [0.0, 1.0, -1.0, 2.0, x.round(), (x * 10.0).round() / 10.0] {
                if number.to_bits() == x.to_bits() {
                    break;
                }
                let mut numbers = now.clone();
                numbers[element] = number;
                let tensors = with(self, numbers)?;
                if self.keep(&tensors)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The same numbers, in a storage of their own.
fn fresh(x: &Tensor) -> Result<Tensor> {
    made(x.to_vec()?, x.dims()?, x.dtype()?)
}
