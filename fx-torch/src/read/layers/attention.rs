//! `MultiheadAttention`: PyTorch writes it as some thirty nodes, from which its options are read.
//!
//! Invariant: what one of PyTorch's options adds that fx's layer does not have is refused.

use fx_nn::prelude::*;

use super::super::values::tensors;
use super::found::{Found, Given, Layer};
use crate::rules;
use crate::schema::{Argument, Node};

/// The operators of a layer in evaluation.
const OPERATORS: [&str; 26] = [
    "aten.add",
    "aten.baddbmm",
    "aten.bmm",
    "aten.chunk",
    "aten.contiguous",
    "aten.expand",
    "aten.linear",
    "aten.masked_fill_",
    "aten.mean",
    "aten.mul",
    "aten.permute",
    "aten.reshape",
    "aten.scaled_dot_product_attention",
    "aten.select",
    "aten.softmax",
    "aten.split_with_sizes",
    "aten.squeeze",
    "aten.transpose",
    "aten.unflatten",
    "aten.unsqueeze",
    "aten.view",
    "aten.zeros_like",
    "aten._softmax",
    "aten._to_copy",
    "aten.clone",
    "aten.masked_fill",
];

/// The nodes of a layer.
struct Nodes<'f, 'p>(&'f Found<'p>);

fn operator(node: &Node) -> &str {
    rules::short(&node.target).1
}

/// The tensor that an argument of a node is.
fn tensor(node: &Node, at: usize) -> Option<&str> {
    let input = node.inputs.get(at)?;
    tensors(&input.arg).first().copied()
}

impl<'p> Nodes<'_, 'p> {
    /// The node that gives a name; `None` for what comes from outside.
    fn giver(&self, name: &str) -> Option<&'p Node> {
        let mut nodes = self.0.nodes.iter();
        nodes
            .find(|node| node.outputs.iter().flat_map(tensors).any(|own| own == name))
            .copied()
    }

    fn all(&self, of: &str) -> Vec<&'p Node> {
        let nodes = self.0.nodes.iter().copied();
        nodes.filter(|node| operator(node) == of).collect()
    }

    /// What is given to the layer where a name is read, and how often it is transposed before.
    fn source(&self, mut name: &'p str) -> Option<(&'p str, usize)> {
        let mut turns = 0;
        while let Some(node) = self.giver(name) {
            if operator(node) != "aten.transpose" {
                return None;
            }
            turns += 1;
            name = tensor(node, 0)?;
        }
        Some((name, turns))
    }

    /// What a mask was when it came in, and whether it is one of keys.
    fn mask(&self, name: &'p str) -> Option<(&'p str, bool)> {
        const SHAPES: [&str; 4] = ["aten.view", "aten.reshape", "aten.expand", "aten.unsqueeze"];
        let (mut name, mut of_keys) = (name, false);
        while let Some(node) = self.giver(name) {
            match operator(node) {
                "aten.masked_fill_" => {
                    let zeros = self.giver(tensor(node, 0)?)?;
                    let given = tensor(node, 1)?;
                    let fits = operator(zeros) == "aten.zeros_like"
                        && tensor(zeros, 0) == Some(given)
                        && self.giver(given).is_none();
                    return fits.then_some((given, of_keys));
                }
                of if SHAPES.contains(&of) => {
                    of_keys |= of == "aten.expand";
                    name = tensor(node, 0)?;
                }
                _ => return None,
            }
        }
        Some((name, of_keys))
    }

    /// The masks of a layer: of pairs, and of keys.
    fn masks(&self, name: &'p str) -> Option<[Option<&'p str>; 2]> {
        // The sum of both, in another shape.
        let sum = match self.giver(name) {
            Some(node) if operator(node) == "aten.view" => self.giver(tensor(node, 0)?),
            given => given,
        };
        let given = match sum.filter(|node| operator(node) == "aten.add") {
            Some(sum) => vec![tensor(sum, 0)?, tensor(sum, 1)?],
            None => vec![name],
        };
        let mut masks = [None; 2];
        for name in given {
            let (mask, of_keys) = self.mask(name)?;
            if masks[usize::from(of_keys)].replace(mask).is_some() {
                return None;
            }
        }
        Some(masks)
    }
}

/// The layer that the nodes of a call are.
pub(super) fn multihead_attention<'p>(found: &Found<'p>) -> Option<Layer<'p>> {
    let nodes = Nodes(found);
    let is_known = |node: &&Node| OPERATORS.contains(&operator(node));
    if !found.nodes.iter().all(is_known) {
        return None;
    }
    // Weights of the usual form, and no others.
    let read = found.nodes.iter().flat_map(|node| &node.inputs);
    let read = read.flat_map(|input| tensors(&input.arg));
    let names = [
        "in_proj_weight",
        "in_proj_bias",
        "out_proj.weight",
        "out_proj.bias",
    ];
    let mut outside: Vec<&str> = Vec::new();
    for name in read {
        let weight = found.weights.get(name).map(|(path, _)| path);
        match weight.and_then(|path| path.strip_prefix(found.path)?.strip_prefix('.')) {
            Some(own) if names.contains(&own) => {}
            Some(_) => return None,
            None if nodes.giver(name).is_none() && !outside.contains(&name) => outside.push(name),
            None => {}
        }
    }
    // Queries, keys and values, each with what is done before the linear layer.
    let linear = nodes.all("aten.linear");
    let (last, projections) = linear.split_last()?;
    let mut inputs = Vec::new();
    for node in projections {
        inputs.push(nodes.source(tensor(node, 0)?)?);
    }
    let turned = inputs.first()?.1;
    let is_same = inputs.iter().all(|(_, turns)| *turns == turned);
    let [query, key, value] = match inputs.as_slice() {
        [(x, _)] => [*x; 3],
        [(q, _), (kv, _)] => [*q, *kv, *kv],
        [(q, _), (k, _), (v, _)] => [*q, *k, *v],
        _ => return None,
    };
    // The scores.
    let fused = nodes.all("aten.scaled_dot_product_attention");
    let softmax = nodes.all("aten.softmax");
    let masks = match (fused.as_slice(), softmax.as_slice()) {
        ([fused], []) => {
            let plain = fused.inputs.iter().skip(4).all(|input| {
                matches!(input.arg, Argument::AsNone(_) | Argument::AsBool(false))
                    || matches!(&input.arg, Argument::AsFloat(p) if p.value() == Some(0.0))
            });
            if !plain {
                return None;
            }
            tensor(fused, 3)
        }
        ([], [_]) => nodes
            .all("aten.baddbmm")
            .first()
            .and_then(|sum| tensor(sum, 0)),
        _ => return None,
    };
    let [attn_mask, key_padding_mask] = match masks {
        Some(name) => nodes.masks(name)?,
        None => [None, None],
    };
    let given = [
        Some(query),
        Some(key),
        Some(value),
        attn_mask,
        key_padding_mask,
    ];
    let is_given = |name: &&&str| given.contains(&Some(**name));
    let weight = found.beside("in_proj_weight")?;
    let [rows, width] = weight.dims().ok()? else {
        return None;
    };
    // The width of a head is the last size of the first view that parts them.
    let head = nodes
        .all("aten.view")
        .first()
        .and_then(|view| last_size(view))?;
    let fits = is_same
        && turned <= 1
        && rows.checked_div(3) == Some(*width)
        && head > 0
        && width % head == 0
        && outside.iter().filter(is_given).count() == outside.len();
    if !fits {
        return None;
    }
    // A mask of each head is of three dims, which fx's layer takes as four.
    if let Some(mask) = attn_mask
        && found.graph.tensor_values.get(mask)?.sizes.len() != 2
    {
        return None;
    }
    // From the last linear layer on: its rows as a batch of sequences.
    let mut result = last.outputs.iter().flat_map(tensors).next()?;
    let mut turns = 0;
    for node in &found.nodes {
        if tensor(node, 0) == Some(result)
            && ["aten.view", "aten.transpose"].contains(&operator(node))
        {
            turns += usize::from(operator(node) == "aten.transpose");
            result = node.outputs.iter().flat_map(tensors).next()?;
        }
    }
    let mean = nodes.all("aten.mean").first().copied();
    let mut results = vec![(result, vec![0])];
    if let Some(mean) = mean {
        results.push((mean.outputs.iter().flat_map(tensors).next()?, vec![1]));
    }
    if turns != turned {
        return None;
    }
    let num_heads = width / head;
    let layer = nn::MultiheadAttention {
        in_proj_weight: weight,
        in_proj_bias: found.beside("in_proj_bias"),
        out_proj: nn::Linear {
            weight: found.beside("out_proj.weight")?,
            bias: found.beside("out_proj.bias"),
        },
        num_heads,
        dropout: 0.0,
        batch_first: turned == 1,
        training: false,
    };
    let one = |name: &str| {
        let mut read = found.nodes.iter().flat_map(|node| &node.inputs);
        read.find(|input| tensors(&input.arg) == [name])
            .map(|input| Given::One(input.arg.clone()))
    };
    let mut args = vec![
        (None, one(query)?),
        (None, one(key)?),
        (None, one(value)?),
        (
            Some("need_weights"),
            Given::Plain(Value::Bool(mean.is_some())),
        ),
    ];
    for (name, mask) in [
        ("attn_mask", attn_mask),
        ("key_padding_mask", key_padding_mask),
    ] {
        if let Some(mask) = mask {
            args.push((Some(name), one(mask)?));
        }
    }
    Some(Layer {
        module: Box::new(layer),
        options: format!("{num_heads} {turned}"),
        args,
        results,
        writes: false,
    })
}

/// The last size of a view.
fn last_size(view: &Node) -> Option<usize> {
    let size = match &view.inputs.get(1)?.arg {
        Argument::AsInts(all) => *all.last()?,
        Argument::AsSymInts(all) => match all.last()? {
            crate::schema::Sym::AsInt(number) => *number,
            _ => return None,
        },
        _ => return None,
    };
    usize::try_from(size).ok()
}
