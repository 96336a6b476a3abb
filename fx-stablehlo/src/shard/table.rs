//! What the core set's functions do to dims.
//!
//! Invariant: dims of one factor have one size, or are the outermost parts of dims that are split or merged.

use fx_nn::prelude::*;
use fx_nn::{function, function_table, operator};

use super::factors::{Factors, ShardCall, ShardRule};

/// Functions of one rule.
macro_rules! sharded {
    ($($rule:expr => $($($function:ident)::+),+;)*) => {$(
        function_table! { ShardRule { $(function!(ops::$($function)::+) => ShardRule($rule)),+ } }
    )*};
}

sharded! {
    elementwise => relu, sigmoid, tanh, exp, expm1, log, log1p, sqrt, rsqrt, sin, cos, tan, floor, ceil, sign, erf, erfc,
        erfinv, acos, acosh, asin, asinh, atan, atanh, cosh, sinh, atan2, maximum, minimum, reciprocal, trunc, round,
        isnan, isinf, isfinite, clamp, floor_divide, remainder, fmod, r#where, masked_fill, mask_scores, to_dtype,
        type_as, to_device, logical_not, logical_and, logical_or, bitwise_not, bitwise_and, bitwise_or, bitwise_xor,
        bitwise_left_shift, bitwise_right_shift, expand, full_like, dropout;
    matmul => matmul;
    linear => linear;
    convolution => conv1d, conv2d, conv3d;
    reduction => sum, mean, amax, amin, var, logsumexp, prod, all, any, argmax, argmin, max, min;
    permuted => permute, transpose, t, movedim;
    reshaped => reshape, flatten, unflatten, squeeze, unsqueeze;
    front => max_pool1d, max_pool2d, max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, adaptive_avg_pool1d,
        adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d,
        interpolate;
    but_the_dim => cat, chunk, split, split_with_sizes, tensor_split, narrow, cumsum, cumprod, sort, topk, index_select,
        gather;
    selected => select, unbind;
    kept => pad, repeat, flip, roll;
    but_the_matrix => tril, triu;
    embedding => embedding;
    batch_norm => batch_norm;
    einsum => einsum;
}

function_table! { ShardRule {
    operator::add => ShardRule(elementwise), operator::sub => ShardRule(elementwise),
    operator::mul => ShardRule(elementwise), operator::truediv => ShardRule(elementwise),
    operator::floordiv => ShardRule(elementwise), operator::r#mod => ShardRule(elementwise),
    operator::pow => ShardRule(elementwise), operator::neg => ShardRule(elementwise),
    operator::abs => ShardRule(elementwise), operator::eq => ShardRule(elementwise),
    operator::ne => ShardRule(elementwise), operator::lt => ShardRule(elementwise),
    operator::le => ShardRule(elementwise), operator::gt => ShardRule(elementwise),
    operator::ge => ShardRule(elementwise), operator::and_ => ShardRule(elementwise),
    operator::or_ => ShardRule(elementwise), operator::xor => ShardRule(elementwise),
    operator::invert => ShardRule(elementwise), operator::matmul => ShardRule(matmul),
    operator::getitem => ShardRule(item),
} }

/// Dims from the back, where the sizes are those of the result.
fn aligned(factors: &Factors, result: &[i64], shape: &[i64]) -> Vec<Option<usize>> {
    let ahead = result.len().wrapping_sub(shape.len());
    let dims = shape.iter().enumerate().map(|(dim, size)| {
        let at = dim.wrapping_add(ahead);
        (result.get(at) == Some(size))
            .then(|| factors.result[at])
            .flatten()
    });
    dims.collect()
}

fn elementwise(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    for (id, shape) in call.tensors() {
        let dims = aligned(&factors, &result, &shape);
        factors.operand(id, dims);
    }
    Ok(factors)
}

/// The dims in front of the last `count` ones.
fn same_front(
    factors: &Factors,
    result: &[i64],
    shape: &[i64],
    count: usize,
) -> Vec<Option<usize>> {
    let ahead = result.len().wrapping_sub(shape.len());
    let dims = shape.iter().enumerate().map(|(dim, size)| {
        let at = dim.wrapping_add(ahead);
        let is_front = dim + count < shape.len();
        (is_front && result.get(at) == Some(size))
            .then(|| factors.result[at])
            .flatten()
    });
    dims.collect()
}

fn matmul(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    let mut tensors = call.tensors().into_iter();
    let (Some((a, left)), Some((b, right))) = (tensors.next(), tensors.next()) else {
        return Ok(factors);
    };
    let summed = factors.summed();
    let last = |back: usize| result.len().checked_sub(back);
    let mut dims = same_front(&factors, &result, &left, 2.min(left.len()));
    if let Some(dim) = left.len().checked_sub(1) {
        dims[dim] = Some(summed);
        if dim > 0 {
            let back = if right.len() == 1 { 1 } else { 2 };
            dims[dim - 1] = last(back).and_then(|at| factors.result[at]);
            if right.len() <= 2 {
                // All of the left's rows are the result's.
                for (row, place) in dims.iter_mut().enumerate().take(dim) {
                    *place = factors.result.get(row).copied().flatten();
                }
            }
        }
    }
    factors.operand(a, dims);
    let mut dims = same_front(&factors, &result, &right, 2.min(right.len()));
    match right.len() {
        0 => {}
        1 => dims[0] = Some(summed),
        rank => {
            dims[rank - 2] = Some(summed);
            dims[rank - 1] = last(1).and_then(|at| factors.result[at]);
        }
    }
    factors.operand(b, dims);
    Ok(factors)
}

fn linear(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    let summed = factors.summed();
    let units = factors.result.last().copied().flatten();
    if let Some((x, shape)) = call.tensor("x") {
        let front = factors.result[..shape.len() - 1].to_vec();
        factors.operand(x, [front, vec![Some(summed)]].concat());
    }
    if let Some((weight, _)) = call.tensor("weight") {
        factors.operand(weight, vec![units, Some(summed)]);
    }
    if let Some((bias, _)) = call.tensor("bias") {
        factors.operand(bias, vec![units]);
    }
    Ok(factors)
}

fn convolution(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    for dim in 2..result.len() {
        factors.result[dim] = None;
    }
    let is_whole = call.ints("groups") == [1];
    let summed = is_whole.then(|| factors.summed());
    let units = if is_whole { factors.result[1] } else { None };
    if !is_whole {
        factors.result[1] = None;
    }
    if let Some((x, shape)) = call.tensor("x") {
        let mut dims = vec![None; shape.len()];
        if shape.len() == result.len() {
            (dims[0], dims[1]) = (factors.result[0], summed);
        }
        factors.operand(x, dims);
    }
    if let Some((weight, shape)) = call.tensor("weight") {
        let mut dims = vec![None; shape.len()];
        (dims[0], dims[1]) = (units, summed);
        factors.operand(weight, dims);
    }
    if let Some((bias, _)) = call.tensor("bias") {
        factors.operand(bias, vec![units]);
    }
    Ok(factors)
}

fn reduction(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    let Some((x, shape)) = call.tensor("x") else {
        return Ok(factors);
    };
    let given: Vec<i64> = call.ints("dim");
    let rank = shape.len() as i64;
    let is_reduced = |dim: usize| {
        given.is_empty()
            || given
                .iter()
                .any(|d| d.rem_euclid(rank.max(1)) == dim as i64)
    };
    let keeps = call.flag("keepdim");
    let mut at = 0;
    let mut dims = Vec::new();
    for dim in 0..shape.len() {
        if is_reduced(dim) {
            dims.push(Some(factors.summed()));
            if keeps && at < result.len() {
                factors.result[at] = None;
                at += 1;
            }
        } else {
            dims.push(factors.result.get(at).copied().flatten());
            at += 1;
        }
    }
    factors.operand(x, dims);
    Ok(factors)
}

fn permuted(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    let Some((x, shape)) = call.tensor("x") else {
        return Ok(factors);
    };
    let rank = shape.len();
    let place = |dim: i64| dim.rem_euclid(rank.max(1) as i64) as usize;
    let mut order: Vec<usize> = (0..rank).collect();
    match call.node.target().to_string().rsplit("::").next() {
        Some("permute") => order = call.ints("dims").into_iter().map(place).collect(),
        Some("transpose") if rank > 0 => {
            let (a, b) = (call.dim("dim0", rank), call.dim("dim1", rank));
            if let (Some(a), Some(b)) = (a, b) {
                order.swap(a, b);
            }
        }
        Some("t") => order.reverse(),
        _ => return Ok(factors),
    }
    let mut dims = vec![None; rank];
    for (at, dim) in order.into_iter().enumerate() {
        if let (Some(dim), Some(factor)) = (dims.get_mut(dim), factors.result.get(at)) {
            *dim = *factor;
        }
    }
    factors.operand(x, dims);
    Ok(factors)
}

/// Dims that stay whole, and the outermost of those that are split or merged.
fn reshaped(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    let Some((x, shape)) = call.tensor("x") else {
        return Ok(factors);
    };
    let mut dims = vec![None; shape.len()];
    let mut used = vec![false; result.len()];
    let (mut from, mut to) = (0, 0);
    while from < shape.len() && to < result.len() {
        // Dims of size one are no part of what is split.
        if shape[from] == 1 && result[to] != 1 {
            from += 1;
            continue;
        }
        if result[to] == 1 && shape[from] != 1 {
            to += 1;
            continue;
        }
        dims[from] = factors.result[to];
        used[to] = true;
        let (mut left, mut right) = (shape[from], result[to]);
        (from, to) = (from + 1, to + 1);
        while left != right {
            match left < right {
                true if from < shape.len() => {
                    left = left.saturating_mul(shape[from]);
                    from += 1;
                }
                false if to < result.len() => {
                    right = right.saturating_mul(result[to]);
                    to += 1;
                }
                _ => return Ok(factors),
            }
        }
    }
    for (factor, used) in factors.result.iter_mut().zip(used) {
        if !used {
            *factor = None;
        }
    }
    factors.operand(x, dims);
    Ok(factors)
}

/// Batch and channels; windows need their neighbours.
fn front(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    for dim in 2.min(result.len())..result.len() {
        factors.result[dim] = None;
    }
    if let Some((x, shape)) = call.tensor("x") {
        let dims = aligned(&factors, &result, &shape);
        factors.operand(x, dims);
    }
    Ok(factors)
}

/// All dims but the one that the call is about.
fn but_the_dim(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    if let Some(dim) = call.dim("dim", result.len())
        && dim < result.len()
    {
        factors.result[dim] = None;
    }
    for (id, shape) in call.tensors() {
        let dims = match shape.len() == result.len() {
            true => aligned(&factors, &result, &shape),
            false => vec![None; shape.len()],
        };
        factors.operand(id, dims);
    }
    Ok(factors)
}

/// All dims but one, which goes.
fn selected(call: &ShardCall<'_>) -> Result<Factors> {
    let factors = Factors::of_result(call.result().len());
    let Some((x, shape)) = call.tensor("x") else {
        return Ok(factors);
    };
    let Some(gone) = call.dim("dim", shape.len()) else {
        return Ok(factors);
    };
    let mut factors = factors;
    let mut rest = factors.result.clone().into_iter();
    let dims = (0..shape.len()).map(|dim| {
        if dim == gone {
            None
        } else {
            rest.next().flatten()
        }
    });
    let dims = dims.collect();
    factors.operand(x, dims);
    Ok(factors)
}

/// Dims that have the same size at the same place.
fn kept(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    if let Some((x, shape)) = call.tensor("x") {
        let mut moved: Vec<i64> = call.ints("dims");
        if moved.is_empty() && call.node.target().to_string().ends_with("::roll") {
            moved = (0..result.len() as i64).collect();
        }
        moved
            .iter_mut()
            .for_each(|dim| *dim = dim.rem_euclid(result.len().max(1) as i64));
        for (dim, factor) in factors.result.iter_mut().enumerate() {
            let is_whole = shape.len() == result.len() && shape[dim] == result[dim];
            if !is_whole || moved.contains(&(dim as i64)) {
                *factor = None;
            }
        }
        let dims = if shape.len() == result.len() {
            factors.result.clone()
        } else {
            vec![None; shape.len()]
        };
        factors.operand(x, dims);
    }
    Ok(factors)
}

/// All dims but the last two, whose places count.
fn but_the_matrix(call: &ShardCall<'_>) -> Result<Factors> {
    let mut factors = kept(call)?;
    let rank = factors.result.len();
    for factor in factors.result.iter_mut().skip(rank.saturating_sub(2)) {
        *factor = None;
    }
    for (_, dims) in &mut factors.operands {
        dims.clone_from(&factors.result);
    }
    Ok(factors)
}

/// An item of several values has their sharding; a part of a tensor that of its whole dims.
fn item(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    if let Some((x, shape)) = call.tensor("a") {
        // Places that a run knows may be in any order.
        let is_same = shape.len() == result.len() && call.tensors().len() == 1;
        for (dim, factor) in factors.result.iter_mut().enumerate() {
            if !is_same || shape[dim] != result[dim] {
                *factor = None;
            }
        }
        let dims = if is_same {
            factors.result.clone()
        } else {
            vec![None; shape.len()]
        };
        factors.operand(x, dims);
    }
    Ok(factors)
}

fn embedding(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    let words = factors.summed();
    let width = factors.result.last().copied().flatten();
    if let Some((x, shape)) = call.tensor("x") {
        let dims = factors.result[..shape.len()].to_vec();
        factors.operand(x, dims);
    }
    if let Some((weight, _)) = call.tensor("weight") {
        factors.operand(weight, vec![Some(words), width]);
    }
    Ok(factors)
}

fn batch_norm(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let mut factors = Factors::of_result(result.len());
    let channels = factors.result.get(1).copied().flatten();
    for (id, shape) in call.tensors() {
        let dims = if shape.len() == 1 {
            vec![channels]
        } else {
            factors.result.clone()
        };
        factors.operand(id, dims);
    }
    Ok(factors)
}

fn einsum(call: &ShardCall<'_>) -> Result<Factors> {
    let result = call.result();
    let equation = call.text("equation").unwrap_or_default().replace(' ', "");
    let mut factors = Factors::of_result(result.len());
    let Some((inputs, output)) = equation.split_once("->") else {
        return Ok(factors);
    };
    if equation.contains("...") {
        return Ok(factors);
    }
    let mut letters: Vec<(char, usize)> = output.chars().zip(0..result.len()).collect();
    for (term, (id, shape)) in inputs.split(',').zip(call.tensors()) {
        let mut dims = Vec::new();
        for letter in term.chars().take(shape.len()) {
            let known = letters
                .iter()
                .find(|(known, _)| *known == letter)
                .map(|(_, at)| *at);
            dims.push(Some(known.unwrap_or_else(|| {
                let new = factors.summed();
                letters.push((letter, new));
                new
            })));
        }
        factors.operand(id, dims);
    }
    Ok(factors)
}
