//! Paths into containers, called layers and nested graph modules; modules collected out of a root;
//! entries of a module.

use std::sync::Arc;

use fx_core::file::{Json, SavedMeta};
use fx_core::ir::{Graph, Meta, MetaPolicy, ValueMeta};
use fx_core::module::Module;
use fx_core::prelude::*;
use fx_core::trace::{TraceContext, Tracer};
use insta::assert_snapshot;

use crate::run::{equal, my_module};
use crate::support::modules::{Activation, Block, Linear, Shift, Tied};
use crate::support::*;

/// Blocks in a list, each recorded as a whole.
#[derive(Module)]
struct Net {
    blocks: Vec<Block>,
    head: Linear,
}

#[trace]
impl Net {
    fn forward(&self, x: &Array) -> Result<Array> {
        let mut h = x.clone();
        for block in &self.blocks {
            h = block.forward(&h)?;
        }
        self.head.forward(&h)
    }
}

struct BlocksAreLeaves;
impl Tracer for BlocksAreLeaves {
    fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, _: &str) -> bool {
        let any: &dyn std::any::Any = module;
        any.is::<Block>() || module.is_leaf()
    }
}

fn net() -> Net {
    Net {
        blocks: vec![Block::new(2), Block::new(2)],
        head: Linear::square(2, 1.0),
    }
}

fn leaves() -> Result<GraphModule> {
    Trace::new(&net()).tracer(BlocksAreLeaves).graph_module()
}

fn text<T>(result: Result<T>) -> String {
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

/// All tensors, by path.
fn tensors(gm: &GraphModule) -> Result<Vec<(String, Vec<f64>)>> {
    let state = gm.state_dict().into_iter();
    let numbers = state.map(|(path, value)| Ok((path, Array::from_value(value)?.to_vec()?)));
    numbers.collect()
}

fn names(gm: &GraphModule, path: &str) -> Result<String> {
    let names = gm.submodule(path)?.named_modules();
    Ok(names.keys().cloned().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_path_leads_into_containers_layers_and_nested_graph_modules() -> Result<()> {
    let mut gm = leaves()?;
    assert!(gm.submodule("blocks.1")?.is::<Block>());
    assert!(gm.submodule("blocks.1.second")?.is::<Linear>());
    assert!(gm.submodule("blocks.1.layers.1")?.is::<Shift>());
    assert!(gm.submodule("blocks.1.boxed")?.is::<Activation>());
    assert!(gm.submodule("blocks.1.shared")?.is::<Linear>());
    let first: Array = gm.submodule("blocks.0.first")?.forward(&x())?;
    equal(&first, &net().blocks[0].first.forward(&x())?)?;
    assert_eq!(
        names(&gm, "blocks.0.layers")?,
        "0 1",
        "a list inside of a layer"
    );
    assert!(names(&gm, "blocks")?.starts_with("0 0.first 0.second 0.layers.0"));
    assert_eq!(gm.submodule("blocks")?.state_dict().len(), 18);

    gm.add_submodule("outer.nested", leaves()?)?;
    assert!(gm.submodule("outer.nested.blocks.1.first")?.is::<Linear>());
    assert!(names(&gm, "outer.nested.blocks")?.starts_with("0 0.first"));
    assert_snapshot!([
        text(gm.submodule("blocks.0.third")),
        text(gm.submodule("outer.nested.block")),
        text(gm.submodule("blocks.0.first.weight")),
        text(gm.submodule("blocks.0.training")),
        text(gm.submodule("blocks.7")),
        text(gm.submodule("tail")),
        text(gm.submodule("blocks.0.layers")?.module().map(drop)),
        text(gm.submodule("blocks")?.module().map(drop)),
        text(gm.submodule_as::<Linear>("blocks.0")),
        text(gm.submodule_mut("blocks.0.third").map(drop)),
    ].join("\n"), @"
    no module at `blocks.0.third`; `blocks.0` has `first`, `second`, `layers`, `boxed`, `shared`
    no module at `outer.nested.block`; `outer.nested` has `blocks`, `head`
    no module at `blocks.0.first.weight`; `blocks.0.first` has no modules
    no module at `blocks.0.training`; `blocks.0` has `first`, `second`, `layers`, `boxed`, `shared`
    no module at `blocks.7`; `blocks` has `0`, `1`
    no module at `tail`; this module has `blocks`, `head`, `outer`
    this is a container, which has no `forward`: ask for what is in it (`0`, `1`)
    this is a container, which has no `forward`: ask for what is in it (`0`, `1`)
    `blocks.0` is a `Block`, not a `Linear`
    no module at `blocks.0.third`; `blocks.0` has `first`, `second`, `layers`, `boxed`, `shared`
    ");
    Ok(())
}

#[test]
fn what_is_lent_to_be_changed_is_what_runs_next_and_comes_back_from_a_failing_edit() -> Result<()> {
    let mut gm = leaves()?;
    gm.propagate_shapes(&x())?;
    let before: Array = gm.forward(&x())?;
    let tensors = tensors(&gm)?;
    let failed = gm.edit(|gm| {
        gm.submodule_as_mut::<Linear>("blocks.1.first")?.bias = None;
        gm.submodule_as_mut::<Linear>("blocks.1.shared")?.weight =
            Array::new(&[2, 2], vec![9.0; 4]);
        gm.submodule_mut("blocks")?.set_training(false);
        assert_ne!(gm.forward::<Array>(&x())?.to_vec()?, before.to_vec()?);
        assert!(
            gm.graph()
                .output_node()
                .and_then(|n| n.meta::<ValueMeta>())
                .is_none()
        );
        gm.parameter("blocks.1.first.bias").map(drop)
    });
    assert_eq!(
        text(failed),
        "no parameter at `blocks.1.first.bias`; the `Block` there has `first.weight`"
    );
    equal(&gm.forward(&x())?, &before)?;
    assert_eq!(self::tensors(&gm)?, tensors);

    // The same in a nested graph module, which is restored by its own journal.
    let mut outer = symbolic_trace(&my_module())?;
    outer.set_submodule("linear", gm)?;
    let before: Array = outer.forward(&x())?;
    let failed: Result<()> = outer.edit(|gm| {
        gm.submodule_as_mut::<Linear>("linear.head")?.bias = Some(Array::vec(&[7.0, 8.0]));
        gm.submodule_mut("linear.blocks")?.set_training(false);
        assert_ne!(gm.forward::<Array>(&x())?.to_vec()?, before.to_vec()?);
        Err(Error::msg("stop"))
    });
    assert_eq!(text(failed), "stop");
    equal(&outer.forward(&x())?, &before)
}

#[test]
fn a_module_that_takes_other_arguments_afterwards_is_bound_anew() -> Result<()> {
    let mut gm = symbolic_trace(&my_module())?;
    gm.set_submodule("linear", symbolic_trace(traced!(|x: &Array| x * 2.0))?)?;
    let twice: Array = gm.forward(&x())?;
    let Some(inner) = gm.submodule_mut("linear")?.downcast_mut::<GraphModule>() else {
        return Err(Error::msg("it was put there"));
    };
    *inner = symbolic_trace(traced!(|x: &Array, #[default(4.0)] by: Float| x * by))?;
    let doubled: Vec<f64> = twice.to_vec()?.iter().map(|y| y * 2.0).collect();
    assert_eq!(gm.forward::<Array>(&x())?.to_vec()?, doubled);
    Ok(())
}

#[test]
fn a_shared_module_that_is_lent_is_changed_at_its_path_alone() -> Result<()> {
    let root = net();
    let shared = root.blocks[0].shared.clone();
    let mut gm = Trace::new(&root).tracer(BlocksAreLeaves).graph_module()?;
    gm.submodule_as_mut::<Linear>("blocks.0.shared")?.bias = None;
    assert!(shared.bias.is_some(), "the traced root keeps its own");
    assert!(gm.parameter("blocks.0.shared.bias").is_err());
    Ok(())
}

/// Calls a layer as a whole, and also reads its weight directly.
#[derive(Module)]
struct Reads {
    lin: Linear,
}

#[trace]
impl Reads {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.lin.forward(&(x * &self.lin.weight)?)
    }
}

#[test]
fn tensors_of_called_layers_and_nested_graph_modules_are_read_and_set() -> Result<()> {
    let mut gm = leaves()?;
    let weight = |factor: f64| Linear::square(2, factor).weight;
    gm.set_parameter("blocks.1.first.weight", &weight(7.0))?;
    gm.set_buffer("blocks.1.mean", &Array::vec(&[1.0, 2.0]))?;
    let read = Array::from_value(gm.parameter("blocks.1.first.weight")?)?;
    equal(&read, &weight(7.0))?;
    let mut eager = net();
    eager.blocks[1].first.weight = weight(7.0);
    eager.blocks[1].mean = Array::vec(&[1.0, 2.0]);
    equal(&gm.forward(&x())?, &eager.forward(&x())?)?;

    let mut outer = symbolic_trace(&my_module())?;
    outer.set_submodule("linear", gm)?;
    outer.set_parameter("linear.blocks.1.first.weight", &weight(2.0))?;
    outer.set_buffer("linear.fresh", &x())?;
    equal(&Array::from_value(outer.buffer("linear.fresh")?)?, &x())?;
    eager.blocks[1].first.weight = weight(2.0);
    let shifted = (x() + my_module().param)?;
    equal(&outer.forward(&x())?, &eager.forward(&shifted)?.relu()?)?;

    let before = tensors(&outer)?;
    assert_snapshot!([
        text(outer.set_parameter("linear.blocks.1.first.w", &x())),
        text(outer.set_parameter("linear.blocks.1.mean", &x())),
        text(outer.set_parameter("linear.blocks.1.first", &x())),
        text(outer.set_parameter("linear.head", &x())),
        text(outer.parameter("linear.blocks.1.mean")),
        text(outer.buffer("linear.blocks.1.first.weights")),
    ].join("\n"), @"
    no parameter at `linear.blocks.1.first.w`; the `Block` there has `first.weight`, `first.bias`
    `linear.blocks.1.mean` is a buffer: `buffer` and `set_buffer` are for it
    no parameter at `linear.blocks.1.first`; the `Block` there has `first.weight`, `first.bias`, `second.weight`, `second.bias`, `layers.0.by`, `layers.1.by`, `shared.weight`, `shared.bias`
    `linear.head` is a module: a tensor needs another path
    `linear.blocks.1.mean` is a buffer: `buffer` and `set_buffer` are for it
    no buffer at `linear.blocks.1.first.weights`; the `Block` there has `mean`
    ");
    assert_eq!(tensors(&outer)?, before);
    Ok(())
}

#[test]
fn tied_tensors_of_a_layer_stay_tied() -> Result<()> {
    struct All;
    impl Tracer for All {
        fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, path: &str) -> bool {
            !path.is_empty()
        }
    }
    #[derive(Module)]
    struct Root {
        tied: Tied,
    }
    #[trace]
    impl Root {
        fn forward(&self, x: &Array) -> Result<Array> {
            self.tied.forward(x)
        }
    }
    let root = Root { tied: Tied::new(2) };
    let mut gm = Trace::new(&root).tracer(All).graph_module()?;
    let before = gm.named_parameters().len();
    gm.set_parameter("tied.q", &Array::vec(&[4.0, 5.0]))?;
    gm.set_parameter("tied.b.weight", &Linear::square(2, 7.0).weight)?;
    for path in ["tied.p", "tied.q"] {
        equal(
            &Array::from_value(gm.parameter(path)?)?,
            &Array::vec(&[4.0, 5.0]),
        )?;
    }
    for path in ["tied.a.weight", "tied.b.weight"] {
        let weight = Array::from_value(gm.parameter(path)?)?;
        equal(&weight, &Linear::square(2, 7.0).weight)?;
    }
    assert_eq!(gm.named_parameters().len(), before);
    assert!(
        Arc::strong_count(&root.tied.a) >= 2,
        "the root's are as they were"
    );
    equal(&root.tied.a.weight, &Tied::new(2).a.weight)
}

#[test]
fn a_tensor_that_a_node_reads_and_a_layer_has_is_set_in_both() -> Result<()> {
    let mut root = Reads {
        lin: Linear::square(2, 2.0),
    };
    let mut gm = symbolic_trace(&root)?;
    assert!(gm.attributes().tensors.contains_key("lin.weight"));
    root.lin.weight = Linear::square(2, 5.0).weight;
    gm.set_parameter("lin.weight", &root.lin.weight)?;
    let x = Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]);
    equal(&gm.forward(&x)?, &root.forward(&x)?)
}

#[test]
fn a_graph_takes_what_it_names_out_of_a_module() -> Result<()> {
    let mut graph = Graph::new();
    let x_in = graph.placeholder("x")?;
    let second = graph.call_module("blocks.1.shared", (x_in,), ())?;
    let bias = graph.get_attr("head.bias")?;
    let sum = graph.call_function(fx_core::operator::add, (second, bias), ())?;
    graph.output(sum)?;
    let root = net();
    let gm = GraphModule::of(&root, graph.clone())?;
    let shared: Array = root.blocks[1].shared.forward(&x())?;
    let bias = root
        .head
        .bias
        .clone()
        .ok_or_else(|| Error::msg("it has one"))?;
    equal(&gm.forward(&x())?, &(shared + bias)?)?;
    assert_eq!((gm.class_name(), gm.attributes().modules.len()), ("Net", 1));
    assert!(gm.parameter("head.bias").is_ok());

    // A graph module is a root too.
    equal(
        &GraphModule::of(&leaves()?, graph.clone())?.forward(&x())?,
        &gm.forward(&x())?,
    )?;

    let tail = graph
        .inserting_before(sum)?
        .call_module("tail", (second,), ())?;
    graph.node_mut(sum)?.update_arg(0, tail)?;
    assert_snapshot!(without_lines(text(GraphModule::of(&root, graph.clone()))), @"while collecting %tail (fx-core/tests/run/paths.rs:_): no module at `tail` in the module that the graph is to run with");
    let x2 = graph.inserting_before(sum)?.get_attr("head.nothing")?;
    graph.node_mut(sum)?.update_arg(0, x2)?;
    graph.erase_node(tail)?;
    assert_snapshot!(without_lines(text(GraphModule::of(&root, graph))), @"while collecting %head_nothing (fx-core/tests/run/paths.rs:_): no parameter, buffer or constant at `head.nothing` in the module that the graph is to run with");
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Stage(u64);
impl Meta for Stage {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}
impl SavedMeta for Stage {
    const NAME: &'static str = "run_paths::Stage";
    fn to_saved(&self) -> Result<Json> {
        Ok(self.0.into())
    }
    fn from_saved(saved: &Json) -> Result<Self> {
        saved
            .as_u64()
            .map(Stage)
            .ok_or_else(|| Error::msg("expected a number"))
    }
}
fx_core::register_meta!(Stage);

#[derive(Debug, PartialEq)]
struct Local;
impl Meta for Local {
    const ON_COPY: MetaPolicy = MetaPolicy::Drop;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

#[test]
fn a_module_has_entries_that_clones_and_files_keep_and_failing_edits_restore() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    let without = gm.to_bytes()?;
    gm.set_meta(Local);
    assert_eq!(
        gm.to_bytes()?,
        without,
        "a type that is not registered is left out"
    );
    gm.set_meta(Stage(1));
    gm.set_meta(Stage(2));
    let failed: Result<()> = gm.edit(|gm| {
        gm.set_meta(Stage(3));
        gm.remove_meta::<Local>();
        Err(Error::msg("stop"))
    });
    assert!(failed.is_err());
    assert_eq!(
        (gm.meta::<Stage>(), gm.meta::<Local>()),
        (Some(&Stage(2)), Some(&Local))
    );
    assert_eq!(gm.clone().meta::<Local>(), Some(&Local));
    let made = gm.transform(&mut fx_core::run::PlainInterpreter)?;
    assert_eq!(
        (made.meta::<Stage>(), made.meta::<Local>()),
        (Some(&Stage(2)), None)
    );

    // In a file, also of a module inside.
    let mut outer = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    outer.add_submodule("inner", gm.clone())?;
    let loaded = GraphModule::from_bytes(&outer.to_bytes()?)?;
    let inner = loaded.submodule_as::<GraphModule>("inner")?;
    assert_eq!(
        (inner.meta::<Stage>(), loaded.meta::<Stage>()),
        (Some(&Stage(2)), None)
    );
    assert!(gm.remove_meta::<Stage>() && !gm.remove_meta::<Stage>());
    assert_eq!(gm.to_bytes()?, without);
    Ok(())
}
