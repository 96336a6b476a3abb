//! Passes in a row, checked as they run: what each did, which one broke the numbers, and where a node comes from.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use fx_nn::ir::Op;
use fx_nn::models::resnet::resnet18;
use fx_nn::operator;
use fx_nn::passes::{
    Canonicalize, Cse, DeadCode, FoldConstants, FuseBatchNorm, Pass, PassManager, RemoveDropout,
    RemoveIdentity,
};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

/// A pass that is wrong on purpose: the skip connections of the last blocks are left out.
struct DropSkips;

impl Pass for DropSkips {
    fn requires(&self, gm: &GraphModule) -> Result<()> {
        match gm
            .graph()
            .find_nodes(&Op::CallFunction(operator::add))
            .len()
        {
            0..2 => Err(Error::msg(
                "there are no two skip connections; trace a residual net",
            )),
            _ => Ok(()),
        }
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let sums = gm.graph().find_nodes(&Op::CallFunction(operator::add));
        let last: Vec<NodeId> = sums.iter().rev().take(2).map(|node| node.id()).collect();
        let mut graph = gm.graph_mut();
        for sum in last {
            let branch = graph.node(sum)?.args()[0].as_node();
            let branch = branch.ok_or_else(|| Error::msg("a skip connection adds two nodes"))?;
            graph.node_mut(sum)?.replace_all_uses_with(branch)?;
            graph.erase_node(sum)?;
        }
        Ok(true)
    }
}

fn pipeline() -> PassManager {
    PassManager::new()
        .pass(RemoveDropout)
        .pass(RemoveIdentity)
        .pass(FuseBatchNorm)
        .group(
            PassManager::new()
                .pass(FoldConstants::new())
                .pass(Cse::new())
                .pass(DeadCode)
                .until_unchanged(),
        )
        .pass(Canonicalize)
        .before("FuseBatchNorm", "Canonicalize")
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let mut model = resnet18(10)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let traced = symbolic_trace(&model)?;
    let x = Tensor::rand((1, 3, 64, 64))?;

    // Lint runs after every pass; here the numbers are compared too, within what fusing rounds.
    let mut optimised = traced.clone();
    let report = pipeline()
        .check_numbers(&x, 1e-4, 1e-4)
        .run(&mut optimised)?;
    println!("{report}");
    println!(
        "nodes: {} -> {}",
        traced.graph().len(),
        optimised.graph().len()
    );

    // The check names a wrong pass, and the module stays as that pass found it.
    let wrong = || pipeline().pass(DropSkips).pass(DeadCode);
    let mut broken = traced.clone();
    match wrong().check_numbers(&x, 1e-4, 1e-4).run(&mut broken) {
        Ok(_) => println!("nothing was wrong"),
        Err(error) => println!("refused: {error}"),
    }
    println!("runs still: {:?}", broken.forward::<Tensor>(&x)?.dims()?);

    // Bisecting needs no checks: it finds the pass, and the first common node whose values differ.
    match wrong().bisect(&traced, &x, 1e-4, 1e-4)? {
        Some(culprit) => println!("\nbisect: {culprit}"),
        None => println!("\nbisect: no pass changes the numbers"),
    }

    // Every node still knows where it comes from.
    let fused = optimised
        .graph()
        .find_name("layer1_0_conv1")
        .map(|node| node.id());
    if let Some(fused) = fused {
        println!("\n{}", optimised.graph().explain(fused)?);
    }
    Ok(())
}
