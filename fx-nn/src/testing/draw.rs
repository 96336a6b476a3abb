//! `Draw`: the choices that a case is made of, from one seed.
//!
//! Invariant: equal seeds give equal cases, on every machine.

use fx_core::Result;
use fx_core::value::DType;

use crate::tensor::Tensor;

/// Which numbers stand in a case's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// About normal.
    Normal,
    /// Small whole numbers and halves, of which many are equal.
    Ties,
    /// Zeros of both signs among them.
    Zeros,
    /// Between 0 and 1.
    Shares,
    /// All of them near zero.
    Tiny,
    /// Far from zero, their squares still finite.
    Large,
    /// NaN and infinities among them.
    Special,
}

impl Numbers {
    const ALL: [Numbers; 7] = [
        Numbers::Normal,
        Numbers::Ties,
        Numbers::Zeros,
        Numbers::Shares,
        Numbers::Tiny,
        Numbers::Large,
        Numbers::Special,
    ];

    /// Whether gradients are compared: elsewhere they are sums of what overflows or is lost.
    pub(super) fn has_gradients(self) -> bool {
        !matches!(self, Numbers::Tiny | Numbers::Large | Numbers::Special)
    }
}

/// How the shapes of a case's inputs belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shapes {
    /// All are the same.
    Same,
    /// They broadcast.
    Broadcast,
    /// Matrices whose product exists.
    Product,
    /// Rows, and what has the size of one.
    Rows,
    /// What `linear` takes.
    Weights,
    /// Rows of channels, and what has a number for each channel.
    Channels,
    /// What a convolution takes.
    Images,
}

impl Shapes {
    pub(super) const ALL: [Shapes; 7] = [
        Shapes::Same,
        Shapes::Broadcast,
        Shapes::Product,
        Shapes::Rows,
        Shapes::Weights,
        Shapes::Channels,
        Shapes::Images,
    ];
}

/// What the cases of a rewrite are drawn of.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub finite: bool,
    pub dtypes: Vec<DType>,
    pub shapes: Vec<Vec<Vec<usize>>>,
    pub range: Option<(f64, f64)>,
}

impl Wanted {
    pub(super) fn dtypes(&self) -> &[DType] {
        const ALL: [DType; 6] = [
            DType::F64,
            DType::F32,
            DType::F16,
            DType::BF16,
            DType::I64,
            DType::Bool,
        ];
        match self.dtypes.is_empty() {
            true => &ALL,
            false => &self.dtypes,
        }
    }
}

/// Draws what an instance of a pattern is made of: tensors, sizes, numbers and choices. What is
/// drawn depends on the seed alone.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::testing::Draw;
/// let mut draw = Draw::new(7);
/// let x = draw.tensor(&[2, 3])?;
/// assert_eq!(x.dims()?, [2, 3]);
/// assert_eq!(x.dtype()?, draw.dtype());
/// assert_eq!(Draw::new(7).tensor(&[2, 3])?.to_string(), x.to_string());
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Draw {
    state: u64,
    pub(super) wanted: Wanted,
    dtype: DType,
    pub(super) numbers: Numbers,
    pub(super) shapes: Shapes,
    /// The sizes of this case, and the size that layers have.
    sizes: [usize; 4],
    features: usize,
    rank: usize,
    /// Whether each input has a type of its own.
    mixed: bool,
    /// How many inputs have a shape.
    inputs: usize,
}

impl Draw {
    /// A case of a seed.
    pub fn new(seed: u64) -> Self {
        Draw::case(seed, Wanted::default(), Shapes::Same, DType::F32)
    }

    pub(super) fn case(seed: u64, wanted: Wanted, shapes: Shapes, dtype: DType) -> Self {
        let mut draw = Draw {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03,
            wanted,
            dtype,
            numbers: Numbers::Normal,
            shapes,
            sizes: [1; 4],
            features: 1,
            rank: 0,
            mixed: false,
            inputs: 0,
        };
        draw.numbers = draw.one_of(&Numbers::ALL);
        if draw.wanted.finite && draw.numbers == Numbers::Special {
            draw.numbers = Numbers::Normal;
        }
        draw.mixed = draw.chance(0.1);
        draw.features = draw.one_of(&[1, 2, 3, 4]);
        draw.rank = draw.one_of(&[0, 1, 1, 2, 2, 3, 4]);
        let sizes: &[usize] = match draw.below(12) {
            0 => &[0, 1, 2],
            1 => &[5, 17],
            _ => &[1, 2, 2, 3, 4],
        };
        draw.sizes = [0; 4].map(|_| draw.one_of(sizes));
        draw
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// A whole number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        match n {
            0 => 0,
            n => (self.next() % n as u64) as usize,
        }
    }

    /// A number from 0 to before 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Yes, with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// One of several.
    ///
    /// # Panics
    /// Panics if there are none.
    pub fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// The element type of this case.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of channels or features that this case's layers and inputs have.
    pub fn features(&self) -> usize {
        self.features
    }

    /// About normal.
    fn normal(&mut self) -> f64 {
        let sum: f64 = (0..6).map(|_| self.share()).sum();
        (sum - 3.0) * 1.5
    }

    /// A number of the kind that this case has.
    pub fn number(&mut self) -> f64 {
        self.number_of(self.dtype)
    }

    /// A number that an element type holds, its square too.
    fn number_of(&mut self, dtype: DType) -> f64 {
        let (least, largest) = match dtype {
            DType::F16 => (1e-3, 50.0),
            DType::F64 => (1e-20, 1e30),
            _ => (1e-9, 1e8),
        };
        let number = match self.numbers {
            Numbers::Normal => self.normal(),
            Numbers::Ties => self.below(9) as f64 / 2.0 - 2.0,
            Numbers::Zeros => match self.below(4) {
                0 => 0.0,
                1 => -0.0,
                _ => self.normal(),
            },
            Numbers::Shares => self.share(),
            Numbers::Tiny => self.normal() * least,
            Numbers::Large => self.normal() * largest,
            Numbers::Special => match self.below(6) {
                0 => f64::NAN,
                1 => f64::INFINITY,
                2 => f64::NEG_INFINITY,
                _ => self.normal(),
            },
        };
        match self.wanted.range {
            Some((low, high)) if number.is_finite() && !(low..=high).contains(&number) => {
                low + (high - low) * self.share()
            }
            _ => number,
        }
    }

    /// A tensor of this case's type and kind of numbers.
    ///
    /// # Errors
    /// Returns the errors of making a tensor.
    pub fn tensor(&mut self, shape: &[usize]) -> Result<Tensor> {
        let dtype = self.dtype;
        self.tensor_of(shape, dtype)
    }

    /// A tensor of an element type: whole numbers are small.
    ///
    /// # Errors
    /// Returns the errors of making a tensor.
    pub fn tensor_of(&mut self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let count: usize = shape.iter().product();
        let numbers: Vec<f64> = match dtype {
            DType::Bool => (0..count).map(|_| self.below(2) as f64).collect(),
            dtype if dtype.is_floating_point() => {
                (0..count).map(|_| self.number_of(dtype)).collect()
            }
            DType::U8 | DType::U32 => (0..count).map(|_| self.below(5) as f64).collect(),
            _ => {
                let least = if self.chance(0.5) { 0.0 } else { 4.0 };
                (0..count).map(|_| self.below(9) as f64 - least).collect()
            }
        };
        made(numbers, shape, dtype)
    }

    /// A tensor of the same shape and type with other numbers: some, or all of them. Whole numbers
    /// are those that it has, in another order, because they may be places.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic.
    pub fn like(&mut self, x: &Tensor) -> Result<Tensor> {
        let (shape, dtype) = (x.dims()?.to_vec(), x.dtype()?);
        let mut numbers = x.to_vec()?;
        let share = self.one_of(&[0.0, 0.2, 0.5, 1.0]);
        for at in 0..numbers.len() {
            if !self.chance(share) {
                continue;
            }
            let other = self.below(numbers.len());
            if dtype.is_floating_point() && self.chance(0.8) {
                numbers[at] = self.number_of(dtype);
            } else if dtype.is_floating_point() {
                numbers[at] = numbers[other];
            } else {
                numbers.swap(at, other);
            }
        }
        if !dtype.is_floating_point() && numbers.iter().any(|n| n.abs() > 1e15) {
            return Ok(x.clone());
        }
        made(numbers, &shape, dtype)
    }

    /// The shape of the next input.
    pub fn shape(&mut self) -> Vec<usize> {
        let at = self.inputs;
        self.inputs += 1;
        if !self.wanted.shapes.is_empty() {
            // All inputs of a case take their shapes from one of the rows.
            let row = self.sizes.iter().fold(self.features, |sum, n| sum * 7 + n);
            let row = &self.wanted.shapes[row % self.wanted.shapes.len()];
            return row.get(at).cloned().unwrap_or_default();
        }
        let [a, b, c, d] = self.sizes;
        let n = self.features;
        match self.shapes {
            Shapes::Same => self.sizes[..self.rank].to_vec(),
            Shapes::Broadcast => {
                let mut shape = self.sizes[..self.rank].to_vec();
                for size in &mut shape {
                    if self.chance(0.3) {
                        *size = 1;
                    }
                }
                let missing = if self.chance(0.3) {
                    self.below(self.rank + 1)
                } else {
                    0
                };
                shape.split_off(missing)
            }
            Shapes::Product => {
                let mut shape = if self.rank > 2 { vec![d] } else { Vec::new() };
                shape.extend(match at {
                    0 => vec![a, b],
                    1 => vec![b, c],
                    2 => vec![a, c],
                    _ => vec![c],
                });
                shape
            }
            Shapes::Rows => match at {
                0 => [&self.sizes[..self.rank.min(3)], &[n]].concat(),
                _ => vec![n],
            },
            Shapes::Weights => match at {
                0 => [&self.sizes[..self.rank.min(3)], &[n]].concat(),
                1 => vec![c, n],
                _ => vec![c],
            },
            Shapes::Channels => match at {
                0 => [&[a, n], &self.sizes[..self.rank.min(3)]].concat(),
                _ => vec![n],
            },
            Shapes::Images => {
                let dims = 1 + self.rank % 3;
                match at {
                    0 => [&[a.clamp(1, 2), n], &[c + 2, d + 2, 3][..dims]].concat(),
                    1 => [&[n, n], &[1 + b % 2; 3][..dims]].concat(),
                    _ => vec![n],
                }
            }
        }
    }

    /// The next input: a tensor of the next shape, in a tenth of the cases of a type of its own.
    ///
    /// # Errors
    /// Returns the errors of making a tensor.
    pub fn input(&mut self) -> Result<Tensor> {
        let shape = self.shape();
        let dtype = match self.mixed {
            true => {
                let dtypes = self.wanted.dtypes().to_vec();
                self.one_of(&dtypes)
            }
            false => self.dtype,
        };
        self.tensor_of(&shape, dtype)
    }
}

/// A tensor of these numbers.
pub(super) fn made(numbers: Vec<f64>, shape: &[usize], dtype: DType) -> Result<Tensor> {
    let wide = match dtype.is_floating_point() {
        true => Tensor::from_vec(numbers, shape)?,
        false => {
            let whole: Vec<i64> = numbers.into_iter().map(|n| n as i64).collect();
            Tensor::from_vec(whole, shape)?
        }
    };
    wide.to_dtype(dtype)
}
