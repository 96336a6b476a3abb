//! Along dims: sums, extremes, orders.

use fx_nn::prelude::*;
use fx_nn::value::Dim;

use super::arithmetic::truths;
use super::rules;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    sum => reduced("ReduceSum"), mean => reduced("ReduceMean"),
    amax => reduced("ReduceMax"), amin => reduced("ReduceMin"),
    logsumexp => reduced("ReduceLogSumExp"),
    all => |cx, call| decided(cx, call, "ReduceMin"),
    any => |cx, call| decided(cx, call, "ReduceMax"),
    prod => |cx, call| {
        let x = cx.widened(call, "x")?;
        let dims = call.optional_int("dim")?.map(|dim| fx_nn::lowering::wrapped(dim, x.rank()));
        let keep = i64::from(call.flag("keepdim")?);
        let axes = dims.map(|dim| cx.i64s(&[dim]));
        let name = cx.node("ReduceProd").input(&x.name).optional(axes.as_ref()).int("keepdims", keep).output();
        call.given(name)
    },
    argmax => |cx, call| place_of(cx, call, "ArgMax"),
    argmin => |cx, call| place_of(cx, call, "ArgMin"),
    max => |cx, call| extreme(cx, call, "ReduceMax", "ArgMax"),
    min => |cx, call| extreme(cx, call, "ReduceMin", "ArgMin"),
    cumsum => |cx, call| {
        let x = cx.widened(call, "x")?;
        if x.rank() == 0 {
            return Ok(Val::Tensor(x));
        }
        let axis = cx.i64(call.place("dim", x.rank())?);
        let name = cx.op("CumSum", &[&x.name, &axis]);
        call.given(name)
    },
    topk => |cx, call| {
        let (x, k) = (call.tensor("x")?, call.size("k")?);
        let axis = call.place("dim", x.rank())?;
        let k = cx.sizes(&[k])?;
        let node = cx.node("TopK").input(&x.name).input(&k).int("axis", axis);
        let names = node.int("largest", i64::from(call.flag("largest")?)).int("sorted", 1).outputs(2);
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
        let names = sorted(cx, &x, axis, false)?;
        ordered(cx, call, names, axis, &Dim::from(k - 1))
    },
    median => |cx, call| {
        let x = call.tensor("x")?;
        let axis = call.place("dim", x.rank())?;
        let names = sorted(cx, &x, axis, false)?;
        let middle = (&x.shape[axis as usize] - 1)?.div(2)?;
        ordered(cx, call, names, axis, &middle)
    },
    equal => |cx, call| {
        let (a, b) = (call.tensor("x")?, call.tensor("other")?);
        let b = cx.cast(&b, a.dtype)?;
        let same = cx.op("Equal", &[&a.name, &b.name]);
        let name = all_of(cx, &same);
        call.given(name)
    },
    unique => |cx, call| {
        let x = call.tensor("x")?;
        let mut node = cx.node("Unique").input(&x.name).int("sorted", 1);
        if let Some(dim) = call.optional_int("dim")? {
            node = node.int("axis", dim);
        }
        let names = node.outputs(4);
        let inverse = names[2].clone();
        let metas = call.results()?;
        let inverse = cx.reshape(&Operand { name: inverse, dtype: DType::I64, shape: vec![Dim::product(&metas[1].shape)?] }, &metas[1].shape)?;
        call.all_given(vec![names[0].clone(), inverse, names[3].clone()])
    },
    nonzero => nonzero, argwhere => nonzero,
}

fn nonzero(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let x = call.tensor("x")?;
    let places = cx.op("NonZero", &[&x.name]);
    let name = cx
        .node("Transpose")
        .input(&places)
        .ints("perm", [1, 0])
        .output();
    call.given(name)
}

/// The dims along which a call reduces, as an input; `None` for all.
fn axes(cx: &mut Cx, call: &OpCall<'_>, rank: usize) -> Result<Option<Name>> {
    Ok(match call.is_none("dim")? {
        true => None,
        false => {
            let dims = call.places("dim", rank)?;
            (rank > 0 && !dims.is_empty()).then(|| cx.i64s(&dims))
        }
    })
}

fn reduced(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let mut x = cx.widened(call, "x")?;
        let dtype = x.dtype;
        if dtype == DType::Bool {
            x = cx.cast(&x, DType::I32)?;
        }
        let name = reduction(cx, call, op, &x)?;
        let meta = call.result()?;
        let given = Operand {
            name,
            dtype: x.dtype,
            shape: meta.shape.clone(),
        };
        Ok(Val::Tensor(cx.cast(&given, dtype)?))
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

fn decided(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let x = truths(cx, &x)?;
    let x = cx.cast(&x, DType::I32)?;
    let name = reduction(cx, call, op, &x)?;
    let given = Operand {
        name,
        dtype: DType::I32,
        shape: call.result()?.shape.clone(),
    };
    Ok(Val::Tensor(cx.cast(&given, call.dtype()?)?))
}

/// Whether all truths of a tensor hold.
fn all_of(cx: &mut Cx, truths: &Name) -> Name {
    let numbers = cx.node("Cast").input(truths).int("to", 6).output();
    let least = cx
        .node("ReduceMin")
        .input(&numbers)
        .int("keepdims", 0)
        .output();
    cx.node("Cast").input(&least).int("to", 9).output()
}

fn place_of(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let axis = call.place("dim", x.rank())?;
    let keep = i64::from(call.flag("keepdim")?);
    let name = cx
        .node(op)
        .input(&x.name)
        .int("axis", axis)
        .int("keepdims", keep)
        .output();
    call.given(name)
}

fn extreme(cx: &mut Cx, call: &OpCall<'_>, values: &str, places: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let axis = call.place("dim", x.rank())?;
    let keep = i64::from(call.flag("keepdim")?);
    let axes = cx.i64s(&[axis]);
    let best = cx
        .node(values)
        .input(&x.name)
        .input(&axes)
        .int("keepdims", keep)
        .output();
    let at = cx
        .node(places)
        .input(&x.name)
        .int("axis", axis)
        .int("keepdims", keep)
        .output();
    call.all_given(vec![best, at])
}

/// Values in order, and their places.
fn sorted(cx: &mut Cx, x: &Operand, axis: i64, descending: bool) -> Result<Vec<Name>> {
    let k = cx.sizes(std::slice::from_ref(&x.shape[axis as usize]))?;
    let node = cx.node("TopK").input(&x.name).input(&k).int("axis", axis);
    Ok(node
        .int("largest", i64::from(descending))
        .int("sorted", 1)
        .outputs(2))
}

/// The value at a place of an order, and where it was.
fn ordered(cx: &mut Cx, call: &OpCall<'_>, names: Vec<Name>, axis: i64, at: &Dim) -> Result<Val> {
    let keep = call.flag("keepdim")?;
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
