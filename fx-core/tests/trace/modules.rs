//! Modules, their parameters and constants in a trace, leaves, and the source locations of nodes.

use fx_core::ir::{Args, Kwargs, Op};
use fx_core::module::Module;
use fx_core::prelude::*;
use fx_core::trace::{NoLeaves, TraceContext, Tracer};
use fx_core::value::NodeId;
use fx_core::{Module, operator};

use crate::support::modules::{Linear, Shift};
use crate::support::*;

#[trace]
pub(crate) fn placed(x: &Array) -> Result<Array> {
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
        assert!(location.file.ends_with("trace/modules.rs"), "{location}");
    }
    Ok(())
}

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

/// The graph contains the branch that the parameter's shape takes.
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
    // Rebuilt from its parts.
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
            .find_opcode(fx_core::ir::Opcode::CallModule)
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
        tag: fx_core::module::Tag,
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
                .is_some_and(|l| l.file.ends_with("trace/modules.rs"))
        );
    }
    trace(traced!(|x: &Array| x - 1.0)).map(drop)
}
