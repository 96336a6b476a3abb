//! `Generated`, generated from a traced graph of 12 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `mlp`.
    pub mlp: Mlp,
    /// `gate`.
    pub gate: Gate,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            mlp: Mlp::take(saved, "mlp")?,
            gate: Gate::take(saved, "gate")?,
        })
    }
}

/// What is at `mlp`.
#[derive(Module)]
pub struct Mlp {
    /// `up`.
    pub up: Linear,
    /// `down`.
    pub down: Linear,
}

impl Mlp {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Mlp {
            up: Linear::take(saved, &format!("{path}.up"))?,
            down: Linear::take(saved, &format!("{path}.down"))?,
        })
    }
}

/// What is at `mlp.up`, `mlp.down`.
#[derive(Module)]
pub struct Linear {
    /// `weight`.
    pub weight: Tensor,
    /// `bias`.
    pub bias: Tensor,
}

impl Linear {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Linear {
            weight: FromValue::from_value(saved.parameter(&format!("{path}.weight"))?)?,
            bias: FromValue::from_value(saved.parameter(&format!("{path}.bias"))?)?,
        })
    }
}

/// What is at `gate`.
#[derive(Module)]
pub struct Gate {
    /// `weight`.
    pub weight: Tensor,
}

impl Gate {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Gate {
            weight: FromValue::from_value(saved.parameter(&format!("{path}.weight"))?)?,
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
        // mlp.up: Linear
        let mlp_up_weight = &self.mlp.up.weight;
        let mlp_up_bias = &self.mlp.up.bias;
        let linear = fx_nn::ops::linear(x, mlp_up_weight, Some(mlp_up_bias))?;
        // mlp.act: ReLU
        let relu = fx_nn::ops::relu(&linear)?;  drop(linear);
        // mlp.down: Linear
        let mlp_down_weight = &self.mlp.down.weight;
        let mlp_down_bias = &self.mlp.down.bias;
        let linear_1 = fx_nn::ops::linear(&relu, mlp_down_weight, Some(mlp_down_bias))?;  drop(relu);
        // gate: Gate
        let gate_weight = &self.gate.weight;
        let sigmoid = gate_weight.sigmoid()?;
        let mul = (&linear_1 * &sigmoid)?;  drop(linear_1); drop(sigmoid);
        Ok(mul)
    }
}
