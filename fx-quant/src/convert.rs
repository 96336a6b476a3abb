//! The reference form: a graph whose values are rounded to integers and read back, with weights of integers.
//!
//! Invariant: a reader in floats of a value that exists in floats keeps them; all others read what the integers stand for.

use fx_core::ir::{Argument, InsertionPoint, NodeRef, Op};
use fx_core::value::{DType, NodeId};
use fx_core::{Error, GraphModule, Result, function};
use fx_nn::{Tensor, ops};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calibrate::Calibration;
use crate::config::QConfig;
use crate::observer::weight_range;
use crate::of_run;
use crate::plan::{Decision, Plan, Source};
use crate::role::Role;
use crate::run::tensor_at;
use crate::scheme::{Params, Scheme};

/// A weight as integers: the parameter that holds them, and their scales. What a buffer alone decides would be computed
/// while a graph is traced again, as for a file: the integers would be floats there.
#[derive(Clone)]
struct Integers {
    path: String,
    scale: Scale,
}

/// How a value is rounded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rounding {
    /// By a scale and a zero point that a calibration found.
    Known(Scheme, Params),
    /// By those that each run decides.
    OfRun(Scheme),
}

/// The scales of a weight.
#[derive(Clone)]
enum Scale {
    /// One for each channel: a parameter.
    Channels(String),
    One(Params),
}

impl Plan {
    /// The graph in reference form: [`quantize_affine`](ops::quantize_affine) and
    /// [`dequantize_affine`](ops::dequantize_affine) around the functions that become integers, whose weights are
    /// integers with a scale for each channel, and whose biases are integers of 32 bits with the scale of their sums. It
    /// runs, prints, saves, and exports to ONNX as `QuantizeLinear` and `DequantizeLinear` pairs, which other engines
    /// compute in integers.
    ///
    /// # Errors
    /// Returns an error if the calibration is of another plan, or a weight has a number that is not finite.
    pub fn convert(&self, calibration: &Calibration) -> Result<GraphModule> {
        let mut gm = self.gm.clone();
        self.round_values(&mut gm, calibration)?;
        let products = self.products(&gm, calibration)?;
        // Inputs have the type of the weights.
        let dtype = match products.first() {
            Some(product) => tensor_at(&gm, &product.path)?.dtype()?,
            None => DType::F32,
        };
        self.round_weights(&mut gm, products)?;
        // Last, since an edit takes away what is known of all behind it.
        of_run::are_of_one_element(&mut gm, dtype)?;
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
        self.behind_values(gm, calibration, |at, id, rounding| {
            let name = at.node(id)?.name().to_string();
            let (scheme, scale, zero_point) = match rounding {
                Rounding::Known(scheme, params) => (
                    scheme,
                    Argument::Float(params.scale),
                    Argument::Int(params.zero_point),
                ),
                Rounding::OfRun(scheme) => {
                    let [scale, zero_point] = of_run::params(at, id, scheme)?;
                    (scheme, scale, zero_point)
                }
            };
            let whole = at.call_function(
                function!(ops::quantize_affine),
                (
                    id,
                    scale.clone(),
                    zero_point.clone(),
                    scheme.quant_min,
                    scheme.quant_max,
                    Argument::DType(scheme.dtype),
                ),
                (),
            )?;
            at.node_mut(whole)?.rename(&format!("{name}_quantized"));
            let back = at.call_function(
                function!(ops::dequantize_affine),
                (whole, scale, zero_point),
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
        put: impl Fn(&mut InsertionPoint<'_>, NodeId, Rounding) -> Result<NodeId>,
    ) -> Result<()> {
        for (name, value) in &self.values {
            let is_of_run = matches!(value.source, Source::OfRun(_));
            if !is_of_run
                && !calibration.params.contains_key(name)
                && !calibration.floats.contains_key(name)
            {
                return Err(Error::msg(format_args!(
                    "the calibration does not have %{name}: calibrate this plan"
                )));
            }
        }
        let mut nodes = gm.graph().nodes();
        let first = nodes.find(|node| !matches!(node.op(), Op::Placeholder(_)));
        let first = first.map(|node| node.id());
        for (name, value) in &self.values {
            let rounding = match (&value.source, calibration.params.get(name)) {
                (Source::OfRun(scheme), _) => Rounding::OfRun(*scheme),
                (_, Some(&(scheme, params))) => Rounding::Known(scheme, params),
                (_, None) => continue,
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
            let made = put(&mut at, id, rounding)?;
            drop(at);
            edit.node_mut(id)?
                .replace_uses_with_filter(made, |user| wanted.contains(&user.id()))?;
        }
        Ok(())
    }

    /// The quantized products of a graph, with where their weights are.
    pub(crate) fn products(
        &self,
        gm: &GraphModule,
        calibration: &Calibration,
    ) -> Result<Vec<Product<'_>>> {
        let mut all = Vec::new();
        for (name, decision) in &self.decisions {
            let (Decision::Quantized(config), Some(node)) = (decision, gm.graph().find_name(name))
            else {
                continue;
            };
            let Some(Role::Weighted { weight, axis }) = Role::of_node(node)? else {
                continue;
            };
            // Its input may have turned out to be none of floats.
            let own = self.gm.graph().find_name(name);
            let input = own.and_then(|node| node.all_input_nodes().next());
            let is_float =
                |input: NodeRef<'_>| calibration.floats.contains_key(&input.name().to_string());
            if input.is_none_or(is_float) {
                continue;
            }
            let Argument::Node(from) = node.argument(weight)? else {
                continue;
            };
            if let Op::GetAttr(path) = gm.graph().node(from)?.op() {
                all.push(Product {
                    node: node.id(),
                    weight,
                    axis,
                    from,
                    path: path.to_string(),
                    config,
                });
            }
        }
        Ok(all)
    }

    /// Has each product read its weight from integers.
    fn round_weights(&self, gm: &mut GraphModule, products: Vec<Product<'_>>) -> Result<()> {
        let mut made: FxHashMap<(String, Scheme, bool), Integers> = FxHashMap::default();
        let mut at_path: FxHashMap<String, usize> = FxHashMap::default();
        let mut biases = Biases::default();
        let mut former = Vec::new();
        for product in products {
            let Product {
                node,
                ref path,
                config,
                axis,
                ..
            } = product;
            let key = (path.clone(), config.weight, config.per_channel);
            let integers = match made.get(&key) {
                Some(integers) => integers.clone(),
                None => {
                    let others = at_path.entry(path.clone()).or_default();
                    let integers = add_weight(gm, path, *others, config, axis);
                    let integers = integers.map_err(|error| match gm.graph().node(node) {
                        Ok(node) => node.blame("quantizing the weight of", error),
                        Err(_) => error,
                    })?;
                    *others += 1;
                    made.insert(key, integers.clone());
                    integers
                }
            };
            let name = format!("{}_dequantized", path.replace('.', "_"));
            product.read(gm, |at| {
                let whole = at.get_attr(&integers.path)?;
                let back = match &integers.scale {
                    Scale::Channels(scale) => {
                        let scale = at.get_attr(scale)?;
                        let args = (whole, scale, 0i64, axis as i64);
                        at.call_function(function!(ops::dequantize_affine), args, ())?
                    }
                    Scale::One(params) => {
                        let args = (whole, params.scale, params.zero_point);
                        at.call_function(function!(ops::dequantize_affine), args, ())?
                    }
                };
                at.node_mut(back)?.rename(&name);
                Ok(back)
            })?;
            former.push(product.from);
            former.extend(round_bias(gm, &product, &integers.scale, &mut biases)?);
        }
        gm.graph_mut().erase_unused(&former)
    }
}

/// The paths of biases as integers, by the path of the bias and the steps that it is in.
type Biases = FxHashMap<(String, Vec<u32>), (String, String)>;

/// Has a product read its bias from integers of 32 bits, whose scale is that of its sums, if they hold it. Gives the node that
/// read it before.
fn round_bias(
    gm: &mut GraphModule,
    product: &Product<'_>,
    of_weight: &Scale,
    made: &mut Biases,
) -> Result<Option<NodeId>> {
    let node = gm.graph().node(product.node)?;
    let (Ok(Argument::Node(from)), Ok(Argument::Node(x))) =
        (node.argument("bias"), node.argument("x"))
    else {
        return Ok(None);
    };
    let (Op::GetAttr(path), Ok(Argument::Float(of_x))) = (
        gm.graph().node(from)?.op(),
        gm.graph().node(x)?.argument("scale"),
    ) else {
        return Ok(None);
    };
    let path = path.to_string();
    let bias = tensor_at(gm, &path)?.detach()?;
    let &[count] = bias.dims()? else {
        return Ok(None);
    };
    let of_weight = match of_weight {
        Scale::Channels(path) => tensor_at(gm, path)?.to_vec()?,
        Scale::One(params) => vec![params.scale; count],
    };
    let scales: Vec<f32> = of_weight.iter().map(|own| (own * of_x) as f32).collect();
    let key = (
        path.clone(),
        scales.iter().map(|own| own.to_bits()).collect(),
    );
    let (held, scale) = match made.get(&key) {
        Some(paths) => paths.clone(),
        None => {
            let each = bias.to_vec()?.into_iter().zip(&scales);
            let steps: Vec<f64> = each
                .map(|(bias, scale)| (bias / f64::from(*scale)).round_ties_even())
                .collect();
            let holds = |steps: &f64| steps.abs() <= f64::from(i32::MAX);
            if !steps.iter().all(holds) {
                return Ok(None);
            }
            let others = made.keys().filter(|(own, _)| *own == path).count();
            let suffix = suffix(others);
            let (held, scale) = (
                format!("{path}_quantized{suffix}"),
                format!("{path}_scale{suffix}"),
            );
            let whole = Tensor::from_vec(steps, count)?.to_dtype(DType::I32)?;
            gm.set_parameter(&held, &whole)?;
            gm.set_buffer(&scale, &Tensor::from_vec(scales, count)?)?;
            made.insert(key, (held.clone(), scale.clone()));
            (held, scale)
        }
    };
    let bias = Product {
        weight: "bias",
        from,
        path: path.clone(),
        ..*product
    };
    bias.read(gm, |at| {
        let (whole, scale) = (at.get_attr(&held)?, at.get_attr(&scale)?);
        let back = at.call_function(
            function!(ops::dequantize_affine),
            (whole, scale, 0i64, 0i64),
            (),
        )?;
        at.node_mut(back)?
            .rename(&format!("{}_dequantized", path.replace('.', "_")));
        Ok(back)
    })?;
    Ok(Some(from))
}

/// The end of a path, where others are made of the same tensor.
fn suffix(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!("_{others}"),
    }
}

/// A quantized product of a plan.
pub(crate) struct Product<'p> {
    pub node: NodeId,
    /// The parameter that is the weight, and the dim of its channels.
    pub weight: &'static str,
    pub axis: usize,
    /// The node that reads the weight, and its path.
    pub from: NodeId,
    pub path: String,
    pub config: &'p QConfig,
}

impl Product<'_> {
    /// Has it read its weight from what is put before it.
    pub(crate) fn read(
        &self,
        gm: &mut GraphModule,
        put: impl FnOnce(&mut InsertionPoint<'_>) -> Result<NodeId>,
    ) -> Result<()> {
        let node = gm.graph().node(self.node)?;
        let is_keyword = node.kwargs().iter().any(|(name, _)| &**name == self.weight);
        let function = node.function();
        let mut params = function.iter().flat_map(|function| function.params());
        let place = params.position(|param| param.name == self.weight);
        let mut edit = gm.graph_mut();
        let mut at = edit.inserting_before(self.node)?;
        let new = put(&mut at)?;
        drop(at);
        let mut node = edit.node_mut(self.node)?;
        match place {
            Some(place) if !is_keyword => node.update_arg(place, new),
            _ => node.update_kwarg(self.weight, new),
        }
    }
}

/// Adds the integers of a weight beside it.
fn add_weight(
    gm: &mut GraphModule,
    path: &str,
    others: usize,
    config: &QConfig,
    axis: usize,
) -> Result<Integers> {
    let weight = tensor_at(gm, path)?.detach()?;
    let scheme = config.weight;
    let suffix = suffix(others);
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
        gm.set_parameter(&held, &whole)?;
        return Ok(Integers {
            path: held,
            scale: Scale::One(params),
        });
    }
    let scales: Vec<f32> = params.iter().map(|params| params.scale as f32).collect();
    let count = scales.len();
    let scales = Tensor::from_vec(scales, count)?;
    let whole = ops::quantize_affine(&weight, &scales, 0, low, high, dtype, axis as i64)?;
    let scale = format!("{path}_scale{suffix}");
    gm.set_parameter(&held, &whole)?;
    gm.set_buffer(&scale, &scales)?;
    Ok(Integers {
        path: held,
        scale: Scale::Channels(scale),
    })
}
