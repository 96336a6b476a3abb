//! `grad`, `value_and_grad` and `vjp`: gradients of functions, modules and graph modules.

use fx_core::ir::ParamSpec;
use fx_core::trace::{FromValue, Root, TraceContext};
use fx_core::value::{Tree, Value};
use fx_core::{Error, Result};

use super::control::forward;
use super::derivative::Cotangent;
use super::forward::{seeds, tuple, tuple_with_aux, without_aux};
use super::known;
use super::source::Source;
use super::transform::{Graphs, transform, wrt};
use super::wrt::Wrt;
use crate::ops;
use crate::tensor::Tensor;

/// The gradient of a function whose result is one number: of its first argument, unless [`wrt`](Grad::wrt) says
/// otherwise.
pub fn grad<'r>(of: impl Root<'r>) -> Grad {
    Grad::of(of, false)
}

/// The value of a function whose result is one number, and its gradient.
pub fn value_and_grad<'r>(of: impl Root<'r>) -> Grad {
    Grad::of(of, true)
}

/// The result of a function, and what a gradient of it becomes: a product with the Jacobian from the left.
pub fn vjp<'r>(of: impl Root<'r>) -> Vjp {
    Vjp::of_source(Source::of(of))
}

/// A gradient; made by [`grad`] and [`value_and_grad`].
#[derive(Clone)]
pub struct Grad {
    source: Source,
    wrt: Wrt,
    with_value: bool,
    has_aux: bool,
    trees: Vec<Tree>,
    graphs: Graphs,
}

impl Grad {
    fn of<'r>(of: impl Root<'r>, with_value: bool) -> Self {
        Grad::of_source(Source::of(of), with_value)
    }

    pub(crate) fn of_source(source: Source, with_value: bool) -> Self {
        Grad {
            trees: source.trees(),
            source,
            wrt: 0.into(),
            with_value,
            has_aux: false,
            graphs: Graphs::default(),
        }
    }

    /// The function gives a tuple: what this is of, and what else is of interest (of several items, a tuple).
    /// The gradient is given with that: `(gradient, aux)`, or `((value, aux), gradient)`.
    #[must_use]
    pub fn has_aux(mut self) -> Self {
        self.has_aux = true;
        self.graphs = Graphs::default();
        self
    }

    pub(crate) fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        self.recorded_from(cx, args, None)
    }

    /// The same; the gradient of the value is `seed`, and 1 if there is none.
    pub(crate) fn recorded_from(
        &self,
        cx: &TraceContext,
        args: &[Value],
        seed: Option<&Tensor>,
    ) -> Result<Value> {
        let run = forward(cx, &self.source, args, &self.wrt)?;
        let (value, aux) = without_aux(run.result.clone(), self.has_aux)?;
        let number = Tensor::from_value(value.clone()).map_err(|_| {
            Error::msg(format_args!(
                "a gradient is of one number, and the function gives {}; `vjp` takes others",
                value.describe()
            ))
        })?;
        let shape = known::dims(&number)?;
        if shape.iter().any(|dim| dim.as_known() != Some(1)) {
            return Err(Error::msg(format_args!(
                "a gradient is of one number, and the function gives a tensor of shape {shape:?}: sum it, or use `vjp`"
            )));
        }
        if !known::dtype(&number)?.is_floating_point() {
            return Err(Error::msg(format_args!(
                "a gradient is of a float, and the function gives {}",
                known::dtype(&number)?
            )));
        }
        let seed = match seed {
            Some(seed) => {
                ops::to_dtype(seed, known::dtype(&number)?)?.reshape(known::sizes(&number)?)?
            }
            None => ops::ones_like(&number, None)?,
        };
        let seed = Cotangent::One(seed);
        let grads = run.pulled(cx, vec![(value.clone(), seed)])?;
        Ok(match (self.with_value, aux) {
            (false, None) => grads,
            (false, Some(aux)) => tuple([grads, aux]),
            (true, None) => tuple([value, grads]),
            (true, Some(aux)) => tuple([tuple([value, aux]), grads]),
        })
    }
}

/// A product with a Jacobian from the left; made by [`vjp`].
#[derive(Clone)]
pub struct Vjp {
    source: Source,
    wrt: Wrt,
    has_aux: bool,
    params: Vec<ParamSpec>,
    trees: Vec<Tree>,
    graphs: Graphs,
}

impl Vjp {
    pub(crate) fn of_source(source: Source) -> Self {
        let (params, trees) = source.with_argument("cotangent");
        Vjp {
            wrt: Wrt::all(source.params().len()),
            has_aux: false,
            source,
            params,
            trees,
            graphs: Graphs::default(),
        }
    }

    /// The function gives a tuple: what this is of, and what else is of interest (of several items, a tuple).
    /// The results are `(result, gradients, aux)`.
    #[must_use]
    pub fn has_aux(mut self) -> Self {
        self.has_aux = true;
        self.graphs = Graphs::default();
        self
    }

    fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let Some((cotangent, args)) = args.split_last() else {
            return Err(Error::msg("the gradient of the result is missing"));
        };
        let run = forward(cx, &self.source, args, &self.wrt)?;
        let (result, aux) = without_aux(run.result.clone(), self.has_aux)?;
        let seeds = seeds(&result, cotangent)?;
        let grads = run.pulled(cx, seeds)?;
        Ok(tuple_with_aux([result, grads], aux))
    }
}

transform! { Grad, "grad", |grad| grad.source.params() }
wrt! { Grad, "What the gradient is of." }
transform! { Vjp, "vjp", |vjp| &vjp.params }
wrt! { Vjp, "What the gradients are of: all arguments, unless this says otherwise." }
