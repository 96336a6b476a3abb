//! Rewrites as checked claims: a rule, a rewriter, a table of decompositions or a pass is run on
//! drawn instances of what it looks for, and what they give has to stay.
//!
//! A case is an instance with arguments: shapes (also without dims, of size 1, broadcast, empty),
//! element types, numbers (ties, zeros of both signs, tiny and large ones, NaN and infinities), and
//! whatever the pattern leaves open: literals, functions, layers. It is run before and after the
//! rewrite. Shapes, element types, whole numbers and truth values have to be equal, and floats no
//! further apart than rounding explains: by how far the results move if every number on the way
//! moves by a step of its type. NaN equals NaN; 0.0 equals -0.0, as in PyTorch's `assert_close`.
//! Gradients are compared where all inputs are `float64` and finite, at ties and zeros too.
//!
//! ```
//! use fx_nn::prelude::*;
//! use fx_nn::pattern::Rule;
//! use fx_nn::testing::verify;
//!
//! let negated = traced!(|x: &Tensor, y: &Tensor| (x - y)?.neg());
//! let rule = Rule::new(negated, traced!(|x: &Tensor, y: &Tensor| y - x))?.named("negated");
//! println!("{}", verify(&rule)?); // `negated`: 200 cases, 200 matched ..
//!
//! let wrong = Rule::new(traced!(|x: &Tensor| ops::relu(x)), traced!(|x: &Tensor| x.abs()))?;
//! let error = verify(&wrong.named("positive")).map(|_| ()).unwrap_err().to_string();
//! assert!(error.starts_with("`positive` is wrong: its result is 1.0 for 0.0"), "{error}");
//! assert!(error.contains("x = float64 -1.0"), "{error}");
//! # Ok::<(), fx_nn::Error>(())
//! ```

mod calls;
mod case;
mod close;
mod draw;
mod layers;
mod op;
mod rewrite;
mod rules;
mod shrink;
mod weights;

use std::collections::HashMap;
use std::fmt;

use fx_core::ir::Argument;
use fx_core::value::{DType, Value};
use fx_core::{Error, ErrorKind, GraphModule, Result};

use crate::tensor::Tensor;

pub use draw::Draw;
pub use op::{
    EveryCall, Given, Missing, OpReport, Route, RouteCount, Sample, Samples, check_op, routes,
    runs_kernels, samples, samples_of, structured,
};
pub use rewrite::{Did, Instance, Passed, Rewrite, pass};

use case::{Trial, Verdict, Wrong};
use close::Slack;
use draw::{Shapes, Wanted};

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The rewrite's name.
    pub name: String,
    /// How many cases were run, of all parts.
    pub cases: usize,
    /// In how many of them it found what it looks for and rewrote it.
    pub matched: usize,
    /// How many more its filters or requirements refused.
    pub refused: usize,
    /// In how many gradients were compared, too.
    pub gradients: usize,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}`: {} cases, {} matched, {} refused, gradients of {}",
            self.name, self.cases, self.matched, self.refused, self.gradients
        )
    }
}

/// Checks a rewrite in 200 cases for each of its parts. [`Verify`] has the options.
///
/// # Errors
/// Returns an error with a counterexample, made as small as possible, if the rewrite changes a
/// value or a gradient ([`ErrorKind::Numbers`]); and an error that says why if it is unverified:
/// fewer cases could be made, or it matched in fewer than nine of ten.
pub fn verify(rewrite: &dyn Rewrite) -> Result<Verified> {
    Verify::new().of(rewrite)
}

/// How a rewrite is checked.
#[derive(Debug, Clone)]
pub struct Verify {
    cases: usize,
    seed: u64,
    gradients: bool,
    slack: Slack,
    wanted: Wanted,
}

impl Default for Verify {
    fn default() -> Self {
        Verify {
            cases: 200,
            seed: 1,
            gradients: true,
            slack: Slack::default(),
            wanted: Wanted::default(),
        }
    }
}

impl Verify {
    /// 200 cases of everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many cases each part has to pass.
    #[must_use]
    pub fn cases(mut self, cases: usize) -> Self {
        self.cases = cases;
        self
    }

    /// What the cases are drawn from: equal seeds give equal cases.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The rewrite holds for finite numbers: no NaN and no infinity is drawn, and elements that are
    /// not finite before the rewrite are not compared.
    #[must_use]
    pub fn finite(mut self) -> Self {
        self.wanted.finite = true;
        self.slack.finite = true;
        self
    }

    /// The rewrite holds for numbers of a range: others are drawn from inside of it.
    #[must_use]
    pub fn range(mut self, least: f64, most: f64) -> Self {
        self.wanted.range = Some((least, most));
        self
    }

    /// The element types of inputs, instead of `float64`, `float32`, `float16`, `bfloat16`, `int64`
    /// and `bool`.
    #[must_use]
    pub fn dtypes(mut self, dtypes: impl IntoIterator<Item = DType>) -> Self {
        self.wanted.dtypes = dtypes.into_iter().collect();
        self
    }

    /// The shapes of the inputs, in their order; with several calls a case has one of them.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::pattern::Rule;
    /// use fx_nn::testing::Verify;
    /// let rule = Rule::new(
    ///     traced!(|x: &Tensor, w: &Tensor| ops::conv2d(x, w, None, 1, 0, 1, 1)?.relu()),
    ///     traced!(|x: &Tensor, w: &Tensor| ops::clamp(&ops::conv2d(x, w, None, 1, 0, 1, 1)?, 0, None)),
    /// )?;
    /// let shapes = [vec![1, 2, 5, 5], vec![3, 2, 2, 2]];
    /// Verify::new().cases(20).shapes(shapes).without_gradients().of(&rule)?;
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    #[must_use]
    pub fn shapes(mut self, inputs: impl IntoIterator<Item = Vec<usize>>) -> Self {
        self.wanted.shapes.push(inputs.into_iter().collect());
        self
    }

    /// Gradients are not compared.
    #[must_use]
    pub fn without_gradients(mut self) -> Self {
        self.gradients = false;
        self
    }

    /// How far floats may be apart, relative and absolute, instead of what rounding explains.
    #[must_use]
    pub fn tolerance(mut self, relative: f64, absolute: f64) -> Self {
        self.slack.fixed = Some((relative, absolute));
        self
    }

    /// Checks a rewrite.
    ///
    /// # Errors
    /// As [`verify`].
    pub fn of(&self, rewrite: &dyn Rewrite) -> Result<Verified> {
        let mut verified = Verified {
            name: rewrite.name(),
            cases: 0,
            matched: 0,
            refused: 0,
            gradients: 0,
        };
        for (part, name) in rewrite.parts().iter().enumerate() {
            self.part(rewrite, part, name, &mut verified)?;
        }
        Ok(verified)
    }

    fn part(
        &self,
        rewrite: &dyn Rewrite,
        part: usize,
        name: &str,
        verified: &mut Verified,
    ) -> Result<()> {
        let mut choice = Choice::new(self.wanted.dtypes());
        let (mut cases, mut matched, mut refused) = (0, 0, 0);
        let mut last = String::new();
        let mut turn = 0;
        while cases < self.cases {
            turn += 1;
            if turn > 40 * self.cases as u64 + 1000 {
                return Err(Error::msg(format_args!(
                    "`{name}` is unverified: {turn} draws gave {cases} cases, and {refused} that it refuses{last}; \
                     `Verify` takes shapes and types, and `testing::pass` a function that makes instances"
                )));
            }
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(turn);
            let (shapes, dtype) = choice.next(seed);
            let mut draw = Draw::case(seed, self.wanted.clone(), shapes, dtype);
            let trial = Trial {
                rewrite,
                part,
                slack: self.slack,
                gradients: self.gradients && draw.numbers.has_gradients(),
                seed,
            };
            let made = rewrite.instance(part, &mut draw);
            let judged = made.and_then(|mut instance| {
                // What rounds on the way is computed wider where the type is known.
                let is_half = |x: &Tensor| matches!(x.dtype(), Ok(DType::F16 | DType::BF16));
                let inputs = Value::List(instance.inputs.clone().into());
                let is_half = close::leaves(&inputs).0.iter().any(is_half);
                instance.shapes = instance.needs_shapes || is_half || draw.chance(0.7);
                trial.judge(&instance).map(|verdict| (instance, verdict))
            });
            let (instance, verdict) = match judged {
                Ok(judged) => judged,
                Err(error) => {
                    last = format!("; the last one failed: {error}");
                    choice.ran(shapes, dtype, false);
                    continue;
                }
            };
            choice.ran(shapes, dtype, !matches!(verdict, Verdict::Impossible(_)));
            match verdict {
                Verdict::Impossible(error) => {
                    last = format!("; the last one does not run: {error}");
                    continue;
                }
                Verdict::Refused => {
                    refused += 1;
                    continue;
                }
                Verdict::Nothing => {}
                Verdict::Same(gradients) => {
                    matched += 1;
                    verified.gradients += usize::from(gradients);
                }
                Verdict::Wrong(wrong) => {
                    let (instance, wrong) = shrink::shrink(&trial, instance, wrong);
                    let text = counterexample(name, &instance, &wrong, self.seed, turn);
                    return Err(ErrorKind::Numbers(text).into());
                }
            }
            cases += 1;
        }
        if matched * 10 < cases * 9 {
            return Err(Error::msg(format_args!(
                "`{name}` is unverified: it matched in {matched} of {cases} cases, and what is drawn for a pattern should \
                 fit it: say what is open at its nodes, not in other ways"
            )));
        }
        verified.cases += cases;
        verified.matched += matched;
        verified.refused += refused;
        Ok(())
    }
}

/// Which shapes and types to draw: those more often that the graphs take.
struct Choice {
    ways: Vec<(Shapes, DType)>,
    /// How often each was tried, and ran.
    counts: HashMap<(u8, DType), (f64, f64)>,
}

impl Choice {
    fn new(dtypes: &[DType]) -> Self {
        let ways = Shapes::ALL.iter();
        let ways = ways.flat_map(|shapes| dtypes.iter().map(|dtype| (*shapes, *dtype)));
        Choice {
            ways: ways.collect(),
            counts: HashMap::new(),
        }
    }

    fn next(&self, seed: u64) -> (Shapes, DType) {
        let weight = |(shapes, dtype): &(Shapes, DType)| {
            let (tried, ran) = self
                .counts
                .get(&(*shapes as u8, *dtype))
                .copied()
                .unwrap_or_default();
            // Gradients are compared in float64.
            let share = if *dtype == DType::F64 { 2.0 } else { 1.0 };
            share * ((ran + 1.0) / (tried + 1.0) + 0.01)
        };
        let all: f64 = self.ways.iter().map(weight).sum();
        let mut left = Draw::new(seed ^ 0x5DEE_CE66).share() * all;
        for way in &self.ways {
            left -= weight(way);
            if left <= 0.0 {
                return *way;
            }
        }
        self.ways
            .last()
            .copied()
            .unwrap_or((Shapes::Same, DType::F32))
    }

    fn ran(&mut self, shapes: Shapes, dtype: DType, ran: bool) {
        let counts = self.counts.entry((shapes as u8, dtype)).or_default();
        counts.0 += 1.0;
        counts.1 += f64::from(u8::from(ran));
    }
}

/// A literal of the same kind as another.
fn literal(own: &Argument, draw: &mut Draw) -> Argument {
    const FLOATS: [f64; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        3.0,
        -0.5,
        0.1,
        1e-5,
        100.0,
        -2.5,
        std::f64::consts::PI,
        std::f64::consts::FRAC_1_SQRT_2,
    ];
    if draw.chance(0.1) {
        return own.clone();
    }
    match own {
        Argument::Float(_) if draw.chance(0.1) => Argument::Int(draw.below(5) as i64 - 1),
        Argument::Float(_) if draw.chance(0.7) => Argument::Float(draw.one_of(&FLOATS)),
        Argument::Float(_) => Argument::Float(4.0 * draw.share() - 2.0),
        Argument::Int(_) => Argument::Int(draw.below(8) as i64 - 3),
        Argument::Bool(_) => Argument::Bool(draw.chance(0.5)),
        Argument::None if draw.chance(0.5) => Argument::Float(draw.one_of(&FLOATS)),
        Argument::List(items) => {
            let items = items.iter().map(|item| literal(item, draw));
            Argument::List(items.collect::<Vec<_>>().into())
        }
        Argument::Tuple(items) => {
            let items = items.iter().map(|item| literal(item, draw));
            Argument::Tuple(items.collect::<Vec<_>>().into())
        }
        own => own.clone(),
    }
}

/// A counterexample in a few lines.
fn counterexample(name: &str, instance: &Instance, wrong: &Wrong, seed: u64, case: u64) -> String {
    let mut text = format!("`{name}` is wrong: {}", wrong.what);
    let places: Vec<String> = instance
        .gm
        .graph()
        .placeholders()
        .map(|node| node.name().to_string())
        .collect();
    let all = Value::List(instance.inputs.clone().into());
    let leaves = close::leaves(&all).0.into_iter().map(Value::object);
    let leaves: Vec<Value> = match places.len() == instance.inputs.len() {
        true => instance.inputs.clone(),
        // The tensors of a list are an input each.
        false => leaves.collect(),
    };
    for (name, value) in places.iter().zip(&leaves) {
        text += &format!("\n  {name} = {}", shown(value));
    }
    let of = if wrong.gradient { "gradient" } else { "result" };
    for (when, gm, value) in [
        ("before", Some(&instance.gm), &wrong.before),
        ("after", wrong.graph.as_deref(), &wrong.after),
    ] {
        let Some(gm) = gm else { continue };
        let value = value
            .as_ref()
            .map_or(String::new(), |value| format!("  // {of} {}", shown(value)));
        text += &format!("\n  {when}: {}{value}", few_lines(gm));
    }
    text + &format!("\n  (seed {seed}, case {case})")
}

/// The first lines of a graph's code, without those that only name or drop something.
fn few_lines(gm: &GraphModule) -> String {
    const MOST: usize = 6;
    let code = gm.code();
    let lines = code.lines().skip(1);
    let lines = lines.map(|line| line.split("  drop(").next().unwrap_or(line).trim());
    let names = |line: &str| line.contains(" = &") && line.ends_with("];");
    let lines: Vec<&str> = lines.filter(|line| *line != "}" && !names(line)).collect();
    match lines.len() {
        0..=MOST => lines.join(" "),
        n => format!("{} .. ({n} lines)", lines[..MOST].join(" ")),
    }
}

/// A value with its first elements.
fn shown(value: &Value) -> String {
    const FIRST: usize = 8;
    match (value.downcast_ref::<Tensor>(), value) {
        (Some(x), _) => {
            let (Ok(dtype), Ok(shape), Ok(all)) = (x.dtype(), x.dims(), x.to_vec()) else {
                return x.to_string();
            };
            let first: Vec<String> = all.iter().take(FIRST).map(|x| format!("{x:?}")).collect();
            let more = if all.len() > FIRST { ", .." } else { "" };
            match shape.is_empty() {
                true => format!("{} {}", dtype.name(), first.join("")),
                false => format!("{}{shape:?} [{}{more}]", dtype.name(), first.join(", ")),
            }
        }
        (None, Value::List(items) | Value::Tuple(items)) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        (None, value) => value.to_string(),
    }
}
