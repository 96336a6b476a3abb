//! Long short-term memory over sequences.

use candle_core::{Result, Tensor, bail};

use super::chain::linked;
use super::dim::same_dtype;
use super::expand;
use super::pointwise::sigmoid;
use super::view::narrow;
use super::widen::{is_half, widened};

/// The weights of one layer in one direction: gates in the order input, forget, cell, output.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// `[4 * hidden, in]`.
    pub of_input: &'a Tensor,
    /// `[4 * hidden, hidden]`.
    pub of_hidden: &'a Tensor,
    /// Both `[4 * hidden]`.
    pub bias: Option<(&'a Tensor, &'a Tensor)>,
}

impl Weights<'_> {
    /// The size of the hidden state, if everything fits an input of `inputs` features.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    pub fn hidden(&self, inputs: usize) -> Result<usize> {
        let (of_input, of_hidden) = (self.of_input.dims(), self.of_hidden.dims());
        let hidden = of_hidden.last().copied().unwrap_or(0);
        let gates = hidden.saturating_mul(4);
        let bias_fits = self
            .bias
            .is_none_or(|(a, b)| a.dims() == [gates] && b.dims() == [gates]);
        if of_input != [gates, inputs] || of_hidden != [gates, hidden] || !bias_fits {
            bail!(
                "lstm: weights {of_input:?} and {of_hidden:?} do not fit an input of {inputs} features: they must be \
                 [4 * hidden, {inputs}] and [4 * hidden, hidden], the biases [4 * hidden]"
            )
        }
        Ok(hidden)
    }
}

/// One layer in one direction over `x [time, batch, in]` from the states `h` and `c` `[batch, hidden]`.
///
/// Returns the hidden states `[time, batch, hidden]`, in the order of time, and the last two
/// states.
///
/// # Errors
/// Returns an error if a shape does not fit.
pub fn layer(
    x: &Tensor,
    weights: Weights<'_>,
    h: &Tensor,
    c: &Tensor,
    reverse: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let op = "lstm";
    let (of_input, of_hidden) = (weights.of_input, weights.of_hidden);
    let (a, b) = weights.bias.unzip();
    for other in [Some(of_input), Some(of_hidden), a, b, Some(h), Some(c)] {
        other.map_or(Ok(()), |other| same_dtype(op, x, other))?;
    }
    if is_half(x.dtype()) {
        let inputs = (x, of_input, of_hidden, a, b, h, c);
        return widened(x, inputs, |(x, of_input, of_hidden, a, b, h, c)| {
            let weights = Weights {
                of_input: &of_input,
                of_hidden: &of_hidden,
                bias: a.as_ref().zip(b.as_ref()),
            };
            layer(&x, weights, &h, &c, reverse)
        });
    }
    let (time, batch, inputs) = x.dims3()?;
    let hidden = weights.hidden(inputs)?;
    if h.dims() != [batch, hidden] || c.dims() != [batch, hidden] {
        bail!(
            "lstm: states {:?} and {:?} do not fit input {:?}, they must be [{batch}, {hidden}]",
            h.dims(),
            c.dims(),
            x.dims()
        )
    }
    if time == 0 {
        bail!("lstm: input {:?} has no time steps", x.dims())
    }
    // The input's share of all gates at all times in one product.
    let gates = x
        .contiguous()?
        .reshape((time * batch, inputs))?
        .matmul(&weights.of_input.t()?)?;
    let gates = match weights.bias {
        Some((a, b)) => gates.add(&expand::to(&a.add(b)?, gates.dims())?)?,
        None => gates,
    };
    let gates = gates.reshape((time, batch, 4 * hidden))?;
    let of_hidden = weights.of_hidden.t()?.contiguous()?;
    let (mut h, mut c) = (h.contiguous()?, c.clone());
    let mut states = Vec::with_capacity(time);
    for step in 0..time {
        let at = if reverse { time - 1 - step } else { step };
        let gates = gates.get(at)?.add(&h.matmul(&of_hidden)?)?;
        let gate = |n: usize| narrow(&gates, 1, n * hidden, hidden)?.contiguous();
        let (input, forget) = (sigmoid(&gate(0)?)?, sigmoid(&gate(1)?)?);
        let (cell, output) = (gate(2)?.tanh()?, sigmoid(&gate(3)?)?);
        // Each step depends on the one before: a chain within one call.
        c = linked(forget.mul(&c)?.add(&input.mul(&cell)?)?);
        h = linked(output.mul(&c.tanh()?)?);
        states.push(h.clone());
    }
    if reverse {
        states.reverse();
    }
    Ok((Tensor::stack(&states, 0)?, h, c))
}
