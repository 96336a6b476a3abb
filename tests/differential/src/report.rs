//! What a run of calls found, counted.

use std::collections::BTreeSet;
use std::fmt;

use fx_nn::Result;

use crate::call::{Call, Kind as CallKind, Outcome};
use crate::excuses::reason;
use crate::gradients::{MODES, gradient_difference};
use crate::judge::{Difference, Kind};
use crate::run::{Mode, Plant, difference};

/// What is shown each difference, with the reason that excuses it.
pub type Tell<'t> = &'t mut dyn FnMut(&Call, Mode, &Difference, Option<&str>);

/// The counts of a run; its `Display` is the line that a run ends in.
#[derive(Debug, Default)]
pub struct Report {
    calls: usize,
    names: BTreeSet<(&'static str, String)>,
    excused: usize,
    found: [usize; 5],
    gradients: Gradients,
}

/// The counts of calls whose gradients are judged.
#[derive(Debug, Default)]
struct Gradients {
    calls: usize,
    excused: usize,
    wrong: usize,
}

impl Report {
    /// Makes the call of a line in every way and counts what differs; `tell` is shown it.
    ///
    /// # Errors
    /// When the line is not a call.
    pub fn line(&mut self, line: &str, plant: Option<Plant<'_>>, tell: Tell<'_>) -> Result<()> {
        let call = Call::parse(line)?;
        if matches!(call.outcome, Outcome::Gradients(_)) {
            self.gradients_of(&call, plant, tell);
            return Ok(());
        }
        self.calls += 1;
        // A method is its function's name.
        let kind = match call.kind {
            CallKind::Layer => "layer",
            CallKind::Operator => "operator",
            CallKind::Function | CallKind::Method => "function",
        };
        self.names.insert((kind, call.name.clone()));
        // A call counts once, as what differs first.
        let differs = Mode::ALL
            .into_iter()
            .find_map(|mode| Some((mode, difference(&call, mode, plant)?)));
        if let Some((mode, difference)) = differs {
            let excuse = reason(&call, &difference);
            match excuse {
                Some(_) => self.excused += 1,
                None => self.found[difference.kind as usize] += 1,
            }
            tell(&call, mode, &difference, excuse);
        }
        Ok(())
    }

    fn gradients_of(&mut self, call: &Call, plant: Option<Plant<'_>>, tell: Tell<'_>) {
        let counts = &mut self.gradients;
        counts.calls += 1;
        let differs = MODES
            .into_iter()
            .find_map(|mode| Some((mode, gradient_difference(call, mode, plant)?)));
        if let Some((mode, difference)) = differs {
            let excuse = reason(call, &difference);
            match excuse {
                Some(_) => counts.excused += 1,
                None => counts.wrong += 1,
            }
            tell(call, mode, &difference, excuse);
        }
    }

    /// How many calls' gradients were judged.
    pub fn gradients(&self) -> usize {
        self.gradients.calls
    }

    /// How many calls have gradients that differ and are not excused.
    pub fn wrong_gradients(&self) -> usize {
        self.gradients.wrong
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// How many calls differ and are not excused.
    pub fn differences(&self) -> usize {
        self.found.iter().sum()
    }

    /// How many calls the table excuses.
    pub fn excused(&self) -> usize {
        self.excused
    }

    /// How many differences of a kind there are.
    pub fn found(&self, kind: Kind) -> usize {
        self.found[kind as usize]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "calls {} operations {} excused {} panics {} values {} dtypes {} shapes {} refusals {}",
            self.calls,
            self.names.len(),
            self.excused,
            self.found(Kind::Panic),
            self.found(Kind::Value),
            self.found(Kind::DType),
            self.found(Kind::Shape),
            self.found(Kind::Refusal),
        )?;
        let Gradients {
            calls,
            excused,
            wrong,
        } = self.gradients;
        match calls {
            0 => Ok(()),
            calls => write!(f, "\ngradients {calls} wrong {wrong} excused {excused}"),
        }
    }
}
