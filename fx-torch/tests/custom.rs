//! Operators of the user's own: leaves that name themselves, and functions that are registered for them.

use fx_nn::function_table;
use fx_nn::ir::Op;
use fx_nn::prelude::*;
use fx_torch::{Hierarchy, Loader, Opaque, Operator};

use crate::programs::{check, file};
use crate::support::by_position;

/// PyTorch's `shop::swish`.
#[wrap]
fn swish(x: &Tensor, by: f64) -> Result<Tensor> {
    x * ops::sigmoid(&(x * by)?)?
}

function_table! { Operator {
    function!(swish) => Operator::named("shop.swish").renamed("scale", "by"),
} }

/// PyTorch's `shop::halves`, as a module.
#[derive(Module, Clone)]
struct Halves {
    from: i64,
}

#[trace]
impl Halves {
    fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        Ok((x.sum(0)?, x.i((.., self.from..))?))
    }
}

#[test]
fn an_operator_is_a_registered_function_or_a_leaf() -> Result<()> {
    let path = file("custom.pt2");
    let support = fx_torch::support(&path)?;
    let missing: Vec<&str> = support.missing.keys().map(String::as_str).collect();
    assert_eq!(missing, ["torch.ops.shop.halves.default"]);

    for hierarchy in [Hierarchy::Flat, Hierarchy::Layers, Hierarchy::Modules] {
        let mut gm = Loader::new().hierarchy(hierarchy).load(&path)?;
        let x = Tensor::ones((3, 4))?;
        let error = gm.forward::<Value>(&x).map_err(|e| e.to_string());
        let error = error.err().unwrap_or_default();
        assert!(
            error.contains("fx has no operator `torch.ops.shop.halves.default`")
                && error.contains("small.py"),
            "{error}"
        );
        // It is saved as it is, and what its results are is known.
        let again = GraphModule::from_bytes(&gm.to_bytes()?)?;
        let leaf: &dyn std::any::Any = again.attributes().module("opaque.halves")?;
        let leaf = leaf.downcast_ref::<Opaque>().expect("the leaf is saved");
        assert_eq!(leaf.target(), "torch.ops.shop.halves.default");
        let rest = again
            .graph()
            .nodes()
            .find(|node| node.target().ends_with("exp"));
        let shape = rest.and_then(|node| node.meta::<fx_nn::ir::ValueMeta>()?.tensor().cloned());
        let shape = shape.map(|meta| {
            meta.shape
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        });
        assert_eq!(shape.expect("it is inferred")[1], "3");

        gm.replace_modules("opaque.halves", |_, _: &Opaque| Ok(Halves { from: 1 }))?;
        check(&gm, "custom", by_position)?;
        if hierarchy == Hierarchy::Modules {
            continue;
        }
        let called = gm.graph().nodes().any(
            |node| matches!(node.op(), Op::CallFunction(f) if f.path().ends_with("custom::swish")),
        );
        assert!(called, "{}", gm.graph());
    }
    Ok(())
}
