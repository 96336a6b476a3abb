//! Weights and biases that are changed so that rounding hurts less: cross-layer equalisation before the rounding, bias
//! correction after it.
//!
//! Invariant: in floats an equalised model gives what it gave, but for rounding; a correction changes biases alone.

use fx_core::ir::{Argument, NodeRef, Op};
use fx_core::trace::IntoArgs;
use fx_core::value::NodeId;
use fx_core::{Error, GraphModule, Result, function};
use fx_nn::{Tensor, ops};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::plan::{Decision, Plan};
use crate::role::Role;
use crate::run::{as_floats, tensor_at, watched};

/// How often all pairs of layers are equalised: what one changes moves its neighbours.
const SWEEPS: usize = 10;

/// A product and the next one, with nothing between them but what scales with its input.
struct Pair {
    weight: String,
    bias: Option<String>,
    next: String,
    /// The groups of the next product's input channels.
    groups: usize,
}

impl Plan {
    /// Cross-layer equalisation: of two products with at most a `relu` or the largest of windows between them, each
    /// channel of the first is divided by a number that the second is multiplied with, so that both have the same range
    /// in it. One scale for a whole weight then loses less. See Nagel et al., 2019. Do it before the calibration.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_quant::{QConfig, Quantize, compare};
    /// fx_nn::manual_seed(0);
    /// let mut model = nn::Sequential::new().push(nn::Linear::new(16, 16)?).push(nn::ReLU::new()).push(nn::Linear::new(16, 8)?);
    /// model.eval();
    /// let mut gm = symbolic_trace(&model)?;
    /// // Channels of very different ranges.
    /// let spread = Tensor::from_vec((0..16).map(|at| 2f32.powi(at - 8)).collect::<Vec<_>>(), (16, 1))?;
    /// let weight = Tensor::from_value(gm.parameter("0.weight")?)?;
    /// gm.set_parameter("0.weight", &(weight * spread)?.detach()?)?;
    /// let x = Tensor::randn((32, 16))?;
    /// let plan = Quantize::new(QConfig::default().per_channel(false)).plan(&gm)?;
    /// let signal = |plan: &fx_quant::Plan| -> Result<f64> {
    ///     compare(plan, &plan.convert(&plan.calibrate([&x])?)?, [&x]).map(|all| all.sqnr())
    /// };
    /// assert!(signal(&plan.equalize()?)? > signal(&plan)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a weight has no data.
    pub fn equalize(&self) -> Result<Plan> {
        let mut plan = self.clone();
        let pairs = plan.pairs()?;
        for _ in 0..SWEEPS {
            for pair in &pairs {
                equalized(&mut plan.gm, pair)?;
            }
        }
        Ok(plan)
    }

    /// Bias correction: rounded weights move the mean of a product's results; its bias takes that back, channel by
    /// channel, from the first product to the last, by the means over inputs. Products without a bias stay.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_quant::{QConfig, Quantize, Scheme, compare};
    /// fx_nn::manual_seed(0);
    /// let mut model = nn::Sequential::new().push(nn::Linear::new(32, 16)?).push(nn::ReLU::new()).push(nn::Linear::new(16, 8)?);
    /// model.eval();
    /// let gm = symbolic_trace(&model)?;
    /// let x = (Tensor::randn((64, 32))? + 2.0)?;
    /// let plan = Quantize::new(QConfig::default().weight(Scheme::INT4)).plan(&gm)?;
    /// let mut quantized = plan.convert(&plan.calibrate([&x])?)?;
    /// let before = compare(&plan, &quantized, [&x])?.sqnr();
    /// plan.correct_bias(&mut quantized, [&x])?;
    /// assert!(compare(&plan, &quantized, [&x])?.sqnr() > before);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a run fails, there are no inputs, or the graph was converted from another plan.
    pub fn correct_bias<A: IntoArgs + Clone>(
        &self,
        quantized: &mut GraphModule,
        inputs: impl IntoIterator<Item = A>,
    ) -> Result<()> {
        let inputs: Vec<A> = inputs.into_iter().collect();
        if inputs.is_empty() {
            return Err(Error::msg(
                "there are no inputs to correct biases with: give some that are like those of use",
            ));
        }
        let mut products: IndexMap<String, (usize, Bias)> = IndexMap::new();
        for (name, decision) in &self.decisions {
            let node = quantized.graph().find_name(name);
            if let (Decision::Quantized(_), Some(node)) = (decision, node)
                && let Some(Role::Weighted { .. }) = Role::of_node(node)?
                && let Some(bias) = Bias::of(node)
            {
                let is_rows = node.function() == Some(function!(ops::linear));
                products.insert(name.clone(), (if is_rows { usize::MAX } else { 1 }, bias));
            }
        }
        let expected = means(&self.gm, &inputs, &products)?;
        for (name, product) in &products {
            let bias = product.1.clone();
            let alone = IndexMap::from([(name.clone(), product.clone())]);
            let found = means(quantized, &inputs, &alone)?;
            let (Some(expected), Some(found)) = (expected.get(name), found.get(name)) else {
                continue;
            };
            let moved: Vec<f64> = expected.iter().zip(found).map(|(a, b)| a - b).collect();
            bias.move_by(quantized, &moved)?;
        }
        Ok(())
    }

    /// The pairs of products that can be equalised, in the order of the graph.
    fn pairs(&self) -> Result<Vec<Pair>> {
        // How many calls read each tensor.
        let mut readers: FxHashMap<&str, usize> = FxHashMap::default();
        for node in self.gm.graph().nodes() {
            if let Op::GetAttr(path) = node.op() {
                *readers.entry(path).or_default() += node.num_users();
            }
        }
        let mut pairs = Vec::new();
        for node in self.gm.graph().nodes() {
            let is_product = |node: NodeRef<'_>| -> Result<bool> {
                let is_quantized = matches!(
                    self.decisions.get(&node.name().to_string()),
                    Some(Decision::Quantized(_))
                );
                Ok(is_quantized && matches!(Role::of_node(node)?, Some(Role::Weighted { .. })))
            };
            if !is_product(node)? {
                continue;
            }
            let Some(next) = next_of(node) else {
                continue;
            };
            if !is_product(next)? || next.function() != node.function() {
                continue;
            }
            let groups = match next.argument("groups") {
                Ok(Argument::Int(groups)) => usize::try_from(groups).map_err(Error::other)?,
                _ => 1,
            };
            let is_read_once = |path: &String| readers.get(&**path) == Some(&1);
            let alone = |path: &Option<String>| path.as_ref().is_none_or(is_read_once);
            let (weight, bias) = (tensor_path(node, "weight"), tensor_path(node, "bias"));
            let second = tensor_path(next, "weight");
            if [&weight, &bias, &second].into_iter().all(alone)
                && let (Some(weight), Some(next)) = (weight, second)
            {
                pairs.push(Pair {
                    weight,
                    bias,
                    next,
                    groups,
                });
            }
        }
        Ok(pairs)
    }
}

/// The product that alone reads a product, through functions that scale with their input.
fn next_of(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let mut at = node;
    loop {
        let (1, Some(user)) = (at.num_users(), at.users().next()) else {
            return None;
        };
        let function = user.function()?;
        let scales = [function!(ops::relu), function!(ops::max_pool2d)];
        if !scales.contains(&function) {
            let is_its_input = user.argument("x").ok().and_then(|x| x.as_node()) == Some(at.id());
            return is_its_input.then_some(user);
        }
        at = user;
    }
}

/// The bias of a product: its path, and that of the scales if it is integers.
#[derive(Clone)]
struct Bias {
    path: String,
    scale: Option<String>,
}

impl Bias {
    fn of(node: NodeRef<'_>) -> Option<Self> {
        if let Some(path) = tensor_path(node, "bias") {
            return Some(Bias { path, scale: None });
        }
        let from = node.argument("bias").ok()?.as_node()?;
        let from = node.graph().node(from).ok()?;
        (from.function() == Some(function!(ops::dequantize_affine))).then_some(())?;
        Some(Bias {
            path: tensor_path(from, "x")?,
            scale: Some(tensor_path(from, "scale")?),
        })
    }

    /// Adds numbers; integers are moved by whole steps.
    fn move_by(&self, gm: &mut GraphModule, numbers: &[f64]) -> Result<()> {
        let own = tensor_at(gm, &self.path)?;
        let (dtype, own) = (own.dtype()?, own.to_vec()?);
        let steps = match &self.scale {
            None => numbers.to_vec(),
            Some(scale) => {
                let scales = tensor_at(gm, scale)?.to_vec()?;
                let steps = numbers.iter().zip(scales);
                steps
                    .map(|(number, scale)| (number / scale).round_ties_even())
                    .collect()
            }
        };
        let moved: Vec<f64> = own
            .iter()
            .zip(steps)
            .map(|(own, steps)| own + steps)
            .collect();
        let count = moved.len();
        set(
            gm,
            &self.path,
            &Tensor::from_vec(moved, count)?.to_dtype(dtype)?,
        )
    }
}

/// The path of the tensor that an argument is.
fn tensor_path(node: NodeRef<'_>, param: &str) -> Option<String> {
    let from: NodeId = node.argument(param).ok()?.as_node()?;
    match node.graph().node(from).ok()?.op() {
        Op::GetAttr(path) => Some(path.to_string()),
        _ => None,
    }
}

fn set(gm: &mut GraphModule, path: &str, tensor: &Tensor) -> Result<()> {
    match gm.parameter(path).is_ok() {
        true => gm.set_parameter(path, tensor),
        false => gm.set_buffer(path, tensor),
    }
}

/// Divides the channels of a product by what makes their ranges those of the next one, which is multiplied with it.
fn equalized(gm: &mut GraphModule, pair: &Pair) -> Result<()> {
    let (first, second) = (tensor_at(gm, &pair.weight)?, tensor_at(gm, &pair.next)?);
    let (dims, next_dims) = (first.dims()?.to_vec(), second.dims()?.to_vec());
    let (mut own, mut next) = (first.to_vec()?, second.to_vec()?);
    let channels = dims[0];
    let size = own.len().checked_div(channels).unwrap_or(0);
    // The weights of the next product are rows of so many inputs, of so many numbers each.
    let (rows, inputs) = (next_dims[0], next_dims[1]);
    let each: usize = next_dims[2..].iter().product();
    if size == 0 || each == 0 || inputs * pair.groups != channels || rows % pair.groups != 0 {
        return Ok(());
    }
    let channel_of = |at: usize| {
        let (row, input) = (at / (inputs * each), at / each % inputs);
        row / (rows / pair.groups) * inputs + input
    };
    let (mut ranges, mut next_ranges) = (vec![0f64; channels], vec![0f64; channels]);
    for (at, w) in own.iter().enumerate() {
        ranges[at / size] = ranges[at / size].max(w.abs());
    }
    for (at, w) in next.iter().enumerate() {
        next_ranges[channel_of(at)] = next_ranges[channel_of(at)].max(w.abs());
    }
    let factor = |(a, b): (&f64, &f64)| match *a > 0.0 && *b > 0.0 {
        true => (a / b).sqrt(),
        false => 1.0,
    };
    let factors: Vec<f64> = ranges.iter().zip(&next_ranges).map(factor).collect();
    own.iter_mut()
        .enumerate()
        .for_each(|(at, w)| *w /= factors[at / size]);
    next.iter_mut()
        .enumerate()
        .for_each(|(at, w)| *w *= factors[channel_of(at)]);
    let narrow = |all: Vec<f64>| all.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
    set(gm, &pair.weight, &Tensor::from_vec(narrow(own), dims)?)?;
    set(gm, &pair.next, &Tensor::from_vec(narrow(next), next_dims)?)?;
    if let Some(path) = &pair.bias {
        let bias = tensor_at(gm, path)?.to_vec()?;
        let bias = bias
            .iter()
            .zip(&factors)
            .map(|(bias, factor)| bias / factor);
        set(
            gm,
            path,
            &Tensor::from_vec(narrow(bias.collect()), channels)?,
        )?;
    }
    Ok(())
}

/// The mean of each channel of products over inputs; of rows, channels are the last dim.
fn means<A: IntoArgs + Clone>(
    gm: &GraphModule,
    inputs: &[A],
    products: &IndexMap<String, (usize, Bias)>,
) -> Result<IndexMap<String, Vec<f64>>> {
    let mut sums: IndexMap<String, (Vec<f64>, usize)> = IndexMap::new();
    for args in inputs {
        watched(gm, args.clone(), |node, value| {
            let name = node.name().to_string();
            let (Some((dim, _)), Some(x)) = (products.get(&name), as_floats(value)) else {
                return Ok(());
            };
            let dims = x.dims()?.to_vec();
            let dim = (*dim).min(dims.len().saturating_sub(1));
            let (channels, each) = (dims[dim], dims[dim + 1..].iter().product::<usize>());
            let (sums, count) = sums.entry(name).or_insert_with(|| (vec![0.0; channels], 0));
            let all = x.to_vec()?;
            *count += all.len() / channels.max(1);
            for (at, x) in all.into_iter().enumerate() {
                sums[at / each % channels] += x;
            }
            Ok(())
        })?;
    }
    let mean = |(sums, count): (Vec<f64>, usize)| {
        sums.into_iter()
            .map(|sum| sum / count.max(1) as f64)
            .collect()
    };
    Ok(sums
        .into_iter()
        .map(|(name, own)| (name, mean(own)))
        .collect())
}
