//! `PassManager`: runs passes in order, checks them as they run, and reports; `bisect` finds the
//! one that breaks numbers.
//!
//! Invariant: after an error the module is as the failing pass found it.

use std::fmt;

use super::closeness::difference;
use super::divergence::{Divergence, first_divergence};
use super::pass::Pass;
use super::record::PassRecord;
use super::schedule;
use crate::error::{Error, ErrorKind, Result};
use crate::graph_module::GraphModule;
use crate::trace::call_args::{CallArgs, IntoArgs};
use crate::value::value::Value;

/// More rounds than any passes that settle need.
const MOST_ROUNDS: usize = 100;

type Check = Box<dyn Fn(&GraphModule) -> Result<()> + Send + Sync>;
/// A check of one run.
type Running<'r> = &'r dyn Fn(&GraphModule) -> Result<()>;

/// Passes, run in order, and repeatedly if they are to settle; lint runs after each, and other
/// checks on request.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::{Cse, DeadCode, FoldConstants, PassManager};
/// let mut gm = symbolic_trace(traced!(|x: Float| {
///     let (a, b) = ((x * 2.0)?, (x * 2.0)?);
///     let _unused = (a - 1.0)?;
///     a + b
/// }))?;
/// let passes = PassManager::new()
///     .pass(FoldConstants::new())
///     .group(PassManager::new().pass(Cse::new()).pass(DeadCode).until_unchanged())
///     .check_numbers(1.5, 0.0, 0.0);
/// let report = passes.run(&mut gm)?;
/// println!("{report}");
/// assert_eq!(gm.graph().len(), 4); // x, one multiplication, the addition, the output
/// assert_eq!(gm.forward::<f64>(1.5)?, 6.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct PassManager {
    items: Vec<Item>,
    /// The first of each pair must run before the second.
    constraints: Vec<(String, String)>,
    rounds: Rounds,
    checks: Vec<Check>,
    samples: Vec<Sample>,
    observers: Vec<Box<dyn PassObserver>>,
}

/// Sees each pass of a [`PassManager`], for a report of its own or pictures of each step.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use fx_core::prelude::*;
/// use fx_core::passes::{DeadCode, PassManager, PassObserver, PassRecord};
/// #[derive(Default, Clone)]
/// struct Sizes(Arc<Mutex<Vec<usize>>>);
/// impl PassObserver for Sizes {
///     fn on_pass(&self, before: &GraphModule, after: &GraphModule, record: &PassRecord) -> Result<()> {
///         assert_eq!(before.graph().len(), record.nodes_before);
///         self.0.lock().map_err(|_| Error::msg("a pass panicked"))?.push(after.graph().len());
///         Ok(())
///     }
/// }
/// let mut gm = symbolic_trace(traced!(|x: Float| { let _unused = (x * 2.0)?; x + 1.0 }))?;
/// let sizes = Sizes::default();
/// PassManager::new().pass(DeadCode).observe(sizes.clone()).run(&mut gm)?;
/// assert_eq!(*sizes.0.lock().map_err(|_| Error::msg("a pass panicked"))?, [3]);
/// # Ok::<(), Error>(())
/// ```
pub trait PassObserver: Send + Sync {
    /// Whether it sees the pass of this name. A copy of the module is made before each pass that an
    /// observer sees.
    fn sees(&self, pass: &str) -> bool {
        let _ = pass;
        true
    }

    /// Called before the first pass of a run.
    ///
    /// # Errors
    /// An error ends the run.
    fn on_start(&self, gm: &GraphModule) -> Result<()> {
        let _ = gm;
        Ok(())
    }

    /// Called after each pass that it sees, with the module before it and after it.
    ///
    /// # Errors
    /// An error ends the run.
    fn on_pass(&self, before: &GraphModule, after: &GraphModule, record: &PassRecord)
    -> Result<()>;
}

enum Item {
    Pass(Box<dyn Pass>),
    Group(PassManager),
}

#[derive(Clone, Copy, PartialEq)]
enum Rounds {
    AtMost(usize),
    UntilUnchanged,
}

impl Default for Rounds {
    fn default() -> Self {
        Rounds::AtMost(1)
    }
}

impl Rounds {
    fn most(self) -> usize {
        match self {
            Rounds::AtMost(rounds) => rounds,
            Rounds::UntilUnchanged => MOST_ROUNDS,
        }
    }
}

struct Sample {
    call: CallArgs,
    rtol: f64,
    atol: f64,
}

impl PassManager {
    /// A manager without passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pass.
    #[must_use]
    pub fn pass(mut self, pass: impl Pass + 'static) -> Self {
        self.items.push(Item::Pass(Box::new(pass)));
        self
    }

    /// Adds passes that have their own rounds, constraints and checks.
    #[must_use]
    pub fn group(mut self, group: PassManager) -> Self {
        self.items.push(Item::Group(group));
        self
    }

    /// Runs all passes this many times, or until a round changes nothing.
    #[must_use]
    pub fn steps(mut self, rounds: usize) -> Self {
        self.rounds = Rounds::AtMost(rounds);
        self
    }

    /// Runs all passes until a round changes nothing. If they still change something after a
    /// hundred rounds, that is an error, which names them.
    #[must_use]
    pub fn until_unchanged(mut self) -> Self {
        self.rounds = Rounds::UntilUnchanged;
        self
    }

    /// Requires every pass named `first` to run before every pass named `second`, those in groups
    /// among them. [`run`](PassManager::run) returns an error if the order is different, or if no
    /// pass has one of the names; [`sorted`](PassManager::sorted) finds an order of passes and
    /// whole groups.
    ///
    /// ```
    /// use fx_core::passes::{PassManager, pass_fn};
    /// let manager = PassManager::new()
    ///     .pass(pass_fn("quantize", |_| Ok(false)))
    ///     .pass(pass_fn("fuse", |_| Ok(false)))
    ///     .before("fuse", "quantize");
    /// let mut gm = fx_core::symbolic_trace(fx_core::traced!(|x: fx_core::value::Float| Ok(x)))?;
    /// let error = manager.run(&mut gm).unwrap_err().to_string();
    /// assert!(error.starts_with("pass `fuse` must run before `quantize`, but is number 2 and `quantize` is number 1"));
    /// assert_eq!(manager.sorted()?.names(), ["fuse", "quantize"]);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    #[must_use]
    pub fn before(mut self, first: &str, second: &str) -> Self {
        self.constraints.push((first.into(), second.into()));
        self
    }

    /// The same passes in an order that satisfies the constraints, and otherwise as they were
    /// added.
    ///
    /// # Errors
    /// Returns an error if the constraints form a cycle, which the error names, or name a pass that
    /// is missing.
    pub fn sorted(mut self) -> Result<Self> {
        let order = schedule::sorted(&self.items_names(), &self.constraints)?;
        let mut items: Vec<Option<Item>> = self.items.into_iter().map(Some).collect();
        let sorted = order.into_iter().filter_map(|at| items[at].take());
        self.items = sorted.collect();
        Ok(self)
    }

    /// Adds a check that runs after every pass, those in groups among them.
    #[must_use]
    pub fn check(
        mut self,
        check: impl Fn(&GraphModule) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    /// Runs the module on these inputs after every pass, and compares its results with those before
    /// the first: within `atol + rtol · |expected|`, element by element; equal bit for bit if both
    /// are 0. Several calls add several samples.
    #[must_use]
    pub fn check_numbers(mut self, args: impl IntoArgs, rtol: f64, atol: f64) -> Self {
        self.samples.push(Sample {
            call: args.into_args(),
            rtol,
            atol,
        });
        self
    }

    /// Shows each pass to an observer, those of groups too.
    #[must_use]
    pub fn observe(mut self, observer: impl PassObserver + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// The names of the passes, in order; a group is the names of its passes in parentheses.
    pub fn names(&self) -> Vec<String> {
        let name = |item: &Item| match item {
            Item::Pass(pass) => pass.name().into_owned(),
            Item::Group(group) => format!("({})", group.names().join(", ")),
        };
        self.items.iter().map(name).collect()
    }

    /// The names of the passes in each item.
    fn items_names(&self) -> Vec<Vec<String>> {
        let names = |item: &Item| match item {
            Item::Pass(pass) => vec![pass.name().into_owned()],
            Item::Group(group) => group.items_names().concat(),
        };
        self.items.iter().map(names).collect()
    }

    /// Runs the passes.
    ///
    /// # Errors
    /// Returns an error if the order breaks a constraint, or if a pass, lint or a check fails, with
    /// the name of the pass and of those that ran before it. The module is then as the failing pass
    /// found it.
    pub fn run(&self, gm: &mut GraphModule) -> Result<PassReport> {
        let mut report = PassReport::default();
        self.run_group(gm, &mut report, &[], &[])?;
        Ok(report)
    }

    /// Runs passes one after another, each checked by this manager and by those around it.
    fn run_group(
        &self,
        gm: &mut GraphModule,
        report: &mut PassReport,
        outer: &[Running<'_>],
        observers: &[&dyn PassObserver],
    ) -> Result<()> {
        schedule::validate(&self.items_names(), &self.constraints)?;
        let mut observers = observers.to_vec();
        observers.extend(self.observers.iter().map(|observer| &**observer));
        let mut own = self.observers.iter();
        own.try_for_each(|observer| observer.on_start(gm))?;
        let expected = expected(gm, &self.samples)?;
        let own = |gm: &GraphModule| -> Result<()> {
            self.checks.iter().try_for_each(|check| check(gm))?;
            compare(gm, &self.samples, &expected)
        };
        let mut checks = outer.to_vec();
        checks.push(&own);
        let rounds = self.rounds.most();
        let mut last = 0;
        for round in 1..=rounds {
            last = report.records.len();
            for item in &self.items {
                match item {
                    Item::Pass(pass) => {
                        let check =
                            |gm: &GraphModule| checks.iter().try_for_each(|check| check(gm));
                        let name = pass.name();
                        let seeing = observers.iter().filter(|observer| observer.sees(&name));
                        let seeing: Vec<&&dyn PassObserver> = seeing.collect();
                        let before = (!seeing.is_empty()).then(|| gm.clone());
                        let record = gm.apply_checked(&**pass, &check);
                        let record = record.map_err(|error| error.after(&report.names()))?;
                        if let Some(before) = before {
                            let mut seeing = seeing.into_iter();
                            seeing
                                .try_for_each(|observer| observer.on_pass(&before, gm, &record))?;
                        }
                        report.records.push((round, record));
                    }
                    Item::Group(group) => group.run_group(gm, report, &checks, &observers)?,
                }
            }
            if !report.records[last..].iter().any(|(_, r)| r.changed) {
                return Ok(());
            }
        }
        if self.rounds == Rounds::UntilUnchanged {
            let records = report.records[last..].iter();
            let restless = records.filter(|(_, r)| r.changed).map(|(_, r)| &*r.pass);
            let restless: Vec<&str> = restless.collect();
            return Err(Error::limit(
                MOST_ROUNDS,
                format_args!(
                    "the passes do not settle: after {MOST_ROUNDS} rounds {} still changed something; return `false` from each pass that \
                 changed nothing, or give a number of rounds with `steps`",
                    restless.join(", ")
                ),
            ));
        }
        Ok(())
    }

    /// Runs the passes one by one on a copy, and finds the first that changes the module's results
    /// for these inputs by more than `atol + rtol · |expected|`, and the first node whose values
    /// differ between the module before it and the one after it. `None` if no pass does. Results
    /// are compared with those before the first pass, so that small differences add up. Checks of
    /// the manager are left out.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Op;
    /// use fx_core::value::NodeId;
    /// use fx_core::operator;
    /// use fx_core::passes::{DeadCode, PassManager, pass_fn};
    /// let wrong = pass_fn("add_to_sub", |gm| {
    ///     let adds: Vec<NodeId> = gm.graph().find_nodes(&Op::CallFunction(operator::add)).iter().map(|n| n.id()).collect();
    ///     for add in &adds {
    ///         gm.graph_mut().node_mut(*add)?.set_op(Op::CallFunction(operator::sub))?;
    ///     }
    ///     Ok(!adds.is_empty())
    /// });
    /// let gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * 2.0))?;
    /// let culprit = PassManager::new().pass(DeadCode).pass(wrong).bisect(&gm, 3.0, 0.0, 0.0)?;
    /// let culprit = culprit.ok_or_else(|| Error::msg("one is wrong"))?;
    /// assert_eq!(culprit.record.pass, "add_to_sub");
    /// assert_eq!(culprit.node.map(|part| part.node).as_deref(), Some("add"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](PassManager::run).
    pub fn bisect(
        &self,
        gm: &GraphModule,
        args: impl IntoArgs,
        rtol: f64,
        atol: f64,
    ) -> Result<Option<Culprit>> {
        let sample = Sample {
            call: args.into_args(),
            rtol,
            atol,
        };
        let sample = std::slice::from_ref(&sample);
        let mut search = Search {
            expected: expected(gm, sample)?.swap_remove(0),
            sample: &sample[0],
            passes_before: Vec::new(),
        };
        self.search(&mut gm.clone(), &mut search)
    }

    fn search(&self, gm: &mut GraphModule, search: &mut Search<'_>) -> Result<Option<Culprit>> {
        schedule::validate(&self.items_names(), &self.constraints)?;
        let rounds = self.rounds.most();
        for round in 1..=rounds {
            let mut changed = false;
            for item in &self.items {
                let found = match item {
                    Item::Pass(pass) => {
                        let (record, culprit) = search.step(gm, &**pass, round)?;
                        changed |= record.changed;
                        culprit
                    }
                    Item::Group(group) => {
                        let before = search.changes();
                        let culprit = group.search(gm, search)?;
                        changed |= search.changes() > before;
                        culprit
                    }
                };
                if found.is_some() {
                    return Ok(found);
                }
            }
            if !changed {
                break;
            }
        }
        Ok(None)
    }
}

/// The module's results for the samples.
///
/// # Errors
/// Returns an error if it does not run, or its numbers differ in a second run.
fn expected(gm: &GraphModule, samples: &[Sample]) -> Result<Vec<Value>> {
    let expected = samples.iter().enumerate().map(|(at, sample)| {
        let value: Result<Value> = gm.forward(sample.call.clone());
        value.map_err(|error| {
            numbers(format_args!(
                "comparing numbers: the module does not run on sample {}: {error}",
                at + 1
            ))
        })
    });
    let expected = expected.collect::<Result<Vec<Value>>>()?;
    if !expected.is_empty()
        && let Some(impure) = gm.impure_nodes().next()
    {
        // Numbers that change from run to run say nothing about passes.
        compare(gm, samples, &expected).map_err(|_| {
            numbers(format_args!(
                "comparing numbers: two runs of the module give different numbers before any pass, because %{} draws random \
                 numbers or changes state; call `eval()` on the module first",
                impure.name()
            ))
        })?;
    }
    Ok(expected)
}

fn numbers(problem: impl fmt::Display) -> Error {
    ErrorKind::Numbers(problem.to_string()).into()
}

fn compare(gm: &GraphModule, samples: &[Sample], expected: &[Value]) -> Result<()> {
    for (at, (sample, expected)) in samples.iter().zip(expected).enumerate() {
        let found: Value = gm.forward(sample.call.clone())?;
        if let Some(difference) = difference(&found, expected, sample.rtol, sample.atol) {
            return Err(numbers(format_args!(
                "the numbers changed on sample {}: {difference}; `PassManager::bisect` finds the node",
                at + 1
            )));
        }
    }
    Ok(())
}

impl fmt::Debug for PassManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PassManager({})", self.names().join(", "))
    }
}

/// A search for the pass that changes numbers.
struct Search<'s> {
    sample: &'s Sample,
    expected: Value,
    /// The passes that ran, and whether each changed anything.
    passes_before: Vec<(String, bool)>,
}

impl Search<'_> {
    fn changes(&self) -> usize {
        self.passes_before.iter().filter(|(_, c)| *c).count()
    }

    fn step(
        &mut self,
        gm: &mut GraphModule,
        pass: &dyn Pass,
        round: usize,
    ) -> Result<(PassRecord, Option<Culprit>)> {
        let names = || self.passes_before.iter().map(|(name, _)| name.clone());
        let former = gm.clone();
        let record = gm.apply(pass);
        let record = record.map_err(|error| error.after(&names().collect::<Vec<_>>()))?;
        let Sample { call, rtol, atol } = self.sample;
        let found: Result<Value> = gm.forward(call.clone());
        let told = match found {
            Ok(found) => difference(&found, &self.expected, *rtol, *atol).map(|d| d.to_string()),
            Err(error) => Some(format!("the module no longer runs: {error}")),
        };
        let culprit = told.map(|difference| Culprit {
            record: record.clone(),
            round,
            after: names().collect(),
            difference,
            node: first_divergence(gm, &former, call.clone(), *rtol, *atol)
                .ok()
                .flatten(),
        });
        self.passes_before
            .push((record.pass.clone(), record.changed));
        Ok((record, culprit))
    }
}

/// The pass that changes numbers: made by [`PassManager::bisect`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Culprit {
    /// What the pass did.
    pub record: PassRecord,
    /// The round in which it ran.
    pub round: usize,
    /// The passes that ran before it.
    pub after: Vec<String>,
    /// How the result differs.
    pub difference: String,
    /// The first node that the modules before and after it both have and whose numbers differ, if
    /// any.
    pub node: Option<Divergence>,
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.record)?;
        if !self.after.is_empty() {
            writeln!(f, "  after: {}", self.after.join(", "))?;
        }
        write!(f, "  result: {}", self.difference)?;
        match &self.node {
            Some(node) => write!(f, "\n  first at {node}"),
            None => f.write_str("\n  no node that both modules have is another"),
        }
    }
}

/// What passes did: made by [`PassManager::run`]; prints as a table.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PassReport {
    /// The round of its group, from 1, and what each pass did, in the order in which they ran.
    pub records: Vec<(usize, PassRecord)>,
}

impl PassReport {
    /// Whether any pass changed anything.
    pub fn changed(&self) -> bool {
        self.records.iter().any(|(_, record)| record.changed)
    }

    fn names(&self) -> Vec<String> {
        let records = self.records.iter();
        records.map(|(_, record)| record.pass.clone()).collect()
    }
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.records.iter().map(|(_, r)| r.pass.len());
        let width = names.max().unwrap_or(0).max("pass".len());
        writeln!(
            f,
            "{:width$}  round  changed  nodes before  after  created  replaced  erased  edited          ms",
            "pass"
        )?;
        for (round, record) in &self.records {
            writeln!(
                f,
                "{:width$}  {round:>5}  {:>7}  {:>12}  {:>5}  {:>7}  {:>8}  {:>6}  {:>6}  {:>10.3}",
                record.pass,
                if record.changed { "yes" } else { "no" },
                record.nodes_before,
                record.nodes_after,
                record.created.len(),
                record.replaced.len(),
                record.erased.len(),
                record.edited.len(),
                record.time.as_secs_f64() * 1e3
            )?;
        }
        Ok(())
    }
}
