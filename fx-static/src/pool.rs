//! Pools of images `[planes, rows, columns]`. Windows are clipped to the image.

use crate::PoolSpec;
use crate::kernel::Kernel;
use crate::source::source;

/// What is made of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooled {
    /// The largest; NaN if one is NaN.
    Largest,
    /// The sum over how many the window counts.
    Mean,
}

/// A pool. Reads images.
///
/// ```
/// use fx_static::{Kernel, Pool, PoolSpec, Pooled};
///
/// let pool = Pool { how: Pooled::Largest, spec: PoolSpec::new(2), size: [2, 4] };
/// let mut out = [0.0; 2];
/// pool.run(&[&[1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0]], &mut out);
/// assert_eq!(out, [4.0, 8.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pool {
    /// What is made of a window.
    pub how: Pooled,
    /// The windows.
    pub spec: PoolSpec,
    /// The rows and columns of an image.
    pub size: [usize; 2],
}

impl Kernel for Pool {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let [height, width] = self.size;
        let (out_height, out_width) = self.spec.out_size(height, width);
        if height * width == 0 || out_height * out_width == 0 {
            return;
        }
        let planes = reads[0].chunks_exact(height * width);
        for (x, out) in planes.zip(out.chunks_exact_mut(out_height * out_width)) {
            for (oy, row) in out.chunks_exact_mut(out_width).enumerate() {
                let rows = self.spec.window(0, height, oy);
                for (ox, out) in row.iter_mut().enumerate() {
                    let columns = self.spec.window(1, width, ox);
                    let ys = (rows.first..rows.last).step_by(self.spec.dilation[0]);
                    let xs = (columns.first..columns.last).step_by(self.spec.dilation[1]);
                    let all = ys.flat_map(|y| xs.clone().map(move |at| x[y * width + at]));
                    *out = match self.how {
                        Pooled::Largest => all.fold(f32::NEG_INFINITY, |most, x| {
                            if x > most || x.is_nan() { x } else { most }
                        }),
                        Pooled::Mean => all.sum::<f32>() / (rows.count * columns.count) as f32,
                    };
                }
            }
        }
    }
}

/// Means of windows that are chosen so that there are as many as asked for. Reads images.
///
/// ```
/// use fx_static::{AdaptivePool, Kernel};
///
/// let pool = AdaptivePool { size: [1, 3], out_size: [1, 2] };
/// let mut out = [0.0; 2];
/// pool.run(&[&[1.0, 2.0, 4.0]], &mut out);
/// assert_eq!(out, [1.5, 3.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaptivePool {
    /// The rows and columns of an image.
    pub size: [usize; 2],
    /// Those of the result.
    pub out_size: [usize; 2],
}

impl Kernel for AdaptivePool {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let [height, width] = self.size;
        let [out_height, out_width] = self.out_size;
        if height * width == 0 || out_height * out_width == 0 {
            return;
        }
        let window = |at: usize, size: usize, count: usize| {
            at * size / count..((at + 1) * size).div_ceil(count)
        };
        let planes = reads[0].chunks_exact(height * width);
        for (x, out) in planes.zip(out.chunks_exact_mut(out_height * out_width)) {
            for (at, out) in out.iter_mut().enumerate() {
                let rows = window(at / out_width, height, out_height);
                let columns = window(at % out_width, width, out_width);
                let count = rows.len() * columns.len();
                let sums = rows.map(|y| x[y * width..][columns.clone()].iter().sum::<f32>());
                *out = sums.sum::<f32>() / count as f32;
            }
        }
    }
}

source!(Pooled);
source!(Pool { how, spec, size });
source!(AdaptivePool { size, out_size });
