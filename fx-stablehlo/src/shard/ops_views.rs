//! Factors of views, joins and parts: dims that stay whole keep their factor, and of joined ones the outermost.

use fx_nn::ir::{Argument, ValueMeta, operator};
use fx_nn::{Result, function, function_table, ops};

use super::factors::each;
use super::factors::{Factors, ShardCall, ShardRule, place, shape_of};
use super::ops_pointwise::{kept_but, rules};

fn common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The factors of the same elements in other sizes.
fn reshaped(factors: &mut Factors, from: &[usize], to: &[usize]) -> [Vec<Option<usize>>; 2] {
    let mut dims = [vec![None; from.len()], vec![None; to.len()]];
    if from.contains(&0) || to.contains(&0) {
        return dims;
    }
    let wide =
        |sizes: &[usize]| -> Vec<usize> { (0..sizes.len()).filter(|at| sizes[*at] > 1).collect() };
    let (a, b) = (wide(from), wide(to));
    let (mut i, mut j) = (0, 0);
    while let (Some(first), Some(second)) = (a.get(i).copied(), b.get(j).copied()) {
        let (mut left, mut right) = (from[first], to[second]);
        let factor = factors.factor(common_divisor(left, right));
        dims[0][first] = Some(factor);
        dims[1][second] = Some(factor);
        // The dims that hold the same elements as these.
        while left != right {
            let (at, sizes, side, place) = match left < right {
                true => (&mut i, from, &mut left, &a),
                false => (&mut j, to, &mut right, &b),
            };
            *at += 1;
            let Some(next) = place.get(*at) else {
                return dims;
            };
            *side = side.saturating_mul(sizes[*next]);
        }
        i += 1;
        j += 1;
    }
    dims
}

fn view(call: &ShardCall<'_>, sizes: Option<&'static str>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let Some(result) = call.result() else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let [from, to] = reshaped(&mut factors, &x.shape, &result);
    factors.operand(&x, from);
    factors.result(to);
    if let Some(param) = sizes {
        factors.sizes(param, 0..result.len());
    }
    Ok(Some(factors))
}

fn unflatten(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let (Some(mut factors), Some(result)) = (view(call, None)?, call.result()) else {
        return Ok(None);
    };
    let Some(dim) = call.dim("dim", x.shape.len())? else {
        return Ok(None);
    };
    factors.sizes("sizes", dim..dim + result.len() + 1 - x.shape.len());
    Ok(Some(factors))
}

fn expand(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let Some(result) = call.result() else {
        return Ok(None);
    };
    let Some(from) = result.len().checked_sub(x.shape.len()) else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let dims = each(&mut factors, &result);
    let of_x = (0..x.shape.len()).map(|at| dims[from + at].filter(|_| x.shape[at] > 1));
    factors.operand(&x, of_x.collect::<Vec<_>>());
    factors.result(dims);
    factors.sizes("size", 0..result.len());
    Ok(Some(factors))
}

/// The dims in another order.
fn ordered(call: &ShardCall<'_>, order: Option<Vec<usize>>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let Some(order) = order.filter(|order| order.len() == x.shape.len()) else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let dims = each(&mut factors, &x.shape);
    factors.operand(&x, dims.iter().copied());
    factors.result(order.into_iter().map(|at| dims[at]).collect::<Vec<_>>());
    Ok(Some(factors))
}

fn permute(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let rank = call.tensor("x")?.shape.len();
    let dims = call.ints("dims")?.unwrap_or_default();
    let order = dims.iter().map(|dim| place(*dim, rank)).collect();
    ordered(call, order)
}

fn swapped(call: &ShardCall<'_>, a: &str, b: &str) -> Result<Option<Factors>> {
    let rank = call.tensor("x")?.shape.len();
    let (Some(a), Some(b)) = (call.dim(a, rank)?, call.dim(b, rank)?) else {
        return Ok(None);
    };
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(a, b);
    ordered(call, Some(order))
}

fn transposed(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let rank = call.tensor("x")?.shape.len();
    ordered(call, Some((0..rank).rev().collect()))
}

/// Dims of size one come and go.
fn unsqueeze(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let Some(dim) = call.dim("dim", x.shape.len() + 1)? else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let mut dims = each(&mut factors, &x.shape);
    factors.operand(&x, dims.iter().copied());
    dims.insert(dim, None);
    factors.result(dims);
    Ok(Some(factors))
}

fn squeeze(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    let Some(dim) = call.dim("dim", x.shape.len())? else {
        return Ok(None);
    };
    match x.shape[dim] {
        1 => kept_but(call, &x, |at| at == dim),
        _ => {
            // Whole: a device's part of one element would be squeezed away.
            let mut factors = Factors::new();
            let dims = x.shape.iter().enumerate();
            let dims = dims.map(|(at, size)| (at != dim).then(|| factors.factor(*size)));
            let dims: Vec<Option<usize>> = dims.collect();
            factors.operand(&x, dims.iter().copied());
            factors.result(dims);
            Ok(Some(factors))
        }
    }
}

fn but_dim(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let x = call.tensor("x")?;
    match call.dim("dim", x.shape.len())? {
        Some(dim) => kept_but(call, &x, |at| at == dim),
        None => Ok(None),
    }
}

fn cat(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (Some(tensors), Some(result)) = (call.tensors("tensors")?, call.result()) else {
        return Ok(None);
    };
    let Some(dim) = call.dim("dim", result.len())? else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let mut dims = each(&mut factors, &result);
    dims[dim] = None;
    for x in &tensors {
        if x.shape.len() != result.len() {
            return Ok(None);
        }
        factors.operand(x, dims.iter().copied());
    }
    factors.result(dims);
    Ok(Some(factors))
}

fn stack(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let (Some(tensors), Some(result)) = (call.tensors("tensors")?, call.result()) else {
        return Ok(None);
    };
    let Some(dim) = call.dim("dim", result.len())? else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let mut dims = each(&mut factors, &result);
    dims[dim] = None;
    for x in &tensors {
        let outer = dims[..dim].iter().chain(&dims[dim + 1..]);
        factors.operand(x, outer.copied());
    }
    factors.result(dims);
    Ok(Some(factors))
}

/// One of several values that the call has as its argument.
fn picked(call: &ShardCall<'_>, items: &[Argument], at: i64) -> Option<Factors> {
    let at = place(at, items.len())?;
    let x = call.as_tensor(&items[at])?;
    let mut factors = Factors::new();
    let dims = each(&mut factors, &x.shape);
    for other in items.iter().filter_map(Argument::as_node) {
        if other != x.node {
            factors.free(other);
        }
    }
    factors.operand(&x, dims.iter().copied());
    factors.result(dims);
    Some(factors)
}

/// A part of a tensor by slices and places; one of several tensors.
fn getitem(call: &ShardCall<'_>) -> Result<Option<Factors>> {
    let index = call.argument("b")?;
    if let (Argument::Tuple(items) | Argument::List(items), Argument::Int(at)) =
        (&*call.argument("a")?, &*index)
    {
        return Ok(picked(call, items, *at));
    }
    let (Some(x), Some(result)) = (call.optional_tensor("a")?, call.result()) else {
        return Ok(None);
    };
    let mut factors = Factors::new();
    let node = call.node().graph().node(x.node)?;
    if let Some(ValueMeta::List(parts)) = node.meta::<ValueMeta>() {
        // What shares one part shares all of them.
        let mut common = result.clone();
        for part in parts.iter().filter_map(shape_of) {
            for (size, other) in common.iter_mut().zip(part) {
                *size = common_divisor(*size, other);
            }
        }
        if x.shape.len() != result.len() {
            return Ok(None);
        }
        let dims = each(&mut factors, &common);
        factors.operand(&x, dims.iter().copied());
        factors.result(dims);
        return Ok(Some(factors));
    }
    let single = [(*index).clone()];
    let items: &[Argument] = match &*index {
        Argument::Tuple(items) | Argument::List(items) => items,
        _ => &single,
    };
    let taken = |item: &&Argument| !matches!(item, Argument::Ellipsis | Argument::None);
    let used = items.iter().filter(taken).count();
    let mut dims = each(&mut factors, &x.shape);
    let (mut of_x, mut of_result) = (Vec::new(), Vec::new());
    let mut left = dims.drain(..);
    let mut skipped = x.shape.len().saturating_sub(used);
    for item in items {
        match item {
            Argument::None => of_result.push(None),
            Argument::Ellipsis => {
                let rest: Vec<_> = left.by_ref().take(skipped).collect();
                skipped = 0;
                of_x.extend(rest.iter().copied());
                of_result.extend(rest);
            }
            Argument::Slice(parts) => {
                let Some(factor) = left.next() else {
                    return Ok(None);
                };
                let is_whole = parts.iter().all(|part| matches!(part, Argument::None));
                of_x.push(factor.filter(|_| is_whole));
                of_result.push(factor.filter(|_| is_whole));
            }
            Argument::Int(_) => {
                left.next();
                of_x.push(None);
            }
            // A number that the graph computes; tensors pick by value.
            Argument::Node(id) if call.as_tensor(&Argument::Node(*id)).is_none() => {
                left.next();
                of_x.push(None);
            }
            _ => return Ok(None),
        }
    }
    let rest: Vec<_> = left.collect();
    of_x.extend(rest.iter().copied());
    of_result.extend(rest);
    if of_x.len() != x.shape.len() || of_result.len() != result.len() {
        return Ok(None);
    }
    factors.operand(&x, of_x);
    factors.result(of_result);
    Ok(Some(factors))
}

rules! {
    |call| view(call, Some("shape")) => reshape, view;
    |call| view(call, None) => flatten, ravel;
    unflatten => unflatten;
    expand => expand, broadcast_to;
    permute => permute;
    |call| swapped(call, "dim0", "dim1") => transpose, swapdims;
    |call| swapped(call, "axis0", "axis1") => swapaxes;
    transposed => t;
    unsqueeze => unsqueeze;
    squeeze => squeeze;
    but_dim => split, split_with_sizes, chunk, unbind, select, narrow;
    cat => cat;
    stack => stack;
}

function_table! { ShardRule {
    operator::getitem => ShardRule(getitem),
} }

#[cfg(test)]
mod tests {
    use super::{Factors, reshaped};

    #[test]
    fn dims_that_stay_together_share_a_factor() {
        for (from, to, expected) in [
            (&[2, 6][..], &[2, 2, 3][..], "[0:2 1:2] [0:2 1:2 _]"),
            (&[2, 2, 3], &[2, 6], "[0:2 1:2 _] [0:2 1:2]"),
            (&[6, 4], &[4, 6], "[0:2 _] [0:2 _]"),
            (&[1, 8], &[8], "[_ 0:8] [0:8]"),
            (&[4, 5, 6], &[20, 6], "[0:4 _ 1:6] [0:4 1:6]"),
            (&[0, 3], &[3, 0], "[_ _] [_ _]"),
        ] {
            let mut factors = Factors::new();
            let dims = reshaped(&mut factors, from, to);
            let text = dims.map(|dims| {
                let one = |dim: &Option<usize>| {
                    dim.map_or("_".to_string(), |at| {
                        format!("{at}:{}", factors.factors[at].size)
                    })
                };
                format!("[{}]", dims.iter().map(one).collect::<Vec<_>>().join(" "))
            });
            assert_eq!(text.join(" "), expected);
        }
    }
}
