//! Branches, loops and scans, as If, Loop and Scan.
//!
//! Invariant: a graph inside reads what is outside by name; what it carries has one type from turn to turn.

use std::sync::Arc;

use fx_nn::control::{Cond, Scan, While};
use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use super::context::{Mark, put_all, value_info};
use super::graph::Writer;
use super::graph::prepared;
use crate::proto::{GraphProto, ValueInfoProto};
use fx_nn::lowering::operand;
use fx_nn::lowering::{Name, Operand, Val};

/// Writes a call of a branch, a loop or a scan.
pub(super) fn write(
    writer: &mut Writer<'_>,
    module: &dyn Module,
    args: Vec<Val>,
    meta: &ValueMeta,
) -> Result<Val> {
    let any: &dyn std::any::Any = module;
    if let Some(branch) = any.downcast_ref::<Cond>() {
        return cond(writer, branch, args, meta);
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

/// What a value is as a tensor.
fn tensor_meta(meta: &ValueMeta) -> TensorMeta {
    let number = |dtype| TensorMeta::new([0usize; 0]).dtype(dtype);
    match meta {
        ValueMeta::Single(meta) => meta.clone(),
        ValueMeta::Size(_) => number(DType::I64),
        ValueMeta::Plain(text) if text.contains("truth") || text == "true" || text == "false" => {
            number(DType::Bool)
        }
        ValueMeta::Plain(text) if text.parse::<i64>().is_ok() => number(DType::I64),
        _ => number(DType::F64),
    }
}

/// The element type of a value as a tensor.
fn dtype_of(meta: &ValueMeta) -> DType {
    tensor_meta(meta).dtype.unwrap_or(DType::F32)
}

/// What a side will get, of what the call gets.
fn spec_of(val: &Val) -> Result<Spec> {
    Ok(match val {
        Val::Tensor(of) if of.shape.is_empty() && of.dtype == DType::F64 => Spec::float(),
        Val::Tensor(of) => Spec::tensor(of.shape.iter().map(size_text), of.dtype),
        Val::Dim(dim) => Spec::int(size_text(dim)),
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

fn size_text(dim: &Dim) -> fx_nn::shapes::SpecSize {
    match dim.as_known() {
        Some(number) => number.into(),
        None => dim.clone().into(),
    }
}

/// A side of a branch or the body of a loop, as a graph of the inputs; its results have these types.
fn side(
    writer: &mut Writer<'_>,
    gm: &GraphModule,
    specs: &[Spec],
    inputs: impl FnOnce(&mut Writer<'_>, &GraphModule) -> Result<(Vec<Val>, Vec<ValueInfoProto>)>,
    types: &[DType],
    name: &str,
) -> Result<GraphProto> {
    let ready = prepared(gm, specs, writer.export)?;
    writer.cx.open();
    let (values, infos) = inputs(writer, &ready)?;
    let mark = writer.cx.mark.clone();
    let results = writer.graph(ready.graph(), ready.attributes(), values)?;
    let mut outputs = Vec::new();
    writer.cx.mark = Arc::new(Mark {
        node: format!("{}.{name}", mark.node),
        ..Mark::clone(&mark)
    });
    for (at, result) in results.iter().enumerate() {
        let dtype = types.get(at).copied().unwrap_or(DType::F32);
        let of = writer.cx.operand(result, dtype)?;
        let made = writer.cx.op("Identity", &[&of.name]);
        let mut meta = TensorMeta::new(of.shape.iter().cloned());
        meta.dtype = Some(dtype);
        outputs.push(value_info(&made, &meta)?);
    }
    writer.cx.mark = mark;
    let (mut graph, marks) = writer.cx.close(name);
    put_all(marks, &mut graph.node);
    graph.input = infos;
    graph.output = outputs;
    Ok(graph)
}

fn condition(writer: &mut Writer<'_>, val: &Val) -> Result<Name> {
    let of = writer.cx.operand(val, DType::Bool)?;
    match of.shape.is_empty() {
        true => Ok(of.name),
        false => {
            let none = writer.cx.i64s(&[]);
            Ok(writer.cx.op("Reshape", &[&of.name, &none]))
        }
    }
}

fn given(names: Vec<Name>, metas: &[ValueMeta], whole: &ValueMeta) -> Result<Val> {
    let all = names
        .into_iter()
        .zip(metas)
        .map(|(name, meta)| operand(name, &tensor_meta(meta)).map(Val::Tensor));
    let mut all = all.collect::<Result<Vec<Val>>>()?;
    Ok(match whole {
        ValueMeta::Sequence(_) => Val::List(all),
        _ => all.pop().unwrap_or(Val::None),
    })
}

fn cond(writer: &mut Writer<'_>, branch: &Cond, args: Vec<Val>, meta: &ValueMeta) -> Result<Val> {
    let Some((decides, operands)) = args.split_first() else {
        return Err(Error::msg("a branch without a condition"));
    };
    let decides = condition(writer, decides)?;
    let specs: Vec<Spec> = operands.iter().map(spec_of).collect::<Result<_>>()?;
    let metas = metas_of(meta);
    let types: Vec<DType> = metas.iter().map(dtype_of).collect();
    let mut written = |gm: &GraphModule, name: &str| {
        let inputs = |_: &mut Writer<'_>, _: &GraphModule| Ok((operands.to_vec(), Vec::new()));
        side(writer, gm, &specs, inputs, &types, name)
    };
    let then = written(branch.then(), "then")?;
    let otherwise = written(branch.otherwise(), "otherwise")?;
    let node = writer
        .cx
        .node("If")
        .input(&decides)
        .graph("then_branch", then)
        .graph("else_branch", otherwise);
    let names = node.outputs(metas.len());
    given(names, &metas, meta)
}

/// The inputs of a body: what it carries or takes item by item, new; what it reads from outside, as it is.
fn body_inputs(
    writer: &mut Writer<'_>,
    metas: &[ValueMeta],
    captured: &[Val],
) -> Result<(Vec<Val>, Vec<ValueInfoProto>)> {
    let (mut values, mut infos) = (Vec::new(), Vec::new());
    for meta in metas {
        let tensor = tensor_meta(meta);
        let name = writer.cx.fresh("carried");
        infos.push(value_info(&name, &tensor)?);
        values.push(writer.input(name, meta, &tensor)?);
    }
    values.extend(captured.iter().cloned());
    Ok((values, infos))
}

fn spec_of_meta(meta: &ValueMeta) -> Result<Spec> {
    Ok(match meta {
        ValueMeta::Single(of) => Spec::tensor(
            of.shape.iter().map(size_text),
            of.dtype.unwrap_or(DType::F32),
        ),
        ValueMeta::Size(dim) => Spec::int(size_text(dim)),
        meta => match tensor_meta(meta).dtype {
            Some(DType::Bool) => Spec::bool(),
            Some(DType::I64) => Spec::int("turn"),
            _ => Spec::float(),
        },
    })
}

/// What a body gets: what it carries or takes item by item, and what it reads from outside.
fn body_specs(metas: &[ValueMeta], captured: &[Val]) -> Result<Vec<Spec>> {
    let inside = metas.iter().map(spec_of_meta);
    inside.chain(captured.iter().map(spec_of)).collect()
}

/// What a body carries into its first turn.
fn initial_values(
    writer: &mut Writer<'_>,
    init: &[Val],
    metas: &[ValueMeta],
) -> Result<Vec<Operand>> {
    let pairs = init.iter().zip(metas);
    pairs
        .map(|(val, meta)| writer.cx.operand(val, dtype_of(meta)))
        .collect()
}

fn turned(writer: &mut Writer<'_>, turns: &While, args: Vec<Val>, meta: &ValueMeta) -> Result<Val> {
    let Some((decides, rest)) = args.split_first() else {
        return Err(Error::msg("a loop without a condition"));
    };
    let (init, captured) = rest.split_at(turns.carries().min(rest.len()));
    let metas = metas_of(meta);
    let decides = condition(writer, decides)?;
    let initial = initial_values(writer, init, &metas)?;
    let specs = body_specs(&metas, captured)?;
    let mut types = vec![DType::Bool];
    types.extend(metas.iter().map(dtype_of));
    let outside = captured.to_vec();
    let body = side(
        writer,
        turns.body(),
        &specs,
        |writer, _| {
            let (values, infos) = body_inputs(writer, &metas, &outside)?;
            let number = |writer: &mut Writer<'_>, hint: &str, dtype| {
                let name = writer.cx.fresh(hint);
                value_info(&name, &TensorMeta::new([0usize; 0]).dtype(dtype))
            };
            let mut all = vec![
                number(writer, "turn", DType::I64)?,
                number(writer, "goes_on", DType::Bool)?,
            ];
            all.extend(infos);
            Ok((values, all))
        },
        &types,
        "body",
    )?;
    let empty: Option<&Name> = None;
    let mut node = writer.cx.node("Loop").optional(empty).input(&decides);
    for of in &initial {
        node = node.input(&of.name);
    }
    let names = node.graph("body", body).outputs(metas.len());
    given(names, &metas, meta)
}

fn scanned(writer: &mut Writer<'_>, scan: &Scan, args: Vec<Val>, meta: &ValueMeta) -> Result<Val> {
    let (init, rest) = args.split_at(scan.carries().min(args.len()));
    let (sequences, captured) = rest.split_at(scan.sequences().min(rest.len()));
    let metas = metas_of(meta);
    let initial = initial_values(writer, init, &metas)?;
    let mut item_metas: Vec<ValueMeta> = metas[..init.len().min(metas.len())].to_vec();
    let mut lists = Vec::new();
    for sequence in sequences {
        let Val::Tensor(of) = sequence else {
            return Err(Error::msg(format_args!(
                "a scan over {}",
                sequence.describe()
            )));
        };
        let mut item = TensorMeta::new(of.shape[1..].iter().cloned());
        item.dtype = Some(of.dtype);
        item_metas.push(ValueMeta::Single(item));
        lists.push(of.clone());
    }
    let length = lists
        .first()
        .map(|of| of.shape[0].clone())
        .unwrap_or_else(|| Dim::from(0));
    let specs = body_specs(&item_metas, captured)?;
    // What steps give, from a step.
    let step = prepared(scan.step(), &specs, writer.export)?;
    let output = step
        .graph()
        .output_node()
        .and_then(|node| node.meta::<ValueMeta>().cloned());
    let given_metas = output.map_or(Vec::new(), |meta| metas_of(&meta));
    let types: Vec<DType> = given_metas.iter().map(dtype_of).collect();
    let outside = captured.to_vec();
    let body = side(
        writer,
        scan.step(),
        &specs,
        |writer, _| body_inputs(writer, &item_metas, &outside),
        &types,
        "step",
    )?;
    let mut node = writer.cx.node("Scan");
    for of in initial.iter().chain(&lists) {
        node = node.input(&of.name);
    }
    let names = node
        .int("num_scan_inputs", lists.len() as i64)
        .graph("body", body)
        .outputs(given_metas.len());
    let mut all = Vec::new();
    for (at, (name, meta)) in names.into_iter().zip(&given_metas).enumerate() {
        let mut tensor = tensor_meta(meta);
        if at >= init.len() {
            tensor.shape.insert(0, length.clone());
        }
        all.push(operand(name, &tensor).map(Val::Tensor)?);
    }
    Ok(match all.len() {
        1 => all.remove(0),
        _ => Val::List(all),
    })
}
