//! `BranchRecorder`: records two branches, one after the other, and the call of a module that has both.
//!
//! Invariant: while the second branch is recorded, every value that the first one changed is as it
//! was before the branch.

use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use super::record::{self, Recording};
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::{Argument, Kwargs};
use crate::ir::op::Op;
use crate::ir::operator;
use crate::module::module::Module;
use crate::trace::blame::blame;
use crate::trace::open_side::Region;
use crate::trace::scope::{self, Active};
use crate::trace::side::Side;
use crate::value::handle::{NodeId, Proxy};
use crate::value::tree::Tree;
use crate::value::value::Value;

/// A branch whose condition is traced.
pub(super) struct BranchRecorder {
    active: Rc<Active>,
    condition: Proxy,
    caller: &'static Location<'static>,
    recording: Recording,
    /// The branch that was recorded first, once it has ended.
    first: Option<Ended>,
    /// Whether the first branch is the one for a false condition.
    negated: bool,
    make: MakeBranch,
}

/// Makes the module of both branches: for a true condition, and for a false one.
type MakeBranch = fn(GraphModule, GraphModule) -> Box<dyn Module>;

/// A branch that was recorded, and what it gives.
struct Ended {
    nodes: Vec<NodeId>,
    parts: Vec<(Tree, Vec<Value>)>,
}

impl BranchRecorder {
    /// Begins the first branch.
    pub fn begin(
        condition: Proxy,
        negated: bool,
        region: Region,
        caller: &'static Location<'static>,
        make: MakeBranch,
    ) -> Result<Self> {
        let active = scope::of_proxy(condition)?;
        Ok(BranchRecorder {
            recording: Recording::begin(&active, region, caller)?,
            condition,
            caller,
            first: None,
            negated,
            make,
            active,
        })
    }

    /// What is recorded from here on is that of a jump, up to the end of the function or loop.
    pub fn becomes(&mut self, jump: &'static str) {
        self.recording.becomes(jump);
    }

    /// Whether the second branch is under way.
    pub fn is_second(&self) -> bool {
        self.first.is_some()
    }

    /// Ends a branch, which gives `values`; `name` names one of them in an error. After the second
    /// one, returns what a run gets: per value the one that both give, or a result.
    pub fn end_branch(
        &mut self,
        values: Vec<Value>,
        name: &dyn Fn(usize) -> String,
    ) -> Result<Option<Vec<Value>>> {
        let parts = values.into_iter().map(record::flat);
        let ended = Ended {
            parts: parts.collect::<Result<_>>()?,
            nodes: self.recording.nodes()?,
        };
        match self.first.take() {
            None => {
                self.recording.next()?;
                self.first = Some(ended);
                Ok(None)
            }
            Some(first) => {
                self.recording.end()?;
                self.join(first, ended, name).map(Some)
            }
        }
    }

    /// Ends the first branch, which is an error: a run that would take it fails with these words, and
    /// any other goes on with what follows.
    pub fn refuse(self, words: &str) -> Result<()> {
        let context = &self.active.context;
        let nodes = self.recording.nodes()?;
        self.recording.end()?;
        let results = Vec::new();
        context.cut(&[&Side { nodes, results }], &[], "a branch", self.caller)?;
        context.set_location(self.caller);
        let claim = Argument::Node(self.takes_second()?.node());
        let args = [claim, Argument::Str(Arc::new(words.to_string()))];
        let op = Op::CallFunction(operator::_assert);
        context.insert_known(op, args.into_iter().collect(), Kwargs::new(), None)?;
        Ok(())
    }

    /// Records whether the second branch is the one that a run takes.
    pub fn takes_second(&self) -> Result<Proxy> {
        if self.negated {
            return Ok(self.condition);
        }
        let context = &self.active.context;
        let op = Op::CallFunction(operator::invert);
        let args = [Argument::Node(self.condition.node())]
            .into_iter()
            .collect();
        let node = context.insert_known(op, args, Kwargs::new(), None)?;
        Ok(context.proxy(node))
    }

    /// The branches as a module, and a call of it.
    fn join(
        &self,
        first: Ended,
        second: Ended,
        name: &dyn Fn(usize) -> String,
    ) -> Result<Vec<Value>> {
        let (active, context) = (&self.active, &self.active.context);
        context.set_location(self.caller);
        for (at, (one, other)) in first.parts.iter().zip(&second.parts).enumerate() {
            if one.0 != other.0 {
                let error = Error::msg(format_args!(
                    "{} is `{}` after one side and `{}` after the other: both sides of a branch give one structure",
                    name(at),
                    one.0,
                    other.0
                ));
                return Err(blame(active, "cond", error));
            }
            // After the branch, Rust code could not see which of the two it has.
            let is_none = |leaf: &Value| matches!(leaf, Value::None);
            let mut leaves = one.1.iter().zip(&other.1);
            if leaves.any(|(one, other)| is_none(one) != is_none(other)) {
                let error = Error::msg(format_args!(
                    "{} is `None` after one side and a value after the other, and only a run knows which: give a value on both sides, such as a mask that masks nothing, or do in each side what needs the value",
                    name(at),
                ));
                return Err(blame(active, "cond", error));
            }
        }
        let (trees, mut leaves): (Vec<Tree>, Vec<Vec<Value>>) = first.parts.into_iter().unzip();
        let others: Vec<Vec<Value>> = second.parts.into_iter().map(|(_, leaves)| leaves).collect();
        let mut differing: Vec<(usize, usize)> = Vec::new();
        for (part, (ours, theirs)) in leaves.iter().zip(&others).enumerate() {
            let pairs = ours.iter().zip(theirs).enumerate();
            let pairs = pairs.filter(|(_, (one, other))| !record::is_same(one, other));
            differing.extend(pairs.map(|(at, _)| (part, at)));
        }
        let side = |nodes, leaves: &[Vec<Value>]| {
            let leaves = differing
                .iter()
                .map(|(part, at)| leaves[*part][*at].clone());
            let results = record::arguments(active, &leaves.collect::<Vec<_>>())?;
            Ok::<_, Error>(Side { nodes, results })
        };
        let (first, second) = (side(first.nodes, &leaves)?, side(second.nodes, &others)?);
        let (then, otherwise) = match self.negated {
            false => (&first, &second),
            true => (&second, &first),
        };
        let inputs = context.operands(&[then, otherwise], &[])?;
        let module = (self.make)(
            record::part_module(active, then, &inputs, false, "then")?,
            record::part_module(active, otherwise, &inputs, false, "otherwise")?,
        );
        context.cut(&[&first, &second], &[], "a branch", self.caller)?;
        if !differing.is_empty() || !module.effects().is_pure() {
            let args = record::nodes(&inputs);
            let condition = self.condition;
            let results = record::call(
                active,
                "cond",
                &*module,
                Some(condition),
                args,
                differing.len(),
            )?;
            for ((part, at), result) in differing.into_iter().zip(results) {
                leaves[part][at] = result;
            }
        }
        let values = trees.iter().zip(leaves);
        values
            .map(|(tree, leaves)| tree.unflatten(leaves))
            .collect()
    }
}
