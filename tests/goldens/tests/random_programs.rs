//! Random forward programs over tensors and scalars: traced, retraced, cleaned, cloned and parsed, each gives what the
//! eager run gives, to the last bit. `FX_RANDOM_PROGRAMS=100000` runs that many; a failure prints its seed.

use std::sync::Arc;

use fx_core::ir::Graph;
use fx_core::prelude::*;
use fx_core::tensor::binary;
use fx_core::value::Operator;
use fx_nn::prelude::*;

/// The shape of every tensor of a program, so that any step fits any value.
const SHAPE: (usize, usize) = (3, 4);

/// Positions in the pools of values, taken modulo their sizes.
#[derive(Debug, Clone, Copy)]
enum Step {
    Binary(Operator, usize, usize),
    ScalarRight(Operator, usize, f64),
    ScalarLeft(Operator, f64, usize),
    WithFloat(Operator, usize, usize),
    WithInt(usize, usize),
    Method(usize, usize),
    Function(usize, usize),
    Parameter(usize, bool),
    Buffer(usize),
    Constant(usize, i32),
    Layer(usize, usize),
    Shared(usize),
    Block(usize),
    Best(usize),
    SliceAndJoin(usize),
    Reshaped(usize),
    SymbolicView(usize),
    Masked(usize, usize),
    Pieces(usize),
    Centred(usize),
    Stacked(usize, usize),
    Size(usize, i64),
    IntArithmetic(usize, usize, i64),
    FloatArithmetic(usize, usize, f64),
    Claim(usize),
    Helper(usize, usize),
}

/// The same numbers for a seed in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap_or(0)
    }

    fn number(&mut self) -> f64 {
        (self.below(41) as f64 - 20.0) / 8.0
    }

    fn step(&mut self) -> Step {
        use Operator::{Add, Mul, Sub, Truediv};
        let op = [Add, Sub, Mul, Truediv][self.below(4)];
        let (a, b) = (self.below(64), self.below(64));
        match self.below(26) {
            0 | 1 => Step::Binary(op, a, b),
            2 => Step::ScalarRight(op, a, self.number()),
            3 => Step::ScalarLeft(op, self.number(), a),
            4 => Step::WithFloat(op, a, b),
            5 => Step::WithInt(a, b),
            6 | 7 => Step::Method(a, b),
            8 => Step::Function(a, b),
            9 => Step::Parameter(a, b % 2 == 0),
            10 => Step::Buffer(a),
            11 => Step::Constant(a, i32::try_from(b % 7).unwrap_or(0)),
            12 => Step::Layer(a, b),
            13 => Step::Shared(a),
            14 => Step::Block(a),
            15 => Step::Best(a),
            16 => Step::SliceAndJoin(a),
            17 => Step::Reshaped(a),
            18 => Step::SymbolicView(a),
            19 => Step::Masked(a, b),
            20 => Step::Pieces(a),
            21 => Step::Centred(a),
            22 => Step::Stacked(a, b),
            23 => Step::Size(a, if b % 2 == 0 { 0 } else { -1 }),
            24 => match b % 3 {
                0 => Step::IntArithmetic(a, b, self.next() as i64 % 5),
                1 => Step::FloatArithmetic(a, b, self.number()),
                _ => Step::Claim(a),
            },
            _ => Step::Helper(a, b),
        }
    }
}

/// A nested module that is traced through.
#[derive(Module)]
struct Block {
    linear: nn::Linear,
    act: nn::ReLU,
    scale: Tensor,
}

#[trace]
impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.act.forward(&self.linear.forward(x)?)?;
        x + (h * &self.scale)?
    }
}

#[derive(Module)]
struct Program {
    layers: Vec<nn::Linear>,
    shared: Arc<nn::Linear>,
    again: Arc<nn::Linear>,
    blocks: Vec<Block>,
    weights: Vec<Tensor>,
    #[module(buffer)]
    mean: Tensor,
    #[module(skip)]
    steps: Vec<Step>,
    #[module(skip)]
    kept: usize,
}

/// A tensor whose numbers are the seed's.
fn tensor(random: &mut Random, rows: usize, columns: usize) -> Result<Tensor> {
    let data: Vec<f32> = (0..rows * columns)
        .map(|_| random.number() as f32)
        .collect();
    Tensor::from_vec(data, (rows, columns))
}

impl Program {
    fn new(seed: u64) -> Result<Self> {
        let random = &mut Random(seed);
        let linear = |random: &mut Random| -> Result<nn::Linear> {
            let mut layer = nn::Linear::new(4, 4)?;
            layer.weight.copy_from(&tensor(random, 4, 4)?)?;
            Ok(layer)
        };
        let shared = Arc::new(linear(random)?);
        let count = 3 + random.below(24);
        Ok(Program {
            layers: vec![linear(random)?, linear(random)?],
            again: shared.clone(),
            shared,
            blocks: vec![Block {
                linear: linear(random)?,
                act: nn::ReLU::new(),
                scale: tensor(random, 3, 4)?.into_parameter()?,
            }],
            weights: vec![
                tensor(random, 3, 4)?.into_parameter()?,
                tensor(random, 1, 4)?.into_parameter()?,
            ],
            mean: tensor(random, 3, 4)?,
            steps: (0..count).map(|_| random.step()).collect(),
            kept: 1 + random.below(3),
        })
    }

    fn method(x: &Tensor, which: usize) -> Result<Tensor> {
        match which % 6 {
            0 => x.relu(),
            1 => x.sigmoid(),
            2 => x.tanh(),
            3 => -x,
            4 => x.abs(),
            _ => x.clamp(-1.0, 1.5),
        }
    }

    fn function(x: &Tensor, which: usize) -> Result<Tensor> {
        match which % 4 {
            0 => ops::relu(x),
            1 => ops::silu(x),
            2 => ops::neg(x),
            _ => ops::softmax(x, -1),
        }
    }
}

/// A plain helper, traced through.
fn helper(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let twice = |t: &Tensor| t * 2.0;
    [x, y]
        .into_iter()
        .try_fold(x.clone(), |sum, t| sum - twice(t)?)
}

#[trace]
impl Program {
    fn forward(&self, x: &Tensor, y: &Tensor, s: Float) -> Result<(Vec<Tensor>, Int, Float)> {
        let mut tensors = vec![x.clone(), y.clone()];
        let mut ints = vec![x.size(0)?];
        let mut floats = vec![s];
        for step in &self.steps {
            let at = |i: usize| &tensors[i % tensors.len()];
            let made = match *step {
                Step::Binary(op, a, b) => binary(op, &at(a), &at(b))?,
                Step::ScalarRight(op, a, c) => binary(op, &at(a), &c)?,
                Step::ScalarLeft(op, c, a) => binary(op, &c, &at(a))?,
                Step::WithFloat(op, a, f) => binary(op, &at(a), &floats[f % floats.len()])?,
                Step::WithInt(a, n) => (at(a) + ints[n % ints.len()])?,
                Step::Method(a, which) => Program::method(at(a), which)?,
                Step::Function(a, which) => Program::function(at(a), which)?,
                Step::Parameter(a, true) => {
                    (&self.weights[0] * &self.weights[1])?.maximum(at(a))?
                }
                Step::Parameter(a, false) => (at(a) + &self.weights[a % 2])?,
                Step::Buffer(a) => (at(a) - (&self.mean * 0.5)?)?,
                Step::Constant(a, n) => {
                    let row = Tensor::from_vec(vec![n as f32, 0.5, -1.0, 2.0], (1, 4))?;
                    (at(a) * row)?
                }
                Step::Layer(a, which) => self.layers[which % 2].forward(at(a))?,
                Step::Shared(a) => self.again.forward(&self.shared.forward(at(a))?)?,
                Step::Block(a) => self.blocks[0].forward(at(a))?,
                Step::Best(a) => {
                    let (values, _) = at(a).topk(4, -1, true, true)?;
                    values
                }
                Step::SliceAndJoin(a) => {
                    let x = at(a);
                    ops::cat(&[x.i(1..)?, x.i(..1)?], 0)?
                }
                Step::Reshaped(a) => at(a).reshape((4, 3))?.t()?,
                Step::SymbolicView(a) => at(a).view((at(a).size(1)?, -1))?.t()?,
                Step::Masked(a, b) => ((at(a) > at(b))? * at(a))?,
                Step::Pieces(a) => {
                    let [left, right] = at(a).chunk(2, 1)?.unpack()?;
                    ops::cat(&[right, left], 1)?
                }
                Step::Centred(a) => (at(a) - at(a).mean_keepdim(-1)?)?,
                Step::Stacked(a, b) => {
                    ops::stack(&[at(a).clone(), at(b).clone()], 0)?.i((1, ..))?
                }
                Step::Size(a, dim) => {
                    ints.push(at(a).size(dim)?);
                    continue;
                }
                Step::IntArithmetic(a, b, n) => {
                    let (a, b) = (ints[a % ints.len()], ints[b % ints.len()]);
                    ints.push((((a + n)? - b)? % 7)?);
                    continue;
                }
                Step::FloatArithmetic(a, b, c) => {
                    let (a, b) = (floats[a % floats.len()], floats[b % floats.len()]);
                    floats.push(((a * c)? - (b / 2)?)?);
                    continue;
                }
                Step::Claim(a) => {
                    assert!(at(a).ndim()? == 2, "every value is a matrix");
                    continue;
                }
                Step::Helper(a, b) => helper(at(a), at(b))?,
            };
            tensors.push(made);
        }
        let last = tensors.len() - self.kept.min(tensors.len());
        let int = ints.pop().unwrap_or(Int::from(0));
        Ok((tensors.split_off(last), int, floats.pop().unwrap_or(s)))
    }
}

/// Results to the last bit; NaN is NaN.
#[derive(Debug, PartialEq)]
struct Bits(Vec<Vec<u64>>, i64, u64);

fn bits(number: f64) -> u64 {
    if number.is_nan() {
        u64::MAX
    } else {
        number.to_bits()
    }
}

fn of_run(gm: &GraphModule, x: &Tensor, y: &Tensor) -> Result<Bits> {
    let (tensors, int, float): (Vec<Tensor>, i64, f64) = gm.forward((x, y, 0.75))?;
    Ok(Bits(all(&tensors)?, int, bits(float)))
}

fn all(tensors: &[Tensor]) -> Result<Vec<Vec<u64>>> {
    tensors
        .iter()
        .map(|t| {
            assert_eq!(t.dims()?, [SHAPE.0, SHAPE.1]);
            Ok(t.to_vec()?.into_iter().map(bits).collect())
        })
        .collect()
}

fn check(seed: u64) -> Result<()> {
    let program = Program::new(seed)?;
    let random = &mut Random(!seed);
    let (x, y) = (tensor(random, 3, 4)?, tensor(random, 3, 4)?);
    let (tensors, int, float) = program.forward(&x, &y, 0.75.into())?;
    let known = || Error::msg("an eager number is known");
    let eager = Bits(
        all(&tensors)?,
        int.concrete().ok_or_else(known)?,
        bits(float.concrete().ok_or_else(known)?),
    );

    let mut gm = symbolic_trace(&program)?;
    gm.lint()?;
    let text = gm.graph().to_string();
    assert_eq!(of_run(&gm, &x, &y)?, eager, "traced");
    assert_eq!(of_run(&gm.clone(), &x, &y)?, eager, "cloned");
    let again = symbolic_trace(&gm)?;
    assert_eq!(again.graph().to_string(), text, "traced again");
    assert_eq!(of_run(&again, &x, &y)?, eager, "traced again");
    let parsed: Graph = text.parse()?;
    assert_eq!(parsed.to_string(), text, "parsed");
    let parsed = GraphModule::new(gm.attributes().clone(), parsed, "Parsed")?;
    assert_eq!(of_run(&parsed, &x, &y)?, eager, "parsed");
    gm.eliminate_dead_code()?;
    gm.lint()?;
    assert_eq!(of_run(&gm, &x, &y)?, eager, "without dead code");
    Ok(())
}

#[test]
fn random_programs_trace_to_what_they_compute() -> Result<()> {
    let count = std::env::var("FX_RANDOM_PROGRAMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300u64);
    for seed in 0..count {
        let result = std::panic::catch_unwind(|| check(seed));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("seed {seed}: {error}"),
            Err(_) => panic!("seed {seed}: the assertion above"),
        }
    }
    Ok(())
}
