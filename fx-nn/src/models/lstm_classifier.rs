//! A classifier of texts by a bidirectional LSTM.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Words `[N, length]` (`int64`) to scores `[N, classes]`.
#[derive(Module, Clone, Debug)]
pub struct LstmClassifier {
    /// Words.
    pub emb: nn::Embedding,
    /// Two layers in both directions.
    pub lstm: nn::LSTM,
    /// Scores of the classes.
    pub fc: nn::Linear,
}

impl LstmClassifier {
    /// A model of words of `width` and states of `hidden` numbers.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(vocab: usize, width: usize, hidden: usize, classes: usize) -> Result<Self> {
        let lstm = nn::LSTM::new(width, hidden)?.batch_first(true);
        Ok(LstmClassifier {
            emb: nn::Embedding::new(vocab, width)?,
            lstm: lstm.num_layers(2)?.bidirectional(true)?,
            fc: nn::Linear::new(2 * hidden, classes)?,
        })
    }
}

#[trace]
impl LstmClassifier {
    /// Scores of the classes.
    ///
    /// # Errors
    /// Returns an error if `tokens` is not `[N, length]`.
    pub fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let x = self.emb.forward(tokens)?;
        let (out, (h_n, _)) = self.lstm.forward(&x, None)?;
        let last = ops::cat(&[h_n.i(-2)?, h_n.i(-1)?], 1)?;
        self.fc.forward(&last)? + out.mean(1)?.sum_keepdim(-1)?
    }
}
