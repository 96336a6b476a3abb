//! The documentation's graph edits: before, and after an edit by hand.

use std::any::Any;
use std::collections::HashMap;

use fx_core::ir::{Argument, Function, Graph, Op};
use fx_core::operator;
use fx_core::pattern::replace_pattern;
use fx_core::prelude::*;
use fx_core::run::{Interpretation, Interpreter};
use fx_core::trace::{CallArgs, GraphAppendingTracer};
use fx_core::value::{NodeId, Proxy};
use fx_nn::models::mlp::Mlp;
use fx_nn::models::resnet::resnet18;
use fx_nn::models::unet::UNet;
use fx_nn::module::{Component, TensorKind, VisitorMut, walk_mut};
use fx_nn::passes::{FuseBatchNorm, RemoveDropout};
use fx_nn::tensor::Object;
use fx_nn::value::DType;
use fx_nn::{Tensor, nn, ops};

use super::documentation::value;
use super::models::interpolated;
use super::{Row, function, module};
use crate::exception::Exception;
use crate::golden::NumGolden;
use crate::model;

fn adds(graph: &Graph) -> Vec<NodeId> {
    let found = graph.find_nodes(&Op::CallFunction(operator::add));
    found.iter().map(|node| node.id()).collect()
}

#[trace]
fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    x + y
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_add_to_mul_before(name: &'static str) -> Result<Row> {
    function(name, &symbolic_trace(traced!(add))?, &[], |x| {
        add(&x[0], &x[1]).map(value)
    })
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_add_to_mul_after(name: &'static str) -> Result<Row> {
    let mut gm = symbolic_trace(traced!(add))?;
    let mut graph = gm.graph_mut();
    for node in adds(&graph) {
        graph
            .node_mut(node)?
            .set_op(Op::CallFunction(operator::mul))?;
    }
    drop(graph);
    function(name, &gm, &[], |x| (&x[0] * &x[1]).map(value))
}

#[trace]
fn add_mul(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let a = (x + y)?;
    let b = (&a * y)?;
    a + b
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_insert_relu_before(name: &'static str) -> Result<Row> {
    function(name, &symbolic_trace(traced!(add_mul))?, &[], |x| {
        add_mul(&x[0], &x[1]).map(value)
    })
}

fn add_relu_mul(x: &[Tensor]) -> Result<Value> {
    let a = (&x[0] + &x[1])?.relu()?;
    let b = (&a * &x[1])?;
    (a + b)?.relu().map(value)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_insert_relu_after(name: &'static str) -> Result<Row> {
    let mut gm = symbolic_trace(traced!(add_mul))?;
    let mut graph = gm.graph_mut();
    for node in adds(&graph) {
        let relu = graph
            .inserting_after(node)?
            .call_function(function!(ops::relu), (node,), ())?;
        graph.node_mut(node)?.replace_all_uses_with(relu)?;
        graph.node_mut(relu)?.set_args((node,))?;
    }
    drop(graph);
    function(name, &gm, &[], add_relu_mul)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_insert_relu_after_cb(name: &'static str) -> Result<Row> {
    let mut gm = symbolic_trace(traced!(add_mul))?;
    let mut graph = gm.graph_mut();
    for node in adds(&graph) {
        let relu = graph
            .inserting_after(node)?
            .call_function(function!(ops::relu), (node,), ())?;
        graph
            .node_mut(node)?
            .replace_uses_with_filter(relu, |user| user.id() != relu)?;
    }
    drop(graph);
    function(name, &gm, &[], add_relu_mul)
}

#[trace]
fn sigm_neg(x: &Tensor) -> Result<Tensor> {
    ops::sigmoid(x)?.neg()
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_negsigm_before(name: &'static str) -> Result<Row> {
    function(name, &symbolic_trace(traced!(sigm_neg))?, &[], |x| {
        sigm_neg(&x[0]).map(value)
    })
}

/// Swaps the function `sigmoid` and the method `neg`.
struct NegSigmSwap;

impl Interpreter for NegSigmSwap {
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        if function == function!(ops::sigmoid) {
            return run.call_function(function!(ops::neg), call);
        }
        run.call_function(function, call)
    }

    fn call_method(
        &mut self,
        run: &mut Interpretation<'_>,
        name: &str,
        call: CallArgs,
    ) -> Result<Value> {
        run.call_method(if name == "neg" { "sigmoid" } else { name }, call)
    }
}

/// The golden of that name: the graph as it was, its numbers by an interpreter.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_negsigm_interpreter(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(sigm_neg))?;
    let golden = NumGolden::load(name).map_err(Error::other)?;
    let swapped: Value = gm.interpret(
        &mut NegSigmSwap,
        CallArgs {
            args: model::inputs(&golden)?,
            kwargs: Vec::new(),
        },
    )?;
    let mut row = doc_negsigm_before("doc_negsigm_before")?;
    row.name = name;
    row.numbers = model::compare_outputs(&golden, &swapped)?;
    Ok(row)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_negsigm_transformer_after(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(sigm_neg))?.transform(&mut NegSigmSwap)?;
    function(name, &gm, &[], |x| ops::neg(&x[0])?.sigmoid().map(value))
}

#[derive(Module, Clone, Debug)]
struct ReluNet {
    linear: nn::Linear,
}

#[trace]
impl ReluNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = ops::relu(&self.linear.forward(x)?)?;
        ops::relu(&(y - 1.0)?)? + x
    }
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_relu_decompose_before(name: &'static str) -> Result<Row> {
    let net = ReluNet {
        linear: nn::Linear::new(4, 4)?,
    };
    module(name, net, &[Exception::PythonInplaceFlag])
}

#[trace]
fn relu_decomposition(x: &Tensor) -> Result<Tensor> {
    (x > 0)? * x
}

/// The golden of that name: a new graph, in which a rule written in plain Rust stands for each relu.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_relu_decompose_after(name: &'static str) -> Result<Row> {
    let mut net = ReluNet {
        linear: nn::Linear::new(4, 4)?,
    };
    model::fill(&mut net, 1.0)?;
    let gm = symbolic_trace(&net)?;
    let (mut graph, mut attributes) = (Graph::new(), gm.attributes().clone());
    let mut env: HashMap<NodeId, NodeId> = HashMap::new();
    for node in gm.graph() {
        let operand = node.args().first().and_then(Argument::as_node);
        let new = match operand.and_then(|id| env.get(&id)) {
            Some(x) if *node.op() == Op::CallFunction(function!(ops::relu)) => {
                GraphAppendingTracer::append(&mut graph, &mut attributes, |cx| {
                    let y = relu_decomposition(&cx.proxy(*x).into())?;
                    Ok(Proxy::from_value(value(y))?.node())
                })?
            }
            _ => graph.node_copy(node, |id| {
                env.get(&id)
                    .map_or(Argument::None, |new| Argument::Node(*new))
            })?,
        };
        env.insert(node.id(), new);
    }
    let decomposed = GraphModule::new(attributes, graph, "ReluNet")?;
    function(name, &decomposed, &[], |x| {
        let y = relu_decomposition(&net.linear.forward(&x[0])?)?;
        (relu_decomposition(&(y - 1.0)?)? + &x[0]).map(value)
    })
}

#[trace]
fn cat_sum(x: &Tensor, w1: &Tensor, w2: &Tensor) -> Result<Tensor> {
    let m1 = ops::cat(&[w1.clone(), w2.clone()], 0)?.sum(..)?;
    let m2 = ops::cat(&[w1.clone(), w2.clone()], 0)?.sum(..)?;
    (x + ops::amax(&m1, .., false)?)? + ops::amax(&m2, .., false)?
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_replace_pattern_before(name: &'static str) -> Result<Row> {
    function(name, &symbolic_trace(traced!(cat_sum))?, &[AMAX], |x| {
        cat_sum(&x[0], &x[1], &x[2]).map(value)
    })
}

const AMAX: Exception = Exception::FunctionRenamed {
    theirs: "max",
    ours: "amax",
    why: "`max` gives the places too; the largest element of all is `amax`",
};

/// What stands for `cat` of two tensors, and for `cat` and `sum`.
#[trace]
fn stacked(w1: &Tensor, w2: &Tensor) -> Result<Tensor> {
    ops::stack(&[w1.clone(), w2.clone()], 0)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_replace_pattern_after(name: &'static str) -> Result<Row> {
    let mut gm = symbolic_trace(traced!(cat_sum))?;
    let cat = traced!(|w1: &Tensor, w2: &Tensor| ops::cat(&[w1.clone(), w2.clone()], 0));
    replace_pattern(&mut gm, cat, traced!(stacked))?;
    function(name, &gm, &[AMAX], |x| {
        let m = stacked(&x[1], &x[2])?.sum(..)?;
        let m = ops::amax(&m, .., false)?;
        ((&x[0] + &m)? + &m).map(value)
    })
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_replace_pattern2_after(name: &'static str) -> Result<Row> {
    let mut gm = symbolic_trace(traced!(cat_sum))?;
    let cat_sum =
        traced!(|w1: &Tensor, w2: &Tensor| ops::cat(&[w1.clone(), w2.clone()], 0)?.sum(..));
    replace_pattern(&mut gm, cat_sum, traced!(stacked))?;
    function(name, &gm, &[AMAX], |x| {
        let m = ops::amax(&stacked(&x[1], &x[2])?, .., false)?;
        ((&x[0] + &m)? + &m).map(value)
    })
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn mlp_remove_dropout(name: &'static str) -> Result<Row> {
    let golden = NumGolden::load(name).map_err(Error::other)?;
    let mut mlp = Mlp::new(16, 32, 4)?;
    model::fill(&mut mlp, golden.gain)?;
    mlp.eval();
    let mut gm = symbolic_trace(&mlp)?;
    gm.apply(&RemoveDropout)?;
    let exceptions = [
        Exception::PythonInplaceFlag,
        Exception::PythonStacklevel,
        Exception::NoneDtype,
    ];
    function(name, &gm, &exceptions, |x| mlp.forward(&x[0]).map(value))
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn resnet18_fused(name: &'static str) -> Result<Row> {
    fused(name, resnet18(1000)?, &[])
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn unet_fused(name: &'static str) -> Result<Row> {
    fused(name, UNet::new(3, 2, 8)?, &interpolated())
}

/// A model with its batch norms folded into its convolutions, beside the model itself, run eagerly on the same weights:
/// each convolution has the folded ones, and each batch norm adds the folded bias and does nothing else.
fn fused<M: Module + Component>(
    name: &'static str,
    mut model: M,
    exceptions: &[Exception],
) -> Result<Row> {
    let golden = NumGolden::load(name).map_err(Error::other)?;
    model::fill(&mut model, golden.gain)?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let mut gm = symbolic_trace(&model)?;
    let plan = FuseBatchNorm::plan(&gm)?;
    gm.apply(&FuseBatchNorm)?;
    let mut state = HashMap::new();
    let folded = gm.state_dict();
    for fusion in &plan.fused {
        let (layer, norm) = (&fusion.layer_path, &fusion.norm_path);
        let of_layer = |part: &str| {
            let found = folded.get(&format!("{layer}.{part}"));
            found.map_or_else(
                || Err(Error::msg("a fused layer has both")),
                |v| Tensor::from_value(v.clone()),
            )
        };
        let bias = of_layer("bias")?;
        let channels = bias.dims()?.to_vec();
        // The variance with `eps` is 1.
        let var = Tensor::full(channels.clone(), 1.0 - 1e-5, DType::F32)?;
        state.insert(format!("{layer}.weight"), of_layer("weight")?);
        state.insert(format!("{norm}.weight"), Tensor::ones(channels.clone())?);
        state.insert(format!("{norm}.running_mean"), Tensor::zeros(channels)?);
        state.insert(format!("{norm}.running_var"), var);
        state.insert(format!("{norm}.bias"), bias);
    }
    walk_mut(&mut model, &mut Put(state));
    function(name, &gm, exceptions, |x| {
        let (args, mut result) = (Value::object(x[0].clone()), Value::None);
        model.run(&[&args], &mut result)?;
        Ok(result)
    })
}

/// Puts tensors in the places of their paths.
struct Put(HashMap<String, Tensor>);

impl VisitorMut for Put {
    fn tensor(&mut self, path: &str, _: TensorKind, tensor: &mut dyn Object) {
        let any: &mut dyn Any = tensor;
        if let (Some(place), Some(new)) = (any.downcast_mut::<Tensor>(), self.0.get(path)) {
            *place = new.clone();
        }
    }
}
