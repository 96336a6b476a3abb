//! A compiler for the CPU: `gm.compile(Compile::new(Cpu::new()))` runs models by kernels that fuse
//! what follows a convolution or a product into it, on weights packed once.
//!
//! ```
//! use fx_nn::prelude::*;
//! use fx_nn::cpu::Cpu;
//! use fx_nn::models::resnet::resnet18;
//! use fx_nn::passes::backend::{Compile, LowerReport};
//!
//! let mut model = resnet18(10)?;
//! model.eval();
//! let gm = symbolic_trace(&model)?;
//! let x = Tensor::randn((1, 3, 64, 64))?;
//! let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
//! let (expected, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
//! assert!(fx_nn::allclose(&found, &expected, 1e-4, 1e-4)?.close);
//! assert!(fast.meta::<LowerReport>().is_some_and(|report| report.left.is_empty()));
//! # Ok::<(), fx_nn::Error>(())
//! ```
//!
//! The result is a graph module as before: it is printed, saved, traced and edited as its source,
//! what it holds is at the paths of the model, and `decompile` gives the source back. Whatever the
//! kernels do not cover runs as the source does: `float64`, other devices, inputs that need
//! gradients.
//!
//! Compiling is for inference: the parameters of what is compiled are frozen, as by
//! [`nn::set_requires_grad`]; the source of [`compile`](fx_core::GraphModule::compile) stays as it
//! is. Parameters that are made to need gradients again have them: the graph runs.
//!
//! The code is of the modules as they are. A part with a layer in training runs its graph, and
//! after `eval()` its code again. A module or tensor that is replaced is packed before the next
//! run.
//!
//! Arguments that the graph refuses are refused with the graph's error. The shape rules of the
//! calls are asked when arguments of other sizes come, and not again while sizes stay.
//!
//! Weights are packed when a module is compiled, and again before the next run after one is written
//! in place: by an optimizer, by [`Tensor::copy_from`](crate::Tensor::copy_from), by loading a
//! checkpoint. Only writes by candle's own `Var::set` are not noticed: call
//! [`refresh`](fx_core::GraphModule::refresh) after them.
//! [`release_source`](fx_core::GraphModule::release_source) keeps the packed weights alone.
//!
//! The sides of branches and the bodies of loops are compiled too.
//!
//! Sizes are read when a program runs, so that one program serves every batch and every length.
//!
//! A cache of keys and values that is an argument of a graph, is concatenated with new ones for an attention, and is returned,
//! grows where it is: each run writes the new ones alone. Whoever holds an earlier cache can go on from it as before, with a
//! copy where another run has already appended to it.
//!
//! Graphs of [`bfloat16`](DType::BF16) and [`float16`](DType::F16) are compiled too. Weights of linear layers and tables of
//! embeddings stay in 16 bits; what is computed is in `f32`, and is rounded where a tensor leaves the code and where the
//! graph says `to_dtype`. So results are nearer to those of `f32` than the graph's own, which rounds after each call.
//! Layers with weights in `bfloat16` round their inputs to it as well, where the processor multiplies pairs of them
//! ([`Cpu::precision`]).
//!
//! Weights in blocks, as a [`QuantizedLinear`](crate::nn::QuantizedLinear) has them, stay in the bits of the blocks. On
//! processors with AVX-512 VNNI, what they are multiplied by is rounded to bytes, each 32 inputs with a scale; the graph's
//! own product rounds it too.
//!
//! ```
//! use fx_nn::prelude::*;
//! use fx_nn::cpu::Cpu;
//! use fx_nn::passes::backend::Compile;
//!
//! let mut layers = nn::Sequential::new().push(nn::Linear::new(64, 64)?).push(nn::GELU::new()).push(nn::Linear::new(64, 8)?);
//! nn::to_dtype(&mut layers, DType::BF16)?;
//! let gm = symbolic_trace(&layers)?;
//! let x = Tensor::randn((4, 64))?.to_dtype(DType::BF16)?;
//! let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
//! let (expected, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
//! assert_eq!(found.dtype()?, DType::BF16);
//! assert!(fx_nn::allclose(&found, &expected, 0.02, 0.02)?.close);
//! # Ok::<(), fx_nn::Error>(())
//! ```

mod absorb;
mod array;
mod attention;
mod call;
mod code;
mod conv_of_run;
mod convert;
mod curve;
mod draft;
mod elementwise;
mod frame;
mod fuse;
mod grow;
mod layout;
mod lower;
mod lowering;
mod matrix;
mod memory;
mod of_run;
mod options;
mod over;
mod points;
mod products;
mod program;
mod recurrent;
pub(crate) mod resident;
mod run;
mod static_crate;
mod steps;
mod support;
mod types;
mod update;
mod views;

use std::sync::Arc;

use fx_core::ir::{Op, ValueMeta};
use fx_core::module::Call;
use fx_core::passes::Region;
use fx_core::passes::backend::{Backend, Executable, Metas, Support};
use fx_core::value::DType;
use fx_core::{GraphModule, Result};

pub use fx_kernels::matrix::{BlockKind, WeightKind};
pub use fx_kernels::pointwise::{Binary, Unary};
pub use fx_kernels::{Activation, Level};

pub use self::lowering::CpuLowering;
pub use self::options::{Precision, Progress};
pub use self::points::{Point, Points};
pub use self::static_crate::{StaticCrate, Target, ToCrate};

use self::code::Code;
use self::options::Options;
use self::resident::Resident;
use crate::nn;

/// The compiler for the CPU.
#[derive(Debug, Clone)]
pub struct Cpu {
    options: Options,
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu::new()
    }
}

impl Cpu {
    /// With the widest instructions of this machine, and Winograd's algorithm.
    pub fn new() -> Self {
        Cpu {
            options: Options {
                level: Level::best(),
                winograd: true,
                weights: None,
                precision: None,
                progress: None,
            },
        }
    }

    /// How the weights of linear layers are stored; without this, in the type that they have. Fewer bits are read faster,
    /// which is most of the time of a single token, and round each weight; sums stay in `f32`. Of
    /// [`WeightKind::Blocks`], a layer whose number of inputs is no multiple of a block's keeps its type.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::cpu::{BlockKind, Cpu, WeightKind};
    /// use fx_nn::passes::backend::Compile;
    ///
    /// let mut layer = nn::Linear::new(64, 64)?;
    /// nn::set_requires_grad(&mut layer, false)?;
    /// let layer = layer;
    /// let gm = symbolic_trace(traced!(|x: Tensor| layer.forward(&x)))?;
    /// let x = Tensor::randn((1, 64))?;
    /// let exact: Tensor = gm.forward(&x)?;
    /// let blocks = WeightKind::Blocks(BlockKind::Q8_0);
    /// for (kind, tolerance) in [(WeightKind::Bf16, 0.02), (WeightKind::I8, 0.05), (blocks, 0.05)] {
    ///     let fast = gm.compile(Compile::new(Cpu::new().weights(kind)).like(&x))?;
    ///     let rounded: Tensor = fast.forward(&x)?;
    ///     assert!(fx_nn::allclose(&rounded, &exact, tolerance, tolerance)?.close);
    ///     assert!(!fx_nn::allclose(&rounded, &exact, 1e-7, 1e-7)?.close);
    /// }
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    #[must_use]
    pub fn weights(mut self, kind: WeightKind) -> Self {
        self.options.weights = Some(kind);
        self
    }

    /// What linear layers and convolutions multiply; without this, the type of the weight. [`Precision::Bf16`] rounds inputs
    /// and weights to `bf16`, and takes about half of the time where the processor multiplies pairs of them (AVX-512 BF16,
    /// found when a program runs); sums and all else stay in `f32`. It is what PyTorch calls
    /// `set_float32_matmul_precision("medium")`. Elsewhere weights of linear layers take half of the memory, and
    /// convolutions stay as they are. [`Cpu::weights`] goes before it.
    ///
    /// Convolutions of large images that [Winograd's algorithm](Cpu::winograd) is faster for stay in `f32`. So do products of
    /// two values that a run computes.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::cpu::{Cpu, Precision};
    /// use fx_nn::models::resnet::resnet18;
    /// use fx_nn::passes::backend::Compile;
    ///
    /// let mut model = resnet18(10)?;
    /// model.eval();
    /// let gm = symbolic_trace(&model)?;
    /// let x = Tensor::randn((1, 3, 32, 32))?;
    /// let exact: Tensor = gm.forward(&x)?;
    /// let fast = gm.compile(Compile::new(Cpu::new().precision(Precision::Bf16)).like(&x))?;
    /// let rounded: Tensor = fast.forward(&x)?;
    /// assert!(fx_nn::allclose(&rounded, &exact, 0.05, 0.05)?.close);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.options.precision = Some(precision);
        self
    }

    /// Calls `on_progress` before each step of a part is made, which packs its weights, and once all are.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::cpu::Cpu;
    /// use fx_nn::passes::backend::Compile;
    ///
    /// let layers = nn::Sequential::new().push(nn::Linear::new(8, 8)?).push(nn::GELU::new()).push(nn::Linear::new(8, 8)?);
    /// let gm = symbolic_trace(&layers)?;
    /// let cpu = Cpu::new().on_progress(|step| eprintln!("{}/{} {}", step.done, step.total, step.node));
    /// gm.compile(Compile::new(cpu).like(&Tensor::ones((1, 8))?))?; // 0/2 _0, 1/2 _2, 2/2
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    #[must_use]
    pub fn on_progress(
        mut self,
        on_progress: impl Fn(Progress<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.options.progress = Some(Arc::new(on_progress));
        self
    }

    /// Whether 3x3 convolutions may use Winograd's algorithm, which needs fewer multiplications and
    /// rounds about twice as much.
    #[must_use]
    pub fn winograd(mut self, winograd: bool) -> Self {
        self.options.winograd = winograd;
        self
    }

    /// The instructions that kernels use; scalar ones where the machine does not have them.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.options.level = level;
        self
    }
}

impl Cpu {
    /// The program of a graph that carries its last arguments from run to run.
    pub(crate) fn resident(&self, gm: &GraphModule, carried: usize) -> Result<Resident> {
        Resident::of(gm, carried, &self.options)
    }
}

impl Backend for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        let wrong = |dtype: &DType| *dtype == DType::F64;
        if let Some(dtype) = metas.dtypes().find(wrong) {
            return Support::no(format!("there are no kernels for {dtype}"));
        }
        let mut around = metas.inputs().chain([metas.result()]).flatten();
        let is_untyped = |meta: &ValueMeta| meta.tensor().is_some_and(|meta| meta.dtype.is_none());
        if around.any(|meta| {
            is_untyped(meta) || meta.items().is_some_and(|all| all.iter().any(is_untyped))
        }) {
            return Support::no(
                "it is about values without an element type, such as text, which stay on the host",
            );
        }
        support::supports_call(call)
    }

    fn worth(&self, gm: &GraphModule, part: &Region) -> bool {
        // One cheap call costs more to enter than it gains.
        let mut kernels = 0;
        for id in part.nodes() {
            let Ok(node) = gm.graph().node(*id) else {
                continue;
            };
            if matches!(node.op(), Op::CallModule(_)) {
                return true;
            }
            let call = node.op().is_call().then(|| gm.call(node).ok()).flatten();
            let function = call.and_then(|call| call.function());
            let lowering = function.and_then(|f| CpuLowering::of(f).ok().flatten());
            if lowering.is_some_and(CpuLowering::is_work) {
                return true;
            }
            kernels += usize::from(lowering.is_some_and(CpuLowering::has_kernel));
        }
        kernels >= 2
    }

    fn prepare(&self, module: &mut GraphModule) -> Result<()> {
        nn::set_requires_grad(module, false)
    }

    fn compile(
        &self,
        part: &GraphModule,
        inputs: &[Option<ValueMeta>],
    ) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Code::of(part, inputs, self.options.clone())?))
    }
}
