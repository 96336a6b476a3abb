//! Branches, loops and scans, as `case` and `while`.
//!
//! Invariant: what a loop carries has one type from turn to turn.

use fx_nn::control::{Cond, Scan, While};
use fx_nn::ir::ValueMeta;
use fx_nn::lowering::Val;
use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;

use crate::out::cx::{Array, Cx, Type, known, type_of};
use crate::out::graph::Writer;

/// Writes a call of a branch, a loop or a scan.
pub(crate) fn write(
    writer: &mut Writer<'_>,
    module: &dyn Module,
    args: Vec<Val>,
    meta: &ValueMeta,
) -> Result<Val> {
    let any: &dyn std::any::Any = module;
    if let Some(branch) = any.downcast_ref::<Cond>() {
        return cond(writer, branch, &args, meta);
    }
    if let Some(turns) = any.downcast_ref::<While>() {
        return turned(writer, turns, args, meta);
    }
    if let Some(scan) = any.downcast_ref::<Scan>() {
        return scanned(writer, scan, args, meta);
    }
    Err(Error::msg(format_args!(
        "a call of `{}`, which cannot be opened: give it a body that can be traced",
        module.type_name()
    )))
}

fn metas_of(meta: &ValueMeta) -> Vec<ValueMeta> {
    match meta {
        ValueMeta::Sequence(items) => items.clone(),
        one => vec![one.clone()],
    }
}

/// The type of a value as a tensor.
fn type_of_value(meta: &ValueMeta) -> Result<Type> {
    Ok(match meta {
        ValueMeta::Single(meta) => type_of(meta)?,
        ValueMeta::Size(_) => (DType::I64, Vec::new()),
        ValueMeta::Plain(text) if text.contains("truth") || text == "true" || text == "false" => {
            (DType::Bool, Vec::new())
        }
        ValueMeta::Plain(text) if text.parse::<i64>().is_ok() => (DType::I64, Vec::new()),
        _ => (DType::F64, Vec::new()),
    })
}

/// What a side gets of a value.
fn spec_of(val: &Val) -> Result<Spec> {
    Ok(match val {
        Val::Tensor(of) if of.shape.is_empty() && of.dtype == DType::F64 => Spec::float(),
        Val::Tensor(of) => Spec::tensor(known(&of.shape)?, of.dtype),
        Val::Dim(dim) => Spec::int(dim),
        Val::Float(number) => Spec::of(*number),
        Val::Bool(truth) => Spec::of(*truth),
        other => {
            return Err(Error::msg(format_args!(
                "a side takes {}",
                other.describe()
            )));
        }
    })
}

/// What a body gets of what it carries.
fn spec_of_meta(meta: &ValueMeta) -> Result<Spec> {
    Ok(match meta {
        ValueMeta::Single(of) => Spec::tensor(known(&of.shape)?, of.dtype.unwrap_or(DType::F32)),
        ValueMeta::Size(_) => Spec::int("turn"),
        meta => match type_of_value(meta)?.0 {
            DType::Bool => Spec::bool(),
            DType::I64 => Spec::int("turn"),
            _ => Spec::float(),
        },
    })
}

/// Values as tensors of these types.
fn arrays(cx: &mut Cx, vals: &[Val], types: &[Type]) -> Result<Vec<Array>> {
    if vals.len() != types.len() {
        return Err(Error::msg(format_args!(
            "{} values where {} were expected",
            vals.len(),
            types.len()
        )));
    }
    vals.iter()
        .zip(types)
        .map(|(val, (dtype, shape))| cx.value(val, *dtype, shape))
        .collect()
}

/// What the operations of a graph give for values, as tensors of these types.
fn body(
    writer: &mut Writer<'_>,
    gm: &GraphModule,
    specs: &[Spec],
    inputs: Vec<Val>,
    types: &[Type],
) -> Result<Vec<Array>> {
    let ready = writer.prepared(gm, specs)?;
    let results = writer.graph(ready.graph(), ready.attributes(), inputs)?;
    arrays(&mut writer.cx, &results, types)
}

fn truth(cx: &mut Cx, val: &Val) -> Result<Array> {
    let of = match val {
        Val::Tensor(of) => cx.array(of)?,
        other => cx.value(other, DType::Bool, &[])?,
    };
    let of = cx.convert(&of, DType::Bool);
    Ok(cx.reshape(&of, &[]))
}

fn given(made: Vec<Array>, whole: &ValueMeta) -> Val {
    let mut all: Vec<Val> = made.into_iter().map(Val::from).collect();
    match whole {
        ValueMeta::Sequence(_) => Val::List(all),
        _ => all.pop().unwrap_or(Val::None),
    }
}

fn cond(writer: &mut Writer<'_>, branch: &Cond, args: &[Val], meta: &ValueMeta) -> Result<Val> {
    let Some((decides, operands)) = args.split_first() else {
        return Err(Error::msg("a branch without a condition"));
    };
    let decides = truth(&mut writer.cx, decides)?;
    let specs: Vec<Spec> = operands.iter().map(spec_of).collect::<Result<_>>()?;
    let metas = metas_of(meta);
    let types: Vec<Type> = metas.iter().map(type_of_value).collect::<Result<_>>()?;
    let mut regions = Vec::new();
    // The first branch is that of zero.
    for side in [branch.otherwise(), branch.then()] {
        let region = writer.region(&[], |writer, _| {
            body(writer, side, &specs, operands.to_vec(), &types)
        })?;
        regions.push(region);
    }
    let index = writer.cx.convert(&decides, DType::I32);
    let made = writer.cx.operations("case", &[&index], "", regions, &types);
    Ok(given(made, meta))
}

fn turned(writer: &mut Writer<'_>, turns: &While, args: Vec<Val>, meta: &ValueMeta) -> Result<Val> {
    let Some((decides, rest)) = args.split_first() else {
        return Err(Error::msg("a loop without a condition"));
    };
    let (init, captured) = rest.split_at(turns.carries().min(rest.len()));
    let metas = metas_of(meta);
    let mut types = vec![(DType::Bool, Vec::new())];
    for meta in &metas {
        types.push(type_of_value(meta)?);
    }
    let decides = truth(&mut writer.cx, decides)?;
    let mut initial = vec![decides];
    initial.extend(arrays(&mut writer.cx, init, &types[1..])?);
    let inside = metas.iter().map(spec_of_meta);
    let specs: Vec<Spec> = inside
        .chain(captured.iter().map(spec_of))
        .collect::<Result<_>>()?;
    let holds = writer.region(&types, |_, carried| Ok(vec![carried[0].clone()]))?;
    let step = writer.region(&types, |writer, carried| {
        let carried = carried[1..].iter().cloned().map(Val::from);
        let inputs = carried.chain(captured.iter().cloned()).collect();
        body(writer, turns.body(), &specs, inputs, &types)
    })?;
    let operands: Vec<&Array> = initial.iter().collect();
    let mut made = writer
        .cx
        .operations("while", &operands, "", vec![holds, step], &types);
    made.remove(0);
    Ok(given(made, meta))
}

fn scanned(writer: &mut Writer<'_>, scan: &Scan, args: Vec<Val>, meta: &ValueMeta) -> Result<Val> {
    let (init, rest) = args.split_at(scan.carries().min(args.len()));
    let (sequences, captured) = rest.split_at(scan.sequences().min(rest.len()));
    let metas = metas_of(meta);
    let mut item_metas: Vec<ValueMeta> = metas[..init.len().min(metas.len())].to_vec();
    let mut lists = Vec::new();
    for sequence in sequences {
        let Val::Tensor(of) = sequence else {
            return Err(Error::msg(format_args!(
                "a scan over {}",
                sequence.describe()
            )));
        };
        let list = writer.cx.array(of)?;
        let mut item = fx_nn::ir::TensorMeta::new(of.shape[1..].iter().cloned());
        item.dtype = Some(of.dtype);
        item_metas.push(ValueMeta::Single(item));
        lists.push(list);
    }
    let count = lists.first().map_or(0, |list| list.shape[0]);
    let inside = item_metas.iter().map(spec_of_meta);
    let specs: Vec<Spec> = inside
        .chain(captured.iter().map(spec_of))
        .collect::<Result<_>>()?;
    // What a step gives, from a step.
    let ready = writer.prepared(scan.step(), &specs)?;
    let output = ready.graph().output_node();
    let output = output.and_then(|node| node.meta::<ValueMeta>().cloned());
    let step_metas = output.map_or(Vec::new(), |meta| metas_of(&meta));
    let types: Vec<Type> = step_metas
        .iter()
        .map(type_of_value)
        .collect::<Result<_>>()?;
    let (states, items) = types.split_at(init.len().min(types.len()));
    let mut initial = vec![writer.cx.splat(0.0, DType::I64, &[])];
    initial.extend(arrays(&mut writer.cx, init, states)?);
    for (dtype, shape) in items {
        let shape = [vec![count], shape.clone()].concat();
        initial.push(writer.cx.splat(0.0, *dtype, &shape));
    }
    let carried: Vec<Type> = initial
        .iter()
        .map(|of| (of.dtype, of.shape.clone()))
        .collect();
    let holds = writer.region(&carried, |writer, carried| {
        Ok(vec![writer.cx.compare_number(
            "LT",
            &carried[0],
            count as f64,
        )])
    })?;
    let step = writer.region(&carried, |writer, carried| {
        let (turn, rest) = (&carried[0], &carried[1..]);
        let (before, stacks) = rest.split_at(states.len());
        let mut inputs: Vec<Val> = before.iter().cloned().map(Val::from).collect();
        for list in &lists {
            inputs.push(writer.cx.item(list, turn).into());
        }
        inputs.extend(captured.iter().cloned());
        let made = body(writer, scan.step(), &specs, inputs, &types)?;
        let mut next = vec![writer.cx.with_number("add", turn, 1.0)];
        next.extend(made[..states.len()].iter().cloned());
        for (stack, item) in stacks.iter().zip(&made[states.len()..]) {
            next.push(writer.cx.with_item(stack, turn, item));
        }
        Ok(next)
    })?;
    let operands: Vec<&Array> = initial.iter().collect();
    let mut made = writer
        .cx
        .operations("while", &operands, "", vec![holds, step], &carried);
    made.remove(0);
    Ok(match made.len() {
        1 => made.remove(0).into(),
        _ => Val::List(made.into_iter().map(Val::from).collect()),
    })
}
