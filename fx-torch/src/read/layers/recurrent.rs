//! Recurrent layers: PyTorch makes states of zeros where none are given, and calls one operator.
//!
//! Invariant: states are left out only where PyTorch makes zeros of them.

use fx_nn::prelude::*;
use indexmap::IndexMap;

use super::super::values::tensors;
use super::found::{Found, Given, Layer, One};
use crate::rules;
use crate::schema::{Argument, Node};

/// The weights by PyTorch's names.
fn weights(found: &Found<'_>, one: &One<'_, '_>) -> Option<IndexMap<String, Tensor>> {
    const NAMES: [&str; 4] = ["weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l"];
    let Argument::AsTensors(params) = one.argument("params")? else {
        return None;
    };
    let named = params.iter().map(|param| {
        let (path, tensor) = found.weights.get(&*param.name)?;
        let name = path.strip_prefix(found.path)?.strip_prefix('.')?;
        let is_known = NAMES.iter().any(|known| name.starts_with(known));
        is_known.then(|| (name.to_string(), (*tensor).clone()))
    });
    let all: IndexMap<String, Tensor> = named.collect::<Option<_>>()?;
    (all.len() == params.len()).then_some(all)
}

/// Whether a node before makes zeros of this name.
fn is_zeros(before: &[&Node], name: &str) -> bool {
    before.iter().any(|node| {
        rules::short(&node.target).1 == "aten.zeros"
            && node.outputs.iter().flat_map(tensors).any(|own| own == name)
    })
}

/// The states that the layer is called with: none where they are zeros.
fn states(before: &[&Node], given: &Argument) -> Option<Option<Given>> {
    let names = tensors(given);
    let zeros = names.iter().filter(|name| is_zeros(before, name)).count();
    match (zeros, given) {
        (0, Argument::AsTensors(both)) => {
            let both = both.iter().map(|one| Argument::AsTensor(one.clone()));
            Some(Some(Given::Tuple(both.collect())))
        }
        (0, one) => Some(Some(Given::One(one.clone()))),
        (all, _) if all == names.len() => Some(None),
        _ => None,
    }
}

macro_rules! recurrent {
    ($name:ident, $layer:ident, $results:expr, $($operator:literal $(, $field:ident = $value:literal)?);+) => {
        pub(super) fn $name<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
            let (last, before) = found.nodes.split_last()?;
            let only_zeros = before
                .iter()
                .all(|node| rules::short(&node.target).1 == "aten.zeros");
            $(
                if let (Some(one), true) = (found.of(last, $operator), only_zeros) {
                    let x = one.argument("input")?;
                    let states = states(before, one.argument("hx")?)?;
                    let layer = nn::$layer {
                        weights: weights(found, &one)?,
                        num_layers: one.get("num_layers")?,
                        bias: one.get("has_biases")?,
                        batch_first: one.get("batch_first")?,
                        dropout: one.get("dropout")?,
                        bidirectional: one.get("bidirectional")?,
                        training: one.get("train")?,
                        $($field: $value.to_string(),)?
                    };
                    let given = std::iter::once(Given::One(x.clone())).chain(states);
                    let results = last.outputs.iter().flat_map(tensors).zip($results);
                    return one.says_all().then(|| Layer {
                        module: Box::new(layer),
                        options: one.options(),
                        args: given.map(|given| (None, given)).collect(),
                        results: results.map(|(name, at)| (name, at.to_vec())).collect(),
                        writes: false,
                    });
                }
            )+
            None
        }
    };
}

const OF_TWO: [&[usize]; 2] = [&[0], &[1]];
const OF_THREE: [&[usize]; 3] = [&[0], &[1, 0], &[1, 1]];

recurrent!(lstm, LSTM, OF_THREE, "aten.lstm");
recurrent!(gru, GRU, OF_TWO, "aten.gru");
recurrent!(
    rnn, RNN, OF_TWO,
    "aten.rnn_tanh", nonlinearity = "tanh";
    "aten.rnn_relu", nonlinearity = "relu"
);
