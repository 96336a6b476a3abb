//! `explain_sharding`: what a sharding costs: the memory of a device, and the collectives that follow, by estimate.

use std::collections::BTreeMap;
use std::fmt;

use fx_nn::ir::Op;
use fx_nn::passes::memory_plan;
use fx_nn::value::NodeId;
use fx_nn::{Error, GraphModule, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::flow::Flow;
use super::mesh::Mesh;
use super::partition::reference;
use super::plan::{CollectiveKind, part};

/// Bytes on one device alone, and on each device of a mesh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bytes {
    /// Without sharding.
    pub whole: usize,
    /// On each device.
    pub device: usize,
}

/// Collectives of one kind along the same axes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectiveSum {
    /// What they do.
    pub kind: CollectiveKind,
    /// The axes along which devices take part.
    pub axes: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// Their bytes on a device, see [`Collective::bytes`](super::Collective::bytes).
    pub bytes: usize,
}

/// What a sharding costs, see [`explain_sharding`]; `{}` shows a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The mesh.
    pub mesh: Mesh,
    /// Parameters, buffers and constants.
    pub parameters: Bytes,
    /// The most that inputs and results take at once.
    pub activations: Bytes,
    /// The collectives, by kind and axes.
    pub collectives: Vec<CollectiveSum>,
}

/// Estimates what the shardings of a graph module cost on each device: the memory of parameters, the peak of what
/// [`memory_plan`](fx_nn::passes::memory_plan) counts, and the collectives that [`reference`](reference()) writes.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// use fx_stablehlo::shard::{explain_sharding, mesh, shard, shard_rules};
/// let model = nn::Sequential::new().push(nn::Linear::new(8, 16)?).push(nn::Linear::new(16, 8)?);
/// let mut gm = symbolic_trace(&model)?.opened()?;
/// gm.infer_shapes(&[spec![4, 8; F32]])?;
/// let mesh = mesh!["model" = 4]?;
/// shard(&mut gm, &mesh, &shard_rules! { "0.weight" => ["model", _], "1.weight" => [_, "model"] })?;
/// let explanation = explain_sharding(&gm, &mesh)?;
/// assert_eq!((explanation.parameters.whole, explanation.parameters.device), (1120, 304));
/// assert_eq!((explanation.collectives.len(), explanation.collectives[0].bytes), (1, 128));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`reference`](reference()), and if the shape of a node is not known.
pub fn explain_sharding(gm: &GraphModule, mesh: &Mesh) -> Result<Explanation> {
    let program = reference(gm, mesh)?;
    let flow = Flow::read(gm, mesh)?;
    let mut sums: BTreeMap<(CollectiveKind, Vec<String>), (usize, usize)> = BTreeMap::new();
    for collective in program.collectives() {
        let key = (collective.kind, collective.axes.clone());
        let sum = sums.entry(key).or_default();
        sum.0 += 1;
        sum.1 += collective.bytes;
    }
    let sums = sums.into_iter();
    let collectives = sums.map(|((kind, axes), (count, bytes))| CollectiveSum {
        kind,
        axes,
        count,
        bytes,
    });
    Ok(Explanation {
        mesh: mesh.clone(),
        parameters: parameters(gm, &flow)?,
        activations: activations(gm, &flow)?,
        collectives: collectives.collect(),
    })
}

/// Each stored tensor once.
fn parameters(gm: &GraphModule, flow: &Flow<'_>) -> Result<Bytes> {
    let mut seen = FxHashSet::default();
    let mut sum = Bytes::default();
    for (at, id) in flow.nodes.iter().enumerate() {
        let node = gm.graph().node(*id)?;
        if let (Op::GetAttr(path), Some(value)) = (node.op(), &flow.values[at])
            && seen.insert(path.clone())
        {
            sum.whole += value.bytes;
            sum.device += part(flow.mesh, value.bytes, &value.layout);
        }
    }
    Ok(sum)
}

/// The peak of results, each from its node to its last user.
fn activations(gm: &GraphModule, flow: &Flow<'_>) -> Result<Bytes> {
    let plan = memory_plan(gm)?;
    let mut last: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (at, id) in flow.nodes.iter().enumerate() {
        last.insert(*id, at);
        for input in gm.graph().node(*id)?.all_input_nodes() {
            last.insert(input.id(), at);
        }
    }
    let mut dropped: Vec<Vec<usize>> = vec![Vec::new(); flow.nodes.len()];
    for (id, at) in last {
        dropped[at].push(flow.places[&id]);
    }
    let known = |at: usize| -> Result<Bytes> {
        let planned = plan.nodes.get(at);
        let whole = planned.and_then(|planned| planned.bytes.as_known());
        let whole = whole.ok_or_else(|| Error::msg("the sizes of a value are no numbers"))?;
        let device = match &flow.values[at] {
            Some(value) => part(flow.mesh, whole, &value.layout),
            None => whole,
        };
        Ok(Bytes { whole, device })
    };
    let (mut live, mut peak) = (Bytes::default(), Bytes::default());
    for (at, gone) in dropped.iter().enumerate() {
        let own = known(at)?;
        live.whole += own.whole;
        live.device += own.device;
        peak.whole = peak.whole.max(live.whole);
        peak.device = peak.device.max(live.device);
        for gone in gone {
            let gone = known(*gone)?;
            live.whole -= gone.whole;
            live.device -= gone.device;
        }
    }
    Ok(peak)
}

/// Bytes with a unit, in four digits.
fn shown(bytes: usize) -> String {
    let mut number = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].iter();
    let mut unit = units.next().unwrap_or(&"B");
    while number >= 1024.0 {
        let Some(next) = units.next() else { break };
        number /= 1024.0;
        unit = next;
    }
    match *unit {
        "B" => format!("{bytes} B"),
        unit => format!("{number:.1} {unit}"),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} devices", self.mesh, self.mesh.devices())?;
        writeln!(
            f,
            "{:<24}{:>12}{:>14}",
            "memory", "one device", "each device"
        )?;
        for (name, bytes) in [
            ("parameters", self.parameters),
            ("activations (peak)", self.activations),
        ] {
            let (whole, device) = (shown(bytes.whole), shown(bytes.device));
            writeln!(f, "{name:<24}{whole:>12}{device:>14}")?;
        }
        write!(f, "{:<24}{:>12}{:>14}", "collectives", "count", "bytes")?;
        if self.collectives.is_empty() {
            write!(f, "\n{:<24}{:>12}", "none", 0)?;
        }
        for sum in &self.collectives {
            let name = format!("{} [{}]", sum.kind, sum.axes.join(", "));
            write!(f, "\n{name:<24}{:>12}{:>14}", sum.count, shown(sum.bytes))?;
        }
        Ok(())
    }
}
