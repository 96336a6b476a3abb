//! Networks over sequences: one layer in one direction.

use crate::Activation;
use crate::Unit;
use crate::kernel::{Kernel, next, next_if};
use crate::point::{activated, tanh};
use crate::source::source;
use crate::vector::dot;

/// A layer of a network over sequences `[time, batch, inputs]` in one direction. Reads the sequences, the weights of the input
/// and of the state, both biases where it has them, and the first state and cells where they are given. Writes the states of
/// all times `[time, batch, wide]` from a column on, behind them the last state and cells `[batch, hidden]`, and behind
/// these as many floats as a state has gates, twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recurrent {
    /// How the next state is computed.
    pub unit: Unit,
    /// The steps.
    pub time: usize,
    /// The sequences.
    pub batch: usize,
    /// The features of a step.
    pub inputs: usize,
    /// Those of a state.
    pub hidden: usize,
    /// Whether time runs backwards.
    pub is_reverse: bool,
    /// Whether there are biases.
    pub has_biases: bool,
    /// Whether the first state is given, and the first cells.
    pub is_given: [bool; 2],
}

/// The shares of the input and the state in the gates.
fn shares(x: &[f32], weight: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
    for (at, (out, row)) in out.iter_mut().zip(weight.chunks_exact(x.len())).enumerate() {
        *out = dot(x, row) + bias.map_or(0.0, |bias| bias[at]);
    }
}

fn sigmoid(x: f32) -> f32 {
    activated(Activation::Sigmoid, x)
}

impl Kernel for Recurrent {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let reads = &mut reads.iter();
        let (x, of_input, of_hidden) = (next(reads), next(reads), next(reads));
        let biases = [
            next_if(reads, self.has_biases),
            next_if(reads, self.has_biases),
        ];
        let first = next_if(reads, self.is_given[0]);
        let first_cells = next_if(reads, self.is_given[1]);
        let Recurrent {
            unit,
            time,
            batch,
            inputs,
            hidden,
            ..
        } = *self;
        let (out, rest) = out.split_at_mut(time * batch * hidden);
        let (last, rest) = rest.split_at_mut(batch * hidden);
        let cells = if unit == Unit::Lstm {
            batch * hidden
        } else {
            0
        };
        let (last_cells, gates) = rest.split_at_mut(cells);
        let (of_x, of_h) = gates.split_at_mut(gates.len() / 2);
        match first {
            Some(first) => last.copy_from_slice(first),
            None => last.fill(0.0),
        }
        match first_cells {
            Some(first) if cells > 0 => last_cells.copy_from_slice(first),
            _ => last_cells.fill(0.0),
        }
        for step in 0..time {
            let step = if self.is_reverse {
                time - 1 - step
            } else {
                step
            };
            for b in 0..batch {
                let at = step * batch + b;
                let state = &mut last[b * hidden..][..hidden];
                shares(&x[at * inputs..][..inputs], of_input, biases[0], of_x);
                shares(state, of_hidden, biases[1], of_h);
                for (i, state) in state.iter_mut().enumerate() {
                    let sum = |gate: usize| of_x[gate * hidden + i] + of_h[gate * hidden + i];
                    *state = match unit {
                        Unit::Lstm => {
                            let cell = &mut last_cells[b * hidden + i];
                            *cell = sigmoid(sum(1)) * *cell + sigmoid(sum(0)) * tanh(sum(2));
                            sigmoid(sum(3)) * tanh(*cell)
                        }
                        Unit::Gru => {
                            let (reset, update) = (sigmoid(sum(0)), sigmoid(sum(1)));
                            let new = of_x[2 * hidden + i] + reset * of_h[2 * hidden + i];
                            (1.0 - update) * tanh(new) + update * *state
                        }
                        Unit::Tanh => tanh(sum(0)),
                        Unit::Relu => activated(Activation::Relu, sum(0)),
                    };
                }
                out[at * hidden..][..hidden].copy_from_slice(state);
            }
        }
    }
}

source!(Recurrent {
    unit,
    time,
    batch,
    inputs,
    hidden,
    is_reverse,
    has_biases,
    is_given
});
