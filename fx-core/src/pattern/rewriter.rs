//! `Rewriter`: a table of rules, applied until none matches.
//!
//! Invariant: it terminates: rules that never terminate are stopped, and the graph module is then
//! unchanged.

use std::fmt;

use super::replace::Rule;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::text::count;

/// Rules that are applied in turn, until a round changes nothing.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::pattern::{Rewriter, Rule};
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
/// #[wrap] fn half(x: Float) -> Result<Float> { x * 0.5 }
///
/// let mut gm = symbolic_trace(traced!(|x: Float| half(half(double(double(x)?)?)?)))?;
/// let rules = Rewriter::new()
///     .rule(Rule::new(traced!(|x: Float| half(double(x)?)), traced!(|x: Float| Ok(x)))?.named("half of double"));
/// let report = rules.run(&mut gm)?;
/// // The inner pair goes first, then the outer one has become a pair.
/// assert_eq!(report.rewritten.iter().map(|r| (r.rule.as_str(), r.round)).collect::<Vec<_>>(), [
///     ("half of double", 1),
///     ("half of double", 2),
/// ]);
/// assert_eq!(gm.graph().len(), 2);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Rewriter {
    rules: Vec<Rule>,
    limit: Option<usize>,
}

/// A replacement that a [`Rewriter`] made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rewritten {
    /// The rule's name.
    pub rule: String,
    /// The round, from 1.
    pub round: usize,
    /// The name of the node that was replaced: the first that the pattern returns.
    pub anchor: String,
    /// The user's source line of that node.
    pub location: Option<String>,
}

/// A node at which a rule nearly matched, in the last round.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NearMiss {
    /// The rule's name.
    pub rule: String,
    /// The node's name.
    pub anchor: String,
    /// The user's source line of that node.
    pub location: Option<String>,
    /// The number of nodes of the pattern that were found.
    pub found: usize,
    /// Why it did not match.
    pub why: String,
}

/// What a [`Rewriter`] did: which rule fired where, and what nearly matched.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RewriteReport {
    /// Replacements, in the order in which they were made.
    pub rewritten: Vec<Rewritten>,
    /// Near misses of the last round, at most sixteen per rule.
    pub near: Vec<NearMiss>,
    /// The number of rounds; the last one changed nothing.
    pub rounds: usize,
}

impl fmt::Display for RewriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} in {}",
            count(self.rewritten.len(), "replacement"),
            count(self.rounds, "round")
        )?;
        let at = |location: &Option<String>| {
            let location = location.as_ref();
            location.map_or(String::new(), |location| format!(" ({location})"))
        };
        for one in &self.rewritten {
            writeln!(
                f,
                "  round {}: {} at %{}{}",
                one.round,
                one.rule,
                one.anchor,
                at(&one.location)
            )?;
        }
        for one in &self.near {
            writeln!(
                f,
                "  nearly: {} at %{}{}: {}",
                one.rule,
                one.anchor,
                at(&one.location),
                one.why
            )?;
        }
        Ok(())
    }
}

impl Rewriter {
    /// A rewriter without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule; rules of one round are applied in the order in which they were added.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The rules, in the order in which they were added.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The limit on the number of replacements: by default ten per node of the graph, and at least
    /// a thousand.
    #[must_use]
    pub fn limit(mut self, replacements: usize) -> Self {
        self.limit = Some(replacements);
        self
    }

    /// Applies the rules until a round changes nothing.
    ///
    /// # Errors
    /// Returns an error if the rules never terminate (the error names them), or one cannot be
    /// applied; the graph module is then unchanged.
    pub fn run(&self, gm: &mut GraphModule) -> Result<RewriteReport> {
        gm.edit(|gm| self.rounds(gm))
    }

    fn rounds(&self, gm: &mut GraphModule) -> Result<RewriteReport> {
        let limit = self.limit.unwrap_or((gm.graph().len() * 10).max(1000));
        let mut report = RewriteReport::default();
        loop {
            report.rounds += 1;
            report.near.clear();
            let before = report.rewritten.len();
            for rule in &self.rules {
                self.apply(rule, gm, &mut report)?;
                if report.rewritten.len() > limit {
                    return Err(endless(&report, limit));
                }
            }
            if report.rewritten.len() == before {
                return Ok(report);
            }
        }
    }

    fn apply(&self, rule: &Rule, gm: &mut GraphModule, report: &mut RewriteReport) -> Result<()> {
        let applied = rule.apply_and_explain(gm, true)?;
        let rule = rule.name().to_string();
        for ((anchor, location), near) in applied.near {
            report.near.push(NearMiss {
                rule: rule.clone(),
                anchor,
                location,
                found: near.found,
                why: near.why,
            });
        }
        for (anchor, location) in applied.anchors {
            report.rewritten.push(Rewritten {
                rule: rule.clone(),
                round: report.rounds,
                anchor,
                location,
            });
        }
        Ok(())
    }
}

fn endless(report: &RewriteReport, limit: usize) -> Error {
    let last = report.rewritten.iter().rev().take(100);
    let mut rules: Vec<&str> = Vec::new();
    for one in last {
        if !rules.contains(&one.rule.as_str()) {
            rules.push(&one.rule);
        }
    }
    Error::limit(
        limit,
        format_args!(
            "more than {limit} replacements: the rules {} make new matches without end; have one of them not make what it \
         looks for, or raise the limit",
            rules.join(", ")
        ),
    )
}
