//! Recurrent networks over sequences: long short-term memory, gated units and plain ones, on weights that are packed once.
//!
//! The input's share of all gates at all times is one product; each step then multiplies the last state alone.

pub use fx_static::Unit;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::error::{SizeError, check};
use crate::math::{sigmoid, tanh};
use crate::matrix::{Finish, Order, PackedMatrix, WeightKind, WeightOrder, linear};
use crate::scratch::lend;
use crate::vector::{load_some, store_some};
use crate::{Activation, Level};

/// The weights of a layer in one direction, as PyTorch has them.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// `[gates * hidden, inputs]`.
    pub of_input: &'a [f32],
    /// `[gates * hidden, hidden]`.
    pub of_hidden: &'a [f32],
    /// Of the input and of the state: both `[gates * hidden]`.
    pub bias: Option<[&'a [f32]; 2]>,
}

/// A layer in one direction.
#[derive(Debug, Clone)]
struct Layer {
    unit: Unit,
    of_input: PackedMatrix,
    of_hidden: PackedMatrix,
    /// Added to the input's share.
    bias: Option<Vec<f32>>,
    /// Added to the state's share, where that is not the same.
    own_bias: Option<Vec<f32>>,
}

/// A layer's steps over time: what it reads and writes.
struct Walk<'a> {
    time: usize,
    batch: usize,
    is_reverse: bool,
    x: &'a [f32],
    /// The first state, and afterwards the last one.
    h: &'a mut [f32],
    /// As `h`; empty for units without a cell.
    c: &'a mut [f32],
    /// `[time, batch, hidden]`.
    out: &'a mut [f32],
}

impl Layer {
    fn new(
        unit: Unit,
        inputs: usize,
        hidden: usize,
        weights: Weights<'_>,
    ) -> Result<Layer, SizeError> {
        let rows = unit.gates() * hidden;
        let pack = |floats: &[f32], inputs: usize| {
            PackedMatrix::new(
                floats,
                inputs,
                rows,
                WeightOrder::OutputsFirst,
                WeightKind::F32,
            )
        };
        let (of_input, of_hidden) = (
            pack(weights.of_input, inputs)?,
            pack(weights.of_hidden, hidden)?,
        );
        let (mut bias, mut own_bias) = (None, None);
        if let Some([a, b]) = weights.bias {
            check("the bias of the input", rows, a.len())?;
            check("the bias of the state", rows, b.len())?;
            match unit {
                // What is new takes a share of its own sum with the bias in it.
                Unit::Gru => (bias, own_bias) = (Some(a.to_vec()), Some(b.to_vec())),
                _ => bias = Some(a.iter().zip(b).map(|(a, b)| a + b).collect()),
            }
        }
        Ok(Layer {
            unit,
            of_input,
            of_hidden,
            bias,
            own_bias,
        })
    }

    fn hidden(&self) -> usize {
        self.of_hidden.inputs()
    }

    fn run(&self, level: Level, walk: Walk<'_>) -> Result<(), SizeError> {
        let Walk {
            time,
            batch,
            is_reverse,
            x,
            h,
            c,
            out,
        } = walk;
        let hidden = self.hidden();
        let (state, rows) = (batch * hidden, batch * self.of_hidden.outputs());
        lend(rows * (time + 1), |room| {
            let (own, gates) = room.split_at_mut(rows);
            let finish = Finish {
                bias: self.bias.as_deref(),
                ..Finish::default()
            };
            linear(level, time * batch, x, &self.of_input, finish, gates)?;
            for step in 0..time {
                let at = if is_reverse { time - 1 - step } else { step };
                let (low, high) = out.split_at_mut(at * state);
                let (now, high) = high.split_at_mut(state);
                let before: &[f32] = match (step, is_reverse) {
                    (0, _) => &*h,
                    (_, true) => &high[..state],
                    (_, false) => &low[low.len() - state..],
                };
                let gates = &gates[at * rows..][..rows];
                let mut finish = Finish {
                    residual: Some(gates),
                    order: Order::ResidualFirst,
                    ..Finish::default()
                };
                match self.unit {
                    Unit::Tanh | Unit::Relu => {
                        finish.activation = match self.unit {
                            Unit::Tanh => Activation::Tanh,
                            _ => Activation::Relu,
                        };
                        linear(level, batch, before, &self.of_hidden, finish, now)?;
                        continue;
                    }
                    Unit::Lstm => linear(level, batch, before, &self.of_hidden, finish, own)?,
                    Unit::Gru => {
                        let finish = Finish {
                            bias: self.own_bias.as_deref(),
                            ..Finish::default()
                        };
                        linear(level, batch, before, &self.of_hidden, finish, own)?;
                    }
                }
                level.run(Cells {
                    hidden,
                    gates: (self.unit == Unit::Gru).then_some(gates),
                    own,
                    before,
                    c,
                    out: now,
                });
            }
            if time > 0 {
                let last = if is_reverse { 0 } else { time - 1 };
                h.copy_from_slice(&out[last * state..][..state]);
            }
            Ok(())
        })
    }
}

/// The next states of a step.
struct Cells<'a> {
    hidden: usize,
    /// The input's share where it is not in the sum.
    gates: Option<&'a [f32]>,
    own: &'a [f32],
    before: &'a [f32],
    c: &'a mut [f32],
    out: &'a mut [f32],
}

/// The vector at `at` of a gate of a row; zeros behind the end of the gate.
#[inline(always)]
fn gate<S: Simd>(
    simd: S,
    floats: &[f32],
    [row, gates, gate, hidden]: [usize; 4],
    at: usize,
) -> S::f32s {
    let first = (row * gates + gate) * hidden;
    let end = hidden.min(at + S::F32_LANES);
    load_some(simd, &floats[first + at..first + end])
}

impl WithSimd for Cells<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let hidden = self.hidden;
        for (row, out) in self.out.chunks_exact_mut(hidden).enumerate() {
            for at in (0..hidden).step_by(S::F32_LANES) {
                let end = hidden.min(at + S::F32_LANES);
                if let Some(gates) = self.gates {
                    let [a, b, c] = [0, 1, 2].map(|n| [row, 3, n, hidden]);
                    let reset =
                        simd.add_f32s(gate(simd, gates, a, at), gate(simd, self.own, a, at));
                    let update =
                        simd.add_f32s(gate(simd, gates, b, at), gate(simd, self.own, b, at));
                    let (reset, update) = (sigmoid(simd, reset), sigmoid(simd, update));
                    let own = gate(simd, self.own, c, at);
                    let new = tanh(
                        simd,
                        simd.mul_add_e_f32s(reset, own, gate(simd, gates, c, at)),
                    );
                    // (1 - update) · new + update · before
                    let before = gate(simd, self.before, [row, 1, 0, hidden], at);
                    let way = simd.sub_f32s(before, new);
                    store_some(
                        simd,
                        &mut out[at..end],
                        simd.mul_add_e_f32s(update, way, new),
                    );
                    continue;
                }
                let [a, b, c, d] = [0, 1, 2, 3].map(|n| [row, 4, n, hidden]);
                let input = sigmoid(simd, gate(simd, self.own, a, at));
                let forget = sigmoid(simd, gate(simd, self.own, b, at));
                let new = tanh(simd, gate(simd, self.own, c, at));
                let output = sigmoid(simd, gate(simd, self.own, d, at));
                let cell = &mut self.c[row * hidden + at..row * hidden + end];
                let kept = simd.mul_f32s(forget, load_some(simd, cell));
                let next = simd.mul_add_e_f32s(input, new, kept);
                store_some(simd, cell, next);
                let y = simd.mul_f32s(output, tanh(simd, next));
                store_some(simd, &mut out[at..end], y);
            }
        }
    }
}

/// Layers over sequences, each in one or two directions.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::recurrent::{Network, Unit, Weights};
///
/// // A state of one number: the sum of the input and half of the last state, where it is above 0.
/// let weights = Weights { of_input: &[1.0], of_hidden: &[0.5], bias: None };
/// let network = Network::new(Unit::Relu, 1, 1, 1, &[weights])?;
/// let (mut h, mut out) = ([0.0], [0.0; 3]);
/// network.run(Level::best(), (3, 1), &[1.0, 2.0, -4.0], &mut h, &mut [], &mut out)?;
/// assert_eq!((out, h), ([1.0, 2.5, 0.0], [0.0]));
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Network {
    inputs: usize,
    hidden: usize,
    directions: usize,
    has_cells: bool,
    layers: Vec<Layer>,
}

impl Network {
    /// Packs the weights of each layer in each of its one or two directions, in this order: the first layer is of
    /// `inputs` features, the others of what the one before gives, `directions * hidden`.
    ///
    /// # Errors
    ///
    /// Where there are no directions, more than two or not all of a layer, or a weight has another length.
    pub fn new(
        unit: Unit,
        inputs: usize,
        hidden: usize,
        directions: usize,
        weights: &[Weights<'_>],
    ) -> Result<Network, SizeError> {
        check("the list of directions", directions.clamp(1, 2), directions)?;
        let whole = weights.len().next_multiple_of(directions);
        check("the list of weights", whole, weights.len())?;
        let layers = weights.iter().enumerate().map(|(at, weights)| {
            let inputs = if at < directions {
                inputs
            } else {
                directions * hidden
            };
            Layer::new(unit, inputs, hidden, *weights)
        });
        Ok(Network {
            inputs,
            hidden,
            directions,
            has_cells: unit == Unit::Lstm,
            layers: layers.collect::<Result<_, _>>()?,
        })
    }

    /// The features of the input.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The features of a state.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// One or two.
    pub fn directions(&self) -> usize {
        self.directions
    }

    /// How many states there are: one for each direction of each layer.
    pub fn states(&self) -> usize {
        self.layers.len()
    }

    /// Runs over `x` `[time, batch, inputs]`. `h` `[states, batch, hidden]` has the first states, and afterwards the last
    /// ones; so has `c` for units with a cell, and is empty for others. `out` `[time, batch, directions * hidden]` gets the
    /// states of the last layer.
    ///
    /// # Errors
    ///
    /// Where a slice has another length than the sizes ask for.
    pub fn run(
        &self,
        level: Level,
        (time, batch): (usize, usize),
        x: &[f32],
        h: &mut [f32],
        c: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), SizeError> {
        let state = batch * self.hidden;
        let wide = self.directions * self.hidden;
        let cell = if self.has_cells { state } else { 0 };
        check("the input", time * batch * self.inputs, x.len())?;
        check("the states", self.layers.len() * state, h.len())?;
        check("the cells", self.layers.len() * cell, c.len())?;
        check("the result", time * batch * wide, out.len())?;
        if state == 0 || time == 0 {
            return Ok(());
        }
        // What a layer reads, and what each of its directions gives.
        lend(2 * time * batch * wide, |room| {
            let (given, made) = room.split_at_mut(time * batch * wide);
            let mut cells = c.chunks_mut(cell.max(1) * self.directions);
            let states = h.chunks_mut(state * self.directions);
            for (at, (layers, h)) in self.layers.chunks(self.directions).zip(states).enumerate() {
                let x = if at == 0 { x } else { &*given };
                let mut own = cells.next().unwrap_or_default().chunks_mut(cell.max(1));
                let walks: Vec<(&Layer, Walk<'_>)> = layers
                    .iter()
                    .zip(h.chunks_mut(state))
                    .zip(made.chunks_mut(time * state))
                    .enumerate()
                    .map(|(direction, ((layer, h), out))| {
                        let walk = Walk {
                            time,
                            batch,
                            is_reverse: direction == 1,
                            x,
                            h,
                            c: own.next().unwrap_or_default(),
                            out,
                        };
                        (layer, walk)
                    })
                    .collect();
                walks
                    .into_par_iter()
                    .try_for_each(|(layer, walk)| layer.run(level, walk))?;
                // The directions side by side.
                for (direction, made) in made.chunks(time * state).enumerate() {
                    let rows = given.chunks_mut(wide).zip(made.chunks(self.hidden));
                    for (row, made) in rows {
                        row[direction * self.hidden..][..self.hidden].copy_from_slice(made);
                    }
                }
            }
            out.copy_from_slice(given);
            Ok(())
        })
    }
}
