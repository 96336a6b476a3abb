//! `Generated`, generated from a traced graph of 23 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `blocks`.
    pub blocks: Blocks,
    /// `by_name`.
    pub by_name: ByName,
    /// `biases`.
    pub biases: Biases,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            blocks: Blocks::take(saved, "blocks")?,
            by_name: ByName::take(saved, "by_name")?,
            biases: Biases::take(saved, "biases")?,
        })
    }
}

/// What is at `blocks`.
#[derive(Module)]
pub struct Blocks(pub Sequential, pub Sequential);

impl Blocks {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Blocks(
            Sequential::take(saved, &format!("{path}.0"))?,
            Sequential::take(saved, &format!("{path}.1"))?,
        ))
    }
}

/// What is at `blocks.0`, `blocks.1`.
#[derive(Module)]
pub struct Sequential(pub Inner, pub fx_nn::nn::ReLU, pub Sequential2);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            Inner::take(saved, &format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            Sequential2::take(saved, &format!("{path}.2"))?,
        ))
    }
}

/// What is at `blocks.0.0`, `blocks.1.0`.
#[derive(Module)]
pub struct Inner {
    /// `lin`.
    pub lin: fx_nn::nn::Linear,
    /// `scale`.
    pub scale: Tensor,
}

impl Inner {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Inner {
            lin: saved.take_submodule(&format!("{path}.lin"))?,
            scale: FromValue::from_value(saved.parameter(&format!("{path}.scale"))?)?,
        })
    }
}

/// What is at `blocks.0.2`, `blocks.1.2`.
#[derive(Module)]
pub struct Sequential2(pub fx_nn::nn::Linear, pub fx_nn::nn::Tanh);

impl Sequential2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential2(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
        ))
    }
}

/// What is at `by_name`.
#[derive(Module)]
pub struct ByName {
    #[module(name = "p-q")]
    /// `p-q`.
    pub p_q: fx_nn::nn::Linear,
    /// `skip`.
    pub skip: fx_nn::nn::Identity,
}

impl ByName {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(ByName {
            p_q: saved.take_submodule(&format!("{path}.p-q"))?,
            skip: saved.take_submodule(&format!("{path}.skip"))?,
        })
    }
}

/// What is at `biases`.
#[derive(Module)]
pub struct Biases(pub Tensor, pub Tensor);

impl Biases {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Biases(
            FromValue::from_value(saved.parameter(&format!("{path}.0"))?)?,
            FromValue::from_value(saved.parameter(&format!("{path}.1"))?)?,
        ))
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
        // blocks.0.0: Inner
        let blocks_0_0_lin = self.blocks.0.0.lin.forward(x)?;
        let blocks_0_0_scale = &self.blocks.0.0.scale;
        let mul = (&blocks_0_0_lin * blocks_0_0_scale)?;  drop(blocks_0_0_lin);
        let add = (x + &mul)?;  drop(mul);
        // blocks.0: Sequential
        let blocks_0_1 = self.blocks.0.1.forward(&add)?;  drop(add);
        // blocks.0.2: Sequential
        let blocks_0_2_0 = self.blocks.0.2.0.forward(&blocks_0_1)?;  drop(blocks_0_1);
        let blocks_0_2_1 = self.blocks.0.2.1.forward(&blocks_0_2_0)?;  drop(blocks_0_2_0);
        // Nested
        let biases_0 = &self.biases.0;
        let add_1 = (&blocks_0_2_1 + biases_0)?;  drop(blocks_0_2_1);
        // blocks.1.0: Inner
        let blocks_1_0_lin = self.blocks.1.0.lin.forward(&add_1)?;
        let blocks_1_0_scale = &self.blocks.1.0.scale;
        let mul_1 = (&blocks_1_0_lin * blocks_1_0_scale)?;  drop(blocks_1_0_lin);
        let add_2 = (&add_1 + &mul_1)?;  drop(mul_1);
        // blocks.1: Sequential
        let blocks_1_1 = self.blocks.1.1.forward(&add_2)?;  drop(add_2);
        // blocks.1.2: Sequential
        let blocks_1_2_0 = self.blocks.1.2.0.forward(&blocks_1_1)?;  drop(blocks_1_1);
        let blocks_1_2_1 = self.blocks.1.2.1.forward(&blocks_1_2_0)?;  drop(blocks_1_2_0);
        // Nested
        let biases_1 = &self.biases.1;
        let add_3 = (&blocks_1_2_1 + biases_1)?;  drop(blocks_1_2_1);
        let by_name_p_q = self.by_name.p_q.forward(&add_3)?;
        let by_name_skip = self.by_name.skip.forward(&by_name_p_q)?;
        let cat = fx_nn::ops::cat(&[add_1.clone(), add_3.clone(), by_name_p_q.clone(), by_name_skip.clone()], -1)?;  drop(add_1); drop(add_3); drop(by_name_p_q); drop(by_name_skip);
        Ok(cat)
    }
}
