//! `LoopRecorder`: records one iteration of a loop, and the call of a module that has it as its body.
//!
//! Invariant: while the iteration is recorded, every value that it may change is an input of the body.

use std::panic::Location;
use std::rc::Rc;

use super::decide::Truth;
use super::record::{self, Recording};
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::module::module::Module;
use crate::trace::blame::blame;
use crate::trace::open_side::Region;
use crate::trace::scope::{self, Active};
use crate::trace::side::Side;
use crate::value::handle::{NodeId, Proxy};
use crate::value::tree::Tree;
use crate::value::value::Value;

/// A loop whose condition is traced.
pub(super) struct LoopRecorder {
    active: Rc<Active>,
    /// Whether there is a first iteration.
    go: Proxy,
    caller: &'static Location<'static>,
    recording: Recording,
    trees: Vec<Tree>,
    /// What the loop begins with.
    init: Vec<Vec<Value>>,
    /// What can change: which leaf of which value.
    carried: Vec<(usize, usize)>,
    /// The inputs of the body for them.
    carries: Vec<NodeId>,
    limit: Option<usize>,
    make: MakeLoop,
}

/// Makes the module of a body that runs so many times at most.
type MakeLoop = fn(GraphModule, Option<usize>) -> Box<dyn Module>;

impl LoopRecorder {
    /// Begins an iteration on a state; returns the state of any iteration.
    pub fn begin(
        go: Proxy,
        state: Vec<Value>,
        caller: &'static Location<'static>,
        make: MakeLoop,
    ) -> Result<(Self, Vec<Value>)> {
        let active = scope::of_proxy(go)?;
        let context = &active.context;
        let parts: Vec<(Tree, Vec<Value>)> =
            state.into_iter().map(record::flat).collect::<Result<_>>()?;
        let (trees, init): (Vec<Tree>, Vec<Vec<Value>>) = parts.into_iter().unzip();
        let mut leaves = init.clone();
        let (mut carried, mut carries) = (Vec::new(), Vec::new());
        for (part, leaves) in leaves.iter_mut().enumerate() {
            for (at, leaf) in leaves.iter_mut().enumerate() {
                // What is no number and no tensor cannot change.
                if !record::is_carried(leaf) {
                    continue;
                }
                let node = record::input(&active, "carry")?;
                *leaf = Value::Proxy(context.proxy(node));
                carried.push((part, at));
                carries.push(node);
            }
        }
        let state = trees.iter().zip(leaves);
        let state = state.map(|(tree, leaves)| tree.unflatten(leaves));
        let state = state.collect::<Result<_>>()?;
        let recorder = LoopRecorder {
            recording: Recording::begin(&active, Region::Loop, caller)?,
            go,
            caller,
            trees,
            init,
            carried,
            carries,
            limit: None,
            make,
            active,
        };
        Ok((recorder, state))
    }

    /// The same, of a loop that runs so many iterations at most.
    pub fn with_limit(self, limit: Option<usize>) -> Self {
        LoopRecorder { limit, ..self }
    }

    /// Ends the iteration: whether there is another one, and the state after this one; `name` names a
    /// value in an error. Returns the state after the loop.
    pub fn end(
        self,
        again: Truth,
        state: Vec<Value>,
        name: &dyn Fn(usize) -> String,
    ) -> Result<Vec<Value>> {
        let (active, context) = (&self.active, &self.active.context);
        let nodes = self.recording.nodes()?;
        self.recording.end()?;
        context.set_location(self.caller);
        let refused = |text: String| Err(blame(active, "while_loop", Error::msg(text)));
        let mut next: Vec<Vec<Value>> = Vec::with_capacity(state.len());
        for (at, (value, tree)) in state.into_iter().zip(&self.trees).enumerate() {
            let (after, leaves) = record::flat(value)?;
            if after != *tree {
                return refused(format!(
                    "{} is `{tree}` before a turn of the loop and `{after}` after it: every turn of a loop gives one structure. To collect a tensor per turn take `control::scan`, which stacks them, or a tensor that grows by `cat`",
                    name(at)
                ));
            }
            let pairs = self.init[at].iter().zip(&leaves);
            for (one, other) in pairs.filter(|(one, _)| !record::is_carried(one)) {
                if !record::is_same(one, other) {
                    return refused(format!(
                        "the body changes {}: in a loop whose condition is traced only tensors and numbers can change",
                        one.describe()
                    ));
                }
            }
            next.push(leaves);
        }
        let mut results = vec![match again {
            Truth::Known(again) => Argument::Bool(again),
            Truth::Traced(again) => Argument::Node(again.node()),
        }];
        let given = self
            .carried
            .iter()
            .map(|(part, at)| std::mem::take(&mut next[*part][*at]));
        results.extend(record::arguments(active, &given.collect::<Vec<_>>())?);
        let init = self
            .carried
            .iter()
            .map(|(part, at)| self.init[*part][*at].clone());
        let init = record::arguments(active, &init.collect::<Vec<_>>())?;
        let side = Side { nodes, results };
        let captured = context.operands(&[&side], &self.carries)?;
        let inputs: Vec<NodeId> = self.carries.iter().chain(&captured).copied().collect();
        let body = record::part_module(active, &side, &inputs, true, "body")?;
        let module = (self.make)(body, self.limit);
        context.cut(&[&side], &self.carries, "a loop", self.caller)?;
        let args = init.into_iter().chain(record::nodes(&captured));
        let count = self.carried.len();
        let results = record::call(active, "while_loop", &*module, Some(self.go), args, count)?;
        let mut leaves = self.init.clone();
        for ((part, at), result) in self.carried.iter().zip(results) {
            leaves[*part][*at] = result;
        }
        let state = self.trees.iter().zip(leaves);
        state.map(|(tree, leaves)| tree.unflatten(leaves)).collect()
    }
}
