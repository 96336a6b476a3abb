//! `shard`: rules become entries of parameters, inputs and outputs, and those entries of all other values.

use fx_nn::ir::{NodeRef, Op, ValueMeta};
use fx_nn::module::PathPattern;
use fx_nn::{Error, GraphModule, Result};

use super::flow::Flow;
use super::mesh::Mesh;
use super::report::ShardReport;
use super::rules::ShardRules;
use super::sharding::{DimSharding, Sharding};

/// The nodes that rules can be for, each with its name: the path of a parameter, the name of an input, `output`.
fn targets<'g>(gm: &'g GraphModule) -> Result<Vec<(String, NodeRef<'g>)>> {
    let graph = gm.graph();
    let mut found = Vec::new();
    for node in graph.nodes() {
        match node.op() {
            Op::GetAttr(path) => found.push((path.to_string(), node)),
            Op::Placeholder(name) => found.push((name.to_string(), node)),
            Op::Output => {
                let mut returned = Vec::new();
                for argument in node.args() {
                    argument.for_each_node(&mut |id| returned.push(id));
                }
                let single = returned.len() == 1;
                for (at, id) in returned.into_iter().enumerate() {
                    let name = match single {
                        true => "output".to_string(),
                        false => format!("output.{at}"),
                    };
                    found.push((name, graph.node(id)?));
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

fn shown(node: NodeRef<'_>) -> String {
    let at = node.location().map(|place| format!(" ({place})"));
    format!("%{}{}", node.name(), at.unwrap_or_default())
}

/// That there are no layers, and that every value is known.
fn require_ready(gm: &GraphModule) -> Result<()> {
    let mut layers = Vec::new();
    let mut unknown = Vec::new();
    for node in gm.graph().nodes() {
        match node.op() {
            Op::CallModule(_) => layers.push(format!("{} = {}", shown(node), node.target())),
            Op::Output => {}
            _ if node.meta::<ValueMeta>().is_none() => unknown.push(shown(node)),
            _ => {}
        }
    }
    if !layers.is_empty() {
        return Err(Error::msg(format_args!(
            "sharding works on functions, and the graph calls layers: {}. Call `gm.opened()` first",
            layers.join(", ")
        )));
    }
    if !unknown.is_empty() {
        return Err(Error::msg(format_args!(
            "the shapes of {} are not known: call `infer_shapes` first",
            unknown.join(", ")
        )));
    }
    Ok(())
}

/// Sets the shardings of all values of a graph module: those of parameters, inputs and outputs by rules, all others by
/// what the calls between them do with their dims. Each node whose value is tensors gets a [`Sharding`]
/// entry, and the graph module one of the [`Mesh`].
///
/// The module has no layers ([`opened`](GraphModule::opened)), and its shapes are inferred
/// ([`infer_shapes`](GraphModule::infer_shapes)) with numbers. What rules fix is kept. Where two calls want one value
/// in two ways, it is moved, and the report says so.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// use fx_stablehlo::shard::{Sharding, mesh, shard, shard_rules};
/// let model = nn::Sequential::new().push(nn::Linear::new(8, 16)?).push(nn::Linear::new(16, 8)?);
/// let mut gm = symbolic_trace(&model)?.opened()?;
/// gm.infer_shapes(&[spec![4, 8; F32]])?;
/// let mesh = mesh!["data" = 2, "model" = 4]?;
/// let report = shard(&mut gm, &mesh, &shard_rules! {
///     "0.weight" => ["model", _],
///     "1.weight" => [_, "model"],
///     "x" => ["data", _],
/// })?;
/// assert!(report.reshards.is_empty());
/// let between = gm.graph().find_name("linear").and_then(|node| node.meta::<Sharding>());
/// assert_eq!(between.map(Sharding::to_string).as_deref(), Some("[data, model]"));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are layers or unknown shapes; or one that lists everything that is wrong with the rules:
/// patterns that are none or match nothing, rules that contradict each other, other numbers of dims, axes that the mesh
/// does not have, that are used twice, or that do not divide a size.
pub fn shard(gm: &mut GraphModule, mesh: &Mesh, rules: &ShardRules) -> Result<ShardReport> {
    require_ready(gm)?;
    let mut flow = Flow::new(gm, mesh)?;
    let fixed = fix(gm, &mut flow, rules)?;
    flow.propagate(gm)?;
    let values = flow.values.iter();
    let entries = values.map(|value| value.as_ref().map(|value| value.sharding(mesh)));
    let entries: Vec<Option<Sharding>> = entries.collect();
    flow.forget_single();
    let report = flow.report(gm, fixed)?;
    gm.edit(|gm| {
        gm.set_meta(mesh.clone());
        let mut graph = gm.graph_mut();
        for (id, entry) in flow.nodes.iter().zip(entries) {
            let mut node = graph.node_mut(*id)?;
            match entry {
                Some(entry) => node.set_meta(entry),
                None => {
                    node.remove_meta::<Sharding>();
                }
            }
        }
        Ok(())
    })?;
    Ok(report)
}

/// Sets what rules say. Returns for how many nodes they are.
fn fix(gm: &GraphModule, flow: &mut Flow<'_>, rules: &ShardRules) -> Result<usize> {
    let targets = targets(gm)?;
    let mut problems: Vec<String> = Vec::new();
    // The rule that each node has so far: the name it was found by, and the rule's place.
    let mut by_rule: Vec<Option<(&str, usize)>> = vec![None; flow.nodes.len()];
    let mut fixed = 0;
    for (number, rule) in rules.rules.iter().enumerate() {
        let pattern = match PathPattern::new(&rule.pattern) {
            Ok(pattern) => pattern,
            Err(error) => {
                problems.push(error.to_string());
                continue;
            }
        };
        let mut is_used = false;
        for (name, node) in targets.iter().filter(|(name, _)| pattern.matches(name)) {
            is_used = true;
            let at = flow.places[&node.id()];
            if let Some((other, of)) = by_rule[at] {
                let other_rule = &rules.rules[of];
                if other_rule.dims != rule.dims {
                    problems.push(format!(
                        "`{}` and `{}` contradict each other about `{name}`{}: {} and {}",
                        other_rule.pattern,
                        rule.pattern,
                        if other == name {
                            String::new()
                        } else {
                            format!(", which is `{other}`")
                        },
                        Sharding::new(other_rule.dims.clone()),
                        Sharding::new(rule.dims.clone()),
                    ));
                }
                continue;
            }
            by_rule[at] = Some((name, number));
            let taken = match &mut flow.values[at] {
                Some(value) => value.take(flow.mesh, &rule.dims),
                None => Err(Error::msg("it is no tensor whose sizes are numbers")),
            };
            match taken {
                Ok(()) => fixed += 1,
                Err(error) => problems.push(format!(
                    "`{}` for `{name}`, {}: {error}",
                    rule.pattern,
                    shown(*node)
                )),
            }
        }
        if !is_used && !rule.is_optional {
            problems.push(format!(
                "`{}` matches no parameter, input or output",
                rule.pattern
            ));
        }
    }
    if let Some(axis) = &rules.batch {
        for (name, node) in &targets {
            let at = flow.places[&node.id()];
            let is_input = matches!(node.op(), Op::Placeholder(_)) && by_rule[at].is_none();
            let Some(value) = flow.values[at].as_mut().filter(|_| is_input) else {
                continue;
            };
            if value.shape.is_empty() || name.starts_with("output") {
                continue;
            }
            let mut dims = vec![DimSharding::open(); value.shape.len()];
            dims[0] = DimSharding::from(&**axis);
            match value.take(flow.mesh, &dims) {
                Ok(()) => fixed += 1,
                Err(error) => problems.push(format!("the input `{name}`: {error}")),
            }
        }
    }
    if fixed == 0 && problems.is_empty() {
        problems.push("no rule matches a parameter, an input or an output".to_string());
    }
    match problems.len() {
        0 => Ok(fixed),
        _ => Err(Error::msg(format_args!(
            "the rules do not fit the graph:\n  {}",
            problems.join("\n  ")
        ))),
    }
}
