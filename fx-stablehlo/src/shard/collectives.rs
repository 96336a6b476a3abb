//! Collectives: what devices give each other, as functions that a graph calls and threads run.
//!
//! Invariant: every device makes the same collectives in the same order; an error in one device ends the wait of all.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use fx_nn::prelude::*;

use super::mesh::Mesh;

/// The place where the devices of a run meet.
#[derive(Debug)]
pub(super) struct Exchange {
    state: Mutex<State>,
    wake: Condvar,
    devices: usize,
}

#[derive(Debug, Default)]
struct State {
    given: Vec<Option<Tensor>>,
    arrived: usize,
    left: usize,
    has_failed: bool,
}

impl Exchange {
    pub fn new(devices: usize) -> Self {
        let state = State {
            given: vec![None; devices],
            ..State::default()
        };
        Exchange {
            state: Mutex::new(state),
            wake: Condvar::new(),
            devices,
        }
    }

    /// Ends the waits of all devices.
    pub fn fail(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.has_failed = true;
        self.wake.notify_all();
    }

    /// What every device gives, in the order of the devices.
    fn all(&self, device: usize, x: &Tensor) -> Result<Vec<Tensor>> {
        let failed = || Error::msg("another device failed");
        let lock = |state| {
            self.wake
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner)
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of the meeting before leave first.
        while state.given[device].is_some() && !state.has_failed {
            state = lock(state);
        }
        state.given[device] = Some(x.clone());
        state.arrived += 1;
        self.wake.notify_all();
        while state.arrived < self.devices && !state.has_failed {
            state = lock(state);
        }
        if state.has_failed {
            return Err(failed());
        }
        let all: Option<Vec<Tensor>> = state.given.iter().cloned().collect();
        state.left += 1;
        if state.left == self.devices {
            (state.arrived, state.left) = (0, 0);
            state.given.iter_mut().for_each(|given| *given = None);
            self.wake.notify_all();
        }
        all.ok_or_else(failed)
    }
}

/// One device of a run: a thread.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub mesh: Mesh,
    pub index: usize,
    pub exchange: Arc<Exchange>,
}

thread_local! {
    static DEVICE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Runs a function as a device.
pub(super) fn as_device<R>(device: Device, run: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEVICE.with(|device| device.take());
        }
    }
    DEVICE.with(|current| current.replace(Some(device)));
    let _leave = Leave;
    run()
}

fn device() -> Result<Device> {
    let device = DEVICE.with(|device| device.borrow().clone());
    device.ok_or_else(|| {
        Error::msg("a collective outside of a run over devices: use `Partitioned::run`")
    })
}

impl Device {
    /// The place of a device along an axis.
    fn coordinate(&self, of: usize, axis: &str) -> usize {
        let behind = self
            .mesh
            .axes()
            .skip_while(|(name, _)| *name != axis)
            .skip(1);
        let stride: usize = behind.map(|(_, size)| size).product();
        of / stride % self.mesh.size(axis).unwrap_or(1)
    }

    /// The place of a device along axes, the slowest first.
    fn place(&self, of: usize, axes: &[&str]) -> usize {
        let step = |place: usize, axis: &&str| {
            place * self.mesh.size(axis).unwrap_or(1) + self.coordinate(of, axis)
        };
        axes.iter().fold(0, step)
    }

    /// What the devices that differ along axes alone give, in the order of their places.
    fn group(&self, axes: &[&str], x: &Tensor) -> Result<Vec<Tensor>> {
        let all = self.exchange.all(self.index, x)?;
        let others = self
            .mesh
            .axes()
            .map(|(name, _)| name)
            .filter(|name| !axes.contains(name));
        let others: Vec<&str> = others.collect();
        let own = self.place(self.index, &others);
        let members = all.into_iter().enumerate();
        let mut members: Vec<(usize, Tensor)> = members
            .filter(|(of, _)| self.place(*of, &others) == own)
            .map(|(of, x)| (self.place(of, axes), x))
            .collect();
        members.sort_by_key(|(place, _)| *place);
        Ok(members.into_iter().map(|(_, x)| x).collect())
    }
}

fn axes_of(text: &str) -> Vec<&str> {
    text.split('+').collect()
}

fn reduced(parts: &[Tensor], op: &str) -> Result<Tensor> {
    let Some((first, rest)) = parts.split_first() else {
        return Err(Error::msg("a collective without devices"));
    };
    let mut sum = first.clone();
    for part in rest {
        sum = match op {
            "max" => ops::maximum(&sum, part)?,
            "min" => ops::minimum(&sum, part)?,
            _ => (&sum + part)?,
        };
    }
    match op {
        "mean" => &sum / parts.len() as f64,
        _ => Ok(sum),
    }
}

/// The sum (`mean`, `max`, `min`) of what the devices along axes have; each gets it.
///
/// # Errors
/// Returns an error outside of a run over devices, and if another device failed.
#[wrap]
pub fn all_reduce(x: &Tensor, op: &str, axes: &str) -> Result<Tensor> {
    reduced(&device()?.group(&axes_of(axes), x)?, op)
}

/// The parts of a tensor that the devices along axes have, one behind the other along a dim; each gets the whole.
///
/// # Errors
/// As [`all_reduce`].
#[wrap]
pub fn all_gather(x: &Tensor, dim: i64, axes: &str) -> Result<Tensor> {
    ops::cat(&device()?.group(&axes_of(axes), x)?, dim)
}

/// The sum of what the devices along axes have, of which each gets its part along a dim.
///
/// # Errors
/// As [`all_reduce`].
#[wrap]
pub fn reduce_scatter(x: &Tensor, op: &str, dim: i64, axes: &str) -> Result<Tensor> {
    let device = device()?;
    let whole = reduced(&device.group(&axes_of(axes), x)?, op)?;
    part_of(&device, &whole, dim, axes)
}

/// The part of a whole tensor that the device has along a dim.
///
/// # Errors
/// As [`all_reduce`].
#[wrap]
pub fn own_part(x: &Tensor, dim: i64, axes: &str) -> Result<Tensor> {
    part_of(&device()?, x, dim, axes)
}

fn part_of(device: &Device, x: &Tensor, dim: i64, axes: &str) -> Result<Tensor> {
    let axes = axes_of(axes);
    let parts: usize = axes
        .iter()
        .filter_map(|axis| device.mesh.size(axis))
        .product();
    let sizes = x.dims()?;
    let size = usize::try_from(dim)
        .ok()
        .and_then(|dim| sizes.get(dim).copied())
        .unwrap_or(0);
    let length = size / parts.max(1);
    let start = device.place(device.index, &axes) * length;
    ops::narrow(x, dim, start as i64, length as i64)
}
