//! `Generated`, generated from a traced graph of 10 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `blocks`.
    pub blocks: Blocks,
    /// `head`.
    pub head: fx_nn::nn::Linear,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            blocks: Blocks::take(saved, "blocks")?,
            head: saved.take_submodule("head")?,
        })
    }
}

/// What is at `blocks`.
#[derive(Module)]
pub struct Blocks(pub Block, pub Block);

impl Blocks {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Blocks(
            Block::take(saved, &format!("{path}.0"))?,
            Block::take(saved, &format!("{path}.1"))?,
        ))
    }
}

/// What is at `blocks.0`, `blocks.1`.
#[derive(Module)]
pub struct Block {
    /// `linear`.
    pub linear: fx_nn::nn::Linear,
    /// `act`.
    pub act: fx_nn::nn::ReLU,
}

impl Block {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Block {
            linear: saved.take_submodule(&format!("{path}.linear"))?,
            act: saved.take_submodule(&format!("{path}.act"))?,
        })
    }
}

impl Generated {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace]
impl Generated {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // blocks.0: Block
        let blocks_0_linear = self.blocks.0.linear.forward(x)?;
        let blocks_0_act = self.blocks.0.act.forward(&blocks_0_linear)?;  drop(blocks_0_linear);
        let add = (&blocks_0_act + x)?;  drop(blocks_0_act);
        // blocks.1: Block
        let blocks_1_linear = self.blocks.1.linear.forward(&add)?;
        let blocks_1_act = self.blocks.1.act.forward(&blocks_1_linear)?;  drop(blocks_1_linear);
        let add_1 = (&blocks_1_act + &add)?;  drop(blocks_1_act); drop(add);
        // Model
        let head = self.head.forward(&add_1)?;  drop(add_1);
        let exp = head.exp()?;  drop(head);
        Ok(exp)
    }
}
