//! `Ode`, generated from a traced graph of 9 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Ode::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Ode {
    /// `field`.
    pub field: fx_nn::nn::Linear,
}

impl Ode {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Ode {
            field: saved.take_submodule("field")?,
        })
    }
}

impl Ode {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace(control_flow)]
impl Ode {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, y: &Tensor, end: Float) -> Result<(Tensor, Int)> {
        let lt = (0.0 < end)?;
        let while_loop = {
            let (mut while_loop_go, mut while_loop_0, mut while_loop_1, mut while_loop_2, mut while_loop_3) = (lt, Int::from(0), Float::from(0.25), Float::from(0.0), y.clone());
            while while_loop_go {
                let (carry, carry_1, carry_2, carry_3) = (while_loop_0, while_loop_1, while_loop_2, &while_loop_3);
                let add = (carry_2 + carry_1)?;
                let gt = (add > end)?;
                let cond = if gt {
                    let sub = (end - carry_2)?;
                    sub
                } else {
                    carry_1
                };
                let field = self.field.forward(carry_3)?;
                let tanh = field.tanh()?;  drop(field);
                let mul = (&tanh * cond)?;
                let add_1 = (carry_3 + &mul)?;  drop(mul);
                let field_1 = self.field.forward(&add_1)?;
                let tanh_1 = field_1.tanh()?;  drop(field_1);
                let add_2 = (&tanh + &tanh_1)?;  drop(tanh); drop(tanh_1);
                let mul_1 = (cond * 0.5)?;
                let mul_2 = (&add_2 * mul_1)?;  drop(add_2);
                let add_3 = (carry_3 + &mul_2)?;  drop(mul_2);
                let add_4 = (carry + 2)?;
                let sub_1 = (&add_3 - &add_1)?;  drop(add_1);
                let abs = sub_1.abs()?;  drop(sub_1);
                let amax = abs.amax(..)?;  drop(abs);
                let gt_1 = (&amax > 0.001)?;  drop(amax);
                let cond_1 = if gt_1.clone() {
                    let mul_3 = (cond * 0.5)?;
                    (mul_3, carry_2, carry_3.clone())
                } else {
                    let add_3 = &add_3;
                    let add_5 = (carry_2 + cond)?;
                    let mul_4 = (cond * 1.5)?;
                    (mul_4, add_5, add_3.clone())
                };  drop(gt_1); drop(add_3);
                let getitem = cond_1.0.clone();
                let getitem_1 = cond_1.1.clone();
                let getitem_2 = cond_1.2.clone();  drop(cond_1);
                let lt_1 = (getitem_1 < end)?;
                (while_loop_go, while_loop_0, while_loop_1, while_loop_2, while_loop_3) = (lt_1, add_4, getitem, getitem_1, getitem_2);
            }
            (while_loop_0, while_loop_1, while_loop_2, while_loop_3)
        };
        let getitem_3 = while_loop.0.clone();
        let getitem_6 = while_loop.3.clone();  drop(while_loop);
        Ok((getitem_6, getitem_3))
    }
}
