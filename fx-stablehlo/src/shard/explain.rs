//! `explain_sharding`: bytes per device and the collectives that follow, by estimate.
//!
//! Invariant: it reads the entries of nodes, and changes nothing.

use std::fmt;

use fx_nn::ir::{Op, ValueMeta};
use fx_nn::prelude::*;
use indexmap::IndexMap;

use super::sharding::Sharding;
use super::spread::factors_of;

/// What a sharding costs, by estimate.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Explanation {
    /// The bytes of all parameters.
    pub parameter_bytes: u64,
    /// The bytes of parameters on each device.
    pub parameter_bytes_per_device: u64,
    /// The bytes of values on each device while most are alive.
    pub activation_bytes_per_device: u64,
    /// Collectives by kind: how many, and the bytes of their results on each device.
    pub collectives: IndexMap<&'static str, (usize, u64)>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mega = |bytes: u64| bytes as f64 / 1e6;
        writeln!(
            f,
            "parameters: {:.2} MB, {:.2} MB per device",
            mega(self.parameter_bytes),
            mega(self.parameter_bytes_per_device)
        )?;
        writeln!(
            f,
            "activations: {:.2} MB per device",
            mega(self.activation_bytes_per_device)
        )?;
        for (kind, (count, bytes)) in &self.collectives {
            writeln!(f, "{kind}: {count}, {:.2} MB", mega(*bytes))?;
        }
        Ok(())
    }
}

/// The bytes of a value on each device.
fn bytes_of(node: fx_nn::ir::NodeRef<'_>) -> u64 {
    let Some(meta) = node.meta::<ValueMeta>() else {
        return 0;
    };
    let mut all = 0;
    let mut left = vec![meta];
    while let Some(meta) = left.pop() {
        match meta {
            ValueMeta::Sequence(items) => left.extend(items),
            meta => {
                if let Some(tensor) = meta.tensor()
                    && let Some(shape) = tensor.known_shape()
                {
                    let count: usize = shape.iter().product();
                    all += (count * tensor.dtype.unwrap_or(DType::F32).size_in_bytes()) as u64;
                }
            }
        }
    }
    let parts = node.meta::<Sharding>().map_or(1, Sharding::parts);
    all / parts.max(1) as u64
}

/// Estimates what the shardings of a graph module cost: bytes per device, and the collectives that follow.
///
/// A sum over a dim that is split is an `all_reduce`; a value that is split where a call needs it whole is an
/// `all_gather`.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// use fx_stablehlo::mesh;
/// use fx_stablehlo::shard::{explain_sharding, shard, ShardRules};
/// let model = nn::Sequential::new().push(nn::Linear::new(8, 16)?).push(nn::ReLU::new()).push(nn::Linear::new(16, 4)?);
/// let mut gm = symbolic_trace(&model)?;
/// gm.infer_shapes(&[spec![4, 8; F32]])?;
/// let rules = ShardRules::new().parameter("0.weight", "model, _")?.parameter("2.weight", "_, model")?;
/// shard(&mut gm, &mesh!["model" = 4]?, &rules)?;
/// let costs = explain_sharding(&gm)?;
/// assert_eq!(costs.collectives["all_reduce"].0, 1);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if a rule of a function fails.
pub fn explain_sharding(gm: &GraphModule) -> Result<Explanation> {
    let mut costs = Explanation::default();
    let graph = gm.graph();
    // Values are alive from their call to their last user.
    let places: IndexMap<_, usize> = graph
        .nodes()
        .enumerate()
        .map(|(at, node)| (node.id(), at))
        .collect();
    let mut ends: Vec<u64> = vec![0; places.len() + 1];
    let (mut alive, mut most) = (0u64, 0u64);
    for (at, node) in graph.nodes().enumerate() {
        let bytes = bytes_of(node);
        if let Op::GetAttr(_) = node.op() {
            let parts = node.meta::<Sharding>().map_or(1, Sharding::parts) as u64;
            costs.parameter_bytes_per_device += bytes;
            costs.parameter_bytes += bytes * parts;
        } else {
            alive += bytes;
            most = most.max(alive);
            let last = node.users().filter_map(|user| places.get(&user.id())).max();
            ends[*last.unwrap_or(&at)] += bytes;
        }
        alive -= ends[at].min(alive);
        let mut add = |kind: &'static str, bytes: u64| {
            let entry = costs.collectives.entry(kind).or_default();
            *entry = (entry.0 + 1, entry.1 + bytes);
        };
        let Some(factors) = factors_of(gm, node, gm.attributes())? else {
            continue;
        };
        // A sum over a split dim.
        let mut is_summed = false;
        for (id, dims) in &factors.operands {
            let operand = graph.node(*id)?;
            let Some(sharding) = operand.meta::<Sharding>() else {
                continue;
            };
            let result = node.meta::<Sharding>();
            let mut gathers = false;
            for (dim, factor) in dims.iter().enumerate() {
                let axes = &sharding.dims()[dim].axes;
                if axes.is_empty() {
                    continue;
                }
                match factor {
                    Some(factor) if !factors.result.contains(&Some(*factor)) => is_summed = true,
                    Some(factor) => {
                        let at = factors.result.iter().position(|of| of == &Some(*factor));
                        let same = at
                            .zip(result)
                            .is_some_and(|(at, of)| of.dims()[at].axes == *axes);
                        gathers |= !same;
                    }
                    None => gathers = true,
                }
            }
            if gathers {
                add("all_gather", bytes_of(operand) * sharding.parts() as u64);
            }
        }
        if is_summed {
            add("all_reduce", bytes);
        }
    }
    costs.activation_bytes_per_device = most;
    Ok(costs)
}
