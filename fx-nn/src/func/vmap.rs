//! `vmap`: a function of one example as one of many.

use fx_core::shapes::Spec;
use fx_core::trace::{FromValue, Root, TraceContext};
use fx_core::value::{Dim, Int, IntoValue, NodeId, Tree, Value};
use fx_core::{Error, GraphModule, Result};
use rustc_hash::FxHashSet;

use super::axes::{Axes, Randomness};
use super::batching::repeated;
use super::examples::{Examples, OfMany};
use super::expand::prepared;
use super::forward::{own, unpacked, uses};
use super::known;
use super::source::{Source, flat};
use super::tape::node_of;
use super::transform::{Graphs, Transform, transform};
use crate::ops;
use crate::tensor::Tensor;

/// A function of one example as one of many: each argument has one more dim, and so has the result.
pub fn vmap<'r>(of: impl Root<'r>) -> Vmap {
    Vmap::of_source(Source::of(of))
}

/// A function of many examples; made by [`vmap`].
#[derive(Clone)]
pub struct Vmap {
    source: Source,
    in_axes: Axes,
    out_axes: Axes,
    randomness: Randomness,
    trees: Vec<Tree>,
    graphs: Graphs,
}

transform! { Vmap, "vmap", |vmap| vmap.source.params() }

impl Vmap {
    pub(crate) fn of_source(source: Source) -> Self {
        Vmap {
            trees: source.trees(),
            source,
            in_axes: 0.into(),
            out_axes: 0.into(),
            randomness: Randomness::Error,
            graphs: Graphs::default(),
        }
    }

    /// Which dim of each argument has the examples: the first, unless this says otherwise.
    #[must_use]
    pub fn in_axes(mut self, axes: impl Into<Axes>) -> Self {
        self.in_axes = axes.into();
        self.graphs = Graphs::default();
        self
    }

    /// Which dim of each result has the examples: the first, unless this says otherwise.
    #[must_use]
    pub fn out_axes(mut self, axes: impl Into<Axes>) -> Self {
        self.out_axes = axes.into();
        self.graphs = Graphs::default();
        self
    }

    /// What random functions draw: they are refused, unless this says otherwise.
    #[must_use]
    pub fn randomness(mut self, randomness: Randomness) -> Self {
        self.randomness = randomness;
        self.graphs = Graphs::default();
        self
    }

    pub(crate) fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let axes = self.in_axes.of(args, "arguments")?;
        let mut size: Option<(Dim, Int, String)> = None;
        let mut examples = Vec::with_capacity(args.len());
        let mut given = Vec::with_capacity(args.len());
        let mut batched: FxHashSet<NodeId> = FxHashSet::default();
        let mut taken = uses(args);
        for ((arg, param), axes) in args.iter().zip(self.source.params()).zip(axes) {
            let tree = Tree::of(arg)?;
            let mut of_one = Vec::new();
            let mut of_all = Vec::new();
            for (leaf, axis) in tree.flatten(arg.clone())?.into_iter().zip(axes) {
                let Some(axis) = axis.filter(|_| Tensor::from_value(leaf.clone()).is_ok()) else {
                    of_one.push(leaf.clone());
                    of_all.push(leaf);
                    continue;
                };
                // A value of its own: the same tensor may be an argument without examples too.
                let tensor = Tensor::from_value(own(cx, leaf, &mut taken)?)?;
                let dims = known::dims(&tensor)?;
                if dims.is_empty() {
                    return Err(Error::msg(format_args!(
                        "vmap: argument `{}` is one number and has no dim of examples: give it the axis None",
                        param.name
                    )));
                }
                let place = known::place(axis, dims.len()).map_err(|_| {
                    Error::msg(format_args!(
                        "vmap: argument `{}` has {} dims, and no dim {axis} of examples",
                        param.name,
                        dims.len()
                    ))
                })?;
                match &size {
                    Some((dim, _, first)) if *dim != dims[place] => {
                        return Err(Error::msg(format_args!(
                            "vmap: the examples of arguments `{first}` ({dim}) and `{}` ({}) differ in number",
                            param.name, dims[place]
                        )));
                    }
                    Some(_) => {}
                    None => {
                        size = Some((
                            dims[place].clone(),
                            known::size(&tensor, place as i64)?,
                            param.name.to_string(),
                        ))
                    }
                }
                let moved = match place {
                    0 => tensor.clone(),
                    _ => ops::movedim(&tensor, place as i64, 0)?,
                };
                let mut shape = dims;
                shape.remove(place);
                let dtype = known::dtype(&tensor)?;
                of_one.push(Spec::tensor(shape, dtype).fake_value()?);
                let moved = moved.into_value();
                batched.extend(node_of(&moved));
                of_all.push(moved);
            }
            examples.push(tree.unflatten(of_one)?);
            given.push(tree.unflatten(of_all)?);
        }
        let (_, size, _) = size.ok_or_else(|| {
            Error::msg("vmap: no argument has a dim of examples: one axis is a number")
        })?;
        let gm = prepared(
            self.source.graph(&examples)?,
            &examples,
            self.source.params(),
        )?;
        let mut run = Examples::new(size, self.randomness, batched, graph_of_many)?;
        let result = gm.interpretation().run(&mut run, flat(&gm, &given)?)?;
        let is_whole = node_of(&result).is_some() && run.has_batch(&result);
        let result = unpacked(result)?;
        if is_whole {
            run.mark(&result);
        }
        let tree = Tree::of(&result)?;
        let axes = self.out_axes.of_result(&result)?;
        let leaves = tree.flatten(result)?;
        let mut results = Vec::with_capacity(leaves.len());
        for ((at, leaf), axis) in leaves.into_iter().enumerate().zip(axes) {
            let Ok(tensor) = Tensor::from_value(leaf.clone()) else {
                results.push(leaf);
                continue;
            };
            let is_batched = run.has_batch(&leaf);
            results.push(match (axis, is_batched) {
                (None, false) => leaf,
                (None, true) => {
                    return Err(Error::msg(format_args!(
                        "vmap: result {at} differs between the examples, so that its axis cannot be None"
                    )));
                }
                (Some(axis), is_batched) => {
                    let all = if is_batched { tensor } else { repeated(&tensor, size)? };
                    let rank = known::rank(&all)?;
                    match known::place(axis, rank)? {
                        0 => all.into_value(),
                        place => ops::movedim(&all, 0, place as i64)?.into_value(),
                    }
                }
            });
        }
        tree.unflatten(results)
    }
}

/// The graph of a side of a branch or of an iteration, for many examples.
fn graph_of_many(of: &GraphModule, call: OfMany) -> Result<GraphModule> {
    Vmap::of_source(Source::of(of))
        .in_axes(call.in_axes)
        .out_axes(call.out_axes)
        .randomness(call.randomness)
        .graph_module(&call.inputs)
}
