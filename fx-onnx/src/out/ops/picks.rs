//! Elements by their places, and elements put at places.

use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use super::rules;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    gather => |cx, call| {
        let (x, index) = (call.tensor("x")?, index_of(cx, call, "index")?);
        let axis = call.place("dim", x.rank())?;
        let (x, flat) = (lifted(cx, &x)?, lifted(cx, &index)?);
        if is_empty_beside(&flat, &x, Some(axis)) {
            let name = cx.filled(&flat.shape, 0.0, x.dtype)?;
            return call.given(name);
        }
        let name = cx.node("GatherElements").input(&x.name).input(&flat.name).int("axis", axis).output();
        given_back(cx, call, name, &flat, index.rank() == 0)
    },
    index_select => |cx, call| {
        let (x, index) = (call.tensor("x")?, index_of(cx, call, "index")?);
        let axis = call.place("dim", x.rank())?;
        let is_number = x.rank() == 0;
        let (x, index) = (lifted(cx, &x)?, lifted(cx, &index)?);
        let name = cx.node("Gather").input(&x.name).input(&index.name).int("axis", axis).output();
        given_back(cx, call, name, &index, is_number)
    },
    embedding => |cx, call| {
        let (x, weight) = (index_of(cx, call, "x")?, call.tensor("weight")?);
        // The row that gets no gradient.
        call.needs_no(&["padding_idx"]);
        let name = cx.node("Gather").input(&weight.name).input(&x.name).int("axis", 0).output();
        call.given(name)
    },
    take => |cx, call| {
        let (x, index) = (call.tensor("x")?, index_of(cx, call, "index")?);
        let flat = cx.reshape(&x, &[Dim::product(&x.shape)?])?;
        let name = cx.op("Gather", &[&flat, &index.name]);
        call.given(name)
    },
    masked_select => |cx, call| {
        let (x, mask) = (call.tensor("x")?, call.tensor("mask")?);
        let shape = broadcast(&x.shape, &mask.shape);
        let flat = |cx: &mut Cx, of: &Operand| -> Result<Name> {
            let wide = Operand { name: cx.expand(of, &shape)?, shape: shape.clone(), ..of.clone() };
            cx.reshape(&wide, &[Dim::product(&shape)?])
        };
        let (flat_x, mask) = (flat(cx, &x)?, flat(cx, &mask)?);
        let carried = cx.carried("Compress", &Operand { name: flat_x, ..x.clone() })?;
        let name = cx.node("Compress").input(&carried.name).input(&mask).int("axis", 0).output();
        let name = cx.given_as(name, carried.dtype, x.dtype)?;
        call.given(name)
    },
    scatter => |cx, call| scattered(cx, call, "none"),
    scatter_add => |cx, call| scattered(cx, call, "add"),
    scatter_reduce => |cx, call| {
        let reduce = call.text("reduce")?;
        let reduction = match &*reduce {
            "sum" => "add",
            "prod" => "mul",
            "amax" => "max",
            "amin" => "min",
            other => return Err(Error::not_in_format(format_args!("scattering by {other:?} has no counterpart in ONNX"))),
        };
        if !call.flag("include_self")? {
            return Err(Error::not_in_format("ONNX always includes what is there before: use `include_self = true`"));
        }
        scattered(cx, call, reduction)
    },
    scatter_value => |cx, call| {
        let (x, index) = (call.tensor("x")?, index_of(cx, call, "index")?);
        let axis = call.place("dim", x.rank())?;
        let is_number = x.rank() == 0;
        let value = cx.operand(&call.val("value")?, x.dtype)?;
        let (x, index) = (lifted(cx, &x)?, lifted(cx, &index)?);
        if has_no_elements(&index) || is_empty_beside(&index, &x, Some(axis)) {
            return call.val("x");
        }
        let source = cx.expand(&value, &index.shape)?;
        let name = cx.node("ScatterElements").input(&x.name).input(&index.name).input(&source).int("axis", axis).output();
        given_back(cx, call, name, &x, is_number)
    },
    index_copy => |cx, call| along(cx, call, "none"),
    index_add => |cx, call| along(cx, call, "add"),
    index_fill => |cx, call| {
        let (x, index) = (call.tensor("x")?, index_of(cx, call, "index")?);
        let axis = call.place("dim", x.rank())? as usize;
        let is_number = x.rank() == 0;
        let value = cx.operand(&call.val("value")?, x.dtype)?;
        if has_no_elements(&index) {
            return call.val("x");
        }
        let x = lifted(cx, &x)?;
        let mut shape = x.shape.clone();
        shape[axis] = index.shape.first().cloned().unwrap_or_else(|| Dim::from(1));
        let index = spread(cx, &index, axis, &shape)?;
        let source = cx.expand(&value, &shape)?;
        let name = cx.node("ScatterElements").input(&x.name).input(&index).input(&source).int("axis", axis as i64).output();
        given_back(cx, call, name, &x, is_number)
    },
    index_put => |cx, call| {
        let (x, values) = (cx.widened(call, "x")?, cx.widened(call, "values")?);
        let places = call.tensors("indices")?;
        let mut shape: Vec<Dim> = Vec::new();
        for of in &places {
            shape = broadcast(&shape, &of.shape);
        }
        if places.iter().any(|of| of.dtype == DType::Bool) {
            return Err(Error::msg("a mask as the index of `index_put`: use `masked_fill` or `where`"));
        }
        if shape.iter().any(|size| size.as_number() == Some(0)) {
            call.needs_no(&["accumulate"]);
            return Ok(Val::Tensor(call.tensor("x")?));
        }
        let reduction = if call.flag("accumulate")? { "add" } else { "none" };
        let own = x.dtype;
        let (x, values) = (wide(cx, &x, reduction)?, wide(cx, &values, reduction)?);
        let mut columns = Vec::new();
        for of in &places {
            let of = cx.cast(of, DType::I64)?;
            let wide = cx.expand(&of, &shape)?;
            let last = cx.i64s(&[-1]);
            columns.push(cx.op("Unsqueeze", &[&wide, &last]));
        }
        let mut node = cx.node("Concat").int("axis", -1);
        for column in &columns {
            node = node.input(column);
        }
        let places_name = node.output();
        let mut full = shape;
        full.extend(x.shape[places.len().min(x.rank())..].iter().cloned());
        let source = cx.expand(&values, &full)?;
        let name = cx.node("ScatterND").input(&x.name).input(&places_name).input(&source).text("reduction", reduction).output();
        let name = cx.given_as(name, x.dtype, own)?;
        call.given(name)
    },
    one_hot => |cx, call| {
        let x = index_of(cx, call, "x")?;
        let classes = call.int("num_classes")?;
        let depth = match classes {
            -1 => call.result()?.shape.last().cloned().unwrap_or_else(|| Dim::from(1)),
            count => Dim::from(count),
        };
        let (depth, values) = (cx.sizes(&[depth])?, cx.numbers(&[0.0, 1.0], DType::I64));
        let flat = lifted(cx, &x)?;
        let name = cx.node("OneHot").input(&flat.name).input(&depth).input(&values).int("axis", -1).output();
        let shape = [&[Dim::from(1)], &*call.result()?.shape].concat();
        let rows = Operand { shape, ..x.clone() };
        given_back(cx, call, name, &rows, x.rank() == 0)
    },
}

/// A tensor of places.
fn index_of(cx: &mut Cx, call: &OpCall<'_>, name: &str) -> Result<Operand> {
    let index = call.tensor(name)?;
    match index.dtype {
        DType::I64 | DType::I32 => Ok(index),
        _ => cx.cast(&index, DType::I64),
    }
}

/// The shape to which two broadcast, where sizes that differ are one.
pub(super) fn broadcast(a: &[Dim], b: &[Dim]) -> Vec<Dim> {
    let rank = a.len().max(b.len());
    let at = |of: &[Dim], dim: usize| {
        (dim + of.len())
            .checked_sub(rank)
            .map(|own| of[own].clone())
    };
    (0..rank)
        .map(|dim| match (at(a, dim), at(b, dim)) {
            (Some(one), Some(other)) if one == 1 => other,
            (Some(one), _) => one,
            (None, Some(other)) => other,
            (None, None) => Dim::from(1),
        })
        .collect()
}

/// A tensor without dims as one of one dim: ONNX's operators along a dim take no other.
fn lifted(cx: &mut Cx, x: &Operand) -> Result<Operand> {
    if x.rank() > 0 {
        return Ok(x.clone());
    }
    let shape = vec![Dim::from(1)];
    Ok(Operand {
        name: cx.reshape(x, &shape)?,
        dtype: x.dtype,
        shape,
    })
}

/// The result of a call, of the sizes of `like`; without dims if it stands for one that has none.
fn given_back(
    cx: &mut Cx,
    call: &OpCall<'_>,
    name: Name,
    like: &Operand,
    is_number: bool,
) -> Result<Val> {
    if !is_number {
        return call.given(name);
    }
    let flat = Operand {
        name,
        ..like.clone()
    };
    let name = cx.reshape(&flat, &call.result()?.shape)?;
    call.given(name)
}

fn scattered(cx: &mut Cx, call: &OpCall<'_>, reduction: &str) -> Result<Val> {
    let (x, index, source) = (
        call.tensor("x")?,
        index_of(cx, call, "index")?,
        call.tensor("src")?,
    );
    let axis = call.place("dim", x.rank())?;
    let is_number = x.rank() == 0;
    let (x, index, source) = (lifted(cx, &x)?, lifted(cx, &index)?, lifted(cx, &source)?);
    if has_no_elements(&index)
        || is_empty_beside(&index, &x, Some(axis))
        || is_empty_beside(&index, &source, None)
    {
        return call.val("x");
    }
    let own = x.dtype;
    let (x, source) = (wide(cx, &x, reduction)?, wide(cx, &source, reduction)?);
    // The source may be larger than the places.
    let source = match source.shape == index.shape {
        true => source.name,
        false => {
            let zeros = cx.i64s(&vec![0; index.rank()]);
            let ends = cx.sizes(&index.shape)?;
            cx.op("Slice", &[&source.name, &zeros, &ends])
        }
    };
    let node = cx
        .node("ScatterElements")
        .input(&x.name)
        .input(&index.name)
        .input(&source)
        .int("axis", axis);
    let name = match reduction {
        "none" => node.output(),
        other => node.text("reduction", other).output(),
    };
    let name = cx.given_as(name, x.dtype, own)?;
    given_back(cx, call, name, &x, is_number)
}

fn has_no_elements(x: &Operand) -> bool {
    x.shape.iter().any(|size| size.as_number() == Some(0))
}

/// Whether an index is larger along a dim than what it is for, but along `axis`: only one without elements is, which a
/// run finds, and engines refuse even that.
fn is_empty_beside(index: &Operand, x: &Operand, axis: Option<i64>) -> bool {
    let sizes = index.shape.iter().zip(&x.shape);
    let sizes = sizes.map(|(index, x)| (index.as_number(), x.as_number()));
    sizes.enumerate().any(|(dim, pair)| match pair {
        (Some(index), Some(x)) => axis != Some(dim as i64) && index > x,
        _ => false,
    })
}

/// What is joined with others, in a type in which engines add: halves are `float32`.
fn wide(cx: &mut Cx, x: &Operand, reduction: &str) -> Result<Operand> {
    match x.dtype {
        DType::F16 | DType::BF16 if reduction != "none" => cx.cast(x, DType::F32),
        _ => Ok(x.clone()),
    }
}

/// Places along a dim, for every element of a shape.
fn spread(cx: &mut Cx, index: &Operand, axis: usize, shape: &[Dim]) -> Result<Name> {
    let mut own = vec![Dim::from(1); shape.len()];
    own[axis] = shape[axis].clone();
    let name = cx.reshape(index, &own)?;
    cx.expand(
        &Operand {
            name,
            dtype: index.dtype,
            shape: own,
        },
        shape,
    )
}

fn along(cx: &mut Cx, call: &OpCall<'_>, reduction: &str) -> Result<Val> {
    let (x, index, mut source) = (
        call.tensor("x")?,
        index_of(cx, call, "index")?,
        call.tensor("source")?,
    );
    let axis = call.place("dim", x.rank())? as usize;
    let is_number = x.rank() == 0;
    let x = lifted(cx, &x)?;
    source = lifted(cx, &source)?;
    if has_no_elements(&x) || has_no_elements(&source) {
        call.needs_no(&["alpha"]);
        return Ok(Val::Tensor(call.tensor("x")?));
    }
    if reduction == "add" && call.val("alpha")?.as_f64() != Some(1.0) {
        let alpha = cx.operand(&call.val("alpha")?, x.dtype)?;
        source.name = cx.op("Mul", &[&source.name, &alpha.name]);
    }
    let own = x.dtype;
    let (x, source) = (wide(cx, &x, reduction)?, wide(cx, &source, reduction)?);
    let shape = source.shape.clone();
    let index = spread(cx, &index, axis, &shape)?;
    let node = cx
        .node("ScatterElements")
        .input(&x.name)
        .input(&index)
        .input(&source.name)
        .int("axis", axis as i64);
    let name = match reduction {
        "none" => node.output(),
        other => node.text("reduction", other).output(),
    };
    let name = cx.given_as(name, x.dtype, own)?;
    given_back(cx, call, name, &x, is_number)
}
