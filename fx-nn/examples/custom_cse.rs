//! Common sub-expressions of an operation that the built-in pass must leave alone: a pass written with public names only.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use fx_nn::ir::{Argument, Function};
use fx_nn::passes::{Cse, Pass};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

thread_local! {
    static LOOKUPS: Cell<usize> = const { Cell::new(0) };
}

/// Reads a table that others may change, so it is declared impure, and [`Cse`] keeps every call.
#[wrap(impure)]
fn lookup(
    x: &Tensor,
    #[kw]
    #[default(1.0)]
    scale: f64,
) -> Result<Tensor> {
    LOOKUPS.set(LOOKUPS.get() + 1);
    x * scale
}

/// Merges equal calls of one function: its author knows that the table stays as it is during a run.
struct MergeCalls(Function);

impl Pass for MergeCalls {
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        // The calls that stay, by a hash of their target and arguments.
        let mut known: HashMap<u64, Vec<NodeId>> = HashMap::new();
        let mut merged: HashMap<NodeId, NodeId> = HashMap::new();
        for node in gm.graph() {
            let call = gm.call(node)?;
            if call.function() != Some(self.0) {
                continue;
            }
            // Arguments that were merged away are replaced by the calls that stay.
            let now = |id: NodeId| *merged.get(&id).unwrap_or(&id);
            let mut hasher = DefaultHasher::new();
            call.hash_same(&mut hasher, &mut |id, hasher| now(id).hash(hasher));
            let alike = known.entry(hasher.finish()).or_default();
            let mut first = None;
            for id in alike.iter() {
                if gm.call(*id)?.is_same(&call, &|a, b| now(a) == now(b)) {
                    first = Some(*id);
                }
            }
            match first {
                Some(first) => drop(merged.insert(node.id(), first)),
                None => alike.push(node.id()),
            }
        }
        let gone: Vec<NodeId> = gm.graph().nodes().map(|node| node.id()).collect();
        let gone: Vec<NodeId> = gone
            .into_iter()
            .filter(|id| merged.contains_key(id))
            .collect();
        let mut edit = gm.graph_mut();
        for id in &gone {
            edit.substitute(*id, &Argument::Node(merged[id]))?;
        }
        edit.erase_unused(&gone)?;
        Ok(!gone.is_empty())
    }
}

#[trace]
fn forward(x: &Tensor) -> Result<Tensor> {
    let once = lookup(x, 1.0)?;
    let again = lookup(x, 1.0)?;
    // Equal only once the calls inside are merged.
    let deep = (lookup(&once, 2.0)? + lookup(&again, 2.0)?)?;
    deep + lookup(x, 3.0)?
}

fn main() -> Result<()> {
    let mut gm = symbolic_trace(traced!(forward))?;
    let x = Tensor::from_vec(vec![1.0f32, 2.0], 2)?;
    let expected: Tensor = gm.forward(&x)?;
    println!("calls: {}", LOOKUPS.replace(0));

    println!(
        "the built-in pass changes it: {}",
        gm.apply(&Cse::new())?.changed
    );
    let record = gm.apply(&MergeCalls(function!(lookup)))?;
    println!("erased: {}", record.erased.join(", "));
    println!("{}", gm.graph());

    let found: Tensor = gm.forward(&x)?;
    println!("calls: {}", LOOKUPS.get());
    println!("numbers: {}", fx_nn::allclose(&found, &expected, 0.0, 0.0)?);
    Ok(())
}
