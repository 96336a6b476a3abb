//! Training that knows of the rounding: a plan's graph with fake quantization, and the plan of its trained weights.
//!
//! Invariant: activations are rounded by the calibration, weights by their own largest numbers in every step.

use fx_core::ir::{Argument, NodeRef, Op};
use fx_core::trace::FromValue;
use fx_core::value::NodeId;
use fx_core::{Error, GraphModule, Result, function};
use fx_nn::{Tensor, ops};

use crate::calibrate::Calibration;
use crate::convert::Rounding;
use crate::plan::Plan;
use crate::run::tensor_at;
use crate::scheme::Scheme;

impl Plan {
    /// The plan's graph for training: values and weights of quantized nodes are rounded by
    /// [`fake_quantize_affine`](ops::fake_quantize_affine), whose gradient passes where a number is within the range. The
    /// scales of activations are the calibration's; those of weights follow the weights. All parameters of floats need
    /// gradients. Torch's `prepare_qat_fx`.
    ///
    /// ```
    /// use fx_nn::optim::{Optimizer, SGD};
    /// use fx_nn::prelude::*;
    /// use fx_quant::{QConfig, Quantize, Scheme};
    /// fx_nn::manual_seed(0);
    /// let mut model = nn::Sequential::new().push(nn::Linear::new(8, 16)?).push(nn::ReLU::new()).push(nn::Linear::new(16, 2)?);
    /// model.eval();
    /// let gm = symbolic_trace(&model)?;
    /// let x = Tensor::randn((32, 8))?;
    /// let plan = Quantize::new(QConfig::default().weight(Scheme::INT4)).plan(&gm)?;
    /// let calibration = plan.calibrate([&x])?;
    /// let training = plan.prepare_qat(&calibration)?;
    /// let mut optimizer = SGD::new(&training)?.lr(0.1);
    /// let loss = |gm: &GraphModule| -> Result<Tensor> { gm.forward::<Tensor>(&x)?.square()?.mean(..) };
    /// let first = loss(&training)?.item()?;
    /// for _ in 0..20 {
    ///     optimizer.step(&loss(&training)?.backward()?)?;
    /// }
    /// assert!(loss(&training)?.item()? < first / 2.0);
    ///
    /// let trained = plan.with_parameters_of(&training)?;
    /// let quantized = trained.convert(&trained.calibrate([&x])?)?;
    /// assert!(loss(&quantized)?.item()? < first / 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the calibration is of another plan, each run decides a scale, or a scheme is not symmetric for
    /// weights per channel.
    pub fn prepare_qat(&self, calibration: &Calibration) -> Result<GraphModule> {
        let mut gm = self.gm.clone();
        self.fake_values(&mut gm, calibration)?;
        self.fake_weights(&mut gm, calibration)?;
        for path in paths_of(&gm) {
            if let Ok(value) = gm.parameter(&path) {
                let tensor = Tensor::from_value(value)?;
                if tensor.dtype()?.is_floating_point() {
                    gm.set_parameter(&path, &tensor.detach()?.into_parameter()?)?;
                }
            }
        }
        gm.lint()?;
        Ok(gm)
    }

    /// The same plan with the parameters of a graph that was trained, such as one that
    /// [`prepare_qat`](Plan::prepare_qat) gave. Calibrate it again, since the weights are others.
    ///
    /// # Errors
    /// Returns an error if the graph lacks a parameter of the plan's.
    pub fn with_parameters_of(&self, trained: &GraphModule) -> Result<Plan> {
        let mut plan = self.clone();
        for path in paths_of(&self.gm) {
            if plan.gm.parameter(&path).is_ok() {
                let tensor = Tensor::from_value(trained.parameter(&path)?)?.detach()?;
                plan.gm.set_parameter(&path, &tensor)?;
            }
        }
        Ok(plan)
    }

    fn fake_values(&self, gm: &mut GraphModule, calibration: &Calibration) -> Result<()> {
        self.behind_values(gm, calibration, |at, id, rounding| {
            let Rounding::Known(scheme, params) = rounding else {
                return Err(at.node(id)?.blame(
                    "training with the rounding of",
                    Error::msg("each run decides its scale: train a plan that is calibrated"),
                ));
            };
            at.call_function(
                function!(ops::fake_quantize_affine),
                (
                    id,
                    params.scale,
                    params.zero_point,
                    scheme.quant_min,
                    scheme.quant_max,
                ),
                (),
            )
        })
    }

    fn fake_weights(&self, gm: &mut GraphModule, calibration: &Calibration) -> Result<()> {
        for product in self.products(gm, calibration)? {
            let rank = tensor_at(gm, &product.path)?.dims()?.len();
            let axis = product.config.per_channel.then_some(product.axis);
            let (from, scheme) = (product.from, product.config.weight);
            product.read(gm, |at| faked(at, from, (scheme, rank, axis)))?;
        }
        Ok(())
    }
}

/// The paths of the tensors that a graph reads.
fn paths_of(gm: &GraphModule) -> Vec<String> {
    let path = |node: NodeRef<'_>| match node.op() {
        Op::GetAttr(path) => Some(path.to_string()),
        _ => None,
    };
    gm.graph().nodes().filter_map(path).collect()
}

/// A weight, rounded by its largest numbers.
fn faked(
    at: &mut fx_core::ir::InsertionPoint<'_>,
    weight: NodeId,
    (scheme, rank, axis): (Scheme, usize, Option<usize>),
) -> Result<NodeId> {
    if !scheme.symmetric {
        return Err(Error::msg(
            "weights are trained with a symmetric scheme: give one, such as `Scheme::INT8`",
        ));
    }
    let half = (scheme.quant_max - scheme.quant_min) as f64 / 2.0;
    let dims = (0..rank).filter(|dim| Some(*dim) != axis);
    let dims: Vec<Argument> = dims.map(|dim| Argument::Int(dim as i64)).collect();
    let still = at.call_function(function!(ops::detach), (weight,), ())?;
    let size = at.call_function(function!(ops::absolute), (still,), ())?;
    let most = at.call_function(
        function!(ops::amax),
        (size, Argument::Tuple(dims.into())),
        (),
    )?;
    let scale = at.call_function(fx_core::operator::truediv, (most, half), ())?;
    let least = (scale, f64::from(f32::EPSILON));
    let scale = at.call_function(function!(ops::clamp), least, ())?;
    let axis = axis.map_or(Argument::None, |axis| Argument::Int(axis as i64));
    let (low, high) = (scheme.quant_min, scheme.quant_max);
    let args = (weight, scale, 0i64, low, high, axis);
    at.call_function(function!(ops::fake_quantize_affine), args, ())
}
