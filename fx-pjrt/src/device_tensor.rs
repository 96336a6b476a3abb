//! `DeviceTensor`: a tensor in the memory of devices.
//!
//! Invariant: it has a buffer for each device of its placement; one that was donated is an error when it is read.

use std::sync::{Arc, OnceLock};

use fx_nn::prelude::*;
use smallvec::SmallVec;

use crate::buffer::{Buffer, signed};
use crate::client::{Client, Device};
use crate::element::{Host, with_bytes};
use crate::placement::Placement;

/// A tensor in the memory of one device, or split over several. It is not copied by runs: programs
/// take and give it where it is.
///
/// ```no_run
/// use fx_nn::prelude::*;
/// use fx_pjrt::{DeviceTensor, Pjrt};
/// let pjrt = Pjrt::cpu()?;
/// let there = DeviceTensor::new(pjrt.client(), &Tensor::from_vec((0..6u8).map(f32::from).collect(), 6)?)?;
/// let back = there.to_tensor()?;
/// assert_eq!(back.to_vec()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceTensor {
    dtype: DType,
    placement: Arc<Placement>,
    buffers: SmallVec<[Buffer; 1]>,
    /// The argument that it was donated to.
    donated_to: OnceLock<Arc<str>>,
}

impl DeviceTensor {
    /// A copy of a tensor on the first device of a client.
    ///
    /// # Errors
    /// Returns an error if the tensor has no data, or the device has no room for it.
    pub fn new(client: &Client, tensor: &Tensor) -> Result<Self> {
        match client.devices().first() {
            Some(device) => DeviceTensor::on(client, device, tensor),
            None => Err(Error::msg(
                "the client has no device in this process: `fx devices --load` shows what a plugin finds",
            )),
        }
    }

    /// A copy of a tensor on a device of the client.
    ///
    /// # Errors
    /// As [`new`](DeviceTensor::new).
    pub fn on(client: &Client, device: &Device, tensor: &Tensor) -> Result<Self> {
        let whole = Arc::new(Placement::replicated(tensor.dims()?.to_vec(), 1));
        DeviceTensor::placed(client, std::slice::from_ref(device), &whole, tensor)
    }

    /// A tensor of elements that the caller gives up, row-major: devices that read the host's memory
    /// use them where they are, such as those of a file that is mapped into memory. They are dropped once no device
    /// reads them, perhaps on a thread of the plugin.
    ///
    /// # Errors
    /// Returns an error if the bytes are another number than type and sizes ask for, or the device is another client's.
    pub fn from_bytes(
        client: &Client,
        device: &Device,
        dtype: DType,
        shape: &[usize],
        bytes: impl AsRef<[u8]> + Send + 'static,
    ) -> Result<Self> {
        let buffer = Buffer::owned(client, device, dtype, &signed(shape)?, bytes)?;
        let whole = Placement::replicated(shape.to_vec(), 1);
        Ok(DeviceTensor::of(dtype, Arc::new(whole), [buffer]))
    }

    /// The parts of a tensor on the devices that a placement names.
    pub(crate) fn placed(
        client: &Client,
        devices: &[Device],
        placement: &Arc<Placement>,
        tensor: &Tensor,
    ) -> Result<Self> {
        let dtype = tensor.dtype()?;
        let (shape, is_whole) = (signed(placement.part())?, placement.is_whole());
        let buffers = with_bytes(tensor, |bytes| {
            let parts = devices.iter().enumerate().map(|(at, device)| {
                if is_whole {
                    return Buffer::copied(client, device, dtype, &shape, bytes);
                }
                let part = placement.part_of(at, bytes, dtype.size_in_bytes())?;
                Buffer::owned(client, device, dtype, &shape, part)
            });
            parts.collect::<Result<SmallVec<[Buffer; 1]>>>()
        })?;
        Ok(DeviceTensor::of(dtype, placement.clone(), buffers))
    }

    pub(crate) fn of(
        dtype: DType,
        placement: Arc<Placement>,
        buffers: impl IntoIterator<Item = Buffer>,
    ) -> Self {
        DeviceTensor {
            dtype,
            placement,
            buffers: buffers.into_iter().collect(),
            donated_to: OnceLock::new(),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        self.placement.whole()
    }

    /// The number of devices that have a part of it.
    pub fn devices(&self) -> usize {
        self.placement.devices()
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    pub(crate) fn buffer(&self, device: usize) -> &Buffer {
        &self.buffers[device]
    }

    /// Says that its memory was given to an argument.
    pub(crate) fn donate(&self, argument: &Arc<str>) {
        let _ = self.donated_to.set(argument.clone());
    }

    /// An error if its memory was given away.
    pub(crate) fn readable(&self) -> Result<()> {
        if let Some(argument) = self.donated_to.get() {
            return Err(Error::msg(format_args!(
                "this tensor was donated to `{argument}`, and its memory has a result now: use the result, or do not donate"
            )));
        }
        Ok(())
    }

    /// Waits until the devices have computed it.
    ///
    /// # Errors
    /// Returns the error of the run that was to give it.
    pub fn wait(&self) -> Result<()> {
        self.readable()?;
        self.buffers.iter().try_for_each(Buffer::wait)
    }

    /// A copy on the host, once the devices have computed it.
    ///
    /// # Errors
    /// Returns an error if it was donated, the run that was to give it failed, or the copy does.
    pub fn to_tensor(&self) -> Result<Tensor> {
        self.readable()?;
        let (whole, dtype) = (self.placement.whole(), self.dtype);
        if self.placement.is_whole() {
            let host = self.buffers[0].to_host(dtype, whole)?;
            return host.into_tensor(dtype, whole);
        }
        let count = whole.iter().product();
        let mut host = Host::zeros(dtype, count)?;
        for at in self.placement.distinct() {
            let mut part = self.buffers[at].to_host(dtype, self.placement.part())?;
            let size = dtype.size_in_bytes();
            self.placement
                .put(at, part.bytes_mut(), host.bytes_mut(), size);
        }
        host.into_tensor(dtype, whole)
    }

    /// Where the elements lie in the memory of the first device: to see that a donated tensor's
    /// memory was used again.
    ///
    /// # Errors
    /// Returns an error if it was donated, or the plugin does not say it.
    pub fn address(&self) -> Result<usize> {
        self.readable()?;
        self.buffers[0].address()
    }
}
