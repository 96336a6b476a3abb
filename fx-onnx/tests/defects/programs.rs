//! Random programs of nested branches, loops and jumps on tensors, numbers and truths: what writers of other formats
//! are tried with.

use fx_nn::operator;
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, spec};
use fx_nn::value::IntoValue;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn number(&mut self) -> f64 {
        self.below(25) as f64 / 4.0 - 3.0
    }

    fn whole(&mut self) -> i64 {
        self.below(5) as i64 - 2
    }
}

/// `f32[3]`, `int64[]`, a number, a whole number and a truth.
pub type State = (Tensor, Tensor, Float, Int, Bool);

/// The specs of a state.
pub fn specs() -> Vec<Spec> {
    vec![
        spec![3; F32],
        Spec::tensor([0usize; 0], DType::I64),
        Spec::float(),
        Spec::int("n"),
        Spec::bool(),
    ]
}

/// What changes one of the state.
#[derive(Clone, Debug)]
pub enum Change {
    Tensor(u64, f64),
    Count(u64, i64),
    Float(u64, f64),
    Int(u64, i64),
    Bool(Test),
}

/// What decides.
#[derive(Clone, Debug)]
pub enum Test {
    Sum(u64, f64),
    Count(u64, i64),
    Float(u64, f64),
    Int(u64, i64),
    Bool,
    Known(bool),
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Step {
    Assign(Change),
    If(Test, Vec<Step>, Vec<Step>),
    /// With a `break` on a count.
    While(Test, Vec<Step>),
    /// With a `break` and a `continue` behind parts of the body.
    Jumps([Test; 3], [Vec<Step>; 5]),
    Loop([Test; 2], [Vec<Step>; 4]),
    /// Over a range that ends at the whole number, with a `continue`.
    Range(bool, Test, [Vec<Step>; 2]),
    Match([Vec<Step>; 3]),
    /// A call of a function that returns early.
    Call([Test; 2], [Vec<Step>; 3]),
}

/// A program.
#[derive(Module, Debug)]
pub struct Program {
    #[module(skip)]
    pub steps: Vec<Step>,
}

fn comparison(which: u64) -> fx_nn::ir::Function {
    match which {
        0 => operator::gt,
        1 => operator::lt,
        2 => operator::ge,
        3 => operator::le,
        4 => operator::eq,
        _ => operator::ne,
    }
}

#[trace(control_flow)]
impl Program {
    pub fn forward(
        &self,
        h: Tensor,
        k: Tensor,
        a: Float,
        n: Int,
        b: Bool,
    ) -> Result<(Tensor, Tensor, Float, Int, Bool)> {
        self.block(&self.steps, (h, k, a, n, b))
    }

    fn test(&self, test: &Test, state: &State) -> Result<Value> {
        match test {
            Test::Sum(which, number) => comparison(*which).call_as((state.0.sum(..)?, *number)),
            Test::Count(which, number) => comparison(*which).call_as((state.1.clone(), *number)),
            Test::Float(which, number) => comparison(*which).call_as((state.2, *number)),
            Test::Int(which, number) => comparison(*which).call_as((state.3, *number)),
            Test::Bool => Ok(state.4.into_value()),
            Test::Known(truth) => Ok(Value::Bool(*truth)),
        }
    }

    fn changed(&self, change: &Change, state: State) -> Result<State> {
        let (mut h, mut k, mut a, mut n, mut b) = state;
        match change {
            Change::Tensor(0, number) => h = ((&h * 0.5)? + *number)?,
            Change::Tensor(1, _) => h = (&h + n)?,
            Change::Tensor(2, _) => h = (&h - a)?,
            Change::Tensor(..) => h = (&h * k.to_dtype(DType::F32)?)?.clamp(-9.0, 9.0)?,
            Change::Count(0, number) => k = (&k + *number)?,
            Change::Count(1, _) => k = (&k - n)?,
            Change::Count(_, number) => k = ((&k * 0)? + *number)?,
            Change::Float(0, number) => a = ((a * 0.5)? + *number)?,
            Change::Float(1, _) => a = (a + n)?,
            Change::Float(_, number) => a = Float::from(*number),
            Change::Int(0, number) => n = (n + *number)?,
            Change::Int(1, number) => n = (0 - (n * *number)?)?,
            Change::Int(2, _) => n = (n % 3)?,
            Change::Int(3, _) => n = n.floordiv(2)?,
            Change::Int(_, number) => n = Int::from(*number),
            Change::Bool(Test::Int(which, number)) => {
                b = comparison(*which).call_as((n, *number))?
            }
            Change::Bool(Test::Float(which, number)) => {
                b = comparison(*which).call_as((a, *number))?
            }
            Change::Bool(_) => b = operator::invert.call_as((b,))?,
        }
        Ok((h, k, a, n, b))
    }

    fn block(&self, steps: &[Step], state: State) -> Result<State> {
        let mut state = state;
        for step in steps {
            state = self.step(step, state)?;
        }
        Ok(state)
    }

    fn step(&self, step: &Step, state: State) -> Result<State> {
        match step {
            Step::Assign(change) => self.changed(change, state),
            Step::If(test, then, otherwise) => {
                let mut state = state;
                if self.test(test, &state)? {
                    state = self.block(then, state.clone())?;
                } else {
                    state = self.block(otherwise, state.clone())?;
                }
                Ok(state)
            }
            Step::While(test, body) => {
                let mut state = state;
                let mut turns = Int::from(0);
                while self.test(test, &state)? {
                    state = self.block(body, state.clone())?;
                    turns = (turns + 1)?;
                    if turns > 3 {
                        break;
                    }
                }
                Ok(state)
            }
            Step::Jumps(tests, parts) => self.jumps(tests, parts, state),
            Step::Loop(tests, parts) => {
                let mut state = state;
                let mut turns = Int::from(0);
                loop {
                    state = self.block(&parts[0], state.clone())?;
                    if self.test(&tests[0], &state)? {
                        state = self.block(&parts[1], state.clone())?;
                        break;
                    }
                    turns = (turns + 1)?;
                    state = self.block(&parts[2], state.clone())?;
                    if self.test(&tests[1], &state)? {
                        state = self.block(&parts[3], state.clone())?;
                    } else {
                        break;
                    }
                    if turns > 2 {
                        break;
                    }
                }
                Ok(state)
            }
            Step::Range(includes, test, parts) => {
                let mut state = state;
                let end = (state.3 % 4)?;
                let end = if *includes { (end - 2)? } else { end };
                for i in -1..end {
                    state = self.block(&parts[0], state.clone())?;
                    if i == 0 {
                        state.0 = (&state.0 + 8.0)?;
                    }
                    if self.test(test, &state)? {
                        continue;
                    }
                    state.0 = (&state.0 + i)?;
                    state = self.block(&parts[1], state.clone())?;
                }
                Ok(state)
            }
            Step::Match(parts) => {
                let state = match state.3 {
                    0 => self.block(&parts[0], state.clone())?,
                    2..=7 => self.block(&parts[1], state.clone())?,
                    _ => self.block(&parts[2], state.clone())?,
                };
                Ok(state)
            }
            Step::Call(tests, parts) => self.call(tests, parts, state),
        }
    }

    fn jumps(&self, tests: &[Test; 3], parts: &[Vec<Step>; 5], state: State) -> Result<State> {
        let mut state = state;
        let mut turns = Int::from(0);
        while self.test(&tests[0], &state)? {
            turns = (turns + 1)?;
            if turns > 3 {
                break;
            }
            state = self.block(&parts[0], state.clone())?;
            if self.test(&tests[1], &state)? {
                state = self.block(&parts[1], state.clone())?;
                continue;
            }
            state = self.block(&parts[2], state.clone())?;
            if self.test(&tests[2], &state)? {
                state = self.block(&parts[3], state.clone())?;
                break;
            }
            state = self.block(&parts[4], state.clone())?;
        }
        Ok(state)
    }

    fn call(&self, tests: &[Test; 2], parts: &[Vec<Step>; 3], state: State) -> Result<State> {
        if self.test(&tests[0], &state)? {
            return self.block(&parts[0], state.clone());
        }
        let mut state = self.block(&parts[1], state.clone())?;
        if self.test(&tests[1], &state)? {
            state.0 = (&state.0 - 1.0)?;
            return Ok(state);
        }
        self.block(&parts[2], state)
    }
}

impl Random {
    fn test(&mut self) -> Test {
        match self.below(11) {
            0 | 1 => Test::Sum(self.below(4), self.number()),
            2 | 3 => Test::Count(self.below(6), self.whole()),
            4 | 5 => Test::Float(self.below(4), self.number()),
            6..9 => Test::Int(self.below(6), self.whole()),
            9 => Test::Bool,
            _ => Test::Known(self.below(2) == 0),
        }
    }

    fn change(&mut self) -> Change {
        match self.below(6) {
            0 | 1 => Change::Tensor(self.below(4), self.number()),
            2 => Change::Count(self.below(3), self.whole()),
            3 => Change::Float(self.below(3), self.number()),
            4 => Change::Int(self.below(5), self.whole()),
            _ => Change::Bool(self.test()),
        }
    }

    fn block(&mut self, depth: usize) -> Vec<Step> {
        let count = self.below(if depth == 0 { 2 } else { 3 });
        (0..count).map(|_| self.step(depth)).collect()
    }

    fn step(&mut self, depth: usize) -> Step {
        let Some(inner) = depth.checked_sub(1) else {
            return Step::Assign(self.change());
        };
        match self.below(9) {
            0 => Step::If(self.test(), self.block(inner), self.block(inner)),
            1 => Step::While(self.test(), self.block(inner)),
            2 => Step::Jumps(self.tests(), self.blocks(inner)),
            3 => Step::Loop(self.tests(), self.blocks(inner)),
            4 => Step::Range(self.below(2) == 0, self.test(), self.blocks(inner)),
            5 => Step::Match(self.blocks(inner)),
            6 => Step::Call(self.tests(), self.blocks(inner)),
            _ => Step::Assign(self.change()),
        }
    }

    fn tests<const N: usize>(&mut self) -> [Test; N] {
        std::array::from_fn(|_| self.test())
    }

    fn blocks<const N: usize>(&mut self, depth: usize) -> [Vec<Step>; N] {
        std::array::from_fn(|_| self.block(depth))
    }

    /// A program.
    pub fn program(&mut self) -> Program {
        let count = 1 + self.below(3);
        let steps = (0..count).map(|_| self.step(2)).collect();
        Program { steps }
    }

    /// The arguments of a call, with a whole number of these.
    pub fn state(&mut self, n: i64) -> Result<State> {
        let h: Vec<f32> = (0..3).map(|_| self.number() as f32).collect();
        let k = Tensor::from_vec(vec![self.whole()], ())?;
        let (a, b) = (Float::from(self.number()), Bool::from(self.below(2) == 0));
        Ok((Tensor::from_vec(h, 3)?, k, a, Int::from(n), b))
    }
}

/// What a state has, as numbers.
pub fn numbers(state: &State) -> Result<Vec<f64>> {
    let (h, k, a, n, b) = state;
    let mut all = h.to_vec()?;
    all.extend(k.to_vec()?);
    let numbers = a.concrete().zip(n.concrete()).zip(b.concrete());
    let ((a, n), b) = numbers.ok_or_else(|| Error::msg("a number is symbolic"))?;
    all.extend([a, n as f64, f64::from(u8::from(b))]);
    Ok(all)
}
