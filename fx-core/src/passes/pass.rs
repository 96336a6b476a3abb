//! `Pass`: a change of a graph module, with its requirements and its guarantees; `apply` runs it.
//!
//! Invariant: a failed pass leaves the module as it found it.

use std::borrow::Cow;
use std::fmt;

use web_time::Instant;

use super::record::PassRecord;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::graph_module::open_edits::Open;
use crate::ir::changes::Changes;
use crate::pattern::rewriter::Rewriter;
use crate::value::object::short_type_name;

/// A change of a graph module.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::Op;
/// use fx_core::value::NodeId;
/// use fx_core::operator;
/// use fx_core::passes::Pass;
///
/// /// Subtracts where the graph adds.
/// struct AddToSub;
/// impl Pass for AddToSub {
///     fn run(&self, gm: &mut GraphModule) -> Result<bool> {
///         let adds = gm.graph().find_nodes(&Op::CallFunction(operator::add));
///         let adds: Vec<NodeId> = adds.into_iter().map(|node| node.id()).collect();
///         let mut graph = gm.graph_mut();
///         for add in &adds {
///             graph.node_mut(*add)?.set_op(Op::CallFunction(operator::sub))?;
///         }
///         Ok(!adds.is_empty())
///     }
/// }
/// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
/// let record = gm.apply(&AddToSub)?;
/// assert!(record.changed);
/// assert_eq!(gm.forward::<f64>(3.0)?, 2.0);
/// # Ok::<(), Error>(())
/// ```
pub trait Pass: Send + Sync {
    /// Its name in reports, errors and provenance: the type's name by default.
    fn name(&self) -> Cow<'_, str> {
        short_type_name(std::any::type_name::<Self>()).into()
    }

    /// Returns an error, with the fix, if the pass cannot work on the module. If there is nothing
    /// to do, [`run`](Pass::run) returns `false` instead.
    ///
    /// # Errors
    /// Returns an error with the reason.
    fn requires(&self, gm: &GraphModule) -> Result<()> {
        let _ = gm;
        Ok(())
    }

    /// Whether it also works on the sides of branches and the bodies of loops
    /// ([`control`](crate::control)), each by itself.
    fn enters_control(&self) -> bool {
        false
    }

    /// Changes the module; returns whether it did. Nested graph modules are separate: a pass that
    /// is to work on them is applied to each.
    ///
    /// # Errors
    /// Returns the error that stops the pass; [`apply`](GraphModule::apply) then undoes its
    /// changes.
    fn run(&self, gm: &mut GraphModule) -> Result<bool>;

    /// Returns an error if the result is not what the pass promises.
    ///
    /// # Errors
    /// Returns an error that says what is wrong with it.
    fn ensures(&self, gm: &GraphModule) -> Result<()> {
        let _ = gm;
        Ok(())
    }
}

/// Makes a pass of a function.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::pass_fn;
/// let dead_code = pass_fn("dead_code", |gm| Ok(gm.eliminate_dead_code()? > 0));
/// let mut gm = symbolic_trace(traced!(|x: Float| { let _unused = (x * 2.0)?; Ok(x) }))?;
/// assert_eq!(gm.apply(&dead_code)?.erased, ["mul"]);
/// # Ok::<(), Error>(())
/// ```
pub fn pass_fn<F>(name: impl Into<String>, run: F) -> PassFn<F>
where
    F: Fn(&mut GraphModule) -> Result<bool> + Send + Sync,
{
    PassFn {
        name: name.into(),
        run,
    }
}

/// A pass of a function: made by [`pass_fn`].
pub struct PassFn<F> {
    name: String,
    run: F,
}

impl<F> fmt::Debug for PassFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pass_fn({})", self.name)
    }
}

impl<F: Fn(&mut GraphModule) -> Result<bool> + Send + Sync> Pass for PassFn<F> {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        (self.run)(gm)
    }
}

/// Applies its rules until none matches.
impl Pass for Rewriter {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        Ok(!Rewriter::run(self, gm)?.rewritten.is_empty())
    }
}

impl GraphModule {
    /// Runs a pass: checks its requirements before, and the graph and its guarantees after. Nodes
    /// that it makes and replaces remember it ([`Graph::explain`](crate::ir::Graph::explain)).
    ///
    /// # Errors
    /// Returns an error with the name of the pass if the pass fails, or if the graph that it left
    /// is wrong; the module is then unchanged.
    pub fn apply(&mut self, pass: &(impl Pass + ?Sized)) -> Result<PassRecord> {
        self.apply_checked(pass, &|_| Ok(()))
    }

    /// [`apply`](GraphModule::apply), with another check of the result.
    pub(crate) fn apply_checked(
        &mut self,
        pass: &(impl Pass + ?Sized),
        check: &dyn Fn(&GraphModule) -> Result<()>,
    ) -> Result<PassRecord> {
        // What was wrong before is not the pass's fault.
        self.lint_once()?;
        let name = pass.name().into_owned();
        let applied = self.edit_within(|gm, edit| {
            let record = gm.run_pass(pass, &name, edit)?;
            gm.lint_once()?;
            pass.ensures(gm)?;
            check(gm)?;
            Ok(record)
        });
        applied.map_err(|error| error.in_pass(&name))
    }

    /// Runs a pass in an edit, which records what it did.
    fn run_pass(
        &mut self,
        pass: &(impl Pass + ?Sized),
        name: &str,
        edit: &Open<GraphModule>,
    ) -> Result<PassRecord> {
        pass.requires(self)?;
        let nodes_before = self.graph().len();
        let former = self.graph_mut().start_pass(name);
        let start = Instant::now();
        let mut changed = pass.run(self)?;
        if pass.enters_control() {
            self.for_each_side(|_, side| {
                changed |= side.apply(pass)?.changed;
                Ok(())
            })?;
        }
        if changed {
            self.fill_shapes();
        }
        let time = start.elapsed();
        let (changes, created) = self.changes_in(edit);
        let mut graph = self.graph_mut();
        graph.end_pass(former);
        graph.created_in_pass(name, &created);
        drop(graph);
        let Changes {
            created,
            erased,
            replaced,
            edited,
        } = changes;
        let is_same =
            created.is_empty() && erased.is_empty() && replaced.is_empty() && edited.is_empty();
        Ok(PassRecord {
            pass: name.to_string(),
            changed: changed || !is_same,
            time,
            nodes_before,
            nodes_after: self.graph().len(),
            created,
            erased,
            replaced,
            edited,
        })
    }
}
