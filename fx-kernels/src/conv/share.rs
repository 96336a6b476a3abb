//! How the work on an image is cut into tasks and run on rayon's threads. The cut depends on sizes alone, so results do
//! not depend on the number of threads.

use rayon::prelude::*;

use crate::conv::Blocked;
use crate::{Block, Level};

/// As `band` of [`cut`]: a plane stays whole.
pub(crate) const ALL_ROWS: usize = usize::MAX;

/// Below this many floating-point operations, about 50 us, work stays on the caller's thread.
const SERIAL: usize = 7_000_000;

/// The operations that make a task worth its start.
pub(crate) const TASK: usize = 1_500_000;

/// Tasks that let 16 threads finish at nearly the same time.
pub(crate) const TASKS: usize = 32;

/// The rows of some planes of an image that one task writes.
pub(crate) struct Task<'a> {
    /// The image in the batch.
    pub image: usize,
    /// The first block of channels.
    pub plane: usize,
    /// The first row.
    pub y0: usize,
    /// The number of rows.
    pub rows: usize,
    /// The rows in each plane; each starts with the halo left of row `y0`.
    pub planes: Vec<&'a mut [Block]>,
}

/// Cuts the rows of an image into bands of `band` rows, and its planes into sets of `set`.
pub(crate) fn cut(out: &mut Blocked, set: usize, band: usize) -> Vec<Task<'_>> {
    let (halo, row, plane, height) = (out.halo(), out.row(), out.plane(), out.height());
    let blocks = out.channel_blocks();
    let mut tasks = Vec::new();
    if height == 0 || out.width() == 0 || blocks == 0 {
        return tasks;
    }
    let band = band.clamp(1, height);
    for (image, planes) in out
        .blocks_mut()
        .chunks_exact_mut(plane * blocks)
        .enumerate()
    {
        for (index, planes) in planes.chunks_mut(plane * set).enumerate() {
            let first = tasks.len();
            for (j, plane) in planes.chunks_exact_mut(plane).enumerate() {
                let inner = &mut plane[halo * row..(halo + height) * row];
                for (b, rows) in inner.chunks_mut(band * row).enumerate() {
                    if j == 0 {
                        let (y0, rows) = (b * band, rows.len() / row);
                        tasks.push(Task {
                            image,
                            plane: index * set,
                            y0,
                            rows,
                            planes: Vec::with_capacity(set),
                        });
                    }
                    tasks[first + b].planes.push(rows);
                }
            }
        }
    }
    tasks
}

/// The rows of a band, so that about [`TASKS`] tasks come out where the work is worth it.
///
/// `sets` is how many tasks there would be with whole planes, `work` the operations of all of them.
pub(crate) fn band(height: usize, sets: usize, work: usize) -> usize {
    let wanted = TASKS.min(work / TASK).max(1);
    let bands = wanted.div_ceil(sets.max(1));
    height.div_ceil(bands.max(1)).max(1)
}

/// The floats in a vector of this level.
pub(crate) fn lanes(level: Level) -> usize {
    match level {
        Level::Avx512 => 16,
        Level::Avx2 => 8,
        Level::Neon | Level::Simd128 => 4,
        Level::Scalar => 1,
    }
}

/// Runs all tasks: on rayon's threads where `work`, in floating-point operations, is worth it.
pub(crate) fn run<T: Send>(
    tasks: impl IntoIterator<Item = T>,
    work: usize,
    f: impl Fn(T) + Send + Sync,
) {
    let tasks = tasks.into_iter();
    if work < SERIAL || tasks.size_hint().1 == Some(1) {
        tasks.for_each(f);
    } else {
        let tasks: Vec<T> = tasks.collect();
        tasks.into_par_iter().with_max_len(1).for_each(f);
    }
}
