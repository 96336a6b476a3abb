//! `Schedule`: in which order a stage runs its micro-batches forward and backward.
//!
//! Invariant: a stage runs each micro-batch forward once, backward once behind it if there is a
//! backward, and both in the order of the micro-batches.

/// The order in which the stages of a pipeline run their micro-batches.
///
/// ```
/// use fx_core::passes::pipeline::{Action, Schedule};
/// let schedule = Schedule::OneForwardOneBackward;
/// let text = |stage| {
///     let actions = schedule.actions(stage, 3, 4).into_iter().map(|action| match action {
///         Action::Forward(at) => format!("F{at}"),
///         Action::Backward(at) => format!("B{at}"),
///         _ => String::new(),
///     });
///     actions.collect::<Vec<_>>().join(" ")
/// };
/// assert_eq!(text(0), "F0 F1 F2 B0 F3 B1 B2 B3"); // at most three micro-batches are between F and B
/// assert_eq!(text(1), "F0 F1 B0 F2 B1 F3 B2 B3");
/// assert_eq!(text(2), "F0 B0 F1 B1 F2 B2 F3 B3");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Schedule {
    /// Forward alone.
    Forward,
    /// All micro-batches forward, then all backward (GPipe): each stage keeps what all
    /// micro-batches need for their gradients.
    GPipe,
    /// One forward and one backward in turn (1F1B), as soon as gradients arrive: takes the same time
    /// as GPipe, and stage `s` of `n` keeps what at most `n - s` micro-batches need.
    #[default]
    OneForwardOneBackward,
}

/// What a stage does with a micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Runs the micro-batch of this number.
    Forward(usize),
    /// Computes the gradients of the micro-batch of this number.
    Backward(usize),
}

impl Schedule {
    /// What a stage does, in its order. Stages and micro-batches are counted from 0.
    pub fn actions(self, stage: usize, stages: usize, micro_batches: usize) -> Vec<Action> {
        // How many micro-batches a stage is ahead before its first gradients arrive.
        let ahead = match self {
            Schedule::Forward => return (0..micro_batches).map(Action::Forward).collect(),
            Schedule::GPipe => micro_batches,
            Schedule::OneForwardOneBackward => stages.saturating_sub(stage + 1).min(micro_batches),
        };
        let mut actions: Vec<Action> = (0..ahead).map(Action::Forward).collect();
        for next in ahead..micro_batches {
            actions.extend([Action::Forward(next), Action::Backward(next - ahead)]);
        }
        actions.extend((micro_batches - ahead..micro_batches).map(Action::Backward));
        actions
    }

    /// Whether gradients are computed.
    pub fn has_backward(self) -> bool {
        self != Schedule::Forward
    }
}
