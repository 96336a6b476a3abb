//! Models against their goldens: filled by the formula, traced, compared with PyTorch in graph and numbers.

use std::any::Any;

use fx_core::ir::Literal;
use fx_core::module::{
    Component, ComponentKey, Module, TensorKind, Visitor, VisitorMut, walk, walk_mut,
};
use fx_core::tensor::Object;
use fx_core::trace::{FromValue, PH, Trace};
use fx_core::value::Value;
use fx_core::{Error, GraphModule, Result};
use fx_nn::Tensor;
use indexmap::IndexMap;

use crate::compare::{GraphComparison, compare_graphs};
use crate::exception::Exception;
use crate::formula::{Rule, fill_f32, fill_i64, input_name, rule_for};
use crate::golden::{GraphGolden, NumGolden};
use crate::numbers::compare_numbers;
use crate::view::view;

/// The results of a run against PyTorch's float64 data.
#[derive(Debug, Clone)]
pub struct Numbers {
    /// The largest error over the abs-max, of all outputs.
    pub max_rel_err: f64,
    /// What does not even fit: a shape, a count.
    pub problem: Option<String>,
}

/// The trace of a module for so many inputs: options among them are traced as there.
pub fn trace_with(module: &dyn Module, inputs: usize) -> Trace<'_> {
    let given = module.params().iter().take(inputs);
    let options = given.filter(|param| param.default == Some(Literal::None));
    options.fold(Trace::new(module), |trace, param| {
        trace.concrete(&param.name, PH)
    })
}

/// Fills parameters and buffers by the formula; a shared one once, under its first name.
///
/// # Errors
/// When a tensor cannot be set.
pub fn fill(module: &mut (impl Component + ?Sized), gain: f64) -> Result<()> {
    let rules = rules(module);
    struct Fill {
        gain: f64,
        rules: IndexMap<String, Rule>,
        problem: Result<()>,
    }
    impl Fill {
        fn set(&self, name: &str, tensor: &mut Tensor) -> Result<()> {
            // A name that is not listed is a second name of a tensor that is.
            let Some(rule) = self.rules.get(name) else {
                return Ok(());
            };
            let shape = tensor.dims()?.to_vec();
            match fill_f32(name, &shape, *rule, self.gain) {
                Some(data) => tensor.copy_from(&Tensor::from_vec(data, shape)?),
                None => Ok(()),
            }
        }
    }
    impl VisitorMut for Fill {
        fn tensor(&mut self, path: &str, _: TensorKind, tensor: &mut dyn Object) {
            let any: &mut dyn Any = tensor;
            if let (Some(tensor), Ok(())) = (any.downcast_mut::<Tensor>(), &self.problem) {
                self.problem = self.set(path, tensor);
            }
        }
    }
    let mut fill = Fill {
        gain,
        rules,
        problem: Ok(()),
    };
    walk_mut(module, &mut fill);
    fill.problem
}

/// The rule of each tensor by its first name; rules depend on the class that holds the tensor.
fn rules(module: &(impl Component + ?Sized)) -> IndexMap<String, Rule> {
    #[derive(Default)]
    struct Rules {
        classes: IndexMap<String, &'static str>,
        seen: std::collections::HashSet<u64>,
        found: IndexMap<String, Rule>,
    }
    impl Visitor for Rules {
        fn enter(&mut self, path: &str, _: ComponentKey, type_name: &'static str) -> bool {
            self.classes.insert(path.to_string(), type_name);
            true
        }

        fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
            if !tensor.object_id().is_none_or(|id| self.seen.insert(id)) {
                return;
            }
            let path = path.to_string();
            let owner = path.rsplit_once('.').map_or("", |(owner, _)| owner);
            let class = self.classes.get(owner).copied().unwrap_or("");
            let rank = tensor.shape().map_or(0, <[usize]>::len);
            let rule = rule_for(&path, class, rank, kind == TensorKind::Buffer);
            self.found.insert(path, rule);
        }
    }
    let mut rules = Rules::default();
    walk(module, &mut rules);
    rules.found
}

/// The golden's inputs, by the formula.
///
/// # Errors
/// When a tensor cannot be made.
pub fn inputs(golden: &NumGolden) -> Result<Vec<Value>> {
    golden
        .inputs
        .iter()
        .map(|input| {
            let name = input_name(&input.name);
            let shape = input.shape.clone();
            let tensor = match fill_f32(&name, &shape, input.rule, golden.gain) {
                Some(data) if input.rule == Rule::Input => Tensor::from_vec(data, shape)?,
                _ => {
                    let data = fill_i64(&name, &shape, input.rule).ok_or_else(|| {
                        Error::msg(format_args!("no rule fills the input {name}"))
                    })?;
                    Tensor::from_vec(data, shape)?
                }
            };
            Ok(Value::object(tensor))
        })
        .collect()
}

/// Compares a traced module's graph with the golden of a name.
///
/// # Errors
/// When the golden cannot be read.
pub fn compare(
    name: &str,
    traced: &GraphModule,
    exceptions: &[Exception],
) -> Result<GraphComparison> {
    let golden = GraphGolden::load(name).map_err(Error::other)?;
    Ok(compare_with(&golden, traced, exceptions))
}

/// Compares a traced module's graph with a golden.
pub fn compare_with(
    golden: &GraphGolden,
    traced: &GraphModule,
    exceptions: &[Exception],
) -> GraphComparison {
    let modules = &traced.attributes().modules;
    let nodes = view(traced.graph(), |path| modules.get(path).map(|m| m.params()));
    compare_graphs(golden, &nodes, exceptions)
}

/// Compares a run's result with the golden's float64 data, output by output.
///
/// # Errors
/// When a result is not a tensor.
pub fn compare_outputs(golden: &NumGolden, result: &Value) -> Result<Numbers> {
    let mut tensors = Vec::new();
    let mut problem = Ok(());
    result.for_each(&mut |value| {
        // A number beside the tensors is a golden's tensor without dims.
        let found = match value {
            Value::Int(n) => Tensor::from_vec(vec![*n], ()),
            value => match value.downcast_ref::<Tensor>() {
                Some(tensor) => Ok(tensor.clone()),
                None => return,
            },
        };
        match found {
            Ok(tensor) => tensors.push(tensor),
            Err(error) => problem = Err(error),
        }
    });
    problem?;
    if tensors.len() != golden.outputs.len() {
        return Ok(Numbers {
            max_rel_err: f64::INFINITY,
            problem: Some(format!(
                "{} outputs, the golden has {}",
                tensors.len(),
                golden.outputs.len()
            )),
        });
    }
    let mut numbers = Numbers {
        max_rel_err: 0.0,
        problem: None,
    };
    for (expected, found) in golden.outputs.iter().zip(&tensors) {
        let dtype = found.dtype()?.name();
        if dtype != expected.dtype {
            numbers.problem = Some(format!(
                "output {} is {dtype}, the golden's {}",
                expected.path, expected.dtype
            ));
        }
        let compared = compare_numbers(expected, &found.to_vec()?, found.dims()?);
        numbers.max_rel_err = numbers.max_rel_err.max(compared.max_rel_err);
        if let Some(problem) = compared.problem {
            numbers.problem = Some(problem);
        }
    }
    Ok(numbers)
}

/// The largest difference between two results; infinite where their shapes differ.
///
/// # Errors
/// When a result is not a tensor or tuple of tensors.
pub fn max_abs_err(a: &Value, b: &Value) -> Result<f64> {
    let flat = |value: &Value| -> Result<Vec<f64>> {
        let mut numbers = Vec::new();
        let mut problem = Ok(());
        value.for_each(&mut |inner| {
            if let Some(tensor) = inner.downcast_ref::<Tensor>() {
                match tensor.to_vec() {
                    Ok(data) => numbers.extend(data),
                    Err(error) => problem = Err(error),
                }
            }
        });
        problem.map(|()| numbers)
    };
    let (a, b) = (flat(a)?, flat(b)?);
    if a.len() != b.len() || a.is_empty() {
        return Ok(f64::INFINITY);
    }
    Ok(a.iter().zip(&b).fold(0.0, |worst: f64, (x, y)| {
        let error = (x - y).abs();
        if error.is_nan() {
            f64::INFINITY
        } else {
            worst.max(error)
        }
    }))
}

/// Runs a graph module on golden inputs.
///
/// # Errors
/// What the run says.
pub fn run(traced: &GraphModule, inputs: Vec<Value>) -> Result<Value> {
    traced.forward(fx_core::trace::CallArgs {
        args: inputs,
        kwargs: Vec::new(),
    })
}

/// A golden input as a tensor.
///
/// # Errors
/// When there is no such input.
pub fn tensor(inputs: &[Value], index: usize) -> Result<Tensor> {
    let value = inputs
        .get(index)
        .ok_or_else(|| Error::msg(format_args!("the golden has no input {index}")))?;
    Tensor::from_value(value.clone())
}
