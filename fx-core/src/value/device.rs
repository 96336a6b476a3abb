//! The device that holds a tensor.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A device, with PyTorch's name: `cpu`, `cuda:0`, `metal:0`.
///
/// ```
/// use fx_core::value::Device;
/// assert_eq!("cuda:1".parse::<Device>()?, Device::Cuda(1));
/// assert_eq!(Device::Cpu.to_string(), "cpu");
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// The CPU's memory.
    Cpu,
    /// A CUDA device, by number.
    Cuda(u32),
    /// A Metal device, by number.
    Metal(u32),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(n) => write!(f, "cuda:{n}"),
            Device::Metal(n) => write!(f, "metal:{n}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbered = |digits: &str| digits.parse().ok();
        let found = match text.split_once(':') {
            None if text == "cpu" => Some(Device::Cpu),
            Some(("cuda", digits)) => numbered(digits).map(Device::Cuda),
            Some(("metal", digits)) => numbered(digits).map(Device::Metal),
            _ => None,
        };
        found.ok_or_else(|| {
            Error::msg(format_args!(
                "no device `{text}`: expected `cpu`, `cuda:N` or `metal:N`"
            ))
        })
    }
}
