//! `Pool`: the buffers of a run, used again once nothing reads them.
//!
//! Invariant: a buffer that is handed out is read by nobody else.

use std::sync::Arc;

use fx_kernels::Buffer;
use fx_kernels::conv::Blocked;

/// The sizes of images: batch, channels, height, width, and the halo around them.
pub(super) type ImageSizes = (usize, usize, usize, usize, usize);

/// Buffers and images of former steps.
#[derive(Default)]
pub(super) struct Pool {
    buffers: Vec<Arc<Buffer>>,
    images: Vec<Arc<Blocked>>,
    /// Whether the program returns what the step gives that runs.
    pub gives_result: bool,
}

impl Pool {
    /// A buffer of at least `len` floats, with what it held before.
    pub fn buffer(&mut self, len: usize) -> Arc<Buffer> {
        let free = |buffer: &Arc<Buffer>| Arc::strong_count(buffer) == 1;
        let fitting = self.buffers.iter().enumerate();
        let fitting = fitting.filter(|(_, buffer)| buffer.len() >= len && free(buffer));
        match fitting.min_by_key(|(_, buffer)| buffer.len()) {
            Some((at, _)) => self.buffers.swap_remove(at),
            None => {
                // A free buffer that is too small would stay beside the new one.
                let small = self.buffers.iter().position(free);
                if let Some(at) = small {
                    self.buffers.swap_remove(at);
                }
                Arc::new(Buffer::zeros(len))
            }
        }
    }

    /// Has a buffer used again, once nothing else reads it.
    pub fn keep(&mut self, buffer: &Arc<Buffer>) {
        self.buffers.push(Arc::clone(buffer));
    }

    /// Images of these sizes; their halo is zero, and inside is what they held before.
    pub fn image(&mut self, sizes: ImageSizes) -> Arc<Blocked> {
        let (batch, channels, height, width, halo) = sizes;
        let free = |image: &Arc<Blocked>| Arc::strong_count(image) == 1;
        let same = |image: &Arc<Blocked>| {
            (
                image.batch(),
                image.channels(),
                image.height(),
                image.width(),
                image.halo(),
            ) == sizes
        };
        let found = self.images.iter().position(|i| free(i) && same(i));
        let found = found.or_else(|| self.images.iter().position(free));
        let mut image = match found {
            Some(at) => self.images.swap_remove(at),
            None => Arc::default(),
        };
        if let Some(image) = Arc::get_mut(&mut image) {
            image.reset(batch, channels, height, width, halo);
        }
        image
    }

    /// Has images used again, once nothing else reads them.
    pub fn keep_image(&mut self, image: &Arc<Blocked>) {
        self.images.push(Arc::clone(image));
    }
}
