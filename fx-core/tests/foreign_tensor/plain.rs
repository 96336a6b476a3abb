//! `Generated`, generated from a traced graph of 21 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_core::prelude::*;
use foreign_tensor::Row;

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
    pub fn forward(&self, x: &Row, n: Int) -> Result<(Row, Int)> {
        let getitem = fx_core::operator::getitem.call_as::<Row>((x, Value::Int(0)))?;
        let getitem_1 = fx_core::operator::getitem.call_as::<Row>((x, Value::of(n)))?;
        let getitem_2 = fx_core::operator::getitem.call_as::<Row>((x, Value::Slice(Box::new([Value::None, Value::None, Value::Int(2)]))))?;
        let getitem_3 = fx_core::operator::getitem.call_as::<Row>((x, Value::Tuple(Box::new([Value::Ellipsis, Value::Slice(Box::new([Value::of(n), Value::None, Value::None])), Value::None]))))?;
        let halves = foreign_tensor::halves(&getitem_2)?;  drop(getitem_2);
        let getitem_4 = halves.0.clone();
        let getitem_5 = halves.1.clone();  drop(halves);
        let pow = fx_core::tensor::binary::<Row>(fx_core::value::Operator::Pow, &x, &2.0)?;
        let pow_1 = fx_core::tensor::binary::<Row>(fx_core::value::Operator::Pow, &2.0, &pow)?;  drop(pow);
        let matmul = fx_core::tensor::binary::<Row>(fx_core::value::Operator::Matmul, &pow_1, &getitem)?;  drop(pow_1); drop(getitem);
        let floordiv = fx_core::tensor::binary::<Row>(fx_core::value::Operator::Floordiv, &matmul, &n)?;  drop(matmul);
        let abs = fx_core::tensor::unary::<Row>(fx_core::value::Operator::Abs, &floordiv)?;  drop(floordiv);
        let getattr = fx_core::operator::getattr.call_as::<List<Int>>((x, "shape"))?;
        let add = (&abs + &getitem_1)?;  drop(abs); drop(getitem_1);
        let add_1 = (&add + &getitem_3)?;  drop(add); drop(getitem_3);
        let add_2 = (&add_1 + &getitem_4)?;  drop(add_1); drop(getitem_4);
        let add_3 = (&add_2 + &getitem_5)?;  drop(add_2); drop(getitem_5);
        let getitem_6 = getattr.get(0)?;  drop(getattr);
        Ok((add_3, getitem_6))
    }
}
