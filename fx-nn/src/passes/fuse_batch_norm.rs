//! `FuseBatchNorm`: batch norms folded into the layers before them.
//!
//! Invariant: a layer's weights change only if one node calls it and the batch norm is that node's
//! only user, so that no other result changes.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;

use candle_core::DType as CandleType;
use fx_core::ir::{NodeRef, Op, ValueMeta};
use fx_core::module::Module;
use fx_core::passes::Pass;
use fx_core::value::NodeId;
use fx_core::{Error, GraphModule, Result};

use super::foldable::{Layer, Weights};
use crate::error::Fx;
use crate::nn;
use crate::tensor::Tensor;

/// Folds batch norms in evaluation mode into the convolution or linear layer before them:
///
/// w' = w · γ / √(var + eps), b' = (b − mean) · γ / √(var + eps) + β
///
/// for each output channel, computed in `float64` and rounded once to the layer's own type, which
/// may differ from the batch norm's. Pairs are a convolution, plain or transposed, in 1, 2 or 3 dims
/// with the batch norm of these dims ([`nn::Conv2d`] or [`nn::ConvTranspose2d`] with
/// [`nn::BatchNorm2d`]), and [`nn::Linear`] with [`nn::BatchNorm1d`]. The layer's node keeps its
/// name, the batch norm's is erased; the graph module gets a fused copy of the layer under the same
/// path, with plain tensors that are not trained. The traced model itself is not touched.
///
/// Batch norms that cannot be fused stay: [`plan`](FuseBatchNorm::plan) lists what would be fused,
/// and why the rest would not. `BatchNorm1d` normalises dim 1, which holds a linear layer's
/// channels only in `[N, C]`, and those of a 1-d convolution only in `[N, C, L]`: such pairs are folded if
/// [`propagate_shapes`](GraphModule::propagate_shapes) has recorded that shape at the layer's node,
/// and stay otherwise. A pair also stays if the folded numbers would be too large for the layer's
/// type.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::passes::FuseBatchNorm;
/// let mut model = nn::Sequential::new()
///     .push(nn::Conv2d::new(3, 8, 3)?)
///     .push(nn::BatchNorm2d::new(8)?)
///     .push(nn::ReLU::new());
/// let refused = symbolic_trace(&model)?.apply(&FuseBatchNorm).map(|_| ());
/// assert!(refused.is_err_and(|e| e.to_string().contains("in training mode")));
///
/// model.eval();
/// let mut gm = symbolic_trace(&model)?;
/// println!("{}", FuseBatchNorm::plan(&gm)?);
/// assert_eq!(gm.apply(&FuseBatchNorm)?.nodes_after, 4);
/// let x = Tensor::rand((2, 3, 8, 8))?;
/// assert!(fx_nn::allclose(&gm.forward::<Tensor>(&x)?, &model.forward(&x)?, 1e-5, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a batch norm that it would fuse is in training mode: no weights can stand
/// for the batch's own statistics.
#[derive(Debug, Clone, Copy, Default)]
pub struct FuseBatchNorm;

/// A layer and the batch norm that is folded into it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fusion {
    /// The layer's node, which stays.
    pub layer: String,
    /// The layer's path.
    pub layer_path: String,
    /// The batch norm's node, which is erased.
    pub norm: String,
    /// The batch norm's path.
    pub norm_path: String,
}

/// A batch norm that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Its node.
    pub node: String,
    /// Its path.
    pub path: String,
    /// Why it cannot be folded into the layer before it, and what would help.
    pub reason: String,
}

/// The effect of [`FuseBatchNorm`]; prints as a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FusionPlan {
    /// The pairs that it fuses, in the order of the graph.
    pub fused: Vec<Fusion>,
    /// The batch norms that it leaves, in the order of the graph.
    pub skipped: Vec<Skipped>,
}

impl fmt::Display for FusionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Fusion {
            layer,
            norm,
            norm_path,
            ..
        } in &self.fused
        {
            writeln!(f, "%{norm} ({norm_path}): folded into %{layer}")?;
        }
        for Skipped { node, path, reason } in &self.skipped {
            writeln!(f, "%{node} ({path}): stays: {reason}")?;
        }
        Ok(())
    }
}

impl FuseBatchNorm {
    /// The effect of applying the pass: pairs to fuse, and batch norms that stay, each with the
    /// reason.
    ///
    /// # Errors
    /// Returns an error if a batch norm that would be fused is in training mode; the error names
    /// its node and module, and says what to do.
    pub fn plan(gm: &GraphModule) -> Result<FusionPlan> {
        let mut plan = FusionPlan::default();
        for (node, found) in pairs(gm)? {
            let found = match found {
                Ok(layer) => fold(gm, node, layer)?.map(|_| layer),
                Err(reason) => Err(reason),
            };
            match found {
                Ok(layer) => plan.fused.push(Fusion {
                    layer: layer.name().to_string(),
                    layer_path: layer.target().to_string(),
                    norm: node.name().to_string(),
                    norm_path: node.target().to_string(),
                }),
                Err(reason) => plan.skipped.push(Skipped {
                    node: node.name().to_string(),
                    path: node.target().to_string(),
                    reason,
                }),
            }
        }
        Ok(plan)
    }
}

impl Pass for FuseBatchNorm {
    fn enters_control(&self) -> bool {
        true
    }

    fn requires(&self, gm: &GraphModule) -> Result<()> {
        pairs(gm).map(drop)
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        // Everything is computed before anything changes.
        let mut found = Vec::new();
        for (norm, layer) in pairs(gm)? {
            if let Ok(layer) = layer
                && let Ok(weights) = fold(gm, norm, layer)?
            {
                found.push((norm.id(), layer.id(), weights));
            }
        }
        let mut folded = Vec::with_capacity(found.len());
        for (norm, layer, weights) in found {
            let path = gm.graph().node(layer)?.target().to_string();
            Layer::replace(gm, &path, weights)?;
            folded.push((norm, layer));
        }
        let mut edit = gm.graph_mut();
        for (norm, layer) in &folded {
            edit.node_mut(*norm)?.replace_all_uses_with(*layer)?;
        }
        let norms: Vec<NodeId> = folded.iter().map(|(norm, _)| *norm).collect();
        edit.erase_unused(&norms)?;
        Ok(!folded.is_empty())
    }
}

/// The parts of a batch norm that decide its result in evaluation mode.
struct Norm<'m> {
    name: &'static str,
    weight: Option<&'m Tensor>,
    bias: Option<&'m Tensor>,
    statistics: Option<(&'m Tensor, &'m Tensor)>,
    eps: f64,
    training: bool,
}

impl<'m> Norm<'m> {
    fn of(module: &'m dyn Module) -> Option<Self> {
        let any: &dyn Any = module;
        macro_rules! read {
            ($norm:ident) => {
                any.downcast_ref::<nn::$norm>().map(|norm| Norm {
                    name: stringify!($norm),
                    weight: norm.weight.as_ref(),
                    bias: norm.bias.as_ref(),
                    statistics: norm.running_mean.as_ref().zip(norm.running_var.as_ref()),
                    eps: norm.eps,
                    training: norm.training,
                })
            };
        }
        read!(BatchNorm1d)
            .or_else(|| read!(BatchNorm2d))
            .or_else(|| read!(BatchNorm3d))
    }
}

type Found<'g> = (NodeRef<'g>, Result<NodeRef<'g>, String>);

/// Every call of a batch norm, with the node that it is folded into, or the reason why it is not.
fn pairs(gm: &GraphModule) -> Result<Vec<Found<'_>>> {
    // How often each module is called, and which modules have a tensor that a node reads by itself.
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut readers: HashMap<&str, NodeRef<'_>> = HashMap::new();
    for node in gm.graph().nodes() {
        match node.op() {
            Op::CallModule(path) => *calls.entry(path).or_default() += 1,
            Op::GetAttr(path) => {
                // A module that a function takes is read whole.
                readers.insert(path, node);
                for (dot, _) in path.match_indices('.') {
                    readers.insert(&path[..dot], node);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for node in gm.graph().nodes() {
        let Op::CallModule(path) = node.op() else {
            continue;
        };
        let module = gm.attributes().module(path);
        let Some(norm) = Norm::of(module.map_err(|error| node.blame("fusing", error))?) else {
            continue;
        };
        let layer = match partner(gm, node, &norm)? {
            Ok(layer) => layer,
            Err(reason) => {
                found.push((node, Err(reason)));
                continue;
            }
        };
        let target = layer.target();
        let times = calls.get(target).copied().unwrap_or(0);
        let reason = if times > 1 {
            Some(format!(
                "`{target}` is called {times} times, and the other calls must keep its weights: give each call a layer of its own"
            ))
        } else {
            readers.get(target).map(|reader| {
                format!(
                    "%{} reads a tensor of `{target}` by itself, which must stay as it is",
                    reader.name()
                )
            })
        };
        if let Some(reason) = reason {
            found.push((node, Err(reason)));
            continue;
        }
        if norm.training {
            let error = Error::msg(format_args!(
                "the batch norm `{path}` is in training mode: it normalises by each batch's own statistics, which no weights of `{target}` can stand for; call `eval()` on the model before tracing it, or on the graph module before the pass"
            ));
            return Err(node.blame("fusing", error));
        }
        found.push((node, Ok(layer)));
    }
    Ok(found)
}

/// The layer's node whose result only the batch norm uses, as far as types and shapes are known.
fn partner<'g>(
    gm: &'g GraphModule,
    node: NodeRef<'g>,
    norm: &Norm<'_>,
) -> Result<Result<NodeRef<'g>, String>> {
    let bound = gm.call(node)?.bind()?;
    let input = bound.iter().next().and_then(|(_, input)| input.as_node());
    let Some(input) = input else {
        return Ok(Err("its input is not a node's result".to_string()));
    };
    let input = gm.graph().node(input)?;
    let layer = match input.op() {
        Op::CallModule(path) => Layer::of(gm, path),
        _ => None,
    };
    let Some(layer) = layer else {
        return Ok(Err(format!(
            "its input %{} is not a call of a convolution or a linear layer",
            input.name()
        )));
    };
    let (follower, rank) = layer.follower();
    if norm.name != follower {
        return Ok(Err(format!(
            "a {} does not normalise the channels of the {} `{}`: that takes a {follower}",
            norm.name,
            layer.name(),
            input.target()
        )));
    }
    let Some((mean, _)) = norm.statistics else {
        return Ok(Err(
            "it has no running statistics and normalises by each batch's own".to_string(),
        ));
    };
    if input.num_users() > 1 {
        let others = input.users().filter(|user| user.id() != node.id());
        let others: Vec<String> = others
            .take(4)
            .map(|user| format!("%{}", user.name()))
            .collect();
        return Ok(Err(format!(
            "the result of %{} has {} users, and must stay as it is for {}",
            input.name(),
            input.num_users(),
            others.join(", ")
        )));
    }
    let (channels, normalized) = (layer.channels()?, mean.dims()?.first().copied());
    if channels != normalized {
        return Ok(Err(format!(
            "it normalises {} channels, and `{}` gives {}",
            normalized.unwrap_or(1),
            input.target(),
            channels.unwrap_or(1)
        )));
    }
    match input.meta::<ValueMeta>() {
        Some(ValueMeta::Single(meta)) if meta.shape.len() != rank => Ok(Err(format!(
            "%{} gave shape {:?}, in which the channels of a {} are not those that a {follower} normalises: it takes {rank} dims",
            input.name(),
            meta.shape,
            layer.name()
        ))),
        Some(ValueMeta::Single(_)) => Ok(Ok(input)),
        // The only one that takes inputs with different numbers of dims.
        _ if follower == "BatchNorm1d" => Ok(Err(format!(
            "it normalises dim 1 of what %{} gives, in which the channels of a {} are only if it has {rank} dims, and its shape is not known: run `propagate_shapes` first",
            input.name(),
            layer.name()
        ))),
        _ => Ok(Ok(input)),
    }
}

/// The folded weights of a pair, or the reason why it stays.
fn fold(
    gm: &GraphModule,
    norm: NodeRef<'_>,
    layer: NodeRef<'_>,
) -> Result<Result<Weights, String>> {
    let path = layer.target();
    let (Some(before), Some(module)) = (
        Layer::of(gm, path),
        Norm::of(gm.attributes().module(norm.target())?),
    ) else {
        return Ok(Err(format!("`{path}` is not a layer to fold it into")));
    };
    let folded = folded_weights(&before, &module).map_err(|error| norm.blame("fusing", error))?;
    Ok(folded.map_err(|part| {
        let (weight, _) = before.weights();
        let ty = weight.dtype().map(|ty| ty.to_string());
        format!(
            "the folded {part} of `{path}` would be too large for its type {}: convert the layer to a wider one first",
            ty.unwrap_or_default()
        )
    }))
}

/// w' and b', in the layer's type; or the name of the one that overflows it.
fn folded_weights(layer: &Layer<'_>, norm: &Norm<'_>) -> Result<Result<Weights, &'static str>> {
    let wide = |tensor: &Tensor| tensor.candle()?.detach().to_dtype(CandleType::F64).fx();
    let wide_option = |tensor: Option<&Tensor>| tensor.map(wide).transpose();
    let (weight, bias) = layer.weights();
    let given = weight.candle()?.dtype();
    let Some((mean, var)) = norm.statistics else {
        return Err(Error::msg("the batch norm has no running statistics"));
    };
    let (mean, var) = (wide(mean)?, wide(var)?);
    let (gamma, beta) = (wide_option(norm.weight)?, wide_option(norm.bias)?);
    let (old, bias) = (wide(weight)?, wide_option(bias)?);
    let folded = || -> candle_core::Result<_> {
        let scale = var.affine(1.0, norm.eps)?.sqrt()?.recip()?;
        let scale = match &gamma {
            Some(gamma) => (scale * gamma)?,
            None => scale,
        };
        let weight = layer.scaled(&old, &scale)?;
        let shifted = match &bias {
            Some(bias) => (bias - &mean)?,
            None => mean.neg()?,
        };
        let bias = (shifted * scale)?;
        let bias = match &beta {
            Some(beta) => (bias + beta)?,
            None => bias,
        };
        let (narrow, narrow_bias) = (weight.to_dtype(given)?, bias.to_dtype(given)?);
        if overflows(&weight, &narrow)? {
            return Ok(Err("weight"));
        }
        if overflows(&bias, &narrow_bias)? {
            return Ok(Err("bias"));
        }
        Ok(Ok((narrow.into(), narrow_bias.into())))
    };
    folded().fx()
}

/// Whether a number that is finite in `float64` is not finite in a narrower type.
fn overflows(
    exact: &candle_core::Tensor,
    narrow: &candle_core::Tensor,
) -> candle_core::Result<bool> {
    // Zero times a number that is not finite is NaN, so that one sum checks all.
    let narrow = narrow.to_dtype(CandleType::F64)?.flatten_all()?;
    if narrow.affine(0.0, 0.0)?.sum_all()?.to_scalar::<f64>()? == 0.0 {
        return Ok(false);
    }
    let (exact, narrow) = (
        exact.flatten_all()?.to_vec1::<f64>()?,
        narrow.to_vec1::<f64>()?,
    );
    let mut pairs = exact.iter().zip(&narrow);
    Ok(pairs.any(|(exact, narrow)| exact.is_finite() && !narrow.is_finite()))
}
