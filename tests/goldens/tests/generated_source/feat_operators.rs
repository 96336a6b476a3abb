//! `Generated`, generated from a traced graph of 22 nodes; to be edited as any source.
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
    pub fn forward(&self, x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
        let add = (x + 1)?;
        let sub = (1 - y)?;
        let pow = fx_nn::tensor::binary::<Tensor>(fx_nn::value::Operator::Pow, &2, &x)?;
        let neg = (-&add)?;
        let gt = (x > y)?;
        let ne = (x != 0)?;
        let and_ = (&gt & &ne)?;  drop(gt); drop(ne);
        let invert = (!&and_)?;
        let t = y.t()?;
        let matmul = x.matmul(&t)?;  drop(t);
        let floordiv = x.floor_divide(2)?;
        let mod_1 = (x % 3)?;
        let add_1 = (&floordiv + &mod_1)?;  drop(floordiv); drop(mod_1);
        let abs = y.abs()?;
        let add_2 = (&abs + 1)?;  drop(abs);
        let truediv = (1.5 / &add_2)?;  drop(add_2);
        let le = (x <= y)?;
        let ge = (x >= 1)?;
        let or_ = (&le | &ge)?;  drop(le); drop(ge);
        Ok(vec![add, sub, pow, neg, and_, invert, matmul, add_1, truediv, or_])
    }
}
