//! What torch.fx's own tests of tracing assert: leaves, constants, arguments, modules, places (`docs/torchfx-tests.md`).
//! Those about tensors' own operations are in `tests/goldens/tests/torchfx_trace.rs`.

#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "arguments are lent, as users write it"
)]

#[path = "torchfx_trace/arguments.rs"]
mod arguments;
#[path = "torchfx_trace/assertions.rs"]
mod assertions;
mod support;

use std::sync::atomic::Ordering;

use fx_core::prelude::*;
use fx_core::{Args, Kwargs, Module, NoLeaves, operator};
use support::modules::{Linear, Shift};
use support::*;

fn names(graph: &Graph) -> Vec<String> {
    graph.nodes().map(|n| n.name().to_string()).collect()
}

fn targets(graph: &Graph) -> Vec<String> {
    graph.nodes().map(|n| n.target().to_string()).collect()
}

fn x() -> Array {
    Array::vec(&[1.0, -2.0])
}

/// Runs a traced module and its original on the same input: equal to the last bit.
#[track_caller]
fn same(gm: &GraphModule, eager: Result<Array>, args: impl fx_core::IntoArgs) -> Result<()> {
    gm.graph().lint()?;
    assert_eq!(gm.forward::<Array>(args)?.to_vec()?, eager?.to_vec()?);
    Ok(())
}

#[track_caller]
fn refused<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error,
    }
}

// ---- wrap --------------------------------------------------------------------------------------

#[wrap(path = "rows::a_lifted_leaf")]
fn a_lifted_leaf(x: &Array, by: f64) -> Result<Array> {
    // Plain Rust: the truth of the numbers may decide.
    if x.to_vec()?.iter().sum::<f64>() > 0.0 {
        x * by
    } else {
        x - by
    }
}

#[trace]
fn calls_a_leaf(x: &Array) -> Result<Array> {
    let open = (x > -10.0)?;
    a_lifted_leaf(&(x * open)?, 2.0)? + 1.0
}

/// One node for the call, the same numbers, also when it is traced again.
#[test]
fn a_leaf_is_one_call() -> Result<()> {
    let gm = symbolic_trace(traced!(calls_a_leaf))?;
    assert_eq!(
        targets(gm.graph()),
        [
            "x",
            "fx_core::operator::gt",
            "fx_core::operator::mul",
            "rows::a_lifted_leaf",
            "fx_core::operator::add",
            "output"
        ]
    );
    same(&gm, calls_a_leaf(&x()), &x())
}

#[test]
fn a_leaf_called_at_once_is_one_node() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| a_lifted_leaf(x, 3.0)))?;
    assert_eq!(names(gm.graph()), ["x", "a_lifted_leaf", "output"]);
    same(&gm, a_lifted_leaf(&x(), 3.0), &x())
}

/// Running on symbolic values is tracing again, which is what a transformer does.
#[test]
fn a_leaf_stays_one_when_it_is_traced_again() -> Result<()> {
    let gm = symbolic_trace(traced!(calls_a_leaf))?;
    let transformed = symbolic_trace(&gm)?;
    assert_eq!(targets(transformed.graph()), targets(gm.graph()));
    same(&transformed, calls_a_leaf(&x()), &x())
}

#[test]
fn a_leaf_is_a_plain_function_outside_of_a_trace() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| a_lifted_leaf(x, 1.0)? * 3.0))?;
    assert_eq!(names(gm.graph()), ["x", "a_lifted_leaf", "mul", "output"]);
    // Outside a trace the function is what it was.
    assert_eq!(a_lifted_leaf(&x(), 1.0)?.to_vec()?, [0.0, -3.0]);
    Ok(())
}

/// A function that takes a module: the module's own call is the leaf.
#[test]
fn a_helper_that_takes_a_module_records_its_call() -> Result<()> {
    fn applied(layer: &dyn Module, x: &Array) -> Result<Array> {
        layer.forward::<Array>(x)
    }
    #[derive(Module)]
    struct Holder {
        layer: Linear,
    }
    #[trace]
    impl Holder {
        fn forward(&self, x: &Array) -> Result<Array> {
            applied(&self.layer, x)
        }
    }
    let root = Holder {
        layer: Linear::square(2, 2.0),
    };
    let gm = symbolic_trace(&root)?;
    assert_eq!(names(gm.graph()), ["x", "layer", "output"]);
    same(&gm, root.forward(&x()), &x())
}

#[test]
fn a_graph_with_a_leaf_traced_twice_again_prints_the_same() -> Result<()> {
    let gm = symbolic_trace(traced!(calls_a_leaf))?;
    let again = symbolic_trace(&symbolic_trace(&gm)?)?;
    assert_eq!(again.graph().to_string(), gm.graph().to_string());
    Ok(())
}

#[test]
fn a_traced_length_is_recorded_and_a_known_one_is_not() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| x * len(x)?))?;
    assert_eq!(names(gm.graph()), ["x", "len", "mul", "output"]);
    same(&gm, &x() * 2, &x())?;
    // A known length is known: nothing is recorded for it.
    let known = x();
    let gm = symbolic_trace(traced!(move |y: &Array| y * known.to_vec()?.len()))?;
    assert_eq!(names(gm.graph()), ["y", "mul", "output"]);
    Ok(())
}

#[wrap(path = "rows::sqrt")]
fn sqrt(n: Int) -> Result<Float> {
    match n.concrete() {
        Some(n) if n >= 0 => Ok((n as f64).sqrt().into()),
        _ => Err(Error::msg("the root of a negative number")),
    }
}

#[test]
fn a_leaf_of_numbers_is_recorded() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| x / sqrt(len(x)?)?))?;
    assert_eq!(names(gm.graph()), ["x", "len", "sqrt", "truediv", "output"]);
    let four = Array::vec(&[2.0; 4]);
    assert_eq!(gm.forward::<Array>(&four)?.to_vec()?, [1.0; 4]);
    Ok(())
}

/// A function of one's own library is a function like any other.
#[test]
fn functions_of_other_libraries_are_recorded_by_their_paths() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| Ok((
        split_sign(&x.relu()?)?,
        concat(&[x.clone(), x.clone()])?,
    ))))?;
    assert_eq!(targets(gm.graph())[..3], ["x", "relu", "array::split_sign"]);
    gm.graph().lint()
}

#[test]
fn an_impure_function_outlives_dead_code_and_runs() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| {
        record(x)?;
        x.relu()?;
        x * 2.0
    }))?;
    gm.eliminate_dead_code()?;
    assert_eq!(names(gm.graph()), ["x", "record", "mul", "output"]);
    let before = RECORDED.load(Ordering::SeqCst);
    gm.forward::<Array>(&x())?;
    assert!(RECORDED.load(Ordering::SeqCst) > before);
    Ok(())
}

// ---- places in the source ----------------------------------------------------------------------

#[trace]
fn placed(x: &Array) -> Result<Array> {
    let y = x.relu()?;
    y + 1.0
}

/// Each node is at the line that the user wrote, and no node is inside fx.
#[test]
fn places_are_the_users() -> Result<()> {
    let gm = symbolic_trace(traced!(placed))?;
    let of = |name: &str| {
        let node = gm.graph().find_name(name);
        node.and_then(|n| n.location().cloned())
    };
    let (relu, add) = (of("relu"), of("add"));
    let (relu, add) = relu
        .zip(add)
        .ok_or_else(|| Error::msg("both have places"))?;
    assert_eq!(relu.line + 1, add.line);
    for node in gm.graph().nodes() {
        let location = node.location().ok_or_else(|| Error::msg("a place"))?;
        assert!(location.file.ends_with("torchfx_trace.rs"), "{location}");
    }
    Ok(())
}

// ---- parameters --------------------------------------------------------------------------------

#[derive(Module)]
struct ByShape {
    param: Array,
}

#[trace]
impl ByShape {
    fn forward(&self, x: &Array) -> Result<Array> {
        // A parameter's shape is known while tracing: a plain branch.
        if self.param.shape()?[0] < 3 {
            x * &self.param
        } else {
            x.relu()
        }
    }
}

/// The branch that the parameter's shape takes is the one in the graph.
#[test]
fn a_parameters_shape_is_known() -> Result<()> {
    let small = ByShape {
        param: Array::vec(&[1.0, 2.0]),
    };
    let large = ByShape {
        param: Array::vec(&[1.0, 2.0, 3.0]),
    };
    assert_eq!(
        names(&Trace::new(&small).graph()?),
        ["x", "param", "mul", "output"]
    );
    assert_eq!(names(&Trace::new(&large).graph()?), ["x", "relu", "output"]);
    Ok(())
}

#[test]
fn a_parameter_of_an_inner_module_goes_by_its_path() -> Result<()> {
    #[derive(Module)]
    struct Outer {
        inner: Shift,
    }
    #[trace]
    impl Outer {
        fn forward(&self, x: &Array) -> Result<Array> {
            x + &self.inner.by
        }
    }
    let root = Outer {
        inner: Shift {
            by: x(),
            training: false,
        },
    };
    let gm = symbolic_trace(&root)?;
    assert_eq!(
        targets(gm.graph()),
        ["x", "inner.by", "fx_core::operator::add", "output"]
    );
    same(&gm, root.forward(&x()), &x())
}

#[test]
fn buffers_go_by_their_paths() -> Result<()> {
    #[derive(Module)]
    struct Inner {
        #[module(buffer)]
        tensor: Array,
    }
    #[derive(Module)]
    struct Outer {
        #[module(buffer)]
        tensor: Array,
        inner: Inner,
    }
    #[trace]
    impl Outer {
        fn forward(&self, x: &Array) -> Result<Array> {
            (x + &self.tensor)? * &self.inner.tensor
        }
    }
    let root = Outer {
        tensor: x(),
        inner: Inner { tensor: x() },
    };
    let gm = symbolic_trace(&root)?;
    assert_eq!(
        targets(gm.graph()),
        [
            "x",
            "tensor",
            "fx_core::operator::add",
            "inner.tensor",
            "fx_core::operator::mul",
            "output"
        ]
    );
    same(&gm, root.forward(&x()), &x())
}

#[test]
fn one_tensor_is_one_constant_and_two_are_two() -> Result<()> {
    let (one, other) = (x(), x());
    let gm = symbolic_trace(traced!(move |y: &Array| ((y + &one)? * &one)? - &other))?;
    assert_eq!(
        targets(gm.graph())
            .iter()
            .filter(|t| t.starts_with("_tensor_constant"))
            .collect::<Vec<_>>(),
        [
            "_tensor_constant0",
            "_tensor_constant0",
            "_tensor_constant1"
        ]
    );
    assert_eq!(gm.attributes().tensors.len(), 2);
    same(&gm, ((&x() + &x())? * &x())? - &x(), &x())
}

#[test]
fn a_tensor_made_while_tracing_is_a_constant() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| x + Array::vec(&[3.0, 4.0])))?;
    assert_eq!(
        names(gm.graph()),
        ["x", "_tensor_constant0", "add", "output"]
    );
    same(&gm, &x() + Array::vec(&[3.0, 4.0]), &x())
}

// ---- modules -----------------------------------------------------------------------------------

#[derive(Module)]
struct Net {
    first: Linear,
    layers: Vec<Linear>,
    scale: Array,
}

impl Net {
    fn new() -> Self {
        Net {
            first: Linear::square(2, 2.0),
            layers: vec![Linear::square(2, 3.0), Linear::square(2, -1.0)],
            scale: Array::vec(&[0.5, 0.25]),
        }
    }
}

#[trace]
impl Net {
    fn forward(&self, x: &Array) -> Result<(Array, Array)> {
        let mut h = self.first.forward(x)?;
        for layer in &self.layers {
            h = layer.forward(&h)?;
        }
        let (positive, negative) = split_sign(&(h * &self.scale)?)?;
        Ok((positive.relu()?, (negative + x)?))
    }
}

#[test]
fn a_module_of_modules_is_traced_run_and_made_again_from_its_parts() -> Result<()> {
    let root = Net::new();
    let gm = symbolic_trace(&root)?;
    assert_eq!(
        names(gm.graph()),
        [
            "x",
            "first",
            "layers_0",
            "layers_1",
            "scale",
            "mul",
            "split_sign",
            "getitem",
            "getitem_1",
            "relu",
            "add",
            "output"
        ]
    );
    let (a, b): (Array, Array) = gm.forward(&x())?;
    let (c, d) = root.forward(&x())?;
    assert_eq!((a.to_vec()?, b.to_vec()?), (c.to_vec()?, d.to_vec()?));
    // Made again from its parts.
    let again = GraphModule::new(gm.attributes().clone(), gm.graph().clone(), "Again")?;
    let (e, _): (Array, Array) = again.forward(&x())?;
    assert_eq!(e.to_vec()?, a.to_vec()?);
    Ok(())
}

#[test]
fn without_leaves_no_module_is_called() -> Result<()> {
    let root = Net::new();
    let gm = Trace::new(&root).tracer(NoLeaves).graph_module()?;
    assert!(
        gm.graph()
            .find_opcode(fx_core::Opcode::CallModule)
            .is_empty()
    );
    assert_eq!(
        gm.forward::<(Array, Array)>(&x())?.0.to_vec()?,
        root.forward(&x())?.0.to_vec()?
    );
    Ok(())
}

#[test]
fn a_function_is_traced() -> Result<()> {
    let gm = symbolic_trace(traced!(placed))?;
    same(&gm, placed(&x()), &x())
}

#[test]
fn a_functions_name_is_the_class_name() -> Result<()> {
    #[trace]
    fn forward_but_otherwise(x: &Array) -> Result<Array> {
        x.relu()
    }
    let gm = symbolic_trace(traced!(forward_but_otherwise))?;
    assert_eq!(gm.class_name(), "forward_but_otherwise");
    same(&gm, forward_but_otherwise(&x()), &x())
}

/// An attribute below `#[trace]` stays on the method.
#[test]
fn attributes_below_trace_stay_on_the_method() -> Result<()> {
    #[derive(Module, Default)]
    struct Decorated {
        tag: fx_core::Tag,
    }
    #[trace]
    impl Decorated {
        #[inline(never)]
        #[doc = "Documented."]
        fn forward(&self, x: &Array) -> Result<Array> {
            let value = (x + 1.0)?;
            value.relu()
        }
    }
    let root = Decorated::default();
    same(&symbolic_trace(&root)?, root.forward(&x()), &x())
}

/// A graph module that a tracer keeps whole is called, also inside another traced module.
#[test]
fn a_graph_module_can_be_a_leaf() -> Result<()> {
    #[derive(Module)]
    struct Outer {
        inner: GraphModule,
    }
    #[trace]
    impl Outer {
        fn forward(&self, x: &Array) -> Result<Array> {
            self.inner.forward::<Array>(x)? + 1.0
        }
    }
    struct GraphsAreLeaves;
    impl Tracer for GraphsAreLeaves {
        fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, path: &str) -> bool {
            path == "inner"
        }
    }
    let root = Outer {
        inner: symbolic_trace(traced!(placed))?,
    };
    let gm = Trace::new(&root).tracer(GraphsAreLeaves).graph_module()?;
    assert_eq!(names(gm.graph()), ["x", "inner", "add", "output"]);
    same(&gm, root.forward(&x()), &x())?;
    let open = symbolic_trace(&root)?;
    assert_eq!(names(open.graph()), ["x", "relu", "add", "add_1", "output"]);
    same(&open, root.forward(&x()), &x())
}

struct NoAdding;

impl Tracer for NoAdding {
    fn create_node(
        &self,
        cx: &TraceContext,
        op: Op,
        args: Args,
        kwargs: Kwargs,
        name: Option<&str>,
    ) -> Result<NodeId> {
        let refused =
            op == Op::CallFunction(operator::add) || op == Op::CallMethod("record".into());
        if refused {
            return Err(Error::msg(format_args!("{op:?} is not exported")));
        }
        cx.insert(op, args, kwargs, name)
    }
}

#[test]
fn a_tracer_refuses_operations_by_name() -> Result<()> {
    let trace = |f| Trace::new(f).tracer(NoAdding).graph();
    for f in [
        traced!(|x: &Array| x + 1.0),
        traced!(|x: &Array| x.record()),
    ] {
        let error = refused(trace(f));
        assert!(error.to_string().contains("is not exported"), "{error}");
        assert!(
            error
                .location()
                .is_some_and(|l| l.file.ends_with("torchfx_trace.rs"))
        );
    }
    trace(traced!(|x: &Array| x - 1.0)).map(drop)
}
