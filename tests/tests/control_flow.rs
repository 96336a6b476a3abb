//! Random programs of nested branches, loops and jumps: eager and traced runs give the same bits.
//!
//! `FX_PROGRAMS` is the number of programs.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests"
)]

use fx_core::prelude::*;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    fn number(&mut self) -> f64 {
        self.below(25) as f64 / 4.0 - 3.0
    }
}

const LOCALS: usize = 3;

/// A number: of a local, or of two with an operator.
#[derive(Clone, Debug)]
struct Term {
    a: usize,
    b: usize,
    op: usize,
    number: f64,
}

/// `local > number`, or a plain truth.
#[derive(Clone, Debug)]
enum Test {
    Above(usize, f64),
    Plain(bool),
}

#[derive(Clone, Debug)]
enum Step {
    Assign(usize, Term),
    /// A branch that changes locals.
    If(Test, Vec<Step>, Vec<Step>),
    /// A branch that gives a value, to a local.
    Value(usize, Test, Term, Term),
    /// `while`: test, body.
    While(Test, Vec<Step>),
    /// `while`, with a `break` and a `continue` behind parts of the body.
    Jumps([Test; 3], [Vec<Step>; 5]),
    /// `loop`, with two ways out.
    Loop([Test; 2], [Vec<Step>; 4]),
    /// `for` over a traced range, with a `continue`.
    Range(usize, Test, [Vec<Step>; 2]),
    /// `for` over a list, with a `break`.
    Each(usize, Test, [Vec<Step>; 2]),
    /// `match` on a number made of a local.
    Match(usize, [Vec<Step>; 3]),
    /// A call of a function that returns early.
    Call([Test; 2], [Vec<Step>; 3]),
}

/// A program; its `forward` runs it on three numbers.
#[derive(Module, Debug)]
struct Program {
    #[module(skip)]
    steps: Vec<Step>,
}

type State = Vec<Float>;

#[trace(control_flow)]
impl Program {
    fn forward(&self, a: Float, b: Float, c: Float) -> Result<Vec<Float>> {
        self.block(&self.steps, vec![a, b, c])
    }

    fn term(&self, term: &Term, state: &State) -> Result<Float> {
        let (a, b) = (state[term.a], state[term.b]);
        match term.op {
            0 => a + b,
            1 => a - b,
            2 => a * term.number,
            3 => (a * 0.5)? - term.number,
            _ => Ok(Float::from(term.number)),
        }
    }

    fn test(&self, test: &Test, state: &State) -> Result<Bool> {
        match test {
            Test::Above(local, number) => fx_core::operator::gt.call_as((state[*local], *number)),
            Test::Plain(truth) => Ok(Bool::from(*truth)),
        }
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
            Step::Assign(local, term) => {
                let mut state = state;
                state[*local] = self.term(term, &state)?;
                Ok(state)
            }
            Step::If(test, then, otherwise) => {
                let mut state = state;
                if self.test(test, &state)? {
                    state = self.block(then, state.clone())?;
                } else {
                    state = self.block(otherwise, state.clone())?;
                }
                Ok(state)
            }
            Step::Value(local, test, then, otherwise) => {
                let mut state = state;
                let value = if self.test(test, &state)? {
                    self.term(then, &state)?
                } else {
                    self.term(otherwise, &state)?
                };
                state[*local] = value;
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
            Step::Range(local, test, parts) => {
                let mut state = state;
                let end = (fx_core::operator::gt.call_as::<Bool>((state[*local], 0.5)))?;
                let end: Int = if end { Int::from(2) } else { Int::from(0) };
                for i in 0..end {
                    state = self.block(&parts[0], state.clone())?;
                    if self.test(test, &state)? {
                        continue;
                    }
                    state[0] = (state[0] + i)?;
                    state = self.block(&parts[1], state.clone())?;
                }
                Ok(state)
            }
            Step::Each(local, test, parts) => {
                let mut state = state;
                for number in [0.5, -1.0, 2.0] {
                    state[*local] = (state[*local] + number)?;
                    state = self.block(&parts[0], state.clone())?;
                    if self.test(test, &state)? {
                        break;
                    }
                    state = self.block(&parts[1], state.clone())?;
                }
                Ok(state)
            }
            Step::Match(local, parts) => {
                let mut state = state;
                let above: Bool = fx_core::operator::gt.call_as((state[*local], 0.0))?;
                let far: Bool = fx_core::operator::gt.call_as((state[*local], 2.0))?;
                let mut n = Int::from(0);
                if above {
                    n = (n + 1)?;
                }
                if far {
                    n = (n + 4)?;
                }
                state = match n {
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
            state[0] = (state[1] - state[2])?;
            return Ok(state);
        }
        self.block(&parts[2], state)
    }
}

impl Random {
    fn term(&mut self) -> Term {
        Term {
            a: self.below(LOCALS),
            b: self.below(LOCALS),
            op: self.below(5),
            number: self.number(),
        }
    }

    fn test(&mut self) -> Test {
        match self.below(6) {
            0 => Test::Plain(self.below(2) == 0),
            _ => Test::Above(self.below(LOCALS), self.number()),
        }
    }

    fn block(&mut self, depth: usize) -> Vec<Step> {
        let count = match depth {
            0 => self.below(2),
            _ => self.below(3),
        };
        (0..count).map(|_| self.step(depth)).collect()
    }

    fn step(&mut self, depth: usize) -> Step {
        let Some(inner) = depth.checked_sub(1) else {
            return Step::Assign(self.below(LOCALS), self.term());
        };
        let local = self.below(LOCALS);
        match self.below(11) {
            0 => Step::If(self.test(), self.block(inner), self.block(inner)),
            1 => Step::Value(local, self.test(), self.term(), self.term()),
            2 => Step::While(self.test(), self.block(inner)),
            3 => Step::Jumps(
                std::array::from_fn(|_| self.test()),
                std::array::from_fn(|_| self.block(inner)),
            ),
            4 => Step::Loop(
                std::array::from_fn(|_| self.test()),
                std::array::from_fn(|_| self.block(inner)),
            ),
            5 => Step::Range(
                local,
                self.test(),
                std::array::from_fn(|_| self.block(inner)),
            ),
            6 => Step::Each(
                local,
                self.test(),
                std::array::from_fn(|_| self.block(inner)),
            ),
            7 => Step::Match(local, std::array::from_fn(|_| self.block(inner))),
            8 => Step::Call(
                std::array::from_fn(|_| self.test()),
                std::array::from_fn(|_| self.block(inner)),
            ),
            _ => Step::Assign(local, self.term()),
        }
    }
}

#[test]
fn random_programs_give_the_bits_that_they_give_eagerly() {
    let programs = std::env::var("FX_PROGRAMS").ok();
    let programs: u64 = programs.map_or(300, |count| count.parse().unwrap());
    let mut decided = 0;
    for seed in 0..programs {
        let mut random = Random(seed);
        let count = 1 + random.below(3);
        let steps = (0..count).map(|_| random.step(2)).collect();
        let program = Program { steps };
        let gm = match symbolic_trace(&program) {
            Ok(gm) => gm,
            Err(error) => panic!("seed {seed}: {error}\n{:#?}", program.steps),
        };
        decided += gm
            .graph()
            .nodes()
            .filter(|node| {
                node.op().target().starts_with("cond_")
                    || node.op().target().starts_with("while_loop_")
            })
            .count();
        let again = symbolic_trace(&gm).unwrap();
        for _ in 0..4 {
            let inputs = [random.number(), random.number(), random.number()];
            let [a, b, c] = inputs.map(Float::from);
            let eager = program.forward(a, b, c).unwrap();
            let eager: Vec<u64> = eager
                .iter()
                .map(|x| x.concrete().unwrap().to_bits())
                .collect();
            for gm in [&gm, &again] {
                let [a, b, c] = inputs;
                let traced: Vec<f64> = gm.forward((a, b, c)).unwrap();
                let traced: Vec<u64> = traced.iter().map(|x| x.to_bits()).collect();
                assert_eq!(
                    eager, traced,
                    "seed {seed} {inputs:?}\n{:#?}",
                    program.steps
                );
            }
        }
    }
    println!("programs {programs} decided {decided}");
    assert!(decided > 0, "no graph decides anything");
}
