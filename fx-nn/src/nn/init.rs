//! Initial values of parameters, PyTorch's `torch.nn.init`: each function overwrites a tensor in place.
//!
//! ```
//! use fx_nn::prelude::*;
//! use fx_nn::nn::init::{self, FanMode, Nonlinearity};
//! let mut conv = nn::Conv2d::new(3, 8, 3)?;
//! init::kaiming_normal(&mut conv.weight, FanMode::FanOut, Nonlinearity::ReLU)?;
//! if let Some(bias) = &mut conv.bias {
//!     init::zeros(bias)?;
//! }
//! # Ok::<(), fx_nn::Error>(())
//! ```

use fx_core::{Error, Result};

use crate::device::PROCESSOR;
use crate::error::Fx;
use crate::kernels::elementary::Elementary;
use crate::kernels::{diagonal, linalg};
use crate::random;
use crate::tensor::Tensor;

/// The nonlinearity after a layer, which decides how large its weights are.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Nonlinearity {
    /// Nothing.
    Linear,
    /// The sigmoid.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// The rectifier.
    ReLU,
    /// The rectifier with this slope below zero.
    LeakyReLU(f64),
    /// The scaled exponential rectifier.
    SELU,
}

/// Whether a layer keeps the size of its results or of its gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FanMode {
    /// That of results: by the number of inputs per output.
    FanIn,
    /// That of gradients: by the number of outputs per input.
    FanOut,
}

/// The factor for a nonlinearity.
pub fn calculate_gain(nonlinearity: Nonlinearity) -> f64 {
    match nonlinearity {
        Nonlinearity::Linear | Nonlinearity::Sigmoid => 1.0,
        Nonlinearity::Tanh => 5.0 / 3.0,
        Nonlinearity::ReLU => std::f64::consts::SQRT_2,
        Nonlinearity::LeakyReLU(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
        Nonlinearity::SELU => 0.75,
    }
}

/// Uniform numbers from `low` to `high`.
///
/// # Errors
/// Returns an error if the tensor is symbolic.
pub fn uniform(tensor: &mut Tensor, low: f64, high: f64) -> Result<()> {
    let values = random::uniform(tensor.dims()?, low as f32, high as f32).fx()?;
    tensor.copy_from(&values.into())
}

/// Normal numbers.
///
/// # Errors
/// Returns an error if the tensor is symbolic.
pub fn normal(tensor: &mut Tensor, mean: f64, std: f64) -> Result<()> {
    let values = random::normal(tensor.dims()?);
    let values = values.and_then(|values| values.affine(std, mean)).fx()?;
    tensor.copy_from(&values.into())
}

/// Normal numbers that are between `least` and `most`; those outside are drawn again.
///
/// # Errors
/// Returns an error if the tensor is symbolic, or normal numbers are unlikely to be in that range.
pub fn trunc_normal(tensor: &mut Tensor, mean: f64, std: f64, least: f64, most: f64) -> Result<()> {
    if least.partial_cmp(&most) != Some(std::cmp::Ordering::Less)
        || mean < least - 2.0 * std
        || mean > most + 2.0 * std
    {
        return Err(Error::msg(format_args!(
            "trunc_normal: the mean {mean} is more than two deviations of {std} from [{least}, {most}]"
        )));
    }
    let dims = tensor.dims()?;
    let count = dims.iter().product();
    let mut values: Vec<f32> = Vec::with_capacity(count);
    while values.len() < count {
        let more = random::normal(&[count - values.len()]).fx()?;
        let more = more.to_vec1::<f32>().fx()?;
        let more = more.into_iter().map(|x| f64::from(x) * std + mean);
        let inside = more.filter(|x| (least..=most).contains(x));
        values.extend(inside.map(|x| x as f32));
    }
    let values = candle_core::Tensor::from_vec(values, dims, &PROCESSOR).fx()?;
    tensor.copy_from(&values.into())
}

/// One number everywhere.
///
/// # Errors
/// Returns an error if the tensor is symbolic.
pub fn constant(tensor: &mut Tensor, value: f64) -> Result<()> {
    let dims = tensor.dims()?;
    let value = candle_core::Tensor::new(value, &PROCESSOR);
    let values = value.and_then(|value| value.broadcast_as(dims)).fx()?;
    tensor.copy_from(&values.into())
}

/// Ones.
///
/// # Errors
/// Returns an error if the tensor is symbolic.
pub fn ones(tensor: &mut Tensor) -> Result<()> {
    constant(tensor, 1.0)
}

/// Zeros.
///
/// # Errors
/// Returns an error if the tensor is symbolic.
pub fn zeros(tensor: &mut Tensor) -> Result<()> {
    constant(tensor, 0.0)
}

/// The identity matrix: ones where both indices are the same.
///
/// # Errors
/// Returns an error if the tensor does not have two dims.
pub fn eye(tensor: &mut Tensor) -> Result<()> {
    let &[rows, columns] = tensor.dims()? else {
        return Err(of_dims("eye", "two", tensor));
    };
    let mut values = vec![0f32; rows * columns];
    (0..rows.min(columns)).for_each(|i| values[i * columns + i] = 1.0);
    tensor.copy_from(&Tensor::from_vec(values, (rows, columns))?)
}

/// A convolution that gives its input: a one in the middle of each kernel of a channel to itself, in each of `groups`.
///
/// # Errors
/// Returns an error if the tensor does not have three to five dims, or `groups` does not divide the
/// first.
pub fn dirac(tensor: &mut Tensor, groups: usize) -> Result<()> {
    let dims = tensor.dims()?.to_vec();
    if !(3..=5).contains(&dims.len()) {
        return Err(of_dims("dirac", "three to five", tensor));
    }
    if groups == 0 || !dims[0].is_multiple_of(groups) {
        return Err(Error::msg(format_args!(
            "dirac: {groups} groups do not divide {} output channels",
            dims[0]
        )));
    }
    let (outputs, inputs) = (dims[0] / groups, dims[1]);
    let kernel: usize = dims[2..].iter().product();
    let middle = dims[2..].iter().fold(0, |at, size| at * size + size / 2);
    let mut values = vec![0f32; dims.iter().product()];
    if kernel > 0 {
        for group in 0..groups {
            for channel in 0..outputs.min(inputs) {
                let output = group * outputs + channel;
                values[(output * inputs + channel) * kernel + middle] = 1.0;
            }
        }
    }
    tensor.copy_from(&Tensor::from_vec(values, dims)?)
}

/// Glorot's uniform numbers, which keep the size of results and gradients alike.
///
/// # Errors
/// Returns an error if the tensor has fewer than two dims.
pub fn xavier_uniform(tensor: &mut Tensor, gain: f64) -> Result<()> {
    let bound = 3f64.sqrt() * xavier(tensor, gain)?;
    uniform(tensor, -bound, bound)
}

/// Glorot's normal numbers, which keep the size of results and gradients alike.
///
/// # Errors
/// Returns an error if the tensor has fewer than two dims.
pub fn xavier_normal(tensor: &mut Tensor, gain: f64) -> Result<()> {
    let std = xavier(tensor, gain)?;
    normal(tensor, 0.0, std)
}

/// He's uniform numbers, for layers before a nonlinearity.
///
/// # Errors
/// Returns an error if the tensor has fewer than two dims.
pub fn kaiming_uniform(
    tensor: &mut Tensor,
    mode: FanMode,
    nonlinearity: Nonlinearity,
) -> Result<()> {
    let bound = 3f64.sqrt() * kaiming(tensor, mode, nonlinearity)?;
    uniform(tensor, -bound, bound)
}

/// He's normal numbers, for layers before a nonlinearity.
///
/// # Errors
/// Returns an error if the tensor has fewer than two dims.
pub fn kaiming_normal(
    tensor: &mut Tensor,
    mode: FanMode,
    nonlinearity: Nonlinearity,
) -> Result<()> {
    let std = kaiming(tensor, mode, nonlinearity)?;
    normal(tensor, 0.0, std)
}

/// Normal numbers, of which a part of each column is zero.
///
/// # Errors
/// Returns an error if the tensor does not have two dims, or the part is not in [0, 1].
pub fn sparse(tensor: &mut Tensor, sparsity: f64, std: f64) -> Result<()> {
    let &[rows, columns] = tensor.dims()? else {
        return Err(of_dims("sparse", "two", tensor));
    };
    if !(0.0..=1.0).contains(&sparsity) {
        return Err(Error::msg(format_args!(
            "sparse: {sparsity} is not part of a column: give a number in [0, 1]"
        )));
    }
    let zeros = (sparsity * rows as f64).ceil() as usize;
    let values = random::normal(&[rows, columns]).and_then(|values| values.affine(std, 0.0));
    let mut values: Vec<f32> = values
        .and_then(|values| values.flatten_all()?.to_vec1())
        .fx()?;
    for column in 0..columns {
        // The rows with the smallest keys of a random order.
        let keys = random::uniform(&[rows], 0.0, 1.0).and_then(|keys| keys.to_vec1::<f32>());
        let keys = keys.fx()?;
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
        order[..zeros]
            .iter()
            .for_each(|row| values[row * columns + column] = 0.0);
    }
    tensor.copy_from(&Tensor::from_vec(values, (rows, columns))?)
}

/// A matrix whose rows or columns, whichever are fewer, are orthogonal and of length `gain`; the dims behind the first are
/// one.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut weight = Tensor::zeros((2, 3))?;
/// nn::init::orthogonal(&mut weight, 2.0)?;
/// let square = weight.matmul(&weight.t()?)?;
/// let expected = (ops::eye(2, None, None)? * 4.0)?;
/// assert!(fx_nn::allclose(&square, &expected, 1e-5, 1e-5)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the tensor has fewer than two dims.
pub fn orthogonal(tensor: &mut Tensor, gain: f64) -> Result<()> {
    let op = "orthogonal";
    let dims = tensor.dims()?.to_vec();
    if dims.len() < 2 {
        return Err(of_dims(op, "two or more", tensor));
    }
    let columns = dims[1..].iter().product();
    if dims.contains(&0) {
        return Ok(());
    }
    let is_wide = dims[0] < columns;
    let turned = |x: candle_core::Tensor| if is_wide { x.t() } else { Ok(x) };
    let values = random::normal(&[dims[0], columns]).and_then(|values| {
        let (q, r) = linalg::qr(op, &turned(values)?, false)?;
        // Signs from the diagonal of R make all orthogonal matrices equally likely.
        let signs = Elementary::Sign.of(&diagonal::diagonal(op, &r, 0, 0, 1)?)?;
        turned(q.broadcast_mul(&signs)?)?
            .affine(gain, 0.0)?
            .reshape(dims)
    });
    tensor.copy_from(&values.fx()?.into())
}

/// How many inputs an output has, and how many outputs an input.
fn fans(tensor: &Tensor) -> Result<(f64, f64)> {
    match tensor.dims()? {
        [outputs, inputs, kernel @ ..] => {
            let kernel: usize = kernel.iter().product();
            Ok(((inputs * kernel) as f64, (outputs * kernel) as f64))
        }
        dims => Err(Error::msg(format_args!(
            "a tensor of shape {dims:?} has no inputs and outputs to count: it needs two dims at least"
        ))),
    }
}

fn xavier(tensor: &Tensor, gain: f64) -> Result<f64> {
    let (inputs, outputs) = fans(tensor)?;
    Ok(gain * (2.0 / (inputs + outputs).max(1.0)).sqrt())
}

fn kaiming(tensor: &Tensor, mode: FanMode, nonlinearity: Nonlinearity) -> Result<f64> {
    let (inputs, outputs) = fans(tensor)?;
    let fan = match mode {
        FanMode::FanIn => inputs,
        FanMode::FanOut => outputs,
    };
    Ok(calculate_gain(nonlinearity) / fan.max(1.0).sqrt())
}

fn of_dims(what: &str, wanted: &str, tensor: &Tensor) -> Error {
    Error::msg(format_args!(
        "{what}: the tensor has shape {:?}, and needs {wanted} dims",
        tensor.dims().unwrap_or_default()
    ))
}
