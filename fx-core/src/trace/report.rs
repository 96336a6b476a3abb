//! `Report`: what a trace froze into its graph, with where it came from, so that no constant is
//! silent.

use std::fmt;

use rustc_hash::FxHashSet;

use crate::location::SourceLocation;
use crate::shapes::Claim;

/// Something that is fixed in a graph, although the source looks as if it could change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Frozen {
    /// A tensor that is neither parameter, buffer nor input: later runs use the same one.
    Constant {
        /// The attribute that holds it.
        path: String,
        /// What it is.
        value: String,
    },
    /// An argument that was bound by `concrete`, or by its default.
    Argument {
        /// The argument, or the leaf of it.
        argument: String,
        /// What it was specialised to.
        value: String,
        /// Whether a run with another value is stopped.
        guarded: bool,
    },
    /// An optional argument that was bound as present: a run without it is stopped.
    Present {
        /// The argument.
        argument: String,
    },
    /// A module that was traced through with its training flag as it was.
    Training {
        /// The module's path.
        path: String,
        /// The flag.
        training: bool,
    },
    /// The shape of a known tensor that the source asked for.
    Shape {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A layer that does not belong to the root, made in its forward or held elsewhere: every run
    /// uses the copy that the trace took.
    Layer {
        /// The attribute that holds it.
        path: String,
        /// Its type.
        type_name: String,
    },
    /// What a shape assumed of sizes with names, see [`Trace::inputs`](crate::trace::Trace::inputs):
    /// a run in which it does not hold is stopped.
    Guard(Claim),
    /// Both sides of a branch run, and what they give is selected: it is decided for each of several examples.
    BothSides {
        /// The branch.
        branch: String,
    },
    /// A program's question about a symbolic value, or about the trace, with its answer: a truth
    /// value, a length, keys, or that a value is not known.
    Answer {
        /// What was asked.
        question: &'static str,
        /// The value it was asked of.
        of: String,
        /// The answer.
        answer: String,
    },
}

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frozen::Constant { path, value } => write!(f, "constant `{path}`: {value}"),
            Frozen::Argument {
                argument,
                value,
                guarded,
            } => {
                let how = if *guarded { "guarded" } else { "not guarded" };
                write!(f, "argument `{argument}` = {value} ({how})")
            }
            Frozen::Present { argument } => {
                write!(f, "argument `{argument}` is there (guarded)")
            }
            Frozen::Training { path, training } => {
                let path = if path.is_empty() { "the root" } else { path };
                write!(f, "training flag of {path} = {training}")
            }
            Frozen::Shape { tensor, shape } => write!(f, "shape of `{tensor}` = {shape:?}"),
            Frozen::Layer { path, type_name } => {
                write!(f, "layer `{path}`: {type_name}, not part of the root")
            }
            Frozen::Guard(claim) => write!(f, "sizes: {claim} (guarded)"),
            Frozen::BothSides { branch } => {
                write!(
                    f,
                    "both sides of `{branch}` run: it is decided for each example"
                )
            }
            Frozen::Answer {
                question,
                of,
                answer,
            } => write!(f, "{question} of {of} = {answer}"),
        }
    }
}

/// One line of a [`Report`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReportEntry {
    /// What is fixed.
    pub what: Frozen,
    /// The user's expression that fixed it, if there is one.
    pub location: Option<SourceLocation>,
    /// The path of the module whose forward was running; empty for the root.
    pub module: String,
}

impl fmt::Display for ReportEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        match (&self.location, self.module.is_empty()) {
            (Some(location), true) => write!(f, " ({location})"),
            (Some(location), false) => write!(f, " ({location}, in {})", self.module),
            (None, true) => Ok(()),
            (None, false) => write!(f, " (in {})", self.module),
        }
    }
}

/// What a trace froze: read it to see what a graph does not compute again.
///
/// ```
/// use fx_core::prelude::*;
/// let f = traced!(|x: Value, scale: f64| Ok((x, Float::from(scale))));
/// let report = Trace::new(f).concrete("scale", 2.5).report()?;
/// assert_eq!(report.to_string(), "argument `scale` = 2.5 (guarded)\n");
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Report {
    entries: Vec<ReportEntry>,
    known: FxHashSet<Frozen>,
}

impl Report {
    /// What was frozen, in the order in which the trace met it.
    pub fn entries(&self) -> &[ReportEntry] {
        &self.entries
    }

    /// Whether nothing was frozen.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a line, once.
    pub(super) fn add(&mut self, entry: ReportEntry) {
        if self.known.insert(entry.what.clone()) {
            self.entries.push(entry);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing was frozen\n");
        }
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        Ok(())
    }
}
