//! The source of the graph, as `code()` writes it.

#![allow(clippy::let_and_return, clippy::clone_on_copy, reason = "it is written by a program")]

use fx_nn::prelude::*;

#[derive(Module)]
pub struct Gate {
    pub scale: Tensor,
    pub linear: nn::Linear,
}

#[trace(control_flow)]
impl Gate {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let sum = x.sum(..)?;
        let isnan = sum.isnan()?;
        let invert = (!&isnan)?;  drop(isnan);
        assert!(invert.clone(), "the input is not a number");  drop(invert);
        let gt = (&sum > 0.0)?;  drop(sum);
        let scale = &self.scale;
        let cond = if gt.clone() {
            let mul = (x * scale)?;
            let relu = mul.relu()?;  drop(mul);
            relu
        } else {
            let sub = (x - 1.0)?;
            sub
        };  drop(gt);
        let mul_1 = (&cond * 2.0)?;  drop(cond);
        let abs = mul_1.abs()?;
        let amax = abs.amax(..)?;  drop(abs);
        let gt_1 = (&amax > 4.0)?;  drop(amax);
        let while_loop = {
            let (mut while_loop_go, mut while_loop_0, mut while_loop_1) = (Value::of(gt_1.clone()), mul_1.clone(), Int::from(0));
            while while_loop_go.clone() {
                let (carry, carry_1) = (&while_loop_0, while_loop_1);
                let truediv = (carry / 2.0)?;
                let add = (carry_1 + 1)?;
                let eq = (add == 6)?;
                let invert_1 = (!eq)?;
                let cond_1 = if invert_1 {
                    let truediv = &truediv;
                    let abs_1 = truediv.abs()?;
                    let amax_1 = abs_1.amax(..)?;  drop(abs_1);
                    let gt_2 = (&amax_1 > 4.0)?;  drop(amax_1);
                    Value::of(gt_2)
                } else {
                    Value::Bool(false)
                };
                (while_loop_go, while_loop_0, while_loop_1) = (Value::of(cond_1), truediv, add);
            }
            (while_loop_0, while_loop_1)
        };  drop(gt_1); drop(mul_1);
        let getitem = while_loop.0.clone();
        let getitem_1 = while_loop.1.clone();  drop(while_loop);
        let linear = self.linear.forward(&getitem)?;  drop(getitem);
        let add_1 = (&linear + getitem_1)?;  drop(linear);
        Ok(add_1)
    }
}
