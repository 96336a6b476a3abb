//! The random numbers of initial values, dropout and random tensors: one stream per thread,
//! repeatable with a seed.

use std::cell::RefCell;

use candle_core::{DType, Result, Tensor};
use rand::distr::{Distribution, Uniform};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_distr::{Exp1, StandardNormal};

use crate::{device, room};

thread_local! {
    // A host that has no random numbers, such as a bare WebAssembly one, begins as `manual_seed(0)` does.
    static STREAM: RefCell<StdRng> = RefCell::new(
        StdRng::try_from_os_rng().unwrap_or_else(|_| StdRng::seed_from_u64(0)),
    );
}

/// Seeds the random numbers that are drawn on this thread from now on; without it they differ from run to run.
///
/// ```
/// use fx_candle_kernels::random::{manual_seed, uniform};
/// manual_seed(7);
/// let x = uniform(&[3], 0.0, 1.0)?.to_vec1::<f32>()?;
/// manual_seed(7);
/// assert_eq!(uniform(&[3], 0.0, 1.0)?.to_vec1::<f32>()?, x);
/// # Ok::<(), candle_core::Error>(())
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
    Tensor::from_vec(numbers, shape, &device::current())
}

/// Uniform numbers from `low` to before `high`, or `low` everywhere if there are none.
pub fn uniform(shape: &[usize], low: f32, high: f32) -> Result<Tensor> {
    match Uniform::new(low, high) {
        Ok(range) => draw(shape, |stream| range.sample(stream)),
        Err(_) => room::full("random", shape, &Tensor::new(low, &device::current())?),
    }
}

/// Normal numbers of mean 0 and deviation 1.
pub fn normal(shape: &[usize]) -> Result<Tensor> {
    draw(shape, |stream| StandardNormal.sample(stream))
}

/// Integers from `low` to before `high`, which is above it.
pub fn integers(shape: &[usize], low: i64, high: i64) -> Result<Tensor> {
    let count = room::of("random", shape, DType::I64)?;
    let Ok(range) = Uniform::new(low, high) else {
        candle_core::bail!("random: there is no integer from {low} to before {high}")
    };
    let numbers: Vec<i64> =
        STREAM.with_borrow_mut(|stream| range.sample_iter(stream).take(count).collect());
    Tensor::from_vec(numbers, shape, &device::current())
}

/// The numbers from 0 to before `count` in a random order.
pub fn permutation(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    STREAM.with_borrow_mut(|stream| order.shuffle(stream));
    order
}

/// `count` places, each drawn with its share of the sum; without `replacement`, places without a
/// share come last.
pub fn places(shares: &[f64], count: usize, replacement: bool) -> Vec<usize> {
    STREAM.with_borrow_mut(|stream| {
        if !replacement {
            // The fastest in races whose speeds are the shares.
            let mut times: Vec<(f64, usize)> = (0..)
                .zip(shares)
                .map(|(at, share)| {
                    let time: f64 = Exp1.sample(stream);
                    (time / share, at)
                })
                .collect();
            times.sort_by(|a, b| a.0.total_cmp(&b.0));
            return times.into_iter().take(count).map(|(_, at)| at).collect();
        }
        let sums: Vec<f64> = shares
            .iter()
            .scan(0.0, |sum, share| {
                *sum += share;
                Some(*sum)
            })
            .collect();
        let total = sums.last().copied().unwrap_or_default();
        let last = shares
            .iter()
            .rposition(|share| *share > 0.0)
            .unwrap_or_default();
        (0..count)
            .map(|_| {
                let drawn = stream.random::<f64>() * total;
                sums.partition_point(|sum| *sum <= drawn).min(last)
            })
            .collect()
    })
}
