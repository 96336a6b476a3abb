//! Images from the plain layout `[n][channels][height][width]`, and back.
//!
//! Invariant: what is written lies inside the halo.

use crate::conv::Blocked;
use crate::conv::share::{self, Task};
use crate::error::check;
use crate::{BLOCK, Block, SizeError};

impl Blocked {
    /// Images from the plain layout `[n][channels][height][width]`.
    ///
    /// # Errors
    ///
    /// Where `plain` has another length than the sizes say.
    pub fn from_nchw(
        plain: &[f32],
        batch: usize,
        channels: usize,
        height: usize,
        width: usize,
        halo: usize,
    ) -> Result<Blocked, SizeError> {
        let mut image = Blocked::zeros(batch, channels, height, width, halo);
        image.copy_from_nchw(plain)?;
        Ok(image)
    }

    /// Fills the images from the plain layout `[n][channels][height][width]`.
    ///
    /// # Errors
    ///
    /// Where `plain` has another length than the images.
    pub fn copy_from_nchw(&mut self, plain: &[f32]) -> Result<(), SizeError> {
        let (channels, height, width, halo) =
            (self.channels(), self.height(), self.width(), self.halo());
        let area = height * width;
        check(
            "the plain image",
            self.batch() * channels * area,
            plain.len(),
        )?;
        let row = self.row();
        share::run(
            share::cut(self, 1, share::ALL_ROWS),
            plain.len() * 20,
            |task: Task<'_>| {
                let Task {
                    image,
                    plane,
                    y0,
                    rows,
                    mut planes,
                } = task;
                let first = plane * BLOCK;
                let lanes = (channels - first).min(BLOCK);
                let source = &plain[(image * channels + first) * area..][..lanes * area];
                for (y, line) in planes[0].chunks_exact_mut(row).enumerate().take(rows) {
                    interleave(
                        &source[(y0 + y) * width..],
                        area,
                        lanes,
                        &mut line[halo..halo + width],
                    );
                }
            },
        );
        Ok(())
    }

    /// Copies the images to the plain layout `[n][channels][height][width]`.
    ///
    /// # Errors
    ///
    /// Where `plain` has another length than the images.
    pub fn to_nchw(&self, plain: &mut [f32]) -> Result<(), SizeError> {
        let (channels, height, width) = (self.channels(), self.height(), self.width());
        let area = height * width;
        check(
            "the plain image",
            self.batch() * channels * area,
            plain.len(),
        )?;
        if plain.is_empty() {
            return Ok(());
        }
        let tasks: Vec<(usize, &mut [f32])> = plain
            .chunks_exact_mut(channels * area)
            .flat_map(|image| image.chunks_mut(BLOCK * area))
            .enumerate()
            .collect();
        let (row, origin, plane) = (self.row(), self.origin(), self.plane());
        share::run(
            tasks,
            self.planes() * area * BLOCK * 20,
            |(index, target)| {
                let source = &self.blocks()[index * plane + origin..(index + 1) * plane];
                for y in 0..height {
                    let line = &source[y * row..y * row + width];
                    for (lane, target) in target.chunks_exact_mut(area).enumerate() {
                        for (to, from) in target[y * width..(y + 1) * width].iter_mut().zip(line) {
                            *to = from[lane];
                        }
                    }
                }
            },
        );
        Ok(())
    }
}

/// Writes `lanes` rows of floats, `step` apart, as blocks; the spare lanes become zero.
fn interleave(source: &[f32], step: usize, lanes: usize, line: &mut [Block]) {
    if lanes < BLOCK {
        line.fill([0.0; BLOCK]);
    }
    for lane in 0..lanes {
        let source = &source[lane * step..lane * step + line.len()];
        for (to, from) in line.iter_mut().zip(source) {
            to[lane] = *from;
        }
    }
}
