//! Recurrent networks with one state, over sequences: gated units, and plain ones.

use candle_core::{Result, Tensor, bail};

use super::chain::linked;
use super::dim::same_dtype;
use super::expand;
use super::lstm::Weights;
use super::pointwise::{relu, sigmoid};
use super::view::narrow;
use super::widen::{is_half, widened};

/// How the next state is computed from the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A gated unit: reset, update and new, in this order.
    Gru,
    /// The hyperbolic tangent of the sum.
    Tanh,
    /// The sum where it is above 0.
    Relu,
}

impl Unit {
    /// How many rows of the weights a feature of the state has.
    pub fn gates(self) -> usize {
        match self {
            Unit::Gru => 3,
            Unit::Tanh | Unit::Relu => 1,
        }
    }

    /// The next state, of the input's share `x` and the last state's share `u` of the gates.
    fn next(self, x: &Tensor, u: &Tensor, h: &Tensor) -> Result<Tensor> {
        let hidden = h.dims()[1];
        let part = |t: &Tensor, n: usize| narrow(t, 1, n * hidden, hidden)?.contiguous();
        match self {
            Unit::Gru => {
                let reset = sigmoid(&part(x, 0)?.add(&part(u, 0)?)?)?;
                let update = sigmoid(&part(x, 1)?.add(&part(u, 1)?)?)?;
                let new = part(x, 2)?.add(&reset.mul(&part(u, 2)?)?)?.tanh()?;
                // (1 - update) · new + update · h
                new.add(&update.mul(&h.sub(&new)?)?)
            }
            Unit::Tanh => x.add(u)?.tanh(),
            Unit::Relu => relu(&x.add(u)?),
        }
    }
}

/// One layer in one direction over `x [time, batch, in]` from the state `h [batch, hidden]`: the states
/// `[time, batch, hidden]`, in the order of the time, and the last one.
///
/// # Errors
/// Returns an error if a shape does not fit.
pub fn layer(
    op: &str,
    unit: Unit,
    x: &Tensor,
    weights: Weights<'_>,
    h: &Tensor,
    reverse: bool,
) -> Result<(Tensor, Tensor)> {
    let (of_input, of_hidden) = (weights.of_input, weights.of_hidden);
    let (a, b) = weights.bias.unzip();
    for other in [Some(of_input), Some(of_hidden), a, b, Some(h)] {
        other.map_or(Ok(()), |other| same_dtype(op, x, other))?;
    }
    if is_half(x.dtype()) {
        let inputs = (x, of_input, of_hidden, a, b, h);
        let (states, last, _) = widened(x, inputs, |(x, of_input, of_hidden, a, b, h)| {
            let weights = Weights {
                of_input: &of_input,
                of_hidden: &of_hidden,
                bias: a.as_ref().zip(b.as_ref()),
            };
            let (states, last) = layer(op, unit, &x, weights, &h, reverse)?;
            Ok((states, last.clone(), last))
        })?;
        return Ok((states, last));
    }
    let (time, batch, inputs) = x.dims3()?;
    let hidden = of_hidden.dims().last().copied().unwrap_or(0);
    let rows = hidden.saturating_mul(unit.gates());
    let bias_fits = [a, b]
        .into_iter()
        .flatten()
        .all(|bias| bias.dims() == [rows]);
    if of_input.dims() != [rows, inputs] || of_hidden.dims() != [rows, hidden] || !bias_fits {
        bail!(
            "{op}: weights {:?} and {:?} do not fit an input of {inputs} features: they must be [{n} * hidden, {inputs}] \
             and [{n} * hidden, hidden], the biases [{n} * hidden]",
            of_input.dims(),
            of_hidden.dims(),
            n = unit.gates()
        )
    }
    if h.dims() != [batch, hidden] {
        bail!(
            "{op}: a state {:?} does not fit input {:?}, it must be [{batch}, {hidden}]",
            h.dims(),
            x.dims()
        )
    }
    if time == 0 {
        bail!("{op}: input {:?} has no time steps", x.dims())
    }
    let with_bias = |gates: Tensor, bias: Option<&Tensor>| match bias {
        Some(bias) => gates.add(&expand::to(bias, gates.dims())?),
        None => Ok(gates),
    };
    // The input's share of all gates at all times in one product.
    let gates = x.contiguous()?.reshape((time * batch, inputs))?;
    let gates = with_bias(gates.matmul(&of_input.t()?)?, a)?.reshape((time, batch, rows))?;
    let of_hidden = of_hidden.t()?.contiguous()?;
    let mut h = h.contiguous()?;
    let mut states = Vec::with_capacity(time);
    for step in 0..time {
        let at = if reverse { time - 1 - step } else { step };
        let own = with_bias(h.matmul(&of_hidden)?, b)?;
        h = linked(unit.next(&gates.get(at)?, &own, &h)?);
        states.push(h.clone());
    }
    if reverse {
        states.reverse();
    }
    Ok((Tensor::stack(&states, 0)?, h))
}
