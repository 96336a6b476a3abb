//! `Forward`: a function run on symbolic values, from whose results gradients are pulled.
//!
//! Invariant: each tensor that a gradient is of is a value of its own.

use fx_core::ir::{Args, Kwargs, Op, ValueMeta};
use fx_core::module::{PathPattern, TensorKind};
use fx_core::trace::{FromValue, TraceContext};
use fx_core::value::{Dim, IntoValue, NodeId, Tree, Value};
use fx_core::{Error, IndexMap, Result};
use rustc_hash::FxHashMap;

use super::derivative::Cotangent;
use super::known;
use super::source::{Replay, Source, flat};
use super::tape::{self, Ways, node_of};
use super::wrt::Wrt;
use crate::ops;
use crate::tensor::Tensor;

/// The gradient of each tensor of a result.
pub(crate) fn seeds(result: &Value, cotangent: &Value) -> Result<Vec<(Value, Cotangent)>> {
    let tree = Tree::of(result)?;
    let results = tree.flatten(result.clone())?;
    let given = tree.flatten(cotangent.clone()).map_err(|error| {
        Error::msg(format_args!(
            "the gradient of the result has another structure: {error}"
        ))
    })?;
    let mut seeds = Vec::new();
    for (value, grad) in results.into_iter().zip(given) {
        if !known::is_float(&value) {
            continue;
        }
        let (of, grad) = (
            Tensor::from_value(value.clone())?,
            Tensor::from_value(grad)?,
        );
        let (expected, found) = (known::dims(&of)?, known::dims(&grad)?);
        // Sizes that only a run knows may be equal.
        let differ =
            |(a, b): (&Dim, &Dim)| a.as_known().zip(b.as_known()).is_some_and(|(a, b)| a != b);
        if expected.len() != found.len() || expected.iter().zip(&found).any(differ) {
            return Err(Error::msg(format_args!(
                "the gradient of a result of shape {expected:?} has shape {found:?}"
            )));
        }
        seeds.push((value, Cotangent::One(grad)));
    }
    Ok(seeds)
}

/// A function run on symbolic values, and what gradients are of.
pub(crate) struct Forward {
    pub result: Value,
    ways: Ways,
    behind: Option<NodeId>,
    /// The leaves of each argument that gradients are of.
    inputs: Vec<(Tree, Vec<Value>)>,
    parameters: IndexMap<String, Vec<NodeId>>,
    of_parameters: bool,
    is_one: bool,
}

impl Forward {
    pub fn run(
        cx: &TraceContext,
        source: &Source,
        args: &[Value],
        wrt: &Wrt,
        ways: Ways,
    ) -> Result<Self> {
        let places = wrt.places(source.params())?;
        let unseen = crate::tensor::unseen();
        let gm = source.graph(args)?;
        if crate::tensor::unseen() != unseen {
            return Err(Error::msg(
                "a gradient does not see `no_grad` inside of its function: `detach` what it gives",
            ));
        }
        let mut args = args.to_vec();
        let mut inputs = Vec::with_capacity(places.len());
        let mut taken = uses(&args);
        // Each tensor that a gradient is of is a value of its own, also where it is given twice.
        for place in &places {
            let tree = Tree::of(&args[*place])?;
            let leaves = tree.flatten(args[*place].clone())?;
            let leaves = leaves.into_iter().map(|leaf| {
                if !known::is_float(&leaf) {
                    return match tree.is_leaf() {
                        true => Err(Error::msg(format_args!(
                            "argument `{}` is {}: gradients are of floats",
                            source.params()[*place].name,
                            super::source::meta_of(&leaf)?.describe()
                        ))),
                        false => Ok(leaf),
                    };
                }
                own(cx, leaf, &mut taken)
            });
            let leaves = leaves.collect::<Result<Vec<_>>>()?;
            args[*place] = tree.unflatten(leaves.clone())?;
            inputs.push((tree, leaves));
        }
        let behind = tape::last(cx)?;
        let mut instead = |function, args: &[Value]| match ways.draw(function) {
            Some(composite) => tape::expanded(composite, function, args).map(Some),
            None => Ok(None),
        };
        let mut replay = Replay::new(&mut instead);
        let result = unpacked(gm.interpretation().run(&mut replay, flat(&gm, &args)?)?)?;
        let attributes = std::mem::take(&mut replay.attributes);
        let patterns = wrt
            .parameters
            .iter()
            .map(|pattern| PathPattern::new(pattern))
            .collect::<Result<Vec<_>>>()?;
        let mut parameters: IndexMap<String, Vec<NodeId>> = IndexMap::new();
        for (path, kind, node) in attributes {
            if kind == TensorKind::Parameter
                && patterns.iter().any(|pattern| pattern.matches(&path))
            {
                parameters.entry(path).or_default().push(node);
            }
        }
        if !patterns.is_empty() && parameters.is_empty() {
            return Err(Error::msg(format_args!(
                "no parameter that the function reads is at {}",
                wrt.parameters.join(", ")
            )));
        }
        Ok(Forward {
            result,
            ways,
            behind,
            inputs,
            parameters,
            of_parameters: !patterns.is_empty(),
            is_one: wrt.is_one,
        })
    }

    /// The tensors that gradients are of, of all arguments.
    pub fn leaves(&self) -> Vec<Value> {
        self.inputs
            .iter()
            .flat_map(|(_, leaves)| leaves.iter().cloned())
            .collect()
    }

    /// The structure of each argument that gradients are of.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.inputs.iter().map(|(tree, _)| tree)
    }

    pub fn ways(&self) -> &Ways {
        &self.ways
    }

    /// The last node before the function.
    pub fn behind(&self) -> Option<NodeId> {
        self.behind
    }

    /// The gradients, from those of the result.
    pub fn pulled(&self, cx: &TraceContext, seeds: Vec<(Value, Cotangent)>) -> Result<Value> {
        let leaves = self.inputs.iter().flat_map(|(_, leaves)| leaves);
        let mut wrt: Vec<NodeId> = leaves.filter_map(node_of).collect();
        wrt.extend(self.parameters.values().flatten());
        let mut found = tape::pull(cx, &self.ways, self.behind, seeds, &wrt)?;
        let mut of = |node: NodeId| match found.remove(&node) {
            Some(Cotangent::One(grad)) => Some(grad),
            _ => None,
        };
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (tree, leaves) in &self.inputs {
            let grads = leaves.iter().map(|leaf| {
                if !known::is_float(leaf) {
                    return Ok(Value::None);
                }
                let grad = node_of(leaf).and_then(&mut of);
                let grad = match grad {
                    Some(grad) => grad,
                    None => ops::zeros_like(&Tensor::from_value(leaf.clone())?, None)?,
                };
                Ok(grad.into_value())
            });
            inputs.push(tree.unflatten(grads.collect::<Result<_>>()?)?);
        }
        let inputs = match self.is_one {
            true => inputs.swap_remove(0),
            false => tuple(inputs),
        };
        if !self.of_parameters {
            return Ok(inputs);
        }
        let mut parameters = IndexMap::new();
        for (path, nodes) in &self.parameters {
            let mut sum: Option<Tensor> = None;
            for node in nodes {
                if let Some(grad) = of(*node) {
                    sum = Some(match sum {
                        Some(sum) => (sum + grad)?,
                        None => grad,
                    });
                }
            }
            let grad = match sum {
                Some(sum) => sum,
                None => ops::zeros_like(&Tensor::from(cx.proxy(nodes[0])), None)?,
            };
            parameters.insert(std::sync::Arc::from(path.as_str()), grad.into_value());
        }
        let parameters = Value::Dict(Box::new(parameters.into_iter().collect()));
        Ok(match self.inputs.is_empty() {
            true => parameters,
            false => tuple([inputs, parameters]),
        })
    }
}

/// A result whose structure is one of values, not of what stands for a structure.
pub(crate) fn unpacked(result: Value) -> Result<Value> {
    let structure = result
        .as_proxy()
        .map(|proxy| proxy.meta())
        .transpose()?
        .flatten();
    match structure {
        Some(ValueMeta::List(_)) => Ok(Value::List(items(&result)?.into())),
        Some(ValueMeta::Tuple(_)) => Ok(tuple(items(&result)?)),
        _ => match &result {
            Value::List(all) => Ok(Value::List(
                all.iter().cloned().map(unpacked).collect::<Result<_>>()?,
            )),
            Value::Tuple(all) => Ok(Value::Tuple(
                all.iter().cloned().map(unpacked).collect::<Result<_>>()?,
            )),
            _ => Ok(result),
        },
    }
}

fn items(whole: &Value) -> Result<Vec<Value>> {
    let items = known::items(whole)?;
    Ok(items.into_iter().map(IntoValue::into_value).collect())
}

/// Values as one.
pub(crate) fn tuple(items: impl Into<Box<[Value]>>) -> Value {
    Value::Tuple(items.into())
}

/// A result as what a transform is of, and what else a function with `has_aux` gives.
pub(crate) fn without_aux(result: Value, has_aux: bool) -> Result<(Value, Option<Value>)> {
    match (&result, has_aux) {
        (_, false) => Ok((result, None)),
        (Value::Tuple(items), true) => match &items[..] {
            [value, aux] => Ok((value.clone(), Some(aux.clone()))),
            [value, aux @ ..] => Ok((value.clone(), Some(tuple(aux.to_vec())))),
            [] => Err(Error::msg("the function gives nothing")),
        },
        (other, true) => Err(Error::msg(format_args!(
            "with `has_aux` the function gives a tuple, not {}",
            other.describe()
        ))),
    }
}

/// Two results as a tuple, with what else a function with `has_aux` gives behind them.
pub(crate) fn tuple_with_aux([first, second]: [Value; 2], aux: Option<Value>) -> Value {
    match aux {
        Some(aux) => tuple([first, second, aux]),
        None => tuple([first, second]),
    }
}

/// How often each value is among arguments.
pub(crate) fn uses(args: &[Value]) -> FxHashMap<NodeId, usize> {
    let mut found = FxHashMap::default();
    for arg in args {
        arg.for_each(&mut |value| {
            if let Some(node) = node_of(value) {
                *found.entry(node).or_insert(0) += 1;
            }
        });
    }
    found
}

/// A tensor as a value that nothing else of the arguments is.
pub(crate) fn own(
    cx: &TraceContext,
    leaf: Value,
    taken: &mut FxHashMap<NodeId, usize>,
) -> Result<Value> {
    match node_of(&leaf) {
        Some(node) => match taken.get_mut(&node) {
            Some(count) if *count > 1 => {
                *count -= 1;
                Ok(ops::contiguous(&Tensor::from_value(leaf)?)?.into_value())
            }
            _ => Ok(leaf),
        },
        None => constant(cx, &leaf),
    }
}

/// A tensor that is known, as a value of the graph.
fn constant(cx: &TraceContext, tensor: &Value) -> Result<Value> {
    let object = tensor
        .as_object()
        .ok_or_else(|| Error::msg("it is no tensor"))?;
    let op = Op::GetAttr(cx.constant_path(object));
    let node = cx.insert(op, Args::new(), Kwargs::new(), None)?;
    Ok(Value::Proxy(cx.proxy(node)))
}
