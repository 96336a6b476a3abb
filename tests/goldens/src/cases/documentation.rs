//! The documentation's own examples, written in Rust.

use fx_core::module::Module;
use fx_core::prelude::*;
use fx_core::trace::{TraceContext, Tracer};
use fx_nn::{Tensor, nn, ops};

use super::{Row, function};
use crate::exception::Exception;
use crate::model;

pub(super) fn value<T: fx_core::value::IntoValue>(result: T) -> Value {
    result.into_value()
}

fn parameter(shape: (usize, usize)) -> Result<Tensor> {
    Tensor::rand(shape)?.into_parameter()
}

// ---- MyModule ----------------------------------------------------------------------------------

/// The module of the README.
#[derive(Module, Clone, Debug)]
pub struct MyModule {
    param: Tensor,
    linear: nn::Linear,
}

#[trace]
impl MyModule {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.linear.forward(&(x + &self.param)?)?.clamp(0.0, 1.0)
    }
}

/// The module of the README, filled.
///
/// # Errors
/// When candle has no room for it.
pub fn my_module() -> Result<MyModule> {
    let mut module = MyModule {
        param: parameter((3, 4))?,
        linear: nn::Linear::new(4, 5)?,
    };
    model::fill(&mut module, 1.0)?;
    Ok(module)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_mymodule(name: &'static str) -> Result<Row> {
    let module = my_module()?;
    function(name, &symbolic_trace(&module)?, &[], |x| {
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

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_topk(name: &'static str) -> Result<Row> {
    let mut module = TopkModule {
        param: parameter((3, 4))?,
        linear: nn::Linear::new(4, 5)?,
    };
    model::fill(&mut module, 1.0)?;
    function(name, &symbolic_trace(&module)?, &[], |x| {
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

fn static_flow(name: &'static str, do_activation: bool) -> Result<Row> {
    let mut module = StaticFlow {
        do_activation,
        linear: nn::Linear::new(512, 512)?,
    };
    model::fill(&mut module, 1.0)?;
    function(name, &symbolic_trace(&module)?, &[], |x| {
        module.forward(&x[0]).map(value)
    })
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_static_flow_with_activation(name: &'static str) -> Result<Row> {
    static_flow(name, true)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_static_flow_without_activation(name: &'static str) -> Result<Row> {
    static_flow(name, false)
}

// ---- leaf modules ------------------------------------------------------------------------------

/// The documentation's module that a tracer keeps as a leaf.
#[derive(Module, Clone, Debug, Default)]
pub struct MySpecialSubmodule {
    tag: fx_core::module::Tag,
}

#[trace]
impl MySpecialSubmodule {
    /// The negative.
    ///
    /// # Errors
    /// Never, for numbers.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
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

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_leaf_modules(name: &'static str) -> Result<Row> {
    let module = leaf_module()?;
    function(name, &symbolic_trace(&module)?, &[], |x| {
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

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_leaf_modules_custom(name: &'static str) -> Result<Row> {
    let module = leaf_module()?;
    let traced = GraphModule::from(SpecialLeafTracer.trace(&module)?);
    function(name, &traced, &[], |x| module.forward(&x[0]).map(value))
}

// ---- constants, leaves, operators --------------------------------------------------------------

#[trace]
fn tensor_constant(x: &Tensor) -> Result<Tensor> {
    ops::relu(x)? + Tensor::ones((3, 4))?
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_tensor_constant(name: &'static str) -> Result<Row> {
    let traced = symbolic_trace(traced!(tensor_constant))?;
    function(name, &traced, &[], |x| tensor_constant(&x[0]).map(value))
}

/// The documentation's function of that name.
///
/// # Errors
/// When an operation in it fails.
#[wrap]
pub fn my_custom_function(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    (x * x)? + (y * y)?
}

#[trace]
fn fn_to_be_traced(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    my_custom_function(x, y)
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_wrap_custom_function(name: &'static str) -> Result<Row> {
    let traced = symbolic_trace(traced!(fn_to_be_traced))?;
    function(name, &traced, &[], |x| {
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

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_two_layer_net(name: &'static str) -> Result<Row> {
    let mut module = TwoLayerNet {
        linear1: nn::Linear::new(1000, 100)?,
        linear2: nn::Linear::new(100, 10)?,
    };
    model::fill(&mut module, 1.0)?;
    let exceptions = [Exception::IntLiteralForFloatParameter];
    function(name, &symbolic_trace(&module)?, &exceptions, |x| {
        module.forward(&x[0]).map(value)
    })
}

#[trace]
fn add_operator(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    x + y
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_add_operator(name: &'static str) -> Result<Row> {
    let traced = symbolic_trace(traced!(add_operator))?;
    function(name, &traced, &[], |x| {
        add_operator(&x[0], &x[1]).map(value)
    })
}

/// The documentation's function of that name.
///
/// # Errors
/// When an operation in it fails.
#[wrap]
pub fn len(x: &Tensor) -> Result<Int> {
    x.size(0)
}

/// The documentation's function of that name.
///
/// # Errors
/// When an operation in it fails.
#[wrap]
pub fn sqrt(n: Int) -> Result<Float> {
    match n.concrete() {
        Some(n) if n >= 0 => Ok((n as f64).sqrt().into()),
        _ => Err(Error::msg("the square root of a negative number")),
    }
}

#[trace]
fn normalize(x: &Tensor) -> Result<Tensor> {
    x / sqrt(len(x)?)?
}

/// The golden of that name.
///
/// # Errors
/// When it cannot be traced or run.
pub fn doc_wrap_normalize(name: &'static str) -> Result<Row> {
    let gm = symbolic_trace(traced!(normalize))?;
    function(name, &gm, &[], |t| normalize(&t[0]).map(value))
}
