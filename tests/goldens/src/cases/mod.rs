//! Every golden with numbers, made here: traced, compared in graph and numbers, and run eagerly; it owns that none is
//! left out without a reason.

pub mod compiled;
pub mod documentation;
pub mod edits;
pub mod features;
pub mod models;

use std::fmt;

use fx_core::module::{Component, Module};
use fx_core::run::PlainInterpreter;
use fx_core::value::Value;
use fx_core::{Error, GraphModule, Result};
use fx_nn::{Tensor, nn};

use crate::compare::GraphComparison;
use crate::exception::Exception;
use crate::golden::{GraphGolden, NumGolden};
use crate::model::{self, Numbers};

/// The largest error of a result over the abs-max of PyTorch's float64 data.
pub const BAR: f64 = 1e-5;

/// A golden that is made here.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The golden's name.
    pub name: &'static str,
    /// Makes it, and compares.
    pub run: fn(&'static str) -> Result<Row>,
}

/// How a case went.
#[derive(Clone, Debug)]
pub struct Row {
    /// The golden's name.
    pub name: &'static str,
    /// Nodes of the graph.
    pub nodes: usize,
    /// What was traced, and run.
    pub made: Made,
    /// The graph beside PyTorch's.
    pub graph: GraphComparison,
    /// The traced run beside PyTorch's float64 data.
    pub numbers: Numbers,
    /// The largest difference between the eager run and the traced, interpreted and transformed ones, and eight traced
    /// ones at once.
    pub traced_vs_eager: f64,
}

/// A graph module that was run.
#[derive(Clone, Debug)]
pub struct Made {
    /// The module.
    pub traced: GraphModule,
    /// What it was run on.
    pub inputs: Vec<Value>,
    /// What it gave.
    pub result: Value,
}

impl Row {
    /// Whether the graph is PyTorch's but for named exceptions, the numbers are within [`BAR`], and tracing changed
    /// nothing.
    pub fn passed(&self) -> bool {
        self.graph.equal
            && self.numbers.problem.is_none()
            && self.numbers.max_rel_err <= BAR
            && self.traced_vs_eager == 0.0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graph = match (self.graph.equal, self.graph.used.as_slice()) {
            (true, []) => "graph=equal".to_string(),
            (true, used) => format!("graph=differs({})", used.join(", ")),
            (false, _) => "graph=WRONG".to_string(),
        };
        write!(
            f,
            "{:<34} nodes={:<4} rel_err={:.3e} traced_vs_eager={:e} {graph}",
            self.name, self.nodes, self.numbers.max_rel_err, self.traced_vs_eager,
        )?;
        if !self.graph.equal {
            write!(f, "\n{}", self.graph)?;
        }
        match &self.numbers.problem {
            Some(problem) => write!(f, "\n    {problem}"),
            None => Ok(()),
        }
    }
}

/// A module, filled by the formula, in evaluation mode.
///
/// # Errors
/// When it cannot be filled, traced or run.
pub fn module<M: Module + Component>(
    name: &'static str,
    mut module: M,
    exceptions: &[Exception],
) -> Result<Row> {
    let golden = NumGolden::load(name).map_err(Error::other)?;
    model::fill(&mut module, golden.gain)?;
    fx_core::module::ComponentExt::eval(&mut module);
    nn::set_requires_grad(&mut module, false)?;
    let traced = model::trace_with(&module, golden.inputs.len()).graph_module()?;
    compared(name, &traced, exceptions, |inputs| {
        // Arguments that the golden leaves out are absent.
        let absent = vec![Value::None; module.params().len().saturating_sub(inputs.len())];
        let lent: Vec<&Value> = inputs.iter().chain(&absent).collect();
        let mut eager = Value::None;
        module.run(&lent, &mut eager)?;
        Ok(eager)
    })
}

/// A graph module, and the same computation run eagerly on its inputs.
///
/// # Errors
/// When either cannot be run.
pub fn function(
    name: &'static str,
    traced: &GraphModule,
    exceptions: &[Exception],
    eager: impl FnOnce(&[Tensor]) -> Result<Value>,
) -> Result<Row> {
    compared(name, traced, exceptions, |inputs| {
        let tensors = (0..inputs.len())
            .map(|i| model::tensor(inputs, i))
            .collect::<Result<Vec<_>>>()?;
        eager(&tensors)
    })
}

fn compared(
    name: &'static str,
    traced: &GraphModule,
    exceptions: &[Exception],
    eager: impl FnOnce(&[Value]) -> Result<Value>,
) -> Result<Row> {
    traced.graph().lint()?;
    let golden = NumGolden::load(name).map_err(Error::other)?;
    let graph = GraphGolden::load(&golden.graph).map_err(Error::other)?;
    let inputs = model::inputs(&golden)?;
    let result = model::run(traced, inputs.clone())?;
    let eager = eager(&inputs)?;
    // Node by node, and a new graph made node by node, compute the same.
    let call = fx_core::trace::CallArgs {
        args: inputs.clone(),
        kwargs: Vec::new(),
    };
    let interpreted = traced.interpret(&mut PlainInterpreter, call)?;
    let copy = traced.transform(&mut PlainInterpreter)?;
    copy.graph().lint()?;
    let transformed = model::run(&copy, inputs.clone())?;
    let mut worst: f64 = 0.0;
    let at_once = on_threads(traced, &inputs)?;
    for other in [&result, &interpreted, &transformed]
        .into_iter()
        .chain(&at_once)
    {
        worst = worst.max(model::max_abs_err(&eager, other)?);
    }
    Ok(Row {
        name,
        nodes: traced.graph().len(),
        graph: model::compare_with(&graph, traced, exceptions),
        numbers: model::compare_outputs(&golden, &result)?,
        traced_vs_eager: worst,
        made: Made {
            traced: traced.clone(),
            inputs,
            result,
        },
    })
}

/// What one module gives on eight threads at once.
fn on_threads(traced: &GraphModule, inputs: &[Value]) -> Result<Vec<Value>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| model::run(traced, inputs.to_vec())))
            .collect();
        let results = threads.into_iter().map(|thread| {
            let result = thread.join();
            result.unwrap_or_else(|_| Err(Error::msg("a thread of eight panicked")))
        });
        results.collect()
    })
}

macro_rules! cases {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Those that are made here, by family.
        pub const CASES: &[Case] = &[$($(
            Case { name: stringify!($name), run: $module::$name },
        )*)*];
    };
}

cases! {
    documentation:
        doc_add_operator doc_leaf_modules doc_leaf_modules_custom doc_mymodule
        doc_static_flow_with_activation doc_static_flow_without_activation doc_tensor_constant doc_topk
        doc_two_layer_net doc_wrap_custom_function doc_wrap_normalize;
    edits:
        doc_add_to_mul_before doc_add_to_mul_after doc_insert_relu_before doc_insert_relu_after
        doc_insert_relu_after_cb doc_negsigm_before doc_negsigm_interpreter doc_negsigm_transformer_after
        doc_relu_decompose_before doc_relu_decompose_after doc_replace_pattern_before
        doc_replace_pattern_after doc_replace_pattern2_after
        mlp_remove_dropout resnet18_fused unet_fused;
    features:
        feat_dead_code feat_deep_names feat_methods_vs_functions feat_operators feat_shape_getattr
        feat_slicing feat_strings feat_unpack;
    models:
        alexnet autoencoder bert_small dict_out gpt2_small lstm_classifier mlp mobilenet_v2 nested resnet18
        resnet50 shared_sub siamese transformer_encoder_hand tuple_out unet_small vgg11_bn vit_b_16_img64;
}

/// Those that are not made here, and why.
pub const MISSING: &[(&str, &str)] = &[(
    "feat_inplace",
    "tensors are values: there is no `x += y` and no `add_`",
)];
