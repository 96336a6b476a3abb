//! `Buffer`: memory of a device that holds a tensor, or a device's part of one.
//!
//! Invariant: a plugin's buffer is freed once, after its client is known to live; one that was donated is not read.

use fx_nn::prelude::*;

use crate::client::{Client, Device};
use crate::element::{Host, buffer_type};
use crate::event::Event;
use crate::plugin::call;
use crate::sys::{self, Structure};

/// A tensor in the memory of one device.
#[derive(Debug)]
pub(crate) struct Buffer {
    client: Client,
    device: *mut sys::PJRT_Device,
    buffer: *mut sys::PJRT_Buffer,
}

// SAFETY: a plugin's buffers may be used by any thread.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes over a buffer that a plugin gave.
    pub fn of(client: Client, device: &Device, buffer: *mut sys::PJRT_Buffer) -> Self {
        Buffer {
            client,
            device: device.device,
            buffer,
        }
    }

    /// Whether it is on a device of a client.
    pub fn is_on(&self, client: &Client, device: &Device) -> bool {
        self.client.is(client) && self.device == device.device
    }

    pub fn raw(&self) -> *mut sys::PJRT_Buffer {
        self.buffer
    }

    /// A copy of elements on a device. They are copied before this returns, since a tensor may be
    /// written in place afterwards.
    pub fn copied(
        client: &Client,
        device: &Device,
        dtype: DType,
        dims: &[i64],
        bytes: &[u8],
    ) -> Result<Self> {
        let during_call = sys::PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
        let (buffer, done) = Self::place(client, device, dtype, dims, bytes, during_call)?;
        // A plugin is done with the bytes when the call is over; that it failed is said here.
        done.wait().map(|()| buffer)
    }

    /// The elements that somebody owns, and gives up: a plugin whose devices read the host's memory
    /// uses them where they are, and others copy them while the caller goes on.
    pub fn owned(
        client: &Client,
        device: &Device,
        dtype: DType,
        dims: &[i64],
        owner: impl AsRef<[u8]> + Send + 'static,
    ) -> Result<Self> {
        let owner = Owner(Box::into_raw(Box::new(owner)));
        // SAFETY: the box is alive, and is not moved.
        let bytes: &[u8] = unsafe { (*owner.0).as_ref() };
        let stays = sys::PJRT_HostBufferSemantics_kImmutableZeroCopy;
        let (buffer, done) = Self::place(client, device, dtype, dims, bytes, stays)?;
        done.keep(owner);
        Ok(buffer)
    }

    fn place(
        client: &Client,
        device: &Device,
        dtype: DType,
        dims: &[i64],
        bytes: &[u8],
        semantics: sys::PJRT_HostBufferSemantics,
    ) -> Result<(Self, Event)> {
        client.check(device)?;
        let needed = dims.iter().try_fold(dtype.size_in_bytes(), |all, size| {
            all.checked_mul(usize::try_from(*size).ok()?)
        });
        if needed != Some(bytes.len()) {
            let needed = needed.map_or("more than there can be".to_string(), |n| n.to_string());
            return Err(Error::msg(format_args!(
                "a tensor of {dtype} with the sizes {dims:?} has {needed} bytes, and {} are given",
                bytes.len()
            )));
        }
        let mut args = sys::PJRT_Client_BufferFromHostBuffer_Args::sized();
        args.client = client.raw();
        args.data = bytes.as_ptr().cast();
        args.type_ = buffer_type(dtype)?;
        (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
        args.host_buffer_semantics = semantics;
        args.device = device.device;
        // SAFETY: the bytes are as many as type and sizes ask for, and stay as long as the semantics say: during the
        // call, or until the event, which the caller waits for or keeps their owner for.
        unsafe { call!(client.plugin(), PJRT_Client_BufferFromHostBuffer, args) }?;
        let done = Event::of(client.plugin(), args.done_with_host_buffer);
        Ok((Buffer::of(client.clone(), device, args.buffer), done))
    }

    /// A copy on the host, once the device has written the elements.
    ///
    /// # Errors
    /// Returns the error of the run that was to give it, or of the copy.
    pub fn to_host(&self, dtype: DType, shape: &[usize]) -> Result<Host> {
        let mut host = Host::zeros(dtype, shape.iter().product())?;
        // Row-major: the last dim is the innermost.
        let order: Vec<i64> = (0..shape.len() as i64).rev().collect();
        let mut layout = sys::PJRT_Buffer_MemoryLayout::sized();
        let mut tiled = sys::PJRT_Buffer_MemoryLayout_Tiled::sized();
        (tiled.minor_to_major, tiled.minor_to_major_size) = (order.as_ptr(), order.len());
        layout.type_ = sys::PJRT_Buffer_MemoryLayout_Type_Tiled;
        layout.value.tiled = tiled;
        let mut args = sys::PJRT_Buffer_ToHostBuffer_Args::sized();
        args.src = self.buffer;
        args.host_layout = &raw mut layout;
        let bytes = host.bytes_mut();
        (args.dst, args.dst_size) = (bytes.as_mut_ptr().cast(), bytes.len());
        let plugin = self.client.plugin();
        // SAFETY: the memory has the size that it is said to have, and stays until the event.
        unsafe { call!(plugin, PJRT_Buffer_ToHostBuffer, args) }?;
        let copied = Event::of(plugin, args.event).wait();
        if let Err(error) = copied {
            // Nobody knows whether the device still writes: the memory is given up.
            std::mem::forget(host);
            return Err(error);
        }
        Ok(host)
    }

    /// Waits until the device has written the elements.
    ///
    /// # Errors
    /// Returns the error of the run that was to give them.
    pub fn wait(&self) -> Result<()> {
        let mut args = sys::PJRT_Buffer_ReadyEvent_Args::sized();
        args.buffer = self.buffer;
        // SAFETY: the buffer is alive.
        unsafe { call!(self.client.plugin(), PJRT_Buffer_ReadyEvent, args) }?;
        Event::of(self.client.plugin(), args.event).wait()
    }

    /// Where the elements lie, for tests of donation.
    ///
    /// # Errors
    /// Returns an error if the plugin does not say it.
    pub fn address(&self) -> Result<usize> {
        let mut args = sys::PJRT_Buffer_UnsafePointer_Args::sized();
        args.buffer = self.buffer;
        // SAFETY: the buffer is alive. The address is not read from.
        unsafe { call!(self.client.plugin(), PJRT_Buffer_UnsafePointer, args) }?;
        Ok(args.buffer_pointer)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut args = sys::PJRT_Buffer_Destroy_Args::sized();
        args.buffer = self.buffer;
        // SAFETY: the buffer is ours, and is not used after this. Runs that read it hold its memory.
        let _ = unsafe { call!(self.client.plugin(), PJRT_Buffer_Destroy, args) };
    }
}

/// Somebody's bytes, at a place that moves of this do not change.
struct Owner<T>(*mut T);

// SAFETY: it is a box.
unsafe impl<T: Send> Send for Owner<T> {}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        // SAFETY: it is the box that was made, and is not used after this.
        let owner = unsafe { Box::from_raw(self.0) };
        // It may be dropped by a thread of the plugin, which a panic must not reach.
        let dropped = std::panic::AssertUnwindSafe(move || drop(owner));
        let _ = std::panic::catch_unwind(dropped);
    }
}

/// Sizes as devices have them.
pub(crate) fn signed(dims: &[usize]) -> Result<Vec<i64>> {
    let all = dims.iter().map(|size| i64::try_from(*size));
    all.collect::<std::result::Result<_, _>>()
        .map_err(Error::other)
}
