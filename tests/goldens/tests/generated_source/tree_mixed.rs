//! `Generated`, generated from a traced graph of 15 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// Tells it from others.
    pub tag: Tag,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(_saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated { tag: Tag::default() })
    }
}

/// A structure of values that the module takes.
#[derive(Tree, Clone, Debug)]
pub struct Settings {
    /// One of its parts.
    pub x: Tensor,
    /// One of its parts.
    pub times: i64,
    /// One of its parts.
    pub scale: f64,
    /// One of its parts.
    pub is_on: bool,
    /// One of its parts.
    pub mode: String,
    /// One of its parts.
    pub mask: Option<Tensor>,
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
    pub fn forward(&self, settings: Settings) -> Result<Tensor> {
        let settings_1 = &settings.x;
        let settings_2 = settings.times;
        let settings_3 = settings.scale;
        let settings_4 = settings.is_on;
        let settings_5 = &settings.mode;
        let settings_6 = &settings.mask;
        if settings_2 != 2 { return Err(Error::msg("`settings[\"times\"]` was specialised")); }
        if settings_3 != 0.5 { return Err(Error::msg("`settings[\"scale\"]` was specialised")); }
        if settings_4 != true { return Err(Error::msg("`settings[\"is_on\"]` was specialised")); }
        if settings_5 != "relu" { return Err(Error::msg("`settings[\"mode\"]` was specialised")); }
        if settings_6.is_some() { return Err(Error::msg("`settings[\"mask\"]` was specialised")); }
        let mul = (settings_1 * 0.5)?;
        let mul_1 = (&mul * 0.5)?;  drop(mul);
        let relu = mul_1.relu()?;  drop(mul_1);
        Ok(relu)
    }
}
