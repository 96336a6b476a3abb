//! What a graph module holds, and edits of it: which module and tensor is where, nested graph
//! modules, other graphs.

use std::any::Any;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fx_core::ir::{Graph, Op};
use fx_core::module::Component;
use fx_core::operator;
use fx_core::passes::pass_fn;
use fx_core::prelude::*;
use fx_core::value::NodeId;

use super::mirror::Mirror;
use super::state::state;
use crate::support::Array;

/// Multiplies. Counts how often it is copied.
#[derive(Debug)]
pub struct Scale {
    pub by: f64,
    pub training: bool,
    pub copies: Arc<AtomicUsize>,
}

impl Scale {
    pub fn by(by: f64) -> Self {
        Scale {
            by,
            training: false,
            copies: Arc::default(),
        }
    }
}

impl Component for Scale {
    fn visit(&self, walk: &mut fx_core::module::Walk<'_, '_>) {
        walk.component(self, |walk| walk.training(self.training));
    }

    fn visit_mut(&mut self, walk: &mut fx_core::module::WalkMut<'_, '_>) {
        walk.training(&mut self.training);
    }

    fn duplicate(&self) -> Self {
        self.copies.fetch_add(1, Ordering::Relaxed);
        Scale {
            by: self.by,
            training: self.training,
            copies: self.copies.clone(),
        }
    }
}

#[trace(leaf)]
impl Scale {
    fn forward(&self, x: Float) -> Result<Float> {
        x * self.by
    }
}

/// A graph module of a few nodes, with a module, a tensor and a graph module inside, which contains
/// one too.
pub fn sample() -> Result<GraphModule> {
    let mut innermost = symbolic_trace(traced!(|x: Float| {
        let _unused = (x * 5.0)?;
        x + 1.0
    }))?;
    innermost.add_submodule("scale", Scale::by(2.0))?;
    let mut inner = symbolic_trace(traced!(|x: Float| {
        let _unused = (x * 3.0)?;
        x - 1.0
    }))?;
    add_call(&mut inner, "innermost", innermost)?;
    let mut gm = symbolic_trace(traced!(|x: Float, y: Float| {
        let a = -(x + y)?;
        let b = (a? * 2.0)?;
        let _unused = (b - y)?;
        b.abs()
    }))?;
    add_call(&mut gm, "inner", inner)?;
    add_call(&mut gm, "scale", Scale::by(3.0))?;
    gm.set_parameter("weight", &Array::vec(&[1.0, 2.0]))?;
    Ok(gm)
}

/// Puts a call of a module before the output.
fn add_call(gm: &mut GraphModule, path: &str, module: impl Module) -> Result<NodeId> {
    gm.add_submodule(path, module)?;
    let mut graph = gm.graph_mut();
    let output = graph.output_node().map(|output| output.id());
    let output = output.ok_or_else(|| Error::msg("a graph has an output"))?;
    let value = graph.node(output)?.args().to_vec();
    let mut place = graph.inserting_before(output)?;
    let call = place.call_module(path, value, ())?;
    drop(place);
    graph.node_mut(output)?.set_args((call,))?;
    Ok(call)
}

/// All that can be seen of a graph module, including nested graph modules.
pub fn module_state(gm: &GraphModule) -> String {
    let mut text = state(gm.graph());
    let _ = writeln!(text, "{:?}", gm.params());
    for (path, module) in &gm.attributes().modules {
        let any: &dyn Any = module.as_module();
        let _ = write!(text, "{path}: {} {:?} ", module.type_name(), any.type_id());
        if let Some(scale) = any.downcast_ref::<Scale>() {
            let _ = write!(text, "{} {}", scale.by, scale.training);
        }
        if let Some(inner) = any.downcast_ref::<GraphModule>() {
            text += &module_state(inner);
        }
        text.push('\n');
    }
    for (path, (kind, value)) in &gm.attributes().tensors {
        let id = value.as_object().and_then(|object| object.object_id());
        let _ = writeln!(text, "{path}: {kind:?} {id:?}");
    }
    text + &gm.code()
}

fn fail<T>(_: T) -> Result<()> {
    Err(Error::msg("no"))
}

fn inner_of<'m>(gm: &'m GraphModule, path: &str) -> Result<&'m GraphModule> {
    gm.submodule_as::<GraphModule>(path)
}

#[test]
fn a_failing_edit_leaves_what_stands_at_each_path() -> Result<()> {
    let mut gm = sample()?;
    let before = module_state(&gm);
    let failed = gm.edit(|gm| {
        gm.add_submodule("other.scale", Scale::by(7.0))?;
        gm.set_submodule("scale", Scale::by(8.0))?;
        gm.set_parameter("weight", &Array::vec(&[1.0, 2.0, 3.0]))?;
        gm.set_buffer("other_weight", &Array::vec(&[4.0]))?;
        let taken: Scale = gm.take_submodule("scale")?;
        assert_eq!(taken.by, 8.0);
        gm.delete_submodule("other");
        gm.add_submodule("scale", Scale::by(9.0))?;
        gm.retain_submodules(|path, _| path == "inner");
        assert_eq!(gm.attributes().modules.len(), 1);
        fail(gm)
    });
    assert!(failed.is_err());
    assert_eq!(module_state(&gm), before);
    Ok(())
}

#[test]
fn a_module_is_copied_when_it_is_first_lent_in_an_edit_and_not_before() -> Result<()> {
    let mut gm = sample()?;
    let copies = gm.submodule_as::<Scale>("scale")?.copies.clone();
    let count = || copies.load(Ordering::Relaxed);
    gm.train();
    gm.edit(|gm| {
        let first = gm.graph().nodes().next().map(|node| node.id());
        gm.graph_mut().inserting_before(first)?.placeholder("z")?;
        Ok(())
    })?;
    gm.apply(&pass_fn("nothing", |_| Ok(false)))?;
    assert_eq!(count(), 0);

    gm.eval();
    let before = module_state(&gm);
    let failed = gm.edit(|gm| {
        gm.train();
        assert_eq!(count(), 1);
        gm.eval();
        assert_eq!(count(), 1);
        let inner_fails = gm.edit(|gm| {
            gm.train();
            assert_eq!(count(), 2);
            fail(gm)
        });
        assert!(inner_fails.is_err() && !gm.submodule_as::<Scale>("scale")?.training);
        gm.train();
        assert_eq!(count(), 2);
        fail(gm)
    });
    assert!(failed.is_err());
    assert_eq!(module_state(&gm), before);

    gm.edit(|gm| {
        gm.train();
        Ok(())
    })?;
    assert!(gm.submodule_as::<Scale>("scale")?.training);
    Ok(())
}

/// `GraphModule::eliminate_dead_code` changes the inner graphs first; the outer one breaks its
/// rules.
#[test]
fn a_failing_edit_of_nested_graph_modules_leaves_all_of_them() -> Result<()> {
    let mut gm = sample()?;
    let mut graph = gm.graph_mut();
    let (abs, neg) = (graph.find_name("abs"), graph.find_name("neg"));
    let [Some(abs), Some(neg)] = [abs, neg].map(|node| node.map(|node| node.id())) else {
        return Err(Error::msg("the sample has both"));
    };
    graph.node_mut(neg)?.prepend(abs)?;
    drop(graph);
    let before = module_state(&gm);
    assert!(gm.eliminate_dead_code().is_err());
    assert_eq!(module_state(&gm), before);

    // One inner graph breaks its rules, and another one was changed before.
    let mut broken = symbolic_trace(traced!(|x: Float| (x * 3.0)? - 1.0))?;
    let mut graph = broken.graph_mut();
    let (mul, sub) = (graph.find_name("mul"), graph.find_name("sub"));
    let [Some(mul), Some(sub)] = [mul, sub].map(|node| node.map(|node| node.id())) else {
        return Err(Error::msg("the inner graph has both"));
    };
    graph.node_mut(mul)?.prepend(sub)?;
    drop(graph);
    let mut gm = sample()?;
    gm.add_submodule("last", broken)?;
    let before = module_state(&gm);
    assert!(gm.eliminate_dead_code().is_err());
    assert_eq!(module_state(&gm), before);

    let mut gm = sample()?;
    let before = module_state(&gm);
    let failed = gm.edit(|gm| {
        assert_eq!(gm.eliminate_dead_code()?, 3);
        assert!(inner_of(gm, "inner")?.graph().find_name("mul").is_none());
        fail(gm)
    });
    assert!(failed.is_err());
    assert_eq!(module_state(&gm), before);

    // After the edits all of them work as before.
    assert_eq!(gm.eliminate_dead_code()?, 3);
    assert_eq!(gm.eliminate_dead_code()?, 0);
    assert_eq!(gm.forward::<f64>((1.0, 1.0))?, 12.0);
    Ok(())
}

#[test]
fn inner_observers_follow_an_edit_of_the_outer_module_and_back() -> Result<()> {
    let mut inner = symbolic_trace(traced!(|x: Float| {
        let _unused = (x * 3.0)?;
        x - 1.0
    }))?;
    let mirror = Mirror::of(&mut inner.graph_mut());
    let mut gm = symbolic_trace(traced!(|x: Float| Ok(x)))?;
    add_call(&mut gm, "inner", inner)?;
    let failed = gm.edit(|gm| {
        gm.eliminate_dead_code()?;
        mirror.check(inner_of(gm, "inner")?.graph());
        fail(gm)
    });
    assert!(failed.is_err());
    mirror.check(inner_of(&gm, "inner")?.graph());
    assert_eq!(gm.eliminate_dead_code()?, 1);
    mirror.check(inner_of(&gm, "inner")?.graph());
    Ok(())
}

#[test]
fn a_panic_inside_of_an_edit_is_taken_back() -> Result<()> {
    let mut gm = sample()?;
    let mirror = Mirror::of(&mut gm.graph_mut());
    let before = module_state(&gm);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        gm.edit(|gm| {
            gm.eliminate_dead_code()?;
            gm.train();
            let mut graph = gm.graph_mut();
            let x = graph.placeholders().next().map(|node| node.id());
            let mut place = graph.inserting_before(x)?;
            let mut place = place.in_pass("panicking");
            place.placeholder("w")?;
            let mut cursor = place.cursor();
            cursor.advance();
            panic!("{:?}", cursor.len());
            #[allow(unreachable_code, reason = "the type of the result")]
            Ok(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(module_state(&gm), before);
    mirror.check(gm.graph());
    assert_eq!(gm.forward::<f64>((1.0, 1.0))?, 12.0);
    Ok(())
}

#[test]
fn another_graph_or_module_that_is_assigned_is_taken_back() -> Result<()> {
    let other = || symbolic_trace(traced!(|z: Float| z * 7.0));
    let mut gm = sample()?;
    let mirror = Mirror::of(&mut gm.graph_mut());
    let before = module_state(&gm);

    let failed = gm.edit(|gm| {
        gm.graph_mut().placeholder("z")?;
        *gm.graph_mut() = other()?.graph().clone();
        assert_eq!(gm.forward::<f64>(2.0)?, 14.0);
        fail(gm)
    });
    assert!(failed.is_err());
    assert_eq!(module_state(&gm), before);
    mirror.check(gm.graph());

    let failed = gm.edit(|gm| {
        gm.eliminate_dead_code()?;
        gm.edit(|gm| {
            gm.delete_submodule("scale");
            *gm = other()?;
            Ok(())
        })?;
        assert_eq!(gm.forward::<f64>(2.0)?, 14.0);
        gm.graph_mut().placeholder("w")?;
        fail(gm)
    });
    assert!(failed.is_err());
    assert_eq!(module_state(&gm), before);
    mirror.check(gm.graph());

    // A clone is changed and replaces the graph.
    let failed = gm.edit(|gm| {
        let mut copy = gm.graph().clone();
        copy.eliminate_dead_code()?;
        *gm.graph_mut() = copy;
        fail(gm)
    });
    assert!(failed.is_err());
    assert_eq!(module_state(&gm), before);
    mirror.check(gm.graph());

    gm.edit(|gm| {
        *gm = other()?;
        Ok(())
    })?;
    assert_eq!(gm.forward::<f64>(2.0)?, 14.0);
    Ok(())
}

#[test]
fn a_graph_that_is_moved_out_and_kept_is_told() -> Result<()> {
    let mut gm = sample()?;
    let mut kept = Graph::new();
    let failed = gm.edit(|gm| {
        std::mem::swap(&mut *gm.graph_mut(), &mut kept);
        fail(gm)
    });
    let error = failed.map_err(|e| e.to_string());
    assert_eq!(
        error,
        Err("no; the module could not be put back: the edit moved it out, and it is kept elsewhere; clone it instead".to_string())
    );
    // The graph that was moved out is whole, and the edit holds nothing of it.
    assert!(kept.lint().is_ok());
    let before = state(&kept);
    assert!(kept.edit(|graph| fail(graph.placeholder("p")?)).is_err());
    assert_eq!(state(&kept), before);
    Ok(())
}

/// The program matches the current graph and attributes, whatever was undone in between.
#[test]
fn what_runs_is_the_module_as_it_is() -> Result<()> {
    let mut gm = sample()?;
    assert_eq!(gm.forward::<f64>((1.0, 1.0))?, 12.0);
    for by in [5.0, 7.0] {
        let failed = gm.edit(|gm| {
            gm.set_submodule("scale", Scale::by(by))?;
            assert_eq!(gm.forward::<f64>((1.0, 1.0))?, 4.0 * by);
            gm.delete_submodule("inner");
            assert!(gm.forward::<f64>((1.0, 1.0)).is_err());
            fail(gm)
        });
        assert!(failed.is_err());
        assert_eq!(gm.forward::<f64>((1.0, 1.0))?, 12.0);
    }
    let neg = gm.graph().find_name("neg").map(|node| node.id());
    let neg = neg.ok_or_else(|| Error::msg("the sample negates"))?;
    for op in [operator::abs, operator::neg, operator::abs] {
        gm.graph_mut().node_mut(neg)?.set_op(Op::CallFunction(op))?;
        gm.recompile()?;
        let run: f64 = gm.interpret(&mut fx_core::run::PlainInterpreter, (1.0, 1.0))?;
        assert_eq!(gm.forward::<f64>((1.0, 1.0))?, run);
    }
    Ok(())
}
