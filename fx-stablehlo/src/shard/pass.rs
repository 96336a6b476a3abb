//! `shard`: rules become entries of nodes, and spread.
//!
//! Invariant: an error lists all that is wrong with the rules, and leaves the module as it was.

use std::fmt;

use fx_nn::ir::{Argument, Op, ValueMeta};
use fx_nn::lowering::{Rules, opened, prepare};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::value::NodeId;

use super::factors::shape_of;
use super::mesh::Mesh;
use super::rules::{ShardRow, ShardRules};
use super::sharding::{Sharding, Split};
use super::spread::{Meeting, Shardings, spread};
use crate::out::Cx;

/// Two values of one call that are split in different ways: one of them moves between devices.
pub type Conflict = Meeting;

/// What a sharding did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardReport {
    /// The number of values that rules fixed.
    pub fixed: usize,
    /// The number of values that are split, those that learnt it too.
    pub split: usize,
    /// Calls whose values are split in different ways.
    pub conflicts: Vec<Conflict>,
    /// Functions for which no rule says what they do to dims: shardings end there.
    pub without_rule: Vec<String>,
}

impl fmt::Display for ShardReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} values fixed, {} split", self.fixed, self.split)?;
        for conflict in &self.conflicts {
            let place = conflict
                .location
                .as_ref()
                .map_or(String::new(), |at| format!(" ({at})"));
            let [a, b] = &conflict.values;
            writeln!(f, "%{}{place}: {a} meets {b}", conflict.node)?;
        }
        for function in &self.without_rule {
            writeln!(f, "{function} has no rule: shardings end there")?;
        }
        Ok(())
    }
}

/// Splits a graph module over a mesh. Its layers are opened and its functions written by the core set first; its shapes
/// must have been inferred. Parameters, inputs and outputs that rules name are fixed, other values learn from them.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// use fx_stablehlo::mesh;
/// use fx_stablehlo::shard::{shard, ShardRules, Sharding};
///
/// let model = nn::Sequential::new().push(nn::Linear::new(8, 16)?).push(nn::ReLU::new()).push(nn::Linear::new(16, 4)?);
/// let mut gm = symbolic_trace(&model)?;
/// gm.infer_shapes(&[spec![4, 8; F32]])?;
/// let rules = ShardRules::new()
///     .parameter("0.weight", "model, _")?
///     .parameter("2.weight", "_, model")?
///     .and(ShardRules::data_parallel("data"));
/// let report = shard(&mut gm, &mesh!["data" = 2, "model" = 4]?, &rules)?;
/// assert_eq!(report.fixed, 3);
/// let relu = gm.graph().nodes().find(|node| node.target().to_string().ends_with("relu"));
/// let sharding = relu.and_then(|node| node.meta::<Sharding>()).map(|of| of.to_string());
/// assert_eq!(sharding.as_deref(), Some("[data, model]"));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error that lists all axes that the mesh does not have or that do not divide a size, rules of another rank,
/// rules that match nothing, and calls that the core set does not have; and if shapes were not inferred.
pub fn shard(gm: &mut GraphModule, mesh: &Mesh, rules: &ShardRules) -> Result<ShardReport> {
    let mut specs = Vec::new();
    for node in gm.graph().placeholders() {
        let Some(meta) = node.meta::<ValueMeta>() else {
            let problem = Error::msg("its shape is not known: call `gm.infer_shapes` first");
            return Err(node.blame("sharding", problem));
        };
        specs.push(spec_of(meta)?);
    }
    let mut ready = opened(gm, |_| false)?;
    prepare(&mut ready, &specs, &Rules::<Cx>::default(), "StableHLO")?;
    let mut shardings = fixed(&ready, mesh, rules)?;
    let count = shardings.len();
    let (conflicts, without) = spread(&ready, mesh, &mut shardings)?;
    let mut split = 0;
    for (id, sharding) in &shardings {
        if sharding.parts() > 1 {
            split += 1;
        }
        ready.graph_mut().node_mut(*id)?.set_meta(sharding.clone());
    }
    *gm = ready;
    Ok(ShardReport {
        fixed: count,
        split,
        conflicts,
        without_rule: without.into_iter().collect(),
    })
}

fn spec_of(meta: &ValueMeta) -> Result<Spec> {
    Ok(match meta {
        ValueMeta::Single(of) => {
            Spec::tensor(of.shape.iter().cloned(), of.dtype.unwrap_or(DType::F32))
        }
        ValueMeta::Size(dim) => Spec::int(dim),
        ValueMeta::Plain(text) if text == "true" || text == "false" => Spec::of(text == "true"),
        ValueMeta::Plain(text) if text == "None" => Spec::of(Value::None),
        ValueMeta::Plain(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(int), _) => Spec::of(int),
            (_, Ok(number)) => Spec::of(number),
            _ if text.contains("truth") => Spec::bool(),
            _ => Spec::float(),
        },
        other => {
            return Err(Error::msg(format_args!(
                "an input is {other}, and not one value"
            )));
        }
    })
}

/// The shardings that rules fix.
fn fixed(gm: &GraphModule, mesh: &Mesh, rules: &ShardRules) -> Result<Shardings> {
    let mut shardings = Shardings::default();
    let mut problems = Vec::new();
    let mut parameters: Vec<(String, NodeId)> = Vec::new();
    let mut inputs = Vec::new();
    let mut outputs = Vec::new();
    for node in gm.graph().nodes() {
        match node.op() {
            Op::GetAttr(path) => parameters.push((path.to_string(), node.id())),
            Op::Placeholder(_) => inputs.push((node.target().to_string(), node.id())),
            Op::Output => {
                let mut flat = Vec::new();
                node.args()
                    .first()
                    .unwrap_or(&Argument::None)
                    .for_each_node(&mut |id| flat.push(id));
                outputs.extend(
                    flat.into_iter()
                        .enumerate()
                        .map(|(at, id)| (at.to_string(), id)),
                );
            }
            _ => {}
        }
    }
    for (kind, rows, values) in [
        ("parameter", &rules.parameters, &parameters),
        ("input", &rules.inputs, &inputs),
        ("output", &rules.outputs, &outputs),
    ] {
        let mut used = vec![false; rows.len()];
        for (name, id) in values {
            let Some(at) = rows.iter().position(|row| row.pattern.matches(name)) else {
                continue;
            };
            used[at] = true;
            let Some(shape) = shape_of(gm.graph().node(*id)?) else {
                continue;
            };
            match sharding_of(mesh, &rows[at], &shape) {
                Ok(Some(sharding)) => {
                    let other = shardings.insert(*id, sharding.clone());
                    if other.is_some_and(|other| other != sharding) {
                        problems.push(format!(
                            "{kind} `{name}`: its value has another sharding already"
                        ));
                    }
                }
                Ok(None) => {}
                Err(error) => problems.push(format!(
                    "{kind} `{name}` by the rule `{}`: {error}",
                    rows[at].text
                )),
            }
        }
        for (row, used) in rows.iter().zip(used) {
            if !used && !row.may_miss {
                // An earlier rule may have taken what it matches.
                let taken = values.iter().any(|(name, _)| row.pattern.matches(name));
                let why = if taken {
                    "matches only what earlier rules match"
                } else {
                    "matches nothing"
                };
                problems.push(format!("the rule `{}` for {kind}s {why}", row.text));
            }
        }
    }
    match problems.is_empty() {
        true => Ok(shardings),
        false => Err(Error::msg(format_args!(
            "{} problem{} with the rules of sharding:\n  {}",
            problems.len(),
            if problems.len() == 1 { "" } else { "s" },
            problems.join("\n  ")
        ))),
    }
}

/// The sharding of a rule for a value of these sizes; `None` where a preset does not fit.
fn sharding_of(mesh: &Mesh, row: &ShardRow, shape: &[i64]) -> Result<Option<Sharding>> {
    if row.dims.len() > shape.len() || (row.dims.len() < shape.len() && !row.may_miss) {
        if row.may_miss {
            return Ok(None);
        }
        return Err(Error::msg(format_args!(
            "it names {} dims of a value of shape {shape:?}",
            row.dims.len()
        )));
    }
    let mut dims = Vec::new();
    for (dim, size) in shape.iter().enumerate() {
        let axes = row.dims.get(dim).cloned().unwrap_or_default();
        let parts = mesh.parts(&axes).max(1) as i64;
        if size % parts != 0 {
            return Err(Error::msg(format_args!(
                "{parts} parts of the axes {} do not divide the size {size} of dim {dim}",
                axes.join("+")
            )));
        }
        dims.push(Split { axes, open: false });
    }
    Sharding::new(mesh, dims).map(Some)
}
