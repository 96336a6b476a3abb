//! `Program`: a module whose `forward` runs a list of steps, so that one text is eager code and a traced graph.
//!
//! Invariant: a step reads ids that earlier steps, or the body around it, have given.

use std::sync::Arc;

use fx_differential::{AnyIndex, Call};
use fx_nn::control;
use fx_nn::operator;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_nn::value::{IntoValue, Value};
use fx_nn::{Dims, Result};

use crate::probe::Probe;

/// A value of a program, by number.
pub type Id = usize;

/// Where a tensor of a call comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// An earlier value, as it is.
    Var(Id),
    /// The elements of an earlier value, so many times, cut to a shape and cast.
    Fit(Id, usize, Vec<usize>, DType),
    /// A tensor of the program.
    Constant(usize),
}

/// A whole number that a run decides.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// The program's input `k`.
    K,
    /// The number of iterations of the loop around this, so far.
    Counter,
    /// A size of a value, plus a number.
    Size(Id, i64, i64),
    /// A size of a value, out of its shape.
    Shape(Id, i64),
}

/// An end of a slice.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// Left out.
    Open,
    /// A number.
    At(i64),
    /// One that a run decides.
    Of(Number),
}

/// A part of an index.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// A position.
    Position(i64),
    /// A slice.
    Slice(End, End, i64),
    /// A new axis.
    NewAxis,
    /// `...`
    Ellipsis,
}

/// What a branch depends on.
#[derive(Debug, Clone, Copy)]
pub enum Test {
    /// Whether the mean of a tensor is above a number.
    Mean(Id, f64),
    /// A comparison of a whole number with another.
    Compare(Number, &'static str, i64),
    /// Whether two tensors are equal, or about equal.
    Alike(&'static str, Id, Id),
}

/// Steps of a side or of a loop.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// What the values that it is given are called inside.
    pub inputs: Vec<Id>,
    /// What it does.
    pub steps: Vec<Step>,
    /// What it gives.
    pub results: Vec<Id>,
}

/// A structure of tensors and plain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A tensor.
    Tensor,
    /// A number, or something else without items.
    Plain,
    /// Several values.
    Items(Vec<Shape>),
}

/// A step of a program.
#[derive(Debug, Clone)]
pub enum Step {
    /// A recorded call, with other tensors.
    Call {
        /// The call.
        call: Arc<Call>,
        /// Its tensors.
        from: Vec<Source>,
        /// The layer that it calls, if it does.
        layer: Option<usize>,
        /// What it gives.
        shape: Shape,
        /// The tensors of it.
        gives: Vec<Id>,
    },
    /// A tensor of the program: what is left of a step that a fault does not need.
    Constant(usize, Id),
    /// A part of a tensor.
    Index(Id, Vec<Part>, Id),
    /// `control::cond`.
    Cond(Test, Box<[Body; 2]>, Vec<Id>),
    /// `control::while_loop`, of as many iterations as the number says.
    While(Number, Vec<Id>, Box<Body>, Vec<Id>),
    /// `control::scan` over the first value.
    Scan(Id, Vec<Id>, Box<Body>, Vec<Id>),
}

impl Step {
    /// The values that it gives.
    pub fn gives(&self) -> &[Id] {
        match self {
            Step::Call { gives, .. } => gives,
            Step::Index(_, _, id) | Step::Constant(_, id) => std::slice::from_ref(id),
            Step::Cond(_, _, gives) | Step::While(_, _, _, gives) | Step::Scan(_, _, _, gives) => {
                gives
            }
        }
    }
}

/// How results are put together.
#[derive(Debug, Clone)]
pub enum Results {
    /// A tuple.
    Flat(Vec<Id>),
    /// A dict of the first, which has dims, and a list of the others beside its first size.
    Nested(Vec<Id>),
}

impl Results {
    /// The values.
    pub fn ids(&self) -> &[Id] {
        match self {
            Results::Flat(ids) | Results::Nested(ids) => ids,
        }
    }
}

/// A program of three tensors and a whole number.
#[derive(Module, Debug, Clone)]
pub struct Program {
    /// The layers that steps call.
    pub layers: Vec<Box<dyn Module>>,
    /// The tensors that steps name.
    pub constants: Vec<Tensor>,
    /// The steps.
    #[module(skip)]
    pub steps: Vec<Step>,
    /// The results.
    #[module(skip)]
    pub results: Results,
}

/// The values of a run, by id.
#[derive(Clone)]
pub struct Run {
    /// The values.
    pub values: Vec<Option<Tensor>>,
    k: Int,
    counter: Option<Int>,
    probe: Option<Probe>,
}

#[trace]
impl Program {
    fn forward(&self, a: &Tensor, b: &Tensor, c: &Tensor, k: Int) -> Result<Value> {
        let mut run = Run::new([a.clone(), b.clone(), c.clone()], k);
        run.steps(self, &self.steps)?;
        run.results(&self.results)
    }
}

impl Program {
    /// The steps, those of sides and of loops too.
    pub fn all_steps(&self) -> Vec<&Step> {
        let mut steps = Vec::new();
        flat(&self.steps, &mut steps);
        steps
    }
}

fn flat<'s>(steps: &'s [Step], out: &mut Vec<&'s Step>) {
    for step in steps {
        out.push(step);
        match step {
            Step::Cond(_, sides, _) => sides.iter().for_each(|side| flat(&side.steps, out)),
            Step::While(_, _, body, _) | Step::Scan(_, _, body, _) => flat(&body.steps, out),
            _ => {}
        }
    }
}

fn numbers_are(op: &str, a: Int, b: i64) -> Result<Bool> {
    match op {
        ">" => operator::gt.call_as((a, b)),
        "<" => operator::lt.call_as((a, b)),
        ">=" => operator::ge.call_as((a, b)),
        "<=" => operator::le.call_as((a, b)),
        "!=" => operator::ne.call_as((a, b)),
        _ => operator::eq.call_as((a, b)),
    }
}

/// The tensors of a result.
fn take(value: &Value, shape: &Shape, out: &mut Vec<Tensor>) -> Result<()> {
    match shape {
        Shape::Tensor => out.push(Tensor::from_value(value.clone())?),
        Shape::Plain => {}
        Shape::Items(shapes) => {
            for (at, shape) in shapes.iter().enumerate() {
                match value {
                    Value::List(items) | Value::Tuple(items) => {
                        let item = items.get(at);
                        let item = item.ok_or_else(|| Error::msg("another number of results"))?;
                        take(item, shape, out)?;
                    }
                    _ => {
                        let item: Value = operator::getitem.call_as((value.clone(), at as i64))?;
                        take(&item, shape, out)?;
                    }
                }
            }
        }
    }
    Ok(())
}

impl Run {
    /// A run on these inputs, whose ids are 0 to 2.
    pub fn new(inputs: [Tensor; 3], k: Int) -> Self {
        Run {
            values: inputs.into_iter().map(Some).collect(),
            k,
            counter: None,
            probe: None,
        }
    }

    /// The same with a probe.
    pub(crate) fn with(mut self, probe: Probe) -> Self {
        self.probe = Some(probe);
        self
    }

    /// The same with a counter, inside of a loop.
    pub fn counting(mut self) -> Self {
        self.counter = Some(Int::from(0));
        self
    }

    /// Whether it is inside of a loop that counts.
    pub fn is_counting(&self) -> bool {
        self.counter.is_some()
    }

    /// A value.
    ///
    /// # Errors
    /// Returns an error if no step has given it.
    pub fn value(&self, id: Id) -> Result<&Tensor> {
        let value = self.values.get(id).and_then(Option::as_ref);
        value.ok_or_else(|| Error::msg(format_args!("value {id} is not there")))
    }

    /// Sets a value.
    pub fn set(&mut self, id: Id, value: Tensor) {
        if self.values.len() <= id {
            self.values.resize(id + 1, None);
        }
        self.values[id] = Some(value);
    }

    fn tensors(&self, ids: &[Id]) -> Result<Vec<Tensor>> {
        ids.iter().map(|id| self.value(*id).cloned()).collect()
    }

    fn number(&self, number: Number) -> Result<Int> {
        match number {
            Number::K => Ok(self.k),
            Number::Counter => Ok(self.counter.unwrap_or(self.k)),
            Number::Size(id, dim, plus) => {
                let size = self.value(id)?.size(dim)?;
                if plus == 0 { Ok(size) } else { size + plus }
            }
            Number::Shape(id, dim) => self.value(id)?.shape()?.get(dim),
        }
    }

    fn source(&self, program: &Program, source: &Source) -> Result<Tensor> {
        match source {
            Source::Var(id) => self.value(*id).cloned(),
            Source::Constant(at) => Ok(program.constants[*at].clone()),
            Source::Fit(id, times, shape, dtype) => {
                let flat = ops::reshape(self.value(*id)?, [-1i64])?;
                let flat = match times {
                    0 | 1 => flat,
                    _ => ops::cat(&vec![flat; *times], 0)?,
                };
                let needed: usize = shape.iter().product();
                let cut = ops::narrow(&flat, 0, 0, needed)?;
                let dtype = self
                    .probe
                    .as_ref()
                    .map_or(*dtype, |probe| probe.cast(*dtype));
                ops::to_dtype(&ops::reshape(&cut, shape.clone())?, dtype)
            }
        }
    }

    /// Whether a number of a source is beyond a limit.
    pub(crate) fn reaches(&self, program: &Program, source: &Source, limit: f64) -> bool {
        let numbers = self.source(program, source).and_then(|x| x.to_vec());
        numbers.is_ok_and(|all| all.iter().any(|number| number.abs() > limit))
    }

    /// Runs steps.
    ///
    /// # Errors
    /// Returns an error if a step fails.
    pub fn steps(&mut self, program: &Program, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(program, step))
    }

    /// Runs one step.
    ///
    /// # Errors
    /// Returns an error if it fails.
    pub fn step(&mut self, program: &Program, step: &Step) -> Result<()> {
        let results = match step {
            Step::Call {
                call,
                from,
                layer,
                shape,
                ..
            } => {
                let value = self.call(program, call, from, *layer)?;
                let mut out = Vec::new();
                take(&value, shape, &mut out)?;
                if call.is_random() {
                    // What is drawn differs from path to path; that it is there, and its shape, do not.
                    let zeros = out.iter().map(|x| ops::zeros_like(x, None));
                    out = zeros.collect::<Result<_>>()?;
                }
                out
            }
            Step::Constant(at, _) => vec![program.constants[*at].clone()],
            Step::Index(of, parts, _) => {
                let parts = parts.iter().map(|part| self.part(part));
                let index = Value::Tuple(parts.collect::<Result<_>>()?);
                vec![self.value(*of)?.i(AnyIndex(index))?]
            }
            Step::Cond(test, sides, _) => self.branch(program, test, sides)?,
            Step::While(turns, carried, body, _) => {
                let turns = self.number(*turns)?;
                let init = (Int::from(0), self.tensors(carried)?);
                let (_, results) = control::while_loop(
                    init,
                    |(at, _)| operator::lt.call_as::<Bool>((*at, turns)),
                    |(at, values): (Int, Vec<Tensor>)| {
                        let values = self.body(program, body, values, Some(at))?;
                        Ok(((at + 1)?, values))
                    },
                )?;
                results
            }
            Step::Scan(over, carried, body, _) => {
                let init = self.tensors(carried)?;
                let xs = self.value(*over)?.clone();
                let (mut last, all) = control::scan(init, xs, |state: Vec<Tensor>, x: Tensor| {
                    let mut inputs = state;
                    inputs.push(x);
                    let mut results = self.body(program, body, inputs, None)?;
                    let y = results
                        .pop()
                        .ok_or_else(|| Error::msg("a step gives something"))?;
                    Ok((results, y))
                })?;
                last.push(all);
                last
            }
        };
        for (id, value) in step.gives().iter().zip(results) {
            let value = match &self.probe {
                Some(probe) => probe.result(step, value)?,
                None => value,
            };
            self.set(*id, value);
        }
        Ok(())
    }

    /// What a call gives.
    ///
    /// # Errors
    /// Returns an error if it is refused.
    pub fn call(
        &self,
        program: &Program,
        call: &Call,
        from: &[Source],
        layer: Option<usize>,
    ) -> Result<Value> {
        let tensors = from.iter().map(|of| self.source(program, of));
        let mut tensors: Vec<Tensor> = tensors.collect::<Result<_>>()?;
        if let Some(probe) = &self.probe {
            tensors = probe.given(call, tensors)?;
        }
        let value = match layer {
            Some(at) => {
                let args = fx_differential::layer_arguments(call, &tensors)?;
                let args = CallArgs {
                    args,
                    kwargs: Vec::new(),
                };
                program.layers[at].forward(args)
            }
            None => fx_differential::run_call(call, &tensors),
        };
        match &self.probe {
            Some(probe) => probe.called(call, &tensors, value?),
            None => value,
        }
    }

    fn part(&self, part: &Part) -> Result<Value> {
        let end = |end: &End| {
            Ok::<_, Error>(match end {
                End::Open => Value::None,
                End::At(n) => Value::Int(*n),
                End::Of(number) => self.number(*number)?.into_value(),
            })
        };
        Ok(match part {
            Part::Position(n) => Value::Int(*n),
            Part::NewAxis => Value::None,
            Part::Ellipsis => Value::Ellipsis,
            Part::Slice(start, stop, step) => {
                let step = if *step == 1 {
                    Value::None
                } else {
                    Value::Int(*step)
                };
                Value::Slice(Box::new([end(start)?, end(stop)?, step]))
            }
        })
    }

    fn branch(
        &self,
        program: &Program,
        test: &Test,
        [then, otherwise]: &[Body; 2],
    ) -> Result<Vec<Tensor>> {
        let then = || self.body(program, then, Vec::new(), self.counter);
        let otherwise = || self.body(program, otherwise, Vec::new(), self.counter);
        match test {
            Test::Mean(id, least) => {
                let x = ops::to_dtype(self.value(*id)?, DType::F32)?;
                let above = ops::mean(&x, Dims::All, false)?.gt(*least)?;
                control::cond(above, then, otherwise)
            }
            Test::Alike(name, a, b) => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                let alike = match *name {
                    "equal" => ops::equal(a, b)?,
                    _ => ops::allclose(a, b, 1e-5, 1e-8, true)?,
                };
                control::cond(alike, then, otherwise)
            }
            Test::Compare(number, op, other) => {
                let holds = numbers_are(op, self.number(*number)?, *other)?;
                control::cond(holds, then, otherwise)
            }
        }
    }

    fn body(
        &self,
        program: &Program,
        body: &Body,
        inputs: Vec<Tensor>,
        counter: Option<Int>,
    ) -> Result<Vec<Tensor>> {
        let mut run = self.clone();
        run.counter = counter;
        for (id, input) in body.inputs.iter().zip(inputs) {
            run.set(*id, input);
        }
        run.steps(program, &body.steps)?;
        run.tensors(&body.results)
    }

    /// The results in their structure.
    ///
    /// # Errors
    /// Returns an error if one is not there.
    pub fn results(&self, results: &Results) -> Result<Value> {
        let values = |ids: &[Id]| -> Result<Vec<Value>> {
            ids.iter()
                .map(|id| self.value(*id).map(|x| x.clone().into_value()))
                .collect()
        };
        Ok(match results {
            Results::Flat(ids) => Value::Tuple(values(ids)?.into()),
            Results::Nested(ids) => {
                let (first, rest) = ids.split_at(1);
                let first = values(first)?.remove(0);
                let size = self.value(ids[0])?.size(0)?.into_value();
                let dict = [("first".into(), first)].into_iter().collect();
                Value::Tuple(
                    vec![
                        Value::Dict(Box::new(dict)),
                        Value::List(values(rest)?.into()),
                        size,
                    ]
                    .into(),
                )
            }
        })
    }
}

/// The ids that a step reads, those of its bodies too.
pub fn reads(step: &Step, out: &mut Vec<Id>) {
    let number = |number: &Number, out: &mut Vec<Id>| {
        if let Number::Size(id, ..) | Number::Shape(id, _) = number {
            out.push(*id);
        }
    };
    let body = |body: &Body, out: &mut Vec<Id>| {
        body.steps.iter().for_each(|step| reads(step, out));
        out.extend(&body.results);
    };
    match step {
        Step::Constant(..) => {}
        Step::Call { from, .. } => {
            for source in from {
                if let Source::Var(id) | Source::Fit(id, ..) = source {
                    out.push(*id);
                }
            }
        }
        Step::Index(of, parts, _) => {
            out.push(*of);
            for part in parts {
                if let Part::Slice(start, stop, _) = part {
                    for end in [start, stop] {
                        if let End::Of(of) = end {
                            number(of, out);
                        }
                    }
                }
            }
        }
        Step::Cond(test, sides, _) => {
            match test {
                Test::Mean(id, _) => out.push(*id),
                Test::Alike(_, a, b) => out.extend([*a, *b]),
                Test::Compare(of, ..) => number(of, out),
            }
            sides.iter().for_each(|side| body(side, out));
        }
        Step::While(turns, carried, inner, _) => {
            number(turns, out);
            out.extend(carried);
            body(inner, out);
        }
        Step::Scan(over, carried, inner, _) => {
            out.push(*over);
            out.extend(carried);
            body(inner, out);
        }
    }
}
