//! `OpenNode`: what a pattern leaves open at one of its nodes, for those who make graphs that it
//! matches.
//!
//! Invariant: it asks what the search asks, so that what fits here is found there.

use super::compare::Literals;
use super::matcher::{NodeRule, SubgraphMatcher};
use crate::error::Result;
use crate::ir::argument::Argument;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::module::path_pattern::PathPattern;
use crate::value::handle::NodeId;

/// What a pattern leaves open at a node that calls something.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::Argument;
/// use fx_core::pattern::SubgraphMatcher;
/// #[wrap] fn scale(x: Float, by: f64) -> Result<Float> { x * by }
///
/// let pattern = SubgraphMatcher::new(traced!(|x: Float| scale(x, 1.0)? + 1.0))?
///     .literal_where("scale", "by", |by| matches!(by, Argument::Float(by) if *by > 0.0))?;
/// let open = pattern.open_nodes().next().ok_or_else(|| Error::msg("a literal is open"))?;
/// assert_eq!(open.node()?.name().to_string(), "scale");
/// assert_eq!(open.params().collect::<Vec<_>>(), ["by"]);
/// assert!(open.takes("by", &Argument::Float(2.0)) && !open.takes("by", &Argument::Float(-2.0)));
/// assert_eq!(pattern.open_nodes().count(), 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpenNode<'p> {
    matcher: &'p SubgraphMatcher,
    place: u32,
}

impl<'p> OpenNode<'p> {
    /// The pattern's node.
    ///
    /// # Errors
    /// None for a matcher that was checked when it was made.
    pub fn node(&self) -> Result<NodeRef<'p>> {
        self.matcher.node_at(self.place)
    }

    fn rule(&self) -> &'p NodeRule {
        &self.matcher.rules[self.place as usize]
    }

    /// Ops that may stand there besides the node's own.
    pub fn alternatives(&self) -> &'p [Op] {
        self.rule().alternatives()
    }

    /// Whether the node may be absent, its first argument in its place.
    pub fn may_be_absent(&self) -> bool {
        self.rule().optional
    }

    /// The parameters of which the literal is open.
    pub fn params(&self) -> impl Iterator<Item = &'p str> {
        self.rule().params()
    }

    /// Whether a literal fits a parameter whose literal is open.
    pub fn takes(&self, param: &str, literal: &Argument) -> bool {
        match self.matcher.literals(self.place, param) {
            Literals::Any => true,
            Literals::Where(holds) => holds(literal),
            Literals::Equal => false,
        }
    }

    fn is_call(&self) -> bool {
        self.node().is_ok_and(|node| node.op().is_call())
    }

    /// Whether it calls a module: any one fits that is as the pattern's rule or own module says.
    fn calls_module(&self) -> bool {
        let node = self.node();
        node.is_ok_and(|node| matches!(node.op(), Op::CallModule(_)))
    }

    /// The pattern of paths that the module's has to match.
    pub fn module_path(&self) -> Option<&'p PathPattern> {
        self.rule().module_path()
    }

    /// Whether a module fits, at a path that does.
    pub fn takes_module(&self, module: &dyn Module) -> bool {
        self.matcher.module_fits(self.place, module)
    }
}

impl SubgraphMatcher {
    /// The nodes at which the pattern leaves something open besides its inputs: a literal, the
    /// function, the module, or whether the node is there.
    pub fn open_nodes(&self) -> impl Iterator<Item = OpenNode<'_>> {
        (0..self.order.len() as u32)
            .map(|place| OpenNode {
                matcher: self,
                place,
            })
            .filter(|open| {
                let rule = open.rule();
                let is_open = !rule.is_plain()
                    || rule.optional
                    || open.params().next().is_some()
                    || self.ignores_literals();
                open.calls_module() || (is_open && open.is_call())
            })
    }

    /// Whether all literals count as equal.
    pub fn ignores_literals(&self) -> bool {
        self.ignore_literals
    }

    /// The modules and tensors that the pattern names.
    pub fn attributes(&self) -> &Attributes {
        &self.pattern.attributes
    }

    /// The nodes that the pattern returns, in order.
    pub fn returned(&self) -> impl Iterator<Item = NodeId> {
        let returned = self.shape.returned.iter();
        returned.map(|place| self.order[*place as usize])
    }
}
