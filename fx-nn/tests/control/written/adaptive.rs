//! `Adaptive`, generated from a traced graph of 21 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Adaptive::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Adaptive {
    /// `layers`.
    pub layers: Layers,
    /// `halt`.
    pub halt: fx_nn::nn::Linear,
}

impl Adaptive {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Adaptive {
            layers: Layers::take(saved, "layers")?,
            halt: saved.take_submodule("halt")?,
        })
    }
}

/// What is at `layers`.
#[derive(Module)]
pub struct Layers(pub fx_nn::nn::TransformerEncoderLayer, pub fx_nn::nn::TransformerEncoderLayer, pub fx_nn::nn::TransformerEncoderLayer, pub fx_nn::nn::TransformerEncoderLayer);

impl Layers {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layers(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
            saved.take_submodule(&format!("{path}.3"))?,
        ))
    }
}

impl Adaptive {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace(control_flow)]
impl Adaptive {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<(Tensor, Int)> {
        let layers_0 = self.layers.0.forward(x, None, None, false)?;
        let mean = layers_0.mean(1)?;
        let halt = self.halt.forward(&mean)?;  drop(mean);
        let sigmoid = halt.sigmoid()?;  drop(halt);
        let mean_1 = sigmoid.mean(..)?;  drop(sigmoid);
        let gt = (&mean_1 > 0.5)?;  drop(mean_1);
        let invert = (!&gt)?;  drop(gt);
        let cond = if invert.clone() {
            let layers_0 = &layers_0;
            let layers_1 = self.layers.1.forward(layers_0, None, None, false)?;
            let mean_2 = layers_1.mean(1)?;
            let halt_1 = self.halt.forward(&mean_2)?;  drop(mean_2);
            let sigmoid_1 = halt_1.sigmoid()?;  drop(halt_1);
            let mean_3 = sigmoid_1.mean(..)?;  drop(sigmoid_1);
            let gt_1 = (&mean_3 > 0.5)?;  drop(mean_3);
            let invert_1 = (!&gt_1)?;  drop(gt_1);
            (Value::of(invert_1), Int::from(2), layers_1)
        } else {
            let layers_0 = &layers_0;
            (Value::Bool(false), Int::from(1), layers_0.clone())
        };  drop(invert); drop(layers_0);
        let getitem = cond.0.clone();
        let getitem_1 = cond.1.clone();
        let getitem_2 = cond.2.clone();  drop(cond);
        let cond_1 = if getitem.clone() {
            let getitem_2 = &getitem_2;
            let layers_2 = self.layers.2.forward(getitem_2, None, None, false)?;
            let add = (getitem_1 + 1)?;
            let mean_4 = layers_2.mean(1)?;
            let halt_2 = self.halt.forward(&mean_4)?;  drop(mean_4);
            let sigmoid_2 = halt_2.sigmoid()?;  drop(halt_2);
            let mean_5 = sigmoid_2.mean(..)?;  drop(sigmoid_2);
            let gt_2 = (&mean_5 > 0.5)?;  drop(mean_5);
            let invert_2 = (!&gt_2)?;  drop(gt_2);
            (Value::of(invert_2), add, layers_2)
        } else {
            let getitem_2 = &getitem_2;
            (Value::Bool(false), getitem_1, getitem_2.clone())
        };  drop(getitem); drop(getitem_2);
        let getitem_3 = cond_1.0.clone();
        let getitem_4 = cond_1.1.clone();
        let getitem_5 = cond_1.2.clone();  drop(cond_1);
        let cond_2 = if getitem_3.clone() {
            let getitem_5 = &getitem_5;
            let layers_3 = self.layers.3.forward(getitem_5, None, None, false)?;
            let add_1 = (getitem_4 + 1)?;
            let mean_6 = layers_3.mean(1)?;
            let halt_3 = self.halt.forward(&mean_6)?;  drop(mean_6);
            let sigmoid_3 = halt_3.sigmoid()?;  drop(halt_3);
            let mean_7 = sigmoid_3.mean(..)?;  drop(sigmoid_3);
            let gt_3 = (&mean_7 > 0.5)?;  drop(mean_7);
            let invert_3 = (!&gt_3)?;  drop(gt_3);
            (Value::of(invert_3), add_1, layers_3)
        } else {
            let getitem_5 = &getitem_5;
            (Value::Bool(false), getitem_4, getitem_5.clone())
        };  drop(getitem_3); drop(getitem_5);
        let getitem_7 = cond_2.1.clone();
        let getitem_8 = cond_2.2.clone();  drop(cond_2);
        Ok((getitem_8, getitem_7))
    }
}
