//! Generating programs: each step is run, on every binding of the program's sizes, before it is taken.
//!
//! Invariant: a program runs eagerly on each of its bindings, unless it says that it is refused.

use std::sync::Arc;

use fx_differential::{Call, Kind};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::calls::{Calls, NOT_IN_ONNX, NOT_IN_STABLEHLO, is_bf16, plain};
use crate::draft::{Draft, LARGEST, elements};
use crate::program::{
    Body, End, Id, Number, Part, Program, Results, Shape, Source, Step, Test, reads,
};

/// The bindings of the named size `n`.
const SIZES: [usize; 3] = [3, 2, 5];

/// The arguments of a run: three tensors and a whole number.
pub type Binding = ([Tensor; 3], i64);

/// A program with what it is run on.
#[derive(Clone)]
pub struct Case {
    /// Its number.
    pub seed: u64,
    /// The program.
    pub program: Program,
    /// What its layers are made from.
    pub layers: Vec<Arc<Call>>,
    /// What it takes, sizes by name.
    pub specs: Vec<Spec>,
    /// Its arguments, once for each binding of its sizes.
    pub bindings: Vec<Binding>,
    /// Whether a size has a name.
    pub named: bool,
    /// Whether `bfloat16` may stand in it.
    pub bf16: bool,
    /// Whether the last step is one that eager code refuses.
    pub refused: bool,
}

/// What makes programs, each from its number alone.
pub struct Generator<'c> {
    calls: &'c Calls,
    turn: usize,
    /// Whether the program keeps to what other formats have.
    written: bool,
    random: StdRng,
}

impl Case {
    /// The program as it is before its first run: its layers are made anew, for one that is trained changes.
    ///
    /// # Errors
    /// Returns an error if a layer cannot be made.
    pub fn fresh(&self) -> Result<Program> {
        let mut program = self.program.clone();
        let made = self
            .layers
            .iter()
            .map(|call| fx_differential::make_layer(call));
        program.layers = made.collect::<Result<_>>()?;
        Ok(program)
    }

    /// A program of one call, on tensors of its own, of which the first three are inputs.
    ///
    /// # Errors
    /// Returns an error if eager code refuses the call.
    pub fn of_call(call: Call, tensors: &[Tensor]) -> Result<Self> {
        let none = || Tensor::from_vec(vec![0f32], ());
        let input = |at: usize| tensors.get(at).cloned().map_or_else(none, Ok);
        let inputs = [input(0)?, input(1)?, input(2)?];
        let specs = inputs.iter().map(Spec::of).chain([Spec::int("k")]);
        let specs = specs.collect();
        let bindings = vec![(inputs, 1)];
        let mut draft = Draft::new(&bindings, false);
        draft.program.constants = tensors.get(3..).unwrap_or_default().to_vec();
        let source = |at: usize| match at.checked_sub(3) {
            Some(constant) => Source::Constant(constant),
            None => Source::Var(at),
        };
        let (name, call) = (call.name.clone(), Arc::new(call));
        let mut layers = Vec::new();
        if call.kind == Kind::Layer {
            draft
                .program
                .layers
                .push(fx_differential::make_layer(&call)?);
            layers.push(call.clone());
        }
        let step = draft.tried(Step::Call {
            call,
            from: (0..tensors.len()).map(source).collect(),
            layer: layers.first().map(|_| 0),
            shape: Shape::Plain,
            gives: Vec::new(),
        });
        let step = step.ok_or_else(|| Error::msg(format_args!("eager code refuses `{name}`")))?;
        draft.program.results = Results::Flat(step.gives().to_vec());
        draft.program.steps.push(step);
        let mut dtypes = draft.ids().into_iter().map(|id| draft.dtype(id));
        let bf16 = dtypes.any(|dtype| dtype == Some(DType::BF16));
        Ok(Case {
            seed: 0,
            program: draft.program,
            layers,
            specs,
            bindings,
            named: false,
            bf16,
            refused: false,
        })
    }

    /// Whether a half type stands in it.
    pub(crate) fn has_halves(&self) -> bool {
        let is_half = |dtype: DType| matches!(dtype, DType::F16 | DType::BF16);
        let given = self.bindings[0].0.iter().chain(&self.program.constants);
        let mut dtypes = given.filter_map(|x| x.dtype().ok());
        let fits = |step: &&Step| match step {
            Step::Call { from, .. } => from
                .iter()
                .any(|of| matches!(of, Source::Fit(_, _, _, dtype) if is_half(*dtype))),
            _ => false,
        };
        dtypes.any(is_half) || self.program.all_steps().iter().any(fits)
    }
}

/// Whether a function takes a tensor to be sorted.
fn is_sorted(call: &Call, at: usize) -> bool {
    matches!((&*call.name, at), ("bucketize", 1) | ("searchsorted", 0))
}

impl<'c> Generator<'c> {
    /// A generator of these calls.
    pub fn new(calls: &'c Calls) -> Self {
        Generator {
            turn: 0,
            written: false,
            calls,
            random: StdRng::seed_from_u64(0),
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.random.random_bool(share)
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of.choose(&mut self.random)
            .expect("lists of the generator have items")
            .clone()
    }

    /// A program.
    ///
    /// # Errors
    /// Returns an error if its inputs cannot be made.
    pub fn case(&mut self, seed: u64) -> Result<Case> {
        self.random = StdRng::seed_from_u64(seed);
        self.turn = usize::try_from(seed.wrapping_mul(13) >> 1).unwrap_or(0);
        let named = self.chance(0.35);
        let (specs, bindings) = self.inputs(named)?;
        let mut draft = Draft::new(&bindings, named);
        draft.bf16 = self.chance(0.25);
        self.written = !draft.bf16 && self.chance(0.7);
        let length = self.random.random_range(11..19);
        let mut tries = 0;
        while draft.program.steps.len() < length && tries < 6 * length {
            tries += 1;
            if let Some(step) = self.step(&mut draft) {
                draft.program.steps.push(step);
            }
        }
        let refused = self.chance(0.04) && self.refused(&mut draft);
        let results = self.results(&draft, refused);
        draft.program.results = results;
        Ok(Case {
            seed,
            layers: draft.layers,
            program: draft.program,
            specs,
            bindings,
            named,
            bf16: draft.bf16,
            refused,
        })
    }

    fn numbers(&mut self, count: usize) -> Vec<f64> {
        let special = self.chance(0.15);
        let mut number = || {
            let x: f64 = self.random.random_range(-3.0..3.0);
            match self.random.random_range(0..12) {
                0 if special => f64::INFINITY,
                1 if special => f64::NEG_INFINITY,
                2 if special => f64::NAN,
                3 => 0.0,
                4 if special => -0.0,
                5 => x.round(),
                _ => x,
            }
        };
        (0..count).map(|_| number()).collect()
    }

    fn inputs(&mut self, named: bool) -> Result<(Vec<Spec>, Vec<Binding>)> {
        // 0 stands for the named size.
        let shapes: &[&[usize]] = if named {
            &[
                &[0, 4],
                &[0, 3, 4],
                &[2, 0],
                &[0],
                &[0, 0],
                &[1, 0, 4],
                &[0, 2, 6, 6],
            ]
        } else {
            &[
                &[3, 4],
                &[2, 3, 4],
                &[4],
                &[1, 4],
                &[],
                &[2, 3, 6, 6],
                &[2, 4, 8],
                &[3, 3],
                &[1, 1],
                &[3, 1],
            ]
        };
        let mut of = Vec::new();
        for at in 0..3 {
            let shape = if named && at == 0 {
                self.pick(shapes)
            } else if named && self.chance(0.4) {
                self.pick(&[&[4][..], &[3, 4], &[1, 4], &[2, 3]])
            } else {
                self.pick(shapes)
            };
            let dtypes = [
                DType::F32,
                DType::F32,
                DType::F32,
                DType::F32,
                DType::F32,
                DType::F64,
                DType::F16,
                DType::I64,
                DType::Bool,
            ];
            of.push((
                shape,
                if at == 0 {
                    DType::F32
                } else {
                    self.pick(&dtypes)
                },
            ));
        }
        let mut specs: Vec<Spec> = of
            .iter()
            .map(|(shape, dtype)| {
                let size = |size: &usize| match size {
                    0 => Dim::symbol("n"),
                    n => Ok(Dim::from(*n)),
                };
                let sizes = shape.iter().map(size).collect::<Result<Vec<_>>>()?;
                Ok(Spec::tensor(sizes, *dtype))
            })
            .collect::<Result<_>>()?;
        specs.push(Spec::int("k").constrained("k >= 0"));
        let sizes: &[usize] = if named { &SIZES } else { &SIZES[..1] };
        let mut bindings = Vec::new();
        for n in sizes {
            let mut tensors = Vec::new();
            for (shape, dtype) in &of {
                let shape: Vec<usize> = shape
                    .iter()
                    .map(|s| if *s == 0 { *n } else { *s })
                    .collect();
                let mut numbers = self.numbers(shape.iter().product());
                if !dtype.is_floating_point() {
                    let whole = |x: &f64| if x.is_finite() { x.round() } else { 7.0 };
                    numbers = numbers.iter().map(whole).collect();
                }
                tensors.push(Tensor::from_vec(numbers, shape)?.to_dtype(*dtype)?);
            }
            let tensors = tensors.try_into().map_err(|_| Error::msg("three inputs"))?;
            bindings.push((tensors, self.random.random_range(0..4)));
        }
        Ok((specs, bindings))
    }

    fn step(&mut self, draft: &mut Draft) -> Option<Step> {
        let kind = self.random.random_range(0..100);
        match kind {
            0..66 => self.call(draft),
            66..78 => self.index(draft),
            78..86 if draft.depth < 2 => self.cond(draft),
            86..94 if draft.depth < 2 => self.looped(draft),
            94..100 if draft.depth < 2 => self.scan(draft),
            _ => self.call(draft),
        }
    }

    /// The place of the next name: mostly in turns, so that each comes as often as another.
    fn name(&mut self) -> usize {
        let count = self.calls.by_name.len();
        loop {
            self.turn = self.turn.wrapping_add(1);
            let at = if self.chance(0.7) {
                self.turn % count
            } else {
                self.random.random_range(0..count)
            };
            let name = plain(&self.calls.by_name[at].0);
            let is_lacking = NOT_IN_ONNX.contains(&name) || NOT_IN_STABLEHLO.contains(&name);
            if !self.written || !is_lacking {
                return at;
            }
        }
    }

    fn call(&mut self, draft: &mut Draft) -> Option<Step> {
        let at = self.name();
        let (_, all) = &self.calls.by_name[at];
        for attempt in 0..5 {
            let call = self.pick(all);
            let stored = call.tensors().ok()?;
            if stored.iter().any(|x| elements(x) > LARGEST) || (!draft.bf16 && is_bf16(&call)) {
                continue;
            }
            let constants = draft.program.constants.len();
            let from = self.sources(draft, &call, &stored, attempt)?;
            let layer = if call.kind == Kind::Layer {
                draft
                    .program
                    .layers
                    .push(fx_differential::make_layer(&call).ok()?);
                draft.layers.push(call.clone());
                Some(draft.program.layers.len() - 1)
            } else {
                None
            };
            let id = draft.next;
            let step = Step::Call {
                call,
                from,
                layer,
                shape: Shape::Plain,
                gives: Vec::new(),
            };
            if let Some(step) = draft.tried(step) {
                return Some(step);
            }
            draft.next = id;
            draft.program.constants.truncate(constants);
            if layer.is_some() {
                draft.program.layers.pop();
                draft.layers.pop();
            }
        }
        None
    }

    fn sources(
        &mut self,
        draft: &mut Draft,
        call: &Call,
        stored: &[Tensor],
        attempt: usize,
    ) -> Option<Vec<Source>> {
        let ids = draft.ids();
        // One tensor at least comes from the program; the last attempt keeps the others as they were.
        let fresh = if stored.is_empty() {
            0
        } else {
            self.random.random_range(0..stored.len())
        };
        let mut from = Vec::new();
        for (at, like) in stored.iter().enumerate() {
            let dtype = like.dtype().ok()?;
            let dims = like.dims().ok()?.to_vec();
            let same: Vec<Id> = ids
                .iter()
                .copied()
                .filter(|id| draft.dtype(*id) == Some(dtype))
                .collect();
            let keep = is_sorted(call, at)
                || attempt == 4
                || (attempt > 0 && at != fresh && self.chance(0.5));
            let source = if keep || ids.is_empty() {
                None
            } else if !same.is_empty() && (attempt < 2 || draft.named) && self.chance(0.8) {
                Some(Source::Var(self.pick(&same)))
            } else if !draft.named && dtype.is_floating_point() && !dims.contains(&0) {
                let id = self.pick(&ids);
                let known = draft.dtype(id)?;
                let fits = draft.elements(id) > 0 && known != DType::F64;
                fits.then(|| draft.fit(id, dims, dtype))
            } else if !same.is_empty() && !draft.named && !dims.contains(&0) {
                let id = self.pick(&same);
                (draft.elements(id) > 0).then(|| draft.fit(id, dims, dtype))
            } else {
                None
            };
            from.push(match source {
                Some(source) => source,
                None => {
                    draft.program.constants.push(like.clone());
                    Source::Constant(draft.program.constants.len() - 1)
                }
            });
        }
        Some(from)
    }

    fn index(&mut self, draft: &mut Draft) -> Option<Step> {
        let ids: Vec<Id> = draft
            .ids()
            .into_iter()
            .filter(|id| draft.rank(*id) > 0)
            .collect();
        if ids.is_empty() {
            return None;
        }
        for _ in 0..4 {
            let of = self.pick(&ids);
            let rank = draft.rank(of);
            let parts = self.parts(draft, of, rank);
            let id = draft.next;
            if let Some(step) = draft.tried(Step::Index(of, parts, id)) {
                return Some(step);
            }
            draft.next = id;
        }
        None
    }

    fn parts(&mut self, draft: &Draft, of: Id, rank: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut dim = 0;
        let mut open = true;
        while dim < rank {
            let size = draft.size(of, dim) as i64;
            match self.random.random_range(0..10) {
                0 | 1 if size > 0 => {
                    parts.push(Part::Position(self.random.random_range(-size..size)))
                }
                2 => {
                    parts.push(Part::NewAxis);
                    continue;
                }
                3 | 4 if open => {
                    parts.push(Part::Ellipsis);
                    open = false;
                    let rest = self.random.random_range(0..=(rank - dim));
                    dim += rest;
                    continue;
                }
                5 => parts.push(Part::Slice(End::Open, End::Open, 1)),
                6 => {
                    let back = -self.random.random_range(0..2);
                    parts.push(Part::Slice(
                        End::Open,
                        End::Of(match back == 0 && self.chance(0.3) {
                            true => Number::Shape(of, dim as i64),
                            false => Number::Size(of, dim as i64, back),
                        }),
                        1,
                    ));
                }
                7 => break,
                _ => {
                    let mut end = |low: i64| match self.random.random_range(0..3) {
                        0 => End::Open,
                        _ => End::At(self.random.random_range(low..=size.max(1))),
                    };
                    let (start, stop) = (end(-size), end(-size));
                    let step = self.pick(&[1, 1, 1, 2, 3]);
                    parts.push(Part::Slice(start, stop, step));
                }
            }
            dim += 1;
        }
        if parts.is_empty() {
            parts.push(Part::Ellipsis);
        }
        parts
    }

    fn condition(&mut self, draft: &Draft) -> Option<Test> {
        let compare = self.chance(0.5);
        if compare {
            let op = self.pick(&[">", "<", ">=", "<=", "==", "!="]);
            let number = if draft.is_counting() && self.chance(0.6) {
                Number::Counter
            } else {
                Number::K
            };
            return Some(Test::Compare(number, op, self.random.random_range(-1..4)));
        }
        let ids: Vec<Id> = draft
            .ids()
            .into_iter()
            .filter(|id| draft.has_elements(*id))
            .collect();
        if ids.is_empty() {
            return None;
        }
        if self.chance(0.3) {
            let kinds = draft.kinds();
            let one = self.pick(&ids);
            let alike = ids
                .into_iter()
                .filter(|id| kinds.get(id) == kinds.get(&one));
            let other = self.pick(&alike.collect::<Vec<Id>>());
            return Some(Test::Alike(self.pick(&["equal", "allclose"]), one, other));
        }
        Some(Test::Mean(
            self.pick(&ids),
            self.pick(&[0.0, 0.5, -0.5, 1.0]),
        ))
    }

    /// One to three steps, in a scope of their own.
    fn body(&mut self, draft: &mut Draft, inputs: Vec<Id>) -> Body {
        draft.depth += 1;
        let mut body = Body {
            inputs,
            ..Body::default()
        };
        for _ in 0..self.random.random_range(1..4) {
            body.steps.extend(self.step(draft));
        }
        draft.depth -= 1;
        body
    }

    /// A value of each side that has the shape and type of the other's.
    fn cond(&mut self, draft: &mut Draft) -> Option<Step> {
        let test = self.condition(draft)?;
        let before = draft.mark();
        let one = self.body(draft, Vec::new());
        let inner: Vec<Id> = draft.given_since(&before);
        let of_one = draft.kinds();
        draft.back(&before);
        let other = self.body(draft, Vec::new());
        let of_other = draft.kinds();
        let others: Vec<Id> = draft.ids();
        draft.back(&before);
        let like = of_one.get(inner.last()?)?.clone();
        let matching: Vec<Id> = others
            .into_iter()
            .rev()
            .filter(|id| of_other.get(id) == Some(&like))
            .collect();
        let partner = *matching.first()?;
        let (mut one, mut other) = (one, other);
        one.results = vec![*inner.last()?];
        other.results = vec![partner];
        let sides = if self.chance(0.5) {
            [one, other]
        } else {
            [other, one]
        };
        let id = draft.next;
        draft.tried(Step::Cond(test, Box::new(sides), vec![id]))
    }

    /// A body that keeps the shape and type of what it carries.
    fn keeping(&mut self, draft: &mut Draft, inputs: &[Id]) -> Option<(Vec<Step>, Id)> {
        let like = draft.kinds().get(&inputs[0])?.clone();
        draft.depth += 1;
        let mut steps = Vec::new();
        for _ in 0..self.random.random_range(1..4) {
            steps.extend(self.step(draft));
        }
        if self.chance(0.4) {
            steps.extend(self.cond(draft));
        }
        draft.depth -= 1;
        let kinds = draft.kinds();
        let made: Vec<Id> = steps
            .iter()
            .flat_map(|step| step.gives().to_vec())
            .collect();
        let last = made
            .into_iter()
            .rev()
            .find(|id| kinds.get(id) == Some(&like))?;
        Some((steps, last))
    }

    fn looped(&mut self, draft: &mut Draft) -> Option<Step> {
        let ids: Vec<Id> = draft
            .ids()
            .into_iter()
            .filter(|id| draft.elements(*id) > 0)
            .collect();
        let carried = self.pick(&ids);
        let turns = if self.chance(0.8) {
            Number::K
        } else {
            Number::Size(carried, 0, 0)
        };
        if matches!(turns, Number::Size(..)) && draft.rank(carried) == 0 {
            return None;
        }
        let before = draft.mark();
        draft.count();
        let inside = draft.copied(carried);
        let found = self.keeping(draft, &[inside]);
        draft.back(&before);
        let (steps, last) = found?;
        let body = Body {
            inputs: vec![inside],
            steps,
            results: vec![last],
        };
        let id = draft.next;
        draft.tried(Step::While(turns, vec![carried], Box::new(body), vec![id]))
    }

    fn scan(&mut self, draft: &mut Draft) -> Option<Step> {
        let ids: Vec<Id> = draft
            .ids()
            .into_iter()
            .filter(|id| draft.elements(*id) > 0)
            .collect();
        let sequences: Vec<Id> = ids
            .iter()
            .copied()
            .filter(|id| draft.rank(*id) > 0)
            .collect();
        if sequences.is_empty() {
            return None;
        }
        let over = self.pick(&sequences);
        let carried = self.pick(&ids);
        let before = draft.mark();
        let inside = draft.copied(carried);
        let item = draft.first_of(over);
        let found = item.and_then(|_| self.keeping(draft, &[inside]));
        let inner = draft.given_since(&before);
        draft.back(&before);
        let (item, (steps, last)) = item.zip(found)?;
        let y = self.pick(&inner);
        let body = Body {
            inputs: vec![inside, item],
            steps,
            results: vec![last, y],
        };
        let id = draft.next;
        draft.next += 1;
        draft.tried(Step::Scan(
            over,
            vec![carried],
            Box::new(body),
            vec![id, id + 1],
        ))
    }

    /// A step that eager code refuses, on every binding.
    fn refused(&mut self, draft: &mut Draft) -> bool {
        for _ in 0..20 {
            let at = self.name();
            let call = self.pick(&self.calls.by_name[at].1);
            if call.kind == Kind::Layer || call.count() == 0 || call.is_random() {
                continue;
            }
            let ids = draft.ids();
            let from = (0..call.count())
                .map(|_| Source::Var(self.pick(&ids)))
                .collect();
            let gives = vec![draft.next];
            let step = Step::Call {
                call,
                from,
                layer: None,
                shape: Shape::Tensor,
                gives,
            };
            if draft.is_refused(&step) {
                draft.program.steps.push(step);
                return true;
            }
        }
        false
    }

    fn results(&mut self, draft: &Draft, refused: bool) -> Results {
        let mut read = Vec::new();
        for step in &draft.program.steps {
            reads(step, &mut read);
        }
        // What nothing else reads is a result: all of the program counts.
        let given: Vec<Id> = draft
            .program
            .steps
            .iter()
            .flat_map(|step| step.gives().to_vec())
            .collect();
        let mut ids: Vec<Id> = given
            .iter()
            .copied()
            .filter(|id| !read.contains(id))
            .collect();
        if ids.is_empty() {
            ids.extend(given.last());
        }
        if ids.is_empty() {
            ids.push(0);
        }
        if refused || draft.rank(ids[0]) == 0 || !self.chance(0.35) {
            Results::Flat(ids)
        } else {
            Results::Nested(ids)
        }
    }
}
