//! Recurrent layers over sequences of any length: fx's own where they compute the same, else a scan.
//!
//! Invariant: a graph has one step, however long the sequences are.

use fx_nn::control;
use fx_nn::prelude::*;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result};

use super::contrib::DOMAIN;
use super::quant::Scaled;
use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("LSTM", |cx| recurrent(cx, Kind::Lstm, false)).check(sequence),
    op("GRU", |cx| recurrent(cx, Kind::Gru, false)).check(sequence),
    op("RNN", |cx| recurrent(cx, Kind::Rnn, false)).check(sequence),
    op("DynamicQuantizeLSTM", |cx| recurrent(cx, Kind::Lstm, true))
        .domain(DOMAIN)
        .any_type()
        .check(|cx| {
            sequence(cx)?;
            [8, 10].into_iter().try_for_each(|at| rank(cx, at, 1..3))
        }),
];

/// What a recurrent layer asks.
fn sequence(cx: &NodeCx<'_>) -> Result<()> {
    (0..3).try_for_each(|at| rank(cx, at, 3..4))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Lstm,
    Gru,
    Rnn,
}

impl Kind {
    /// Where fx's gates stand among ONNX's.
    fn gates(self) -> &'static [i64] {
        match self {
            Kind::Lstm => &[0, 2, 3, 1],
            Kind::Gru => &[1, 0, 2],
            Kind::Rnn => &[0],
        }
    }

    fn activations(self) -> &'static [&'static str] {
        match self {
            Kind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            Kind::Gru => &["Sigmoid", "Tanh"],
            Kind::Rnn => &["Tanh"],
        }
    }
}

/// A layer in one direction.
struct Way {
    w: Tensor,
    r: Tensor,
    /// The biases of the input and of the state.
    biases: Option<(Tensor, Tensor)>,
    peephole: Option<Tensor>,
    /// `w` and `r`, turned, of few bits.
    scaled: Option<(Scaled, Scaled)>,
    h: Option<Tensor>,
    c: Option<Tensor>,
    /// From the end to the start.
    turned: bool,
}

/// What all directions have in common.
struct Layer {
    kind: Kind,
    hidden: i64,
    relu: bool,
    linear_before_reset: bool,
    /// How many steps each row of the batch has, if not all of them.
    lengths: Option<Tensor>,
}

fn recurrent(cx: &mut NodeCx<'_>, kind: Kind, is_quantized: bool) -> Given {
    let direction = cx.text("direction", "forward");
    let count = if direction == "bidirectional" { 2 } else { 1 };
    if cx.attribute("clip").is_some() || cx.flag("input_forget") {
        return Err(Error::msg("clipped or coupled gates"));
    }
    // With a batch first, dims of batch and time are exchanged on both sides.
    let batch_first = cx.int("layout", 0) == 1;
    let mut x = cx.ranked(0, 3)?;
    if batch_first {
        x = ops::transpose(&x, 0, 1)?;
    }
    let hidden = cx.shape(2)?[if is_quantized { 1 } else { 2 }]
        .as_number()
        .ok_or_else(|| Error::msg("a hidden size that is not known"))?;
    let layer = Layer {
        kind,
        hidden,
        relu: activations(cx, kind)?,
        linear_before_reset: cx.flag("linear_before_reset"),
        lengths: lengths(cx, batch_first)?,
    };
    let (w, r, bias) = (cx.tensor(1)?, cx.tensor(2)?, cx.optional(3)?);
    let peephole = match kind {
        Kind::Lstm => cx.optional(7)?,
        _ => None,
    };
    let state = |at: usize, way: i64| -> Result<Option<Tensor>> {
        let dim = i64::from(batch_first);
        match cx.has(at) {
            true => ops::select(&cx.ranked(at, 3)?, dim, way).map(Some),
            false => Ok(None),
        }
    };
    let half = kind.gates().len() as i64 * hidden;
    // A matrix, its scale and its zero point, which stand at these places.
    let scaled = |at: [usize; 3], way: i64| -> Result<Scaled> {
        let of = |at: usize| ops::select(&cx.tensor(at)?, 0, way);
        let zero = cx.has(at[2]).then(|| of(at[2])).transpose()?;
        let rows = cx.shape(at[0])?[1].as_number();
        let rows = rows.ok_or_else(|| Error::msg("a weight whose rows are not counted"))?;
        Scaled::new(&of(at[0])?, &of(at[1])?, zero.as_ref(), rows)
    };
    let ways = (0..count).map(|way| {
        let of = |x: &Tensor| ops::select(x, 0, way);
        let biases = bias.as_ref().map(|bias| {
            let bias = of(bias)?;
            let part = |at: i64| ops::narrow(&bias, 0, at * half, half);
            Ok::<_, Error>((part(0)?, part(1)?))
        });
        Ok(Way {
            w: of(&w)?,
            r: of(&r)?,
            biases: biases.transpose()?,
            peephole: peephole.as_ref().map(of).transpose()?,
            scaled: match is_quantized {
                true => Some((scaled([1, 8, 9], way)?, scaled([2, 10, 11], way)?)),
                false => None,
            },
            h: state(5, way)?,
            c: match kind {
                Kind::Lstm => state(6, way)?,
                _ => None,
            },
            turned: direction == "reverse" || way == 1,
        })
    });
    let ways = ways.collect::<Result<Vec<Way>>>()?;
    let is_wide = matches!(cx.dtype(0)?, DType::F32 | DType::F64);
    // fx's own may drop out, and what draws numbers stays in a graph.
    let own = layer.lengths.is_none()
        && !cx.reader.known.is_looking()
        && peephole.is_none()
        && !is_quantized
        && is_wide
        && (kind != Kind::Gru || layer.linear_before_reset);
    let (y, lasts) = match own {
        true => layer.by_function(&x, &ways)?,
        false => layer.by_scan(&x, &ways)?,
    };
    // The steps, the directions, the batch.
    let y = match batch_first {
        true => ops::permute(&y, [2, 0, 1, 3])?,
        false => y,
    };
    let dtype = cx.input(0).dtype();
    let mut given = vec![V::Tensor(y, dtype)];
    for last in lasts {
        let last = match batch_first {
            true => ops::transpose(&last, 0, 1)?,
            false => last,
        };
        given.push(V::Tensor(last, dtype));
    }
    Ok(given)
}

/// Whether the activations are `Relu`; an error if they are neither that nor the usual ones.
fn activations(cx: &NodeCx<'_>, kind: Kind) -> Result<bool> {
    let Some(attribute) = cx.attribute("activations") else {
        return Ok(false);
    };
    let names = attribute.strings.iter();
    let names: Vec<String> = names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    let is = |own: &[&str]| names.iter().zip(own.iter().cycle()).all(|(a, b)| a == b);
    match kind {
        Kind::Rnn if is(&["Relu"]) => Ok(true),
        kind if is(kind.activations()) => Ok(false),
        _ => Err(Error::msg(format_args!("gates with {}", names.join(", ")))),
    }
}

/// The lengths of the rows; `None` if all of them have every step.
fn lengths(cx: &NodeCx<'_>, batch_first: bool) -> Result<Option<Tensor>> {
    if !cx.has(4) {
        return Ok(None);
    }
    let whole = cx.shape(0)?[usize::from(batch_first)].as_number();
    match cx.input(4).known_ints() {
        Ok(known) if known.iter().all(|length| Some(*length) == whole) => Ok(None),
        _ => {
            let lengths = as_type(&cx.tensor(4)?, DType::I64)?;
            Ok(Some(ops::unsqueeze(&lengths, 1)?))
        }
    }
}

impl Layer {
    /// By fx's own function: the states after all steps, `[time, ways, batch, hidden]`, and the last ones.
    fn by_function(&self, x: &Tensor, ways: &[Way]) -> Result<(Tensor, Vec<Tensor>)> {
        let in_order = |of: &Tensor| -> Result<Tensor> {
            let gates = self.kind.gates().iter();
            let gates = gates.map(|at| ops::narrow(of, 0, at * self.hidden, self.hidden));
            let gates = gates.collect::<Result<Vec<Tensor>>>()?;
            match &*gates {
                [_] => Ok(of.clone()),
                gates => ops::cat(gates, 0),
            }
        };
        let mut params = Vec::new();
        for way in ways {
            params.extend([in_order(&way.w)?, in_order(&way.r)?]);
            if let Some((of_input, of_state)) = &way.biases {
                params.extend([in_order(of_input)?, in_order(of_state)?]);
            }
        }
        let state = |of: fn(&Way) -> &Option<Tensor>| -> Result<Option<Tensor>> {
            let given: Option<Vec<Tensor>> = ways.iter().map(|way| of(way).clone()).collect();
            given.map(|given| ops::stack(&given, 0)).transpose()
        };
        let (h, c) = (state(|way| &way.h)?, state(|way| &way.c)?);
        let (both, biased) = (ways.len() == 2, ways.iter().all(|way| way.biases.is_some()));
        let turned = !both && ways.iter().all(|way| way.turned);
        let x = match turned {
            true => ops::flip(x, 0)?,
            false => x.clone(),
        };
        let h = h.as_ref();
        let (y, lasts) = match self.kind {
            Kind::Lstm => {
                let c = c.as_ref();
                let (y, h, c) = ops::lstm(&x, h, c, &params, biased, 1, 0.0, false, both, false)?;
                (y, vec![h, c])
            }
            Kind::Gru => {
                let (y, h) = ops::gru(&x, h, &params, biased, 1, 0.0, false, both, false)?;
                (y, vec![h])
            }
            Kind::Rnn => {
                let (y, h) = match self.relu {
                    true => ops::rnn_relu(&x, h, &params, biased, 1, 0.0, false, both, false)?,
                    false => ops::rnn_tanh(&x, h, &params, biased, 1, 0.0, false, both, false)?,
                };
                (y, vec![h])
            }
        };
        let y = match both {
            true => ops::transpose(&ops::unflatten(&y, -1, vec![2, self.hidden])?, 1, 2)?,
            false => ops::unsqueeze(&y, 1)?,
        };
        let y = match turned {
            true => ops::flip(&y, 0)?,
            false => y,
        };
        Ok((y, lasts))
    }

    /// By a scan over the steps.
    fn by_scan(&self, x: &Tensor, ways: &[Way]) -> Result<(Tensor, Vec<Tensor>)> {
        let mut all = Vec::new();
        let mut lasts = vec![Vec::new(); if self.kind == Kind::Lstm { 2 } else { 1 }];
        for way in ways {
            let turn = |x: &Tensor| match way.turned {
                true => ops::flip(x, 0),
                false => Ok(x.clone()),
            };
            // The inputs of all steps are one product.
            let bias = way.biases.as_ref();
            let inputs = match &way.scaled {
                Some((w, _)) => w.of(x)?,
                None => ops::linear(x, &way.w, bias.map(|(of_input, _)| of_input))?,
            };
            let places = ops::arange(0, x.size(0)?, 1, Some(DType::I64))?;
            let mut items = vec![turn(&inputs)?.into_value()];
            if self.lengths.is_some() {
                items.push(turn(&places)?.into_value());
            }
            let zeros = || ops::new_zeros(x, vec![x.size(1)?, self.hidden.into()], None);
            let or_zeros = |given: &Option<Tensor>| given.clone().map_or_else(zeros, Ok);
            let mut states = vec![or_zeros(&way.h)?.into_value()];
            if self.kind == Kind::Lstm {
                states.push(or_zeros(&way.c)?.into_value());
            }
            let (states, y): (Value, Tensor) = control::scan(
                Value::Tuple(states.into()),
                Value::Tuple(items.into()),
                |states: Value, items: Value| {
                    let (states, items) = (tensors(&states)?, tensors(&items)?);
                    let (states, y) = self.step(way, &states, &items)?;
                    let states = states.into_iter().map(IntoValue::into_value);
                    Ok((Value::Tuple(states.collect()), y.into_value()))
                },
            )
            .and_then(|(states, y): (Value, Value)| Ok((states, Tensor::from_value(y)?)))?;
            all.push(turn(&y)?);
            for (list, last) in lasts.iter_mut().zip(tensors(&states)?) {
                list.push(last);
            }
        }
        let lasts = lasts.iter().map(|last| ops::stack(last, 0));
        Ok((ops::stack(&all, 1)?, lasts.collect::<Result<_>>()?))
    }

    /// The states after a step, and what it gives.
    fn step(
        &self,
        way: &Way,
        states: &[Tensor],
        items: &[Tensor],
    ) -> Result<(Vec<Tensor>, Tensor)> {
        let lost = || Error::msg("a recurrent layer lost its state");
        let (input, h) = (
            items.first().ok_or_else(lost)?,
            states.first().ok_or_else(lost)?,
        );
        let hidden = self.hidden;
        let gate = |sum: &Tensor, at: i64| ops::narrow(sum, -1, at * hidden, hidden);
        let bias = way.biases.as_ref().map(|(_, of_state)| of_state);
        let mut next = match self.kind {
            Kind::Lstm => {
                let before = states.get(1).ok_or_else(lost)?;
                let sum = match (&way.scaled, &way.biases) {
                    (None, _) => (input + ops::linear(h, &way.r, bias)?)?,
                    (Some((_, r)), None) => (input + r.of(h)?)?,
                    // In ONNX Runtime's order.
                    (Some((_, r)), Some((one, other))) => ((input + r.of(h)?)? + (one + other)?)?,
                };
                let peeped = |x: Tensor, at: i64, c: &Tensor| match &way.peephole {
                    Some(p) => x + (ops::narrow(p, 0, at * hidden, hidden)? * c)?,
                    None => Ok(x),
                };
                let i = ops::sigmoid(&peeped(gate(&sum, 0)?, 0, before)?)?;
                let f = ops::sigmoid(&peeped(gate(&sum, 2)?, 2, before)?)?;
                let g = ops::tanh(&gate(&sum, 3)?)?;
                let now = ((f * before)? + (i * g)?)?;
                let o = ops::sigmoid(&peeped(gate(&sum, 1)?, 1, &now)?)?;
                vec![(o * ops::tanh(&now)?)?, now]
            }
            Kind::Gru => {
                let own = ops::linear(h, &way.r, bias)?;
                let z = ops::sigmoid(&(gate(input, 0)? + gate(&own, 0)?)?)?;
                let reset = ops::sigmoid(&(gate(input, 1)? + gate(&own, 1)?)?)?;
                let n = match self.linear_before_reset {
                    true => (gate(input, 2)? + (reset * gate(&own, 2)?)?)?,
                    false => {
                        let part = |x: &Tensor| ops::narrow(x, 0, 2 * hidden, hidden);
                        let bias = bias.map(part).transpose()?;
                        let kept = ops::linear(&(reset * h)?, &part(&way.r)?, bias.as_ref())?;
                        (gate(input, 2)? + kept)?
                    }
                };
                let n = ops::tanh(&n)?;
                vec![((&n - (&z * &n)?)? + (&z * h)?)?]
            }
            Kind::Rnn => {
                let sum = (input + ops::linear(h, &way.r, bias)?)?;
                vec![if self.relu {
                    ops::relu(&sum)?
                } else {
                    ops::tanh(&sum)?
                }]
            }
        };
        let mut y = next.first().ok_or_else(lost)?.clone();
        // Behind the last step of a row its states stay, and it gives zeros.
        if let (Some(lengths), Some(at)) = (&self.lengths, items.get(1)) {
            let is_there = lengths.gt(at)?;
            y = ops::r#where(&is_there, &y, ops::zeros_like(&y, None)?)?;
            for (next, before) in next.iter_mut().zip(states) {
                *next = ops::r#where(&is_there, &*next, before)?;
            }
        }
        Ok((next, y))
    }
}

/// The tensors of a tuple.
pub(super) fn tensors(of: &Value) -> Result<Vec<Tensor>> {
    match of {
        Value::Tuple(items) => items
            .iter()
            .map(|x| Tensor::from_value(x.clone()))
            .collect(),
        other => Ok(vec![Tensor::from_value(other.clone())?]),
    }
}
