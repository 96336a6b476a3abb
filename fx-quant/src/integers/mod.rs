//! `Integers`: the backend that runs the reference form in integers.
//!
//! Invariant: what it takes gives the integers that its steps say, on every machine; what it leaves has a reason.

mod affine;
mod build;
mod form;
mod layout;
mod program;
mod read;
mod run;
mod step;

use std::sync::Arc;

use fx_core::ir::ValueMeta;
use fx_core::module::Call;
use fx_core::passes::backend::{Backend, Executable, Metas, Support};
use fx_core::{GraphModule, Result};
use fx_kernels::Level;

use form::{Form, Forms};

/// Runs quantized graphs on kernels of integers: products with a weight and convolutions with what follows them, sums and
/// products of two, functions of each element, pools, and views between them stay bytes.
///
/// A byte is `round((sum + bias) * scale) + zero_point`, half to even, where the sum of products is exact in 32 bits, the
/// bias is an integer of 32 bits, and the scale is one `f32` for each channel. Results are the same on every processor and
/// for any number of threads. They may differ by one step from the reference form in floats, whose sums are rounded.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_quant::{Integers, QConfig, Quantize};
/// fx_nn::manual_seed(0);
/// let mut model = nn::Sequential::new()
///     .push(nn::Conv2d::new(3, 16, 3)?)
///     .push(nn::ReLU::new())
///     .push(nn::MaxPool2d::new(2))
///     .push(nn::Flatten::new())
///     .push(nn::Linear::new(144, 10)?);
/// model.eval();
/// let gm = symbolic_trace(&model)?;
/// let batches: Vec<Tensor> = (0..4).map(|_| Tensor::randn((2, 3, 8, 8))).collect::<Result<_>>()?;
/// let plan = Quantize::new(QConfig::default()).plan(&gm)?;
/// let reference = plan.convert(&plan.calibrate(&batches)?)?;
/// let mut fast = reference.clone();
/// let report = fast.lower(&Integers::new())?;
/// assert_eq!((report.parts.len(), report.left.len()), (1, 0));
///
/// let (expected, found): (Tensor, Tensor) = (reference.forward(&batches[0])?, fast.forward(&batches[0])?);
/// let step = plan.calibrate(&batches)?.params("linear").map(|(_, params)| params.scale).unwrap_or_default();
/// assert!((expected - found)?.abs()?.amax(..)?.item()? <= 1.01 * step);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Integers {
    level: Level,
}

impl Integers {
    /// With the best instructions of this machine.
    pub fn new() -> Self {
        Integers {
            level: Level::best(),
        }
    }

    /// With the instructions of a level, which give the same integers.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

impl Default for Integers {
    fn default() -> Self {
        Integers::new()
    }
}

impl Backend for Integers {
    fn name(&self) -> &str {
        "integers"
    }

    fn supports(&self, call: &Call<'_>, _: &Metas<'_>) -> Support {
        let forms = Forms {
            attributes: call.graph_attributes(),
        };
        match forms.of(call.node()) {
            Ok(Form::Dequantize | Form::DequantizeOfRun | Form::Constant) => Support::WithReader,
            Ok(Form::Quantize | Form::QuantizeOfRun | Form::Pad(_) | Form::View) => {
                Support::IfFused
            }
            Ok(_) => Support::Yes,
            Err(reason) => Support::no(reason),
        }
    }

    fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(build::program(part, self.level)?))
    }
}
