//! `Weights`: the tensors of a module on the devices, each once for all programs.
//!
//! Invariant: a tensor that was written on the host since it was placed is placed again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fx_nn::prelude::*;

use crate::client::{Client, Device};
use crate::device_tensor::DeviceTensor;
use crate::placement::Placement;

/// Tensors of the host that are on devices, by identity and placement.
#[derive(Debug, Default)]
pub(crate) struct Weights(Mutex<HashMap<u64, Vec<Arc<DeviceTensor>>>>);

impl Weights {
    /// Frees those that no program has.
    pub fn free_unused(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, of_tensor| {
            of_tensor.retain(|placed| Arc::strong_count(placed) > 1);
            !of_tensor.is_empty()
        });
    }

    /// The tensor on the devices: placed now, unless it was before.
    pub fn placed(
        &self,
        client: &Client,
        devices: &[Device],
        placement: &Arc<Placement>,
        value: &Value,
    ) -> Result<Arc<DeviceTensor>> {
        let tensor = value.downcast_ref::<Tensor>().ok_or_else(|| {
            Error::msg(format_args!("{} is no tensor of fx-nn", value.describe()))
        })?;
        let place = || DeviceTensor::placed(client, devices, placement, tensor).map(Arc::new);
        let Some(id) = value.as_object().and_then(|object| object.object_id()) else {
            return place();
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tensor = all.entry(id).or_default();
        if let Some(known) = of_tensor
            .iter()
            .find(|known| known.placement() == &**placement)
        {
            return Ok(known.clone());
        }
        let placed = place()?;
        of_tensor.push(placed.clone());
        Ok(placed)
    }
}
