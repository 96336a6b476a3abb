//! Graph modules as modules: traced again, nested, and called from traced code.

use fx_core::ir::Opcode;
use fx_core::module::Module;
use fx_core::prelude::*;
use fx_core::trace::{TraceContext, Tracer};

use crate::support::modules::{Block, Linear, Tied};
use crate::support::*;
use crate::trace::{lines, source_at};

fn retrace(gm: &GraphModule) -> Result<GraphModule> {
    let again = symbolic_trace(gm)?;
    assert_eq!(again.graph().to_string(), gm.graph().to_string());
    Ok(again)
}

#[test]
fn a_graph_traced_again_is_the_same_graph() -> Result<()> {
    let block = Block::new(2);
    let gm = symbolic_trace(&block)?;
    let again = retrace(&retrace(&gm)?)?;
    let x = Array::vec(&[-3.0, 5.0]);
    assert_eq!(
        again.forward::<Array>(&x)?.to_vec()?,
        block.forward(&x)?.to_vec()?
    );
    retrace(&symbolic_trace(&Tied::new(2))?)?;
    let constant = Array::vec(&[1.0, 2.0]);
    retrace(&symbolic_trace(traced!(move |x: &Array, y: &Array| {
        let (a, b) = split_sign(&(x + &constant)?)?;
        let joined = concat(&[a, b.scale(3.0)?, noise(2)?, record(y)?])?;
        Ok((joined, len(y)?, vec![constant.clone()]))
    }))?)?;
    Ok(())
}

#[test]
fn a_graph_traced_again_keeps_source_locations() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array| (x + 1.0)?.scale(3.0)))?;
    let again = retrace(&gm)?;
    for name in ["add", "scale"] {
        let (old, new) = (node(gm.graph(), name)?, node(again.graph(), name)?);
        assert!(source_at(old)?.starts_with(if name == "add" {
            "(x + 1.0)"
        } else {
            "scale(3.0)"
        }));
        assert_eq!(new.location(), old.location(), "of %{name}");
    }
    Ok(())
}

#[test]
fn a_graph_traced_again_keeps_module_stacks() -> Result<()> {
    let gm = symbolic_trace(&Block::new(2))?;
    let again = retrace(&gm)?;
    let innermost = |gm: &GraphModule| -> Result<Option<String>> {
        let path = node(gm.graph(), "relu")?
            .module_stack()
            .next()
            .map(|s| s.path.to_string());
        Ok(path)
    };
    assert_eq!(innermost(&gm)?.as_deref(), Some("boxed"));
    assert_eq!(innermost(&again)?.as_deref(), Some("boxed"));
    Ok(())
}

#[test]
fn a_method_that_two_types_have_is_traced_again() -> Result<()> {
    let of_array = symbolic_trace(traced!(|x: &Array| x.repeat(3)))?;
    let of_text = symbolic_trace(traced!(|x: &Text| x.repeat(3)))?;
    assert_eq!(
        of_array.forward::<Array>(&Array::vec(&[2.0]))?.to_vec()?,
        [2.0; 3]
    );
    let text: Text = of_text.forward(&Text::Data("ab".into()))?;
    assert!(matches!(text, Text::Data(t) if t == "ababab"));
    retrace(&of_array)?;
    retrace(&of_text)?;
    Ok(())
}

#[derive(Module)]
struct Holder {
    inner: GraphModule,
    boxed: Box<dyn Module>,
}

#[trace]
impl Holder {
    fn forward(&self, x: &Array) -> Result<Array> {
        let h: Array = self.inner.forward(x)?;
        Forward::forward(&*self.boxed, &h)
    }
}

fn holder() -> Result<Holder> {
    Ok(Holder {
        inner: symbolic_trace(&Tied::new(2))?,
        boxed: Box::new(symbolic_trace(&Linear::square(2, 2.0))?),
    })
}

#[test]
fn a_graph_module_inside_a_module_is_traced_through() -> Result<()> {
    let root = holder()?;
    let gm = symbolic_trace(&root)?;
    assert_eq!(
        names(gm.graph()),
        [
            "x",
            "inner_a",
            "inner_a_1",
            "inner_p",
            "add",
            "mul",
            "boxed_weight",
            "boxed_bias",
            "linear",
            "output"
        ]
    );
    let targets: Vec<&str> = gm.graph().nodes().map(|n| n.target()).collect();
    assert_eq!(
        (targets[1], targets[3], targets[6]),
        ("inner.a", "inner.p", "boxed.weight")
    );
    let x = Array::vec(&[1.0, 2.0]);
    assert_eq!(
        gm.forward::<Array>(&x)?.to_vec()?,
        root.forward(&x)?.to_vec()?
    );
    retrace(&gm)?;
    Ok(())
}

struct Everything;

impl Tracer for Everything {
    fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, _: &str) -> bool {
        true
    }
}

#[test]
fn a_tracer_decides_about_graph_modules_too() -> Result<()> {
    let root = holder()?;
    let gm = Trace::new(&root).tracer(Everything).graph_module()?;
    assert_eq!(
        lines(gm.graph())[1..],
        [
            "%inner : [num_users=1] = call_module[target=inner](args = (%x,), kwargs = {})",
            "%boxed : [num_users=1] = call_module[target=boxed](args = (%inner,), kwargs = {})",
            "return %boxed",
        ]
    );
    let x = Array::vec(&[1.0, 2.0]);
    assert_eq!(
        gm.forward::<Array>(&x)?.to_vec()?,
        root.forward(&x)?.to_vec()?
    );
    Ok(())
}

#[test]
fn nodes_of_an_inner_graph_module_are_recorded_inside_it() -> Result<()> {
    let graph = Trace::new(&holder()?).graph()?;
    let stack = |name: &str| -> Result<Vec<String>> {
        Ok(node(&graph, name)?
            .module_stack()
            .map(|s| s.path.to_string())
            .collect())
    };
    assert!(
        stack("linear")?.contains(&"boxed".to_string()),
        "{:?}",
        stack("linear")?
    );
    assert!(
        stack("mul")?.contains(&"inner".to_string()),
        "{:?}",
        stack("mul")?
    );
    Ok(())
}

#[test]
fn a_graph_module_called_on_a_traced_value_is_recorded() -> Result<()> {
    let inner = symbolic_trace(traced!(|x: &Array| x.scale(3.0)))?;
    let gm = symbolic_trace(traced!(move |x: &Array| {
        let y: Array = inner.forward(&x.relu()?)?;
        -y
    }))?;
    assert_eq!(names(gm.graph()), ["x", "relu", "scale", "neg", "output"]);
    assert!(gm.graph().nodes().all(|n| n.opcode() != Opcode::CallModule));
    Ok(())
}

#[test]
fn a_nested_graph_module_shows_its_parameters() -> Result<()> {
    let root = holder()?;
    let parameters: Vec<String> = root.named_parameters().into_keys().collect();
    assert_eq!(
        parameters,
        [
            "inner.a.weight",
            "inner.a.bias",
            "inner.p",
            "boxed.weight",
            "boxed.bias"
        ]
    );
    Ok(())
}
