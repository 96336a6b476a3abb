//! Networks over sequences: their items, their packed weights, and how a step runs them.
//!
//! Invariant: what is returned stands as the function's results do, whichever way the sequences lie.

use fx_core::ir::Argument;
use fx_core::{Error, Result};
use fx_kernels::recurrent::{Network, Unit, Weights};
use smallvec::SmallVec;

use super::array::{Array, Dims};
use super::call::{Args, Lowering};
use super::draft::{Id, Kind, Recurring};
use super::frame::{Reading, Register, filled, sizes_differ};
use super::memory::Pool;
use crate::Tensor;

impl Recurring {
    /// How many tensors the function returns.
    pub fn results(&self) -> usize {
        if self.unit == Unit::Lstm { 3 } else { 2 }
    }

    /// How many weights a layer has in one direction.
    fn weights_each(&self) -> usize {
        if self.has_biases { 4 } else { 2 }
    }

    /// How many weights all layers have; `None` if no number says it.
    fn weights(&self) -> Option<usize> {
        self.layers
            .checked_mul(self.directions * self.weights_each())
    }

    /// The inputs that are no weights.
    fn operands(&self) -> usize {
        1 + self.is_given.iter().filter(|given| **given).count()
    }
}

impl Lowering<'_> {
    /// A network that is not in training.
    pub fn recurrent(&mut self, args: &Args<'_>, unit: Unit) -> Option<Id> {
        let given = args.get("params")?;
        let (Argument::Tuple(params) | Argument::List(params)) = &*given else {
            return None;
        };
        if args.flag("train") {
            return None;
        }
        let mut inputs = vec![self.floats(args, "x")?];
        let mut is_given = [false; 2];
        for (is_given, name) in is_given.iter_mut().zip(["h_0", "c_0"]) {
            if !args.is_none(name) {
                *is_given = true;
                inputs.push(self.floats(args, name)?);
            }
        }
        let how = Recurring {
            unit,
            is_given,
            has_biases: args.flag("has_biases"),
            layers: usize::try_from(args.int("num_layers")?).ok()?,
            directions: if args.flag("bidirectional") { 2 } else { 1 },
            is_batch_first: args.flag("batch_first"),
        };
        let mut weights = Vec::with_capacity(params.len());
        let mut ids = Vec::with_capacity(params.len());
        for param in params.iter() {
            let id = self.item_of(param)?;
            let id = self.floats_of(id)?;
            if let Kind::Constant(tensor) = &self.draft.items[id].kind {
                weights.push(tensor.clone());
            }
            ids.push(id);
        }
        let weights = (weights.len() == ids.len()).then_some(weights);
        match &weights {
            Some(weights) if !fit(how, weights) => return None,
            Some(_) => {}
            None => inputs.extend(ids),
        }
        let kind = Kind::Recurrent(how, weights);
        Some(self.draft.push(kind, inputs, args.node.name(), false))
    }
}

/// Whether there are as many weights as layers need, each of its size.
fn fit(how: Recurring, weights: &[Tensor]) -> bool {
    let dims: Option<Vec<&[usize]>> = weights.iter().map(|w| w.dims().ok()).collect();
    let Some(dims) = dims.filter(|dims| !dims.is_empty() && how.weights() == Some(dims.len()))
    else {
        return false;
    };
    let ([_, inputs], [_, hidden]) = (dims[0], dims[1]) else {
        return false;
    };
    let rows = how.unit.gates() * hidden;
    dims.chunks(how.weights_each()).enumerate().all(|(at, of)| {
        let inputs = if at < how.directions {
            *inputs
        } else {
            how.directions * hidden
        };
        of[0] == [rows, inputs]
            && of[1] == [rows, *hidden]
            && of[2..].iter().all(|bias| *bias == [rows])
    })
}

/// What a step of a network is called.
pub(super) fn name(how: Recurring, network: &Network) -> String {
    let unit = match how.unit {
        Unit::Lstm => "LSTM",
        Unit::Gru => "GRU",
        Unit::Tanh | Unit::Relu => "RNN",
    };
    format!("{unit} {} to {}", network.inputs(), network.hidden())
}

/// A network of the weights of its layers, with their sizes.
pub(super) fn network(how: Recurring, weights: &[(&[f32], &[usize])]) -> Result<Network> {
    if how.layers == 0 || how.weights() != Some(weights.len()) {
        return Err(Error::msg("a network has another number of weights"));
    }
    let ([_, inputs], [_, hidden]) = (weights[0].1, weights[1].1) else {
        return Err(Error::msg("the weights of a network have two dimensions"));
    };
    let layers: Vec<Weights<'_>> = weights
        .chunks(how.weights_each())
        .map(|of| Weights {
            of_input: of[0].0,
            of_hidden: of[1].0,
            bias: how.has_biases.then(|| [of[2].0, of[3].0]),
        })
        .collect();
    Network::new(how.unit, *inputs, *hidden, how.directions, &layers).map_err(sizes_differ)
}

impl Reading<'_> {
    /// Runs a network whose weights are the last inputs.
    pub fn recurrent_by(&self, inputs: &[Id], how: Recurring, pool: &mut Pool) -> Result<Register> {
        let (operands, weights) = inputs.split_at(how.operands());
        let weights = weights.iter().map(|id| {
            let weight = self.array(*id, pool)?;
            self.contiguous(weight, pool)
        });
        let weights: Vec<Array> = weights.collect::<Result<_>>()?;
        let lent: Vec<(&[f32], &[usize])> = weights
            .iter()
            .map(|weight| (self.floats(weight), &weight.dims[..]))
            .collect();
        self.recurrent(operands, how, &network(how, &lent)?, pool)
    }

    /// Runs a network: the states of its last layer, and the last states of all.
    pub fn recurrent(
        &self,
        inputs: &[Id],
        how: Recurring,
        network: &Network,
        pool: &mut Pool,
    ) -> Result<Register> {
        let mut x = self.array(inputs[0], pool)?;
        let is_batched = match x.dims.len() {
            3 => true,
            2 => false,
            _ => return Err(Error::msg("sequences have two or three dimensions")),
        };
        match (is_batched, how.is_batch_first) {
            (true, true) => x = x.permuted(&[1, 0, 2]),
            (true, false) => {}
            (false, _) => x = x.with_one(1),
        }
        let x = self.contiguous(x, pool)?;
        let [time, batch, features] = x.dims[..] else {
            return Err(Error::msg("sequences have a time and a batch"));
        };
        if time == 0 || features != network.inputs() {
            return Err(Error::msg("the sequences do not fit the network"));
        }
        let states: Dims = SmallVec::from_slice(&[network.states(), batch, network.hidden()]);
        let mut given = inputs[1..].iter();
        let mut first = |is_given: bool, pool: &mut Pool| -> Result<Option<Array>> {
            if !is_given {
                return Ok(None);
            }
            let id = given.next();
            let id = id.ok_or_else(|| Error::msg("a first state is missing"))?;
            let state = self.array(*id, pool)?;
            let state = if is_batched { state } else { state.with_one(1) };
            if state.dims != states {
                return Err(Error::msg("the states do not fit the sequences"));
            }
            self.contiguous(state, pool).map(Some)
        };
        let h = first(how.is_given[0], pool)?;
        let c = first(how.is_given[1], pool)?;
        let start = |state: &Option<Array>, out: &mut [f32]| match state {
            Some(state) => out.copy_from_slice(self.floats(state)),
            None => out.fill(0.0),
        };
        // All results in one memory.
        let wide = network.directions() * network.hidden();
        let each: usize = states.iter().product();
        let cells = if how.unit == Unit::Lstm { each } else { 0 };
        let length = time * batch * wide;
        let all: Dims = SmallVec::from_slice(&[length + each + cells]);
        let made = filled(all, pool, |room| {
            let (out, rest) = room.split_at_mut(length);
            let (last, last_cells) = rest.split_at_mut(each);
            start(&h, last);
            if cells > 0 {
                start(&c, last_cells);
            }
            let sizes = (time, batch);
            let run = network.run(self.level, sizes, self.floats(&x), last, last_cells, out);
            run.map_err(sizes_differ)
        })?;
        let part = |start: usize, dims: &[usize]| {
            let mut part = Array::of(made.memory.clone(), dims.into());
            part.start = start;
            if is_batched { part } else { part.without(1) }
        };
        let mut out = part(0, &[time, batch, wide]);
        if is_batched && how.is_batch_first {
            out = out.permuted(&[1, 0, 2]);
        }
        let mut parts = vec![out, part(length, &states)];
        if how.unit == Unit::Lstm {
            parts.push(part(length + each, &states));
        }
        Ok(Register::Parts(parts))
    }
}
