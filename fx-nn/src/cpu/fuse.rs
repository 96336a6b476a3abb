//! Fusing items: activations and residuals into convolutions and products, chains of pointwise
//! items into one, products around a softmax into attention.
//!
//! Invariant: an item is fused only where nothing else uses its result.

use fx_kernels::Activation;
use fx_kernels::matrix::Order;
use fx_kernels::pointwise::{Binary, Unary};

use super::draft::{Attending, Draft, Id, Item, Kind, Mask, PointOp, View};

/// The longest chain, in steps.
const LONGEST: usize = 96;

/// Fuses what can be fused.
pub(super) fn fuse(draft: &mut Draft) {
    let mut uses = draft.uses();
    for at in 0..draft.items.len() {
        let fused = match &draft.items[at].kind {
            Kind::Pointwise(_) => {
                chain(draft, at, &mut uses);
                activation(draft, at, &uses).or_else(|| residual(draft, at, &uses))
            }
            Kind::Matmul => attention(draft, at, &uses),
            _ => None,
        };
        if let Some(item) = fused {
            // What was fused is used no more, but by this item.
            let mut old = std::mem::replace(&mut draft.items[at], item);
            draft.items[at].visit_uses(&mut |id| uses[*id] += 1);
            let mut gone = vec![old.inputs.split_off(0)];
            while let Some(used) = gone.pop() {
                for id in used {
                    uses[id] -= 1;
                    if uses[id] == 0 {
                        gone.push(draft.items[id].inputs.clone());
                    }
                }
            }
        }
    }
    draft.without_dead();
}

/// The activation, if that is all that the steps do.
pub(super) fn only_activation(points: &[PointOp]) -> Option<Activation> {
    match points {
        [
            PointOp::Input(0),
            PointOp::Unary(Unary::Activation(activation), 0),
        ] => Some(*activation),
        [
            PointOp::Input(0),
            PointOp::Unary(Unary::Clamp(low, high), 0),
        ] if *low == 0.0 => match *high {
            6.0 => Some(Activation::Relu6),
            f32::INFINITY => Some(Activation::Relu),
            _ => None,
        },
        _ => is_gated(points).then_some(Activation::Silu),
    }
}

/// Whether the steps multiply the one input with its sigmoid.
fn is_gated(points: &[PointOp]) -> bool {
    let is_input = |at: usize| matches!(points.get(at), Some(PointOp::Input(0)));
    let is_gate = |at: usize| matches!(points.get(at), Some(PointOp::Unary(Unary::Activation(Activation::Sigmoid), of)) if is_input(*of));
    let [steps @ .., PointOp::Binary(Binary::Mul, a, b)] = points else {
        return false;
    };
    let known = (0..steps.len()).all(|at| is_input(at) || is_gate(at));
    known && ((is_input(*a) && is_gate(*b)) || (is_gate(*a) && is_input(*b)))
}

/// Whether the steps add two inputs.
pub(super) fn is_sum(points: &[PointOp]) -> bool {
    matches!(
        points,
        [PointOp::Input(a), PointOp::Input(b), PointOp::Binary(Binary::Add, 0, 1)] if a != b
    )
}

/// Takes steps of pointwise inputs, which nothing else uses, into an item.
fn chain(draft: &mut Draft, at: Id, uses: &mut [usize]) {
    loop {
        let item = &draft.items[at];
        let Kind::Pointwise(points) = &item.kind else {
            return;
        };
        let inner = item.inputs.iter().position(|input| {
            uses[*input] == 1
                && matches!(&draft.items[*input].kind, Kind::Pointwise(inner)
                    if inner.len() + points.len() <= LONGEST)
        });
        let Some(place) = inner else {
            return;
        };
        let source = item.inputs[place];
        let Kind::Pointwise(first) = draft.items[source].kind.clone() else {
            return;
        };
        let mut inputs = draft.items[source].inputs.clone();
        let mut joined = first;
        let result = joined.len() - 1;
        let mut places = Vec::with_capacity(points.len());
        for point in points {
            let moved = match *point {
                PointOp::Input(input) if input == place => {
                    places.push(result);
                    continue;
                }
                PointOp::Input(input) => {
                    let id = item.inputs[input];
                    let known = inputs.iter().position(|other| *other == id);
                    PointOp::Input(known.unwrap_or_else(|| {
                        inputs.push(id);
                        inputs.len() - 1
                    }))
                }
                PointOp::Number(x) => PointOp::Number(x),
                PointOp::Unary(f, a) => PointOp::Unary(f, places[a]),
                PointOp::Binary(f, a, b) => PointOp::Binary(f, places[a], places[b]),
                PointOp::Select(a, b, c) => PointOp::Select(places[a], places[b], places[c]),
            };
            places.push(joined.len());
            joined.push(moved);
        }
        // What both read is used once where it was used twice.
        let both = draft.items[source].inputs.iter().chain(&item.inputs);
        both.for_each(|id| uses[*id] -= 1);
        inputs.iter().for_each(|id| uses[*id] += 1);
        let nodes = std::mem::take(&mut draft.items[source].nodes);
        let item = &mut draft.items[at];
        item.nodes.splice(0..0, nodes);
        item.inputs = inputs;
        item.kind = Kind::Pointwise(joined);
    }
}

/// The item `at`, computed as part of `source`.
fn joined(draft: &Draft, source: Id, at: Id, kind: Kind, inputs: Vec<Id>) -> Item {
    let mut nodes = draft.items[source].nodes.clone();
    nodes.extend_from_slice(&draft.items[at].nodes);
    Item {
        kind,
        inputs,
        nodes,
        is_floats: true,
        is_kept: false,
    }
}

fn activation(draft: &Draft, at: Id, uses: &[usize]) -> Option<Item> {
    let item = &draft.items[at];
    let Kind::Pointwise(points) = &item.kind else {
        return None;
    };
    let wanted = only_activation(points)?;
    let source = *item.inputs.first()?;
    if uses[source] != 1 {
        return None;
    }
    let inputs = draft.items[source].inputs.clone();
    let mut kind = draft.items[source].kind.clone();
    match &mut kind {
        Kind::Conv { activation, .. } | Kind::ChannelAffine { activation, .. }
            if *activation == Activation::None =>
        {
            *activation = wanted;
        }
        Kind::Linear {
            activation, order, ..
        } if *activation == Activation::None => {
            *activation = wanted;
            *order = Order::ResidualFirst;
        }
        _ => return None,
    }
    Some(joined(draft, source, at, kind, inputs))
}

fn residual(draft: &Draft, at: Id, uses: &[usize]) -> Option<Item> {
    let item = &draft.items[at];
    let Kind::Pointwise(points) = &item.kind else {
        return None;
    };
    if !is_sum(points) {
        return None;
    }
    let takes = |source: &Id| {
        let source_item = &draft.items[*source];
        uses[*source] == 1
            && source_item.inputs.len() == 1
            && match &source_item.kind {
                Kind::Conv { activation, .. } => *activation == Activation::None,
                Kind::Linear { .. } => true,
                _ => false,
            }
    };
    // The later one runs when the other is there.
    let [a, b] = item.inputs[..] else {
        return None;
    };
    let (first, last) = (a.min(b), a.max(b));
    let (source, other) = match (takes(&last), takes(&first)) {
        (true, _) => (last, first),
        (false, true) => (first, last),
        (false, false) => return None,
    };
    let other_item = &draft.items[other];
    if !other_item.is_floats || matches!(other_item.kind, Kind::Constant(_)) {
        return None;
    }
    let mut inputs = draft.items[source].inputs.clone();
    inputs.push(other);
    let mut kind = draft.items[source].kind.clone();
    if let Kind::Linear {
        activation, order, ..
    } = &mut kind
        && *activation != Activation::None
    {
        *order = Order::ActivationFirst;
    }
    Some(joined(draft, source, at, kind, inputs))
}

/// What is done to the scores before the softmax.
struct Scores {
    product: Id,
    scale: f32,
    mask: Mask,
    mask_input: Option<Id>,
}

/// `softmax(q @ k.T * scale + mask) @ v`.
fn attention(draft: &Draft, at: Id, uses: &[usize]) -> Option<Item> {
    let [weights, values] = draft.items[at].inputs[..] else {
        return None;
    };
    let softmax = &draft.items[weights];
    if uses[weights] != 1 || !matches!(softmax.kind, Kind::Softmax(-1 | 3)) {
        return None;
    }
    let scores = scores(draft, *softmax.inputs.first()?, uses)?;
    let [mut queries, turned] = draft.items[scores.product].inputs[..] else {
        return None;
    };
    let keys = match (&draft.items[turned].kind, &draft.items[turned].inputs[..]) {
        (Kind::View(View::Transpose(-2, -1) | View::Transpose(-1, -2)), [keys]) => *keys,
        (Kind::View(View::Transpose(2, 3) | View::Transpose(3, 2)), [keys]) => *keys,
        _ => return None,
    };
    let mut scale = scores.scale;
    if let Kind::Pointwise(points) = &draft.items[queries].kind
        && let [
            PointOp::Input(0),
            PointOp::Number(by),
            PointOp::Binary(f, 0, 1),
        ] = points[..]
    {
        let by = match f {
            Binary::Mul => Some(by),
            Binary::Div => Some(1.0 / by),
            _ => None,
        };
        if let Some(by) = by {
            scale *= by;
            queries = draft.items[queries].inputs[0];
        }
    }
    let mut inputs = vec![queries, keys, values];
    inputs.extend(scores.mask_input);
    let kind = Kind::Attention(Attending {
        scale: Some(scale),
        is_causal: false,
        mask: scores.mask,
        is_safe: false,
    });
    Some(joined(draft, weights, at, kind, inputs))
}

fn scores(draft: &Draft, of: Id, uses: &[usize]) -> Option<Scores> {
    if uses[of] != 1 {
        return None;
    }
    let item = &draft.items[of];
    let points = match &item.kind {
        Kind::Matmul => {
            return Some(Scores {
                product: of,
                scale: 1.0,
                mask: Mask::None,
                mask_input: None,
            });
        }
        Kind::Pointwise(points) => points,
        _ => return None,
    };
    let mut found = Scores {
        product: of,
        scale: 1.0,
        mask: Mask::None,
        mask_input: None,
    };
    let input = |place: usize| match points[place] {
        PointOp::Input(input) => Some(item.inputs[input]),
        _ => None,
    };
    let mut here = points.len() - 1;
    loop {
        match points[here] {
            PointOp::Input(place) => {
                let product = item.inputs[place];
                let is_product = matches!(draft.items[product].kind, Kind::Matmul);
                found.product = product;
                return (is_product && uses[product] == 1).then_some(found);
            }
            PointOp::Binary(f @ (Binary::Mul | Binary::Div), a, b) => {
                let PointOp::Number(by) = points[b] else {
                    return None;
                };
                found.scale *= if f == Binary::Mul { by } else { 1.0 / by };
                here = a;
            }
            PointOp::Binary(Binary::Add, a, b)
                if found.mask == Mask::None && found.scale == 1.0 =>
            {
                let product = |place: usize| {
                    input(place).is_some_and(|id| matches!(draft.items[id].kind, Kind::Matmul))
                };
                let (rest, mask) = match (input(a), input(b)) {
                    (_, Some(mask)) if !product(b) => (a, mask),
                    (Some(mask), _) if !product(a) => (b, mask),
                    _ => return None,
                };
                found.mask = Mask::Added;
                found.mask_input = Some(mask);
                here = rest;
            }
            PointOp::Select(mask, yes, no) if found.mask == Mask::None && found.scale == 1.0 => {
                if points[yes] != PointOp::Number(f32::NEG_INFINITY) {
                    return None;
                }
                found.mask = Mask::Forbidden;
                found.mask_input = Some(input(mask)?);
                here = no;
            }
            _ => return None,
        }
    }
}
