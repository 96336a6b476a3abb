//! Fourier transforms of the frames of signals, and signals from them: made of blocks, windows and `rfft`.

use crate::op;
use fx_core::passes::DecomposedCall;
use fx_core::{Error, Result};

use super::blocks::{fold, unfold};
use super::create::{ones, zeros_like};
use super::dims::{narrow, select};
use super::fft::{fft, irfft, rfft};
use super::padding::pad;
use super::shape::stack;
use super::views::{expand, reshape, unsqueeze};
use crate::error::{require, unfit};
use crate::tensor::Tensor;
use fx_core::value::DType;

/// How a signal is cut into frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frames {
    n_fft: usize,
    hop: usize,
    win: usize,
    center: bool,
    normalized: bool,
    onesided: bool,
}

impl Frames {
    /// Those of a call; hops are a fourth of a frame, and windows whole frames, unless it says another.
    fn new(
        op: &str,
        n_fft: usize,
        [hop, win]: [Option<usize>; 2],
        [center, normalized, onesided]: [bool; 3],
    ) -> Result<Frames> {
        let (hop, win) = (hop.unwrap_or(n_fft / 4), win.unwrap_or(n_fft));
        require(op, hop > 0 && win > 0 && win <= n_fft)?;
        Ok(Frames {
            n_fft,
            hop,
            win,
            center,
            normalized,
            onesided,
        })
    }

    pub(crate) fn of(op: &str, call: &DecomposedCall<'_>, onesided: bool) -> Result<Frames> {
        Frames::new(
            op,
            call.arg("n_fft")?,
            [call.arg("hop_length")?, call.arg("win_length")?],
            [call.arg("center")?, call.arg("normalized")?, onesided],
        )
    }

    fn norm(self) -> Option<&'static str> {
        self.normalized.then_some("ortho")
    }

    /// The window in the middle of a frame: of ones, unless one is given.
    fn window(self, given: Option<&Tensor>, dtype: DType) -> Result<Tensor> {
        let window = match given {
            Some(window) => window.clone(),
            None => ones([self.win as i64], Some(dtype))?,
        };
        let before = (self.n_fft - self.win) / 2;
        let after = self.n_fft - self.win - before;
        match (before, after) {
            (0, 0) => Ok(window),
            sides => pad(&window, [sides.0 as i64, sides.1 as i64], "constant", None),
        }
    }

    /// How many elements so many frames cover.
    fn covered(self, count: usize) -> Option<usize> {
        count
            .checked_sub(1)?
            .checked_mul(self.hop)?
            .checked_add(self.n_fft)
    }
}

/// The transforms of the frames of a signal, `[n]`, or of each row, `[.., n]`: complex, `[.., frequencies, frames, 2]`.
///
/// A frame has `n_fft` elements, and begins `hop_length` (by default a fourth of that) after the one before. It is
/// multiplied with a `window` of `win_length` elements, by default as many as the frame has, which stands in its
/// middle; without one with ones. With `center` the signal is padded by half a frame at both ends, by `pad_mode` of
/// [`pad`](super::padding::pad()), so that frame `t` has its middle at `t * hop_length`. `normalized` divides by the
/// root of `n_fft`. Without `onesided` all `n_fft` frequencies are there, else `n_fft / 2 + 1`, which the others mirror.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::ones(16)?;
/// let window = ops::signal::windows::hann(8, false, None)?;
/// let y = ops::stft(&x, 8, Some(4), None, Some(&window), true, "reflect", false, true)?;
/// assert_eq!(y.dims()?, [5, 5, 2]);
/// let again = ops::istft(&y, 8, Some(4), None, Some(&window), true, false, None, None)?;
/// assert!(fx_nn::allclose(&again, &x, 1e-5, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the signal has other dims, or is shorter than a frame, a length does not fit, the window is not of
/// its length, or a tensor is neither `float32` nor `float64`.
#[op(method, member, path = "fx_nn::ops::stft")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn stft(
    x: &Tensor,
    n_fft: usize,
    hop_length: Option<usize>,
    win_length: Option<usize>,
    window: Option<&Tensor>,
    #[default(true)] center: bool,
    #[default("reflect")] pad_mode: &str,
    #[default(false)] normalized: bool,
    #[default(true)] onesided: bool,
) -> Result<Tensor> {
    let op = "stft";
    let of = Frames::new(
        op,
        n_fft,
        [hop_length, win_length],
        [center, normalized, onesided],
    )?;
    let single = |x: &Tensor| Ok::<_, Error>(matches!(x.dtype()?, DType::F32 | DType::F64));
    require(op, single(x)?)?;
    if let Some(window) = window {
        require(op, window.dims()? == [of.win] && single(window)?)?;
    }
    let rank = x.dims()?.len();
    require(op, rank == 1 || rank == 2)?;
    transforms((x, rank, x.dtype()?), window, of, pad_mode)
}

/// What [`stft`] is differentiated as.
pub(crate) fn composed_stft(
    (x, rank, dtype): (&Tensor, usize, DType),
    call: &DecomposedCall<'_>,
) -> Result<Tensor> {
    let window: Option<Tensor> = call.arg("window")?;
    let of = Frames::of("stft", call, call.arg("onesided")?)?;
    let pad_mode: String = call.arg("pad_mode")?;
    transforms((x, rank, dtype), window.as_ref(), of, &pad_mode)
}

fn transforms(
    (x, rank, dtype): (&Tensor, usize, DType),
    window: Option<&Tensor>,
    of: Frames,
    pad_mode: &str,
) -> Result<Tensor> {
    // [batch, 1, n]
    let mut rows = match rank {
        1 => unsqueeze(&unsqueeze(x, 0)?, 0)?,
        _ => unsqueeze(x, 1)?,
    };
    if of.center {
        let side = (of.n_fft / 2) as i64;
        rows = pad(&rows, [side, side], pad_mode, None)?;
    }
    let frames = unfold(&unsqueeze(&rows, 1)?, (1, of.n_fft), 1, 0, (1, of.hop))?;
    let frames = (frames * unsqueeze(&of.window(window, dtype)?, -1)?)?;
    let y = match of.onesided {
        true => rfft(&frames, None, 1, of.norm())?,
        false => {
            let parts = stack(&[frames.clone(), zeros_like(&frames, None)?], -1)?;
            fft(&parts, None, 1, of.norm())?
        }
    };
    match rank {
        1 => select(&y, 0, 0),
        _ => Ok(y),
    }
}

/// The signal of which [`stft`] gave these transforms: the sum of the frames, divided by that of the squared windows.
///
/// `x` is complex, `[.., frequencies, frames, 2]`, and the result `[.., n]`. `onesided` says whether there are
/// `n_fft / 2 + 1` frequencies, which is seen by their number unless it is given. With `length` the result has so many
/// elements, cut or padded with zeros.
///
/// # Errors
/// Returns an error if the tensor has other dims or no elements, the number of frequencies is another, a length does not
/// fit, the window is not of its length, or the windows leave an element out: their squares sum to less than 1e-11.
#[op(method, member, path = "fx_nn::ops::istft")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn istft(
    x: &Tensor,
    n_fft: usize,
    hop_length: Option<usize>,
    win_length: Option<usize>,
    window: Option<&Tensor>,
    #[default(true)] center: bool,
    #[default(false)] normalized: bool,
    onesided: Option<bool>,
    length: Option<usize>,
) -> Result<Tensor> {
    let op = "istft";
    let shape = x.dims()?;
    let [.., frequencies, _, _] = shape else {
        return Err(unfit(op));
    };
    let onesided = onesided.unwrap_or(*frequencies != n_fft);
    let of = Frames::new(
        op,
        n_fft,
        [hop_length, win_length],
        [center, normalized, onesided],
    )?;
    require(op, of.hop <= of.win)?;
    if let Some(window) = window {
        require(
            op,
            window.dims()? == [of.win] && window.dtype()? == x.dtype()?,
        )?;
    }
    let (sum, squares) = sums((x, shape, x.dtype()?), window, of, length)?;
    let squares_are = squares.to_vec()?;
    require(op, !squares_are.is_empty())?;
    // Beside nan, which is in the result then, nothing is the least.
    let least = squares_are.iter().fold(f64::INFINITY, |least, x| {
        match least.is_nan() || x.is_nan() {
            true => f64::NAN,
            false => least.min(x.abs()),
        }
    });
    if least < 1e-11 {
        return Err(Error::msg(format_args!(
            "{op}: an element has no window, the least sum of squares is {least:e}: give a shorter hop, or `center`"
        )));
    }
    signal(&sum, &squares, of, shape, length)
}

/// What [`istft`] is differentiated as.
pub(crate) fn composed_istft(
    (x, shape, dtype): (&Tensor, &[usize], DType),
    window: Option<&Tensor>,
    of: Frames,
    length: Option<usize>,
) -> Result<Tensor> {
    let (sum, squares) = sums((x, shape, dtype), window, of, length)?;
    signal(&sum, &squares, of, shape, length)
}

/// The summed frames, and the summed squares of their windows, where the signal is.
fn sums(
    (x, shape, dtype): (&Tensor, &[usize], DType),
    window: Option<&Tensor>,
    of: Frames,
    length: Option<usize>,
) -> Result<(Tensor, Tensor)> {
    let op = "istft";
    let [lead @ .., frequencies, count, 2] = shape else {
        return Err(unfit(op));
    };
    let expected = if of.onesided {
        of.n_fft / 2 + 1
    } else {
        of.n_fft
    };
    require(op, lead.len() <= 1 && *frequencies == expected)?;
    let batch = lead.first().copied().unwrap_or(1);
    let covered = of.covered(*count).ok_or_else(|| unfit(op))?;
    let x = match lead {
        [] => unsqueeze(x, 0)?,
        _ => x.clone(),
    };
    // The other half mirrors the first one.
    let half = match of.onesided {
        true => x,
        false => narrow(&x, 1, 0, (of.n_fft / 2 + 1) as i64)?,
    };
    let frames = irfft(&half, Some((of.n_fft as i64).into()), 1, of.norm())?;
    let window = unsqueeze(&of.window(window, dtype)?, -1)?;
    let squares = expand(&(&window * &window)?, [1, of.n_fft as i64, *count as i64])?;
    let (first, last) = of.range(covered, length);
    let summed = |frames: &Tensor, batch: usize| {
        let y = fold(frames, (1, covered), (1, of.n_fft), 1, 0, (1, of.hop))?;
        let y = reshape(&y, [batch as i64, covered as i64])?;
        let last = last.min(covered);
        narrow(&y, 1, first as i64, last.saturating_sub(first) as i64)
    };
    Ok((summed(&(frames * window)?, batch)?, summed(&squares, 1)?))
}

impl Frames {
    /// Where the signal is among the elements that frames cover.
    fn range(self, covered: usize, length: Option<usize>) -> (usize, usize) {
        let first = if self.center { self.n_fft / 2 } else { 0 };
        let last = match length {
            Some(length) => first.saturating_add(length),
            None if self.center => covered.saturating_sub(self.n_fft / 2),
            None => covered,
        };
        (first.min(covered), last)
    }
}

/// The quotient of both sums, as long as it is asked for.
fn signal(
    sum: &Tensor,
    squares: &Tensor,
    of: Frames,
    shape: &[usize],
    length: Option<usize>,
) -> Result<Tensor> {
    let mut y = (sum / squares)?;
    let count = shape[shape.len() - 2];
    let covered = of.covered(count).ok_or_else(|| unfit("istft"))?;
    let (_, last) = of.range(covered, length);
    if last > covered {
        y = pad(&y, [0, (last - covered) as i64], "constant", None)?;
    }
    match shape.len() {
        3 => select(&y, 0, 0),
        _ => Ok(y),
    }
}
