//! What parts keep, what `SplitOptions` change, and partitions that are given.

use fx_core::ir::{Graph, NodeRef, Op, TensorMeta, ValueMeta};
use fx_core::module::{Attributes, Tag, TensorKind};
use fx_core::operator;
use fx_core::passes::{Region, Split, SplitOptions};
use fx_core::prelude::*;
use fx_core::value::IntoValue;
use fx_core::value::NodeId;

use crate::split::named;
use crate::support::Array;

#[derive(Debug, Default, Module)]
struct Doubled {
    tag: Tag,
}

#[trace(leaf)]
impl Doubled {
    fn forward(&self, x: Float) -> Result<Float> {
        x * 2.0
    }
}

#[derive(Default, Module)]
struct Net {
    a: Inner,
    a_b: Doubled,
}

#[derive(Default, Module)]
struct Inner {
    b: Doubled,
}

#[trace]
impl Inner {
    fn forward(&self, x: Float) -> Result<Float> {
        self.b.forward(x)
    }
}

#[trace]
impl Net {
    fn forward(&self, x: Float) -> Result<Float> {
        self.a_b.forward(self.a.forward(x)?)
    }
}

/// By the numbers of calls before: so many in each part.
fn in_turn(gm: &GraphModule, size: usize) -> impl Fn(NodeRef<'_>) -> Option<usize> {
    let calls = gm.graph().nodes().filter(|node| node.op().is_call());
    let calls: Vec<NodeId> = calls.map(|node| node.id()).collect();
    move |node| Some(calls.iter().position(|id| *id == node.id())? / size)
}

#[test]
fn three_parts_keep_numbers_and_entries() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float, y: Float| {
        let a = ((x + 1.0)? * y)?;
        let b = (a - 2.0)?;
        ((a * b)? / 4.0)? + y
    }))?;
    let ids: Vec<NodeId> = gm.graph().nodes().map(|node| node.id()).collect();
    for (at, id) in ids.iter().enumerate() {
        let meta = ValueMeta::from(TensorMeta::new([at + 1]).dtype(DType::F32));
        gm.graph_mut().node_mut(*id)?.set_meta(meta);
    }
    let split = gm.split(&SplitOptions::new(), in_turn(&gm, 2))?;
    assert_eq!(split.parts.len(), 3);
    assert_eq!(
        split.module.forward::<f64>((3.0, 2.0))?,
        gm.forward::<f64>((3.0, 2.0))?
    );
    let saved = GraphModule::from_bytes(&split.module.to_bytes()?)?;
    assert_eq!(
        saved.forward::<f64>((3.0, 2.0))?,
        gm.forward::<f64>((3.0, 2.0))?
    );
    let shape = |node: NodeRef<'_>| node.meta::<ValueMeta>().map(ToString::to_string);
    for part in &split.parts {
        let inner = split.module.submodule_as::<GraphModule>(&part.path)?;
        for node in inner
            .graph()
            .nodes()
            .filter(|node| *node.op() != Op::Output)
        {
            let original = gm.graph().find_name(&node.name().to_string());
            assert_eq!(shape(node), original.and_then(shape), "{}", node.name());
            if node.op().is_call() {
                assert_eq!(node.location(), original.and_then(|node| node.location()));
            }
        }
        assert!(
            split
                .module
                .graph()
                .node(part.call)
                .is_ok_and(|call| shape(call).is_some())
        );
    }
    // The parent can be traced, and its source shows the parts.
    let again = symbolic_trace(&split.module)?;
    assert_eq!(
        again.forward::<f64>((3.0, 2.0))?,
        gm.forward::<f64>((3.0, 2.0))?
    );
    assert!(split.module.code().contains("submod_1"));
    Ok(())
}

#[test]
fn an_effect_is_a_part_without_a_result() -> Result<()> {
    #[wrap(impure)]
    fn positive(x: Float) -> Result<Float> {
        match f64::from_value(x.into_value())? {
            x if x > 0.0 => Ok(Float::from(x)),
            _ => Err(Error::msg("it is not positive")),
        }
    }
    let gm = symbolic_trace(traced!(|x: Float| {
        let _checked = positive((x - 1.0)?)?;
        x * 2.0
    }))?;
    let part = |node: NodeRef<'_>| {
        Some(if node.name() == "mul" {
            "product"
        } else {
            "check"
        })
    };
    let split = gm.split(&SplitOptions::new(), part)?;
    let check = split.module.submodule_as::<GraphModule>("check")?.graph();
    let output = check
        .output_node()
        .ok_or_else(|| Error::msg("it has an output"))?;
    assert!(output.all_input_nodes().next().is_none());
    assert_eq!(split.module.forward::<f64>(2.0)?, 4.0);
    assert!(split.module.forward::<f64>(0.5).is_err());
    // Without an effect, a part that nobody uses would do nothing.
    let pure = symbolic_trace(traced!(|x: Float| {
        let _unused = (x - 1.0)?;
        x * 2.0
    }))?;
    let error = pure
        .split(&SplitOptions::new(), part)
        .expect_err("nobody uses it");
    insta::assert_snapshot!(error, @"nothing outside uses the nodes of `check`, and they have no effect: a module of them would do nothing; leave them out");
    Ok(())
}

#[test]
fn a_graph_without_calls_has_no_parts() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float, _y: Float| Ok(x)))?;
    for keep in [true, false] {
        let options = SplitOptions::new().keep_original_order(keep);
        let split = gm.split(&options, |_| Some(0))?;
        assert!(split.parts.is_empty());
        assert_eq!(split.module.forward::<f64>((1.0, 2.0))?, 1.0);
        assert_eq!(split.module.graph().placeholders().count(), 2);
    }
    Ok(())
}

#[test]
fn sizes_and_fixed_arguments_pass_through_parts() -> Result<()> {
    let f = traced!(|n: Int, scale: Float, by: Float| {
        let m = (n * 2)?;
        let s = (scale * by)?;
        Ok(((m + n)?, s))
    });
    let gm = Trace::new(f).concrete("by", 3.0).graph_module()?;
    let split = gm.split(&SplitOptions::new(), in_turn(&gm, 1))?;
    assert_eq!(
        split.parts.len(),
        gm.graph()
            .nodes()
            .filter(|node| node.op().is_call())
            .count()
    );
    assert_eq!(
        split.module.forward::<Value>((4, 2.0, 3.0))?.to_string(),
        gm.forward::<Value>((4, 2.0, 3.0))?.to_string()
    );
    assert!(
        split.module.forward::<Value>((4, 2.0, 4.0)).is_err(),
        "`by` was fixed"
    );
    Ok(())
}

#[test]
fn paths_stay_apart() -> Result<()> {
    let gm = symbolic_trace(&Net::default())?;
    let split = gm.split(&SplitOptions::new(), |_| Some(0))?;
    let names: Vec<(&str, &str)> = split
        .qualified_names
        .iter()
        .map(|(new, old)| (&**new, &**old))
        .collect();
    assert_eq!(names, [("submod_0.a.b", "a.b"), ("submod_0.a_b", "a_b")]);
    assert_eq!(split.module.forward::<f64>(1.0)?, 4.0);
    Ok(())
}

/// A graph that reads one array twice.
fn reads_twice() -> Result<GraphModule> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let w = graph.get_attr("w")?;
    let add = graph.call_function(operator::add, (x, w), ())?;
    let sub = graph.call_function(operator::sub, (add, w), ())?;
    graph.output(sub)?;
    let mut root = Attributes::default();
    let weight = Value::object(Array::vec(&[1.0, -2.0]));
    root.tensors
        .insert("w".into(), (TensorKind::Parameter, weight));
    GraphModule::new(root, graph, "Twice")
}

#[test]
fn parts_share_the_parameters_that_they_read() -> Result<()> {
    let gm = reads_twice()?;
    let hoisted = gm.split(&SplitOptions::new(), in_turn(&gm, 1))?;
    assert_eq!(
        hoisted.module.named_parameters().keys().collect::<Vec<_>>(),
        ["w"]
    );
    let inside = SplitOptions::new().attributes_in_parts(true);
    let Split {
        module,
        parts,
        qualified_names,
        ..
    } = gm.split(&inside, in_turn(&gm, 1))?;
    assert_eq!(
        qualified_names.keys().collect::<Vec<_>>(),
        ["submod_0.w", "submod_1.w"]
    );
    for part in &parts {
        // Placeholders come first, then what is read.
        let inner = module.submodule_as::<GraphModule>(&part.path)?;
        let ops: Vec<&str> = inner
            .graph()
            .nodes()
            .map(|node| node.op().opcode().name())
            .collect();
        assert_eq!(ops, ["placeholder", "get_attr", "call_function", "output"]);
    }
    // One tensor under two paths counts once.
    assert_eq!(module.named_parameters().len(), 1);
    let x = || Array::vec(&[0.5, 2.0]);
    let expected = gm.forward::<Value>(x())?.to_string();
    for module in [hoisted.module, module] {
        assert_eq!(module.forward::<Value>(x())?.to_string(), expected);
    }
    Ok(())
}

#[test]
fn given_partitions_are_fused() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| ((((x + 1.0)? * 2.0)? - 3.0)? / 4.0)? + x))?;
    let region = |names: &[&str]| Region::of(gm.graph(), named(&gm, names));
    let cases: [&[&[&str]]; 4] = [
        &[&["mul", "add"]],
        &[&["sub"], &["add", "mul"]],
        &[&["add_1", "truediv", "sub", "mul", "add"]],
        &[&["truediv", "add_1"], &["sub"]],
    ];
    for case in cases {
        let regions: Vec<Region> = case
            .iter()
            .map(|names| region(names))
            .collect::<Result<_>>()?;
        let mut fused = gm.clone();
        let parts = fused.fuse_by_partitions(&regions)?;
        assert_eq!(parts.len(), case.len());
        assert_eq!(fused.forward::<f64>(5.0)?, gm.forward::<f64>(5.0)?);
    }
    let mut twice = reads_twice()?;
    let all = twice
        .graph()
        .nodes()
        .filter(|node| !matches!(node.op(), Op::Placeholder(_) | Op::Output));
    let all = Region::of(twice.graph(), all.map(|node| node.id()).collect::<Vec<_>>())?;
    let expected = twice.forward::<Value>(Array::vec(&[0.5, 2.0]))?.to_string();
    twice.fuse_by_partitions(&[all])?;
    assert_eq!(
        twice.forward::<Value>(Array::vec(&[0.5, 2.0]))?.to_string(),
        expected
    );
    Ok(())
}

#[test]
fn overlapping_and_circular_partitions_are_refused() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| (((x + 1.0)? * 2.0)? - 3.0)? / 4.0))?;
    let before = gm.to_bytes()?;
    let region = |gm: &GraphModule, names: &[&str]| Region::of(gm.graph(), named(gm, names));
    let overlapping = [region(&gm, &["add", "mul"])?, region(&gm, &["mul", "sub"])?];
    let error = gm
        .fuse_by_partitions(&overlapping)
        .expect_err("they overlap")
        .to_string();
    assert!(
        error.contains("it is in region 0 and in region 1"),
        "{error}"
    );
    let circular = [
        region(&gm, &["add", "sub"])?,
        region(&gm, &["mul", "truediv"])?,
    ];
    let error = gm
        .fuse_by_partitions(&circular)
        .expect_err("they need each other")
        .to_string();
    assert!(
        error.contains("`fused_0`, `fused_1` need each other"),
        "{error}"
    );
    let ends = [region(&gm, &["x"])?];
    assert!(gm.fuse_by_partitions(&ends).is_err());
    assert_eq!(gm.to_bytes()?, before);
    Ok(())
}
