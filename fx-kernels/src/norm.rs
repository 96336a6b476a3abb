//! Functions of rows: softmax, layer norm, RMS norm, group norm. Each row is read from the cache
//! after the first pass, and sums run in several lanes so that they stay exact to about 1e-7.

use fx_static::rows::{Kind, Rows};
pub(crate) use fx_static::rows::{largest, sum};
use rayon::prelude::*;

use crate::Level;
use crate::error::{SizeError, check};
use crate::scratch::lend;

/// The floats of a task: about 20 us.
const TASK: usize = 32 << 10;

/// Each row of its own copy, which is in the cache.
fn rows_in_place(
    level: Level,
    kind: Kind<'_>,
    size: usize,
    x: &mut [f32],
) -> Result<(), SizeError> {
    check_rows(size, x, x)?;
    if x.is_empty() {
        return Ok(());
    }
    let part = |part: &mut [f32]| {
        lend(size, |copy| {
            for out in part.chunks_exact_mut(size) {
                copy.copy_from_slice(out);
                level.run(Rows {
                    kind,
                    size,
                    first: 0,
                    x: copy,
                    out,
                });
            }
        });
    };
    let chunk = TASK.div_ceil(size) * size;
    match x.len() <= 2 * chunk {
        true => part(x),
        false => x.par_chunks_mut(chunk).for_each(part),
    }
    Ok(())
}

fn rows(level: Level, kind: Kind<'_>, size: usize, x: &[f32], out: &mut [f32]) {
    if x.is_empty() || size == 0 {
        return;
    }
    let together = TASK.div_ceil(size);
    let chunk = together * size;
    if x.len() <= 2 * chunk {
        return level.run(Rows {
            kind,
            size,
            first: 0,
            x,
            out,
        });
    }
    x.par_chunks(chunk)
        .zip(out.par_chunks_mut(chunk))
        .enumerate()
        .for_each(|(i, (x, out))| {
            level.run(Rows {
                kind,
                size,
                first: i * together,
                x,
                out,
            });
        });
}

fn check_rows(size: usize, x: &[f32], out: &[f32]) -> Result<(), SizeError> {
    check(
        "the input",
        x.len().checked_div(size).unwrap_or(0) * size,
        x.len(),
    )?;
    check("the result", x.len(), out.len())
}

fn check_row(what: &'static str, size: usize, row: Option<&[f32]>) -> Result<(), SizeError> {
    row.map_or(Ok(()), |row| check(what, size, row.len()))
}

/// `exp(x) / sum(exp(x))` of each row of `size` floats. A row of minus infinities is NaN.
///
/// # Errors
///
/// Where `x` is not a number of whole rows or `out` has another length.
///
/// ```
/// use fx_kernels::{Level, norm::softmax};
///
/// let mut out = [0.0; 4];
/// softmax(Level::best(), 2, &[0.0, 0.0, 1.0, f32::NEG_INFINITY], &mut out)?;
/// assert_eq!(out, [0.5, 0.5, 1.0, 0.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn softmax(level: Level, size: usize, x: &[f32], out: &mut [f32]) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    rows(level, Kind::Softmax, size, x, out);
    Ok(())
}

/// The logarithm of [`softmax`].
///
/// # Errors
///
/// Those of [`softmax`].
pub fn log_softmax(level: Level, size: usize, x: &[f32], out: &mut [f32]) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    rows(level, Kind::LogSoftmax, size, x, out);
    Ok(())
}

/// [`softmax`] of each row of `size` floats of `x`, in its place.
///
/// # Errors
///
/// Where `x` is not a number of whole rows.
///
/// ```
/// use fx_kernels::{Level, norm::softmax_in_place};
///
/// let mut x = [0.0, 0.0, 1.0, f32::NEG_INFINITY];
/// softmax_in_place(Level::best(), 2, &mut x)?;
/// assert_eq!(x, [0.5, 0.5, 1.0, 0.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn softmax_in_place(level: Level, size: usize, x: &mut [f32]) -> Result<(), SizeError> {
    rows_in_place(level, Kind::Softmax, size, x)
}

/// [`log_softmax`] of each row of `size` floats of `x`, in its place.
///
/// # Errors
///
/// Those of [`softmax_in_place`].
pub fn log_softmax_in_place(level: Level, size: usize, x: &mut [f32]) -> Result<(), SizeError> {
    rows_in_place(level, Kind::LogSoftmax, size, x)
}

/// `(x - mean) / sqrt(variance + eps) * weight + bias` of each row of `size` floats; the variance is
/// the mean of squares (not Bessel's), weight and bias have `size` floats.
///
/// # Errors
///
/// Where `x` is not a number of whole rows or another slice has another length.
///
/// ```
/// use fx_kernels::{Level, norm::layer_norm};
///
/// let mut out = [0.0; 2];
/// layer_norm(Level::best(), 2, &[1.0, 3.0], None, Some(&[0.0, 1.0]), 0.0, &mut out)?;
/// assert_eq!(out, [-1.0, 2.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn layer_norm(
    level: Level,
    size: usize,
    x: &[f32],
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    check_row("the weight", size, weight)?;
    check_row("the bias", size, bias)?;
    rows(level, Kind::Layer { weight, bias, eps }, size, x, out);
    Ok(())
}

/// `x / sqrt(mean(x^2) + eps) * weight` of each row of `size` floats.
///
/// # Errors
///
/// Those of [`layer_norm`].
pub fn rms_norm(
    level: Level,
    size: usize,
    x: &[f32],
    weight: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    check_row("the weight", size, weight)?;
    rows(level, Kind::Rms { weight, eps }, size, x, out);
    Ok(())
}

/// The sizes of [`group_norm`]'s input, `[batch, channels, area]`, and the number of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// The channels.
    pub channels: usize,
    /// The floats of a channel: height times width.
    pub area: usize,
    /// The groups that the channels are cut into.
    pub groups: usize,
}

/// Normalises each group of channels of each image of `[batch, channels, area]` by its mean and
/// variance; then weight and bias, a float for each channel.
///
/// # Errors
///
/// Where a slice has another length than the sizes ask for, or the groups do not divide the channels.
pub fn group_norm(
    level: Level,
    sizes: Groups,
    x: &[f32],
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) -> Result<(), SizeError> {
    let Groups {
        channels,
        area,
        groups,
    } = sizes;
    let each = channels.checked_div(groups).unwrap_or(0);
    check("the list of channels", each * groups, channels)?;
    check_rows(channels * area, x, out)?;
    check_row("the weight", channels, weight)?;
    check_row("the bias", channels, bias)?;
    rows(
        level,
        Kind::Group {
            weight,
            bias,
            eps,
            area,
        },
        each * area,
        x,
        out,
    );
    Ok(())
}
