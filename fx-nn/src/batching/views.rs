//! Functions that move, repeat, join and part elements, for many examples at once.

use fx_core::trace::FromValue;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result};

use super::batching;
use crate::func::kinds::count;
use crate::func::{BatchCall, aligned, known};
use crate::ops;
use crate::tensor::Dims;

batching! {
    ops::reshape => |call| {
        let shape = known::ints(call.arg("shape")?)?;
        ops::reshape(&call.tensor("x")?, behind(call, resolved(call, shape)?))
    };
    ops::view => |call| {
        let shape = known::ints(call.arg("shape")?)?;
        ops::reshape(&call.tensor("x")?, behind(call, resolved(call, shape)?))
    };
    ops::expand => |call| {
        let size = known::ints(call.arg("size")?)?;
        ops::expand(&aligned(&call.tensor("x")?, size.len())?, behind(call, size))
    };
    ops::permute => |call| {
        let rank = call.rank("x")?;
        let mut order = vec![0];
        order.extend(places(call, call.arg("dims")?, rank)?);
        ops::permute(&call.tensor("x")?, order)
    };
    ops::transpose => |call| {
        let rank = call.rank("x")?;
        let (a, b) = (call.dim(call.arg("dim0")?, rank)?, call.dim(call.arg("dim1")?, rank)?);
        if rank == 0 { call.tensor("x") } else { ops::transpose(&call.tensor("x")?, a, b) }
    };
    ops::t => |call| match call.rank("x")? {
        2 => ops::transpose(&call.tensor("x")?, 1, 2),
        _ => call.tensor("x"),
    };
    ops::movedim => |call| {
        let rank = call.rank("x")?;
        let (from, to) = (places(call, call.arg("source")?, rank)?, places(call, call.arg("destination")?, rank)?);
        ops::movedim(&call.tensor("x")?, from, to)
    };
    ops::squeeze => |call| {
        let rank = call.rank("x")?;
        if rank == 0 { call.tensor("x") } else { ops::squeeze(&call.tensor("x")?, call.dim(call.arg("dim")?, rank)?) }
    };
    ops::unsqueeze => |call| {
        let rank = call.rank("x")?;
        ops::unsqueeze(&call.tensor("x")?, call.dim(call.arg("dim")?, rank + 1)?)
    };
    ops::flatten => |call| {
        let rank = call.rank("x")?;
        if rank == 0 {
            return ops::unsqueeze(&call.tensor("x")?, 1).map(IntoValue::into_value);
        }
        let (start, end) = (call.dim(call.arg("start_dim")?, rank)?, call.dim(call.arg("end_dim")?, rank)?);
        ops::flatten(&call.tensor("x")?, start, end)
    };
    ops::unflatten => |call| {
        let dim = call.dim(call.arg("dim")?, call.rank("x")?)?;
        call.with(&[("dim", Value::Int(dim))])
    };
    ops::atleast_1d => |call| {
        let x = call.tensor("x")?;
        if call.rank("x")? == 0 { ops::unsqueeze(&x, 1) } else { Ok(x) }
    };
    ops::atleast_2d => |call| {
        let x = call.tensor("x")?;
        match call.rank("x")? {
            0 => ops::reshape(&x, behind(call, vec![Int::from(1); 2])),
            1 => ops::unsqueeze(&x, 1),
            _ => Ok(x),
        }
    };
    ops::atleast_3d => |call| {
        let x = call.tensor("x")?;
        match call.rank("x")? {
            0 => ops::reshape(&x, behind(call, vec![Int::from(1); 3])),
            1 => ops::unsqueeze(&ops::unsqueeze(&x, 1)?, 3),
            2 => ops::unsqueeze(&x, 3),
            _ => Ok(x),
        }
    };
    ops::narrow => |call| along(call, "dim");
    ops::select => |call| along(call, "dim");
    ops::split => |call| along(call, "dim");
    ops::split_with_sizes => |call| along(call, "dim");
    ops::chunk => |call| along(call, "dim");
    ops::unbind => |call| along(call, "dim");
    ops::tensor_split => |call| along(call, "dim");
    ops::hsplit => |call| {
        let dim = if call.rank("x")? == 1 { 1 } else { 2 };
        ops::tensor_split(&call.tensor("x")?, call.arg::<crate::tensor::Sections>("indices_or_sections")?, dim)
    };
    ops::diagonal => |call| {
        let rank = call.rank("x")?;
        let (a, b) = (call.dim(call.arg("dim1")?, rank)?, call.dim(call.arg("dim2")?, rank)?);
        ops::diagonal(&call.tensor("x")?, call.arg("offset")?, a, b)
    };
    ops::diag => |call| match call.rank("x")? {
        1 => ops::diag_embed(&call.tensor("x")?, call.arg("diagonal")?, -2, -1),
        _ => ops::diagonal(&call.tensor("x")?, call.arg("diagonal")?, 1, 2),
    };
    ops::diag_embed => |call| {
        let rank = call.rank("x")? + 1;
        let (a, b) = (call.dim(call.arg("dim1")?, rank)?, call.dim(call.arg("dim2")?, rank)?);
        ops::diag_embed(&call.tensor("x")?, call.arg("offset")?, a, b)
    };
    ops::cat => |call| {
        let tensors = call.items("tensors")?;
        let rank = match tensors.iter().map(known::rank).collect::<Result<Vec<_>>>()?.into_iter().max() {
            Some(rank) => rank - 1,
            None => return Err(Error::msg("cat: there are no tensors")),
        };
        // PyTorch leaves empty tensors of one dim out.
        let kept = tensors.iter().filter(|x| known::rank(x).is_ok_and(|own| own == rank + 1)).cloned();
        ops::cat(&kept.collect::<Vec<_>>(), call.dim(call.arg("dim")?, rank)?)
    };
    crate::control::stacked => |call| {
        ops::movedim(&crate::control::stacked(call.arg("items")?)?, 0, 1)
    };
    ops::stack => |call| {
        let tensors = call.items("tensors")?;
        let rank = tensors.first().map(known::rank).transpose()?.unwrap_or(1);
        ops::stack(&tensors, call.dim(call.arg("dim")?, rank)?)
    };
    ops::broadcast_tensors => |call| {
        let tensors = call.items("tensors")?;
        let ranks = tensors.iter().map(known::rank).collect::<Result<Vec<_>>>()?;
        let rank = ranks.into_iter().max().unwrap_or(1) - 1;
        let tensors = tensors.iter().map(|x| aligned(x, rank)).collect::<Result<Vec<_>>>()?;
        ops::broadcast_tensors(&tensors)
    };
    ops::repeat => |call| {
        let repeats = known::ints(call.arg("repeats")?)?;
        let x = aligned(&call.tensor("x")?, repeats.len())?;
        let mut all = vec![Int::from(1)];
        all.extend(repeats);
        ops::repeat(&x, all)
    };
    ops::tile => |call| {
        let (mut dims, rank) = (known::ints(call.arg("dims")?)?, call.rank("x")?);
        while dims.len() < rank {
            dims.insert(0, Int::from(1));
        }
        let x = aligned(&call.tensor("x")?, dims.len())?;
        dims.insert(0, Int::from(1));
        ops::repeat(&x, dims)
    };
    ops::rot90 => |call| {
        let dims = places(call, call.arg("dims")?, call.rank("x")?)?;
        ops::rot90(&call.tensor("x")?, call.arg::<Int>("k")?, dims)
    };
    ops::pixel_shuffle => |call| call.with(&[]);
    ops::pixel_unshuffle => |call| call.with(&[]);
}

/// A shape behind the examples.
pub(super) fn behind(call: &BatchCall<'_>, shape: Vec<Int>) -> Vec<Int> {
    let mut all = vec![call.size()];
    all.extend(shape);
    all
}

/// The shape of an example with a number for -1.
fn resolved(call: &BatchCall<'_>, mut shape: Vec<Int>) -> Result<Vec<Int>> {
    let open = shape
        .iter()
        .position(|size| known::number(size) == Some(-1));
    if let (Some(open), Some(result)) = (open, call.result.and_then(|result| result.tensor())) {
        if let Some(size) = result.shape.get(open).and_then(|dim| dim.as_known()) {
            shape[open] = Int::from(size as i64);
        } else {
            // Only a run knows: what the others leave.
            let mut rest = Int::from(1);
            for (at, size) in shape.iter().enumerate() {
                if at != open {
                    rest = (rest * *size)?;
                }
            }
            shape[open] = count(&call.tensor("x")?)?.floordiv(rest)?;
        }
    }
    Ok(shape)
}

fn places(call: &BatchCall<'_>, dims: Value, rank: usize) -> Result<Vec<i64>> {
    match Dims::from_value(dims)? {
        Dims::All => Ok((1..=rank as i64).collect()),
        Dims::One(dim) => Ok(vec![call.dim(dim, rank)?]),
        Dims::Many(dims) => dims.into_iter().map(|dim| call.dim(dim, rank)).collect(),
    }
}

/// The same call along the same dim of the examples.
pub(super) fn along(call: &BatchCall<'_>, name: &str) -> Result<Value> {
    let dim = call.dim(call.arg(name)?, call.rank("x")?)?;
    call.with(&[
        ("x", call.tensor("x")?.into_value()),
        (name, Value::Int(dim)),
    ])
}
