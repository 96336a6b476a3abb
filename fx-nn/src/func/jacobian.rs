//! `jacrev`, `jacfwd` and `hessian`: whole Jacobians, as products with each unit vector at once.

use fx_core::trace::{FromValue, Root, TraceContext};
use fx_core::value::{Int, IntoValue, Tree, Value};
use fx_core::{Error, Result};

use super::axes::Randomness;
use super::control::forward;
use super::forward::{tuple, without_aux};
use super::grad::Vjp;
use super::jvp::Jvp;
use super::known;
use super::source::Source;
use super::transform::{Graphs, transform, wrt};
use super::vmap::Vmap;
use super::wrt::Wrt;
use crate::ops;
use crate::tensor::Tensor;

/// The Jacobian of a function by reverse mode: of its first argument, unless [`wrt`](JacRev::wrt) says otherwise. It has
/// the dims of the result, then those of the argument.
pub fn jacrev<'r>(of: impl Root<'r>) -> JacRev {
    JacRev::of_source(Source::of(of), 0.into())
}

/// The Jacobian of a function by forward mode: of its first argument, unless [`wrt`](JacFwd::wrt) says otherwise. It has
/// the dims of the result, then those of the argument.
pub fn jacfwd<'r>(of: impl Root<'r>) -> JacFwd {
    JacFwd::of_source(Source::of(of), 0.into())
}

/// The second derivatives of a function: forward mode over reverse mode.
pub fn hessian<'r>(of: impl Root<'r>) -> Hessian {
    Hessian::of_source(Source::of(of), 0.into())
}

macro_rules! jacobian {
    ($name:ident, $text:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone)]
        pub struct $name {
            source: Source,
            wrt: Wrt,
            has_aux: bool,
            chunk: Option<usize>,
            trees: Vec<Tree>,
            graphs: Graphs,
        }

        transform! { $name, $text, |of| of.source.params() }
        wrt! { $name, "Which arguments it is of." }

        impl $name {
            /// The function gives a tuple: what this is of, and what else is of interest (of several items, a tuple).
            /// The derivatives are given with that: `(jacobian, aux)`.
            #[must_use]
            pub fn has_aux(mut self) -> Self {
                self.has_aux = true;
                self.graphs = Graphs::default();
                self
            }

            /// How many unit vectors are computed at once: all, unless this says otherwise. A function that draws
            /// random numbers has to be computed at once.
            #[must_use]
            pub fn chunk_size(mut self, vectors: usize) -> Self {
                self.chunk = Some(vectors);
                self.graphs = Graphs::default();
                self
            }

            fn of_source(source: Source, wrt: Wrt) -> Self {
                $name {
                    trees: source.trees(),
                    source,
                    wrt,
                    has_aux: false,
                    chunk: None,
                    graphs: Graphs::default(),
                }
            }
        }
    };
}

jacobian! { JacRev, "jacrev", "A Jacobian by reverse mode; made by [`jacrev`]." }
jacobian! { JacFwd, "jacfwd", "A Jacobian by forward mode; made by [`jacfwd`]." }
jacobian! { Hessian, "hessian", "Second derivatives; made by [`hessian`]." }

impl Hessian {
    fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let mut inner = JacRev::of_source(self.source.clone(), self.wrt.clone());
        (inner.has_aux, inner.chunk) = (self.has_aux, self.chunk);
        let inner = Source::Recorder(Box::new(inner));
        let mut outer = JacFwd::of_source(inner, self.wrt.clone());
        (outer.has_aux, outer.chunk) = (self.has_aux, self.chunk);
        outer.recorded(cx, args)
    }
}

/// The unit vectors of a tensor's elements, each in the tensor's shape.
fn units(x: &Tensor, name: &str) -> Result<Tensor> {
    let count: usize = known::shape(x, name)?.iter().product();
    let eye = ops::eye(count as i64, None, Some(known::dtype(x)?))?;
    let mut shape = vec![Int::from(count as i64)];
    shape.extend(known::sizes(x)?);
    ops::reshape(&eye, shape)
}

/// Zeros for each unit vector of another tensor.
fn zeros(x: &Tensor, count: Int) -> Result<Tensor> {
    let mut shape = vec![count];
    shape.extend(known::sizes(x)?);
    ops::zeros(shape, Some(known::dtype(x)?))
}

/// For each of some tensors its unit vectors, and zeros of the others.
fn bases(of: &[Tensor], name: &str) -> Result<Vec<Vec<Value>>> {
    let mut all = Vec::with_capacity(of.len());
    for (own, tensor) in of.iter().enumerate() {
        let units = units(tensor, name)?;
        let count = known::size(&units, 0)?;
        let each = of.iter().enumerate().map(|(at, other)| match at == own {
            true => Ok((&units).into_value()),
            false => zeros(other, count).map(IntoValue::into_value),
        });
        all.push(each.collect::<Result<_>>()?);
    }
    Ok(all)
}

fn tensors(values: &[Value]) -> Result<Vec<Tensor>> {
    values.iter().cloned().map(Tensor::from_value).collect()
}

/// Whether a function may draw: once for all unit vectors. Each of several parts would be of another draw.
fn drawn(parts: usize) -> Randomness {
    match parts {
        1 => Randomness::Same,
        _ => Randomness::Error,
    }
}

/// The results of a function, which are floats.
fn results_of(values: &[Value], name: &str) -> Result<Vec<Tensor>> {
    if values.is_empty() {
        return Err(Error::msg(format_args!(
            "{name}: the function gives no tensor"
        )));
    }
    if let Some(at) = values.iter().position(|value| !known::is_float(value)) {
        return Err(Error::msg(format_args!(
            "{name}: result {at} of the function is no tensor of floats, which a Jacobian is of"
        )));
    }
    tensors(values)
}

/// The second of some results.
fn second(results: Value) -> Result<Value> {
    match &results {
        Value::Tuple(items) if items.len() >= 2 => Ok(items[1].clone()),
        other => Err(Error::msg(format_args!(
            "two results or more are {}",
            other.describe()
        ))),
    }
}

/// A Jacobian, with what is given beside it.
fn with_aux(jacobian: Value, aux: Option<Value>) -> Value {
    match aux {
        Some(aux) => tuple([jacobian, aux]),
        None => jacobian,
    }
}

impl JacRev {
    fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let name = "jacrev";
        let result = forward(cx, &self.source, args, &self.wrt)?.result;
        let (result, aux) = without_aux(result, self.has_aux)?;
        let tree = Tree::of(&result)?;
        let results = results_of(&tree.flatten(result)?, name)?;
        let mut vjp = Vjp::of_source(self.source.clone()).wrt(self.wrt.clone());
        if self.has_aux {
            vjp = vjp.has_aux();
        }
        let mut axes = vec![None; args.len()];
        axes.push(Some(0));
        let all = Vmap::of_source(Source::Recorder(Box::new(vjp)))
            .in_axes(axes)
            .chunks_of(self.chunk)
            .randomness(drawn(results.len()));
        let mut jacobians = Vec::with_capacity(results.len());
        for (result, basis) in results.iter().zip(bases(&results, name)?) {
            let mut given = args.to_vec();
            given.push(tree.unflatten(basis)?);
            let grads = second(all.recorded(cx, &given)?)?;
            let grads_tree = Tree::of(&grads)?;
            let own = known::sizes(result)?;
            let shaped = tensors(&grads_tree.flatten(grads)?)?
                .into_iter()
                .map(|grad| {
                    let mut shape = own.clone();
                    shape.extend(known::sizes(&grad)?.into_iter().skip(1));
                    ops::reshape(&grad, shape).map(IntoValue::into_value)
                });
            jacobians.push(grads_tree.unflatten(shaped.collect::<Result<_>>()?)?);
        }
        Ok(with_aux(tree.unflatten(jacobians)?, aux))
    }
}

impl JacFwd {
    fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let name = "jacfwd";
        let places = self.wrt.places(self.source.params())?;
        let mut jvp = Jvp::of_source(self.source.clone()).wrt(self.wrt.clone());
        let mut aux = None;
        if self.has_aux {
            jvp = jvp.has_aux();
            let result = forward(cx, &self.source, args, &self.wrt)?.result;
            aux = without_aux(result, true)?.1;
        }
        let mut axes = vec![None; args.len()];
        axes.push(Some(0));
        let all = Vmap::of_source(Source::Recorder(Box::new(jvp)));
        let all = all.in_axes(axes).chunks_of(self.chunk);
        let wanted: Vec<Value> = places.iter().map(|at| args[*at].clone()).collect();
        let whole = tuple(wanted);
        let inputs_tree = Tree::of(&whole)?;
        let inputs = tensors(&inputs_tree.flatten(whole)?)?;
        let all = all.randomness(drawn(inputs.len()));
        // For each input, the change of each result with each of its elements.
        let mut by_input: Vec<Vec<Value>> = Vec::with_capacity(inputs.len());
        let mut results_tree = None;
        for (input, basis) in inputs.iter().zip(bases(&inputs, name)?) {
            let tangents = inputs_tree.unflatten(basis)?;
            let tangents = match (&tangents, self.wrt.is_one) {
                (Value::Tuple(all), true) => all[0].clone(),
                _ => tangents,
            };
            let mut given = args.to_vec();
            given.push(tangents);
            let changes = second(all.recorded(cx, &given)?)?;
            let tree = Tree::of(&changes)?;
            let own = known::sizes(input)?;
            let changes = results_of(&tree.flatten(changes)?, name)?;
            let shaped = changes.into_iter().map(|change| {
                let mut shape: Vec<Int> = known::sizes(&change)?.into_iter().skip(1).collect();
                shape.extend(own.iter().copied());
                ops::reshape(&ops::movedim(&change, 0, -1)?, shape).map(IntoValue::into_value)
            });
            by_input.push(shaped.collect::<Result<_>>()?);
            results_tree = Some(tree);
        }
        let tree = results_tree.ok_or_else(|| Error::msg("jacfwd: there is no argument"))?;
        let count = by_input.first().map_or(0, Vec::len);
        let by_result = (0..count).map(|result| {
            let all =
                inputs_tree.unflatten(by_input.iter().map(|all| all[result].clone()).collect())?;
            Ok(match (&all, self.wrt.is_one) {
                (Value::Tuple(all), true) => all[0].clone(),
                _ => all,
            })
        });
        let jacobian = tree.unflatten(by_result.collect::<Result<_>>()?)?;
        Ok(with_aux(jacobian, aux))
    }
}
