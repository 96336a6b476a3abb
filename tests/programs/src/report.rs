//! What is counted of a run: programs, what stands in them, and what became of them on each path.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::generate::Case;
use crate::judge::Verdict;
use crate::program::{End, Number, Part, Results, Step, Test};

/// The functions by which the ends of a part are read.
fn sizes<'n>(part: &Part) -> Vec<&'n str> {
    let Part::Slice(start, stop, _) = part else {
        return Vec::new();
    };
    let name = |end: &End| match end {
        End::Of(Number::Size(..)) => Some("size"),
        End::Of(Number::Shape(..)) => Some("getattr"),
        _ => None,
    };
    [start, stop].into_iter().filter_map(name).collect()
}

const NAMES: [&str; 9] = [
    "programs",
    "run",
    "refused_by_all",
    "compared",
    "unread",
    "wrong",
    "panics",
    "refused_by_one_path",
    "steps",
];

/// The counts of a run.
#[derive(Default)]
pub struct Counts {
    counts: BTreeMap<&'static str, usize>,
    paths: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    shares: BTreeMap<&'static str, usize>,
    names: BTreeMap<String, usize>,
    reasons: BTreeMap<String, usize>,
}

impl Counts {
    /// Counts of nothing, by the names of functions.
    pub fn new<'n>(functions: impl Iterator<Item = &'n str>) -> Self {
        let mut counts = Counts::default();
        for name in NAMES {
            counts.add(name, 0);
        }
        counts.names = functions.map(|name| (name.to_string(), 0)).collect();
        counts
    }

    /// Adds to a count.
    pub fn add(&mut self, name: &'static str, count: usize) {
        *self.counts.entry(name).or_default() += count;
    }

    /// Counts a program and what stands in it.
    pub fn program(&mut self, case: &Case) {
        let steps = case.program.all_steps();
        self.add("steps", steps.len());
        let mut names: Vec<&str> = Vec::new();
        for step in &steps {
            match step {
                Step::Call { call, .. } => names.push(&call.name),
                Step::Cond(Test::Alike(name, ..), ..) => names.push(name),
                Step::Index(_, parts, _) => {
                    names.extend(parts.iter().flat_map(|part| sizes(part).into_iter()));
                }
                _ => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            *self.names.entry(name.to_string()).or_default() += 1;
        }
        let any = |of: fn(&Step) -> bool| steps.iter().any(|step| of(step));
        let shares = [
            (
                "branch or loop",
                any(|s| matches!(s, Step::Cond(..) | Step::While(..) | Step::Scan(..))),
            ),
            (
                "layer",
                any(|s| matches!(s, Step::Call { layer: Some(_), .. })),
            ),
            ("index", any(|s| matches!(s, Step::Index(..)))),
            (
                "structure",
                matches!(case.program.results, Results::Nested(_)) || any(|s| s.gives().len() > 1),
            ),
            ("named size", case.named),
        ];
        for (name, is) in shares {
            *self.shares.entry(name).or_default() += usize::from(is);
        }
    }

    fn path(&mut self, path: &'static str, kind: &'static str) {
        *self.paths.entry(path).or_default().entry(kind).or_default() += 1;
    }

    /// Counts what became of a program on a path; gives a line of what is wrong.
    pub fn verdict(&mut self, path: &'static str, seed: u64, verdict: &Verdict) -> Option<String> {
        self.path(path, "takes");
        match verdict {
            Verdict::Same(values) => {
                self.add("compared", *values);
                self.path(path, "compared");
            }
            Verdict::RefusedByAll => self.path(path, "refused_by_all"),
            Verdict::Refused(rule, _) => {
                self.add("refused_by_one_path", 1);
                self.path(path, "refused");
                *self.reasons.entry(format!("{path}: {rule}")).or_default() += 1;
            }
            Verdict::Unread => {
                self.add("unread", 1);
                self.path(path, "unread");
            }
            Verdict::Wrong(text) => {
                self.add("wrong", 1);
                self.path(path, "wrong");
                return Some(format!("{seed}: {path}: {text}"));
            }
            Verdict::Panic(text) => {
                self.add("panics", 1);
                self.path(path, "panics");
                return Some(format!("{seed}: {path}: a panic: {text}"));
            }
        }
        None
    }

    /// The counts as the script reads them.
    pub fn report(&self) -> Json {
        json!({
            "counts": self.counts, "paths": self.paths, "shares": self.shares, "names": self.names,
            "reasons": self.reasons,
        })
    }
}
