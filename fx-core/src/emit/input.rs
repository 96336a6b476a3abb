//! What source is generated from: a graph with what it names, and the branches and loops in it.
//!
//! Invariant: the graphs of branches and loops are inputs of the same form.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::structures::Definitions;
use crate::ir::graph::Graph;
use crate::ir::signature::ParamSpec;
use crate::ir::unnamed::Unnamed;
use crate::module::attributes::Attributes;
use crate::value::tree::Tree;

/// What source is generated from.
pub(crate) struct Input<'g> {
    pub graph: &'g Graph,
    pub attributes: &'g Attributes,
    pub params: &'g [ParamSpec],
    /// The structures of the parameters; empty if each is one input.
    pub trees: &'g [Tree],
    /// What the called graph modules return, by path.
    pub results: FxHashMap<&'g str, String>,
    /// What a generated crate defines; `None` if the text is meant for the place where the module
    /// was traced.
    pub own: Option<Own<'g>>,
    /// The path under which fx-core's items are named.
    pub core: &'g str,
    /// The branches and loops that the graph calls, by path.
    pub regions: FxHashMap<&'g str, Control<'g>>,
    /// The parts of the traced module that no field names.
    pub unnamed: Option<&'g Unnamed>,
}

/// What a generated crate defines.
#[derive(Clone, Copy)]
pub(crate) struct Own<'g> {
    /// How each path is written as fields.
    pub fields: &'g FxHashMap<String, String>,
    /// The same for the graphs of branches and loops, by their paths.
    pub sides: &'g FxHashMap<String, FxHashMap<String, String>>,
    /// The graph modules that it defines as structs, by their paths in the graph.
    pub written: &'g FxHashSet<String>,
    /// The structures that it defines.
    pub definitions: &'g RefCell<Definitions>,
}

impl Own<'_> {
    /// As a side at a path sees it.
    pub fn at(self, side: &str) -> Self {
        Own {
            fields: self.sides.get(side).unwrap_or(self.fields),
            ..self
        }
    }
}

/// A part of a graph that runs by a condition.
pub(crate) enum Control<'g> {
    /// The sides for a true and for a false condition.
    Branch(Box<[Input<'g>; 2]>),
    /// The body, which gives whether there is another turn, and the carried values.
    Loop(Box<Input<'g>>),
    /// The step, which gives the carried values, of which there are so many, and its results. It
    /// is called: its lists have no other form.
    Scan(Box<Input<'g>>, usize),
}

impl Control<'_> {
    /// Whether a call gives anything.
    pub fn gives(&self) -> bool {
        match self {
            Control::Scan(..) => true,
            Control::Branch(sides) => !sides[0].graph.results().is_empty(),
            Control::Loop(body) => body.graph.results().len() > 1,
        }
    }
}

/// How many regions are written inside each other; what is deeper is called.
pub(crate) const MAX_NESTED: usize = 16;
