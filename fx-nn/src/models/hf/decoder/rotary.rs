//! `Angles`: the cosines and sines by which queries and keys are rotated, and how they are scaled for longer texts.

use fx_core::prelude::*;

use crate::ops;
use crate::tensor::Tensor;

/// How rotary angles are scaled.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Unscaled.
    None,
    /// All angles by a factor.
    Linear(f64),
    /// As Llama 3 does: slow angles by a factor, quick ones not, those between in part.
    Llama3 {
        /// The divisor of slow angles.
        factor: f64,
        /// The number of turns above which an angle is quick.
        high_freq_factor: f64,
        /// The number of turns below which an angle is slow.
        low_freq_factor: f64,
        /// The length in which turns are counted.
        original_max_position_embeddings: f64,
    },
    /// YaRN: slow angles by a factor, quick ones not, those between by their number; sines and cosines times a factor.
    Yarn {
        /// The divisor of slow angles.
        factor: f64,
        /// The factor of sines and cosines.
        attention_factor: f64,
        /// The number of turns above which an angle is quick.
        beta_fast: f64,
        /// The number of turns below which an angle is slow.
        beta_slow: f64,
        /// The length in which turns are counted.
        original_max_position_embeddings: f64,
        /// Whether the numbers of the angles between are rounded outwards.
        truncate: bool,
    },
    /// LongRoPE: each angle by a factor of its own, others in texts longer than those that the model was trained with first.
    LongRope {
        /// The divisors in short texts, `rotary_dim / 2`.
        short_factor: Vec<f64>,
        /// The divisors in longer texts, `rotary_dim / 2`.
        long_factor: Vec<f64>,
        /// The factor of sines and cosines.
        attention_factor: f64,
        /// The length of the longest short text.
        original_max_position_embeddings: usize,
    },
}

impl RopeScaling {
    /// YaRN by the numbers of a file, with a number of positions for what it leaves out.
    pub(in super::super) fn yarn(
        read: impl Fn(&str) -> Option<f64>,
        truncate: Option<bool>,
        positions: f64,
    ) -> Self {
        let original = read("original_max_position_embeddings").unwrap_or(positions);
        let factor = read("factor").unwrap_or(positions / original);
        let usual = match (read("mscale"), read("mscale_all_dim")) {
            (Some(of_words), Some(of_all)) => mscale(factor, of_words) / mscale(factor, of_all),
            _ => mscale(factor, 1.0),
        };
        RopeScaling::Yarn {
            factor,
            attention_factor: read("attention_factor").unwrap_or(usual),
            beta_fast: read("beta_fast").unwrap_or(32.0),
            beta_slow: read("beta_slow").unwrap_or(1.0),
            original_max_position_embeddings: original,
            truncate: truncate.unwrap_or(true),
        }
    }

    /// The factor of sines and cosines.
    fn attention_factor(&self) -> f64 {
        match self {
            RopeScaling::Yarn {
                attention_factor, ..
            }
            | RopeScaling::LongRope {
                attention_factor, ..
            } => *attention_factor,
            _ => 1.0,
        }
    }
}

/// By how much scores grow with texts that are longer by a factor, by a weight of its logarithm.
pub(in super::super) fn mscale(factor: f64, weight: f64) -> f64 {
    match factor > 1.0 {
        true => 0.1 * weight * factor.ln() + 1.0,
        false => 1.0,
    }
}

/// The usual factor of LongRoPE's sines and cosines, for texts that are longer than the `original` ones by a factor.
pub(in super::super) fn long_rope_factor(factor: f64, original: f64) -> f64 {
    match factor > 1.0 {
        true => (1.0 + factor.ln() / original.ln()).sqrt(),
        false => 1.0,
    }
}

/// The rotary frequencies of a base, `[dim / 2]`, scaled for short texts.
fn frequencies(theta: f64, dim: usize, scaling: &RopeScaling) -> Vec<f64> {
    let all = (0..dim / 2).map(|i| theta.powf(-2.0 * i as f64 / dim as f64));
    match scaling {
        RopeScaling::None => all.collect(),
        RopeScaling::Linear(factor) => all.map(|frequency| frequency / factor).collect(),
        RopeScaling::Llama3 {
            factor,
            high_freq_factor,
            low_freq_factor,
            original_max_position_embeddings,
        } => {
            let scaled = all.map(|frequency| {
                let turns = original_max_position_embeddings * frequency / std::f64::consts::TAU;
                let quick = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                let quick = quick.clamp(0.0, 1.0);
                (1.0 - quick) * frequency / factor + quick * frequency
            });
            scaled.collect()
        }
        RopeScaling::Yarn {
            factor,
            beta_fast,
            beta_slow,
            original_max_position_embeddings,
            truncate,
            ..
        } => {
            // The number of the angle that turns so often in the original length.
            let of_turns = |turns: f64| {
                let length = original_max_position_embeddings / (turns * std::f64::consts::TAU);
                dim as f64 * length.ln() / (2.0 * theta.ln())
            };
            let (low, high) = (of_turns(*beta_fast), of_turns(*beta_slow));
            let (low, high) = match truncate {
                true => (low.floor(), high.ceil()),
                false => (low, high),
            };
            let (low, high) = (low.max(0.0), high.min(dim as f64 - 1.0));
            let width = if low == high { 0.001 } else { high - low };
            let scaled = all.enumerate().map(|(at, frequency)| {
                let slow = ((at as f64 - low) / width).clamp(0.0, 1.0);
                slow * frequency / factor + (1.0 - slow) * frequency
            });
            scaled.collect()
        }
        RopeScaling::LongRope { short_factor, .. } => divided(all, short_factor),
    }
}

fn divided(frequencies: impl Iterator<Item = f64>, factors: &[f64]) -> Vec<f64> {
    frequencies
        .zip(factors)
        .map(|(frequency, factor)| frequency / factor)
        .collect()
}

/// The cosines and sines of the angles of all positions, `[max_position_embeddings, rotary_dim / 2]` each.
#[derive(Module, Clone, Debug)]
pub(in super::super) struct Angles {
    #[module(buffer, persistent = false)]
    pub cos: Tensor,
    #[module(buffer, persistent = false)]
    pub sin: Tensor,
}

impl Angles {
    /// Those of a base, scaled for short texts.
    pub fn new(positions: usize, theta: f64, dim: usize, scaling: &RopeScaling) -> Result<Self> {
        Angles::of(positions, frequencies(theta, dim, scaling), scaling)
    }

    fn of(positions: usize, frequencies: Vec<f64>, scaling: &RopeScaling) -> Result<Self> {
        let count = frequencies.len();
        let frequencies: Vec<f32> = frequencies.into_iter().map(|x| x as f32).collect();
        let frequencies = Tensor::from_vec(frequencies, (1, count))?;
        let positions = Tensor::arange(0, positions)?.unsqueeze(1)?;
        let angles = (positions * frequencies)?;
        let (cos, sin) = (angles.cos()?, angles.sin()?);
        Ok(match scaling.attention_factor() {
            1.0 => Angles { cos, sin },
            factor => Angles {
                cos: (cos * factor)?,
                sin: (sin * factor)?,
            },
        })
    }

    /// The same, with frequencies that are divided by factors of their own too.
    pub fn with_factors(
        positions: usize,
        theta: f64,
        dim: usize,
        scaling: &RopeScaling,
        factors: &[f64],
    ) -> Result<Self> {
        let all = frequencies(theta, dim, scaling).into_iter();
        Angles::of(positions, divided(all, factors), scaling)
    }

    /// Those of texts that are no short ones, where they differ, and the length of the longest short one.
    pub fn long(
        positions: usize,
        theta: f64,
        dim: usize,
        scaling: &RopeScaling,
    ) -> Result<Option<(Self, usize)>> {
        let RopeScaling::LongRope {
            long_factor,
            original_max_position_embeddings,
            ..
        } = scaling
        else {
            return Ok(None);
        };
        let all = frequencies(theta, dim, &RopeScaling::None).into_iter();
        let angles = Angles::of(positions, divided(all, long_factor), scaling)?;
        Ok(Some((angles, *original_max_position_embeddings)))
    }
}

/// x with its first dims rotated by its position, as many as there are angles: their halves are real and imaginary parts.
pub(super) fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor, rest: usize) -> Result<Tensor> {
    if rest > 0 {
        let rotated = rotate_all(&x.i((.., .., .., ..-(rest as i64)))?, cos, sin)?;
        return ops::cat(&[rotated, x.i((.., .., .., -(rest as i64)..))?], -1);
    }
    rotate_all(x, cos, sin)
}

fn rotate_all(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let [a, b] = x.chunk(2, -1)?.unpack()?;
    let real = ((&a * cos)? - (&b * sin)?)?;
    let imaginary = ((&b * cos)? + (&a * sin)?)?;
    ops::cat(&[real, imaginary], -1)
}
