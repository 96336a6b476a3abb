//! Branches, loops and scans, as If, Loop and Scan.
//!
//! Invariant: a graph inside reads what is outside by name; what it carries has one type in all iterations.

use std::sync::Arc;

use fx_nn::control::{Cond, Scan, While};
use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

use super::context::{Cx, Mark, put_all, unranked_info, value_info};
use crate::proto::{GraphProto, ValueInfoProto};
use fx_nn::lowering::{Name, Operand, RegionCall, Val, as_tensor, operand};

/// What writes the graphs inside of branches, loops and scans.
pub(super) trait Graphs {
    /// Where nodes are written.
    fn cx(&mut self) -> &mut Cx;

    /// An input of a graph as a value.
    fn input(&mut self, name: Name, meta: &ValueMeta, tensor: &TensorMeta) -> Result<Val>;

    /// The graph of a body ready to be written; what it claims of symbols is known from then on.
    fn prepared_branch(&mut self, gm: &GraphModule, specs: &[Spec]) -> Result<GraphModule>;

    /// Writes the nodes of a branch or a body; what it returns, flat. What it claims of symbols is its own.
    fn branch(&mut self, gm: &GraphModule, specs: &[Spec], values: Vec<Val>) -> Result<Vec<Val>>;
}

/// What a call of a region was written as.
pub(super) enum Written {
    /// A node with graphs inside.
    Region(Val),
    /// The nodes of the one way that a run can take.
    InPlace(Val),
}

/// Writes a call of a branch, a loop or a scan.
pub(super) fn write<G: Graphs>(
    graphs: &mut G,
    module: &dyn Module,
    call: &RegionCall<'_>,
) -> Result<Written> {
    let any: &dyn std::any::Any = module;
    if let Some(branch) = any.downcast_ref::<Cond>() {
        return cond(graphs, branch, call);
    }
    if let Some(turns) = any.downcast_ref::<While>() {
        return turned(graphs, turns, call);
    }
    if let Some(scan) = any.downcast_ref::<Scan>() {
        return scanned(graphs, scan, call);
    }
    Err(Error::msg(format_args!(
        "a call of `{}`, which cannot be opened: give it a body that can be traced",
        module.type_name()
    )))
}

/// The arguments as values, and what is known of them.
fn unzipped(args: &[(Val, Spec)]) -> (Vec<Val>, Vec<Spec>) {
    args.iter().cloned().unzip()
}

/// What a result is on all ways.
enum Type {
    Tensor(TensorMeta),
    /// A tensor whose number of dims a run decides.
    Unranked(DType),
}

/// What each result of a branch is.
fn types_of(call: &RegionCall<'_>) -> Result<Vec<Type>> {
    let all = call.results().into_iter().map(|meta| match meta {
        ValueMeta::Unranked(Some(dtype)) => Ok(Type::Unranked(*dtype)),
        meta => as_tensor(meta).map(Type::Tensor),
    });
    all.collect()
}

/// A value as a tensor of the type that a result has on all ways.
fn typed<G: Graphs>(graphs: &mut G, val: &Val, tensor: &TensorMeta) -> Result<Operand> {
    let of = match tensor.dtype {
        Some(dtype) => graphs.cx().operand(val, dtype)?,
        None => return Err(Error::msg("the element type of a value is not known")),
    };
    if !tensor.shape.is_empty() || of.shape.is_empty() {
        return Ok(of);
    }
    // A tensor of one element, which is a number on another way.
    let none = graphs.cx().i64s(&[]);
    Ok(Operand {
        name: graphs.cx().op("Reshape", &[&of.name, &none]),
        dtype: of.dtype,
        shape: Vec::new(),
    })
}

/// A side of a branch or the body of a loop, as a graph of the inputs; its results have these types.
fn side<G: Graphs>(
    graphs: &mut G,
    gm: &GraphModule,
    specs: &[Spec],
    inputs: impl FnOnce(&mut G) -> Result<(Vec<Val>, Vec<ValueInfoProto>)>,
    types: &[Type],
    name: &str,
) -> Result<GraphProto> {
    graphs.cx().open();
    let (values, infos) = inputs(graphs)?;
    let mark = graphs.cx().mark.clone();
    let results = graphs.branch(gm, specs, values)?;
    if results.len() != types.len() {
        return Err(Error::msg(format_args!(
            "`{name}` gives {} values where {} were expected",
            results.len(),
            types.len()
        )));
    }
    let mut outputs = Vec::new();
    graphs.cx().mark = Arc::new(Mark {
        node: format!("{}.{name}", mark.node),
        ..Mark::clone(&mark)
    });
    for (result, wanted) in results.iter().zip(types) {
        let of = match wanted {
            Type::Tensor(tensor) => typed(graphs, result, tensor)?,
            Type::Unranked(dtype) => graphs.cx().elements(result, *dtype)?,
        };
        let made = graphs.cx().op("Identity", &[&of.name]);
        outputs.push(match result {
            Val::Unranked(..) => unranked_info(&made, of.dtype)?,
            _ => value_info(&made, &TensorMeta::new(of.shape).dtype(of.dtype))?,
        });
    }
    graphs.cx().mark = mark;
    let (mut graph, marks) = graphs.cx().close(name);
    put_all(marks, &mut graph.node);
    graph.input = infos;
    graph.output = outputs;
    Ok(graph)
}

fn condition<G: Graphs>(graphs: &mut G, val: &Val) -> Result<Name> {
    let truth = TensorMeta::new([0usize; 0]).dtype(DType::Bool);
    Ok(typed(graphs, val, &truth)?.name)
}

/// Results as values of these names.
fn given(call: &RegionCall<'_>, names: Vec<Name>, types: &[Type]) -> Result<Val> {
    let all = names.into_iter().zip(types);
    let all = all.map(|(name, of)| match of {
        Type::Tensor(tensor) => operand(name, tensor).map(Val::Tensor),
        Type::Unranked(dtype) => Ok(Val::Unranked(name, *dtype)),
    });
    Ok(call.given(all.collect::<Result<Vec<Val>>>()?))
}

fn cond<G: Graphs>(graphs: &mut G, branch: &Cond, call: &RegionCall<'_>) -> Result<Written> {
    let (decides, operands) = call.condition()?;
    let (values, specs) = unzipped(operands);
    if let Some(truth) = known_truth(decides) {
        let side = if truth {
            branch.then()
        } else {
            branch.otherwise()
        };
        let mark = graphs.cx().mark.clone();
        let results = graphs.branch(side, &specs, values)?;
        graphs.cx().mark = mark;
        return Ok(Written::InPlace(call.given(results)));
    }
    let decides = condition(graphs, decides)?;
    let types = types_of(call)?;
    let mut written = |gm: &GraphModule, name: &str| {
        let inputs = |_: &mut G| Ok((values.clone(), Vec::new()));
        side(graphs, gm, &specs, inputs, &types, name)
    };
    let then = written(branch.then(), "then")?;
    let otherwise = written(branch.otherwise(), "otherwise")?;
    let node = graphs
        .cx()
        .node("If")
        .input(&decides)
        .graph("then_branch", then)
        .graph("else_branch", otherwise);
    let names = node.outputs(types.len());
    given(call, names, &types).map(Written::Region)
}

fn known_truth(val: &Val) -> Option<bool> {
    match val {
        Val::Bool(truth) => Some(*truth),
        _ => None,
    }
}

/// The inputs of a body: what it carries or takes item by item, new; what it reads from outside, as it is.
fn body_inputs<G: Graphs>(
    graphs: &mut G,
    metas: &[ValueMeta],
    captured: &[(Val, Spec)],
) -> Result<(Vec<Val>, Vec<ValueInfoProto>)> {
    let (mut values, mut infos) = (Vec::new(), Vec::new());
    for meta in metas {
        let tensor = as_tensor(meta)?;
        let name = graphs.cx().fresh("carried");
        infos.push(value_info(&name, &tensor)?);
        values.push(graphs.input(name, meta, &tensor)?);
    }
    values.extend(captured.iter().map(|(val, _)| val.clone()));
    Ok((values, infos))
}

/// What a body gets: what it carries or takes item by item, and what it reads from outside.
fn body_specs(metas: &[ValueMeta], captured: &[(Val, Spec)]) -> Result<Vec<Spec>> {
    let inside = metas.iter().map(Spec::of_meta);
    inside
        .chain(captured.iter().map(|(_, spec)| Ok(spec.clone())))
        .collect()
}

/// What a body carries into its first turn.
fn initial_values<G: Graphs>(
    graphs: &mut G,
    init: &[(Val, Spec)],
    tensors: &[TensorMeta],
) -> Result<Vec<Operand>> {
    let pairs = init.iter().zip(tensors);
    pairs
        .map(|((val, _), tensor)| typed(graphs, val, tensor))
        .collect()
}

fn turned<G: Graphs>(graphs: &mut G, turns: &While, call: &RegionCall<'_>) -> Result<Written> {
    let (decides, rest) = call.condition()?;
    let (init, captured) = rest.split_at(turns.carries().min(rest.len()));
    if known_truth(decides) == Some(false) {
        let values = init.iter().map(|(val, _)| val.clone());
        return Ok(Written::InPlace(call.given(values)));
    }
    let metas: Vec<ValueMeta> = call.results().into_iter().cloned().collect();
    let tensors = call.tensors()?;
    let decides = condition(graphs, decides)?;
    let initial = initial_values(graphs, init, &tensors)?;
    let specs = body_specs(&metas, captured)?;
    let mut types = vec![Type::Tensor(
        TensorMeta::new([0usize; 0]).dtype(DType::Bool),
    )];
    types.extend(tensors.iter().cloned().map(Type::Tensor));
    let body = side(
        graphs,
        turns.body(),
        &specs,
        |graphs| {
            let (values, infos) = body_inputs(graphs, &metas, captured)?;
            let number = |graphs: &mut G, hint: &str, dtype| {
                let name = graphs.cx().fresh(hint);
                value_info(&name, &TensorMeta::new([0usize; 0]).dtype(dtype))
            };
            let mut all = vec![
                number(graphs, "turn", DType::I64)?,
                number(graphs, "goes_on", DType::Bool)?,
            ];
            all.extend(infos);
            Ok((values, all))
        },
        &types,
        "body",
    )?;
    let empty: Option<&Name> = None;
    let mut node = graphs.cx().node("Loop").optional(empty).input(&decides);
    for of in &initial {
        node = node.input(&of.name);
    }
    let names = node.graph("body", body).outputs(tensors.len());
    given(call, names, &types[1..]).map(Written::Region)
}

fn scanned<G: Graphs>(graphs: &mut G, scan: &Scan, call: &RegionCall<'_>) -> Result<Written> {
    let args = call.args();
    let (init, rest) = args.split_at(scan.carries().min(args.len()));
    let (sequences, captured) = rest.split_at(scan.sequences().min(rest.len()));
    let states = call.results().into_iter().take(init.len());
    let mut item_metas: Vec<ValueMeta> = states.cloned().collect();
    let states = item_metas.iter().map(as_tensor);
    let states: Vec<TensorMeta> = states.collect::<Result<_>>()?;
    let initial = initial_values(graphs, init, &states)?;
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
        let item = TensorMeta::new(of.shape[1..].iter().cloned()).dtype(of.dtype);
        item_metas.push(item.into());
        lists.push(of.clone());
    }
    let length = lists
        .first()
        .map(|of| of.shape[0].clone())
        .unwrap_or_else(|| Dim::from(0));
    let specs = body_specs(&item_metas, captured)?;
    // What steps give besides the states, from a step.
    let step = graphs.prepared_branch(scan.step(), &specs)?;
    let output = step.graph().output_node();
    let output = output.and_then(|node| node.meta::<ValueMeta>().cloned());
    let items = match &output {
        Some(ValueMeta::List(items) | ValueMeta::Tuple(items)) => {
            items.get(states.len()..).unwrap_or_default()
        }
        _ => &[],
    };
    let items: Vec<TensorMeta> = items.iter().map(as_tensor).collect::<Result<_>>()?;
    let types = [states.clone(), items.clone()].concat();
    let types: Vec<Type> = types.into_iter().map(Type::Tensor).collect();
    let body = side(
        graphs,
        scan.step(),
        &specs,
        |graphs| body_inputs(graphs, &item_metas, captured),
        &types,
        "step",
    )?;
    let mut node = graphs.cx().node("Scan");
    for of in initial.iter().chain(&lists) {
        node = node.input(&of.name);
    }
    let names = node
        .int("num_scan_inputs", lists.len() as i64)
        .graph("body", body)
        .outputs(types.len());
    let stacks = items.into_iter().map(|mut item| {
        item.shape.insert(0, length.clone());
        item
    });
    let all = names.into_iter().zip(states.into_iter().chain(stacks));
    let all = all.map(|(name, tensor)| operand(name, &tensor).map(Val::Tensor));
    let mut all = all.collect::<Result<Vec<Val>>>()?;
    Ok(Written::Region(match all.len() {
        1 => all.remove(0),
        _ => Val::List(all),
    }))
}
