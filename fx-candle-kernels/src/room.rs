//! Sizes before anything is allocated: the one place that counts a shape's elements and checks
//! their memory.

use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Result, Tensor, bail};

/// Smaller allocations are not checked first.
const LARGE: usize = 64 << 20;

/// The number of elements of a shape.
///
/// # Errors
/// Returns an error if it, or the product of the sizes that are not 0, overflows: strides are such
/// products.
#[inline]
pub fn count(op: &str, dims: &[usize]) -> Result<usize> {
    let nonzero = dims
        .iter()
        .filter(|n| **n != 0)
        .try_fold(1usize, |product, n| product.checked_mul(*n))
        .filter(|product| isize::try_from(*product).is_ok());
    match nonzero {
        Some(_) if dims.contains(&0) => Ok(0),
        Some(product) => Ok(product),
        None => bail!("{op}: shape {dims:?} has more elements than can be counted"),
    }
}

/// The number of elements of a shape that fits into memory.
///
/// # Errors
/// Returns an error if the number of their bytes overflows, or they do not fit into memory.
pub fn of(op: &str, dims: &[usize], dtype: DType) -> Result<usize> {
    let elements = count(op, dims)?;
    let bytes = elements
        .checked_mul(dtype.size_in_bytes())
        .filter(|bytes| isize::try_from(*bytes).is_ok());
    match bytes {
        Some(bytes) if bytes <= LARGE || fits(bytes) => Ok(elements),
        _ => bail!(
            "{op}: there is not enough memory for a tensor of shape {dims:?} and type {dtype:?}"
        ),
    }
}

/// Whether so many bytes can be had. A failed allocation aborts the process, so it is first tried where it may fail; and
/// a system that lends more memory than it has ends the process when the memory is written.
fn fits(bytes: usize) -> bool {
    available().is_none_or(|there| bytes as u64 <= there)
        && Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

/// The bytes that the process may still take, where the system says so: Linux does.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let of = |name: &str| {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix(name))?;
        let number: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        number.checked_mul(1024)
    };
    let system = of("MemAvailable:")?.saturating_add(of("SwapFree:").unwrap_or(0));
    Some(system.min(allowed().unwrap_or(u64::MAX)))
}

/// What is left of the limits of the control groups around the process, as containers have them.
fn allowed() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let of_group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, group) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (root, limit, usage, cached) = match kind {
            "" => ("", "memory.max", "memory.current", "inactive_file "),
            kind if kind.split(',').any(|kind| kind == "memory") => (
                "memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file ",
            ),
            _ => return None,
        };
        let root = Path::new("/sys/fs/cgroup").join(root);
        let whole = root.join(group);
        let around = whole.ancestors().take_while(|path| path.starts_with(&root));
        let left = around.filter_map(|path| {
            let number = |name: &str| -> Option<u64> {
                let text = fs::read_to_string(path.join(name)).ok()?;
                text.trim().parse().ok()
            };
            // What only caches files is given back.
            let stat = fs::read_to_string(path.join("memory.stat")).unwrap_or_default();
            let cache = stat.lines().find_map(|line| line.strip_prefix(cached));
            let cache: u64 = cache.and_then(|n| n.parse().ok()).unwrap_or(0);
            let left = number(limit)?.saturating_sub(number(usage)?);
            Some(left.saturating_add(cache))
        });
        left.min()
    };
    groups.lines().filter_map(of_group).min()
}

/// Zeros of a shape on a device.
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn zeros(op: &str, dims: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    of(op, dims, dtype)?;
    Tensor::zeros(dims, dtype, device)
}

/// One number in a shape, on its device; `number` has no dimensions.
///
/// # Errors
/// Returns an error if it does not fit into memory.
pub fn full(op: &str, dims: &[usize], number: &Tensor) -> Result<Tensor> {
    of(op, dims, number.dtype())?;
    // An empty one would keep strides of 0.
    if dims.contains(&0) {
        return Tensor::zeros(dims, number.dtype(), number.device());
    }
    number.broadcast_as(dims)?.contiguous()
}
