//! What was found of an operation, counted by route.

use std::collections::BTreeMap;
use std::fmt;

use fx_core::{ErrorKind, Result};

use super::{Given, Missing, Sample};

/// What a route made of an operation's samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteCount {
    /// Samples whose value was compared.
    pub compared: usize,
    /// Samples that are to be refused, and were.
    pub refused: usize,
    /// Samples in which the route has no part, by reason.
    pub reasons: BTreeMap<Missing, usize>,
    /// Samples that it refuses without a reason.
    pub missing: usize,
}

/// What was found of an operation.
#[derive(Debug, Clone, Default)]
pub struct OpReport {
    /// The operation's name.
    pub name: String,
    /// How many samples it has.
    pub samples: usize,
    /// The counts of each route, by its name.
    pub routes: BTreeMap<String, RouteCount>,
    /// What differs: a line for each sample and route.
    pub wrong: Vec<String>,
    /// What is refused without a reason: a line for each sample and route.
    pub missing: Vec<String>,
}

impl OpReport {
    pub(super) fn new(name: &str) -> Self {
        OpReport {
            name: name.to_string(),
            ..OpReport::default()
        }
    }

    pub(super) fn count(&mut self, route: &str, sample: &Sample<'_>, given: Result<Given>) {
        let count = self.routes.entry(route.to_string()).or_default();
        let line = |text: &str| format!("{} {} by {route}: {text}", self.name, sample.name());
        let result = match given {
            Ok(Given::Missing(reason)) => {
                *count.reasons.entry(reason).or_default() += 1;
                return;
            }
            Ok(Given::Agrees) => {
                count.compared += 1;
                return;
            }
            Ok(Given::Differs(text)) => {
                count.compared += 1;
                self.wrong.push(line(&text));
                return;
            }
            Ok(Given::Value(value)) => Ok(value),
            Err(error) => Err(error),
        };
        if let Err(error) = &result
            && matches!(error.kind(), ErrorKind::Escape { .. })
        {
            *count.reasons.entry(Missing::HostValue).or_default() += 1;
            return;
        }
        match (sample.judge(route, &result), &result) {
            (None, Ok(_)) => count.compared += 1,
            (None, Err(_)) => count.refused += 1,
            (Some(text), Err(_)) => {
                count.missing += 1;
                self.missing.push(line(&text));
            }
            (Some(text), Ok(_)) => {
                count.compared += 1;
                self.wrong.push(line(&text));
            }
        }
    }

    /// Adds what was found of other samples.
    pub fn add(&mut self, other: OpReport) {
        self.samples += other.samples;
        self.wrong.extend(other.wrong);
        self.missing.extend(other.missing);
        for (route, count) in other.routes {
            let own = self.routes.entry(route).or_default();
            own.compared += count.compared;
            own.refused += count.refused;
            own.missing += count.missing;
            for (reason, many) in count.reasons {
                *own.reasons.entry(reason).or_default() += many;
            }
        }
    }

    /// Whether every route gives what the call gives, or has a reason.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty() && self.missing.is_empty()
    }
}

/// The counts of each route, then what is wrong.
impl fmt::Display for OpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {} samples", self.name, self.samples)?;
        for (route, count) in &self.routes {
            write!(f, "\n  {route}: compared {}", count.compared)?;
            if count.refused > 0 {
                write!(f, ", refused {}", count.refused)?;
            }
            for (reason, many) in &count.reasons {
                write!(f, ", {reason:?} {many}")?;
            }
        }
        let lines = self.wrong.iter().chain(&self.missing);
        lines
            .into_iter()
            .try_for_each(|line| write!(f, "\n  {line}"))
    }
}
