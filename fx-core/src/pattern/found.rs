//! `Match`: which nodes of a graph match a pattern.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::ir::argument::Argument;
use crate::value::handle::NodeId;

/// What stands for an input that only an absent node uses.
static ABSENT: Argument = Argument::None;

/// What all matches of one pattern share: its nodes' names and places.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// The names of the pattern's nodes, in its order.
    pub names: Vec<String>,
    /// Places by name, including the names that the pattern itself assigns.
    pub by_name: FxHashMap<String, u32>,
    /// The pattern's inputs.
    pub inputs: Vec<u32>,
    /// The nodes that it returns.
    pub returned: Vec<u32>,
}

/// One place where a pattern was found.
#[derive(Debug, Clone)]
pub struct Match {
    pub(super) shape: Arc<Shape>,
    pub(super) bound: Box<[Option<Argument>]>,
    pub(super) replacements: SmallVec<[NodeId; 2]>,
}

impl Match {
    /// The graph's node for a node of the pattern, by its name in the pattern.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.argument(name)?.as_node()
    }

    /// What stands for a node of the pattern: a node, or for an input also a literal or a
    /// structure; `None` for an optional node that is absent.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        let place = *self.shape.by_name.get(name)?;
        self.bound[place as usize].as_ref()
    }

    /// The pattern's nodes by name, with what stands for them.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Argument)> {
        let names = self.shape.names.iter().zip(&self.bound);
        names.filter_map(|(name, bound)| Some((name.as_str(), bound.as_ref()?)))
    }

    /// What stands for the pattern's inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Argument> {
        let inputs = self.shape.inputs.iter();
        inputs.map(|at| self.bound[*at as usize].as_ref().unwrap_or(&ABSENT))
    }

    /// The graph's nodes that the pattern returns, in order: the ones whose users see the
    /// replacement.
    ///
    /// After a replacement these are ids of erased nodes.
    pub fn anchors(&self) -> impl Iterator<Item = NodeId> {
        let returned = self.shape.returned.iter();
        returned.filter_map(|at| self.bound[*at as usize].as_ref()?.as_node())
    }

    /// The nodes that the replacement made; none before it, or if it returns one of its inputs.
    pub fn replacements(&self) -> &[NodeId] {
        &self.replacements
    }
}
