//! Splitting a whole graph: each call has a part, and the result is a module of its own.
//!
//! Invariant: the parts share the tensors of the module that was split, which stays as it is.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::parts::{Parts, SplitPart};
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::within;
use crate::region::units::UnitOrder;
use crate::value::handle::NodeId;

/// A graph in parts: see [`GraphModule::split`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Split {
    /// The module that calls the parts.
    pub module: GraphModule,
    /// The parts, in the order of their first nodes ([`split`](GraphModule::split)) or of their tags
    /// ([`split_by_tags`](GraphModule::split_by_tags)).
    pub parts: Vec<SplitPart>,
    /// The path that each module and tensor of a part had before, which it still has in the module
    /// as a whole, by its path through the part.
    pub qualified_names: IndexMap<String, Arc<str>>,
}

/// Which part a node belongs to: a number, whose module is `submod_0`, or the module's path.
///
/// Numbers and strings convert into it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartId {
    /// A number.
    Number(i64),
    /// The path of the module.
    Path(Arc<str>),
}

macro_rules! part_from_number {
    ($($ty:ty),*) => {$(
        impl From<$ty> for PartId {
            fn from(number: $ty) -> Self {
                PartId::Number(number.into())
            }
        }
    )*};
}

part_from_number!(i64, i32, u32);

impl From<usize> for PartId {
    fn from(number: usize) -> Self {
        PartId::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<Arc<str>> for PartId {
    fn from(path: Arc<str>) -> Self {
        PartId::Path(path)
    }
}

impl From<&str> for PartId {
    fn from(path: &str) -> Self {
        PartId::Path(path.into())
    }
}

impl From<String> for PartId {
    fn from(path: String) -> Self {
        PartId::Path(path.into())
    }
}

/// How a graph is split. The defaults are those of `torch.fx`'s `split_module`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::SplitOptions;
/// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let options = SplitOptions::new().affix("pp").tuple_return(true);
/// let split = gm.split(&options, |node| Some(if node.name() == "mul" { 0 } else { 1 }))?;
/// assert_eq!(split.parts.iter().map(|part| &*part.path).collect::<Vec<_>>(), ["submod_pp_0", "submod_pp_1"]);
/// assert_eq!(split.module.graph().len(), 6); // each call has a getitem
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SplitOptions {
    keep_original_order: bool,
    keep_original_input_name: bool,
    affix: Option<String>,
    tuple_return: bool,
    attributes_in_parts: bool,
}

impl Default for SplitOptions {
    fn default() -> Self {
        SplitOptions {
            keep_original_order: false,
            keep_original_input_name: true,
            affix: None,
            tuple_return: false,
            attributes_in_parts: false,
        }
    }
}

impl SplitOptions {
    /// The defaults.
    pub fn new() -> Self {
        SplitOptions::default()
    }

    /// Whether parts that do not need each other are called in the order of their first nodes. If
    /// not, the part that became possible last is called first.
    #[must_use]
    pub fn keep_original_order(mut self, yes: bool) -> Self {
        self.keep_original_order = yes;
        self
    }

    /// Whether the inputs of a part have the names of the values that they take, which is the
    /// default, or `arg_0`, `arg_1`, and so on.
    #[must_use]
    pub fn keep_original_input_name(mut self, yes: bool) -> Self {
        self.keep_original_input_name = yes;
        self
    }

    /// What stands before the number of a part: with `pp`, part 0 is `submod_pp_0`.
    #[must_use]
    pub fn affix(mut self, affix: impl Into<String>) -> Self {
        self.affix = Some(affix.into());
        self
    }

    /// Whether a part with a single result returns it in a tuple, as all others do.
    #[must_use]
    pub fn tuple_return(mut self, yes: bool) -> Self {
        self.tuple_return = yes;
        self
    }

    /// Whether a part reads the parameters that it uses itself; one that several parts use is then
    /// in each of them, and they share it. If not, the parent reads them and passes them in.
    /// Parameters inside called modules are always in the parts.
    #[must_use]
    pub fn attributes_in_parts(mut self, yes: bool) -> Self {
        self.attributes_in_parts = yes;
        self
    }

    fn path_of(&self, part: PartId) -> Arc<str> {
        match (part, &self.affix) {
            (PartId::Path(path), _) => path,
            (PartId::Number(number), None) => format!("submod_{number}").into(),
            (PartId::Number(number), Some(affix)) => format!("submod_{affix}_{number}").into(),
        }
    }
}

impl GraphModule {
    /// Splits the graph into parts: calls with the same part become a graph module, and the module
    /// that is returned calls those modules. A call without a part stays in the parent. Takes time
    /// proportional to the graph, however many parts there are.
    ///
    /// A part's inputs are the values that it takes from elsewhere, in the order of first use; its
    /// result is what others use of it, in the order of their use, a tuple if there are several.
    /// The parts hold the modules that they call; the tensors are shared with this module.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::passes::SplitOptions;
    /// let gm = symbolic_trace(traced!(|x: Float| (((x * 2.0)? + 1.0)? / 3.0)? - 1.0))?;
    /// let half = |node: fx_core::ir::NodeRef<'_>| match node.name().to_string().as_str() {
    ///     "mul" | "add" => Some("front"),
    ///     _ => Some("back"),
    /// };
    /// let split = gm.split(&SplitOptions::new(), half)?;
    /// assert_eq!(split.parts.iter().map(|part| &*part.path).collect::<Vec<_>>(), ["front", "back"]);
    /// assert_eq!(split.module.graph().len(), 4); // x, front, back, output
    /// assert_eq!(split.module.forward::<f64>(1.0)?, 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a path is taken, nobody else uses a part that has no effect, or parts
    /// need each other: the error names them and the nodes in question.
    pub fn split<P: Into<PartId>>(
        &self,
        options: &SplitOptions,
        mut part_of: impl FnMut(NodeRef<'_>) -> Option<P>,
    ) -> Result<Split> {
        let mut numbers: IndexMap<PartId, u32, FxBuildHasher> = IndexMap::default();
        let mut parts: Vec<Option<u32>> = vec![None; self.graph().index_bound()];
        for node in self.graph().nodes().filter(|node| node.op().is_call()) {
            if let Some(part) = part_of(node) {
                let next = u32::try_from(numbers.len()).map_err(Error::other)?;
                let number = *numbers.entry(part.into()).or_insert(next);
                parts[node.index()] = Some(number);
            }
        }
        let paths = numbers.into_keys().map(|part| options.path_of(part));
        let order = match options.keep_original_order {
            true => UnitOrder::FirstNode,
            false => UnitOrder::LastReady,
        };
        self.split_into(options, paths.collect(), parts, order)
    }

    /// Splits the graph into a part per tag, which are called in the order of the tags. Every call
    /// has one of the tags; a part reads the parameters that it uses. A tag that no call has makes
    /// no part.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::passes::SplitOptions;
    /// let gm = symbolic_trace(traced!(|x: Float| ((x * 2.0)? + 1.0)? / 3.0))?;
    /// let tag = |node: fx_core::ir::NodeRef<'_>| Some(if node.name() == "mul" { "embed" } else { "head" });
    /// let split = gm.split_by_tags(&SplitOptions::new(), &["embed", "head"], tag)?;
    /// assert_eq!(split.module.graph().len(), 4); // x, embed, head, output
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`split`](GraphModule::split); and if a call has none of the tags, or uses the result of
    /// one with a later tag.
    pub fn split_by_tags<T: AsRef<str>>(
        &self,
        options: &SplitOptions,
        tags: &[&str],
        mut tag_of: impl FnMut(NodeRef<'_>) -> Option<T>,
    ) -> Result<Split> {
        let mut numbers: IndexMap<&str, u32, FxBuildHasher> = IndexMap::default();
        for (number, tag) in (0u32..).zip(tags) {
            if numbers.insert(tag, number).is_some() {
                return Err(Error::region(format_args!(
                    "the tag `{tag}` is there twice"
                )));
            }
        }
        let mut parts: Vec<Option<u32>> = vec![None; self.graph().index_bound()];
        for node in self.graph().nodes().filter(|node| node.op().is_call()) {
            let tag = tag_of(node);
            let number = tag.as_ref().and_then(|tag| numbers.get(tag.as_ref()));
            let number =
                *number.ok_or_else(|| untagged(node, tag.as_ref().map(T::as_ref), tags))?;
            parts[node.index()] = Some(number);
            let of = |input: NodeRef<'_>| parts[input.index()];
            let mut inputs = node.all_input_nodes();
            if let Some(later) = inputs.find(|input| of(*input) > Some(number)) {
                let tag = |part: u32| tags[part as usize];
                let error = Error::region(format_args!(
                    "it has the tag `{}` and uses %{}, which has the later tag `{}`: change the order of the tags, or a tag",
                    tag(number),
                    later.name(),
                    of(later).map_or("", tag),
                ));
                return Err(node.blame("splitting", error));
            }
        }
        // Only tags that a call has make a part.
        let mut used = vec![None; tags.len()];
        parts
            .iter()
            .flatten()
            .for_each(|part| used[*part as usize] = Some(0));
        let mut paths = Vec::with_capacity(tags.len());
        for (tag, number) in tags.iter().zip(&mut used) {
            if let Some(number) = number {
                *number = u32::try_from(paths.len()).map_err(Error::other)?;
                paths.push((*tag).into());
            }
        }
        for part in parts.iter_mut().flatten() {
            *part = used[*part as usize].unwrap_or(*part);
        }
        let options = options.clone().attributes_in_parts(true);
        self.split_into(&options, paths, parts, UnitOrder::Number)
    }

    fn split_into(
        &self,
        options: &SplitOptions,
        paths: Vec<Arc<str>>,
        mut part_of: Vec<Option<u32>>,
        order: UnitOrder,
    ) -> Result<Split> {
        let mut module = self.clone();
        module.put_attributes_into_parts(&mut part_of, options.attributes_in_parts)?;
        let parts = module.move_into_parts(&Parts {
            paths: &paths,
            part_of: &part_of,
            order,
            keep_input_names: options.keep_original_input_name,
            tuple_return: options.tuple_return,
            keep_paths: true,
        })?;
        let mut qualified_names = IndexMap::new();
        for part in &parts {
            // By its own path: `submodule` looks for what a part had before, in all parts.
            let inner: &dyn std::any::Any = module.attributes().module(&part.path)?;
            let inner = inner
                .downcast_ref::<GraphModule>()
                .map(GraphModule::attributes)
                .ok_or_else(|| Error::msg("a part of a split module is a graph module"))?;
            let names = inner.modules.keys().chain(inner.tensors.keys());
            qualified_names.extend(names.map(|name| (within(&part.path, name), name.clone())));
        }
        Ok(Split {
            module,
            parts,
            qualified_names,
        })
    }

    /// Gives each `get_attr` node the part of its users; each further part has a copy of it. A
    /// module that a function takes is in the part in any case, since it cannot be passed in.
    fn put_attributes_into_parts(
        &mut self,
        part_of: &mut Vec<Option<u32>>,
        tensors_too: bool,
    ) -> Result<()> {
        let is_moved = |node: &NodeRef<'_>| match node.op() {
            Op::GetAttr(path) => tensors_too || self.attributes().modules.contains_key(path),
            _ => false,
        };
        let reads = self.graph().nodes().filter(is_moved);
        let reads: Vec<NodeId> = reads.map(NodeRef::id).collect();
        let mut edit = self.graph_mut();
        let (graph, _) = edit.parts();
        for read in reads {
            let node = graph.node(read)?;
            let mut users: Vec<(Option<u32>, NodeId)> = node
                .users()
                .map(|user| (part_of[user.index()], user.id()))
                .collect();
            users.sort_by_key(|(part, _)| *part);
            let Some((first, _)) = users.first().copied() else {
                continue;
            };
            part_of[read.index as usize] = first;
            let others = users.chunk_by(|(a, _), (b, _)| a == b).skip(1);
            for group in others {
                let part = group[0].0;
                let op = graph.node(read)?.op().clone();
                let mut place = graph.inserting_after(read)?;
                let copy = place.create_node(op, (), ())?;
                place.learn_from(copy, read)?;
                place.node_mut(copy)?.come_from(read)?;
                drop(place);
                part_of.resize(graph.index_bound(), None);
                part_of[copy.index as usize] = part;
                let in_group = |user: NodeRef<'_>| part_of[user.index()] == part;
                graph
                    .node_mut(read)?
                    .replace_uses_with_filter(copy, in_group)?;
            }
        }
        Ok(())
    }
}

fn untagged(node: NodeRef<'_>, tag: Option<&str>, tags: &[&str]) -> Error {
    let tags: Vec<String> = tags.iter().map(|tag| format!("`{tag}`")).collect();
    let tags = tags.join(", ");
    let error = match tag {
        Some(tag) => Error::region(format_args!("the tag `{tag}` is not among {tags}")),
        None => Error::region(format_args!("it has no tag: every call has one of {tags}")),
    };
    node.blame("splitting", error)
}
