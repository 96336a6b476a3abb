//! Recurrent layers and scans over time, as loops that carry a state.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::models::hf::mamba::selective_scan;
use fx_nn::prelude::*;
use fx_nn::value::DType;
use fx_nn::{function, function_table};

use super::rules;
use crate::out::Rule;
use crate::out::cx::{Array, Cx};
use crate::out::text;

rules! {
    lstm => |cx, call| layers(cx, call, Cell::Lstm), gru => |cx, call| layers(cx, call, Cell::Gru),
    rnn_tanh => |cx, call| layers(cx, call, Cell::Tanh), rnn_relu => |cx, call| layers(cx, call, Cell::Relu),
}

function_table! { Rule {
    function!(selective_scan) => Rule::new(selective),
} }

/// What a step computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

/// The weights of a layer in one direction.
struct Weights {
    input: Array,
    state: Array,
    biases: Option<[Array; 2]>,
}

impl Cx {
    /// The item at a turn of a tensor whose first dim is the turns.
    pub(crate) fn item(&mut self, x: &Array, at: &Array) -> Array {
        let zero = self.splat(0.0, DType::I64, &[]);
        let mut operands = vec![x, at];
        operands.extend((1..x.rank()).map(|_| &zero));
        let mut sizes = x.shape.clone();
        sizes[0] = 1;
        let attributes = format!("slice_sizes = {}", text::array(&sizes));
        let item = self.op("dynamic_slice", &operands, &attributes, x.dtype, &sizes);
        self.reshape(&item, &x.shape[1..])
    }

    /// The tensor with the item of a turn put there.
    pub(crate) fn with_item(&mut self, x: &Array, at: &Array, item: &Array) -> Array {
        let zero = self.splat(0.0, DType::I64, &[]);
        let item = self.reshape(item, &[vec![1], item.shape.clone()].concat());
        let mut operands = vec![x, &item, at];
        operands.extend((1..x.rank()).map(|_| &zero));
        self.op("dynamic_update_slice", &operands, "", x.dtype, &x.shape)
    }

    /// Turns from zero to below a count, forward or back; what they carry, at the end.
    ///
    /// # Errors
    /// Returns the error of `step`.
    pub(crate) fn turns(
        &mut self,
        count: i64,
        backward: bool,
        carried: Vec<Array>,
        step: impl FnOnce(&mut Cx, &Array, &[Array]) -> Result<Vec<Array>>,
    ) -> Result<Vec<Array>> {
        let first = self.splat(0.0, DType::I64, &[]);
        let all = [vec![first], carried].concat();
        let mut made = self.while_loop(
            all,
            |cx, carried| Ok(cx.compare_number("LT", &carried[0], count as f64)),
            |cx, carried| {
                let turn = &carried[0];
                let at = match backward {
                    true => {
                        let last = cx.splat((count - 1) as f64, DType::I64, &[]);
                        cx.binary("subtract", &last, turn)
                    }
                    false => turn.clone(),
                };
                let mut next = vec![cx.with_number("add", turn, 1.0)];
                next.extend(step(cx, &at, &carried[1..])?);
                Ok(next)
            },
        )?;
        made.remove(0);
        Ok(made)
    }

    /// Turns as long as a condition holds; what they carry, at the end.
    ///
    /// # Errors
    /// Returns the error of `holds` or `step`.
    pub(crate) fn while_loop(
        &mut self,
        carried: Vec<Array>,
        holds: impl FnOnce(&mut Cx, &[Array]) -> Result<Array>,
        step: impl FnOnce(&mut Cx, &[Array]) -> Result<Vec<Array>>,
    ) -> Result<Vec<Array>> {
        let types: Vec<_> = carried
            .iter()
            .map(|of| (of.dtype, of.shape.clone()))
            .collect();
        let condition = self.region(&types, |cx, of| Ok(vec![holds(cx, of)?]))?;
        let body = self.region(&types, step)?;
        let operands: Vec<&Array> = carried.iter().collect();
        Ok(self.operations("while", &operands, "", vec![condition, body], &types))
    }
}

fn layers(cx: &mut Cx, call: &OpCall<'_>, cell: Cell) -> Result<Val> {
    let p = call.float("dropout_p")?;
    if call.flag("train")? && p > 0.0 {
        return Err(Error::msg(
            "dropout between recurrent layers while training: call the layers one by one",
        ));
    }
    // Halves are computed in `float32` and rounded once, as the functions are.
    let wide = |cx: &mut Cx, of: &Array| match of.dtype {
        DType::F16 | DType::BF16 => cx.convert(of, DType::F32),
        _ => of.clone(),
    };
    let x = cx.tensor(call, "x")?;
    let x = wide(cx, &x);
    let (batch_first, both_ways) = (call.flag("batch_first")?, call.flag("bidirectional")?);
    let biased = call.flag("has_biases")?;
    let params = cx.tensors(call, "params")?;
    let params: Vec<Array> = params.iter().map(|of| wide(cx, of)).collect();
    let directions = if both_ways { 2 } else { 1 };
    let is_batch = x.rank() == 3;
    // `[time, batch, features]`.
    let mut x = match (is_batch, batch_first) {
        (true, true) => cx.transpose(&x, &[1, 0, 2]),
        (true, false) => x,
        (false, _) => cx.reshape(&x, &[x.shape[0], 1, x.shape[1]]),
    };
    let per_layer = if biased { 4 } else { 2 };
    let hidden = params.get(1).map_or(0, |state| state.shape[1]);
    let state_of = |cx: &mut Cx, name: &str| -> Result<Option<Array>> {
        let state = cx.optional(call, name)?.map(|of| wide(cx, &of));
        Ok(state.map(|of| match is_batch {
            true => of,
            false => cx.reshape(&of, &[of.shape[0], 1, of.shape[1]]),
        }))
    };
    let h_0 = state_of(cx, "h_0")?;
    let c_0 = if cell == Cell::Lstm {
        state_of(cx, "c_0")?
    } else {
        None
    };
    let mut last: [Vec<Array>; 2] = [Vec::new(), Vec::new()];
    for layer in 0..usize::try_from(call.int("num_layers")?).unwrap_or(0) {
        let mut outputs = Vec::new();
        for direction in 0..directions {
            let at = layer * directions + direction;
            let Some(weights) = params.get(at * per_layer..(at + 1) * per_layer) else {
                return Err(Error::msg("too few weights for the layers"));
            };
            let weights = Weights {
                input: weights[0].clone(),
                state: weights[1].clone(),
                biases: biased.then(|| [weights[2].clone(), weights[3].clone()]),
            };
            let mut first = |given: &Option<Array>| match given {
                Some(given) => {
                    let one = cx.slice_dim(given, 0, at as i64, at as i64 + 1, 1);
                    cx.reshape(&one, &given.shape[1..])
                }
                None => cx.splat(0.0, x.dtype, &[x.shape[1], hidden]),
            };
            let mut states = vec![first(&h_0)];
            if cell == Cell::Lstm {
                states.push(first(&c_0));
            }
            let mut made = direction_of(cx, &x, &weights, states, cell, direction == 1)?;
            outputs.push(
                made.pop()
                    .ok_or_else(|| Error::msg("a loop gives its results"))?,
            );
            for (last, state) in last.iter_mut().zip(made) {
                let shape = [vec![1], state.shape.clone()].concat();
                last.push(cx.reshape(&state, &shape));
            }
        }
        x = cx.concatenate(&outputs, 2);
    }
    let y = match (is_batch, batch_first) {
        (true, true) => cx.transpose(&x, &[1, 0, 2]),
        _ => x,
    };
    let types = cx.results(call)?;
    let mut results = vec![y];
    for states in last.iter().filter(|states| !states.is_empty()) {
        results.push(cx.concatenate(states, 0));
    }
    let results = results.iter().zip(&types);
    Ok(Val::List(
        results
            .map(|(of, (dtype, shape))| {
                let of = cx.convert(of, *dtype);
                cx.reshape(&of, shape).into()
            })
            .collect(),
    ))
}

/// One direction of a layer: its last states, and what it gave at each time.
fn direction_of(
    cx: &mut Cx,
    x: &Array,
    weights: &Weights,
    states: Vec<Array>,
    cell: Cell,
    backward: bool,
) -> Result<Vec<Array>> {
    // What the inputs bring is computed for all times at once.
    let mut read = cx.dot(x, &weights.input, &[], &[[2, 1]]);
    if let Some([bias, _]) = &weights.biases {
        let bias = cx.expand(bias, &read.shape)?;
        read = cx.binary("add", &read, &bias);
    }
    let steps = x.shape[0];
    let outputs = cx.splat(
        0.0,
        x.dtype,
        &[vec![steps], states[0].shape.clone()].concat(),
    );
    let carried = [states, vec![outputs]].concat();
    cx.turns(steps, backward, carried, |cx, at, carried| {
        let (h, outputs) = (&carried[0], &carried[carried.len() - 1]);
        let read = cx.item(&read, at);
        let mut own = cx.dot(h, &weights.state, &[], &[[1, 1]]);
        if let Some([_, bias]) = &weights.biases {
            let bias = cx.expand(bias, &own.shape)?;
            own = cx.binary("add", &own, &bias);
        }
        let size = h.shape[1];
        let gate = |cx: &mut Cx, of: &Array, gate: i64| {
            cx.slice_dim(of, 1, gate * size, (gate + 1) * size, 1)
        };
        let mut next = match cell {
            Cell::Tanh | Cell::Relu => {
                let sum = cx.binary("add", &read, &own);
                vec![match cell {
                    Cell::Tanh => cx.unary("tanh", &sum),
                    _ => cx.with_number("maximum", &sum, 0.0),
                }]
            }
            Cell::Lstm => {
                let sum = cx.binary("add", &read, &own);
                let gates: Vec<Array> = (0..4).map(|at| gate(cx, &sum, at)).collect();
                let (i, f) = (
                    cx.unary("logistic", &gates[0]),
                    cx.unary("logistic", &gates[1]),
                );
                let (g, o) = (cx.unary("tanh", &gates[2]), cx.unary("logistic", &gates[3]));
                let (kept, added) = (
                    cx.binary("multiply", &f, &carried[1]),
                    cx.binary("multiply", &i, &g),
                );
                let c = cx.binary("add", &kept, &added);
                let shown = cx.unary("tanh", &c);
                vec![cx.binary("multiply", &o, &shown), c]
            }
            Cell::Gru => {
                let pairs: Vec<[Array; 2]> = (0..3)
                    .map(|at| [gate(cx, &read, at), gate(cx, &own, at)])
                    .collect();
                let sum = |cx: &mut Cx, [a, b]: &[Array; 2]| cx.binary("add", a, b);
                let (r, z) = (sum(cx, &pairs[0]), sum(cx, &pairs[1]));
                let (r, z) = (cx.unary("logistic", &r), cx.unary("logistic", &z));
                let reset = cx.binary("multiply", &r, &pairs[2][1]);
                let n = cx.binary("add", &pairs[2][0], &reset);
                let n = cx.unary("tanh", &n);
                let apart = cx.binary("subtract", h, &n);
                let kept = cx.binary("multiply", &z, &apart);
                vec![cx.binary("add", &n, &kept)]
            }
        };
        let outputs = cx.with_item(outputs, at, &next[0]);
        next.push(outputs);
        Ok(next)
    })
}

/// Mamba's selective scan.
fn selective(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let wide = |cx: &mut Cx, name: &str| -> Result<Array> {
        let of = cx.tensor(call, name)?;
        Ok(cx.convert(&of, DType::F32))
    };
    let u = cx.tensor(call, "u")?;
    let (wide_u, delta, a) = (wide(cx, "u")?, wide(cx, "delta")?, wide(cx, "a")?);
    let (b, c, state) = (wide(cx, "b")?, wide(cx, "c")?, wide(cx, "state")?);
    // Time first: `[L, N, I]` and `[L, N, S]`.
    let mut times = |x: &Array| cx.transpose(x, &[1, 0, 2]);
    let (times_u, times_delta, times_b, times_c) =
        (times(&wide_u), times(&delta), times(&b), times(&c));
    let shape = state.shape.clone();
    let outputs = cx.splat(0.0, DType::F32, &times_u.shape);
    let made = cx.turns(
        u.shape[1],
        false,
        vec![state, outputs],
        |cx, at, carried| {
            let (u, delta) = (cx.item(&times_u, at), cx.item(&times_delta, at));
            let (b, c) = (cx.item(&times_b, at), cx.item(&times_c, at));
            let step = cx.broadcast(&delta, &[0, 1], &shape);
            let rate = cx.expand(&a, &shape)?;
            let rate = cx.binary("multiply", &step, &rate);
            let kept = cx.unary("exponential", &rate);
            let kept = cx.binary("multiply", &kept, &carried[0]);
            let b = cx.broadcast(&b, &[0, 2], &shape);
            let u = cx.broadcast(&u, &[0, 1], &shape);
            let added = cx.binary("multiply", &step, &b);
            let added = cx.binary("multiply", &added, &u);
            let state = cx.binary("add", &kept, &added);
            let y = cx.dot(&state, &c, &[[0, 0]], &[[2, 1]]);
            let outputs = cx.with_item(&carried[1], at, &y);
            Ok(vec![state, outputs])
        },
    )?;
    let types = cx.results(call)?;
    let y = cx.transpose(&made[1], &[1, 0, 2]);
    let results = [y, made[0].clone()];
    let results = results.iter().zip(&types).map(|(of, (dtype, shape))| {
        let of = cx.convert(of, *dtype);
        cx.reshape(&of, shape).into()
    });
    Ok(Val::List(results.collect()))
}
