//! Words that are read one after another.

use fx_nn::prelude::*;

/// Reads words and a cache; returns the words' scores and the new cache.
pub type Step<'s, C> = dyn Fn(&Tensor, C) -> Result<(Tensor, C)> + 's;

/// Scores of all words, read one after another.
pub fn one_by_one<C>(tokens: &Tensor, seen: C, step: &Step<'_, C>) -> Result<Tensor> {
    let mut seen = seen;
    let mut scores = Vec::new();
    for at in 0..tokens.dims()?[1] {
        let word = tokens.i((.., at..at + 1))?;
        let (score, updated) = step(&word, seen)?;
        scores.push(score);
        seen = updated;
    }
    ops::cat(&scores, 1)
}
