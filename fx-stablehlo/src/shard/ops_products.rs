//! Factors of products, convolutions, attention and look-ups: what they sum over is contracted.

use fx_nn::ir::{Argument, operator};
use fx_nn::{Result, function, function_table, ops};

use super::factors::{Factors, Reduction, ShardCall, ShardRule, ShardTensor};
use super::factors::{broadcast, each};
use super::ops_pointwise::rules;

fn matmul(call: &ShardCall<'_>, a: &str, b: &str) -> Result<Option<Factors>> {
    let (a, b) = (call.tensor(a)?, call.tensor(b)?);
    let Some(result) = call.result() else {
        return Ok(None);
    };
    let (rank_a, rank_b) = (a.shape.len(), b.shape.len());
    if rank_a == 0 || rank_b == 0 {
        return Ok(None);
    }
    let mut factors = Factors::new();
    let inner = Some(factors.contracted(a.shape[rank_a - 1], Reduction::Sum));
    let (has_row, has_column) = (rank_a > 1, rank_b > 1);
    let row = has_row.then(|| factors.factor(a.shape[rank_a - 2]));
    let column = has_column.then(|| factors.factor(b.shape[rank_b - 1]));
    let Some(batch) = result
        .len()
        .checked_sub(usize::from(has_row) + usize::from(has_column))
    else {
        return Ok(None);
    };
    let batch_sizes = &result[..batch];
    let batch = each(&mut factors, batch_sizes);
    let of = |factors: &mut Factors, x: &ShardTensor, last: &[Option<usize>]| {
        let outer = x.shape.len() - last.len();
        let outer = ShardTensor {
            node: x.node,
            shape: x.shape[..outer].to_vec(),
        };
        broadcast(factors, &outer, batch_sizes, &batch);
        if let Some((_, dims)) = factors.operands.last_mut() {
            dims.extend_from_slice(last);
        }
    };
    match has_row {
        true => of(&mut factors, &a, &[row, inner]),
        false => of(&mut factors, &a, &[inner]),
    }
    match has_column {
        true => of(&mut factors, &b, &[inner, column]),
        false => of(&mut factors, &b, &[inner]),
    }
    let mut dims = batch;
    dims.extend(has_row.then_some(row));
    dims.extend(has_column.then_some(column));
    factors.result(dims);
    Ok(Some(factors))
}

fn linear(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
    let ([outer @ .., inner], [columns, _]) = (&x.shape[..], &weight.shape[..]) else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let inner = Some(factors.contracted(*inner, Reduction::Sum));
    let column = Some(factors.factor(*columns));
    let mut dims = each(&mut factors, outer);
    factors.operand(&x, dims.iter().copied().chain([inner]));
    factors.operand(&weight, [column, inner]);
    if let Some(bias) = call.optional_tensor("bias")? {
        // One number may be added to all columns.
        let is_one = bias.shape.first() == Some(&1) && *columns != 1;
        let dims = bias.shape.iter().map(|_| column.filter(|_| !is_one));
        factors.operand(&bias, dims);
        factors.added_once("bias");
    }
    dims.push(column);
    factors.result(dims);
    Ok(Some(factors))
}

/// Convolutions over so many dims.
fn conv(call: &ShardCall<'_>, space: usize) -> Result<Option<Factors>> {
    let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
    let has_batch = x.shape.len() == space + 2;
    if weight.shape.len() != space + 2 || x.shape.len() + 1 < space + 2 {
        return Ok(None);
    }
    let mut factors = Factors::new();
    let batch = has_batch.then(|| factors.factor(x.shape[0]));
    // The number of groups is an argument, which would have to shrink with the channels.
    let (into, out) = match call.int("groups")? {
        Some(1) => {
            let into = factors.contracted(weight.shape[1], Reduction::Sum);
            (Some(into), Some(factors.factor(weight.shape[0])))
        }
        _ => (None, None),
    };
    let spaces = || std::iter::repeat_n(None, space);
    let batches = || has_batch.then_some(batch).into_iter();
    factors.operand(&x, batches().chain([into]).chain(spaces()));
    factors.operand(&weight, [out, into].into_iter().chain(spaces()));
    if let Some(bias) = call.optional_tensor("bias")? {
        factors.operand(&bias, [out]);
        factors.added_once("bias");
    }
    factors.result(batches().chain([out]).chain(spaces()));
    Ok(Some(factors))
}

/// Transposed convolutions over so many dims, whose weights are `[in, out, ..]`.
fn conv_transpose(call: &ShardCall<'_>, space: usize) -> Result<Option<Factors>> {
    let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
    if call.int("groups")? != Some(1) || [&x, &weight].iter().any(|x| x.shape.len() != space + 2) {
        return Ok(None);
    }
    let mut factors = Factors::new();
    let batch = Some(factors.factor(x.shape[0]));
    let into = Some(factors.contracted(weight.shape[0], Reduction::Sum));
    let out = Some(factors.factor(weight.shape[1]));
    let spaces = || std::iter::repeat_n(None, space);
    factors.operand(&x, [batch, into].into_iter().chain(spaces()));
    factors.operand(&weight, [into, out].into_iter().chain(spaces()));
    if let Some(bias) = call.optional_tensor("bias")? {
        factors.operand(&bias, [out]);
        factors.added_once("bias");
    }
    factors.result([batch, out].into_iter().chain(spaces()));
    Ok(Some(factors))
}

/// A factor for each letter; those that the result lacks are contracted.
fn einsum(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (equation, operands) = (call.argument("equation")?, call.tensors("operands")?);
    let (Argument::Str(equation), Some(operands)) = (&*equation, operands) else {
        return Ok(None);
    };
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    // Without an arrow the order of the result's letters is another question.
    let Some((inputs, output)) = equation.split_once("->") else {
        return Ok(None);
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    let is_plain = |letters: &&str| {
        let mut seen = letters.char_indices();
        seen.all(|(at, c)| c.is_ascii_alphabetic() && !letters[..at].contains(c))
    };
    if inputs.len() != operands.len() || !inputs.iter().chain([&output]).all(is_plain) {
        return Ok(None);
    }
    let mut factors = Factors::new();
    let mut known: Vec<(char, usize)> = Vec::new();
    for (letters, x) in inputs.iter().zip(&operands) {
        if letters.len() != x.shape.len() {
            return Ok(None);
        }
        let mut dims = Vec::with_capacity(x.shape.len());
        for (letter, size) in letters.chars().zip(&x.shape) {
            let found = known.iter().find(|(other, _)| *other == letter);
            let factor = match found {
                Some((_, factor)) => *factor,
                None => {
                    let factor = match output.contains(letter) {
                        true => factors.factor(*size),
                        false => factors.contracted(*size, Reduction::Sum),
                    };
                    known.push((letter, factor));
                    factor
                }
            };
            // A size of one is broadcast.
            dims.push((factors.factors[factor].size == *size).then_some(factor));
        }
        factors.operand(x, dims);
    }
    let of = |letter: char| known.iter().find(|(other, _)| *other == letter);
    let result = output
        .chars()
        .map(|letter| of(letter).map(|(_, factor)| *factor));
    factors.result(result.collect::<Vec<_>>());
    Ok(Some(factors))
}

/// Batch and heads; keys and values of grouped heads are shared by blocks of queries.
fn attention(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (query, key, value) = (
        call.tensor("query")?,
        call.tensor("key")?,
        call.tensor("value")?,
    );
    let rank = query.shape.len();
    let is_plain = [&key, &value].iter().all(|x| x.shape.len() == rank);
    if rank < 2 || !is_plain || call.argument("dropout_p")?.as_node().is_some() {
        return Ok(None);
    }
    let mut factors = Factors::new();
    let mut dims: Vec<Option<usize>> = Vec::new();
    for at in 0..rank - 2 {
        let (q, k) = (query.shape[at], key.shape[at]);
        let is_grouped = at + 3 == rank && call.flag("enable_gqa")? && k > 0 && q % k == 0;
        let is_shared = (q == k || is_grouped) && k == value.shape[at] && k > 1;
        dims.push(is_shared.then(|| factors.factor(k)));
    }
    for x in [&query, &key, &value] {
        factors.operand(x, dims.iter().copied().chain([None, None]));
    }
    if let Some(mask) = call.optional_tensor("attn_mask")? {
        let Some(result) = call.result() else {
            return Ok(None);
        };
        let of: Vec<_> = dims.iter().copied().chain([None, None]).collect();
        let outer = mask.shape.len().saturating_sub(2);
        let whole = ShardTensor {
            node: mask.node,
            shape: mask.shape[..outer].to_vec(),
        };
        broadcast(&mut factors, &whole, &result[..rank - 2], &of[..rank - 2]);
        if let Some((_, dims)) = factors.operands.last_mut() {
            dims.resize(mask.shape.len(), None);
        }
    }
    factors.result(dims.iter().copied().chain([None, None]));
    Ok(Some(factors))
}

fn embedding(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
    let [rows, width] = weight.shape[..] else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let row = factors.contracted(rows, Reduction::Sum);
    let column = factors.factor(width);
    let dims = each(&mut factors, &x.shape);
    factors.operand(&x, dims.iter().copied());
    factors.operand(&weight, [Some(row), Some(column)]);
    factors.result(dims.into_iter().chain([Some(column)]));
    factors.rows();
    Ok(Some(factors))
}

fn index_select(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (x, index) = (call.tensor("x")?, call.tensor("index")?);
    let Some(dim) = call.dim("dim", x.shape.len())? else {
        return Ok(None);
    };
    let [count] = index.shape[..] else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let mut dims = each(&mut factors, &x.shape);
    dims[dim] = None;
    factors.operand(&x, dims.iter().copied());
    dims[dim] = Some(factors.factor(count));
    factors.operand(&index, [dims[dim]]);
    factors.result(dims);
    Ok(Some(factors))
}

fn gather(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (x, index) = (call.tensor("x")?, call.tensor("index")?);
    let rank = x.shape.len();
    let (Some(dim), true) = (call.dim("dim", rank)?, index.shape.len() == rank) else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let mut of_x = Vec::new();
    let mut of_index = Vec::new();
    for at in 0..rank {
        let (is_same, size) = (x.shape[at] == index.shape[at], index.shape[at]);
        let factor = (at == dim || is_same).then(|| factors.factor(size));
        of_index.push(factor);
        of_x.push(factor.filter(|_| at != dim));
    }
    factors.operand(&x, of_x);
    factors.operand(&index, of_index.iter().copied());
    factors.result(of_index);
    Ok(Some(factors))
}

rules! {
    |call| matmul(call, "x", "other") => matmul;
    linear => linear;
    |call| conv(call, 1) => conv1d;
    |call| conv(call, 2) => conv2d;
    |call| conv(call, 3) => conv3d;
    |call| conv_transpose(call, 1) => conv_transpose1d;
    |call| conv_transpose(call, 2) => conv_transpose2d;
    |call| conv_transpose(call, 3) => conv_transpose3d;
    einsum => einsum;
    attention => scaled_dot_product_attention;
    embedding => embedding;
    index_select => index_select;
    gather => gather;
}

function_table! { ShardRule {
    operator::matmul => ShardRule(|call| matmul(call, "a", "b")),
} }
