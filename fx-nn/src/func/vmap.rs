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
    chunk: Option<usize>,
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
            chunk: None,
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

    /// How many examples are computed at once: what all of them would keep does not fit into memory, or not into a
    /// cache. All at once, unless this says otherwise. The number of examples must be known, and random functions may
    /// not draw the same numbers for all.
    ///
    /// ```
    /// use fx_nn::func::{Transform, vmap};
    /// use fx_nn::prelude::*;
    /// let norm = traced!(|x: &Tensor| x.square()?.sum(..)?.sqrt());
    /// let x = Tensor::from_vec(vec![3f32, 4.0, 6.0, 8.0, 5.0, 12.0], (3, 2))?;
    /// let norms: Tensor = vmap(norm).chunk_size(2).call(&x)?;
    /// assert_eq!(norms.to_vec()?, [5.0, 10.0, 13.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn chunk_size(mut self, examples: usize) -> Self {
        self.chunk = Some(examples);
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
        let (dim, size, _) = size.ok_or_else(|| {
            Error::msg("vmap: no argument has a dim of examples: one axis is a number")
        })?;
        let gm = prepared(
            self.source.graph(&examples)?,
            &examples,
            self.source.params(),
        )?;
        let (result, is_batched) = match self.chunks(&dim)? {
            None => of_many(&gm, &given, size, self.randomness, batched)?,
            Some(chunks) => self.chunked(&gm, &given, &batched, &chunks)?,
        };
        let tree = Tree::of(&result)?;
        let axes = self.out_axes.of_result(&result)?;
        let leaves = tree.flatten(result)?.into_iter().zip(is_batched);
        let mut results = Vec::with_capacity(leaves.len());
        for ((at, (leaf, is_batched)), axis) in leaves.enumerate().zip(axes) {
            let Ok(tensor) = Tensor::from_value(leaf.clone()) else {
                results.push(leaf);
                continue;
            };
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

    /// [`chunk_size`](Vmap::chunk_size), or all at once.
    pub(crate) fn chunks_of(self, examples: Option<usize>) -> Self {
        match examples {
            Some(examples) => self.chunk_size(examples),
            None => self,
        }
    }

    /// Where chunks of the examples begin, and how many each has; `None` if all are computed at once.
    fn chunks(&self, size: &Dim) -> Result<Option<Vec<(usize, usize)>>> {
        let Some(chunk) = self.chunk else {
            return Ok(None);
        };
        let size = size.as_number().and_then(|size| usize::try_from(size).ok());
        let (Some(size), true) = (size, chunk > 0) else {
            return Err(Error::msg(format_args!(
                "vmap: chunks of {chunk} examples need a number of examples that is known, and one or more of them"
            )));
        };
        if size <= chunk {
            return Ok(None);
        }
        let starts = (0..size).step_by(chunk);
        Ok(Some(
            starts
                .map(|start| (start, chunk.min(size - start)))
                .collect(),
        ))
    }

    /// The result of all examples, chunk by chunk, and which of its leaves have them.
    fn chunked(
        &self,
        gm: &GraphModule,
        given: &[Value],
        batched: &FxHashSet<NodeId>,
        chunks: &[(usize, usize)],
    ) -> Result<(Value, Vec<bool>)> {
        let randomness = match self.randomness {
            // Each chunk would draw its own.
            Randomness::Same => Randomness::Error,
            other => other,
        };
        let mut tree = None;
        let mut results: Vec<Vec<(Value, bool)>> = Vec::new();
        for (start, count) in chunks {
            let (of_chunk, own) = narrowed(given, batched, *start, *count)?;
            let size = Int::from(*count as i64);
            let (result, is_batched) = of_many(gm, &of_chunk, size, randomness, own)?;
            let result_tree = Tree::of(&result)?;
            let leaves = result_tree.flatten(result)?.into_iter().zip(is_batched);
            results.push(leaves.collect());
            tree = Some(result_tree);
        }
        let tree = tree.ok_or_else(|| Error::msg("vmap: there is no example"))?;
        let count = results.first().map_or(0, Vec::len);
        let (mut whole, mut is_batched) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for at in 0..count {
            let of_chunks = results.iter().map(|leaves| leaves[at].clone());
            let (parts, own): (Vec<Value>, Vec<bool>) = of_chunks.unzip();
            is_batched.push(own[0]);
            whole.push(match own[0] {
                false => parts[0].clone(),
                true => {
                    let parts = parts.into_iter().map(Tensor::from_value);
                    let parts: Vec<Tensor> = parts.collect::<Result<_>>()?;
                    ops::cat(&parts, 0)?.into_value()
                }
            });
        }
        Ok((tree.unflatten(whole)?, is_batched))
    }
}

/// What a graph of one example gives for many, and which leaves of that have them along their first dim.
fn of_many(
    gm: &GraphModule,
    given: &[Value],
    size: Int,
    randomness: Randomness,
    batched: FxHashSet<NodeId>,
) -> Result<(Value, Vec<bool>)> {
    let mut run = Examples::new(size, randomness, batched, graph_of_many)?;
    let result = gm.interpretation().run(&mut run, flat(gm, given)?)?;
    let is_whole = node_of(&result).is_some() && run.has_batch(&result);
    let result = unpacked(result)?;
    if is_whole {
        run.mark(&result);
    }
    let leaves = Tree::of(&result)?.flatten(result.clone())?;
    let is_batched = leaves.iter().map(|leaf| run.has_batch(leaf));
    Ok((result, is_batched.collect()))
}

/// Some of the examples of arguments, and the values that have them.
fn narrowed(
    given: &[Value],
    batched: &FxHashSet<NodeId>,
    start: usize,
    count: usize,
) -> Result<(Vec<Value>, FxHashSet<NodeId>)> {
    let mut own = FxHashSet::default();
    let mut all = Vec::with_capacity(given.len());
    for value in given {
        let tree = Tree::of(value)?;
        let leaves = tree.flatten(value.clone())?.into_iter().map(|leaf| {
            if !node_of(&leaf).is_some_and(|node| batched.contains(&node)) {
                return Ok(leaf);
            }
            let tensor = Tensor::from_value(leaf)?;
            let some = ops::narrow(&tensor, 0, start as i64, count as i64)?.into_value();
            own.extend(node_of(&some));
            Ok(some)
        });
        all.push(tree.unflatten(leaves.collect::<Result<_>>()?)?);
    }
    Ok((all, own))
}

/// The graph of a side of a branch or of an iteration, for many examples.
fn graph_of_many(of: &GraphModule, call: OfMany) -> Result<GraphModule> {
    Vmap::of_source(Source::of(of))
        .in_axes(call.in_axes)
        .out_axes(call.out_axes)
        .randomness(call.randomness)
        .graph_module(&call.inputs)
}
