//! `Sampler`: which token comes next, by the scores of all.

use fx_core::{Error, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustc_hash::FxHashSet;

use super::request::GenerationOptions;

/// Draws the tokens of one text.
pub(super) struct Sampler {
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
    repetition_penalty: f32,
    random: StdRng,
}

impl Sampler {
    pub fn new(options: &GenerationOptions) -> Self {
        Sampler {
            temperature: options.temperature,
            top_k: options.top_k,
            top_p: options.top_p,
            min_p: options.min_p,
            repetition_penalty: options.repetition_penalty,
            random: StdRng::seed_from_u64(options.seed),
        }
    }

    /// Whether the token is the one with the best score of the model.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0 && self.repetition_penalty == 1.0
    }

    /// A token by the scores of all; `seen` are those that the text has.
    ///
    /// # Errors
    /// Returns an error if no score is a number.
    pub fn pick(&mut self, scores: &mut [f32], seen: &FxHashSet<u32>) -> Result<u32> {
        if self.repetition_penalty != 1.0 {
            for id in seen {
                if let Some(score) = scores.get_mut(*id as usize) {
                    *score = match *score > 0.0 {
                        true => *score / self.repetition_penalty,
                        false => *score * self.repetition_penalty,
                    };
                }
            }
        }
        let best = best(scores)?;
        if self.temperature == 0.0 {
            return Ok(best as u32);
        }
        let top = scores[best];
        // Probabilities over that of the best one.
        for score in scores.iter_mut() {
            let share = ((*score - top) / self.temperature).exp();
            *score = if share.is_nan() { 0.0 } else { share };
        }
        let kept = self.kept(scores);
        Ok(self.draw(&kept, scores))
    }

    /// The tokens to draw from, and their shares.
    fn kept(&self, shares: &[f32]) -> Vec<u32> {
        let least = self.min_p;
        let all = (0..shares.len() as u32).filter(|id| {
            let share = shares[*id as usize];
            share > 0.0 && share >= least
        });
        let mut all: Vec<u32> = all.collect();
        // The best first; of equal ones the first.
        let order = |a: &u32, b: &u32| {
            let (of_a, of_b) = (shares[*a as usize], shares[*b as usize]);
            of_b.total_cmp(&of_a).then(a.cmp(b))
        };
        let keep = |all: &mut Vec<u32>, count: usize| {
            if count < all.len() {
                all.select_nth_unstable_by(count, order);
                all.truncate(count);
            }
        };
        if self.top_k > 0 {
            keep(&mut all, self.top_k);
        }
        if self.top_p >= 1.0 {
            return all;
        }
        let sum: f64 = all.iter().map(|id| f64::from(shares[*id as usize])).sum();
        // Most texts need few: more and more are put in order until there are enough.
        let mut count = 64;
        loop {
            let mut first = all.clone();
            keep(&mut first, count);
            first.sort_unstable_by(order);
            let mut reached = 0.0;
            let enough = first.iter().position(|id| {
                reached += f64::from(shares[*id as usize]) / sum;
                reached >= f64::from(self.top_p)
            });
            match enough {
                Some(last) => {
                    first.truncate(last + 1);
                    return first;
                }
                None if first.len() == all.len() => return first,
                None => count *= 8,
            }
        }
    }

    fn draw(&mut self, kept: &[u32], shares: &[f32]) -> u32 {
        let share = |id: &u32| f64::from(shares[*id as usize]);
        let sum: f64 = kept.iter().map(share).sum();
        let mut left = self.random.random::<f64>() * sum;
        for id in kept {
            left -= share(id);
            if left < 0.0 {
                return *id;
            }
        }
        kept.last().copied().unwrap_or(0)
    }
}

/// The first of the best scores.
fn best(scores: &[f32]) -> Result<usize> {
    let mut best: Option<usize> = None;
    for (at, score) in scores.iter().enumerate() {
        let is_better = best.is_none_or(|best| *score > scores[best]);
        if is_better && !score.is_nan() {
            best = Some(at);
        }
    }
    let best = best.filter(|best| scores[*best] > f32::NEG_INFINITY);
    best.ok_or_else(|| Error::msg("the model's scores are no numbers: there is no next token"))
}
