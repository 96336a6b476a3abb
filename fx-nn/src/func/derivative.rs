//! `Derivative`: how a gradient of what a function gives becomes gradients of its arguments, and `Pullback`, the call
//! that a rule sees.
//!
//! Invariant: what a rule gives for an argument has the argument's shape and type.

use fx_core::ir::Function;
use fx_core::passes::DecomposedCall;
use fx_core::trace::{CallArgs, FromValue};
use fx_core::value::Value;
use fx_core::{Error, Result};

use super::known;
use crate::ops;
use crate::tensor::Tensor;

/// How a function is differentiated: an entry of a [`FunctionTable`](fx_core::ir::FunctionTable).
///
/// A function without an entry is differentiated by the functions that it is decomposed into, or
/// composed of, if it is.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Derivative {
    /// By a rule in reverse mode.
    Vjp(fn(&mut Pullback<'_>) -> Result<()>),
    /// By what other functions give for the same arguments.
    Composite(fn(&DecomposedCall<'_>) -> Result<Value>),
}

/// The gradient of one value: of a structure, that of each item, where there is one.
#[derive(Debug, Clone)]
pub(crate) enum Cotangent {
    One(Tensor),
    Items(Vec<Option<Cotangent>>),
    /// Of a list of tensors of one shape, those of its items along a new first dim.
    Stacked(Tensor),
}

impl Cotangent {
    /// The sum of two gradients of one value.
    pub fn plus(self, other: Cotangent) -> Result<Cotangent> {
        match (self, other) {
            (Cotangent::One(a), Cotangent::One(b)) => Ok(Cotangent::One((a + b)?)),
            (Cotangent::Stacked(a), Cotangent::Stacked(b)) => Ok(Cotangent::Stacked((a + b)?)),
            (Cotangent::Items(a), Cotangent::Items(b)) => {
                let (mut a, mut b) = (a.into_iter(), b.into_iter());
                let mut sums = Vec::with_capacity(a.len().max(b.len()));
                loop {
                    sums.push(match (a.next().flatten(), b.next().flatten()) {
                        (None, None) if a.len() == 0 && b.len() == 0 => break,
                        (Some(a), Some(b)) => Some(a.plus(b)?),
                        (a, b) => a.or(b),
                    });
                }
                Ok(Cotangent::Items(sums))
            }
            _ => Err(Error::msg("a value has gradients of two structures")),
        }
    }
}

/// A call whose gradient is asked for: its arguments, its result, and the gradient of its result.
pub struct Pullback<'c> {
    pub(crate) function: Function,
    pub(crate) args: &'c [Value],
    pub(crate) result: &'c Value,
    pub(crate) grad: &'c Cotangent,
    /// Which arguments a gradient is needed of.
    pub(crate) needed: &'c [bool],
    pub(crate) given: Vec<Option<Cotangent>>,
}

impl Pullback<'_> {
    /// The function.
    pub fn function(&self) -> Function {
        self.function
    }

    fn place(&self, name: &str) -> Result<usize> {
        let params = self.function.params();
        let at = params.iter().position(|param| param.name == name);
        at.ok_or_else(|| {
            Error::msg(format_args!(
                "`{}` has no parameter `{name}`",
                self.function.path()
            ))
        })
    }

    /// The argument of a parameter.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter, or the argument is of another type.
    pub fn arg<T: FromValue>(&self, name: &str) -> Result<T> {
        T::from_value(self.args[self.place(name)?].clone())
    }

    /// What the call gave.
    ///
    /// # Errors
    /// Returns an error if it is of another type.
    pub fn result<T: FromValue>(&self) -> Result<T> {
        T::from_value(self.result.clone())
    }

    /// The gradient of the result, which is one tensor.
    ///
    /// # Errors
    /// Returns an error if the result is no tensor.
    pub fn grad(&self) -> Result<Tensor> {
        match self.grad {
            Cotangent::One(grad) => Ok(grad.clone()),
            _ => Err(self.wrong("its result is not one tensor")),
        }
    }

    /// The gradient of an item of the result; none if there is none.
    ///
    /// # Errors
    /// Returns an error if the result is one tensor.
    pub fn grad_of(&self, item: usize) -> Result<Option<Tensor>> {
        match self.grad {
            Cotangent::Items(items) => match items.get(item) {
                Some(Some(Cotangent::One(grad))) => Ok(Some(grad.clone())),
                Some(Some(_)) => Err(self.wrong("an item of its result is no tensor")),
                _ => Ok(None),
            },
            _ => Err(self.wrong("its result is not several tensors")),
        }
    }

    /// The gradient of each item of a result: zeros where there is none.
    pub(crate) fn grads(&self) -> Result<Vec<Tensor>> {
        let items = self.items()?;
        let grads = items.iter().enumerate();
        grads
            .map(|(at, item)| {
                Ok(match self.grad_of(at)? {
                    Some(grad) => grad,
                    None => ops::zeros_like(item, None)?,
                })
            })
            .collect()
    }

    /// The items of the result.
    pub(crate) fn items(&self) -> Result<Vec<Tensor>> {
        known::items(self.result)
    }

    /// The same call with other arguments for some parameters.
    ///
    /// # Errors
    /// Returns the error of the function, or one if there is no such parameter.
    pub(crate) fn with<T: FromValue>(&self, others: &[(&str, Value)]) -> Result<T> {
        let mut args = self.args.to_vec();
        for (name, value) in others {
            args[self.place(name)?] = value.clone();
        }
        T::from_value(self.function.call(args_of(args))?)
    }

    fn wrong(&self, problem: &str) -> Error {
        Error::msg(format_args!(
            "the derivative of `{}`: {problem}",
            self.function.path()
        ))
    }

    /// Whether a gradient of an argument is needed: a rule need not give others.
    pub fn needs(&self, name: &str) -> bool {
        self.place(name).is_ok_and(|at| self.needed[at])
    }

    /// Gives the gradient of an argument, if it is needed. What broadcasting added to the argument is summed, and it
    /// has the argument's type.
    ///
    /// # Errors
    /// Returns the error of `of`, or one if the shapes cannot be.
    pub fn give(&mut self, name: &str, of: impl FnOnce(&Self) -> Result<Tensor>) -> Result<()> {
        let at = self.place(name)?;
        if !self.needed[at] {
            return Ok(());
        }
        let given = of(self)?;
        let fitted = fitted(given, &Tensor::from_value(self.args[at].clone())?)?;
        self.given[at] = Some(Cotangent::One(fitted));
        Ok(())
    }

    /// Gives the gradients of an argument that is a list of tensors of one shape, along a new first dim.
    pub(crate) fn give_stacked(
        &mut self,
        name: &str,
        of: impl FnOnce(&Self) -> Result<Tensor>,
    ) -> Result<()> {
        let at = self.place(name)?;
        if self.needed[at] {
            self.given[at] = Some(Cotangent::Stacked(of(self)?));
        }
        Ok(())
    }

    /// Gives the gradients of an argument that is a list of tensors, if they are needed.
    ///
    /// # Errors
    /// Returns the error of `of`, or one if the shapes cannot be.
    pub fn give_items(
        &mut self,
        name: &str,
        of: impl FnOnce(&Self) -> Result<Vec<Tensor>>,
    ) -> Result<()> {
        let at = self.place(name)?;
        if !self.needed[at] {
            return Ok(());
        }
        let given = of(self)?.into_iter().zip(known::items(&self.args[at])?);
        let given = given.map(|(grad, item)| Ok(Some(Cotangent::One(fitted(grad, &item)?))));
        self.given[at] = Some(Cotangent::Items(given.collect::<Result<_>>()?));
        Ok(())
    }
}

/// Positional arguments.
pub(crate) fn args_of(args: Vec<Value>) -> CallArgs {
    CallArgs {
        args,
        kwargs: Vec::new(),
    }
}

/// A gradient in the shape and the type of what it is of.
fn fitted(grad: Tensor, of: &Tensor) -> Result<Tensor> {
    let grad = sum_to(&grad, of)?;
    match (known::dtype(&grad), known::dtype(of)) {
        (Ok(from), Ok(to)) if from != to => ops::to_dtype(&grad, to),
        _ => Ok(grad),
    }
}

/// The sum over what broadcasting adds to a tensor to reach the shape of `x`.
pub(crate) fn sum_to(x: &Tensor, like: &Tensor) -> Result<Tensor> {
    let (from, to) = (known::dims(x)?, known::dims(like)?);
    if from == to {
        return Ok(x.clone());
    }
    let Some(added) = from.len().checked_sub(to.len()) else {
        return Err(Error::msg(format_args!(
            "a gradient of shape {from:?} is not one of a tensor of shape {to:?}"
        )));
    };
    let is_one = |dim: &fx_core::value::Dim| dim.as_known() == Some(1);
    let summed: Vec<i64> = (0..from.len())
        .filter(|at| *at < added || (is_one(&to[at - added]) && !is_one(&from[*at])))
        .map(|at| at as i64)
        .collect();
    if summed.is_empty() {
        return Ok(x.clone());
    }
    let sum = ops::sum(x, summed, true)?;
    match added {
        0 => Ok(sum),
        _ => ops::reshape(&sum, known::sizes(like)?),
    }
}
