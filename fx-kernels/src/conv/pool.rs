//! Pools on blocked images. Windows are clipped to the image before they are read, so a pool needs no halo.

pub use fx_static::PoolSpec;
use fx_static::Window;
use pulp::{Simd, WithSimd};

use crate::conv::Blocked;
use crate::conv::share::{self, Task};
use crate::error::check;
use crate::vector::by_block;
use crate::{BLOCK, Block, Level, SizeError};

/// Fails where a size is zero, or the padding is more than half of the window.
fn check_pool(spec: &PoolSpec) -> Result<(), SizeError> {
    for side in spec.kernel.iter().chain(&spec.stride).chain(&spec.dilation) {
        check("a size of the pool", 1, (*side).min(1))?;
    }
    for i in 0..2 {
        let most = spec.kernel[i] / 2;
        check(
            "the padding of the pool",
            spec.padding[i].min(most),
            spec.padding[i],
        )?;
    }
    Ok(())
}

/// The windows along one side.
fn windows(spec: &PoolSpec, i: usize, size: usize) -> Vec<Window> {
    (0..spec.side(i, size))
        .map(|o| spec.window(i, size, o))
        .collect()
}

/// The largest value of each window; NaN where the window has one.
///
/// # Errors
///
/// Where a size of the pool is zero, its padding more than half of its window, or `out` has other sizes than the result.
pub fn max_pool(
    level: Level,
    input: &Blocked,
    spec: &PoolSpec,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    check_pool(spec)?;
    let rows = windows(spec, 0, input.height());
    let columns = windows(spec, 1, input.width());
    pool(level, input, (&rows, &columns), Some(spec.dilation), out)
}

/// The mean of each window. NaN and infinities pass.
///
/// # Errors
///
/// Where a size of the pool is zero, its padding more than half of its window, its dilation not 1, or `out` has other
/// sizes than the result.
pub fn average_pool(
    level: Level,
    input: &Blocked,
    spec: &PoolSpec,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    check_pool(spec)?;
    for step in spec.dilation {
        check("the dilation of an average pool", 1, step)?;
    }
    let rows = windows(spec, 0, input.height());
    let columns = windows(spec, 1, input.width());
    pool(level, input, (&rows, &columns), None, out)
}

/// The means of windows that divide the image into as many rows and columns as `out` has, as PyTorch's
/// `adaptive_avg_pool2d`.
///
/// # Errors
///
/// Where `out` has another batch or other channels than the input, or the input has no pixels and `out` has.
pub fn adaptive_average_pool(
    level: Level,
    input: &Blocked,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    let windows = |size: usize, count: usize| -> Vec<Window> {
        let window = |i: usize| {
            let (first, last) = (i * size / count, ((i + 1) * size).div_ceil(count));
            Window {
                first,
                last,
                count: last - first,
            }
        };
        (0..count).map(window).collect()
    };
    if out.height() * out.width() > 0 {
        check(
            "a side of the input",
            1,
            (input.height() * input.width()).min(1),
        )?;
    }
    let rows = windows(input.height(), out.height());
    let columns = windows(input.width(), out.width());
    pool(level, input, (&rows, &columns), None, out)
}

/// The mean of each channel of each image, as rows `[n, channels]`.
///
/// # Errors
///
/// Where `out` has another length.
pub fn global_average_pool(
    level: Level,
    input: &Blocked,
    out: &mut [f32],
) -> Result<(), SizeError> {
    check("the means", input.batch() * input.channels(), out.len())?;
    let mut means = Blocked::zeros(input.batch(), input.channels(), 1, 1, 0);
    adaptive_average_pool(level, input, &mut means)?;
    means.to_nchw(out)
}

/// Runs a pool: the largest value with `steps` between the pixels of a window, the mean without.
fn pool(
    level: Level,
    input: &Blocked,
    (windows, columns): (&[Window], &[Window]),
    steps: Option<[usize; 2]>,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    let sizes = (
        input.batch(),
        input.channels(),
        windows.len(),
        columns.len(),
    );
    out.expect("the result of the pool", sizes)?;
    let pixels: usize = windows.first().map_or(0, |w| w.last - w.first)
        * columns.first().map_or(0, |w| w.last - w.first);
    let work = out.planes() * out.height() * out.width() * BLOCK * (20 + 4 * pixels);
    let (row, halo) = (out.row(), out.halo());
    let band = share::band(out.height(), out.planes(), work);
    share::run(share::cut(out, 1, band), work, |task: Task<'_>| {
        let Task {
            image,
            plane,
            y0,
            rows,
            mut planes,
        } = task;
        let start = (image * input.channel_blocks() + plane) * input.plane();
        level.run(Kernel {
            input: &input.blocks()[start + input.origin()..start + input.plane()],
            row: input.row(),
            windows: &windows[y0..y0 + rows],
            columns,
            steps,
            out: planes[0],
            out_row: row,
            halo,
        });
    });
    Ok(())
}

/// Rows of one plane of 16 channels.
struct Kernel<'a> {
    input: &'a [Block],
    row: usize,
    windows: &'a [Window],
    columns: &'a [Window],
    steps: Option<[usize; 2]>,
    out: &'a mut [Block],
    out_row: usize,
    halo: usize,
}

impl WithSimd for Kernel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_block!(self.run::<S>(simd));
    }
}

impl Kernel<'_> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        for (rows, line) in self
            .windows
            .iter()
            .zip(self.out.chunks_exact_mut(self.out_row))
        {
            for (columns, out) in self.columns.iter().zip(&mut line[self.halo..]) {
                let result: [S::f32s; V] = match self.steps {
                    Some([down, right]) => {
                        let mut most = [simd.splat_f32s(f32::NEG_INFINITY); V];
                        for y in (rows.first..rows.last).step_by(down) {
                            let line = &self.input
                                [y * self.row + columns.first..y * self.row + columns.last];
                            for pixel in line.iter().step_by(right) {
                                let (x, _) = S::as_simd_f32s(pixel);
                                for v in 0..V {
                                    most[v] = larger(simd, most[v], x[v]);
                                }
                            }
                        }
                        most
                    }
                    None => {
                        let mut sum = [simd.splat_f32s(0.0); V];
                        for y in rows.first..rows.last {
                            for pixel in &self.input
                                [y * self.row + columns.first..y * self.row + columns.last]
                            {
                                let (x, _) = S::as_simd_f32s(pixel);
                                for v in 0..V {
                                    sum[v] = simd.add_f32s(sum[v], x[v]);
                                }
                            }
                        }
                        let count = simd.splat_f32s((rows.count * columns.count).max(1) as f32);
                        for sum in &mut sum {
                            *sum = simd.div_f32s(*sum, count);
                        }
                        sum
                    }
                };
                S::as_mut_simd_f32s(out).0.copy_from_slice(&result);
            }
        }
    }
}

/// The larger of two values; NaN where one is.
#[inline(always)]
fn larger<S: Simd>(simd: S, most: S::f32s, x: S::f32s) -> S::f32s {
    let next = simd.select_f32s(simd.greater_than_f32s(x, most), x, most);
    simd.select_f32s(simd.equal_f32s(x, x), next, x)
}
