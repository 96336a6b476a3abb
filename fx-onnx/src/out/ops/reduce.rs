//! Along dims: sums, extremes, orders.

use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use super::arithmetic::{common, truths};
use super::rules;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    sum => reduced("ReduceSum"), mean => |cx, call| {
        let x = match call.val("x")? {
            Val::Unranked(..) => return reduced("ReduceMean")(cx, call),
            _ => call.tensor("x")?,
        };
        let dims = match call.is_none("dim")? {
            true => Vec::new(),
            false => call.places("dim", x.rank())?,
        };
        let is_empty = |(dim, size): (usize, &Dim)| {
            (dims.is_empty() || dims.contains(&(dim as i64))) && size.as_number() == Some(0)
        };
        if x.shape.iter().enumerate().any(is_empty) {
            // The mean of nothing, which engines take for 0.
            call.needs_no(&["keepdim"]);
            let dtype = call.dtype()?;
            let nan = Operand { name: cx.number(f64::NAN, dtype), dtype, shape: Vec::new() };
            let name = cx.expand(&nan, &call.result()?.shape)?;
            return call.given(name);
        }
        reduced("ReduceMean")(cx, call)
    },
    amax => |cx, call| extreme_of(cx, call, "ReduceMax"), amin => |cx, call| extreme_of(cx, call, "ReduceMin"),
    logsumexp => reduced("ReduceLogSumExp"),
    all => |cx, call| {
        let x = call.tensor("x")?;
        let x = truths(cx, &x)?;
        let not = Operand { name: cx.op("Not", &[&x.name]), ..x };
        let some = some_of(cx, call, &not)?;
        let none = Operand { name: cx.op("Not", &[&some]), dtype: DType::Bool, shape: call.result()?.shape.clone() };
        Ok(Val::Tensor(cx.cast(&none, call.dtype()?)?))
    },
    any => |cx, call| {
        let x = call.tensor("x")?;
        let x = truths(cx, &x)?;
        let some = Operand { name: some_of(cx, call, &x)?, dtype: DType::Bool, shape: call.result()?.shape.clone() };
        Ok(Val::Tensor(cx.cast(&some, call.dtype()?)?))
    },
    prod => |cx, call| {
        let x = cx.widened(call, "x")?;
        let dims = call.optional_int("dim")?.map(|dim| fx_nn::lowering::wrapped(dim, x.rank()));
        let keep = i64::from(call.flag("keepdim")?);
        let axes = dims.filter(|_| x.rank() > 0).map(|dim| cx.i64s(&[dim]));
        let carried = cx.carried("ReduceProd", &x)?;
        let name = cx.node("ReduceProd").input(&carried.name).optional(axes.as_ref()).int("keepdims", keep).output();
        let name = cx.given_as(name, carried.dtype, x.dtype)?;
        call.given(name)
    },
    argmax => |cx, call| place_of(cx, call, "ArgMax"),
    argmin => |cx, call| place_of(cx, call, "ArgMin"),
    max => |cx, call| extreme(cx, call, "ReduceMax", "ArgMax"),
    min => |cx, call| extreme(cx, call, "ReduceMin", "ArgMin"),
    cumsum => |cx, call| {
        let x = cx.widened(call, "x")?;
        if x.rank() == 0 {
            call.needs_no(&["dim"]);
            return Ok(Val::Tensor(x));
        }
        let axis = cx.i64(call.place("dim", x.rank())?);
        let carried = cx.carried("CumSum", &x)?;
        let name = cx.op("CumSum", &[&carried.name, &axis]);
        let name = cx.given_as(name, carried.dtype, x.dtype)?;
        call.given(name)
    },
    topk => |cx, call| {
        let (x, k) = (call.tensor("x")?, call.size("k")?);
        let axis = call.place("dim", x.rank())?;
        let largest = call.flag("largest")?;
        // The order of elements that need none is the engine's.
        call.flag("sorted")?;
        let names = first_in_order(cx, &x, axis, &k, largest)?;
        call.all_given(names)
    },
    sort => |cx, call| {
        let x = call.tensor("x")?;
        let axis = call.place("dim", x.rank())?;
        let names = sorted(cx, &x, axis, call.flag("descending")?)?;
        call.all_given(names)
    },
    kthvalue => |cx, call| {
        let k = call.int("k")?;
        let x = call.tensor("x")?;
        let axis = call.place("dim", x.rank())?;
        ordered(cx, call, &x, axis, &Dim::from(k - 1))
    },
    median => |cx, call| {
        let x = call.tensor("x")?;
        let axis = call.place("dim", x.rank())?;
        let size = x.shape.get(axis as usize).cloned().unwrap_or_else(|| Dim::from(1));
        let middle = (&size - 1)?.div(2)?;
        if !x.dtype.is_floating_point() || x.rank() == 0 {
            return ordered(cx, call, &x, axis, &middle);
        }
        // The first NaN, where there is one: they are the last in the order.
        let keep = call.flag("keepdim")?;
        let axes = cx.i64s(&[axis]);
        let is_nan = Operand { name: cx.is_nan(&x)?, dtype: DType::Bool, shape: x.shape.clone() };
        let numbers = cx.cast(&is_nan, DType::I64)?;
        let count = cx.node("ReduceSum").input(&numbers.name).input(&axes).int("keepdims", 1).output();
        let (zero, size, middle) = (cx.i64(0), cx.size_scalar(&size)?, cx.size_scalar(&middle)?);
        let some = cx.op("Greater", &[&count, &zero]);
        let first = cx.op("Sub", &[&size, &count]);
        let at = cx.op("Where", &[&some, &first, &middle]);
        let mut picked = Vec::new();
        for name in sorted(cx, &x, axis, false)? {
            let name = cx.node("GatherElements").input(&name).input(&at).int("axis", axis).output();
            picked.push(if keep { name } else { cx.op("Squeeze", &[&name, &axes]) });
        }
        call.all_given(picked)
    },
    equal => |cx, call| {
        let (a, b) = (call.tensor("x")?, call.tensor("other")?);
        if a.shape != b.shape {
            let sizes = || a.shape.iter().zip(&b.shape);
            let differ = sizes().any(|(a, b)| {
                let (a, b) = (a.as_number(), b.as_number());
                a.is_some() && b.is_some() && a != b
            });
            if a.rank() != b.rank() || differ {
                return Ok(Val::Bool(false));
            }
            return Err(Error::msg("whether the tensors are of one shape is known by a run alone"));
        }
        let dtype = common(&Val::Tensor(a.clone()), &Val::Tensor(b.clone()));
        let (a, b) = (cx.cast(&a, dtype)?, cx.cast(&b, dtype)?);
        let same = cx.op("Equal", &[&a.name, &b.name]);
        let name = all_of(cx, &same)?;
        call.given(name)
    },
    unique => |cx, call| {
        let x = call.tensor("x")?;
        // PyTorch sorts whether it is asked to or not.
        call.flag("sorted")?;
        let (inverse, counts) = (call.flag("return_inverse")?, call.flag("return_counts")?);
        let carried = cx.carried("Unique", &x)?;
        let mut node = cx.node("Unique").input(&carried.name).int("sorted", 1);
        if let Some(dim) = call.optional_int("dim")? {
            node = node.int("axis", dim);
        }
        let names = node.outputs(4);
        let values = cx.given_as(names[0].clone(), carried.dtype, x.dtype)?;
        let metas = call.results()?;
        let none = cx.i64s(&[]);
        let inverse = match inverse {
            true => {
                let shape = &metas[1].shape;
                let flat = Operand { name: names[2].clone(), dtype: DType::I64, shape: vec![Dim::product(shape)?] };
                cx.reshape(&flat, shape)?
            }
            false => none.clone(),
        };
        let counts = if counts { names[3].clone() } else { none };
        call.all_given(vec![values, inverse, counts])
    },
    nonzero => nonzero, argwhere => nonzero,
}

fn nonzero(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let x = call.tensor("x")?;
    let x = truths(cx, &x)?;
    let places = cx.op("NonZero", &[&x.name]);
    let mut name = cx
        .node("Transpose")
        .input(&places)
        .ints("perm", [1, 0])
        .output();
    if x.rank() == 0 {
        // A tensor without dims has places without numbers; ONNX counts it as one of one dim.
        let (zero, one) = (cx.i64s(&[0]), cx.i64s(&[1]));
        name = cx.op("Slice", &[&name, &zero, &zero, &one]);
    }
    call.given(name)
}

/// The dims along which a call reduces, as an input; `None` for all.
fn axes(cx: &mut Cx, call: &OpCall<'_>, rank: usize) -> Result<Option<Name>> {
    Ok(match call.is_none("dim")? {
        true => None,
        false => {
            if let Val::Unranked(..) = call.val("x")? {
                // Engines count dims from the end, too.
                let dims = call.ints("dim")?;
                return Ok((!dims.is_empty()).then(|| cx.i64s(&dims)));
            }
            let dims = call.places("dim", rank)?;
            (rank > 0 && !dims.is_empty()).then(|| cx.i64s(&dims))
        }
    })
}

fn reduced(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        let carried = cx.carried(op, &x)?;
        let name = reduction(cx, call, op, &carried)?;
        let name = cx.given_as(name, carried.dtype, x.dtype)?;
        call.given(name)
    }
}

fn reduction(cx: &mut Cx, call: &OpCall<'_>, op: &str, x: &Operand) -> Result<Name> {
    let keep = i64::from(call.flag("keepdim")?);
    let axes = axes(cx, call, x.rank())?;
    // Extremes take the dims as an input from opset 18 on, as sums do.
    Ok(cx
        .node(op)
        .input(&x.name)
        .optional(axes.as_ref())
        .int("keepdims", keep)
        .output())
}

/// Whether some truth values of a tensor hold, along the dims of a call: of none, none does.
fn some_of(cx: &mut Cx, call: &OpCall<'_>, x: &Operand) -> Result<Name> {
    let numbers = cx.cast(x, DType::I32)?;
    let count = reduction(cx, call, "ReduceSum", &numbers)?;
    cx.given_as(count, DType::I32, DType::Bool)
}

/// Whether all truth values of a tensor hold.
fn all_of(cx: &mut Cx, truths: &Name) -> Result<Name> {
    let not = Operand {
        name: cx.op("Not", &[truths]),
        dtype: DType::Bool,
        shape: Vec::new(),
    };
    let numbers = cx.cast(&not, DType::I32)?;
    let count = cx
        .node("ReduceSum")
        .input(&numbers.name)
        .int("keepdims", 0)
        .output();
    let some = cx.given_as(count, DType::I32, DType::Bool)?;
    Ok(cx.op("Not", &[&some]))
}

/// Where the slices along dims have a NaN, which engines skip: a NaN is the extreme of its slice.
fn has_nan(cx: &mut Cx, is_nan: &Operand, axes: Option<&Name>, keep: i64) -> Result<Name> {
    let node = cx.node("ReduceMax").input(&is_nan.name).optional(axes);
    let some = node.int("keepdims", keep).output();
    cx.given_as(some, is_nan.dtype, DType::Bool)
}

/// Where a float is NaN, as numbers; nothing of whole numbers.
fn nans(cx: &mut Cx, x: &Operand) -> Result<Option<Operand>> {
    if !x.dtype.is_floating_point() {
        return Ok(None);
    }
    let is_nan = Operand {
        name: cx.is_nan(x)?,
        dtype: DType::Bool,
        shape: x.shape.clone(),
    };
    cx.cast(&is_nan, DType::I32).map(Some)
}

fn extreme_of(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Val> {
    let x = cx.widened_elements(call, "x")?;
    let carried = cx.carried(op, &x)?;
    let best = reduction(cx, call, op, &carried)?;
    let mut name = cx.given_as(best, carried.dtype, x.dtype)?;
    if let Some(is_nan) = nans(cx, &x)? {
        let axes = axes(cx, call, x.rank())?;
        let some = has_nan(cx, &is_nan, axes.as_ref(), i64::from(call.flag("keepdim")?))?;
        let nan = cx.number(f64::NAN, x.dtype);
        name = cx.op("Where", &[&some, &nan, &name]);
    }
    call.given(name)
}

/// The first place of the extreme along a dim.
fn first_place(cx: &mut Cx, x: &Operand, op: &str, axis: i64, keep: i64) -> Result<Name> {
    let place = |cx: &mut Cx, x: &Name, op: &str| {
        let node = cx.node(op).input(x).int("axis", axis);
        node.int("keepdims", keep).output()
    };
    let carried = cx.carried(op, x)?;
    let best = place(cx, &carried.name, op);
    let Some(is_nan) = nans(cx, x)? else {
        return Ok(best);
    };
    let axes = cx.i64s(&[axis]);
    let some = has_nan(cx, &is_nan, Some(&axes), keep)?;
    let first = place(cx, &is_nan.name, "ArgMax");
    Ok(cx.op("Where", &[&some, &first, &best]))
}

fn place_of(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let axis = call.place("dim", x.rank())?;
    let keep = i64::from(call.flag("keepdim")?);
    let name = match x.rank() {
        0 => cx.i64(0),
        _ => first_place(cx, &x, op, axis, keep)?,
    };
    call.given(name)
}

fn extreme(cx: &mut Cx, call: &OpCall<'_>, values: &str, places: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let axis = call.place("dim", x.rank())?;
    let keep = i64::from(call.flag("keepdim")?);
    if x.rank() == 0 {
        let place = cx.i64(0);
        return call.all_given(vec![x.name, place]);
    }
    let axes = cx.i64s(&[axis]);
    let carried = cx.carried(values, &x)?;
    let node = cx.node(values).input(&carried.name).input(&axes);
    let best = node.int("keepdims", keep).output();
    let mut best = cx.given_as(best, carried.dtype, x.dtype)?;
    if let Some(is_nan) = nans(cx, &x)? {
        let some = has_nan(cx, &is_nan, Some(&axes), keep)?;
        let nan = cx.number(f64::NAN, x.dtype);
        best = cx.op("Where", &[&some, &nan, &best]);
    }
    let at = first_place(cx, &x, places, axis, keep)?;
    call.all_given(vec![best, at])
}

/// The first of the values along a dim in an order, and their places.
fn first_in_order(
    cx: &mut Cx,
    x: &Operand,
    axis: i64,
    count: &Dim,
    descending: bool,
) -> Result<Vec<Name>> {
    if x.rank() == 0 {
        return Ok(vec![x.name.clone(), cx.i64(0)]);
    }
    let k = cx.sizes(std::slice::from_ref(count))?;
    let carried = cx.carried("TopK", x)?;
    let node = cx
        .node("TopK")
        .input(&carried.name)
        .input(&k)
        .int("axis", axis);
    let node = node.int("largest", i64::from(descending)).int("sorted", 1);
    let mut names = node.outputs(2);
    names[0] = cx.given_as(names[0].clone(), carried.dtype, x.dtype)?;
    Ok(names)
}

/// Values in order, and their places.
fn sorted(cx: &mut Cx, x: &Operand, axis: i64, descending: bool) -> Result<Vec<Name>> {
    let one = Dim::from(1);
    let size = x.shape.get(axis as usize).unwrap_or(&one).clone();
    first_in_order(cx, x, axis, &size, descending)
}

/// The value at a place of the order along a dim, and where it was.
fn ordered(cx: &mut Cx, call: &OpCall<'_>, x: &Operand, axis: i64, at: &Dim) -> Result<Val> {
    let keep = call.flag("keepdim")?;
    let names = sorted(cx, x, axis, false)?;
    if x.rank() == 0 {
        return call.all_given(names);
    }
    let at = if keep {
        cx.sizes(std::slice::from_ref(at))?
    } else {
        cx.size_scalar(at)?
    };
    let picked = names.iter().map(|name| {
        cx.node("Gather")
            .input(name)
            .input(&at)
            .int("axis", axis)
            .output()
    });
    let picked = picked.collect();
    call.all_given(picked)
}
