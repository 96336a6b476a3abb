//! `code()`: the Rust that a person would write for a graph.

use fx_core::emit::CodeGen;
use fx_core::prelude::*;
use fx_core::trace::CallArgs;
use fx_core::{Module, operator};
use insta::assert_snapshot;

use crate::run::mixture;
use crate::support::modules::{Block, Linear};
use crate::support::*;

#[test]
fn a_modules_code_reads_as_written_by_hand() -> Result<()> {
    assert_eq!(
        symbolic_trace(&Block::new(2))?.code(),
        "\
// does not compile as it stands: `second` is an `Option`, and no field that can be named; `to_folder` writes a crate \
that does, or says what is in its way
pub fn forward(&self, x: &Array) -> Result<Array> {
    let first = self.first.forward(x)?;
    let second = self.second.forward(&first)?;  drop(first);
    // layers.0: Shift
    let layers_0_by = &self.layers[0].by;
    let add = (&second + layers_0_by)?;  drop(second);
    // layers.1: Shift
    let layers_1_by = &self.layers[1].by;
    let add_1 = (&add + layers_1_by)?;  drop(add);
    // Block
    let shared = self.shared.forward(&add_1)?;  drop(add_1);
    let mean = &self.mean;
    let sub = (&shared - mean)?;  drop(shared);
    // boxed: Activation
    let relu = sub.relu()?;  drop(sub);
    Ok(relu)
}
"
    );
    Ok(())
}

#[test]
fn calls_have_their_defaults_written_out_and_reserved_names_changed() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array, r#type: Float| {
        let y = (!relu(&(x * r#type)?)?)?;
        y.scale(2.0)?.scale(f64::INFINITY)
    }))?;
    assert_eq!(
        gm.code(),
        "\
pub fn forward(&self, x: &Array, type_1: Float) -> Result<Array> {
    let mul = (x * type_1)?;
    let relu = array::relu(&mul)?;  drop(mul);
    let invert = (!&relu)?;  drop(relu);
    let scale = invert.scale(2.0)?;  drop(invert);
    let scale_1 = scale.scale(f64::INFINITY)?;  drop(scale);
    Ok(scale_1)
}
"
    );
    Ok(())
}

#[test]
fn a_list_of_values_does_not_take_what_is_used_later() -> Result<()> {
    // `mul` is in the list and freed after it: it is copied.
    assert_snapshot!(symbolic_trace(traced!(mixture))?.code(), @"
    pub fn forward(&self, x: &Array, y: &Array, #[default(1.5)] by: Float) -> Result<Array> {
        let sub = (x - y)?;
        let split_sign = array::split_sign(&sub)?;  drop(sub);
        let getitem = split_sign.0.clone();
        let getitem_1 = split_sign.1.clone();  drop(split_sign);
        let mul = (&getitem * by)?;  drop(getitem);
        let scale = getitem_1.scale(3.0)?;  drop(getitem_1);
        let concat = array::concat(&[mul.clone(), scale.clone()])?;  drop(mul); drop(scale);
        Ok(concat)
    }
    ");
    let code = symbolic_trace(traced!(|x: &Array| {
        let y = x.relu()?;
        let z = concat(&[y.clone(), y.clone()])?;
        concat(&[y, z])
    }))?
    .code();
    // `relu` is used by the next line.
    assert_snapshot!(code, @"
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let relu = x.relu()?;
        let concat = array::concat(&[relu.clone(), relu.clone()])?;
        let concat_1 = array::concat(&[relu.clone(), concat.clone()])?;  drop(relu); drop(concat);
        Ok(concat_1)
    }
    ");
    Ok(())
}

#[derive(Module)]
struct Scaled {
    layer: Scale,
}

#[derive(Module)]
struct Scale {
    offset: Array,
}

#[trace(leaf)]
impl Scale {
    fn forward(
        &self,
        x: &Array,
        #[kw]
        #[default(1.0)]
        by: f64,
    ) -> Result<Array> {
        (x * by)? + &self.offset
    }
}

#[trace]
impl Scaled {
    fn forward(&self, x: &Array) -> Result<Array> {
        self.layer.forward(x, 3.0)
    }
}

#[test]
fn a_modules_keywords_are_in_its_call() -> Result<()> {
    let root = Scaled {
        layer: Scale {
            offset: Array::vec(&[1.0]),
        },
    };
    let gm = symbolic_trace(&root)?;
    assert_eq!(
        gm.graph().nodes().nth(1).map(|n| n.to_string()).as_deref(),
        Some(
            "%layer : [num_users=1] = call_module[target=layer](args = (%x,), kwargs = {by: 3.0})"
        )
    );
    assert_eq!(gm.forward::<Array>(&Array::vec(&[2.0]))?.to_vec()?, [7.0]);
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let layer = self.layer.forward(x, 3.0)?;
        Ok(layer)
    }
    ");
    Ok(())
}

#[test]
fn code_is_the_same_every_time_and_follows_edits() -> Result<()> {
    let make = || symbolic_trace(&Linear::square(2, 1.0));
    assert_eq!(make()?.code(), make()?.code());
    let mut gm = make()?;
    let (x, output) = (
        gm.graph().nodes().next().map(|n| n.id()),
        gm.graph().output_node().map(|n| n.id()),
    );
    let (Some(x), Some(output)) = (x, output) else {
        return Err(Error::msg("an input and an output"));
    };
    let neg = gm
        .graph_mut()
        .inserting_before(output)?
        .call_function(operator::neg, (x,), ())?;
    gm.graph_mut()
        .node_mut(output)?
        .set_args((vec![neg, neg],))?;
    assert_snapshot!(gm.code(), @"
    // does not compile as it stands: `bias` is an `Option`, and no field that can be named; `to_folder` writes a crate that does, or says what is in its way
    pub fn forward(&self, x: &Array) -> Result<Vec<Array>> {
        let weight = &self.weight;
        let bias = &self.bias;
        array::linear(x, weight, Some(bias))?;
        let neg = (-x)?;
        Ok(vec![neg.clone(), neg])
    }
    ");
    assert!(gm.to_string().starts_with("Linear(\n") && gm.to_string().ends_with(&gm.code()));
    Ok(())
}

/// One list of all arguments, and the result in a separate list.
struct Boxed;

impl CodeGen for Boxed {
    fn process_inputs(&self, mut call: CallArgs) -> Result<CallArgs> {
        match call.args.as_mut_slice() {
            [Value::List(items)] if call.kwargs.is_empty() => Ok(CallArgs {
                args: std::mem::take(items).into_vec(),
                kwargs: Vec::new(),
            }),
            _ => Err(Error::msg("this module takes one list of all arguments")),
        }
    }

    fn process_outputs(&self, result: Value) -> Result<Value> {
        Ok(Value::List(Box::new([result])))
    }
}

#[test]
fn a_codegen_says_how_a_module_is_called() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float, #[default(3.0)] y: Float| x - y))?;
    gm.set_codegen(Boxed);
    assert_eq!(gm.forward::<Vec<f64>>(vec![5.0, 1.0])?, [4.0]);
    assert_eq!(gm.forward::<Vec<f64>>(vec![5.0])?, [2.0], "defaults stay");
    let mut plain = fx_core::run::PlainInterpreter;
    assert_eq!(gm.interpret::<Vec<f64>>(&mut plain, vec![5.0, 1.0])?, [4.0]);
    let observed = gm.forward_observed::<Vec<f64>>(vec![5.0, 1.0], |_, _| Ok(()))?;
    assert_eq!(observed, [4.0]);
    assert_eq!(gm.process_inputs(vec![5.0])?.len(), 2);
    let said = [
        gm.forward::<Vec<f64>>((5.0, 1.0)).map(drop),
        gm.forward::<Vec<f64>>(vec![1.0, 2.0, 3.0]).map(drop),
    ];
    let said = said.map(|result| result.err().map(|e| e.to_string()).unwrap_or_default());
    assert_snapshot!(said.join("\n"), @"
    this module takes one list of all arguments
    `closure` takes 2 arguments but 3 were given; it takes (x: Float, y: Float = 3.0)
    ");

    // Another graph calls it by its parameters, whatever the convention; so does a trace that goes
    // inside.
    let mut outer = symbolic_trace(traced!(|x: Float| x * 2.0))?;
    outer.add_submodule("inner", gm.clone())?;
    let mul = outer.graph().find_name("mul").map(|node| node.id());
    let mul = mul.ok_or_else(|| Error::msg("it multiplies"))?;
    let mut graph = outer.graph_mut();
    let called = graph
        .inserting_after(mul)?
        .call_module("inner", (mul, 1.0), ())?;
    graph
        .node_mut(mul)?
        .replace_uses_with_filter(called, |user| user.id() != called)?;
    drop(graph);
    assert_eq!(outer.forward::<f64>(5.0)?, 9.0);
    let boxed = gm.clone();
    let inside = symbolic_trace(traced!(|x: Float| {
        let parts: Vec<Float> = boxed.forward(vec![x, Float::from(2.0)])?;
        parts[0] + 1.0
    }))?;
    assert_eq!(inside.forward::<f64>(5.0)?, 4.0);

    gm.reset_codegen();
    assert_eq!(gm.forward::<f64>((5.0, 1.0))?, 4.0);
    Ok(())
}
