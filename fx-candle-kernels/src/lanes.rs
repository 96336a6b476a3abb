//! Running products, extremes and logarithms of sums along the last dimension.

use candle_core::{CpuStorage, CustomOp1, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::couples::log_add_exp;
use super::dim::dim;
use super::integers;
use super::widen::widened;

/// The running function of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Run {
    Product,
    LogSum,
}

impl Run {
    fn name(self) -> &'static str {
        match self {
            Run::Product => "cumprod",
            Run::LogSum => "logcumsumexp",
        }
    }

    /// The results of one lane, in `f64`.
    fn forward(self, x: &[f64], y: &mut Vec<f64>) {
        match self {
            Run::Product => y.extend(x.iter().scan(1.0, |product, x| {
                *product *= x;
                Some(*product)
            })),
            Run::LogSum => y.extend(x.iter().scan(f64::NEG_INFINITY, |sum, x| {
                *sum = log_add_exp(*sum, *x);
                Some(*sum)
            })),
        }
    }

    /// The gradient of a lane.
    fn back(self, x: &[f64], y: &[f64], grad: &[f64], out: &mut Vec<f64>) {
        let start = out.len();
        match self {
            Run::Product => {
                // What the later results ask of an element's own product, by that of the next; no division, so that
                // zeros are as good as other factors.
                let mut asked = 0.0;
                for at in (0..x.len()).rev() {
                    let next = x.get(at + 1).copied().unwrap_or_default();
                    asked = grad[at] + next * asked;
                    out.push(asked);
                }
                out[start..].reverse();
                let mut before = 1.0;
                for (out, x) in out[start..].iter_mut().zip(x) {
                    *out *= before;
                    before *= x;
                }
            }
            Run::LogSum => {
                let share = |part: f64, whole: f64| match part == whole {
                    true => 1.0,
                    false => (part - whole).exp(),
                };
                let mut later = 0.0;
                for at in (0..x.len()).rev() {
                    let carried = match y.get(at + 1) {
                        Some(next) => later * share(y[at], *next),
                        None => 0.0,
                    };
                    later = grad[at] + carried;
                    out.push(later * share(x[at], y[at]));
                }
                out[start..].reverse();
            }
        }
    }
}

/// A run along lanes of a length.
#[derive(Clone, Copy)]
struct Along {
    run: Run,
    size: usize,
}

struct Back(Along);

fn wide(name: &str, storage: &CpuStorage, layout: &Layout) -> Result<Vec<f64>> {
    let Some((from, to)) = layout.contiguous_offsets() else {
        bail!("{name}: the tensor is not contiguous")
    };
    match storage {
        CpuStorage::F32(x) => Ok(x[from..to].iter().map(|x| f64::from(*x)).collect()),
        CpuStorage::F64(x) => Ok(x[from..to].to_vec()),
        _ => bail!("{name}: the dtype is neither f32 nor f64"),
    }
}

/// Converts to the type of `like`.
fn narrow(y: Vec<f64>, like: &CpuStorage) -> CpuStorage {
    match like {
        CpuStorage::F32(_) => CpuStorage::F32(y.into_iter().map(|y| y as f32).collect()),
        _ => CpuStorage::F64(y),
    }
}

impl CustomOp1 for Along {
    fn name(&self) -> &'static str {
        self.run.name()
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = wide(self.run.name(), storage, layout)?;
        let mut y = Vec::with_capacity(x.len());
        for lane in x.chunks_exact(self.size) {
            self.run.forward(lane, &mut y);
        }
        Ok((narrow(y, storage), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let (x, y, grad) = (x.contiguous()?, y.contiguous()?, grad.contiguous()?);
        x.apply_op3_no_bwd(&y, &grad, &Back(*self)).map(Some)
    }
}

impl CustomOp3 for Back {
    fn name(&self) -> &'static str {
        self.0.run.name()
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        of_x: &Layout,
        y: &CpuStorage,
        of_y: &Layout,
        grad: &CpuStorage,
        of_grad: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Along { run, size } = self.0;
        let name = run.name();
        let (like, x, y) = (x, wide(name, x, of_x)?, wide(name, y, of_y)?);
        let grad = wide(name, grad, of_grad)?;
        let mut out = Vec::with_capacity(x.len());
        let lanes = x.chunks_exact(size).zip(y.chunks_exact(size));
        for ((x, y), grad) in lanes.zip(grad.chunks_exact(size)) {
            run.back(x, y, grad, &mut out);
        }
        Ok((narrow(out, like), of_x.shape().clone()))
    }
}

/// `x` with `at` as its last dimension, contiguous; `None` where there are no lanes to run along.
fn turned(x: &Tensor, at: usize) -> Result<Option<Tensor>> {
    if x.rank() == 0 || x.elem_count() == 0 {
        return Ok(None);
    }
    x.transpose(at, x.rank() - 1)?.contiguous().map(Some)
}

fn along(run: Run, x: &Tensor, d: i64) -> Result<Tensor> {
    let at = dim(run.name(), d, x.rank())?;
    widened(x, x, |x| match turned(&x, at)? {
        None => Ok(x),
        Some(lanes) => {
            let size = x.dims()[at];
            let y = lanes.apply_op1(Along { run, size })?;
            y.transpose(at, x.rank() - 1)?.contiguous()
        }
    })
}

/// The product of each element of `x` and those before it along `dim`; integers are multiplied as `i64` and wrap around.
///
/// # Errors
/// Returns an error if there is no such dimension.
pub fn cumprod(x: &Tensor, d: i64) -> Result<Tensor> {
    if x.dtype().is_float() {
        return along(Run::Product, x, d);
    }
    let at = dim("cumprod", d, x.rank())?;
    let x = x.to_dtype(candle_core::DType::I64)?;
    let Some(lanes) = turned(&x, at)? else {
        return Ok(x);
    };
    let mut numbers = integers::elements(&lanes)?;
    for lane in numbers.chunks_exact_mut(x.dims()[at]) {
        let mut product = 1i64;
        for number in lane {
            product = product.wrapping_mul(*number);
            *number = product;
        }
    }
    let y = integers::tensor(numbers, lanes.shape(), &x)?;
    y.transpose(at, x.rank() - 1)?.contiguous()
}

/// The logarithm of the sum of exponentials of each element of `x` and those before it along `dim`, without overflow.
///
/// # Errors
/// Returns an error if there is no such dimension, or `x` is not floating point.
pub fn log_cum_sum_exp(x: &Tensor, d: i64) -> Result<Tensor> {
    along(Run::LogSum, x, d)
}

/// The largest (or smallest) of each element of `x` and those before it along `dim`, and where it
/// is (`i64`): the last of several. NaN wins.
///
/// # Errors
/// Returns an error if there is no such dimension.
pub fn extremes(op: &str, x: &Tensor, d: i64, largest: bool) -> Result<(Tensor, Tensor)> {
    let at = dim(op, d, x.rank())?;
    let Some(lanes) = turned(x, at)? else {
        let places = Tensor::zeros(x.dims(), candle_core::DType::I64, x.device())?;
        return Ok((x.clone(), places));
    };
    let flat = lanes.detach().flatten_all()?;
    let size = x.dims()[at];
    let places = match x.dtype().is_float() {
        true => {
            let keys = flat.to_dtype(candle_core::DType::F64)?.to_vec1::<f64>()?;
            leaders(&keys, size, |new: f64, held: f64| {
                new.is_nan() || (!held.is_nan() && if largest { new >= held } else { new <= held })
            })
        }
        false => leaders(&integers::elements(&flat)?, size, |new, held| {
            if largest { new >= held } else { new <= held }
        }),
    };
    let last = x.rank() - 1;
    let places = Tensor::from_vec(places, lanes.dims(), x.device())?;
    let values = lanes.gather(&places, last)?.transpose(at, last)?;
    Ok((
        values.contiguous()?,
        places.transpose(at, last)?.contiguous()?,
    ))
}

/// The place of the element that leads up to each place of a lane; `takes` decides whether a new
/// one takes over.
fn leaders<T: Copy>(keys: &[T], size: usize, takes: impl Fn(T, T) -> bool) -> Vec<i64> {
    let mut found = Vec::with_capacity(keys.len());
    for lane in keys.chunks_exact(size) {
        let mut leader = 0;
        for (at, key) in lane.iter().enumerate() {
            if takes(*key, lane[leader]) {
                leader = at;
            }
            found.push(leader as i64);
        }
    }
    found
}
