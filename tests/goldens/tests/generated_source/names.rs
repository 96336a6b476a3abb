//! `Generated`, generated from a traced graph of 12 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    #[module(name = "0")]
    /// `0`.
    pub m0: fx_nn::nn::Tanh,
    /// `type`.
    pub r#type: fx_nn::nn::Tanh,
    #[module(name = "a-b")]
    /// `a-b`.
    pub a_b: AB,
    /// `features`.
    pub features: Features,
    #[module(name = "*/ fn")]
    /// `*\u{2f} fn`.
    pub ___fn: fx_nn::nn::Tanh,
    /// `fn`.
    pub r#fn: Fn2,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            m0: saved.take_submodule("0")?,
            r#type: saved.take_submodule("type")?,
            a_b: AB::take(saved, "a-b")?,
            features: Features::take(saved, "features")?,
            ___fn: saved.take_submodule("*/ fn")?,
            r#fn: Fn2::take(saved, "fn")?,
        })
    }
}

/// What is at `a-b`.
#[derive(Module)]
pub struct AB {
    #[module(name = "self")]
    /// `self`.
    pub self_: fx_nn::nn::Tanh,
    #[module(name = "{x}")]
    /// `{x}`.
    pub _x_: fx_nn::nn::Tanh,
    #[module(name = "`")]
    /// `\u{60}`.
    pub __: fx_nn::nn::Tanh,
}

impl AB {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(AB {
            self_: saved.take_submodule(&format!("{path}.self"))?,
            _x_: saved.take_submodule(&format!("{path}.{{x}}"))?,
            __: saved.take_submodule(&format!("{path}.`"))?,
        })
    }
}

/// What is at `features`.
#[derive(Module)]
pub struct Features(pub fx_nn::nn::Tanh, pub fx_nn::nn::Tanh);

impl Features {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Features(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
        ))
    }
}

/// What is at `fn`.
#[derive(Module)]
pub struct Fn2 {
    /// `fn`.
    pub r#fn: fx_nn::nn::Tanh,
}

impl Fn2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Fn2 {
            r#fn: saved.take_submodule(&format!("{path}.fn"))?,
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
        let relu = x.relu()?;
        let _0 = self.m0.forward(&relu)?;  drop(relu);
        let type_1 = self.r#type.forward(&_0)?;  drop(_0);
        let a_b_self = self.a_b.self_.forward(&type_1)?;  drop(type_1);
        let a_b_x_ = self.a_b._x_.forward(&a_b_self)?;  drop(a_b_self);
        let a_b_ = self.a_b.__.forward(&a_b_x_)?;  drop(a_b_x_);
        let features_0 = self.features.0.forward(&a_b_)?;  drop(a_b_);
        let features_1 = self.features.1.forward(&features_0)?;  drop(features_0);
        let _fn = self.___fn.forward(&features_1)?;  drop(features_1);
        let fn_fn = self.r#fn.r#fn.forward(&_fn)?;  drop(_fn);
        Ok(fn_fn)
    }
}
