//! Noise: how far a program's numbers move if each of them moves by about the last bit of its type. What one path may
//! differ from another by is measured so, and not guessed.
//!
//! Invariant: what is computed exactly is not moved.

use std::ops::Range;

use fx_differential::Call;
use fx_nn::prelude::*;
use fx_nn::value::{IntoValue, Value};
use fx_nn::{Dims, Error, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::compare::LARGEST_WHOLE;
use crate::program::Step;

/// What gives the same bits on every path, however it is computed.
const EXACT: &str = "
    abs absolute neg negative sign sgn floor ceil trunc round fix relu where masked_fill clamp clip maximum minimum
    getitem add sub mul reshape view flatten unflatten ravel squeeze unsqueeze transpose t permute movedim moveaxis
    swapaxes swapdims expand expand_as broadcast_to broadcast_tensors repeat tile cat concat concatenate stack hstack
    vstack dstack column_stack chunk split tensor_split hsplit vsplit dsplit unbind narrow select index_select gather
    take take_along_dim flip fliplr flipud roll rot90 tril triu diag diagonal diagflat diag_embed pad zeros ones full
    zeros_like ones_like full_like new_zeros new_ones new_full arange eye to_dtype sort topk amax amin max min
    max_pool1d max_pool2d max_pool3d embedding one_hot contiguous clone detach Identity Flatten Unflatten ReLU
    Embedding MaxPool1d MaxPool2d MaxPool3d ReLU6 relu6 hardtanh Hardtanh threshold Threshold atleast_1d atleast_2d
    atleast_3d pixel_shuffle pixel_unshuffle channel_shuffle unfold masked_select nonzero copysign nan_to_num
";

/// Whether a call rounds at most once, as every path does.
pub(crate) fn is_exact(call: &Call) -> bool {
    EXACT.split_whitespace().any(|name| name == call.name)
}

/// What subtracts two numbers of about the size of its argument: the rounding of these is what is left.
const CANCELS: &str = "tanhshrink Tanhshrink gelu GELU";

/// What subtracts 1 from a power.
const CANCELS_ONE: &str = "elu ELU celu CELU selu SELU";

/// What sums pixels with weights, which are rounded too.
const WEIGHS: &str = "interpolate interpolate_with Upsample UpsamplingBilinear2d";

/// What subtracts a mean, which engines round, of neighbours in memory.
const SUBTRACTS_MEAN: &str = "
    layer_norm LayerNorm group_norm GroupNorm instance_norm InstanceNorm1d InstanceNorm2d InstanceNorm3d
";

/// What weighs by `1 - z`, a gate, adds a bias to normal numbers, or gives unit vectors: as exact as numbers around 1.
const AROUND_ONE: &str = "
    gru GRU gru_cell GRUCell lstm LSTM lstm_cell LSTMCell rnn_tanh rnn_tanh_cell RNN RNNCell batch_norm BatchNorm1d
    BatchNorm2d BatchNorm3d instance_norm InstanceNorm1d InstanceNorm2d InstanceNorm3d layer_norm LayerNorm group_norm
    GroupNorm logit log_softmax LogSoftmax MultiheadAttention Transformer TransformerEncoder TransformerDecoder
    TransformerEncoderLayer TransformerDecoderLayer svd qr eigh
";

/// Whether a layer is many in a row: what rounds in the middle is not what its input or its result rounds.
pub(crate) fn is_stack(call: &Call) -> bool {
    call.name.starts_with("Transformer")
}

/// Whether ONNX Runtime computes a call as exactly as numbers around 1: its sigmoid is a quotient of polynomials.
pub(crate) fn is_sigmoid(call: &Call) -> bool {
    ["sigmoid", "Sigmoid", "silu", "SiLU", "glu", "GLU"].contains(&&*call.name)
}

/// The numbers, each moved by about the last bit of 1.
///
/// # Errors
/// Returns an error if they cannot be read.
pub(crate) fn around_one(x: &Tensor, random: &mut StdRng) -> Result<Tensor> {
    let dtype = x.dtype()?;
    let numbers = x.to_vec()?.into_iter();
    let numbers: Vec<f64> = numbers
        .map(|number| number + either_way(random, 1.0..2.0) * epsilon(dtype))
        .collect();
    Tensor::from_vec(numbers, x.dims()?)?.to_dtype(dtype)
}

/// What stands for results of which nothing is said: any numbers, and any slopes.
pub(crate) struct Anything {
    random: StdRng,
    /// How likely NaN is, which has no slope: the same for all results of a run, so that one follows from another.
    nan: f64,
    /// How likely 0 is, which is what some engines give for NaN.
    zero: f64,
}

impl Anything {
    /// Of a run; every other one has NaN.
    pub(crate) fn of_run(run: u64) -> Self {
        Anything {
            random: StdRng::seed_from_u64(run),
            nan: if run.is_multiple_of(2) { 0.5 } else { 0.0 },
            zero: if run.is_multiple_of(3) { 0.3 } else { 0.0 },
        }
    }

    /// A value of the same structure, which depends on what a call is given.
    ///
    /// # Errors
    /// Returns an error if a tensor cannot be made.
    pub(crate) fn value(&mut self, value: &Value, from: &[Tensor]) -> Result<Value> {
        let mut all = |items: &[Value]| -> Result<_> {
            items.iter().map(|item| self.value(item, from)).collect()
        };
        Ok(match value {
            Value::List(items) => Value::List(all(items)?),
            Value::Tuple(items) => Value::Tuple(all(items)?),
            value => match value.downcast_ref::<Tensor>() {
                Some(x) => {
                    let numbers = self.numbers(x)?;
                    self.with_slopes(numbers, from)?.into_value()
                }
                None => value.clone(),
            },
        })
    }

    fn numbers(&mut self, x: &Tensor) -> Result<Tensor> {
        let (dims, dtype) = (x.dims()?, x.dtype()?);
        let mut number = || match dtype.is_floating_point() {
            true if self.random.random_bool(self.nan) => f64::NAN,
            true if self.random.random_bool(self.zero) => 0.0,
            true => self.random.random_range(-2.0..2.0),
            false => f64::from(u8::from(self.random.random_bool(0.5))),
        };
        let numbers: Vec<f64> = (0..dims.iter().product()).map(|_| number()).collect();
        Tensor::from_vec(numbers, dims)?.to_dtype(dtype)
    }

    /// The tensor, as one that depends on the finite elements of those that learn.
    fn with_slopes(&mut self, mut y: Tensor, from: &[Tensor]) -> Result<Tensor> {
        if !y.dtype()?.is_floating_point() {
            return Ok(y);
        }
        for x in from {
            if !x.requires_grad()? {
                continue;
            }
            let finite = ops::r#where(&ops::isfinite(x)?, x, 0)?;
            let slope = self.random.random_range(-2.0..2.0);
            let none = (&finite - finite.detach()?)?;
            let part = (ops::sum(&none, Dims::All, false)? * slope)?;
            y = (&y + ops::type_as(&part, &y)?)?;
        }
        Ok(y)
    }
}

/// Whether a call loses digits on the way.
pub(crate) fn cancels(call: &Call) -> bool {
    let mut names = CANCELS
        .split_whitespace()
        .chain(CANCELS_ONE.split_whitespace())
        .chain(WEIGHS.split_whitespace())
        .chain(SUBTRACTS_MEAN.split_whitespace());
    names.any(|name| name == call.name)
}

/// The result of a call that loses digits, moved by about the last bit of what it subtracts from.
///
/// # Errors
/// Returns an error if their numbers cannot be read.
pub(crate) fn lost(call: &Call, y: &Tensor, x: &Tensor, random: &mut StdRng) -> Result<Tensor> {
    let dtype = y.dtype()?;
    if !dtype.is_floating_point() {
        return Ok(y.clone());
    }
    let shape = y.dims()?;
    if WEIGHS.split_whitespace().any(|name| name == call.name) {
        let sizes = x.to_vec()?.into_iter().map(f64::abs);
        let largest = sizes.filter(|size| size.is_finite()).fold(0.0, f64::max);
        let mut weighed = y.to_vec()?;
        for y in &mut weighed {
            *y += largest * random.random_range(-1.0..1.0) * epsilon(dtype);
        }
        return Tensor::from_vec(weighed, shape)?.to_dtype(dtype);
    }
    if SUBTRACTS_MEAN
        .split_whitespace()
        .any(|name| name == call.name)
    {
        let (x, mut y) = (x.to_vec()?, y.to_vec()?);
        let slopes = slopes(&x, &y);
        for ((y, x), slope) in y.iter_mut().zip(&x).zip(slopes) {
            *y += slope * x.abs() * random.random_range(-1.0..1.0) * epsilon(dtype);
        }
        return Tensor::from_vec(y, shape)?.to_dtype(dtype);
    }
    let is_power = CANCELS_ONE.split_whitespace().any(|name| name == call.name);
    let numbers = y.to_vec()?.into_iter().zip(x.to_vec()?);
    let numbers: Vec<f64> = numbers
        .map(|(y, x)| match (is_power, x.is_finite()) {
            // It is as it is above 0.
            (true, _) if x >= 0.0 => y,
            (true, _) => y + random.random_range(-1.0..1.0) * epsilon(dtype),
            (false, true) => y + x * random.random_range(-1.0..1.0) * epsilon(dtype),
            (false, false) => y,
        })
        .collect();
    Tensor::from_vec(numbers, shape)?.to_dtype(dtype)
}

/// How fast each `y` moves with its `x`, as its neighbours tell.
fn slopes(x: &[f64], y: &[f64]) -> Vec<f64> {
    let slope = |a: usize, b: usize| ((y[a] - y[b]) / (x[a] - x[b])).abs();
    let of = |at: usize| {
        let before = at.checked_sub(1).map(|before| slope(at, before));
        let behind = (at + 1 < x.len()).then(|| slope(at, at + 1));
        let known = before.into_iter().chain(behind);
        known.filter(|slope| slope.is_finite()).fold(0.0, f64::max)
    };
    (0..x.len().min(y.len())).map(of).collect()
}

/// The spacing of numbers around 1.
pub(crate) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}

/// A number of this size, above or below 0: rounding does not take all of it away again.
fn either_way(random: &mut StdRng, size: Range<f64>) -> f64 {
    let size = random.random_range(size);
    if random.random_bool(0.5) { size } else { -size }
}

/// The tensor, its numbers moved.
///
/// # Errors
/// Returns an error if its numbers cannot be read.
pub(crate) fn moved(x: &Tensor, step: &Step, random: &mut StdRng) -> Result<Tensor> {
    let dtype = x.dtype()?;
    if !dtype.is_floating_point() {
        let is_wrapped = |number: &f64| number.abs() > LARGEST_WHOLE as f64;
        return match x.to_vec()?.iter().any(is_wrapped) {
            true => Err(Error::msg("whole numbers that may wrap around")),
            false => Ok(x.clone()),
        };
    }
    let (exact, around_one) = match step {
        Step::Call { call, .. } => {
            let around_one = AROUND_ONE.split_whitespace().any(|name| name == call.name);
            (is_exact(call), around_one)
        }
        _ => (true, false),
    };
    let numbers = x.to_vec()?.into_iter().map(|number| {
        // A whole number that is exact stays.
        if exact && number.fract() == 0.0 {
            return number;
        }
        let by = either_way(random, 1.0..2.0) * epsilon(dtype);
        if around_one {
            return number + by * number.abs().max(1.0);
        }
        if number == 0.0 && !exact {
            return by * 0.01;
        }
        number * (1.0 + by)
    });
    let numbers: Vec<f64> = numbers.collect();
    let shape = x.dims()?;
    Tensor::from_vec(numbers, shape)?.to_dtype(dtype)
}

/// The tensor, each of its numbers moved: what a call computes on the way rounds like this.
///
/// # Errors
/// Returns an error if its numbers cannot be read.
pub(crate) fn nudged(x: &Tensor, random: &mut StdRng) -> Result<Tensor> {
    let dtype = x.dtype()?;
    if !dtype.is_floating_point() {
        return Ok(x.clone());
    }
    let numbers = x.to_vec()?.into_iter();
    let numbers: Vec<f64> = numbers
        .map(|number| number * (1.0 + either_way(random, 0.5..1.0) * epsilon(dtype)))
        .collect();
    Tensor::from_vec(numbers, x.dims()?)?.to_dtype(dtype)
}
