//! `Sampling`: how the next token is chosen from the scores of all tokens.

use fx_nn::prelude::*;

/// The most likely token, or one drawn by its probability.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// The divisor of the scores; 0 takes the most likely token.
    pub temperature: f64,
    /// Draws from the most likely tokens whose probabilities add up to this.
    pub top_p: f64,
}

impl Sampling {
    /// Picks a token by its scores `[vocab_size]`.
    pub fn pick(self, scores: &Tensor) -> Result<u32> {
        let token = match self.temperature > 0.0 {
            true => self.draw(scores)?,
            false => scores.argmax(-1, false)?,
        };
        Ok(token.item()? as u32)
    }

    fn draw(self, scores: &Tensor) -> Result<Tensor> {
        let scores = (scores.to_dtype(DType::F32)? / self.temperature)?;
        let (likely, tokens) = ops::softmax(&scores, -1)?.sort(-1, true)?;
        // A token stays if those before it have not reached the share; the first one always stays.
        let before = (likely.cumsum(-1)? - &likely)?;
        let kept = ops::r#where(&before.lt(self.top_p)?, &likely, 0.0)?;
        tokens.index_select(0, &kept.multinomial(1, false)?)
    }
}
