//! Constant folding.

use fx_nn::ir::{NodeRef, Op, ValueMeta};
use fx_nn::passes::{FoldConstants, FoldedConstants};
use fx_nn::prelude::*;

use super::{count, keeps_numbers};

/// Two parameters, one of them in a module inside.
#[derive(Module, Clone, Debug)]
struct Inner {
    attr: Tensor,
}

#[derive(Module, Clone, Debug)]
struct Two {
    a: Tensor,
    b: Tensor,
    inner: Inner,
}

fn parameter(value: f32) -> Result<Tensor> {
    Tensor::from_vec(vec![value, value + 1.0], 2)?.into_parameter()
}

macro_rules! module {
    ($name:ident, |$self:ident, $($arg:ident),+| -> $out:ty $body:block) => {
        #[derive(Module, Clone, Debug)]
        struct $name {
            two: Two,
        }
        #[trace]
        impl $name {
            #[allow(dead_code, reason = "it is traced alone")]
            fn forward(&$self, $($arg: &Tensor),+) -> Result<$out> $body
        }
        impl $name {
            fn traced() -> Result<GraphModule> {
                let two = Two { a: parameter(1.0)?, b: parameter(3.0)?, inner: Inner { attr: parameter(5.0)? } };
                symbolic_trace(&$name { two })
            }
        }
    };
}

fn x() -> Result<Tensor> {
    Tensor::from_vec(vec![0.5f32, -0.25], 2)
}

/// The parameters and buffers that the graph reads.
fn read(gm: &GraphModule) -> Vec<&str> {
    let nodes = gm.graph().nodes();
    nodes
        .filter(|n| matches!(n.op(), Op::GetAttr(_)))
        .map(NodeRef::target)
        .collect()
}

/// Folds at once, and in another copy lazily; both keep the numbers.
fn folded(gm: &GraphModule, inputs: impl fx_nn::trace::IntoArgs) -> Result<GraphModule> {
    let call = inputs.into_args();
    let expected: Value = gm.forward(call.clone())?;
    let mut at_once = gm.clone();
    assert!(at_once.apply(&FoldConstants::new())?.changed);
    let mut lazy = gm.clone();
    assert!(lazy.apply(&FoldConstants::new().lazily())?.changed);
    assert!(!is_folded(&lazy)?);
    for module in [&at_once, &lazy, &lazy] {
        let found: Value = module.forward(call.clone())?;
        let (found, expected) = (super::tensors(found), super::tensors(expected.clone()));
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(&expected) {
            assert_eq!(a.to_vec()?, b.to_vec()?);
        }
    }
    assert!(is_folded(&lazy)?);
    // Nothing is left to fold.
    assert!(!at_once.apply(&FoldConstants::new())?.changed);
    Ok(at_once)
}

fn is_folded(gm: &GraphModule) -> Result<bool> {
    let module = gm.submodule("_folded")?;
    let folded = module.downcast_ref::<FoldedConstants>();
    Ok(folded
        .ok_or_else(|| Error::msg("it is what computes once"))?
        .is_folded())
}

#[test]
fn a_folded_tensor_has_a_name_of_its_own() -> Result<()> {
    module!(OneAttr, |self, x| -> Tensor {
        let sum = (&self.two.a + &self.two.a)?;
        (x - &sum)? * &sum
    });
    let mut gm = OneAttr::traced()?;
    gm.set_buffer("_folded_0", &Tensor::ones(1)?)?;
    let gm = folded(&gm, &x()?)?;
    assert_eq!(read(&gm), ["_folded_1"]);
    Ok(())
}

#[test]
fn an_input_behind_calls_is_no_hindrance() -> Result<()> {
    module!(Reordered, |self, x| -> Tensor { x + (&self.two.a * 2.0)? });
    let mut gm = Reordered::traced()?;
    // The input stands behind the calls.
    let find = |gm: &GraphModule, name: &str| gm.graph().find_name(name).map(NodeRef::id);
    let (Some(x_node), Some(mul)) = (find(&gm, "x"), find(&gm, "mul")) else {
        return Err(Error::msg("both are there"));
    };
    gm.graph_mut().node_mut(mul)?.append(x_node)?;
    let gm = folded_unlinted(gm)?;
    assert_eq!(read(&gm), ["_folded_0"]);
    Ok(())
}

/// An input behind calls is put in front by a sort, which lint asks for.
fn folded_unlinted(mut gm: GraphModule) -> Result<GraphModule> {
    if gm.lint().is_err() {
        gm.graph_mut().sort()?;
    }
    folded(&gm, &x()?)
}

#[test]
fn two_parameters_become_one_tensor() -> Result<()> {
    module!(TwoAttr, |self, x| -> Tensor {
        x + (&self.two.a + &self.two.b)?
    });
    let gm = folded(&TwoAttr::traced()?, &x()?)?;
    assert_eq!((read(&gm), count(&gm, "add")), (vec!["_folded_0"], 1));
    // The parameters are removed with the nodes that read them.
    assert!(gm.parameter("two.a").is_err());
    Ok(())
}

#[test]
fn a_parameter_that_is_used_otherwise_stays() -> Result<()> {
    module!(ThreeInput, |self, x, y| -> Tensor {
        let sum = (&self.two.a + &self.two.b)?;
        (x + &sum)? * ((y - &sum)? + &self.two.a)?
    });
    let x = x()?;
    let gm = folded(&ThreeInput::traced()?, (&x, &x))?;
    assert_eq!(read(&gm), ["two.a", "_folded_0"]);
    Ok(())
}

#[test]
fn several_results_are_several_tensors() -> Result<()> {
    module!(Several, |self, x| -> Tensor {
        let sum = (&self.two.a + &self.two.b)?;
        let transposed = self.two.b.unsqueeze(0)?.transpose(0, 1)?;
        ((x + sum)? * transposed)? + 1.0
    });
    let gm = folded(&Several::traced()?, &x()?)?;
    assert_eq!(read(&gm), ["_folded_0", "_folded_1"]);
    Ok(())
}

#[test]
fn a_parameter_of_an_inner_module_is_folded() -> Result<()> {
    module!(Deep, |self, x| -> Tensor {
        x + (&self.two.inner.attr * 3.0)?
    });
    assert_eq!(read(&folded(&Deep::traced()?, &x()?)?), ["_folded_0"]);
    Ok(())
}

#[test]
fn a_parameter_of_an_inner_module_may_stay() -> Result<()> {
    module!(OfModule, |self, x| -> Tensor {
        let y = (&self.two.inner.attr + &self.two.a)?;
        (x + y)? * &self.two.inner.attr
    });
    let gm = folded(&OfModule::traced()?, &x()?)?;
    // A value that is used unchanged stays a parameter.
    assert_eq!(read(&gm), ["two.inner.attr", "_folded_0"]);
    assert!(gm.parameter("two.inner.attr").is_ok());
    Ok(())
}

#[test]
fn unused_inputs_stay() -> Result<()> {
    module!(Unused, |self, x, y| -> Tensor {
        let _ = y;
        x + (&self.two.a + 1.0)?
    });
    let x = x()?;
    let gm = folded(&Unused::traced()?, (&x, &x))?;
    assert_eq!(gm.graph().placeholders().count(), 2);
    Ok(())
}

#[test]
fn the_rest_keeps_its_shapes() -> Result<()> {
    module!(Meta, |self, x| -> Tensor {
        (x + (&self.two.a + 1.0)?)?.relu()
    });
    let mut gm = Meta::traced()?;
    gm.propagate_shapes(&x()?)?;
    let gm = folded(&gm, &x()?)?;
    let relu = gm
        .graph()
        .find_name("relu")
        .and_then(|node| node.meta::<ValueMeta>());
    assert_eq!(
        relu.map(ValueMeta::to_string).as_deref(),
        Some("float32[2]")
    );
    Ok(())
}

#[test]
fn a_call_of_a_layer_keeps_its_path() -> Result<()> {
    #[derive(Module, Clone, Debug)]
    struct WithLayer {
        a: Tensor,
        layers: nn::Sequential,
    }
    #[trace]
    impl WithLayer {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.layers.forward(&(x + (&self.a + 1.0)?)?)
        }
    }
    let layers = nn::Sequential::new().push(nn::ReLU::new());
    let gm = symbolic_trace(&WithLayer {
        a: parameter(1.0)?,
        layers,
    })?;
    let gm = folded(&gm, &x()?)?;
    assert_eq!(
        gm.graph()
            .find_nodes(&Op::CallModule("layers.0".into()))
            .len(),
        1
    );
    Ok(())
}

#[test]
fn a_dict_of_results_is_kept() -> Result<()> {
    module!(InDict, |self, x| -> IndexMap<String, Tensor> {
        Ok([("out".to_string(), (x + (&self.two.a + 1.0)?)?)]
            .into_iter()
            .collect())
    });
    folded(&InDict::traced()?, &x()?).map(drop)
}

#[test]
fn a_folded_tensor_may_be_a_result() -> Result<()> {
    module!(TwoOut, |self, x| -> (Tensor, Tensor) {
        let y = (&self.two.a + &self.two.b)?;
        Ok(((x + &y)?, y))
    });
    assert_eq!(read(&folded(&TwoOut::traced()?, &x()?)?), ["_folded_0"]);
    Ok(())
}

#[test]
fn a_folded_tensor_may_be_one_of_three_results() -> Result<()> {
    module!(ThreeOut, |self, x| -> (Tensor, Tensor, Tensor) {
        let y = (&self.two.a + &self.two.b)?;
        Ok(((x + &y)?, (x * &y)?, y))
    });
    assert_eq!(read(&folded(&ThreeOut::traced()?, &x()?)?), ["_folded_0"]);
    Ok(())
}

#[test]
fn what_depends_on_the_input_is_in_the_graph_itself() -> Result<()> {
    module!(NonConst, |self, x| -> Tensor {
        let y = (&self.two.a + 1.0)?;
        ((x + y)?.relu()? * 2.0)? + 1.0
    });
    let gm = folded(&NonConst::traced()?, &x()?)?;
    // Nodes that depend on the input are in the graph itself, with no module around it.
    assert!(
        gm.graph()
            .nodes()
            .all(|node| !matches!(node.op(), Op::CallModule(_)))
    );
    Ok(())
}

#[test]
fn what_does_not_depend_on_constants_stays_beside_it() -> Result<()> {
    module!(NonConstTwo, |self, x| -> (Tensor, Tensor) {
        let y = (&self.two.a + 1.0)?;
        Ok(((x + y)?, (x * 2.0)?))
    });
    folded(&NonConstTwo::traced()?, &x()?).map(drop)
}

#[test]
fn a_layer_with_a_constant_input_is_folded() -> Result<()> {
    #[derive(Module, Clone, Debug)]
    struct OfLinear {
        a: Tensor,
        linear: nn::Linear,
    }
    #[trace]
    impl OfLinear {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            x + self.linear.forward(&self.a)?
        }
    }
    let model = OfLinear {
        a: parameter(1.0)?,
        linear: nn::Linear::new(2, 2)?,
    };
    let gm = folded(&symbolic_trace(&model)?, &x()?)?;
    assert_eq!(read(&gm), ["_folded_0"]);
    // The layer was used nowhere else.
    assert!(gm.submodule("linear").is_err());
    let folded = gm.buffer("_folded_0")?;
    let folded = folded.downcast_ref::<Tensor>();
    let tracks = folded.map(|t| t.candle().map(candle_core::Tensor::track_op));
    assert!(!tracks.transpose()?.unwrap_or(true), "no gradient is kept");
    Ok(())
}

#[test]
fn a_list_and_an_item_of_it_are_folded_together() -> Result<()> {
    #[wrap]
    fn sum_of(parts: &[Tensor], x: &Tensor) -> Result<Tensor> {
        parts.iter().try_fold(x.clone(), |sum, part| sum + part)
    }
    module!(Parts, |self, x| -> Tensor {
        let parts = self.two.a.chunk(2, 0)?;
        let first = parts.get(0)?;
        sum_of(&parts.unpack::<2>()?, x)? + first
    });
    let gm = folded(&Parts::traced()?, &x()?)?;
    assert_eq!(count(&gm, "getitem"), 0);
    Ok(())
}

#[test]
fn what_draws_is_not_folded_and_what_is_skipped_is_left() -> Result<()> {
    module!(Draws, |self, x| -> Tensor {
        let noise = (ops::rand(2, None)? + &self.two.a)?;
        (x + noise)? + (&self.two.a * 2.0)?
    });
    let mut gm = Draws::traced()?;
    gm.apply(&FoldConstants::new())?;
    assert_eq!((count(&gm, "rand"), count(&gm, "mul")), (1, 0));

    let mut gm = Draws::traced()?;
    let skip = FoldConstants::new().skip(|node| node.target().ends_with("::mul"));
    assert!(!gm.apply(&skip)?.changed);
    Ok(())
}

#[test]
fn a_tensor_that_an_impure_call_is_given_is_no_constant() -> Result<()> {
    /// May change its argument.
    #[wrap(impure)]
    fn visit(count: &Tensor) -> Result<Tensor> {
        Ok(count.clone())
    }
    module!(Counts, |self, x| -> Tensor {
        visit(&self.two.a)?;
        x + (&self.two.a * 2.0)?
    });
    assert!(!Counts::traced()?.apply(&FoldConstants::new())?.changed);
    Ok(())
}

#[test]
fn a_lazily_folded_module_is_saved_unfolded_and_follows_new_weights() -> Result<()> {
    module!(Lazy, |self, x| -> Tensor {
        x + (&self.two.a + &self.two.b)?
    });
    let mut gm = Lazy::traced()?;
    let expected: Tensor = gm.forward(&x()?)?;
    gm.apply(&FoldConstants::new().lazily())?;
    gm.forward::<Tensor>(&x()?)?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert!(!is_folded(&loaded)?);
    assert_eq!(
        loaded.forward::<Tensor>(&x()?)?.to_vec()?,
        expected.to_vec()?
    );
    assert_eq!(loaded.graph().to_string(), gm.graph().to_string());
    Ok(())
}

#[test]
fn numbers_are_folded_into_literals() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let n = (Int::from(2) + Int::from(3))?;
        x * n
    }))?;
    let x = x()?;
    let _ = keeps_numbers(&mut gm, &FoldConstants::new(), &x)?;
    assert_eq!(count(&gm, "mul"), 1);
    Ok(())
}
