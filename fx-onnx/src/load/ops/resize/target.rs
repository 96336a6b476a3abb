//! Which size a dim of a resized image gets, and how far its places are stretched.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::Dim;

use crate::load::value::{V, as_type};
use crate::load::whole::Whole;

/// A dim of the result.
pub(super) struct Target {
    pub to: Whole,
    /// How far the places are stretched, which the sizes alone may not say.
    pub factor: Factor,
    /// Whether it is as it was, whatever its size.
    pub is_kept: bool,
}

impl Target {
    pub fn scaled(from: &Whole, factor: &Factor) -> Result<Self> {
        let to = match (from.known(), factor) {
            // In `float32`, in which scales are given: 10 times 0.7 is 7.
            (Some(from), Factor::Known(scale)) => {
                Whole::from((from as f32 * *scale as f32).floor() as i64)
            }
            (None, Factor::Known(scale)) if scale.fract() == 0.0 => from.times(*scale as i64)?,
            (_, factor) => {
                let size = as_type(&from.tensor()?, DType::F32)?;
                let to = ops::floor(&(size * factor.tensor()?)?)?;
                Whole::Run(as_type(&to, DType::I64)?)
            }
        };
        Ok(Target {
            to,
            is_kept: matches!(factor, Factor::Known(1.0)),
            factor: factor.clone(),
        })
    }

    pub fn sized(from: &Whole, own: &Dim, to: &Whole) -> Result<Self> {
        let factor = match (from.known(), to.known()) {
            (Some(from), Some(to)) => Factor::Known(to as f64 / from as f64),
            _ => {
                let [to, from] = [to, from].map(|size| as_type(&size.tensor()?, DType::F32));
                Factor::Run((to? / from?)?)
            }
        };
        Ok(Target {
            to: to.clone(),
            is_kept: to.dim().is_some_and(|to| to == *own),
            factor,
        })
    }

    /// The sizes and the factor, if all of them are known.
    pub fn known(&self, from: &Whole) -> Option<(usize, usize, f64)> {
        let Factor::Known(factor) = self.factor else {
            return None;
        };
        let (from, to) = (from.known()?, self.to.known()?.max(0));
        Some((usize::try_from(from).ok()?, to as usize, factor))
    }
}

/// How far places are stretched.
#[derive(Debug, Clone)]
pub(super) enum Factor {
    Known(f64),
    /// A `float32` without dims.
    Run(Tensor),
}

impl Factor {
    /// The factors of an input.
    pub fn all(of: &V) -> Result<Vec<Factor>> {
        let x = of.tensor()?;
        if Object::proxy(&x).is_none() {
            return Ok(x.to_vec()?.into_iter().map(Factor::Known).collect());
        }
        let shape = of.meta().and_then(|meta| meta.known_shape());
        let Some([count]) = shape.as_deref() else {
            return Err(fx_nn::Error::msg(
                "scales that only a run knows, and how many",
            ));
        };
        let x = as_type(&x, DType::F32)?;
        let each = (0..*count as i64).map(|at| ops::select(&x, 0, at).map(Factor::Run));
        each.collect()
    }

    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Factor::Known(factor) => Tensor::from_vec(vec![*factor as f32], ()),
            Factor::Run(factor) => Ok(factor.clone()),
        }
    }
}
