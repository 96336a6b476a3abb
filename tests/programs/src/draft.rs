//! `Draft`: a program that grows, with a run of it on each of its bindings.
//!
//! Invariant: a step is taken only if every run of it gives the same structure.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fx_differential::Call;
use fx_nn::prelude::*;
use fx_nn::value::Value;
use fx_nn::{Error, Result};

use crate::compare::tensors;
use crate::program::{Id, Program, Results, Run, Shape, Source, Step};

/// More elements than this make a program slow, and show nothing more.
pub(crate) const LARGEST: usize = 600;

/// Numbers beyond these are no inputs: what a gate holds back is 0 in one engine and a small part of it in another one,
/// and the square of a number is infinite on the way of a norm, or is not.
const LARGEST_OF: [(&str, f64); 4] = [
    ("gru", 1e4),
    ("lstm", 1e4),
    ("norm", 1e15),
    ("transformer", 1e15),
];

/// A program that grows, with its runs.
pub(crate) struct Draft {
    pub(crate) program: Program,
    pub(crate) layers: Vec<Arc<Call>>,
    pub(crate) runs: Vec<Run>,
    pub(crate) next: Id,
    pub(crate) named: bool,
    /// Whether `bfloat16` may stand in it, which other engines lack.
    pub(crate) bf16: bool,
    pub(crate) depth: usize,
}

/// Whether a tensor has NaN, or a number below all others.
fn has_limit(x: Tensor) -> bool {
    let is_limit = |number: &f64| number.is_nan() || *number == f64::NEG_INFINITY;
    x.to_vec().is_ok_and(|all| all.iter().any(is_limit))
}

fn quiet<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err(Error::msg("a panic")))
}

pub(crate) fn elements(x: &Tensor) -> usize {
    x.dims().map_or(0, |dims| dims.iter().product())
}

/// The structure of a result, and the ids of its tensors.
fn structure(value: &Value, next: &mut Id, gives: &mut Vec<Id>) -> Shape {
    match value {
        Value::List(items) | Value::Tuple(items) => Shape::Items(
            items
                .iter()
                .map(|item| structure(item, next, gives))
                .collect(),
        ),
        value if value.downcast_ref::<Tensor>().is_some() => {
            gives.push(*next);
            *next += 1;
            Shape::Tensor
        }
        _ => Shape::Plain,
    }
}

/// Where a draft can come back to.
pub(crate) struct Mark {
    runs: Vec<Run>,
    known: usize,
}

impl Draft {
    pub(crate) fn new(bindings: &[([Tensor; 3], i64)], named: bool) -> Self {
        let program = Program {
            layers: Vec::new(),
            constants: Vec::new(),
            steps: Vec::new(),
            results: Results::Flat(Vec::new()),
        };
        let runs = bindings
            .iter()
            .map(|(inputs, k)| Run::new(inputs.clone(), Int::from(*k)));
        Draft {
            runs: runs.collect(),
            layers: Vec::new(),
            program,
            next: 3,
            named,
            bf16: false,
            depth: 0,
        }
    }

    pub(crate) fn ids(&self) -> Vec<Id> {
        let values = &self.runs[0].values;
        (0..values.len())
            .filter(|id| values[*id].is_some())
            .collect()
    }

    pub(crate) fn first(&self, id: Id) -> Option<&Tensor> {
        self.runs[0].values.get(id).and_then(Option::as_ref)
    }

    pub(crate) fn dtype(&self, id: Id) -> Option<DType> {
        self.first(id)?.dtype().ok()
    }

    pub(crate) fn elements(&self, id: Id) -> usize {
        self.first(id).map_or(0, elements)
    }

    /// Whether a value has elements on every binding.
    pub(crate) fn has_elements(&self, id: Id) -> bool {
        self.runs
            .iter()
            .all(|run| run.value(id).is_ok_and(|x| elements(x) > 0))
    }

    pub(crate) fn fit(&self, id: Id, shape: Vec<usize>, dtype: DType) -> Source {
        let needed: usize = shape.iter().product();
        Source::Fit(id, needed.div_ceil(self.elements(id).max(1)), shape, dtype)
    }

    pub(crate) fn rank(&self, id: Id) -> usize {
        self.first(id)
            .and_then(|x| x.dims().ok())
            .map_or(0, <[usize]>::len)
    }

    /// The least size of a dim on any binding.
    pub(crate) fn size(&self, id: Id, dim: usize) -> usize {
        let sizes = self.runs.iter().filter_map(|run| {
            let value = run.values.get(id)?.as_ref()?;
            value.dims().ok()?.get(dim).copied()
        });
        sizes.min().unwrap_or(0)
    }

    pub(crate) fn is_counting(&self) -> bool {
        self.runs[0].is_counting()
    }

    pub(crate) fn count(&mut self) {
        self.runs = self.runs.drain(..).map(Run::counting).collect();
    }

    /// Shapes on every binding, and element types, by id.
    pub(crate) fn kinds(&self) -> HashMap<Id, (Vec<Vec<usize>>, DType)> {
        let kind = |id: Id| {
            let shapes = self.runs.iter().map(|run| {
                let value = run.values.get(id)?.as_ref()?;
                value.dims().ok().map(<[usize]>::to_vec)
            });
            Some((id, (shapes.collect::<Option<_>>()?, self.dtype(id)?)))
        };
        self.ids().into_iter().filter_map(kind).collect()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            runs: self.runs.clone(),
            known: self.next,
        }
    }

    pub(crate) fn back(&mut self, mark: &Mark) {
        self.runs.clone_from(&mark.runs);
    }

    pub(crate) fn given_since(&self, mark: &Mark) -> Vec<Id> {
        self.ids()
            .into_iter()
            .filter(|id| *id >= mark.known)
            .collect()
    }

    pub(crate) fn fresh(&mut self) -> Id {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn copied(&mut self, id: Id) -> Id {
        let new = self.fresh();
        for run in &mut self.runs {
            if let Some(Some(value)) = run.values.get(id).cloned() {
                run.set(new, value);
            }
        }
        new
    }

    pub(crate) fn first_of(&mut self, id: Id) -> Option<Id> {
        let new = self.fresh();
        for run in &mut self.runs {
            let item = run.value(id).and_then(|x| ops::select(x, 0, 0)).ok()?;
            run.set(new, item);
        }
        Some(new)
    }

    pub(crate) fn is_refused(&self, step: &Step) -> bool {
        self.runs.iter().all(|run| {
            let Step::Call {
                call, from, layer, ..
            } = step
            else {
                return false;
            };
            let made = || run.call(&self.program, call, from, *layer);
            matches!(catch_unwind(AssertUnwindSafe(made)), Ok(Err(_)))
        })
    }

    /// Runs a step on every binding, and keeps it if all give the same structure.
    pub(crate) fn tried(&mut self, mut step: Step) -> Option<Step> {
        let next = self.next;
        if let Step::Call {
            call, from, layer, ..
        } = &step
        {
            let run = self.runs[0].clone();
            let value = quiet(|| run.call(&self.program, call, from, *layer)).ok()?;
            let name = call.name.to_lowercase();
            let mut limits = LARGEST_OF.iter().filter(|(part, _)| name.contains(part));
            let exceeds = |limit: f64| from.iter().any(|of| run.reaches(&self.program, of, limit));
            if limits.any(|(_, limit)| exceeds(*limit)) {
                return None;
            }
            if name.contains("maxpool") || name.contains("max_pool") {
                // A window of padding alone has a place that is none, and one with NaN has several.
                let has_places = tensors(&value).len() > 1;
                if has_places && tensors(&value).into_iter().any(has_limit) {
                    return None;
                }
            }
            let (mut ids, mut id) = (Vec::new(), next);
            let found = structure(&value, &mut id, &mut ids);
            if ids.is_empty() || ids.len() > 6 {
                return None;
            }
            self.next = id;
            if let Step::Call { shape, gives, .. } = &mut step {
                (*shape, *gives) = (found, ids);
            }
        } else {
            self.next = step
                .gives()
                .iter()
                .max()
                .map_or(next, |id| id + 1)
                .max(next);
        }
        let mut values = Vec::new();
        for run in &self.runs {
            let mut run = run.clone();
            if quiet(|| run.step(&self.program, &step)).is_err() {
                self.next = next;
                return None;
            }
            values.push(run.values.clone());
        }
        let too_large = |id: &Id| {
            values
                .iter()
                .any(|all| all[*id].as_ref().is_none_or(|x| elements(x) > LARGEST))
        };
        if step.gives().iter().any(too_large) {
            self.next = next;
            return None;
        }
        for (run, values) in self.runs.iter_mut().zip(values) {
            run.values = values;
        }
        Some(step)
    }
}
