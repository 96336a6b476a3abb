//! Products of matrices, and layers that are such products.

use fx_core::Result;
use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use super::{
    Elements, divided, kind, promoted, require, require_fits, require_one_type,
    require_probability, require_rank, require_type_of, rules, tensor, wrong, x,
};
use crate::ops;
use crate::tensor::Number;

rules! {
    |call| product(call, "other") => ops::matmul;
    |call| of_ranks(call, "mat2", [2, 2]) => ops::mm;
    batches => ops::bmm;
    groups => ops::grouped_mm;
    |call| of_ranks(call, "vec", [2, 1]) => ops::mv;
    |call| of_ranks(call, "tensor", [1, 1]) => ops::dot;
    |call| of_ranks(call, "other", [1, 1]) => ops::vdot;
    outer => ops::outer, ops::ger;
    linear => ops::linear;
    |call| added(call, "mat1", "mat2", [2, 2]) => ops::addmm;
    |call| added(call, "mat", "vec", [2, 1]) => ops::addmv;
    |call| added_batches(call, false) => ops::baddbmm;
    |call| added_batches(call, true) => ops::addbmm;
    added_outer => ops::addr;
    attention => ops::scaled_dot_product_attention;
}

/// Returns an error unless two tensors are of one type, and of numbers.
pub(super) fn require_factors(call: &RuleCall<'_>, a: &TensorMeta, b: &TensorMeta) -> Result<()> {
    require_one_type(call, a, b)?;
    require(call, a, Elements::Numbers)
}

fn product(call: &mut RuleCall<'_>, other: &str) -> Result<ValueMeta> {
    let (x, other) = (x(call)?, call.tensor(other)?);
    require_factors(call, x, other)?;
    Ok(tensor(call.matmul(&x.shape, &other.shape)?, x.dtype))
}

fn require_ranks(
    call: &RuleCall<'_>,
    a: &TensorMeta,
    b: &TensorMeta,
    [of_a, of_b]: [usize; 2],
) -> Result<()> {
    require_rank(call, a, of_a..=of_a)?;
    require_rank(call, b, of_b..=of_b)
}

fn of_ranks(call: &mut RuleCall<'_>, other: &str, ranks: [usize; 2]) -> Result<ValueMeta> {
    require_ranks(call, x(call)?, call.tensor(other)?, ranks)?;
    product(call, other)
}

/// Returns an error unless there are as many matrices on both sides.
fn require_batches(call: &mut RuleCall<'_>, a: &TensorMeta, b: &TensorMeta) -> Result<()> {
    require_ranks(call, a, b, [3, 3])?;
    match (a.shape.first(), b.shape.first()) {
        (Some(a), Some(b)) => call.same(a, b, || {
            "the batches are not as many on both sides: `matmul` broadcasts".to_string()
        }),
        _ => Ok(()),
    }
}

fn batches(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, other) = (x(call)?, call.tensor("mat2")?);
    require_batches(call, x, other)?;
    product(call, "mat2")
}

/// Rows in groups, each times a matrix of its own.
fn groups(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (rows, matrices, ends) = (
        call.tensor("mat_a")?,
        call.tensor("mat_b")?,
        call.tensor("offs")?,
    );
    require_factors(call, rows, matrices)?;
    require_ranks(call, rows, matrices, [2, 3])?;
    require_rank(call, ends, 1..=1)?;
    if ends.dtype.is_some_and(|dtype| dtype != DType::I32) {
        return Err(wrong(call, "`offs` must be of `int32`"));
    }
    if let (Some(groups), Some(count)) = (matrices.shape.first(), ends.shape.first()) {
        call.same(groups, count, || {
            "there must be an offset for each matrix of `mat_b`".to_string()
        })?;
    }
    Ok(tensor(
        call.matmul(&rows.shape, &matrices.shape[1..])?,
        rows.dtype,
    ))
}

/// A row for each element of the first.
fn outer(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, other) = (x(call)?, call.tensor("vec2")?);
    require_ranks(call, x, other, [1, 1])?;
    let shape = x.shape.iter().chain(&other.shape).cloned().collect();
    Ok(tensor(shape, promoted(&[x, other])))
}

fn linear(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, weight) = (x(call)?, call.tensor("weight")?);
    require_factors(call, x, weight)?;
    require_type_of(call, x, &["bias"])?;
    let ([before @ .., inner], [outputs, inputs]) = (&x.shape[..], &weight.shape[..]) else {
        return Err(wrong(
            call,
            format_args!("the shapes {:?} and {:?} do not fit", x.shape, weight.shape),
        ));
    };
    call.same(inner, inputs, || {
        format!(
            "the input {:?} does not fit the weight {:?}",
            x.shape, weight.shape
        )
    })?;
    if let Some(bias) = call.optional_tensor("bias")? {
        require_rank(call, bias, ..=1)?;
        require_fits(call, &bias.shape, std::slice::from_ref(outputs))?;
    }
    let mut shape: Vec<Dim> = before.to_vec();
    shape.push(outputs.clone());
    Ok(tensor(shape, x.dtype))
}

/// A tensor that is added to a product, which it fits.
fn sum(call: &mut RuleCall<'_>, product: Vec<Dim>, factors: [&TensorMeta; 2]) -> Result<ValueMeta> {
    let x = x(call)?;
    for factor in factors {
        require_factors(call, x, factor)?;
    }
    let is_whole = x.dtype.is_some_and(|dtype| !dtype.is_floating_point());
    for param in ["beta", "alpha"] {
        match kind(call.arg(param)?) {
            Some(number) if is_whole && !matches!(number, Number::Int(_)) => {
                return Err(wrong(
                    call,
                    format_args!("`{param}` of integers is an integer, and not {number}"),
                ));
            }
            _ => {}
        }
    }
    require_fits(call, &x.shape, &product)?;
    Ok(tensor(product, x.dtype))
}

fn added(call: &mut RuleCall<'_>, a: &str, b: &str, ranks: [usize; 2]) -> Result<ValueMeta> {
    let (a, b) = (call.tensor(a)?, call.tensor(b)?);
    require_ranks(call, a, b, ranks)?;
    let product = call.matmul(&a.shape, &b.shape)?;
    sum(call, product, [a, b])
}

/// The products of the matrices, or their sum.
fn added_batches(call: &mut RuleCall<'_>, is_sum: bool) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("batch1")?, call.tensor("batch2")?);
    require_batches(call, a, b)?;
    let product = call.matmul(&a.shape, &b.shape)?;
    let product = product.into_iter().skip(usize::from(is_sum)).collect();
    sum(call, product, [a, b])
}

fn added_outer(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (a, b) = (call.tensor("vec1")?, call.tensor("vec2")?);
    require_ranks(call, a, b, [1, 1])?;
    let product = a.shape.iter().chain(&b.shape).cloned().collect();
    sum(call, product, [a, b])
}

/// The sizes before the heads, and the heads, rows and columns.
type Heads<'m> = (&'m [Dim], &'m Dim, [&'m Dim; 2]);

fn heads<'m>(call: &RuleCall<'_>, meta: &'m TensorMeta) -> Result<Heads<'m>> {
    match &meta.shape[..] {
        [batch @ .., heads, rows, columns] => Ok((batch, heads, [rows, columns])),
        other => Err(wrong(
            call,
            format_args!("`enable_gqa` needs heads, which {other:?} does not have"),
        )),
    }
}

/// The shape of keys or values with the heads of the query.
fn repeated(call: &mut RuleCall<'_>, meta: &TensorMeta, query: &TensorMeta) -> Result<Vec<Dim>> {
    let (_, many, _) = heads(call, query)?;
    let (batch, own, [rows, columns]) = heads(call, meta)?;
    divided(call, many, own, "heads in groups")?;
    Ok(batch.iter().chain([many, rows, columns]).cloned().collect())
}

fn attention(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (query, key, value) = (
        call.tensor("query")?,
        call.tensor("key")?,
        call.tensor("value")?,
    );
    require_probability(call, "dropout_p")?;
    require_type_of(call, query, &["key", "value"])?;
    require(call, query, Elements::Fractions)?;
    for meta in [query, key, value] {
        require_rank(call, meta, 2..)?;
    }
    let (key, value) = match call.flag("enable_gqa")? {
        true => (repeated(call, key, query)?, repeated(call, value, query)?),
        false => (key.shape.clone(), value.shape.clone()),
    };
    if let (Some(width), Some(other)) = (query.shape.last(), key.last()) {
        call.same(width, other, || {
            format!("the query {:?} does not fit the key {key:?}", query.shape)
        })?;
    }
    let mut turned = key;
    turned.reverse();
    let swapped = turned.get(..2).map(<[Dim]>::to_vec).unwrap_or_default();
    let batch = turned.into_iter().skip(2).rev();
    let turned: Vec<Dim> = batch.chain(swapped).collect();
    let scores = call.matmul(&query.shape, &turned)?;
    if let Some(mask) = call.optional_tensor("attn_mask")? {
        if call.flag("is_causal")? {
            return Err(wrong(
                call,
                "`is_causal` makes its own mask: give one of them",
            ));
        }
        if !matches!(mask.dtype, Some(DType::Bool | DType::F32)) {
            require_one_type(call, query, mask)?;
        }
        require_fits(call, &mask.shape, &scores)?;
    }
    Ok(tensor(call.matmul(&scores, &value)?, query.dtype))
}
