//! Replacing a node by another node, a literal, or a structure of both; and taking the items of a
//! node that stands for several.

use super::argument::Argument;
use super::graph::Graph;
use super::op::Op;
use super::operator;
use super::value_meta::ValueMeta;
use crate::error::{Error, Result};
use crate::value::handle::NodeId;

impl Graph {
    /// Replaces a node by `new` in all of its users; the node stays, unused. A user that takes an
    /// item of a structure becomes that item directly, and is erased.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Graph;
    /// use fx_core::operator;
    /// use fx_core::ir::Argument;
    /// let mut graph = Graph::new();
    /// let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    /// let pair = graph.call_function(operator::add, (x, y), ())?;
    /// let second = graph.call_function(operator::getitem, (pair, 1), ())?;
    /// let result = graph.call_function(operator::neg, (second,), ())?;
    /// graph.output(result)?;
    ///
    /// graph.substitute(pair, &Argument::Tuple(vec![Argument::Node(x), Argument::Node(y)].into()))?;
    /// assert!(graph.node(second).is_err());
    /// assert_eq!(graph.node(result)?.args(), [Argument::Node(y)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if `new` has nodes that are not in this graph or come after a user, or
    /// lacks an item that a user takes.
    pub fn substitute(&mut self, node: NodeId, new: &Argument) -> Result<()> {
        if let Argument::Node(new) = new {
            return self.node_mut(node)?.give_uses_to(*new);
        }
        // A worklist, because an item may itself be a structure.
        let mut pending = vec![(node, new.clone())];
        let mut items = Vec::new();
        while let Some((node, new)) = pending.pop() {
            if let Argument::Node(new) = new {
                self.node_mut(node)?.give_uses_to(new)?;
                continue;
            }
            let users: Vec<NodeId> = self.node(node)?.users().map(|user| user.id()).collect();
            for user in users {
                match item_taken(self, user, node, &new)? {
                    Some(item) => {
                        items.push(user);
                        pending.push((user, item));
                    }
                    None => self.put_for(user, node, &new)?,
                }
            }
        }
        // An item of an item comes after it.
        for item in items.into_iter().rev() {
            self.erase_node(item)?;
        }
        Ok(())
    }

    /// Adds `call[0]`, `call[1]`, .. at the insertion point, one item for each node that it will
    /// stand for, with that node's shape.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Graph;
    /// use fx_core::operator;
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// let (a, b) = (graph.call_function(operator::neg, (x,), ())?, graph.call_function(operator::abs, (x,), ())?);
    /// let both = graph.call_method("both", (x,), ())?;
    /// let items = graph.take_items(both, &[a, b])?;
    /// assert_eq!(graph.node(items[1])?.to_string(), "%getitem_1 : [num_users=0] = call_function[target=fx_core::operator::getitem](args = (%both, 1), kwargs = {})");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the call, or one of the nodes, is not in this graph.
    pub fn take_items(&mut self, call: NodeId, stand_for: &[NodeId]) -> Result<Vec<NodeId>> {
        let mut items = Vec::with_capacity(stand_for.len());
        let mut metas = Vec::with_capacity(stand_for.len());
        for (at, old) in (0i64..).zip(stand_for) {
            let item = self.call_function(operator::getitem, (call, at), ())?;
            self.learn_from(item, *old)?;
            metas.extend(self.node(*old)?.meta::<ValueMeta>().cloned());
            items.push(item);
        }
        if metas.len() == stand_for.len() {
            self.learn(&Argument::Node(call), &ValueMeta::List(metas))?;
        }
        Ok(items)
    }
}

/// The item of `new` that a user takes, if that is all the user does.
fn item_taken(
    graph: &Graph,
    user: NodeId,
    node: NodeId,
    new: &Argument,
) -> Result<Option<Argument>> {
    let user = graph.node(user)?;
    if *user.op() != Op::CallFunction(operator::getitem) {
        return Ok(None);
    }
    let [Argument::Node(of), index] = user.args() else {
        return Ok(None);
    };
    if *of != node {
        return Ok(None);
    }
    let missing = || {
        user.blame(
            "substituting",
            Error::msg("the structure that takes its operand's place has no such item"),
        )
    };
    match (new, index) {
        (Argument::List(items) | Argument::Tuple(items), Argument::Int(at)) => {
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if *at < 0 { at + length } else { *at };
            let item = usize::try_from(at).ok().and_then(|at| items.get(at));
            item.cloned().ok_or_else(missing).map(Some)
        }
        (Argument::Dict(items), Argument::Str(key)) => {
            let item = items.iter().find(|(name, _)| **name == *key.as_str());
            item.map(|(_, item)| Some(item.clone())).ok_or_else(missing)
        }
        _ => Ok(None),
    }
}
