//! Schedules of the learning rate, with PyTorch's names and numbers.
//!
//! Invariant: a schedule is a function of the step, so a run has to save only the step;
//! [`ReduceLROnPlateau`], which depends on the course of a run, is not a schedule.

use std::f64::consts::PI;

use fx_core::{Error, Result};

use super::optimizer::Optimizer;

/// The learning rate at each step.
pub trait Schedule {
    /// The factor of the base rate at a step, counted from 0.
    fn factor(&self, step: u64) -> f64;

    /// The rate at a step: the base rate by the factor, unless the schedule has rates of its own.
    fn rate(&self, base: f64, step: u64) -> f64 {
        base * self.factor(step)
    }
}

/// A running schedule: sets the rate of an optimizer step by step.
///
/// ```
/// use fx_nn::optim::{Optimizer, SGD, Scheduler, StepLR};
/// use fx_nn::prelude::*;
/// let mut optimizer = SGD::new(&nn::Linear::new(2, 2)?)?.lr(0.8);
/// let mut scheduler = Scheduler::new(StepLR::new(2, 0.5), &mut optimizer);
/// let mut rates = vec![optimizer.learning_rate()];
/// for _ in 0..4 {
///     scheduler.step(&mut optimizer);
///     rates.push(optimizer.learning_rate());
/// }
/// assert_eq!(rates, [0.8, 0.8, 0.4, 0.4, 0.2]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scheduler<S> {
    schedule: S,
    base: f64,
    step: u64,
}

impl<S: Schedule> Scheduler<S> {
    /// Begins a schedule with the rate that an optimizer has, and sets the rate of step 0.
    pub fn new(schedule: S, optimizer: &mut impl Optimizer) -> Self {
        let base = optimizer.learning_rate();
        let scheduler = Scheduler {
            schedule,
            base,
            step: 0,
        };
        scheduler.resume_at(0, optimizer)
    }

    /// Resumes at a saved step: the base rate is the one that the schedule began with.
    #[must_use]
    pub fn resume_at(mut self, step: u64, optimizer: &mut impl Optimizer) -> Self {
        self.step = step;
        optimizer.set_learning_rate(self.schedule.rate(self.base, step));
        self
    }

    /// How many steps were taken: a run saves this.
    pub fn last_step(&self) -> u64 {
        self.step
    }

    /// Advances by one step.
    pub fn step(&mut self, optimizer: &mut impl Optimizer) {
        self.step += 1;
        optimizer.set_learning_rate(self.schedule.rate(self.base, self.step));
    }
}

/// A number of steps as a float, as factors are computed with.
fn float(steps: u64) -> f64 {
    steps as f64
}

/// Multiplies the rate by `gamma` after every `step_size` steps.
#[derive(Debug, Clone, Copy)]
pub struct StepLR {
    step_size: u64,
    gamma: f64,
}

impl StepLR {
    /// A schedule with a step size, at least 1, and a factor.
    pub fn new(step_size: u64, gamma: f64) -> Self {
        let step_size = step_size.max(1);
        StepLR { step_size, gamma }
    }
}

impl Schedule for StepLR {
    fn factor(&self, step: u64) -> f64 {
        self.gamma.powf(float(step / self.step_size))
    }
}

/// Multiplies the rate by `gamma` at each milestone.
#[derive(Debug, Clone)]
pub struct MultiStepLR {
    milestones: Vec<u64>,
    gamma: f64,
}

impl MultiStepLR {
    /// A schedule with the steps at which the rate changes, and a factor.
    pub fn new(milestones: impl Into<Vec<u64>>, gamma: f64) -> Self {
        let milestones = milestones.into();
        MultiStepLR { milestones, gamma }
    }
}

impl Schedule for MultiStepLR {
    fn factor(&self, step: u64) -> f64 {
        let passed = self.milestones.iter().filter(|at| **at <= step).count();
        self.gamma.powf(passed as f64)
    }
}

/// Multiplies the rate by a constant factor for the first `total_iters` steps.
#[derive(Debug, Clone, Copy)]
pub struct ConstantLR {
    factor: f64,
    total_iters: u64,
}

impl ConstantLR {
    /// A schedule with a factor and a number of steps.
    pub fn new(factor: f64, total_iters: u64) -> Self {
        ConstantLR {
            factor,
            total_iters,
        }
    }
}

impl Schedule for ConstantLR {
    fn factor(&self, step: u64) -> f64 {
        if step < self.total_iters {
            self.factor
        } else {
            1.0
        }
    }
}

/// Moves from one factor to another in equal steps: a warm-up.
#[derive(Debug, Clone, Copy)]
pub struct LinearLR {
    start: f64,
    end: f64,
    total_iters: u64,
}

impl LinearLR {
    /// A schedule with the first factor, the last, and the number of steps between.
    pub fn new(start_factor: f64, end_factor: f64, total_iters: u64) -> Self {
        LinearLR {
            start: start_factor,
            end: end_factor,
            total_iters,
        }
    }
}

impl Schedule for LinearLR {
    fn factor(&self, step: u64) -> f64 {
        if step >= self.total_iters {
            return self.end;
        }
        self.start + (self.end - self.start) * float(step) / float(self.total_iters)
    }
}

/// Multiplies the rate by `gamma` after every step.
#[derive(Debug, Clone, Copy)]
pub struct ExponentialLR {
    gamma: f64,
}

impl ExponentialLR {
    /// A schedule with a factor.
    pub fn new(gamma: f64) -> Self {
        ExponentialLR { gamma }
    }
}

impl Schedule for ExponentialLR {
    fn factor(&self, step: u64) -> f64 {
        self.gamma.powf(float(step))
    }
}

/// Decays to 0 as a power of the remaining part of `total_iters` steps.
#[derive(Debug, Clone, Copy)]
pub struct PolynomialLR {
    total_iters: u64,
    power: f64,
}

impl PolynomialLR {
    /// A schedule with a number of steps and a power.
    pub fn new(total_iters: u64, power: f64) -> Self {
        PolynomialLR { total_iters, power }
    }
}

impl Schedule for PolynomialLR {
    fn factor(&self, step: u64) -> f64 {
        let done = float(step.min(self.total_iters)) / float(self.total_iters.max(1));
        (1.0 - done).powf(self.power)
    }
}

/// Half a cosine down to the least rate in `t_max` steps, and up again.
///
/// ```
/// use fx_nn::optim::{CosineAnnealingLR, Schedule};
/// let schedule = CosineAnnealingLR::new(8, 0.0).eta_min(0.01);
/// assert_eq!((schedule.rate(0.1, 0), schedule.rate(0.1, 8)), (0.1, 0.01));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CosineAnnealingLR {
    t_max: u64,
    lowest: Lowest,
}

impl CosineAnnealingLR {
    /// A schedule with the steps of half a wave, and the least factor of the base rate; PyTorch's `eta_min`, a rate, is
    /// [`eta_min`](CosineAnnealingLR::eta_min).
    pub fn new(t_max: u64, least: f64) -> Self {
        CosineAnnealingLR {
            t_max: t_max.max(1),
            lowest: Lowest::Factor(least),
        }
    }

    /// The least rate, whatever the base rate is.
    #[must_use]
    pub fn eta_min(mut self, rate: f64) -> Self {
        self.lowest = Lowest::Rate(rate);
        self
    }
}

impl Schedule for CosineAnnealingLR {
    /// With a least rate, the factor of a base rate of 1.
    fn factor(&self, step: u64) -> f64 {
        self.rate(1.0, step)
    }

    fn rate(&self, base: f64, step: u64) -> f64 {
        self.lowest.reached(base, float(step) / float(self.t_max))
    }
}

/// How low a cosine goes.
#[derive(Debug, Clone, Copy)]
enum Lowest {
    /// To a part of the base rate.
    Factor(f64),
    /// To a rate.
    Rate(f64),
}

impl Lowest {
    /// The rate after a share of the way from the base rate.
    fn reached(self, base: f64, done: f64) -> f64 {
        match self {
            Lowest::Factor(factor) => base * cosine(1.0, factor, done),
            Lowest::Rate(rate) => cosine(base, rate, done),
        }
    }
}

/// From `start` to `end` by half a cosine.
fn cosine(start: f64, end: f64, done: f64) -> f64 {
    end + (start - end) * (1.0 + (PI * done).cos()) / 2.0
}

/// Half a cosine down to the least rate, restarted at its end; each takes `t_mult` times as many steps as
/// the one before.
#[derive(Debug, Clone, Copy)]
pub struct CosineAnnealingWarmRestarts {
    t_0: u64,
    t_mult: u64,
    lowest: Lowest,
}

impl CosineAnnealingWarmRestarts {
    /// A schedule with the steps of the first cosine, how much longer each is than the one before,
    /// and the least factor of the base rate; PyTorch's `eta_min`, a rate, is
    /// [`eta_min`](CosineAnnealingWarmRestarts::eta_min).
    pub fn new(t_0: u64, t_mult: u64, least: f64) -> Self {
        CosineAnnealingWarmRestarts {
            t_0: t_0.max(1),
            t_mult: t_mult.max(1),
            lowest: Lowest::Factor(least),
        }
    }

    /// The least rate, whatever the base rate is.
    #[must_use]
    pub fn eta_min(mut self, rate: f64) -> Self {
        self.lowest = Lowest::Rate(rate);
        self
    }
}

impl Schedule for CosineAnnealingWarmRestarts {
    /// With a least rate, the factor of a base rate of 1.
    fn factor(&self, step: u64) -> f64 {
        self.rate(1.0, step)
    }

    fn rate(&self, base: f64, step: u64) -> f64 {
        let (mut at, mut length) = (step, self.t_0);
        if self.t_mult == 1 {
            at %= length;
        } else {
            while at >= length {
                at -= length;
                length = length.saturating_mul(self.t_mult);
            }
        }
        self.lowest.reached(base, float(at) / float(length))
    }
}

/// Rises to the largest rate and falls to nearly nothing, in one cycle of `total_steps`, by
/// cosines; the base rate is the largest.
#[derive(Debug, Clone, Copy)]
pub struct OneCycleLR {
    total_steps: u64,
    pct_start: f64,
    div_factor: f64,
    final_div_factor: f64,
}

impl OneCycleLR {
    /// A schedule with a number of steps: 0.3 of them rise from the largest rate over 25, the
    /// others fall to a 10,000th of that.
    pub fn new(total_steps: u64) -> Self {
        OneCycleLR {
            total_steps,
            pct_start: 0.3,
            div_factor: 25.0,
            final_div_factor: 1e4,
        }
    }

    /// The share of the steps that rise.
    #[must_use]
    pub fn pct_start(mut self, pct_start: f64) -> Self {
        self.pct_start = pct_start;
        self
    }

    /// The largest rate over the first one.
    #[must_use]
    pub fn div_factor(mut self, div_factor: f64) -> Self {
        self.div_factor = div_factor;
        self
    }

    /// The first rate over the last one.
    #[must_use]
    pub fn final_div_factor(mut self, final_div_factor: f64) -> Self {
        self.final_div_factor = final_div_factor;
        self
    }
}

impl Schedule for OneCycleLR {
    fn factor(&self, step: u64) -> f64 {
        let (first, top) = (1.0 / self.div_factor, 1.0);
        let last = first / self.final_div_factor;
        let turn = self.pct_start * float(self.total_steps) - 1.0;
        let end = float(self.total_steps) - 1.0;
        let step = float(step).min(end);
        match step <= turn {
            true => cosine(first, top, step / turn),
            false => cosine(top, last, (step - turn) / (end - turn)),
        }
    }
}

/// A schedule by a function of the step.
#[derive(Debug, Clone, Copy)]
pub struct LambdaLR<F>(F);

impl<F: Fn(u64) -> f64> LambdaLR<F> {
    /// A schedule with a function that returns the factor at a step.
    pub fn new(factor: F) -> Self {
        LambdaLR(factor)
    }
}

impl<F: Fn(u64) -> f64> Schedule for LambdaLR<F> {
    fn factor(&self, step: u64) -> f64 {
        (self.0)(step)
    }
}

impl Schedule for Box<dyn Schedule> {
    fn factor(&self, step: u64) -> f64 {
        (**self).factor(step)
    }

    fn rate(&self, base: f64, step: u64) -> f64 {
        (**self).rate(base, step)
    }
}

/// One schedule after another, each from its own step 0.
///
/// ```
/// use fx_nn::optim::{CosineAnnealingLR, LinearLR, Schedule, SequentialLR};
/// let warm = SequentialLR::new(LinearLR::new(0.1, 1.0, 10)).then(10, CosineAnnealingLR::new(90, 0.0));
/// assert_eq!((warm.factor(0), warm.factor(10)), (0.1, 1.0));
/// assert!(warm.factor(100) < 1e-9);
/// ```
pub struct SequentialLR {
    /// The schedules, each with the step it begins at.
    schedules: Vec<(u64, Box<dyn Schedule>)>,
}

impl SequentialLR {
    /// Begins with a schedule.
    pub fn new(first: impl Schedule + 'static) -> Self {
        SequentialLR {
            schedules: vec![(0, Box::new(first))],
        }
    }

    /// Adds a schedule that begins at a step.
    #[must_use]
    pub fn then(mut self, step: u64, next: impl Schedule + 'static) -> Self {
        self.schedules.push((step, Box::new(next)));
        self
    }
}

impl Schedule for SequentialLR {
    fn factor(&self, step: u64) -> f64 {
        self.rate(1.0, step)
    }

    fn rate(&self, base: f64, step: u64) -> f64 {
        let now = self.schedules.iter().rev().find(|(from, _)| *from <= step);
        now.map_or(base, |(from, schedule)| schedule.rate(base, step - from))
    }
}

/// Lowers the rate once a measure, such as the validation loss, has stopped falling.
///
/// ```
/// use fx_nn::optim::{Optimizer, ReduceLROnPlateau, SGD};
/// use fx_nn::prelude::*;
/// let mut optimizer = SGD::new(&nn::Linear::new(2, 2)?)?.lr(1.0);
/// let mut plateau = ReduceLROnPlateau::new(0.1, 1);
/// for loss in [3.0, 2.0, 2.0, 2.0] {
///     plateau.step(loss, &mut optimizer)?;
/// }
/// assert_eq!(optimizer.learning_rate(), 0.1);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReduceLROnPlateau {
    factor: f64,
    patience: u64,
    threshold: f64,
    min_lr: f64,
    best: f64,
    bad_steps: u64,
}

impl ReduceLROnPlateau {
    /// A rule with a factor, and how many steps without a fall to wait for.
    pub fn new(factor: f64, patience: u64) -> Self {
        ReduceLROnPlateau {
            factor,
            patience,
            threshold: 1e-4,
            min_lr: 0.0,
            best: f64::INFINITY,
            bad_steps: 0,
        }
    }

    /// How much a fall has to be, relative to the best measure: 1e-4.
    #[must_use]
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = threshold;
        self
    }

    /// The least rate: 0.
    #[must_use]
    pub fn min_lr(mut self, min_lr: f64) -> Self {
        self.min_lr = min_lr;
        self
    }

    /// The best measure and the number of steps without a fall: a run saves these.
    pub fn state(&self) -> (f64, u64) {
        (self.best, self.bad_steps)
    }

    /// Resumes from the result of [`state`](ReduceLROnPlateau::state).
    #[must_use]
    pub fn resume_at(mut self, (best, bad_steps): (f64, u64)) -> Self {
        (self.best, self.bad_steps) = (best, bad_steps);
        self
    }

    /// Takes the measure of one more step.
    ///
    /// # Errors
    /// Returns an error if the measure is NaN.
    pub fn step(&mut self, measure: f64, optimizer: &mut impl Optimizer) -> Result<()> {
        if measure.is_nan() {
            return Err(Error::msg("ReduceLROnPlateau: the measure is not a number"));
        }
        if measure < self.best * (1.0 - self.threshold) || self.best.is_infinite() {
            (self.best, self.bad_steps) = (measure, 0);
        } else {
            self.bad_steps += 1;
        }
        if self.bad_steps > self.patience {
            let lr = optimizer.learning_rate();
            optimizer.set_learning_rate((lr * self.factor).max(self.min_lr));
            self.bad_steps = 0;
        }
        Ok(())
    }
}
