//! [`Blocked`]: images with their channels in blocks of 16 and a halo of zeros around each plane. It owns the invariant
//! that the halo is zero whatever memory the image reuses.

use crate::error::check;
use crate::{BLOCK, Block, Buffer, SizeError};

/// A batch of images, laid out as `[n][channels / 16][height + 2 halo][width + 2 halo][16]`.
///
/// The `halo` pixels around each plane are zero, so a convolution that pads reads them as they are. Where the channels
/// are no multiple of 16, the last block has spare channels; they hold finite numbers that mean nothing.
///
/// ```
/// use fx_kernels::conv::Blocked;
///
/// let plain: Vec<f32> = (0..2 * 3 * 4 * 5).map(|i| i as f32).collect();
/// let image = Blocked::from_nchw(&plain, 2, 3, 4, 5, 1)?;
/// assert_eq!((image.channels(), image.height(), image.width(), image.halo()), (3, 4, 5, 1));
/// let mut back = vec![0.0; plain.len()];
/// image.to_nchw(&mut back)?;
/// assert_eq!(back, plain);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Blocked {
    buffer: Buffer,
    batch: usize,
    channels: usize,
    height: usize,
    width: usize,
    halo: usize,
}

impl Blocked {
    /// Images of zeros.
    pub fn zeros(
        batch: usize,
        channels: usize,
        height: usize,
        width: usize,
        halo: usize,
    ) -> Blocked {
        let mut image = Blocked::default();
        image.reset(batch, channels, height, width, halo);
        image
    }

    /// No images yet, in memory that is there already.
    pub(crate) fn in_memory(buffer: Buffer) -> Blocked {
        Blocked {
            buffer,
            ..Blocked::default()
        }
    }

    /// Its memory.
    pub(crate) fn into_memory(self) -> Buffer {
        self.buffer
    }

    /// Gives the images other sizes, and keeps the memory where it is large enough.
    ///
    /// Where any size differs from before, the halo becomes zero again; what lies inside it is whatever the memory
    /// held, so a kernel has to write all of it.
    pub fn reset(
        &mut self,
        batch: usize,
        channels: usize,
        height: usize,
        width: usize,
        halo: usize,
    ) {
        if (batch, channels, height, width, halo) == self.sizes() {
            return;
        }
        (
            self.batch,
            self.channels,
            self.height,
            self.width,
            self.halo,
        ) = (batch, channels, height, width, halo);
        let needed = Blocked::floats(batch, channels, height, width, halo);
        if self.buffer.len() < needed {
            // The old memory goes before the new comes.
            self.buffer = Buffer::default();
            self.buffer = Buffer::zeros(needed);
        } else {
            self.clear_halo();
        }
    }

    /// The floats that images of these sizes take, with channels in whole blocks and the halo.
    pub fn floats(
        batch: usize,
        channels: usize,
        height: usize,
        width: usize,
        halo: usize,
    ) -> usize {
        let (rows, columns) = (height + 2 * halo, width + 2 * halo);
        batch * channels.div_ceil(BLOCK) * rows * columns * BLOCK
    }

    /// The floats that its memory holds: [`reset`](Blocked::reset) to sizes that need no more
    /// allocates nothing.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    fn sizes(&self) -> (usize, usize, usize, usize, usize) {
        (
            self.batch,
            self.channels,
            self.height,
            self.width,
            self.halo,
        )
    }

    fn clear_halo(&mut self) {
        let (halo, row, plane) = (self.halo, self.row(), self.plane());
        if halo == 0 || plane == 0 {
            return;
        }
        for plane in self.blocks_mut().chunks_exact_mut(plane) {
            let rows = plane.len() / row;
            for (y, line) in plane.chunks_exact_mut(row).enumerate() {
                if y < halo || y >= rows - halo {
                    line.fill([0.0; BLOCK]);
                } else {
                    line[..halo].fill([0.0; BLOCK]);
                    line[row - halo..].fill([0.0; BLOCK]);
                }
            }
        }
    }

    /// The number of images.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The channels of an image.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The rows of an image, without the halo.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixels of a row, without the halo.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The pixels of zeros on each side of a plane.
    pub fn halo(&self) -> usize {
        self.halo
    }

    /// The blocks of 16 channels of an image.
    pub fn channel_blocks(&self) -> usize {
        self.channels.div_ceil(BLOCK)
    }

    /// The planes of 16 channels of all images.
    pub(crate) fn planes(&self) -> usize {
        self.batch * self.channel_blocks()
    }

    /// The blocks of one row, with the halo.
    pub(crate) fn row(&self) -> usize {
        self.width + 2 * self.halo
    }

    /// The blocks of one plane, with the halo.
    pub(crate) fn plane(&self) -> usize {
        self.row() * (self.height + 2 * self.halo)
    }

    /// The place of pixel (0, 0) in a plane.
    pub(crate) fn origin(&self) -> usize {
        self.halo * self.row() + self.halo
    }

    /// All blocks, halos included, in the order of the layout.
    pub fn blocks(&self) -> &[Block] {
        &self.buffer.blocks()[..self.planes() * self.plane()]
    }

    /// All blocks. Whoever writes a halo breaks the convolutions that read it.
    pub(crate) fn blocks_mut(&mut self) -> &mut [Block] {
        let used = self.planes() * self.plane();
        &mut self.buffer.blocks_mut()[..used]
    }

    /// Fails where the sizes without the halo are not these.
    pub(crate) fn expect(
        &self,
        what: &'static str,
        (batch, channels, height, width): (usize, usize, usize, usize),
    ) -> Result<(), SizeError> {
        let same = (self.batch, self.channels, self.height, self.width)
            == (batch, channels, height, width);
        if same {
            return Ok(());
        }
        let found = self.batch * self.channels * self.height * self.width;
        let expected = batch * channels * height * width;
        check(what, expected, found)?;
        // As many floats, in another shape: the first side that differs says it.
        check(what, batch, self.batch)?;
        check(what, channels, self.channels)?;
        check(what, height, self.height)
    }
}
