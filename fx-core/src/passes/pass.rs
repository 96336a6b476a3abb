//! `Pass`: a change of a graph module, with what it needs and what it promises; `apply` makes it.
//!
//! Invariant: a pass that fails leaves the module as it found it.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::record::{Changes, PassRecord};
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::rewrite::rewriter::Rewriter;
use crate::value::object::short_type_name;

/// A change of a graph module.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::{Pass, operator};
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
    /// What reports, errors and provenance call it: the type's name.
    fn name(&self) -> Cow<'_, str> {
        short_type_name(std::any::type_name::<Self>()).into()
    }

    /// Refuses a module that the pass cannot work on, with the mend. Where there is nothing to do, [`run`](Pass::run) gives
    /// `false` instead.
    ///
    /// # Errors
    /// The reason.
    fn requires(&self, gm: &GraphModule) -> Result<()> {
        let _ = gm;
        Ok(())
    }

    /// Changes the module; gives whether it did. Graph modules inside of the module are its own: a pass that is to work on
    /// them is applied to each.
    ///
    /// # Errors
    /// Whatever stops the pass; [`apply`](GraphModule::apply) then takes back what it did.
    fn run(&self, gm: &mut GraphModule) -> Result<bool>;

    /// Refuses a result that is not what the pass promises.
    ///
    /// # Errors
    /// What is wrong with it.
    fn ensures(&self, gm: &GraphModule) -> Result<()> {
        let _ = gm;
        Ok(())
    }
}

/// A pass of a function.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::pass_fn;
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

/// Its rules, until none fits any more.
impl Pass for Rewriter {
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        Ok(!Rewriter::run(self, gm)?.rewritten.is_empty())
    }
}

impl GraphModule {
    /// Runs a pass: what it needs is checked before, the graph and what the pass promises after. Nodes that it makes and
    /// replaces remember it ([`Graph::explain`](crate::Graph::explain)).
    ///
    /// # Errors
    /// What the pass says, or what is wrong with the graph that it left, with the name of the pass; the module is as it was
    /// then.
    pub fn apply(&mut self, pass: &(impl Pass + ?Sized)) -> Result<PassRecord> {
        self.apply_checked(pass, &|_| Ok(()))
    }

    /// [`apply`](GraphModule::apply), with another check of the result.
    pub(crate) fn apply_checked(
        &mut self,
        pass: &(impl Pass + ?Sized),
        check: &dyn Fn(&GraphModule) -> Result<()>,
    ) -> Result<PassRecord> {
        // What was wrong before is not the pass's doing.
        self.lint()?;
        let name = pass.name().into_owned();
        let before = self.clone();
        let watch = self.graph().watch();
        // A pass that panics is taken back too.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let record = self.observed(pass, &name, &before)?;
            self.lint()?;
            pass.ensures(self)?;
            check(self)?;
            Ok(record)
        }));
        if let Ok(Ok(record)) = result {
            return Ok(record);
        }
        *self = before;
        self.parts_mut().0.set_watch(watch);
        match result {
            Ok(result) => result.map_err(|error: Error| error.in_pass(&name)),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn observed(
        &mut self,
        pass: &(impl Pass + ?Sized),
        name: &str,
        before: &GraphModule,
    ) -> Result<PassRecord> {
        pass.requires(self)?;
        let changes = Arc::new(Changes::default());
        let (graph, _) = self.parts_mut();
        let observer = graph.observe(changes.clone());
        let former = graph.start_pass(name);
        let start = Instant::now();
        let changed = pass.run(self);
        let time = start.elapsed();
        let (graph, _) = self.parts_mut();
        let is_same_graph = graph.unobserve(observer);
        graph.end_pass(former);
        let mut record = PassRecord {
            pass: name.to_string(),
            changed: changed?,
            time,
            nodes_before: before.graph().len(),
            nodes_after: self.graph().len(),
            created: Vec::new(),
            erased: Vec::new(),
            replaced: Vec::new(),
            edited: Vec::new(),
        };
        if is_same_graph {
            changes.into_record(before.graph(), self.graph(), &mut record);
        } else {
            let created = Changes::between(before.graph(), self.graph(), &mut record);
            let (graph, _) = self.parts_mut();
            graph.created_in_pass(name, &created);
        }
        record.changed |= !(record.created.is_empty()
            && record.erased.is_empty()
            && record.replaced.is_empty()
            && record.edited.is_empty());
        Ok(record)
    }
}
