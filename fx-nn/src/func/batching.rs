//! `Batching`: what a call is of many examples at once, and `BatchCall`, the call that a rule sees.
//!
//! Invariant: what is batched has the examples along its first dim.

use fx_core::ir::{Function, ValueMeta};
use fx_core::trace::FromValue;
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result};

use super::derivative::args_of;
use super::known;
use super::tape::node_of;
use crate::ops;
use crate::tensor::Tensor;

/// How a function is called for many examples at once: an entry of a
/// [`FunctionTable`](fx_core::ir::FunctionTable). What the rule gives has the examples along its first dim.
///
/// A function without an entry is called by what its [`OpKind`](crate::OpKind) says of dims, or by the functions that it
/// is decomposed into; else once for each example.
#[derive(Debug, Clone, Copy)]
pub struct Batching(pub fn(&BatchCall<'_>) -> Result<Value>);

/// A call for many examples: some of its arguments have them along their first dim.
pub struct BatchCall<'c> {
    pub(crate) function: Function,
    pub(crate) args: &'c [Value],
    /// Which arguments are batched.
    pub(crate) batched: &'c [bool],
    pub(crate) size: &'c Int,
    /// What one example gives.
    pub(crate) result: Option<&'c ValueMeta>,
    pub(crate) is_batched: &'c dyn Fn(&Value) -> bool,
}

impl BatchCall<'_> {
    /// The function.
    pub fn function(&self) -> Function {
        self.function
    }

    /// How many examples there are.
    pub fn size(&self) -> Int {
        *self.size
    }

    fn place(&self, name: &str) -> Result<usize> {
        let params = self.function.params();
        params
            .iter()
            .position(|param| param.name == name)
            .ok_or_else(|| {
                Error::msg(format_args!(
                    "`{}` has no parameter `{name}`",
                    self.function.path()
                ))
            })
    }

    /// The argument of a parameter, as it is.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter, or the argument is of another type.
    pub fn arg<T: FromValue>(&self, name: &str) -> Result<T> {
        T::from_value(self.args[self.place(name)?].clone())
    }

    /// Whether an argument has the examples along its first dim.
    pub fn is_batched(&self, name: &str) -> bool {
        self.place(name).is_ok_and(|at| self.batched[at])
    }

    /// Whether a value inside of an argument has.
    pub(crate) fn has_batch(&self, value: &Value) -> bool {
        (self.is_batched)(value)
    }

    /// How many dims an argument has in one example.
    ///
    /// # Errors
    /// Returns an error if the argument is no tensor of a known rank.
    pub fn rank(&self, name: &str) -> Result<usize> {
        Ok(known::rank(&self.arg(name)?)? - usize::from(self.is_batched(name)))
    }

    /// The sizes of an argument in one example.
    pub(crate) fn sizes(&self, name: &str) -> Result<Vec<Int>> {
        let sizes = known::sizes(&self.arg(name)?)?;
        Ok(sizes[usize::from(self.is_batched(name))..].to_vec())
    }

    /// An argument with the examples along its first dim, also if it is the same for all.
    ///
    /// # Errors
    /// Returns an error if the argument is no tensor of a known shape.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        let x: Tensor = self.arg(name)?;
        match self.is_batched(name) {
            true => Ok(x),
            false => repeated(&x, self.size()),
        }
    }

    /// An argument, if it is given, with the examples along its first dim.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<Tensor>> {
        match self.arg::<Value>(name)? {
            Value::None => Ok(None),
            _ => self.tensor(name).map(Some),
        }
    }

    /// The items of a list, each with the examples along its first dim.
    pub(crate) fn items(&self, name: &str) -> Result<Vec<Tensor>> {
        let whole: Value = self.arg(name)?;
        let items = known::items(&whole)?;
        let each = items
            .into_iter()
            .map(|item| match self.is_item_batched(&whole, &item) {
                true => Ok(item),
                false => repeated(&item, self.size()),
            });
        each.collect()
    }

    /// Whether an item of a list has the examples along its first dim.
    pub(crate) fn is_item_batched(&self, whole: &Value, item: &Tensor) -> bool {
        (node_of(whole).is_some() && self.has_batch(whole)) || self.has_batch(&item.into_value())
    }

    /// A dim of one example as one behind the examples.
    ///
    /// # Errors
    /// Returns an error if there is no such dim.
    pub fn dim(&self, dim: i64, rank: usize) -> Result<i64> {
        Ok(known::place(dim, rank)? as i64 + 1)
    }

    /// A call for each example, and the results as one.
    ///
    /// # Errors
    /// Returns the errors of the function, or one if only a run knows how many examples there are.
    pub fn one_by_one(&self) -> Result<Value> {
        one_by_one(self)
    }

    /// The same call with other arguments for some parameters.
    ///
    /// # Errors
    /// Returns the error of the function, or one if there is no such parameter.
    pub fn with(&self, others: &[(&str, Value)]) -> Result<Value> {
        let mut args = self.args.to_vec();
        for (name, value) in others {
            args[self.place(name)?] = value.clone();
        }
        self.function.call(args_of(args))
    }
}

/// A call for each example, and the results as one.
fn one_by_one(call: &BatchCall<'_>) -> Result<Value> {
    let count = known::number(&call.size()).ok_or_else(|| {
        Error::msg(format_args!(
            "`{}` has no batching rule, and a call for each example needs a number of examples: give it a rule with `#[op(batch = ..)]`",
            call.function().path()
        ))
    })?;
    let mut results: Vec<Vec<Tensor>> = Vec::new();
    let mut is_tuple = false;
    for example in 0..count {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in call.args {
            args.push(of_example(call, arg, example)?);
        }
        let found = call.function().call(args_of(args))?;
        let tensor = Tensor::from_value(found.clone())
            .ok()
            .filter(|x| known::rank(x).is_ok());
        let items = match tensor {
            Some(tensor) => vec![tensor],
            None => {
                is_tuple = true;
                known::items(&found)?
            }
        };
        results.resize(items.len().max(results.len()), Vec::new());
        for (all, item) in results.iter_mut().zip(items) {
            all.push(item);
        }
    }
    let stacked = results
        .iter()
        .map(|all| ops::stack(all, 0).map(IntoValue::into_value));
    let stacked = stacked.collect::<Result<Vec<Value>>>()?;
    match (is_tuple, stacked.into_iter()) {
        (false, mut one) => one
            .next()
            .ok_or_else(|| Error::msg("vmap: there are no examples")),
        (true, all) => Ok(Value::Tuple(all.collect())),
    }
}

/// An argument of one example.
fn of_example(call: &BatchCall<'_>, arg: &Value, example: i64) -> Result<Value> {
    Ok(match arg {
        Value::List(items) => Value::List(
            items
                .iter()
                .map(|item| of_example(call, item, example))
                .collect::<Result<_>>()?,
        ),
        Value::Tuple(items) => Value::Tuple(
            items
                .iter()
                .map(|item| of_example(call, item, example))
                .collect::<Result<_>>()?,
        ),
        arg if call.has_batch(arg) => {
            ops::select(&Tensor::from_value(arg.clone())?, 0, example)?.into_value()
        }
        arg => arg.clone(),
    })
}

/// A tensor for each example.
pub(crate) fn repeated(x: &Tensor, size: Int) -> Result<Tensor> {
    let mut sizes = vec![size];
    sizes.extend(known::sizes(x)?);
    ops::expand(&ops::unsqueeze(x, 0)?, sizes)
}

/// A batched tensor with dims of size 1 behind the examples, until an example has `rank` dims.
pub(crate) fn aligned(x: &Tensor, rank: usize) -> Result<Tensor> {
    let own = known::rank(x)? - 1;
    if own >= rank {
        return Ok(x.clone());
    }
    let mut sizes = known::sizes(x)?;
    sizes.splice(1..1, vec![Int::from(1); rank - own]);
    ops::reshape(x, sizes)
}
