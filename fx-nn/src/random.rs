//! The random numbers of initial values, dropout and random tensors: one stream a thread, which a seed repeats.

use std::cell::RefCell;

use candle_core::{DType, Device, Result, Tensor};
use rand::distr::{Distribution, Uniform};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use rand_distr::StandardNormal;

use crate::room;

thread_local! {
    static STREAM: RefCell<StdRng> = RefCell::new(StdRng::from_os_rng());
}

/// Seeds the random numbers that are drawn on this thread from now on; without it they differ from run to run.
///
/// ```
/// use fx_nn::prelude::*;
/// fx_nn::manual_seed(7);
/// let x = Tensor::rand(3)?.to_vec()?;
/// fx_nn::manual_seed(7);
/// assert_eq!(Tensor::rand(3)?.to_vec()?, x);
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub fn manual_seed(seed: u64) {
    STREAM.with_borrow_mut(|stream| *stream = StdRng::seed_from_u64(seed));
}

fn draw(shape: &[usize], mut number: impl FnMut(&mut dyn RngCore) -> f32) -> Result<Tensor> {
    let count = room::of("random", shape, DType::F32)?;
    let numbers: Vec<f32> = STREAM.with_borrow_mut(|stream| {
        std::iter::repeat_with(|| number(stream))
            .take(count)
            .collect()
    });
    Tensor::from_vec(numbers, shape, &Device::Cpu)
}

/// Uniform numbers from `low` to before `high`, or `low` everywhere where that is nothing.
pub(crate) fn uniform(shape: &[usize], low: f32, high: f32) -> Result<Tensor> {
    match Uniform::new(low, high) {
        Ok(range) => draw(shape, |stream| range.sample(stream)),
        Err(_) => room::full("random", shape, &Tensor::new(low, &Device::Cpu)?),
    }
}

/// Normal numbers of mean 0 and deviation 1.
pub(crate) fn normal(shape: &[usize]) -> Result<Tensor> {
    draw(shape, |stream| StandardNormal.sample(stream))
}
