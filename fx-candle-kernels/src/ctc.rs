//! Connectionist temporal classification: how likely a target is over all its alignments, and the gradient of that.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

use super::couples::log_add_exp;

/// The arguments of a batch's losses, besides the logarithms of probabilities.
pub struct Alignments {
    /// The classes of each sample, without blanks.
    pub targets: Vec<Vec<usize>>,
    /// The number of time steps of each sample.
    pub steps: Vec<usize>,
    /// The blank class, which separates others.
    pub blank: usize,
}

/// The logarithms of one sample in `[steps, samples, classes]`.
struct Sample<'x> {
    logs: &'x [f64],
    samples: usize,
    classes: usize,
    at: usize,
}

impl Sample<'_> {
    fn log(&self, step: usize, class: usize) -> f64 {
        self.logs[(step * self.samples + self.at) * self.classes + class]
    }
}

impl Alignments {
    /// The classes of a sample with blanks before, between and after them.
    fn states(&self, at: usize) -> Vec<usize> {
        let targets = &self.targets[at];
        let mut states = vec![self.blank; 2 * targets.len() + 1];
        for (place, target) in targets.iter().enumerate() {
            states[2 * place + 1] = *target;
        }
        states
    }

    /// The logarithm of the probability to be in a state at a step, over all paths to it:
    /// `[steps, states]`. With `backwards`, from the end.
    fn ways(&self, sample: &Sample<'_>, states: &[usize], backwards: bool) -> Vec<f64> {
        let (steps, count) = (self.steps[sample.at], states.len());
        let turned = |n: usize, of: usize| if backwards { of - 1 - n } else { n };
        let class = |state: usize| states[turned(state, count)];
        let mut ways = vec![f64::NEG_INFINITY; steps * count];
        for step in 0..steps {
            for state in 0..count {
                let before = |back: usize| match (step, state.checked_sub(back)) {
                    (1.., Some(from)) => {
                        ways[turned(step - 1, steps) * count + turned(from, count)]
                    }
                    _ => f64::NEG_INFINITY,
                };
                // A blank may be left out between two classes that differ.
                let skips =
                    state >= 2 && class(state) != self.blank && class(state) != class(state - 2);
                let sum = match step {
                    0 if state < 2 => 0.0,
                    0 => f64::NEG_INFINITY,
                    _ if skips => log_add_exp(log_add_exp(before(0), before(1)), before(2)),
                    _ => log_add_exp(before(0), before(1)),
                };
                let log = sample.log(turned(step, steps), class(state));
                ways[turned(step, steps) * count + turned(state, count)] = sum + log;
            }
        }
        ways
    }

    /// The loss of a sample.
    fn loss(&self, sample: &Sample<'_>) -> f64 {
        let states = self.states(sample.at);
        let steps = self.steps[sample.at];
        if steps == 0 {
            return if states.len() == 1 {
                0.0
            } else {
                f64::INFINITY
            };
        }
        let ways = self.ways(sample, &states, false);
        let last = &ways[(steps - 1) * states.len()..];
        let ends = &last[last.len().saturating_sub(2)..];
        -ends
            .iter()
            .fold(f64::NEG_INFINITY, |sum, way| log_add_exp(sum, *way))
    }

    /// Adds the gradient of a sample's loss, times a number, to that of its logarithms.
    fn add_gradient(&self, sample: &Sample<'_>, by: f64, gradient: &mut [f64]) {
        // Nothing asks for a sample that counts as 0: its ways may be infinite.
        if by == 0.0 {
            return;
        }
        let states = self.states(sample.at);
        let loss = self.loss(sample);
        if loss == f64::INFINITY {
            // No alignment fits: there is no direction in which the loss is less.
            for step in 0..self.steps[sample.at] {
                let row = (step * sample.samples + sample.at) * sample.classes;
                gradient[row..row + sample.classes].fill(f64::NAN);
            }
            return;
        }
        let there = self.ways(sample, &states, false);
        let back = self.ways(sample, &states, true);
        for step in 0..self.steps[sample.at] {
            for (state, class) in states.iter().enumerate() {
                let at = step * states.len() + state;
                // Both paths include the step's own probability.
                let way = there[at] + back[at] - sample.log(step, *class) + loss;
                if there[at] != f64::NEG_INFINITY {
                    let place = (step * sample.samples + sample.at) * sample.classes + class;
                    gradient[place] -= by * way.exp();
                }
            }
        }
    }
}

/// The losses of samples, by their logarithms `[steps, samples, classes]`.
struct Losses(Alignments);

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    x.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

impl CustomOp1 for Losses {
    fn name(&self) -> &'static str {
        "ctc_loss"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, samples, classes) = layout.shape().dims3()?;
        let Some((from, to)) = layout.contiguous_offsets() else {
            bail!("ctc_loss: the logarithms are not contiguous");
        };
        let logs = &storage.as_slice::<f64>()?[from..to];
        let sample = |at: usize| Sample {
            logs,
            samples,
            classes,
            at,
        };
        let losses = (0..samples).map(|at| self.0.loss(&sample(at))).collect();
        Ok((CpuStorage::F64(losses), Shape::from(samples)))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (_, samples, classes) = x.dims3()?;
        let (logs, by) = (numbers(x)?, numbers(gradient)?);
        let mut found = vec![0.0; logs.len()];
        for (at, by) in by.into_iter().enumerate() {
            let sample = Sample {
                logs: &logs,
                samples,
                classes,
                at,
            };
            self.0.add_gradient(&sample, by, &mut found);
        }
        Tensor::from_vec(found, x.shape(), x.device()).map(Some)
    }
}

/// The loss of each sample of `logs` `[steps, samples, classes]`, infinite where no alignment fits.
///
/// # Errors
/// Returns only candle's errors.
pub fn losses(logs: &Tensor, alignments: Alignments) -> Result<Tensor> {
    let wide = logs.to_dtype(DType::F64)?.contiguous()?;
    wide.apply_op1(Losses(alignments))?.to_dtype(logs.dtype())
}
