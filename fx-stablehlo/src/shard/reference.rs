//! `reference`: the program split by fx itself, and run by a thread for each device.
//!
//! Invariant: a run ends, whatever one of its devices does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;

use super::collectives::{Device, Exchange, as_device};
use super::mesh::Mesh;
use super::partition::{Counts, partition};
use super::sharding::Sharding;

/// A program over the devices of a mesh, which are threads: what a sharding means, without XLA.
#[derive(Debug)]
pub struct Partitioned {
    mesh: Mesh,
    local: GraphModule,
    counts: Counts,
}

/// Splits a graph module that [`shard`](super::shard) has sharded: each device runs the same calls on its parts, with
/// collectives between them.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// use fx_stablehlo::mesh;
/// use fx_stablehlo::shard::{reference, shard, ShardRules};
/// let model = nn::Sequential::new().push(nn::Linear::new(8, 16)?).push(nn::ReLU::new()).push(nn::Linear::new(16, 4)?);
/// let mut gm = symbolic_trace(&model)?;
/// let x = Tensor::randn((4, 8))?;
/// let expected: Tensor = gm.forward(&x)?;
/// gm.infer_shapes(&[spec![4, 8; F32]])?;
/// let rules = ShardRules::new().parameter("0.weight", "model, _")?.parameter("2.weight", "_, model")?;
/// shard(&mut gm, &mesh!["model" = 4]?, &rules)?;
/// let program = reference(&gm)?;
/// assert_eq!(program.collectives(), [("all_reduce", 1)]);
/// let found = program.run(&[x])?;
/// assert!(fx_nn::allclose(&found[0], &expected, 1e-5, 1e-6)?.close);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the graph module has no shardings, or has branches or loops.
pub fn reference(gm: &GraphModule) -> Result<Partitioned> {
    let mesh = gm.graph().nodes().find_map(|node| node.meta::<Sharding>());
    let mesh = mesh.map(|sharding| sharding.mesh().clone());
    let mesh = mesh.ok_or_else(|| Error::msg("no node has a sharding: call `shard` first"))?;
    let (graph, counts) = partition(gm, &mesh)?;
    let local = GraphModule::new(gm.attributes().clone(), graph, gm.class_name())?;
    Ok(Partitioned {
        mesh,
        local,
        counts,
    })
}

impl Partitioned {
    /// The collectives that a run makes, by name.
    pub fn collectives(&self) -> Vec<(&'static str, usize)> {
        self.counts
            .iter()
            .map(|(name, count)| (*name, *count))
            .collect()
    }

    /// The graph of each device.
    pub fn graph_module(&self) -> &GraphModule {
        &self.local
    }

    /// Runs the program on whole inputs, with a thread for each device; the whole results.
    ///
    /// # Errors
    /// Returns the error of a device, or that one of them panicked.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let exchange = Arc::new(Exchange::new(self.mesh.devices()));
        let results = std::thread::scope(|scope| {
            let devices: Vec<_> = (0..self.mesh.devices())
                .map(|index| {
                    let device = Device {
                        mesh: self.mesh.clone(),
                        index,
                        exchange: exchange.clone(),
                    };
                    scope.spawn(|| self.on_device(device, inputs))
                })
                .collect();
            let joined = devices.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined.collect::<Vec<_>>()
        });
        let mut first = None;
        let mut problem = None;
        for result in results {
            match result.unwrap_or_else(|_| Err(Error::msg("a device panicked"))) {
                Ok(value) => {
                    first.get_or_insert(value);
                }
                // What the others say is that this one failed.
                Err(error)
                    if problem.is_none()
                        || !error.to_string().contains("another device failed") =>
                {
                    problem = Some(error);
                }
                Err(_) => {}
            }
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        let mut all = Vec::new();
        tensors(&first.unwrap_or(Value::None), &mut all);
        Ok(all)
    }

    fn on_device(&self, device: Device, inputs: &[Tensor]) -> Result<Value> {
        let exchange = device.exchange.clone();
        let args = CallArgs {
            args: inputs.iter().cloned().map(Value::object).collect(),
            kwargs: Vec::new(),
        };
        let run = || as_device(device, || self.local.forward::<Value>(args));
        let result = catch_unwind(AssertUnwindSafe(run));
        let result = result.unwrap_or_else(|_| Err(Error::msg("a device panicked")));
        if result.is_err() {
            exchange.fail();
        }
        result
    }
}

/// The tensors of a value, in order.
fn tensors(value: &Value, all: &mut Vec<Tensor>) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::List(items) | Value::Tuple(items) => left.extend(items.iter().rev()),
            Value::Dict(items) => left.extend(items.values().rev()),
            value => all.extend(value.downcast_ref::<Tensor>().cloned()),
        }
    }
}
