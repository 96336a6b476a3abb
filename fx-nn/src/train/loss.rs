//! `Loss`: the loss of a module as a function of its parameters, its buffers and the inputs.
//!
//! Invariant: nothing is written: the statistics that layers would write are results.

use std::cell::RefCell;
use std::sync::Arc;

use fx_core::ir::{Effects, Function, ParamSpec, operator};
use fx_core::module::Module;
use fx_core::trace::{FromValue, Recorder};
use fx_core::value::{DType, IntoValue, NodeId, Tree, Value};
use fx_core::{Error, Result, function};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::func::known;
use crate::func::source::{Replay, Source, add_param, flat};
use crate::func::tape::{composite_of, expanded, node_of};
use crate::ops;
use crate::tensor::Tensor;

/// A function of the parameters and buffers of a module, by path, of its inputs, and of what the loss takes beside its
/// result. It gives the loss, and the buffers after the step.
#[derive(Clone)]
pub(super) struct Loss {
    model: Source,
    loss: Source,
    pub parameters: Arc<[(String, Value)]>,
    pub buffers: Arc<[(String, Value)]>,
    /// The type that the model computes with, if it is another than that of its parameters.
    pub computes_in: Option<DType>,
    params: Vec<ParamSpec>,
    trees: Vec<Tree>,
}

impl Loss {
    pub fn new(
        model: Source,
        loss: Source,
        parameters: Vec<(String, Value)>,
        buffers: Vec<(String, Value)>,
    ) -> Result<Self> {
        if loss.params().is_empty() {
            return Err(Error::msg(
                "a loss takes the result of the model, then what the step is given beside its inputs",
            ));
        }
        let named = |name: &str| ParamSpec::of_text(name.to_string(), "Value");
        let mut params = vec![named("parameters"), named("buffers")];
        let mut trees = vec![tree(&parameters), tree(&buffers)];
        params.extend(model.params().iter().cloned());
        trees.extend(model.trees());
        for (param, tree) in loss.params().iter().zip(loss.trees()).skip(1) {
            add_param(&mut params, &param.name);
            trees.push(tree);
        }
        Ok(Loss {
            model,
            loss,
            parameters: parameters.into(),
            buffers: buffers.into(),
            computes_in: None,
            params,
            trees,
        })
    }

    /// The parameters of a step beside parameters and buffers.
    pub fn inputs(&self) -> (&[ParamSpec], &[Tree]) {
        (&self.params[2..], &self.trees[2..])
    }
}

/// The structure of tensors by path.
pub(super) fn tree(named: &[(String, Value)]) -> Tree {
    let leaves = named
        .iter()
        .map(|(path, _)| (Arc::from(path.as_str()), Tree::Leaf));
    Tree::Dict(leaves.collect())
}

/// The values of a dict, in order.
pub(super) fn values(dict: &Value) -> Result<Vec<Value>> {
    match dict {
        Value::Dict(items) => Ok(items.values().cloned().collect()),
        other => Err(Error::expected("tensors by path", other.describe())),
    }
}

/// Tensors by path.
pub(super) fn dict<'p>(
    paths: impl IntoIterator<Item = &'p String>,
    values: impl IntoIterator<Item = Value>,
) -> Value {
    let paths = paths.into_iter().map(|path| Arc::from(path.as_str()));
    Value::Dict(Box::new(paths.zip(values).collect()))
}

impl Recorder for Loss {
    fn name(&self) -> &str {
        "loss"
    }

    fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    fn input_trees(&self) -> &[Tree] {
        &self.trees
    }

    fn module(&self) -> Option<&dyn Module> {
        self.model.module()
    }

    fn record(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        let [parameters, buffers, inputs @ ..] = args else {
            return Err(Error::msg("the parameters and the buffers are missing"));
        };
        let inputs: Vec<Value> = inputs.iter().map(|input| (*input).clone()).collect();
        let Some((inputs, extra)) = inputs.split_at_checked(self.model.params().len()) else {
            return Err(Error::msg("an input of the model is missing"));
        };
        let mut given = FxHashMap::default();
        let narrow = |value: Value| match self.computes_in {
            Some(dtype) => in_type(value, dtype),
            None => Ok(value),
        };
        for (named, dict, is_parameter) in [
            (&self.parameters, parameters, true),
            (&self.buffers, buffers, false),
        ] {
            for ((_, tensor), value) in named.iter().zip(values(dict)?) {
                let value = if is_parameter { narrow(value)? } else { value };
                if let Some(id) = tensor.as_object().and_then(|object| object.object_id()) {
                    given.insert(id, value);
                }
            }
        }
        let buffers = values(buffers)?;
        let statistics = Statistics::default();
        let mut instead =
            |function: Function, args: &[Value]| match statistics.instead(function, args)? {
                Some(value) => Ok(Some(value)),
                None => shared(function, args),
            };
        let gm = self.model.graph(inputs)?;
        let inputs = inputs.iter().cloned().map(narrow);
        let inputs = &inputs.collect::<Result<Vec<_>>>()?;
        let mut replay = Replay::with(&mut instead, given);
        let result = gm.interpretation().run(&mut replay, flat(&gm, inputs)?)?;
        let result = match self.computes_in {
            Some(_) => in_type(result, DType::F32)?,
            None => result,
        };
        let of_loss: Vec<Value> = std::iter::once(result)
            .chain(extra.iter().cloned())
            .collect();
        let loss = self.loss.graph(&of_loss)?;
        let mut instead = |function: Function, args: &[Value]| shared(function, args);
        let mut replay = Replay::new(&mut instead);
        let number = loss
            .interpretation()
            .run(&mut replay, flat(&loss, &of_loss)?)?;
        let paths = || self.buffers.iter().map(|(path, _)| path);
        let moved: FxHashSet<&str> = paths()
            .zip(&buffers)
            .filter(|(_, value)| statistics.has_moved(value))
            .filter_map(|(path, _)| path.strip_suffix("running_mean"))
            .collect();
        let after = paths().zip(&buffers).map(|(path, value)| {
            let layer = path.strip_suffix("num_batches_tracked");
            match layer.is_some_and(|layer| moved.contains(layer)) {
                true => (Tensor::from_value(value.clone())? + 1).map(IntoValue::into_value),
                false => Ok(statistics.after(value.clone())),
            }
        });
        let after = after.collect::<Result<Vec<_>>>()?;
        *out = Value::Tuple(vec![number, dict(paths(), after)].into());
        Ok(())
    }

    fn duplicate(&self) -> Box<dyn Recorder> {
        Box::new(self.clone())
    }
}

/// A value whose tensors of floats are of a type.
fn in_type(value: Value, dtype: DType) -> Result<Value> {
    let tree = Tree::of(&value)?;
    let leaves =
        tree.flatten(value)?
            .into_iter()
            .map(|leaf| match Tensor::from_value(leaf.clone()) {
                Ok(x) if known::dtype(&x)?.is_floating_point() => {
                    ops::to_dtype(&x, dtype).map(IntoValue::into_value)
                }
                _ => Ok(leaf),
            });
    tree.unflatten(leaves.collect::<Result<_>>()?)
}

/// What a function gives by the functions that its gradient is taken of, if it has no rule of its own: the forward and the
/// backward part share their values.
fn shared(function: Function, args: &[Value]) -> Result<Option<Value>> {
    let is_item = function == operator::getitem;
    match composite_of(function)? {
        Some(composite) if !is_item => expanded(composite, function, args).map(Some),
        _ => Ok(None),
    }
}

/// What layers would write, as values.
#[derive(Default)]
struct Statistics(RefCell<FxHashMap<NodeId, Value>>);

impl Statistics {
    fn after(&self, before: Value) -> Value {
        let written = self.0.borrow();
        node_of(&before)
            .and_then(|node| written.get(&node).cloned())
            .unwrap_or(before)
    }

    fn has_moved(&self, before: &Value) -> bool {
        node_of(before).is_some_and(|node| self.0.borrow().contains_key(&node))
    }

    fn instead(&self, function: Function, args: &[Value]) -> Result<Option<Value>> {
        if !function.def().effects.contains(Effects::WRITES) {
            return Ok(None);
        }
        if function != function!(ops::batch_norm) {
            return Err(Error::msg(format_args!(
                "`{}` writes to its arguments, and a training step keeps the statistics of batch norms alone: use one, or a norm without running statistics",
                function.path()
            )));
        }
        let [x, mean, var, weight, bias, training, momentum, eps] = args else {
            return Err(Error::msg("a batch norm has eight arguments"));
        };
        if matches!(mean, Value::None) || !bool::from_value(training.clone())? {
            return Ok(None);
        }
        let x = Tensor::from_value(x.clone())?;
        let (momentum, eps) = (
            f64::from_value(momentum.clone())?,
            f64::from_value(eps.clone())?,
        );
        let optional = |value: &Value| Option::<Tensor>::from_value(value.clone());
        let (y, batch_mean, batch_var) = batch_norm(
            &x,
            optional(weight)?.as_ref(),
            optional(bias)?.as_ref(),
            eps,
        )?;
        for (running, batch) in [(mean, batch_mean), (var, batch_var)] {
            let node = node_of(running).ok_or_else(|| Error::msg("a statistic is no buffer"))?;
            // A layer that is called twice moves them twice.
            let before = Tensor::from_value(self.after(running.clone()))?;
            let batch = ops::detach(&batch)?;
            let after = ((before * (1.0 - momentum))? + (batch * momentum)?)?;
            self.0.borrow_mut().insert(node, after.into_value());
        }
        Ok(Some(y.into_value()))
    }
}

/// A batch norm by the statistics of its batch; the mean, and the variance of the population, of each channel. It computes
/// in `f32` at least.
fn batch_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    let dtype = known::dtype(x)?;
    if matches!(dtype, DType::BF16 | DType::F16) {
        let wide = |x: &Tensor| ops::to_dtype(x, DType::F32);
        let (weight, bias) = (weight.map(wide).transpose()?, bias.map(wide).transpose()?);
        let (y, mean, var) = batch_norm(&wide(x)?, weight.as_ref(), bias.as_ref(), eps)?;
        return Ok((ops::to_dtype(&y, dtype)?, mean, var));
    }
    let sizes = known::shape(x, "a batch norm in a training step")?;
    let (Some(channels), true) = (sizes.get(1).copied(), sizes.len() >= 2) else {
        return Err(Error::msg("a batch norm is over two dims or more"));
    };
    let dims: Vec<i64> = (0..sizes.len() as i64).filter(|dim| *dim != 1).collect();
    let count = sizes.iter().product::<usize>() / channels.max(1);
    if count < 2 {
        return Err(Error::msg(
            "a batch norm in training takes more than one value of each channel: give a larger batch, or call `eval()`",
        ));
    }
    let mut wide = vec![1i64; sizes.len()];
    wide[1] = channels as i64;
    let spread = |x: &Tensor| ops::reshape(x, wide.clone());
    let mean = ops::mean(x, dims.clone(), false)?;
    let centred = (x - spread(&mean)?)?;
    let var = ops::mean(&(&centred * &centred)?, dims, false)?;
    let deviation = (&var + eps)?.rsqrt()?;
    let scale = match weight {
        Some(weight) => (deviation * weight)?,
        None => deviation,
    };
    let mut y = (centred * spread(&scale)?)?;
    if let Some(bias) = bias {
        y = (y + spread(bias)?)?;
    }
    let of_population = (var * (count as f64 / (count - 1) as f64))?;
    Ok((y, mean, of_population))
}
