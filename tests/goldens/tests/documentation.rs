//! torch.fx's documented examples, written in Rust: each equal to its golden in graph and numbers.

#[path = "documentation/features.rs"]
mod features;

use fx_core::prelude::*;
use fx_core::{CallArgs, Module, TraceContext, Tracer};
use fx_goldens::exception::Exception;
use fx_goldens::golden::NumGolden;
use fx_goldens::model;
use fx_nn::{Tensor, nn, ops};

/// Compares a traced module with the golden of a name, graph and numbers; `inputs` gives the eager result.
fn check(
    name: &str,
    traced: &GraphModule,
    exceptions: &[Exception],
    eager: impl FnOnce(&[Tensor]) -> Result<Value>,
) -> Result<()> {
    traced.graph().lint()?;
    let graph = model::compare(name, traced, exceptions)?;
    assert!(graph.equal, "{graph}");
    let golden = NumGolden::load(name).expect("the golden is in the repository");
    let inputs = model::inputs(&golden)?;
    let result: Value = traced.forward(CallArgs {
        args: inputs.clone(),
        kwargs: Vec::new(),
    })?;
    let numbers = model::compare_outputs(&golden, &result)?;
    assert_eq!(numbers.problem, None);
    assert!(numbers.max_rel_err <= 1e-5, "{:e}", numbers.max_rel_err);
    let tensors = (0..inputs.len())
        .map(|i| model::tensor(&inputs, i))
        .collect::<Result<Vec<_>>>()?;
    assert_eq!(model::max_abs_err(&eager(&tensors)?, &result)?, 0.0);
    Ok(())
}

fn value<T: fx_core::IntoValue>(result: T) -> Value {
    result.into_value()
}

fn parameter(shape: (usize, usize)) -> Result<Tensor> {
    Tensor::rand(shape)?.into_parameter()
}

// ---- MyModule ----------------------------------------------------------------------------------

#[derive(Module, Clone, Debug)]
struct MyModule {
    param: Tensor,
    linear: nn::Linear,
}

#[trace]
impl MyModule {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.linear.forward(&(x + &self.param)?)?.clamp(0.0, 1.0)
    }
}

#[test]
fn doc_mymodule() -> Result<()> {
    let mut module = MyModule {
        param: parameter((3, 4))?,
        linear: nn::Linear::new(4, 5)?,
    };
    model::fill(&mut module, 1.0)?;
    let traced = symbolic_trace(&module)?;
    assert_eq!(
        traced.graph().to_string(),
        "\
graph():
    %x : [num_users=1] = placeholder[target=x]
    %param : [num_users=1] = get_attr[target=param]
    %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%x, %param), kwargs = {})
    %linear : [num_users=1] = call_module[target=linear](args = (%add,), kwargs = {})
    %clamp : [num_users=1] = call_method[target=clamp](args = (%linear,), kwargs = {min: 0.0, max: 1.0})
    return %clamp"
    );
    assert_eq!(
        traced.code(),
        "\
pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
    let param = &self.param;
    let add = (x + param)?;
    let linear = self.linear.forward(&add)?;  drop(add);
    let clamp = linear.clamp(0.0, 1.0)?;  drop(linear);
    Ok(clamp)
}
"
    );
    assert_eq!(
        traced.graph().tabular(),
        "\
opcode         name    target                  args          kwargs
-------------  ------  ----------------------  ------------  --------------------
placeholder    x       x                       ()            {}
get_attr       param   param                   ()            {}
call_function  add     fx_core::operator::add  (%x, %param)  {}
call_module    linear  linear                  (%add,)       {}
call_method    clamp   clamp                   (%linear,)    {min: 0.0, max: 1.0}
output         output  output                  (%clamp,)     {}
"
    );
    check("doc_mymodule", &traced, &[], |x| {
        module.forward(&x[0]).map(value)
    })
}

// ---- top-k -------------------------------------------------------------------------------------

#[derive(Module, Clone, Debug)]
struct TopkModule {
    param: Tensor,
    linear: nn::Linear,
}

#[trace]
impl TopkModule {
    fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let y = self.linear.forward(&(x + &self.linear.weight)?)?.relu()?;
        ops::topk(&ops::sum(&y, -1, false)?, 3, -1, true, true)
    }
}

#[test]
fn doc_topk() -> Result<()> {
    let mut module = TopkModule {
        param: parameter((3, 4))?,
        linear: nn::Linear::new(4, 5)?,
    };
    model::fill(&mut module, 1.0)?;
    check("doc_topk", &symbolic_trace(&module)?, &[], |x| {
        module.forward(&x[0]).map(value)
    })
}

// ---- static control flow -----------------------------------------------------------------------

#[derive(Module, Clone, Debug)]
struct StaticFlow {
    do_activation: bool,
    linear: nn::Linear,
}

#[trace]
impl StaticFlow {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = self.linear.forward(x)?;
        if self.do_activation {
            x = ops::relu(&x)?;
        }
        Ok(x)
    }
}

fn static_flow(name: &str, do_activation: bool) -> Result<()> {
    let mut module = StaticFlow {
        do_activation,
        linear: nn::Linear::new(512, 512)?,
    };
    model::fill(&mut module, 1.0)?;
    check(name, &symbolic_trace(&module)?, &[], |x| {
        module.forward(&x[0]).map(value)
    })
}

#[test]
fn doc_static_flow_with_activation() -> Result<()> {
    static_flow("doc_static_flow_with_activation", true)
}

#[test]
fn doc_static_flow_without_activation() -> Result<()> {
    static_flow("doc_static_flow_without_activation", false)
}

// ---- leaf modules ------------------------------------------------------------------------------

#[derive(Module, Clone, Debug, Default)]
struct MySpecialSubmodule {
    tag: fx_core::Tag,
}

#[trace]
impl MySpecialSubmodule {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::neg(x)
    }
}

#[derive(Module, Clone, Debug)]
struct LeafModule {
    linear: nn::Linear,
    submod: MySpecialSubmodule,
}

#[trace]
impl LeafModule {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.submod.forward(&self.linear.forward(x)?)
    }
}

fn leaf_module() -> Result<LeafModule> {
    let mut module = LeafModule {
        linear: nn::Linear::new(3, 4)?,
        submod: MySpecialSubmodule::default(),
    };
    model::fill(&mut module, 1.0)?;
    Ok(module)
}

#[test]
fn doc_leaf_modules() -> Result<()> {
    let module = leaf_module()?;
    check("doc_leaf_modules", &symbolic_trace(&module)?, &[], |x| {
        module.forward(&x[0]).map(value)
    })
}

/// Keeps `MySpecialSubmodule` as a leaf.
struct SpecialLeafTracer;

impl Tracer for SpecialLeafTracer {
    fn is_leaf_module(&self, _: &TraceContext, module: &dyn Module, _: &str) -> bool {
        let any: &dyn std::any::Any = module;
        any.is::<MySpecialSubmodule>() || module.is_leaf()
    }
}

#[test]
fn doc_leaf_modules_custom() -> Result<()> {
    let module = leaf_module()?;
    let traced = GraphModule::from(SpecialLeafTracer.trace(&module)?);
    check("doc_leaf_modules_custom", &traced, &[], |x| {
        module.forward(&x[0]).map(value)
    })
}

// ---- constants, leaves, operators --------------------------------------------------------------

#[trace]
fn tensor_constant(x: &Tensor) -> Result<Tensor> {
    ops::relu(x)? + Tensor::ones((3, 4))?
}

#[test]
fn doc_tensor_constant() -> Result<()> {
    let traced = symbolic_trace(traced!(tensor_constant))?;
    check("doc_tensor_constant", &traced, &[], |x| {
        tensor_constant(&x[0]).map(value)
    })
}

#[wrap]
fn my_custom_function(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    (x * x)? + (y * y)?
}

#[trace]
fn fn_to_be_traced(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    my_custom_function(x, y)
}

#[test]
fn doc_wrap_custom_function() -> Result<()> {
    let traced = symbolic_trace(traced!(fn_to_be_traced))?;
    check("doc_wrap_custom_function", &traced, &[], |x| {
        fn_to_be_traced(&x[0], &x[1]).map(value)
    })
}

#[derive(Module, Clone, Debug)]
struct TwoLayerNet {
    linear1: nn::Linear,
    linear2: nn::Linear,
}

#[trace]
impl TwoLayerNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h_relu = self.linear1.forward(x)?.clamp(0.0, None)?;
        self.linear2.forward(&h_relu)
    }
}

#[test]
fn doc_two_layer_net() -> Result<()> {
    let mut module = TwoLayerNet {
        linear1: nn::Linear::new(1000, 100)?,
        linear2: nn::Linear::new(100, 10)?,
    };
    model::fill(&mut module, 1.0)?;
    let exceptions = [Exception::IntLiteralForFloatParameter];
    check(
        "doc_two_layer_net",
        &symbolic_trace(&module)?,
        &exceptions,
        |x| module.forward(&x[0]).map(value),
    )
}

#[trace]
fn add_operator(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    x + y
}

#[test]
fn doc_add_operator() -> Result<()> {
    let traced = symbolic_trace(traced!(add_operator))?;
    check("doc_add_operator", &traced, &[], |x| {
        add_operator(&x[0], &x[1]).map(value)
    })
}
