//! What rearranges a tensor: views, joins, pieces.

use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use super::rules;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val, wrapped};

rules! {
    reshape => reshaped, view => reshaped, flatten => reshaped, unflatten => reshaped,
    ravel => reshaped, atleast_1d => reshaped, atleast_2d => reshaped,
    atleast_3d => reshaped,
    squeeze => |cx, call| {
        if let Val::Unranked(x, dtype) = call.val("x")? {
            return squeezed_if_one(cx, call, &x, dtype);
        }
        let x = call.tensor("x")?;
        let dim = call.place("dim", x.rank())?;
        if call.result()?.rank_is(x.rank()) {
            return Ok(Val::Tensor(x));
        }
        let axes = cx.i64s(&[dim]);
        let name = cx.op("Squeeze", &[&x.name, &axes]);
        call.given(name)
    },
    unsqueeze => |cx, call| {
        let x = call.elements("x")?;
        let axis = match call.val("x")? {
            Val::Unranked(..) => call.int("dim")?,
            _ => call.place("dim", x.rank() + 1)?,
        };
        let axes = cx.i64s(&[axis]);
        let name = cx.op("Unsqueeze", &[&x.name, &axes]);
        call.given(name)
    },
    permute => |cx, call| {
        let x = call.elements("x")?;
        // As many as there are dims.
        let perm = call.ints("dims")?;
        let perm: Vec<i64> = perm.iter().map(|dim| wrapped(*dim, perm.len())).collect();
        let name = cx.node("Transpose").input(&x.name).ints("perm", perm).output();
        call.given(name)
    },
    transpose => |cx, call| {
        let x = call.tensor("x")?;
        let (one, other) = (call.place("dim0", x.rank())?, call.place("dim1", x.rank())?);
        if x.rank() == 0 {
            return Ok(Val::Tensor(x));
        }
        let mut perm: Vec<i64> = (0..x.rank() as i64).collect();
        perm.swap(one as usize, other as usize);
        let name = cx.node("Transpose").input(&x.name).ints("perm", perm).output();
        call.given(name)
    },
    t => |cx, call| {
        let x = call.tensor("x")?;
        if x.rank() < 2 {
            return Ok(Val::Tensor(x));
        }
        let name = cx.node("Transpose").input(&x.name).ints("perm", [1, 0]).output();
        call.given(name)
    },
    movedim => |cx, call| {
        let x = call.tensor("x")?;
        let (from, to) = (call.places("source", x.rank())?, call.places("destination", x.rank())?);
        if x.rank() == 0 {
            return Ok(Val::Tensor(x));
        }
        let mut perm = vec![-1i64; x.rank()];
        for (from, to) in from.iter().zip(&to) {
            perm[*to as usize] = *from;
        }
        let mut left = (0..x.rank() as i64).filter(|d| !from.contains(d));
        for place in perm.iter_mut().filter(|place| **place < 0) {
            *place = left.next().unwrap_or(0);
        }
        let name = cx.node("Transpose").input(&x.name).ints("perm", perm).output();
        call.given(name)
    },
    expand => |cx, call| {
        let x = call.tensor("x")?;
        call.needs_no(&["size"]);
        let name = cx.expand(&x, &call.result()?.shape)?;
        call.given(name)
    },
    broadcast_tensors => |cx, call| {
        let (tensors, metas) = (call.tensors("tensors")?, call.results()?);
        let mut names = Vec::new();
        for (x, meta) in tensors.iter().zip(metas) {
            names.push(cx.expand(x, &meta.shape)?);
        }
        call.all_given(names)
    },
    repeat => tiled, tile => tiled,
    cat => |cx, call| {
        if let Val::List(items) = call.val("tensors")?
            && items.iter().any(|item| matches!(item, Val::Unranked(..)))
        {
            let (axis, dtype) = (call.int("dim")?, call.dtype()?);
            let mut names = Vec::new();
            for item in &items {
                names.push(cx.elements(item, dtype)?.name);
            }
            let name = one_after_another(cx, &names, axis);
            return call.given(name);
        }
        let axis = call.place("dim", call.result()?.shape.len())?;
        joined(cx, call, axis)
    },
    hstack => |cx, call| {
        let axis = i64::from(call.result()?.shape.len() > 1);
        joined(cx, call, axis)
    },
    stack => |cx, call| {
        let axis = call.place("dim", call.result()?.shape.len())?;
        let name = together(cx, &call.tensors("tensors")?, call.dtype()?, axis)?;
        call.given(name)
    },
    chunk => pieces, split => pieces, split_with_sizes => pieces,
    tensor_split => |cx, call| {
        let rank = call.tensor("x")?.rank();
        let axis = call.place("dim", rank)?;
        sections(cx, call, axis)
    },
    hsplit => |cx, call| {
        let rank = call.tensor("x")?.rank();
        sections(cx, call, i64::from(rank > 1))
    },
    vsplit => |cx, call| sections(cx, call, 0),
    dsplit => |cx, call| sections(cx, call, 2),
    unbind => |cx, call| {
        let x = call.tensor("x")?;
        let axis = call.place("dim", x.rank())?;
        let count = call.results()?.len();
        let mut names = Vec::with_capacity(count);
        for at in 0..count {
            let at = cx.i64(at as i64);
            names.push(cx.node("Gather").input(&x.name).input(&at).int("axis", axis).output());
        }
        call.all_given(names)
    },
    narrow => |cx, call| {
        let x = call.tensor("x")?;
        let axis = call.place("dim", x.rank())?;
        let (start, length) = (call.size("start")?, call.size("length")?);
        let size = &x.shape[axis as usize];
        let start = match start.as_number() {
            Some(at) if at < 0 => (size + start)?,
            _ => start,
        };
        let end = (&start + &length)?;
        let (starts, ends, axes) = (cx.sizes(&[start])?, cx.sizes(&[end])?, cx.i64s(&[axis]));
        let name = cx.op("Slice", &[&x.name, &starts, &ends, &axes]);
        call.given(name)
    },
    select => |cx, call| {
        let x = call.elements("x")?;
        let axis = match call.val("x")? {
            Val::Unranked(..) => call.int("dim")?,
            _ => call.place("dim", x.rank())?,
        };
        let at = cx.operand(&call.val("index")?, DType::I64)?;
        let name = cx.node("Gather").input(&x.name).input(&at.name).int("axis", axis).output();
        call.given(name)
    },
    flip => |cx, call| {
        let x = call.tensor("x")?;
        let dims = call.places("dims", x.rank())?;
        if dims.is_empty() || x.rank() == 0 {
            return Ok(Val::Tensor(x));
        }
        let name = flipped(cx, &x.name, &dims);
        call.given(name)
    },
    roll => |cx, call| {
        let x = call.tensor("x")?;
        let shifts = call.ints("shifts")?;
        let dims = match call.is_none("dims")? {
            true => Vec::new(),
            false => call.places("dims", x.rank())?,
        };
        if x.rank() == 0 {
            return Ok(Val::Tensor(x));
        }
        if dims.is_empty() {
            let count = Dim::product(&x.shape)?;
            let name = cx.reshape(&x, std::slice::from_ref(&count))?;
            let mut flat = Operand { name, dtype: x.dtype, shape: vec![count] };
            for shift in shifts {
                flat.name = rolled(cx, &flat, shift, 0)?;
            }
            let name = cx.reshape(&flat, &call.result()?.shape)?;
            return call.given(name);
        }
        let mut moved = x;
        for (shift, axis) in shifts.iter().zip(&dims) {
            moved.name = rolled(cx, &moved, *shift, *axis)?;
        }
        call.given(moved.name)
    },
    repeat_interleave => |cx, call| {
        let x = call.tensor("x")?;
        let repeats = call.ints("repeats")?;
        let (x, axis) = match call.optional_int("dim")? {
            Some(dim) => (x.clone(), fx_nn::lowering::wrapped(dim, x.rank()) as usize),
            None => {
                let count = Dim::product(&x.shape)?;
                let name = cx.reshape(&x, std::slice::from_ref(&count))?;
                (Operand { name, dtype: x.dtype, shape: vec![count] }, 0)
            }
        };
        if x.rank() == 0 {
            let name = cx.expand(&x, &call.result()?.shape)?;
            return call.given(name);
        }
        if let [times] = &*repeats {
            let axes = cx.i64s(&[axis as i64 + 1]);
            let wide = cx.op("Unsqueeze", &[&x.name, &axes]);
            let mut own = x.shape.clone();
            own.insert(axis + 1, Dim::from(1));
            let mut shape = own.clone();
            shape[axis + 1] = Dim::from(*times);
            let name = cx.expand(&Operand { name: wide, dtype: x.dtype, shape: own }, &shape)?;
            let name = cx.reshape(&Operand { name, dtype: x.dtype, shape }, &call.result()?.shape)?;
            return call.given(name);
        }
        let places = repeats.iter().enumerate().flat_map(|(at, n)| std::iter::repeat_n(at as i64, (*n).max(0) as usize));
        let places: Vec<i64> = places.collect();
        let places = cx.i64s(&places);
        let name = cx.node("Gather").input(&x.name).input(&places).int("axis", axis as i64).output();
        call.given(name)
    },
    tril => |cx, call| triangle(cx, call, 0),
    triu => |cx, call| triangle(cx, call, 1),
    pad => padded,
    pixel_shuffle => |cx, call| {
        let (x, by) = (call.tensor("x")?, call.int("upscale_factor")?);
        if x.rank() != 4 {
            return Err(Error::not_in_format("images of other than four dims: add the batch"));
        }
        let name = cx.node("DepthToSpace").input(&x.name).int("blocksize", by).text("mode", "CRD").output();
        call.given(name)
    },
    size => |_, _| Err(Error::msg("a size that is not known before the file runs")),
}

/// Tensors after one another along an axis, numbers as vectors of one element.
fn joined(cx: &mut Cx, call: &OpCall<'_>, axis: i64) -> Result<Val> {
    let (dtype, rank) = (call.dtype()?, call.result()?.shape.len());
    let mut names: Vec<Name> = Vec::new();
    for x in call.tensors("tensors")? {
        // An empty tensor of one dim joins anything.
        if x.rank() == 1 && rank > 1 && x.shape[0] == 0 {
            continue;
        }
        let mut x = cx.cast(&x, dtype)?;
        if x.rank() == 0 {
            x.name = cx.reshape(&x, &[Dim::from(1)])?;
        }
        names.push(x.name);
    }
    let name = one_after_another(cx, &names, axis);
    call.given(name)
}

fn one_after_another(cx: &mut Cx, names: &[Name], axis: i64) -> Name {
    let mut node = cx.node("Concat").int("axis", axis);
    for name in names {
        node = node.input(name);
    }
    node.output()
}

/// A tensor without a dim if that has size 1, where a run decides the number of dims.
fn squeezed_if_one(cx: &mut Cx, call: &OpCall<'_>, x: &Name, dtype: DType) -> Result<Val> {
    let dim = call.int("dim")?;
    let (at, one, axes) = (cx.i64(dim), cx.i64(1), cx.i64s(&[dim]));
    let sizes = cx.op("Shape", &[x]);
    let size = cx.op("Gather", &[&sizes, &at]);
    let is_one = cx.op("Equal", &[&size, &one]);
    let without = cx.way("then", dtype, |cx| cx.op("Squeeze", &[x, &axes]))?;
    let same = cx.way("else", dtype, |cx| cx.op("Identity", &[x]))?;
    let node = cx.node("If").input(&is_one);
    let name = node
        .graph("then_branch", without)
        .graph("else_branch", same)
        .output();
    call.given(name)
}

/// Asking metas for their number of dims.
trait Rank {
    fn rank_is(&self, rank: usize) -> bool;
}

impl Rank for fx_nn::ir::TensorMeta {
    fn rank_is(&self, rank: usize) -> bool {
        self.shape.len() == rank
    }
}

fn reshaped(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    if let (Val::Unranked(..), true) = (call.val("x")?, call.result().is_ok()) {
        let x = call.elements("x")?;
        let Val::List(sizes) = call.val("shape")? else {
            return call.tensor("x").map(Val::Tensor);
        };
        let sizes = sizes.iter().map(|size| match size {
            Val::Dim(size) => Ok(size.clone()),
            other => Err(Error::msg(format_args!("a size is {}", other.describe()))),
        });
        // `-1` among them is the engine's to fill.
        let sizes = sizes.collect::<Result<Vec<Dim>>>()?;
        let name = cx.reshape(&x, &sizes)?;
        return call.given(name);
    }
    let (x, meta) = (call.tensor("x")?, call.result()?);
    call.needs_no(&["shape", "start_dim", "end_dim", "dim", "sizes"]);
    if x.shape == meta.shape {
        return Ok(Val::Tensor(x));
    }
    let name = cx.reshape(&x, &meta.shape)?;
    call.given(name)
}

/// The elements in opposite order along dims.
pub(super) fn flipped(cx: &mut Cx, x: &Name, dims: &[i64]) -> Name {
    let count = dims.len();
    let (starts, ends) = (cx.i64s(&vec![-1; count]), cx.i64s(&vec![i64::MIN; count]));
    let (axes, steps) = (cx.i64s(dims), cx.i64s(&vec![-1; count]));
    cx.op("Slice", &[x, &starts, &ends, &axes, &steps])
}

/// The elements along a dim moved on by so many places, those at the end to the front.
fn rolled(cx: &mut Cx, x: &Operand, shift: i64, axis: i64) -> Result<Name> {
    let (zero, most, axes) = (cx.i64s(&[0]), cx.i64s(&[i64::MAX]), cx.i64s(&[axis]));
    let size = &x.shape[axis as usize];
    let cut = match size.as_number() {
        Some(0) => return Ok(x.name.clone()),
        Some(size) if shift.rem_euclid(size) == 0 => return Ok(x.name.clone()),
        Some(size) => cx.i64s(&[size - shift.rem_euclid(size)]),
        None if shift == 0 => return Ok(x.name.clone()),
        None => {
            let (size, shift) = (cx.size(size)?, cx.i64s(&[shift]));
            let by = cx.op("Mod", &[&shift, &size]);
            cx.op("Sub", &[&size, &by])
        }
    };
    let tail = cx.op("Slice", &[&x.name, &cut, &most, &axes]);
    let head = cx.op("Slice", &[&x.name, &zero, &cut, &axes]);
    let node = cx.node("Concat").input(&tail).input(&head);
    Ok(node.int("axis", axis).output())
}

fn tiled(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let x = call.tensor("x")?;
    let parameter = if call.function() == function!(ops::tile) {
        "dims"
    } else {
        "repeats"
    };
    let times = match call.val(parameter)? {
        Val::List(items) => items,
        one => vec![one],
    };
    let mut times: Vec<Dim> = times
        .into_iter()
        .map(|val| match val {
            Val::Dim(dim) => Ok(dim),
            other => Err(Error::msg(format_args!(
                "a number of repetitions is {}",
                other.describe()
            ))),
        })
        .collect::<Result<_>>()?;
    while times.len() < x.rank() {
        times.insert(0, Dim::from(1));
    }
    let mut own = x.clone();
    if times.len() > x.rank() {
        let ahead = times.len() - x.rank();
        let axes: Vec<i64> = (0..ahead as i64).collect();
        let axes = cx.i64s(&axes);
        own.name = cx.op("Unsqueeze", &[&x.name, &axes]);
    }
    let times = cx.sizes(&times)?;
    let name = cx.op("Tile", &[&own.name, &times]);
    call.given(name)
}

fn pieces(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let rank = call.tensor("x")?.rank();
    let axis = call.place("dim", rank)?;
    pieces_along(cx, call, axis)
}

/// Pieces between places, which may stand in any order; or so many pieces.
fn sections(cx: &mut Cx, call: &OpCall<'_>, axis: i64) -> Result<Val> {
    let Val::List(_) = call.val("indices_or_sections")? else {
        return pieces_along(cx, call, axis);
    };
    let x = call.tensor("x")?;
    let places = call.ints("indices_or_sections")?;
    let axes = cx.i64s(&[axis]);
    let (mut names, mut start) = (Vec::new(), 0);
    for end in places.into_iter().chain([i64::MAX]) {
        let (starts, ends) = (cx.i64s(&[start]), cx.i64s(&[end]));
        names.push(cx.op("Slice", &[&x.name, &starts, &ends, &axes]));
        start = end;
    }
    call.all_given(names)
}

/// Pieces one behind the other, as long as the results are.
fn pieces_along(cx: &mut Cx, call: &OpCall<'_>, axis: i64) -> Result<Val> {
    let x = call.tensor("x")?;
    let metas = call.results()?;
    call.needs_no(&["chunks", "split_size", "split_sizes", "indices_or_sections"]);
    if metas.len() == 1 {
        return Ok(Val::List(vec![Val::Tensor(x)]));
    }
    let sizes: Vec<Dim> = metas
        .iter()
        .map(|meta| meta.shape[axis as usize].clone())
        .collect();
    let sizes = cx.sizes(&sizes)?;
    let names = cx
        .node("Split")
        .input(&x.name)
        .input(&sizes)
        .int("axis", axis)
        .outputs(metas.len());
    call.all_given(names)
}

fn triangle(cx: &mut Cx, call: &OpCall<'_>, upper: i64) -> Result<Val> {
    let (x, diagonal) = (call.tensor("x")?, call.int("diagonal")?);
    let k = cx.i64(diagonal);
    let as_number = if x.dtype == DType::Bool {
        cx.cast(&x, DType::U8)?
    } else {
        x.clone()
    };
    let node = cx
        .node("Trilu")
        .input(&as_number.name)
        .input(&k)
        .int("upper", upper);
    let name = node.output();
    let kept = Operand {
        name,
        dtype: as_number.dtype,
        shape: x.shape,
    };
    Ok(Val::Tensor(cx.cast(&kept, x.dtype)?))
}

fn padded(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let (x, mode) = (call.tensor("x")?, call.text("mode")?);
    let value = call.val("value")?;
    let Val::List(pad) = call.val("pad")? else {
        return Err(Error::msg("the sizes of a pad are not a list"));
    };
    let pad = pad.into_iter().map(|val| match val {
        Val::Dim(dim) => Ok(dim),
        other => Err(Error::msg(format_args!("a pad is {}", other.describe()))),
    });
    let pad: Vec<Dim> = pad.collect::<Result<_>>()?;
    if pad.is_empty() {
        call.needs_no(&["value"]);
        return Ok(Val::Tensor(x));
    }
    let rank = x.rank();
    let mut before = vec![Dim::from(0); rank];
    let mut after = before.clone();
    for (at, pair) in pad.chunks(2).enumerate() {
        if let ([low, high], Some(dim)) = (pair, rank.checked_sub(at + 1)) {
            (before[dim], after[dim]) = (low.clone(), high.clone());
        }
    }
    before.extend(after);
    let pads = cx.sizes(&before)?;
    let onnx_mode = match &*mode {
        "constant" => "constant",
        "reflect" => "reflect",
        "replicate" => "edge",
        "circular" if cx.opset() >= 19 => "wrap",
        "circular" => return Err(Error::msg("circular padding needs opset 19")),
        other => {
            return Err(Error::not_in_format(format_args!(
                "padding by {other:?} has no counterpart in ONNX"
            )));
        }
    };
    let mut node_inputs = vec![x.name.clone(), pads];
    if onnx_mode == "constant" {
        let value = match value {
            Val::None => cx.number(0.0, x.dtype),
            val => cx.operand(&val, x.dtype)?.name,
        };
        node_inputs.push(value);
    }
    let mut node = cx.node("Pad");
    for input in &node_inputs {
        node = node.input(input);
    }
    let name = match onnx_mode {
        "constant" => node.output(),
        other => node.text("mode", other).output(),
    };
    call.given(name)
}

/// Tensors along a new dim.
fn together(cx: &mut Cx, tensors: &[Operand], dtype: DType, axis: i64) -> Result<Name> {
    let axes = cx.i64s(&[axis]);
    let mut names: Vec<Name> = Vec::new();
    for x in tensors {
        let x = cx.cast(x, dtype)?;
        names.push(cx.op("Unsqueeze", &[&x.name, &axes]));
    }
    let mut node = cx.node("Concat").int("axis", axis);
    for name in &names {
        node = node.input(name);
    }
    Ok(node.output())
}

/// What a scan gives is stacked already; what its steps give, if they were written one by one, is not.
pub(crate) fn stacked(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    match call.val("items")? {
        Val::List(_) => {
            let name = together(cx, &call.tensors("items")?, call.dtype()?, 0)?;
            call.given(name)
        }
        whole => Ok(whole),
    }
}

fx_nn::function_table! { crate::out::Rule {
    fx_nn::function!(fx_nn::control::stacked) => crate::out::Rule::new(stacked),
} }
