//! `Pool`: the memory of a run, used again once nothing reads it.
//!
//! Invariant: memory that is filled is read by nobody else. A run with the sizes of the one before
//! uses the same memory for the same values, and allocates none.

use std::sync::Arc;

use fx_core::{Error, Result};
use fx_kernels::conv::{self, Blocked};
use fx_kernels::{Activation, Buffer, Level};
use smallvec::SmallVec;

use super::array::{Array, Memory};
use super::draft::Id;

/// The sizes of images: batch, channels, height, width, and the halo around them.
pub(super) type ImageSizes = (usize, usize, usize, usize, usize);

/// The sizes of images like these, with a halo.
pub(super) fn sizes_of(x: &Blocked, halo: usize) -> ImageSizes {
    (x.batch(), x.channels(), x.height(), x.width(), halo)
}

/// Buffers and images of former steps.
#[derive(Default)]
pub(super) struct Pool {
    buffers: Shelf<Buffer>,
    images: Shelf<Blocked>,
    /// Whether the program returns what the step gives that runs.
    pub gives_result: bool,
    /// The image that the running step adds to, which no later step reads.
    pub adds_to: Option<Arc<Blocked>>,
    /// The inputs of the running step that its result may be written over, which no later step reads.
    pub lent: SmallVec<[(Id, Array); 2]>,
}

impl Pool {
    /// Has the next run use memory as the last one did.
    pub fn restart(&mut self) {
        self.buffers.next = 0;
        self.images.next = 0;
    }

    /// The bytes of all of it.
    pub fn bytes(&self) -> u64 {
        let buffers = self.buffers.items.iter().map(|buffer| buffer.len());
        let images = self.images.items.iter().map(|image| image.capacity());
        let floats: usize = buffers.chain(images).sum();
        (floats * size_of::<f32>()) as u64
    }

    /// A buffer whose first `len` floats a closure fills; they hold what was there before.
    pub fn buffer(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [f32]) -> Result<()>,
    ) -> Result<Arc<Buffer>> {
        self.buffers.fill(
            len,
            |buffer| buffer.len(),
            |buffer| {
                if buffer.len() < len {
                    // The old memory goes before the new comes.
                    *buffer = Buffer::default();
                    *buffer = Buffer::zeros(len);
                }
                fill(&mut buffer[..len])
            },
        )
    }

    /// Whether an array is a buffer of the pool that nothing else reads, and not a small part of it.
    pub fn is_alone(&self, array: &Array) -> bool {
        let Memory::Buffer(buffer) = &array.memory else {
            return false;
        };
        Arc::strong_count(buffer) == 2
            && array.is_contiguous()
            && buffer.len() / 2 <= array.numel()
            && self.place_of(array).is_some()
    }

    /// Which buffer of the pool an array is in.
    fn place_of(&self, array: &Array) -> Option<usize> {
        let Memory::Buffer(buffer) = &array.memory else {
            return None;
        };
        let mut items = self.buffers.items.iter();
        items.position(|item| Arc::ptr_eq(item, buffer))
    }

    /// What was lent of an input.
    pub fn lent_of(&self, id: Id) -> Option<Array> {
        let mut lent = self.lent.iter();
        let found = lent.find(|(lent, _)| *lent == id)?;
        Some(found.1.clone())
    }

    /// Gives what was lent of an input, if a result of these sizes may be written over it: the step holds it once more.
    pub fn taken_over(&mut self, id: Id, dims: &[usize]) -> Option<Array> {
        let at = self.lent.iter().position(|(lent, array)| {
            let is_held_twice = match &array.memory {
                Memory::Buffer(buffer) => Arc::strong_count(buffer) == 3,
                _ => false,
            };
            *lent == id && array.dims[..] == *dims && is_held_twice && !self.gives_result
        })?;
        Some(self.lent.swap_remove(at).1)
    }

    /// What a closure makes of an array, in order in a buffer of the pool, where it changes it.
    pub fn write_over(
        &mut self,
        array: Array,
        change: impl FnOnce(&mut [f32]) -> Result<()>,
    ) -> Result<Array> {
        let len = array.numel();
        let at = self.place_of(&array);
        let at = at.ok_or_else(|| Error::msg("an array is not in the pool"))?;
        self.buffers.requested(at);
        let Array {
            memory,
            start,
            dims,
            strides,
        } = array;
        drop(memory);
        let item = &mut self.buffers.items[at];
        let buffer = change_alone(item, |buffer| change(&mut buffer[start..start + len]))?;
        Ok(Array {
            memory: Memory::Buffer(buffer),
            start,
            dims,
            strides,
        })
    }

    /// Images of these sizes that a closure fills; their halo is zero, and inside is what they held
    /// before.
    pub fn image(
        &mut self,
        (batch, channels, height, width, halo): ImageSizes,
        fill: impl FnOnce(&mut Blocked) -> Result<()>,
    ) -> Result<Arc<Blocked>> {
        let needed = Blocked::floats(batch, channels, height, width, halo);
        self.images.fill(needed, Blocked::capacity, |image| {
            image.reset(batch, channels, height, width, halo);
            fill(image)
        })
    }

    /// Images that a closure changes, with what other images hold to begin with: these images
    /// themselves if nothing else reads them and their halo fits.
    pub fn image_over(
        &mut self,
        level: Level,
        before: Arc<Blocked>,
        halo: usize,
        change: impl FnOnce(&mut Blocked) -> Result<()>,
    ) -> Result<Arc<Blocked>> {
        if before.halo() == halo && Arc::strong_count(&before) == 2 {
            let mut items = self.images.items.iter_mut();
            if let Some(item) = items.find(|item| Arc::ptr_eq(item, &before)) {
                drop(before);
                return change_alone(item, change);
            }
        }
        self.image(sizes_of(&before, halo), |image| {
            conv::activate(level, &before, Activation::None, image).map_err(Error::other)?;
            change(image)
        })
    }
}

/// Memory of a kind, in the order in which it was made.
struct Shelf<T> {
    items: Vec<Arc<T>>,
    /// Which item each request of the last run got.
    plan: Vec<usize>,
    /// The number of requests of this run.
    next: usize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf {
            items: Vec::new(),
            plan: Vec::new(),
            next: 0,
        }
    }
}

impl<T: Default> Shelf<T> {
    /// Has a closure fill an item that nothing reads: that of the last run, or the smallest that is
    /// large enough, or the largest of those too small, which grows. One of more than twice the size
    /// is left to a value that needs it.
    fn fill(
        &mut self,
        needed: usize,
        capacity: impl Fn(&T) -> usize,
        fill: impl FnOnce(&mut T) -> Result<()>,
    ) -> Result<Arc<T>> {
        let is_free = |item: &Arc<T>| Arc::strong_count(item) == 1;
        let is_large = |item: &Arc<T>| capacity(item) / 2 > needed;
        let fits = |item: &Arc<T>| is_free(item) && capacity(item) >= needed && !is_large(item);
        let planned = self.plan.get(self.next).copied();
        let at = match planned.filter(|at| fits(&self.items[*at])) {
            Some(at) => at,
            None => {
                let free = self.items.iter().enumerate();
                let free = free.filter(|(_, item)| is_free(item) && !is_large(item));
                let best = free.min_by_key(|(_, item)| match capacity(item) {
                    enough if enough >= needed => (false, enough),
                    small => (true, usize::MAX - small),
                });
                best.map_or(self.items.len(), |(at, _)| at)
            }
        };
        if at == self.items.len() {
            self.items.push(Arc::default());
        }
        self.requested(at);
        change_alone(&mut self.items[at], fill)
    }

    /// Notes which item a request got.
    fn requested(&mut self, at: usize) {
        match self.plan.get_mut(self.next) {
            Some(planned) => *planned = at,
            None => self.plan.push(at),
        }
        self.next += 1;
    }
}

/// Has a closure change an item that nothing reads.
fn change_alone<T>(item: &mut Arc<T>, change: impl FnOnce(&mut T) -> Result<()>) -> Result<Arc<T>> {
    let alone = Arc::get_mut(item);
    change(alone.ok_or_else(|| Error::msg("memory is still read"))?)?;
    Ok(Arc::clone(item))
}
