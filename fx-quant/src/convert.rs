//! The reference form: a graph whose values are rounded to integers and read back, with weights of integers.
//!
//! Invariant: a reader in floats of a value that exists in floats keeps them; all others read what the integers stand for.

use fx_core::ir::{Argument, InsertionPoint, Op};
use fx_core::trace::FromValue;
use fx_core::value::NodeId;
use fx_core::{Error, GraphModule, Result, function};
use fx_nn::{Tensor, ops};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calibrate::Calibration;
use crate::config::QConfig;
use crate::observer::weight_range;
use crate::plan::{Decision, Plan};
use crate::role::Role;
use crate::scheme::{Params, Scheme};

/// A weight as integers: the parameters that hold them.
#[derive(Clone)]
struct Integers {
    path: String,
    scale: Option<String>,
    number: Option<Params>,
}

impl Plan {
    /// The graph in reference form: [`quantize_affine`](ops::quantize_affine) and
    /// [`dequantize_affine`](ops::dequantize_affine) around the functions that become integers, whose weights are
    /// integers with a scale for each channel. It runs, prints, saves, and exports to ONNX as `QuantizeLinear` and
    /// `DequantizeLinear` pairs, which other engines compute in integers.
    ///
    /// # Errors
    /// Returns an error if the calibration is of another plan, or a weight has a number that is not finite.
    pub fn convert(&self, calibration: &Calibration) -> Result<GraphModule> {
        let mut gm = self.gm.clone();
        self.round_values(&mut gm, calibration)?;
        self.round_weights(&mut gm, calibration)?;
        gm.lint()?;
        Ok(gm)
    }

    /// Whether a node is computed of integers, its inputs being so after calibration.
    fn is_quantized(
        &self,
        gm: &GraphModule,
        node: NodeId,
        calibration: &Calibration,
    ) -> Result<bool> {
        let node = gm.graph().node(node)?;
        let name = node.name().to_string();
        let is_so = matches!(
            self.decisions.get(&name),
            Some(Decision::Quantized(_) | Decision::Fused(_))
        );
        let has = |name: &str| !calibration.floats.contains_key(name);
        Ok(is_so
            && has(&name)
            && node
                .all_input_nodes()
                .all(|input| has(&input.name().to_string())))
    }

    /// Puts a pair behind each value, and has its readers read it.
    fn round_values(&self, gm: &mut GraphModule, calibration: &Calibration) -> Result<()> {
        self.behind_values(gm, calibration, |at, id, scheme, params| {
            let name = at.node(id)?.name().to_string();
            let whole = at.call_function(
                function!(ops::quantize_affine),
                (
                    id,
                    params.scale,
                    params.zero_point,
                    scheme.quant_min,
                    scheme.quant_max,
                    Argument::DType(scheme.dtype),
                ),
                (),
            )?;
            at.node_mut(whole)?.rename(&format!("{name}_quantized"));
            let back = at.call_function(
                function!(ops::dequantize_affine),
                (whole, params.scale, params.zero_point),
                (),
            )?;
            at.node_mut(back)?.rename(&format!("{name}_dequantized"));
            Ok(back)
        })
    }

    /// Puts calls behind each value that becomes integers, and has those read what they give who are to: all readers of
    /// a result of quantized work, and quantized readers of a value that is there in floats.
    pub(crate) fn behind_values(
        &self,
        gm: &mut GraphModule,
        calibration: &Calibration,
        put: impl Fn(&mut InsertionPoint<'_>, NodeId, Scheme, Params) -> Result<NodeId>,
    ) -> Result<()> {
        for name in self.values.keys() {
            if !calibration.params.contains_key(name) && !calibration.floats.contains_key(name) {
                return Err(Error::msg(format_args!(
                    "the calibration does not have %{name}: calibrate this plan"
                )));
            }
        }
        let mut nodes = gm.graph().nodes();
        let first = nodes.find(|node| !matches!(node.op(), Op::Placeholder(_)));
        let first = first.map(|node| node.id());
        for (name, value) in &self.values {
            let Some(&(scheme, params)) = calibration.params.get(name) else {
                continue;
            };
            let node = gm
                .graph()
                .find_name(name)
                .ok_or_else(|| Error::msg(format_args!("the plan's graph has no %{name}")))?;
            let (id, is_input) = (node.id(), matches!(node.op(), Op::Placeholder(_)));
            let readers: Vec<NodeId> = node.users().map(|user| user.id()).collect();
            let mut wanted = FxHashSet::default();
            for reader in readers {
                if value.is_result || self.is_quantized(gm, reader, calibration)? {
                    wanted.insert(reader);
                }
            }
            if wanted.is_empty() {
                continue;
            }
            let mut edit = gm.graph_mut();
            let mut at = match (is_input, first) {
                (true, Some(first)) => edit.inserting_before(first)?,
                _ => edit.inserting_after(id)?,
            };
            let made = put(&mut at, id, scheme, params)?;
            drop(at);
            edit.node_mut(id)?
                .replace_uses_with_filter(made, |user| wanted.contains(&user.id()))?;
        }
        Ok(())
    }

    /// Has each quantized product read its weight from integers.
    fn round_weights(&self, gm: &mut GraphModule, calibration: &Calibration) -> Result<()> {
        let mut made: FxHashMap<(String, Scheme, bool), Integers> = FxHashMap::default();
        let mut former = Vec::new();
        for (name, decision) in &self.decisions {
            let Decision::Quantized(config) = decision else {
                continue;
            };
            let Some(node) = gm.graph().find_name(name) else {
                continue;
            };
            let (id, role) = (
                node.id(),
                node.function().map(Role::of).transpose()?.flatten(),
            );
            let Some(Role::Weighted { weight, axis }) = role else {
                continue;
            };
            // Its input may have turned out to be none of floats.
            let input = self
                .gm
                .graph()
                .find_name(name)
                .and_then(|node| node.all_input_nodes().next());
            if input.is_none_or(|input| calibration.floats.contains_key(&input.name().to_string()))
            {
                continue;
            }
            let Argument::Node(from) = node.argument(weight)? else {
                continue;
            };
            let Op::GetAttr(path) = gm.graph().node(from)?.op() else {
                continue;
            };
            let path = path.to_string();
            let key = (path.clone(), config.weight, config.per_channel);
            let integers = match made.get(&key) {
                Some(integers) => integers.clone(),
                None => {
                    let suffix = made.keys().filter(|(other, ..)| *other == path).count();
                    let integers =
                        add_weight(gm, &path, suffix, config, axis).map_err(|error| {
                            match gm.graph().node(id) {
                                Ok(node) => node.blame("quantizing the weight of", error),
                                Err(_) => error,
                            }
                        })?;
                    made.insert(key, integers.clone());
                    integers
                }
            };
            let position = position_of(gm, id, weight)?;
            let mut edit = gm.graph_mut();
            let mut at = edit.inserting_before(id)?;
            let whole = at.get_attr(&integers.path)?;
            let back = match (&integers.scale, integers.number) {
                (Some(scale), _) => {
                    let scale = at.get_attr(scale)?;
                    at.call_function(
                        function!(ops::dequantize_affine),
                        (whole, scale, 0i64, axis as i64),
                        (),
                    )?
                }
                (None, Some(params)) => at.call_function(
                    function!(ops::dequantize_affine),
                    (whole, params.scale, params.zero_point),
                    (),
                )?,
                (None, None) => return Err(Error::msg("a weight has a scale")),
            };
            let name = format!("{}_dequantized", path.replace('.', "_"));
            at.node_mut(back)?.rename(&name);
            drop(at);
            match position {
                Position::Positional(at) => edit.node_mut(id)?.update_arg(at, back)?,
                Position::Keyword => edit.node_mut(id)?.update_kwarg(weight, back)?,
            }
            former.push(from);
        }
        gm.graph_mut().erase_unused(&former)
    }
}

/// Where a call has an argument.
pub(crate) enum Position {
    Positional(usize),
    Keyword,
}

/// Where a call has an argument.
pub(crate) fn position_of(gm: &GraphModule, id: NodeId, param: &str) -> Result<Position> {
    let node = gm.graph().node(id)?;
    if node.kwargs().iter().any(|(name, _)| &**name == param) {
        return Ok(Position::Keyword);
    }
    let function = node
        .function()
        .ok_or_else(|| Error::msg("it calls no function"))?;
    let params = function.params().iter();
    let at = params.clone().position(|own| own.name == param);
    at.map(Position::Positional)
        .ok_or_else(|| Error::msg(format_args!("{} has no `{param}`", function.name())))
}

/// Adds the integers of a weight as buffers beside it.
fn add_weight(
    gm: &mut GraphModule,
    path: &str,
    others: usize,
    config: &QConfig,
    axis: usize,
) -> Result<Integers> {
    let weight = match gm.parameter(path) {
        Ok(weight) => weight,
        Err(_) => gm.buffer(path)?,
    };
    let weight = Tensor::from_value(weight)?.detach()?;
    let scheme = config.weight;
    let suffix = match others {
        0 => String::new(),
        others => format!("_{others}"),
    };
    let held = format!("{path}_quantized{suffix}");
    let along = config.per_channel.then_some(axis);
    let params = weight_range(&weight, along)?
        .into_iter()
        .map(|(min, max)| scheme.params(min, max))
        .collect::<Result<Vec<Params>>>()?;
    let (low, high, dtype) = (scheme.quant_min, scheme.quant_max, scheme.dtype);
    if !config.per_channel || !scheme.symmetric {
        let &params = params
            .first()
            .ok_or_else(|| Error::msg("a weight has no channels"))?;
        let (scale, zero_point) = (params.scale, params.zero_point);
        let whole = ops::quantize_affine(&weight, scale, zero_point, low, high, dtype, None)?;
        gm.set_buffer(&held, &whole)?;
        return Ok(Integers {
            path: held,
            scale: None,
            number: Some(params),
        });
    }
    let scales: Vec<f32> = params.iter().map(|params| params.scale as f32).collect();
    let count = scales.len();
    let scales = Tensor::from_vec(scales, count)?;
    let whole = ops::quantize_affine(&weight, &scales, 0, low, high, dtype, axis as i64)?;
    let scale = format!("{path}_scale{suffix}");
    gm.set_buffer(&held, &whole)?;
    gm.set_buffer(&scale, &scales)?;
    Ok(Integers {
        path: held,
        scale: Some(scale),
        number: None,
    })
}
