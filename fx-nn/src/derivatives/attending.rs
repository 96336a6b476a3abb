//! `attention`: the gradients of `scaled_dot_product_attention` as one function, for which compiled code has a kernel that
//! has no matrix of scores.

use fx_core::ir::ValueMeta;
use fx_core::passes::{CoreSet, DecomposedCall};
use fx_core::shapes::ShapeRule;
use fx_core::value::{DType, IntoValue, Value};
use fx_core::{Result, function, function_table, wrap};

use super::{derivatives, turned};
use crate::decompositions::{
    Attention, attention_shares, dtype_of, for_heads, scaled, unknown_mask,
};
use crate::func::{Pullback, known, sum_to};
use crate::ops;
use crate::tensor::Tensor;

/// The gradients of the query, the key and the value of
/// [`scaled_dot_product_attention`](crate::ops::scaled_dot_product_attention), from that of its result.
///
/// ```
/// use fx_nn::prelude::*;
/// let (q, k) = (Tensor::ones((1, 1, 1, 1))?, Tensor::ones((1, 1, 2, 1))?);
/// let v = Tensor::from_vec(vec![4.0f32, 6.0], (1, 1, 2, 1))?;
/// let grad = Tensor::ones((1, 1, 1, 1))?;
/// let (dq, dk, dv) = fx_nn::grad::attention(&q, &k, &v, &grad, None, false, None, false)?;
/// assert_eq!(dq.to_vec()?, [0.0]);
/// assert_eq!(dk.to_vec()?, [-0.5, 0.5]);
/// assert_eq!(dv.to_vec()?, [0.5, 0.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, or a mask is given together with `is_causal`.
#[wrap(path = "fx_nn::grad::attention")]
#[allow(clippy::too_many_arguments, reason = "those of attention")]
pub fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    grad: &Tensor,
    #[kw] attn_mask: Option<&Tensor>,
    #[kw]
    #[default(false)]
    is_causal: bool,
    #[kw] scale: Option<f64>,
    #[kw]
    #[default(false)]
    enable_gqa: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let mask = match attn_mask {
        Some(mask) => Some((mask.clone(), known::dtype(mask)?)),
        None => None,
    };
    let tensors = [query.clone(), key.clone(), value.clone()];
    let of = Call::new(tensors, mask, is_causal, scale, enable_gqa);
    of.gradients(grad, sum_to)
        .map(|[query, key, value]| (query, key, value))
}

/// A call of attention.
struct Call {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Option<(Tensor, DType)>,
    options: Attention,
}

impl Call {
    fn new(
        [query, key, value]: [Tensor; 3],
        mask: Option<(Tensor, DType)>,
        is_causal: bool,
        scale: Option<f64>,
        enable_gqa: bool,
    ) -> Self {
        Call {
            query,
            key,
            value,
            mask,
            options: Attention {
                dropout_p: 0.0,
                is_causal,
                scale,
                enable_gqa,
            },
        }
    }

    fn shares(&self, key: &Tensor) -> Result<Tensor> {
        let mask = self.mask.as_ref().map(|(mask, dtype)| (mask, *dtype));
        attention_shares(&self.query, key, mask, &self.options)
    }

    /// The gradient of the scores, from that of the result.
    fn of_scores(&self, shares: &Tensor, value: &Tensor, grad: &Tensor) -> Result<Tensor> {
        let of_shares = ops::matmul(grad, &turned(value)?)?;
        let weighted = (shares * of_shares)?;
        let all = ops::sum(&weighted, -1, true)?;
        weighted - (shares * all)?
    }

    /// The gradients of the query, the key and the value, each `fit` to what it is of.
    fn gradients(
        &self,
        grad: &Tensor,
        fit: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<[Tensor; 3]> {
        let Call {
            query,
            key,
            value,
            options,
            ..
        } = self;
        let own = |x: &Tensor| for_heads(x, query, options);
        let (all_keys, all_values) = (own(key)?, own(value)?);
        let shares = self.shares(&all_keys)?;
        let of_products = scaled(self.of_scores(&shares, &all_values, grad)?, query, options)?;
        // The heads that share a key or a value.
        let of_group = |x: Tensor, of: &Tensor| -> Result<Tensor> {
            if !options.enable_gqa {
                return fit(&x, of);
            }
            let times = query.size(-3)?.floordiv(of.size(-3)?)?;
            let x = ops::unflatten(&x, -3, [of.size(-3)?, times])?;
            fit(&ops::sum(&x, -3, false)?, of)
        };
        Ok([
            fit(&ops::matmul(&of_products, &all_keys)?, query)?,
            of_group(ops::matmul(&turned(&of_products)?, query)?, key)?,
            of_group(ops::matmul(&turned(&shares)?, grad)?, value)?,
        ])
    }
}

function_table! { CoreSet {
    function!(attention) => CoreSet::decomposed(|call: &DecomposedCall<'_>| {
        let tensor = |name| call.arg::<Tensor>(name);
        let mask = match call.arg::<Option<Tensor>>("attn_mask")? {
            Some(mask) => {
                let dtype = dtype_of(call, "attn_mask").ok_or_else(unknown_mask)?;
                Some((mask, dtype))
            }
            None => None,
        };
        let tensors = [tensor("query")?, tensor("key")?, tensor("value")?];
        let (is_causal, scale) = (call.arg("is_causal")?, call.arg("scale")?);
        let of = Call::new(tensors, mask, is_causal, scale, call.arg("enable_gqa")?);
        // A rule is only for shapes that do not broadcast.
        let [query, key, value] = of.gradients(&tensor("grad")?, |x, _| Ok(x.clone()))?;
        Ok(Value::Tuple([query, key, value].map(IntoValue::into_value).into()))
    }),
} }

function_table! { ShapeRule {
    function!(attention) => ShapeRule(|call| {
        let of = ["query", "key", "value"].map(|name| call.arg(name).cloned());
        Ok(ValueMeta::Tuple(of.into_iter().collect::<Result<_>>()?))
    }),
} }

derivatives! {
    ops::scaled_dot_product_attention => |call| gradients(call);
}

fn gradients(call: &mut Pullback<'_>) -> Result<()> {
    let tensor = |call: &Pullback<'_>, name| call.arg::<Tensor>(name);
    let (mut query, mut key, mut value) = (
        tensor(call, "query")?,
        tensor(call, "key")?,
        tensor(call, "value")?,
    );
    let mut grad = call.grad()?;
    let mask: Option<Tensor> = call.arg("attn_mask")?;
    if matches!(known::dtype(&query)?, DType::F16 | DType::BF16) {
        for x in [&mut query, &mut key, &mut value, &mut grad] {
            *x = ops::to_dtype(x, DType::F32)?;
        }
    }
    let (is_causal, scale): (bool, Option<f64>) = (call.arg("is_causal")?, call.arg("scale")?);
    let enable_gqa: bool = call.arg("enable_gqa")?;
    if call.needs("attn_mask") {
        let dtype = mask.as_ref().map(known::dtype).transpose()?;
        let tensors = [query.clone(), key.clone(), value.clone()];
        let mask = mask.clone().zip(dtype);
        let of = Call::new(tensors, mask, is_causal, scale, enable_gqa);
        call.give("attn_mask", |_| {
            let own = |x: &Tensor| for_heads(x, &of.query, &of.options);
            let shares = of.shares(&own(&of.key)?)?;
            of.of_scores(&shares, &own(&of.value)?, &grad)
        })?;
    }
    if !["query", "key", "value"]
        .iter()
        .any(|name| call.needs(name))
    {
        return Ok(());
    }
    // What broadcasts is as large as the result first; `give` sums it.
    let leading = |x: &Tensor| -> Result<Vec<_>> {
        let mut dims = known::dims(x)?;
        dims.truncate(dims.len().saturating_sub(if enable_gqa { 3 } else { 2 }));
        Ok(dims)
    };
    let of_grad = leading(&grad)?;
    for x in [&mut query, &mut key, &mut value] {
        if leading(x)? != of_grad {
            let mut sizes = known::sizes(&grad)?;
            sizes.truncate(of_grad.len());
            let own = known::sizes(x)?;
            sizes.extend(&own[leading(x)?.len()..]);
            *x = ops::expand(x, sizes)?;
        }
    }
    let (of_query, of_key, of_value) = attention(
        &query,
        &key,
        &value,
        &grad,
        mask.as_ref(),
        is_causal,
        scale,
        enable_gqa,
    )?;
    call.give("query", |_| Ok(of_query))?;
    call.give("key", |_| Ok(of_key))?;
    call.give("value", |_| Ok(of_value))
}
