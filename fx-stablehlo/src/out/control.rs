//! Branches, loops and scans, as `case` and `while`.
//!
//! Invariant: what a loop carries has one type in all iterations.

use fx_nn::control::{Cond, Scan, While};
use fx_nn::ir::ValueMeta;
use fx_nn::lowering::{RegionCall, Val, as_tensor};
use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;

use crate::out::cx::{Array, Cx, Region, Type, type_of};

/// What writes the graphs inside of branches, loops and scans.
pub(crate) trait Graphs {
    /// Where operations are written.
    fn cx(&mut self) -> &mut Cx;

    /// The graph of a branch or of a body ready to be written.
    fn prepared_branch(&self, gm: &GraphModule, specs: &[Spec]) -> Result<GraphModule>;

    /// Writes the nodes of such a graph; the values that it gives. What it claims of symbols is its own.
    fn branch(&mut self, gm: &GraphModule, specs: &[Spec], inputs: Vec<Val>) -> Result<Vec<Val>>;

    /// A region that graphs are written into.
    fn region(
        &mut self,
        arguments: &[Type],
        body: impl FnOnce(&mut Self, &[Array]) -> Result<Vec<Array>>,
    ) -> Result<Region>;
}

/// Writes a call of a branch, a loop or a scan.
pub(crate) fn write<G: Graphs>(
    graphs: &mut G,
    module: &dyn Module,
    call: &RegionCall<'_>,
) -> Result<Val> {
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
fn body<G: Graphs>(
    graphs: &mut G,
    gm: &GraphModule,
    specs: &[Spec],
    inputs: Vec<Val>,
    types: &[Type],
) -> Result<Vec<Array>> {
    let results = graphs.branch(gm, specs, inputs)?;
    arrays(graphs.cx(), &results, types)
}

fn truth(cx: &mut Cx, val: &Val) -> Result<Array> {
    let mut made = arrays(cx, std::slice::from_ref(val), &[(DType::Bool, Vec::new())])?;
    made.pop()
        .ok_or_else(|| Error::msg("a condition is one value"))
}

fn given(call: &RegionCall<'_>, made: Vec<Array>) -> Val {
    call.given(made.into_iter().map(Val::from))
}

fn cond<G: Graphs>(graphs: &mut G, branch: &Cond, call: &RegionCall<'_>) -> Result<Val> {
    let (decides, operands) = call.condition()?;
    let (values, specs) = unzipped(operands);
    if let Val::Bool(truth) = decides {
        let side = if *truth {
            branch.then()
        } else {
            branch.otherwise()
        };
        return Ok(call.given(graphs.branch(side, &specs, values)?));
    }
    let decides = truth(graphs.cx(), decides)?;
    let types = call.results().into_iter().map(type_of_value);
    let types: Vec<Type> = types.collect::<Result<_>>()?;
    let mut regions = Vec::new();
    // The first branch is that of zero.
    for side in [branch.otherwise(), branch.then()] {
        let region = graphs.region(&[], |graphs, _| {
            body(graphs, side, &specs, values.clone(), &types)
        })?;
        regions.push(region);
    }
    let index = graphs.cx().convert(&decides, DType::I32);
    let made = graphs
        .cx()
        .operations("case", &[&index], "", regions, &types);
    Ok(given(call, made))
}

fn turned<G: Graphs>(graphs: &mut G, turns: &While, call: &RegionCall<'_>) -> Result<Val> {
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
    let decides = truth(graphs.cx(), decides)?;
    let mut initial = vec![decides];
    initial.extend(arrays(graphs.cx(), &init, &types[1..])?);
    let (outside, captured) = unzipped(captured);
    let inside = metas.into_iter().map(Spec::of_meta);
    let specs: Vec<Spec> = inside
        .chain(captured.into_iter().map(Ok))
        .collect::<Result<_>>()?;
    let holds = graphs.region(&types, |_, carried| Ok(vec![carried[0].clone()]))?;
    let step = graphs.region(&types, |graphs, carried| {
        let carried = carried[1..].iter().cloned().map(Val::from);
        let inputs = carried.chain(outside).collect();
        body(graphs, turns.body(), &specs, inputs, &types)
    })?;
    let operands: Vec<&Array> = initial.iter().collect();
    let mut made = graphs
        .cx()
        .operations("while", &operands, "", vec![holds, step], &types);
    made.remove(0);
    Ok(given(call, made))
}

fn scanned<G: Graphs>(graphs: &mut G, scan: &Scan, call: &RegionCall<'_>) -> Result<Val> {
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
        let list = graphs.cx().array(of)?;
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
    let ready = graphs.prepared_branch(scan.step(), &specs)?;
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
    let mut initial = vec![graphs.cx().splat(0.0, DType::I64, &[])];
    initial.extend(arrays(graphs.cx(), &init, &states)?);
    for (dtype, shape) in &items {
        let shape = [vec![count], shape.clone()].concat();
        initial.push(graphs.cx().splat(0.0, *dtype, &shape));
    }
    let carried: Vec<Type> = initial
        .iter()
        .map(|of| (of.dtype, of.shape.clone()))
        .collect();
    let holds = graphs.region(&carried, |graphs, carried| {
        Ok(vec![graphs.cx().compare_number(
            "LT",
            &carried[0],
            count as f64,
        )])
    })?;
    let step = graphs.region(&carried, |graphs, carried| {
        let (turn, rest) = (&carried[0], &carried[1..]);
        let (before, stacks) = rest.split_at(states.len());
        let mut inputs: Vec<Val> = before.iter().cloned().map(Val::from).collect();
        for list in &lists {
            inputs.push(graphs.cx().item(list, turn).into());
        }
        inputs.extend(outside);
        let made = body(graphs, scan.step(), &specs, inputs, &types)?;
        let mut next = vec![graphs.cx().with_number("add", turn, 1.0)];
        next.extend(made[..states.len()].iter().cloned());
        for (stack, item) in stacks.iter().zip(&made[states.len()..]) {
            next.push(graphs.cx().with_item(stack, turn, item));
        }
        Ok(next)
    })?;
    let operands: Vec<&Array> = initial.iter().collect();
    let mut made = graphs
        .cx()
        .operations("while", &operands, "", vec![holds, step], &carried);
    made.remove(0);
    Ok(match made.len() {
        1 => made.remove(0).into(),
        _ => Val::List(made.into_iter().map(Val::from).collect()),
    })
}
