//! Impure nodes keep their order, and values that they may change are neither merged, folded nor
//! moved.

use std::cell::RefCell;

use fx_nn::ir::Graph;
use fx_nn::operator;
use fx_nn::passes::{Canonicalize, Cse, FoldConstants, Pass, PassManager, pass_fn};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

use super::{count, tensors};

thread_local! {
    static TICKS: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
}

/// Reports that it ran.
#[wrap(impure)]
fn tick(x: &Tensor, n: i64) -> Result<Tensor> {
    TICKS.with_borrow_mut(|ticks| ticks.push(n));
    Ok(x.clone())
}

fn ticks(gm: &GraphModule) -> Result<Vec<i64>> {
    TICKS.with_borrow_mut(Vec::clear);
    gm.forward::<Value>(&Tensor::ones(2)?)?;
    Ok(TICKS.with_borrow(Vec::clone))
}

/// Reads a running statistic before and after the layer updates it.
#[derive(Module, Clone, Debug)]
struct Reads {
    bn: nn::BatchNorm1d,
}

#[trace]
impl Reads {
    fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
        let mean = self.bn.running_mean.as_ref();
        let mean = mean.ok_or_else(|| Error::msg("it has statistics"))?;
        let before = (x * mean)?;
        let y = self.bn.forward(x)?;
        let after = (x * mean)?;
        Ok((before, y, after))
    }
}

#[test]
fn a_read_of_what_a_layer_updates_stays_where_it_is() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 5.0], (2, 2))?;
    let module = || -> Result<GraphModule> {
        let mut gm = symbolic_trace(&Reads {
            bn: nn::BatchNorm1d::new(2)?,
        })?;
        // The second read is computed with, so that there is something to fold.
        let last = gm.graph().find_name("mul_1").map(|node| node.id());
        let last = last.ok_or_else(|| Error::msg("it multiplies twice"))?;
        let read = gm.graph().node(last)?.args()[1].as_node();
        let read = read.ok_or_else(|| Error::msg("by the mean"))?;
        let mut graph = gm.graph_mut();
        let same = graph
            .inserting_before(last)?
            .call_function(operator::mul, (read, 1.0), ())?;
        graph.node_mut(last)?.replace_input_with(read, same)?;
        drop(graph);
        Ok(gm)
    };
    let numbers = |gm: &GraphModule| -> Result<Vec<Vec<f64>>> {
        // The second run, in which the statistics differ from the first.
        gm.forward::<Value>(&x)?;
        let found = tensors(gm.forward(&x)?);
        found.iter().map(Tensor::to_vec).collect()
    };
    let expected = numbers(&module()?)?;
    assert_ne!(expected[0], expected[2]);
    let passes: [Box<dyn Pass>; 4] = [
        Box::new(Cse::new()),
        Box::new(Canonicalize),
        Box::new(FoldConstants::new()),
        Box::new(FoldConstants::new().lazily()),
    ];
    for pass in passes {
        let mut gm = module()?;
        gm.apply(&*pass)?;
        assert_eq!(numbers(&gm)?, expected, "{}\n{}", pass.name(), gm.graph());
    }
    // In evaluation nothing updates them.
    let mut gm = module()?;
    gm.eval();
    assert!(gm.apply(&FoldConstants::new())?.changed);
    Ok(())
}

#[test]
fn lifting_keeps_the_order_of_effects_or_refuses() -> Result<()> {
    let named = |gm: &GraphModule, names: &[&str]| -> Vec<NodeId> {
        let found = names.iter().filter_map(|name| gm.graph().find_name(name));
        found.map(|node| node.id()).collect()
    };
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, b, c) = (tick(x, 1)?, tick(x, 2)?, tick(x, 3)?);
        (a + b)? + c
    }))?;
    let ends = named(&gm, &["tick", "tick_2"]);
    let text = gm.lift_subgraph(&ends, "ends").unwrap_err().to_string();
    assert!(
        text.contains("%tick_1 is not among them, and its effects come between theirs"),
        "{text}"
    );

    // The pure part moves behind its last node; effects that need it move behind it together.
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = (x + 1.0)?;
        let u = tick(&a, 1)?;
        let v = tick(x, 2)?;
        let c = (a * 2.0)?;
        (c + u)? + v
    }))?;
    let part = named(&gm, &["add", "mul"]);
    gm.lift_subgraph(&part, "part")?;
    assert_eq!(ticks(&gm)?, [1, 2]);
    Ok(())
}

#[test]
fn a_lazily_folded_dropout_draws_in_training() -> Result<()> {
    #[derive(Module, Clone, Debug)]
    struct Drops {
        weight: Tensor,
        drop: nn::Dropout,
    }
    #[trace]
    impl Drops {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            x + self.drop.forward(&self.weight)?
        }
    }
    let mut model = Drops {
        weight: Tensor::ones(64)?.into_parameter()?,
        drop: nn::Dropout::new(0.5)?,
    };
    model.eval();
    let mut gm = symbolic_trace(&model)?;
    let lazily = || {
        PassManager::new()
            .pass(FoldConstants::new().lazily())
            .until_unchanged()
    };
    // Lazily folded constants are not folded again.
    assert_eq!(lazily().run(&mut gm)?.records.len(), 2);
    gm.train();
    assert_eq!(gm.impure_nodes().count(), 1);
    let x = Tensor::zeros(64)?;
    let (a, b): (Tensor, Tensor) = (gm.forward(&x)?, gm.forward(&x)?);
    assert_ne!(a.to_vec()?, b.to_vec()?);
    Ok(())
}

#[test]
fn a_pass_that_panics_leaves_the_module_as_it_was() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let before = gm.graph().to_string();
    let panics = pass_fn("panics", |gm| {
        let relu = gm.graph().find_name("relu").map(|node| node.id());
        let relu = relu.ok_or_else(|| Error::msg("it has a relu"))?;
        gm.graph_mut().call_function(operator::neg, (relu,), ())?;
        panic!("a pass's own")
    });
    let unwound =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| gm.apply(&panics).is_ok()));
    assert!(unwound.is_err());
    assert_eq!(gm.graph().to_string(), before);
    // No pass is running any more.
    let x = gm.graph().placeholders().next().map(|node| node.id());
    let x = x.ok_or_else(|| Error::msg("it has an input"))?;
    let neg = gm.graph_mut().call_function(operator::neg, (x,), ())?;
    assert!(gm.graph().node(neg)?.sources().is_empty());
    Ok(())
}

#[test]
fn what_is_taken_back_inside_of_a_pass_is_not_told() -> Result<()> {
    let tries = pass_fn("tries", |gm| {
        let fails = pass_fn("fails", |gm| {
            let x = gm.graph().placeholders().next().map(|node| node.id());
            let x = x.ok_or_else(|| Error::msg("it has an input"))?;
            gm.graph_mut().call_function(operator::neg, (x,), ())?;
            Err(Error::msg("not this one"))
        });
        Ok(gm.apply(&fails).is_ok())
    });
    let record = symbolic_trace(traced!(|x: &Tensor| x.relu()))?.apply(&tries)?;
    assert!(!record.changed && record.created.is_empty(), "{record}");
    Ok(())
}

#[test]
fn many_results_in_one_list_are_put_there_at_once() -> Result<()> {
    // Twice as many take twice as long: a list of them is written once.
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let mut parts = Vec::new();
    for at in 0..4000 {
        let n = graph.call_function(operator::add, (at, 1), ())?;
        parts.push(graph.call_function(operator::add, (x, n), ())?);
        parts.push(graph.call_function(operator::add, (x, n), ())?);
    }
    graph.output(parts)?;
    let mut gm = GraphModule::new(fx_nn::module::Attributes::default(), graph, "Many")?;
    assert_eq!(gm.apply(&FoldConstants::new())?.erased.len(), 4000);
    assert_eq!(gm.apply(&Cse::new())?.erased.len(), 4000);
    assert_eq!(count(&gm, "add"), 4000);
    Ok(())
}
