//! Branches, loops and scans, as `case` and `while`.
//!
//! Invariant: what a loop carries has one type from turn to turn.

use fx_nn::control::{Cond, Scan, While};
use fx_nn::ir::ValueMeta;
use fx_nn::lowering::{RegionCall, Val, as_tensor};
use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;

use crate::out::cx::{Array, Cx, Type, type_of};
use crate::out::graph::Writer;

/// Writes a call of a branch, a loop or a scan.
pub(crate) fn write(
    writer: &mut Writer<'_>,
    module: &dyn Module,
    call: &RegionCall<'_>,
) -> Result<Val> {
    let any: &dyn std::any::Any = module;
    if let Some(branch) = any.downcast_ref::<Cond>() {
        return cond(writer, branch, call);
    }
    if let Some(turns) = any.downcast_ref::<While>() {
        return turned(writer, turns, call);
    }
    if let Some(scan) = any.downcast_ref::<Scan>() {
        return scanned(writer, scan, call);
    }
    Err(Error::msg(format_args!(
        "a call of `{}`, which cannot be opened: give it a body that can be traced",
        module.type_name()
    )))
}

/// Values as tensors of these types; one of one element is a number where the type is that of one.
fn arrays(cx: &mut Cx, vals: &[Val], types: &[Type]) -> Result<Vec<Array>> {
    if vals.len() != types.len() {
        return Err(Error::msg(format_args!(
            "{} values where {} were expected",
            vals.len(),
            types.len()
        )));
    }
    let pairs = vals.iter().zip(types);
    let array = |(val, (dtype, shape)): (&Val, &Type)| match val {
        Val::Tensor(of) if shape.is_empty() => {
            let of = cx.array(of)?;
            let of = cx.convert(&of, *dtype);
            Ok(cx.reshape(&of, &[]))
        }
        val => cx.value(val, *dtype, shape),
    };
    pairs.map(array).collect()
}

fn type_of_value(meta: &ValueMeta) -> Result<Type> {
    type_of(&as_tensor(meta)?)
}

/// The arguments as values, and what is known of them.
fn unzipped(args: &[(Val, Spec)]) -> (Vec<Val>, Vec<Spec>) {
    args.iter().cloned().unzip()
}

/// What the operations of a graph give for values, as tensors of these types.
fn body(
    writer: &mut Writer<'_>,
    gm: &GraphModule,
    specs: &[Spec],
    inputs: Vec<Val>,
    types: &[Type],
) -> Result<Vec<Array>> {
    let results = writer.side(gm, specs, inputs)?;
    arrays(&mut writer.cx, &results, types)
}

fn truth(cx: &mut Cx, val: &Val) -> Result<Array> {
    let mut made = arrays(cx, std::slice::from_ref(val), &[(DType::Bool, Vec::new())])?;
    made.pop()
        .ok_or_else(|| Error::msg("a condition is one value"))
}

fn given(call: &RegionCall<'_>, made: Vec<Array>) -> Val {
    call.given(made.into_iter().map(Val::from))
}

fn cond(writer: &mut Writer<'_>, branch: &Cond, call: &RegionCall<'_>) -> Result<Val> {
    let (decides, operands) = call.condition()?;
    let (values, specs) = unzipped(operands);
    if let Val::Bool(truth) = decides {
        let side = if *truth {
            branch.then()
        } else {
            branch.otherwise()
        };
        return Ok(call.given(writer.side(side, &specs, values)?));
    }
    let decides = truth(&mut writer.cx, decides)?;
    let types = call.results().into_iter().map(type_of_value);
    let types: Vec<Type> = types.collect::<Result<_>>()?;
    let mut regions = Vec::new();
    // The first branch is that of zero.
    for side in [branch.otherwise(), branch.then()] {
        let region = writer.region(&[], |writer, _| {
            body(writer, side, &specs, values.clone(), &types)
        })?;
        regions.push(region);
    }
    let index = writer.cx.convert(&decides, DType::I32);
    let made = writer.cx.operations("case", &[&index], "", regions, &types);
    Ok(given(call, made))
}

fn turned(writer: &mut Writer<'_>, turns: &While, call: &RegionCall<'_>) -> Result<Val> {
    let (decides, rest) = call.condition()?;
    let (init, captured) = rest.split_at(turns.carries().min(rest.len()));
    let (init, _) = unzipped(init);
    if *decides == Val::Bool(false) {
        return Ok(call.given(init));
    }
    let metas = call.results();
    let mut types = vec![(DType::Bool, Vec::new())];
    for meta in &metas {
        types.push(type_of_value(meta)?);
    }
    let decides = truth(&mut writer.cx, decides)?;
    let mut initial = vec![decides];
    initial.extend(arrays(&mut writer.cx, &init, &types[1..])?);
    let (outside, captured) = unzipped(captured);
    let inside = metas.into_iter().map(Spec::of_meta);
    let specs: Vec<Spec> = inside
        .chain(captured.into_iter().map(Ok))
        .collect::<Result<_>>()?;
    let holds = writer.region(&types, |_, carried| Ok(vec![carried[0].clone()]))?;
    let step = writer.region(&types, |writer, carried| {
        let carried = carried[1..].iter().cloned().map(Val::from);
        let inputs = carried.chain(outside).collect();
        body(writer, turns.body(), &specs, inputs, &types)
    })?;
    let operands: Vec<&Array> = initial.iter().collect();
    let mut made = writer
        .cx
        .operations("while", &operands, "", vec![holds, step], &types);
    made.remove(0);
    Ok(given(call, made))
}

fn scanned(writer: &mut Writer<'_>, scan: &Scan, call: &RegionCall<'_>) -> Result<Val> {
    let args = call.args();
    let (init, rest) = args.split_at(scan.carries().min(args.len()));
    let (sequences, captured) = rest.split_at(scan.sequences().min(rest.len()));
    let (init, _) = unzipped(init);
    let (outside, captured) = unzipped(captured);
    let states = call.results().into_iter().take(init.len());
    let mut item_metas: Vec<ValueMeta> = states.cloned().collect();
    let states: Vec<Type> = item_metas
        .iter()
        .map(type_of_value)
        .collect::<Result<_>>()?;
    let mut lists = Vec::new();
    for (sequence, _) in sequences {
        let of = match sequence {
            Val::Tensor(of) if of.rank() > 0 => of,
            other => {
                return Err(Error::msg(format_args!(
                    "a scan over {}, which has no first dim",
                    other.describe()
                )));
            }
        };
        let list = writer.cx.array(of)?;
        let item = fx_nn::ir::TensorMeta::new(of.shape[1..].iter().cloned()).dtype(of.dtype);
        item_metas.push(item.into());
        lists.push(list);
    }
    let count = lists.first().map_or(0, |list| list.shape[0]);
    let inside = item_metas.iter().map(Spec::of_meta);
    let specs: Vec<Spec> = inside
        .chain(captured.into_iter().map(Ok))
        .collect::<Result<_>>()?;
    // What a step gives besides the states, from a step.
    let (ready, _) = writer.prepared_side(scan.step(), &specs)?;
    let output = ready.graph().output_node();
    let output = output.and_then(|node| node.meta::<ValueMeta>().cloned());
    let items = match &output {
        Some(ValueMeta::List(items) | ValueMeta::Tuple(items)) => {
            items.get(states.len()..).unwrap_or_default()
        }
        _ => &[],
    };
    let items: Vec<Type> = items.iter().map(type_of_value).collect::<Result<_>>()?;
    let types = [states.clone(), items.clone()].concat();
    let mut initial = vec![writer.cx.splat(0.0, DType::I64, &[])];
    initial.extend(arrays(&mut writer.cx, &init, &states)?);
    for (dtype, shape) in &items {
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
        inputs.extend(outside);
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
