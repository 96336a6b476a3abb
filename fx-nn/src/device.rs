//! Devices: the one place that opens them.
//!
//! Invariant: a device is opened once, and no other module names one.

use std::sync::{Mutex, PoisonError};

use candle_core::{Device as Opened, DeviceLocation, Tensor};
use fx_core::tensor::FakeTensor;
use fx_core::value::Device;
use fx_core::{Error, Result};

pub(crate) use crate::kernels::device::{current, on};

/// The CPU, on which kernels that pass elements one by one work.
pub(crate) static PROCESSOR: Opened = Opened::Cpu;

/// Runs `body`, in which layers, parameters and new tensors are created on a device: PyTorch's
/// `with torch.device(..)`.
///
/// Tensors computed from another tensor are on that tensor's device, here as elsewhere.
///
/// ```
/// use fx_nn::{prelude::*, with_device};
/// let layer = with_device(Device::Cpu, || nn::Linear::new(4, 5))??;
/// assert_eq!(layer.weight.device()?, Device::Cpu);
/// assert!(with_device(Device::Cuda(100), || ()).is_err());
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no such device, or the crate was built without the feature that
/// drives it (`cuda`, `metal`).
pub fn with_device<R>(device: Device, body: impl FnOnce() -> R) -> Result<R> {
    let device = open(device)?;
    Ok(on(&device, body))
}

/// The device of a tensor without data: the CPU, unless it has another.
pub(crate) fn of_fake(fake: &FakeTensor) -> Device {
    fake.device().unwrap_or(Device::Cpu)
}

/// Candle's handle of a device.
pub(crate) fn open(device: Device) -> Result<Opened> {
    static OPENED: Mutex<Vec<(Device, Opened)>> = Mutex::new(Vec::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = opened.iter().find(|(known, _)| *known == device) {
        return Ok(found.clone());
    }
    let (made, feature) = match device {
        Device::Cpu => return Ok(Opened::Cpu),
        Device::Cuda(n) => (Opened::new_cuda(n as usize), "cuda"),
        Device::Metal(n) => (Opened::new_metal(n as usize), "metal"),
        other => {
            return Err(Error::msg(format_args!(
                "{other}: tensors are on no such device"
            )));
        }
    };
    let made = made.map_err(|error| {
        Error::msg(format_args!(
            "{device} cannot be used: {error} (the feature `{feature}` of fx-nn drives such devices)"
        ))
    })?;
    opened.push((device, made.clone()));
    Ok(made)
}

/// The device of a tensor's elements, under PyTorch's name.
pub(crate) fn of(data: &Tensor) -> Option<Device> {
    let number = |number: usize| u32::try_from(number).ok();
    match data.device().location() {
        DeviceLocation::Cpu => Some(Device::Cpu),
        DeviceLocation::Cuda { gpu_id } => number(gpu_id).map(Device::Cuda),
        DeviceLocation::Metal { gpu_id } => number(gpu_id).map(Device::Metal),
    }
}
