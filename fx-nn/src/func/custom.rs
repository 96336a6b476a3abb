//! `custom_vjp`: a function with a derivative of its own.
//!
//! Invariant: the rule stands in the graph as what it gives for [`cotangent_of`] the results, and is recorded anew for the
//! gradients that there are; without gradients, none of it is left in compiled code.

use fx_core::ir::ParamSpec;
use fx_core::trace::{FromValue, Root, TraceContext};
use fx_core::value::{IntoValue, Tree, Value};
use fx_core::{Error, Result, function, function_table};

use super::batching::{BatchCall, Batching, repeated};
use super::forward::unpacked;
use super::known;
use super::source::{Source, flat, items_of, replayed};
use super::stand_ins::{cotangent_of, with_vjp};
use super::transform::{Graphs, transform};
use crate::tensor::Tensor;

/// A function whose gradient is what `rule` gives, whatever the function computes: as `torch.autograd.Function` and
/// `jax.custom_vjp`. The rule takes the arguments of the function, its result, and the gradient of the result. It gives
/// the gradient of each tensor of floats among the arguments, in a tuple if there are several.
///
/// The rule is recorded like any function, so that second derivatives, [`vmap`](super::vmap) and [`jvp`](super::jvp) need
/// nothing else. A graph keeps it: also a gradient of a graph that was traced, saved and loaded uses it.
/// [`Tensor::backward`] knows nothing of it.
///
/// ```
/// use fx_nn::func::{Transform, custom_vjp, grad};
/// use fx_nn::prelude::*;
/// // Itself; its gradient is kept within -1 and 1.
/// let clipped = custom_vjp(
///     traced!(|x: &Tensor| x * 1.0),
///     traced!(|_x: &Tensor, _result: &Tensor, grad: &Tensor| ops::clamp(grad, Some(-1.0), Some(1.0))),
/// );
/// let slope = grad(traced!(move |x: &Tensor| {
///     let y: Tensor = clipped.call(x)?;
///     y.square()?.sum(..)
/// }));
/// let x = Tensor::from_vec(vec![0.25f64, 3.0, -2.0], 3)?;
/// let slopes: Tensor = slope.call(&x)?;
/// assert_eq!(slopes.to_vec()?, [0.5, 1.0, -1.0]);
/// # Ok::<(), Error>(())
/// ```
pub fn custom_vjp<'r, 's>(of: impl Root<'r>, rule: impl Root<'s>) -> CustomVjp {
    let source = Source::of(of);
    CustomVjp {
        trees: source.trees(),
        source,
        rule: Source::of(rule),
        graphs: Graphs::default(),
    }
}

/// A function with a derivative of its own; made by [`custom_vjp`].
#[derive(Clone)]
pub struct CustomVjp {
    source: Source,
    rule: Source,
    trees: Vec<Tree>,
    graphs: Graphs,
}

transform! { CustomVjp, "custom_vjp", |custom| custom.source.params() }

impl CustomVjp {
    fn recorded(&self, _: &TraceContext, args: &[Value]) -> Result<Value> {
        let gm = self.source.graph(args)?;
        let result = unpacked(replayed(&gm, flat(&gm, args)?)?)?;
        let of_results = Tree::of(&result)?;
        let mut leaves = of_results.flatten(result.clone())?;
        let floats: Vec<usize> = (0..leaves.len())
            .filter(|at| known::is_float(&leaves[*at]))
            .collect();
        let of = |values: &[Value], at: &[usize]| -> Result<Vec<Tensor>> {
            let tensors = at.iter().map(|at| values[*at].clone());
            tensors.map(Tensor::from_value).collect()
        };
        let results = of(&leaves, &floats)?;
        // What is no float has no gradient: zeros stand for it.
        let mut cotangents = leaves.clone();
        let mut probes = Vec::with_capacity(results.len());
        for (at, result) in floats.iter().zip(&results) {
            let probe = cotangent_of(result)?;
            cotangents[*at] = probe.clone().into_value();
            probes.push(probe);
        }
        let mut given = args.to_vec();
        given.push(result);
        given.push(of_results.unflatten(cotangents)?);
        expect_params(self.rule.params(), self.source.params().len() + 2)?;
        let rule = self.rule.graph(&given)?;
        let grads = items_of(unpacked(replayed(&rule, flat(&rule, &given)?)?)?);
        let mut inputs = Vec::new();
        for (tree, arg) in self.trees.iter().zip(args) {
            let leaves = tree.flatten(arg.clone())?.into_iter();
            inputs.extend(leaves.filter(known::is_float));
        }
        if inputs.len() != grads.len() {
            return Err(Error::msg(format_args!(
                "the rule of a custom derivative gives {} gradients, and {} arguments are tensors of floats",
                grads.len(),
                inputs.len()
            )));
        }
        let all: Vec<usize> = (0..inputs.len()).collect();
        let (inputs, grads) = (of(&inputs, &all)?, of(&grads, &all)?);
        for (input, grad) in inputs.iter().zip(&grads) {
            let (expected, found) = (known::dims(input)?, known::dims(grad)?);
            if expected != found {
                return Err(Error::msg(format_args!(
                    "the rule of a custom derivative gives a gradient of shape {found:?} for an argument of shape {expected:?}"
                )));
            }
        }
        let results = with_vjp(&results, &inputs, &probes, &grads)?;
        for (item, at) in known::items(&results.into_value())?.into_iter().zip(floats) {
            leaves[at] = item.into_value();
        }
        of_results.unflatten(leaves)
    }
}

fn expect_params(params: &[ParamSpec], count: usize) -> Result<()> {
    if params.len() == count {
        return Ok(());
    }
    Err(Error::msg(format_args!(
        "the rule of a custom derivative takes the arguments, the result and its gradient: {count}, not {}",
        params.len()
    )))
}

function_table! { Batching {
    function!(cotangent_of) => Batching(|call| Ok(cotangent_of(&call.tensor("result")?)?.into_value())),
    function!(with_vjp) => Batching(of_many),
} }

fn of_many(call: &BatchCall<'_>) -> Result<Value> {
    let results: Value = call.arg("results")?;
    let is_batched = |result: &Tensor| call.is_item_batched(&results, result);
    if !known::items(&results)?.iter().all(is_batched) {
        return Err(Error::msg(
            "a result with a custom derivative is the same for all examples: give it `None` as its axis, or make it depend on them",
        ));
    }
    let grads: Value = call.arg("grads")?;
    let args = call.arg::<Value>("args")?;
    let mut all = Vec::new();
    for (grad, arg) in known::items(&grads)?.into_iter().zip(known::items(&args)?) {
        let is_one = call.is_item_batched(&args, &arg) && !call.is_item_batched(&grads, &grad);
        all.push(match is_one {
            true => repeated(&grad, call.size())?,
            false => grad,
        });
    }
    let all = all.into_iter().map(IntoValue::into_value).collect();
    call.with(&[("grads", Value::List(all))])
}
