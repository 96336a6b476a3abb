//! `jvp`: forward mode, as reverse mode twice: what reverse mode gives is linear in the gradient that it starts from.

use fx_core::ir::ParamSpec;
use fx_core::trace::{FromValue, Root, TraceContext};
use fx_core::value::{IntoValue, Tree, Value};
use fx_core::{Error, Result};

use super::control::forward;
use super::derivative::Cotangent;
use super::forward::{tuple_with_aux, without_aux};
use super::known;
use super::source::Source;
use super::tape::{self, node_of};
use super::transform::{Graphs, transform, wrt};
use super::wrt::Wrt;
use crate::ops;
use crate::tensor::Tensor;

/// The result of a function, and how it changes with its arguments: a product with the Jacobian from the right.
///
/// The last argument is the tangents: one for each argument, in a tuple, or one alone if there is one argument.
pub fn jvp<'r>(of: impl Root<'r>) -> Jvp {
    Jvp::of_source(Source::of(of))
}

/// A product with a Jacobian from the right; made by [`jvp`].
#[derive(Clone)]
pub struct Jvp {
    source: Source,
    wrt: Wrt,
    has_aux: bool,
    params: Vec<ParamSpec>,
    trees: Vec<Tree>,
    graphs: Graphs,
}

transform! { Jvp, "jvp", |jvp| &jvp.params }
wrt! { Jvp, "What the tangents are of: all arguments, unless this says otherwise." }

fn other_structure(error: Error) -> Error {
    Error::msg(format_args!(
        "the tangents have another structure than the arguments: {error}"
    ))
}

impl Jvp {
    pub(crate) fn of_source(source: Source) -> Self {
        let (params, trees) = source.with_argument("tangents");
        Jvp {
            wrt: Wrt::all(source.params().len()),
            has_aux: false,
            source,
            params,
            trees,
            graphs: Graphs::default(),
        }
    }

    /// The function gives a tuple: what this is of, and what else is of interest (of several items, a tuple).
    /// The results are `(result, change, aux)`.
    #[must_use]
    pub fn has_aux(mut self) -> Self {
        self.has_aux = true;
        self.graphs = Graphs::default();
        self
    }

    pub(crate) fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let Some((tangents, args)) = args.split_last() else {
            return Err(Error::msg("the tangents are missing"));
        };
        if !self.wrt.parameters.is_empty() {
            return Err(Error::msg(
                "jvp is of arguments: `functional_call` makes parameters arguments",
            ));
        }
        let run = forward(cx, &self.source, args, &self.wrt)?;
        let leaves = run.leaves();
        let given = match self.wrt.is_one {
            true => vec![tangents.clone()],
            false => match tangents {
                Value::Tuple(all) | Value::List(all) if all.len() == run.trees().count() => {
                    all.to_vec()
                }
                other => {
                    return Err(Error::msg(format_args!(
                        "there is a tangent for each of {} arguments, in a tuple, not {}",
                        run.trees().count(),
                        other.describe()
                    )));
                }
            },
        };
        let mut tangents = Vec::with_capacity(leaves.len());
        for (tree, tangent) in run.trees().zip(given) {
            let all = tree.flatten(tangent).map_err(other_structure)?;
            for (leaf, tangent) in leaves[tangents.len()..].iter().zip(all) {
                tangents.push(match known::is_float(leaf) {
                    true => Tensor::from_value(tangent)
                        .map(Some)
                        .map_err(other_structure)?,
                    false => None,
                });
            }
        }
        // Backward from ones, which do not matter: the result is linear in them.
        let behind = tape::last(cx)?;
        let (result, aux) = without_aux(run.result.clone(), self.has_aux)?;
        let tree = Tree::of(&result)?;
        let results = tree.flatten(result.clone())?;
        let mut starts = Vec::with_capacity(results.len());
        let mut seeds = Vec::new();
        for value in &results {
            if !known::is_float(value) {
                starts.push(None);
                continue;
            }
            let start = ops::ones_like(&Tensor::from_value(value.clone())?, None)?;
            seeds.push((value.clone(), Cotangent::One(start.clone())));
            starts.push(Some(start));
        }
        let wrt: Vec<_> = leaves.iter().filter_map(node_of).collect();
        let mut back = tape::pull(cx, run.ways(), run.behind(), seeds, &wrt)?;
        let mut seeds = Vec::new();
        for (leaf, tangent) in leaves.iter().zip(tangents) {
            let Some(tangent) = tangent else { continue };
            let leaf_of = Tensor::from_value(leaf.clone())?;
            if known::dims(&leaf_of)? != known::dims(&tangent)? {
                return Err(Error::msg(format_args!(
                    "a tangent of shape {:?} for an argument of shape {:?}",
                    known::dims(&tangent)?,
                    known::dims(&leaf_of)?
                )));
            }
            if let Some(Cotangent::One(grad)) = node_of(leaf).and_then(|node| back.remove(&node)) {
                seeds.push((grad.into_value(), Cotangent::One(tangent)));
            }
        }
        let wrt: Vec<_> = starts
            .iter()
            .flatten()
            .filter_map(|start| node_of(&start.into_value()))
            .collect();
        let mut forward = tape::pull(cx, run.ways(), behind, seeds, &wrt)?;
        let changes = results.iter().zip(starts).map(|(value, start)| {
            let Some(start) = start else {
                return Ok(Value::None);
            };
            let node = node_of(&(&start).into_value());
            match node.and_then(|node| forward.remove(&node)) {
                Some(Cotangent::One(change)) => Ok(change.into_value()),
                _ => ops::zeros_like(&Tensor::from_value(value.clone())?, None)
                    .map(IntoValue::into_value),
            }
        });
        let changes = tree.unflatten(changes.collect::<Result<_>>()?)?;
        Ok(tuple_with_aux([result, changes], aux))
    }
}
