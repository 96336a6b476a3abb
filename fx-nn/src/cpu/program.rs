//! `Program`: a draft with its kernels: weights packed, steps in order, and what each step frees.
//!
//! Invariant: a register is written before it is read, and given back after its last use.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use fx_core::ir::Argument;
use fx_core::passes::backend::StepReport;
use fx_core::value::{DType, NodeId, Value};
use fx_core::{Error, Result};
use fx_kernels::conv::{Conv2d, ConvOptions};
use fx_kernels::matrix::{Order, PackedMatrix, WeightKind};
use fx_kernels::pointwise::{Chain, Tape, Unary};
use fx_kernels::recurrent::Network;
use fx_kernels::reduce::Reduction;
use fx_kernels::{Activation, Buffer, Level, Pace};

use super::array::{Array, Memory};
use super::draft::{Draft, Id, Item, Kind, PointOp, Recurring};
use super::frame::{Frame, Register, slice};
use super::matrix;
use super::memory::Pool;
use super::options::{Options, Progress};
use super::recurrent;
use super::types::Halves;
use super::update::CHANGED;
use crate::Tensor;
use crate::optim::UpdateRule;

/// A weight of a kernel that reads it as it is.
pub(super) type Weight = Option<Arc<Buffer>>;

/// What a step runs.
pub(super) enum Kernel {
    /// What needs nothing packed.
    Plain(Kind),
    Conv {
        conv: Box<Conv2d>,
        activation: Activation,
    },
    Linear {
        matrix: PackedMatrix,
        bias: Weight,
        activation: Activation,
        order: Order,
    },
    LayerNorm {
        size: usize,
        weight: Weight,
        bias: Weight,
        eps: f32,
    },
    RmsNorm {
        size: usize,
        weight: Weight,
        eps: f32,
    },
    Embedding {
        table: candle_core::Tensor,
        size: usize,
    },
    ChannelAffine {
        factors: Buffer,
        shifts: Buffer,
        activation: Activation,
        /// For arrays; images have a kernel of their own.
        tape: Option<Tape>,
    },
    Recurrent(Recurring, Box<Network>),
    Tape(Tape),
    /// Of images, then of numbers of channels.
    ImageTape(Tape, Vec<Buffer>),
}

/// A step: it reads registers and writes one.
pub(super) struct Step {
    pub kernel: Kernel,
    pub inputs: Vec<Id>,
    pub out: Id,
    /// The registers that nothing reads after it.
    pub frees: Vec<Id>,
    /// The residual of a convolution that nothing reads after it, so that it may be changed.
    pub adds_to: Option<Id>,
    /// The inputs that its result may be written over.
    pub over: Vec<Id>,
    /// The registers that it changes in place, which nothing reads after it.
    pub changes: Vec<Id>,
    /// The halo that readers of an image need.
    pub halo: usize,
    /// Whether the program returns what it gives, or a view of it.
    pub gives_result: bool,
    pub report: StepReport,
}

/// Some steps of a program.
pub(super) struct Part {
    pub steps: Range<usize>,
    /// Whether threads stay awake between them; `None` for calls, which read what belongs to the thread.
    pub pace: Option<Pace>,
}

/// A program.
pub(super) struct Program {
    pub steps: Vec<Step>,
    pub output: Argument,
    pub returned: Vec<(NodeId, Id)>,
    pub level: Level,
    /// All steps, in order.
    pub parts: Vec<Part>,
    /// The nodes that give tensors of 16 bits.
    pub halves: Halves,
    /// Which register each argument goes into, and whether it has to be floats.
    pub arguments: Vec<(usize, Id, bool)>,
    constants: Vec<(Id, Register)>,
    registers: usize,
    frames: Mutex<Vec<Frame>>,
}

impl Program {
    /// Packs what a draft needs.
    pub fn of(mut draft: Draft, options: &Options) -> Result<Program> {
        let output = draft.output.take().unwrap_or(Argument::None);
        let returned: Vec<(NodeId, Id)> = draft.returned.iter().map(|(n, id)| (*n, *id)).collect();
        let mut halos = vec![0; draft.items.len()];
        for item in &draft.items {
            if let Kind::Conv { spec, .. } = &item.kind {
                let needed = spec.padding[0].max(spec.padding[1]);
                let halo = &mut halos[item.inputs[0]];
                *halo = needed.max(*halo);
            }
        }
        let mut last_use = vec![None; draft.items.len()];
        for (at, item) in draft.items.iter_mut().enumerate() {
            item.visit_uses(&mut |id| last_use[*id] = Some(at));
        }
        for (_, id) in &returned {
            last_use[*id] = None;
        }
        let mut gives_result = vec![false; draft.items.len()];
        for (node, id) in &returned {
            gives_result[*id] |= !draft.halves.contains_key(node);
        }
        for (id, item) in draft.items.iter().enumerate().rev() {
            if gives_result[id] && matches!(item.kind, Kind::View(_)) {
                gives_result[item.inputs[0]] = true;
            }
        }
        let registers = draft.items.len();
        let mut frees: Vec<Vec<Id>> = vec![Vec::new(); registers];
        for (id, last) in last_use.iter().enumerate() {
            let is_constant = matches!(draft.items[id].kind, Kind::Constant(_));
            if let Some(last) = last
                && !is_constant
            {
                frees[*last].push(id);
            }
        }
        let mut program = Program {
            steps: Vec::with_capacity(registers),
            output,
            returned,
            level: options.level,
            parts: Vec::new(),
            halves: std::mem::take(&mut draft.halves),
            arguments: Vec::new(),
            constants: Vec::new(),
            registers,
            frames: Mutex::default(),
        };
        let is_step = |item: &Item| !matches!(item.kind, Kind::Input(_) | Kind::Constant(_));
        let total = draft.items.iter().filter(|item| is_step(item)).count();
        let tell = |node: &str, done: usize| {
            if let Some(progress) = &options.progress {
                progress(Progress { node, done, total });
            }
        };
        for (id, item) in draft.items.into_iter().enumerate() {
            if is_step(&item) {
                tell(
                    item.nodes.first().map_or("", |node| node),
                    program.steps.len(),
                );
            }
            let kernel = match item.kind {
                Kind::Input(place) => {
                    program.arguments.push((place, id, item.is_floats));
                    continue;
                }
                Kind::Constant(tensor) => {
                    let register = match item.is_floats {
                        true => {
                            let dims = tensor.dims()?.iter().copied().collect();
                            let buffer = Arc::new(floats_of(&tensor)?);
                            Register::Array(Array::of(Memory::Buffer(buffer), dims))
                        }
                        false => Register::Value(Value::of(tensor)),
                    };
                    program.constants.push((id, register));
                    continue;
                }
                kind => packed(kind, options)?,
            };
            let frees = std::mem::take(&mut frees[id]);
            let adds_to = match (&kernel, &item.inputs[..]) {
                (Kernel::Conv { .. }, [x, residual]) if x != residual => {
                    frees.contains(residual).then_some(*residual)
                }
                _ => None,
            };
            let changes = match &kernel {
                Kernel::Plain(Kind::Update(rule)) => {
                    item.inputs[CHANGED..][..1 + rule.state().len()].to_vec()
                }
                _ => Vec::new(),
            };
            let over = match gives_result[id] {
                true => Vec::new(),
                false => written_over(&kernel, &item.inputs, &frees),
            };
            program.steps.push(Step {
                over,
                changes,
                report: StepReport::new(kernel.name(options.level), item.nodes),
                kernel,
                inputs: item.inputs,
                out: id,
                frees,
                adds_to,
                halo: halos[id],
                gives_result: gives_result[id],
            });
        }
        tell("", total);
        program.parts = Self::parts_of(&program.steps);
        Ok(program)
    }

    /// The steps between calls of functions, which run on the thread of the caller, for what it has of its own.
    fn parts_of(steps: &[Step]) -> Vec<Part> {
        let calls = |step: &Step| matches!(step.kernel, Kernel::Plain(Kind::Host { .. }));
        let mut parts = Vec::new();
        for steps in steps.chunk_by(|step, next| calls(step) == calls(next)) {
            let start = parts.last().map_or(0, |part: &Part| part.steps.end);
            let is_kernels = steps.len() > 1 && !calls(&steps[0]);
            parts.push(Part {
                steps: start..start + steps.len(),
                pace: is_kernels.then(Pace::default),
            });
        }
        parts
    }

    /// A frame of a former run, or a new one.
    pub fn frame(&self) -> Frame {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.pop().unwrap_or_else(|| {
            let mut registers: Vec<Register> = Vec::new();
            registers.resize_with(self.registers, Register::default);
            for (id, constant) in &self.constants {
                registers[*id] = constant.clone();
            }
            Frame {
                registers,
                pool: Pool::default(),
            }
        })
    }

    /// Keeps a frame for the next run. One whose run failed is dropped.
    pub fn keep(&self, mut frame: Frame) {
        for (_, id) in &self.returned {
            let is_constant = self.constants.iter().any(|(constant, _)| constant == id);
            if !is_constant {
                frame.registers[*id] = Register::Empty;
            }
        }
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.push(frame);
    }

    /// The bytes of the memory of former runs.
    pub fn bytes(&self) -> u64 {
        let frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.iter().map(|frame| frame.pool.bytes()).sum()
    }

    /// What the steps do.
    pub fn report(&self) -> Vec<StepReport> {
        self.steps.iter().map(|step| step.report.clone()).collect()
    }
}

/// The inputs of a kernel that its result may be written over, of those that nothing reads after it.
fn written_over(kernel: &Kernel, inputs: &[Id], frees: &[Id]) -> Vec<Id> {
    let inputs = match kernel {
        Kernel::Tape(_) | Kernel::Plain(Kind::Softmax(_) | Kind::LogSoftmax(_)) => inputs,
        Kernel::Plain(Kind::AddAlong(_) | Kind::AddRows) => &inputs[..1],
        _ => &[],
    };
    let is_free = |id: &&Id| frees.contains(id);
    inputs.iter().filter(is_free).copied().collect()
}

impl Kernel {
    fn name(&self, level: Level) -> String {
        let with = |name: &str, activation: Activation| match activation {
            Activation::None => name.to_string(),
            activation => format!("{name}, {activation:?}"),
        };
        match self {
            Kernel::Conv { conv, activation } => {
                let spec = conv.spec();
                let [rows, columns] = spec.kernel;
                let depthwise = if spec.is_depthwise() {
                    "depthwise "
                } else {
                    ""
                };
                let bf16 = match (conv.is_bf16(), conv.uses_winograd()) {
                    (true, true) => " in bf16, of large images by Winograd's algorithm",
                    (true, false) => " in bf16",
                    (false, _) => "",
                };
                with(
                    &format!("{depthwise}convolution {rows}x{columns}{bf16}"),
                    *activation,
                )
            }
            Kernel::Linear {
                matrix, activation, ..
            } => {
                let is_bf16 = matrix.kind() == WeightKind::Bf16 && matrix.rounds_rows(level);
                let bf16 = if is_bf16 { " in bf16" } else { "" };
                let (inputs, outputs) = (matrix.inputs(), matrix.outputs());
                with(&format!("linear {inputs} to {outputs}{bf16}"), *activation)
            }
            Kernel::ChannelAffine { activation, .. } => with("factors and shifts", *activation),
            Kernel::LayerNorm { .. } => "layer norm".into(),
            Kernel::RmsNorm { .. } => "RMS norm".into(),
            Kernel::Embedding { .. } => "embedding".into(),
            Kernel::Recurrent(how, network) => recurrent::name(*how, network),
            Kernel::ImageTape(tape, _) => format!("pointwise, {} steps", tape.steps()),
            Kernel::Tape(tape) => format!("pointwise, {} steps", tape.steps()),
            Kernel::Plain(kind) => match kind {
                Kind::Host { function, .. } => format!("call of {}", function.path()),
                Kind::Floats => "floats of a call".into(),
                Kind::View(_) => "view".into(),
                Kind::ShapeOf | Kind::SizeOf(_) | Kind::RankOf => "size".into(),
                Kind::MaxPool(_) => "max pool".into(),
                Kind::AveragePool(_) | Kind::AdaptivePool(_) => "average pool".into(),
                Kind::Matmul => "product".into(),
                Kind::LinearOf => "linear by a weight of the run".into(),
                Kind::NormOf(_) => "norm by weights of the run".into(),
                Kind::EmbeddingOf => "embedding by a table of the run".into(),
                Kind::AddRows => "rows added at indices".into(),
                Kind::TakeAlong(_) => "elements at indices".into(),
                Kind::AddAlong(_) => "elements added at indices".into(),
                Kind::ConvWeight(_) => "gradient of the weights of a convolution".into(),
                Kind::ConvTranspose(_) => "transposed convolution by a weight of the run".into(),
                Kind::Filled(_) => "one number".into(),
                Kind::Attention(_) => "attention".into(),
                Kind::AttentionBack(_) => "gradients of attention".into(),
                Kind::Softmax(_) | Kind::LogSoftmax(_) => "softmax".into(),
                Kind::Cat(_) | Kind::ImageCat => "concatenation".into(),
                Kind::Append(..) => "concatenation in place".into(),
                Kind::Reduce { how, .. } => match how {
                    Reduction::Mean => "mean".into(),
                    Reduction::Max => "largest".into(),
                    Reduction::Min => "smallest".into(),
                    _ => "sum".into(),
                },
                Kind::Gather { .. } => "places".into(),
                Kind::Pad { .. } => "padding".into(),
                Kind::Convert => "floats of other elements".into(),
                Kind::ConvOf { .. } => "convolution by a weight of the run".into(),
                Kind::Recurrent(..) => "recurrent network by weights of the run".into(),
                Kind::Part(_) => "view".into(),
                Kind::Update(UpdateRule::Adam { .. }) => "update by Adam".into(),
                Kind::Update(_) => "update by SGD".into(),
                Kind::ImageAdd(activation) => with("sum of images", *activation),
                Kind::ImageActivate(activation) => with("image", *activation),
                Kind::ImageScale => "channels scaled".into(),
                Kind::ImagePlaces { .. } => "places".into(),
                Kind::ImagePad { .. } => "padding".into(),
                Kind::ToImage => "to blocks of channels".into(),
                Kind::ToArray => "from blocks of channels".into(),
                _ => "value".into(),
            },
        }
    }
}

/// Reads the floats of a tensor in order, where they are; those of 16 bits are converted.
fn with_floats<R>(tensor: &Tensor, read: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let data = tensor.to_dtype(DType::F32)?;
    let data = data.candle()?.contiguous().map_err(Error::other)?;
    let (storage, layout) = data.storage_and_layout();
    let floats = slice(&storage)?;
    Ok(read(
        &floats[layout.start_offset()..][..layout.shape().elem_count()],
    ))
}

/// A copy of the floats of a tensor, in order.
pub(super) fn floats_of(tensor: &Tensor) -> Result<Buffer> {
    with_floats(tensor, Buffer::from_slice)
}

fn weight(tensor: Option<&Tensor>) -> Result<Weight> {
    tensor.map(|t| floats_of(t).map(Arc::new)).transpose()
}

fn packed(kind: Kind, options: &Options) -> Result<Kernel> {
    Ok(match kind {
        Kind::Conv {
            spec,
            weight: tensor,
            bias,
            activation,
        } => {
            let bias = weight(bias.as_ref())?;
            let options = ConvOptions {
                level: options.level,
                winograd: options.winograd,
                bf16: tensor.dtype().is_ok_and(|dtype| options.is_bf16(dtype)),
            };
            let conv = with_floats(&tensor, |floats| {
                Conv2d::new(spec, floats, bias.as_ref().map(|b| &***b), options)
            })?;
            Kernel::Conv {
                conv: Box::new(conv.map_err(Error::other)?),
                activation,
            }
        }
        Kind::Linear {
            weight: matrix,
            bias,
            activation,
            order,
        } => Kernel::Linear {
            matrix: matrix::packed(&matrix, options)?,
            bias: weight(bias.as_ref())?,
            activation,
            order,
        },
        Kind::LayerNorm {
            size,
            weight: scale,
            bias,
            eps,
        } => Kernel::LayerNorm {
            size,
            weight: weight(scale.as_ref())?,
            bias: weight(bias.as_ref())?,
            eps,
        },
        Kind::RmsNorm {
            size,
            weight: scale,
            eps,
        } => Kernel::RmsNorm {
            size,
            weight: weight(scale.as_ref())?,
            eps,
        },
        Kind::Embedding(table) => {
            let [_, size] = table.dims()?[..] else {
                return Err(Error::msg("the table of an embedding has two dimensions"));
            };
            Kernel::Embedding {
                table: table.candle()?.contiguous().map_err(Error::other)?,
                size,
            }
        }
        Kind::ChannelAffine {
            factors,
            shifts,
            activation,
            is_image,
        } => Kernel::ChannelAffine {
            factors: floats_of(&factors)?,
            shifts: floats_of(&shifts)?,
            activation,
            tape: (!is_image).then(|| affine(activation)),
        },
        Kind::Recurrent(how, Some(weights)) => {
            let floats: Vec<Buffer> = weights.iter().map(floats_of).collect::<Result<_>>()?;
            let dims = weights.iter().map(Tensor::dims);
            let dims: Vec<&[usize]> = dims.collect::<Result<_>>()?;
            let lent: Vec<(&[f32], &[usize])> = floats
                .iter()
                .zip(dims)
                .map(|(floats, dims)| (&**floats, dims))
                .collect();
            Kernel::Recurrent(how, Box::new(recurrent::network(how, &lent)?))
        }
        Kind::Pointwise(points) => Kernel::Tape(tape(&points)),
        Kind::ImagePointwise(points, channels) => {
            let channels = channels.iter().map(floats_of).collect::<Result<_>>()?;
            Kernel::ImageTape(tape(&points), channels)
        }
        kind => Kernel::Plain(kind),
    })
}
/// `activation(x * factor + shift)`, of three inputs.
fn affine(activation: Activation) -> Tape {
    let mut chain = Chain::new();
    let [x, factor, shift] = [chain.input(), chain.input(), chain.input()];
    let y = chain.mul_add(x, factor, shift);
    let y = chain.unary(Unary::Activation(activation), y);
    chain.finish(&[y])
}

fn tape(points: &[PointOp]) -> Tape {
    let mut chain = Chain::new();
    let count = points.iter().filter_map(|point| match point {
        PointOp::Input(at) => Some(at + 1),
        _ => None,
    });
    let inputs: Vec<_> = (0..count.max().unwrap_or(0))
        .map(|_| chain.input())
        .collect();
    let mut values = Vec::with_capacity(points.len());
    for point in points {
        values.push(match *point {
            PointOp::Input(at) => inputs[at],
            PointOp::Number(x) => chain.constant(x),
            PointOp::Unary(f, a) => chain.unary(f, values[a]),
            PointOp::Binary(f, a, b) => chain.binary(f, values[a], values[b]),
            PointOp::Select(a, b, c) => chain.select(values[a], values[b], values[c]),
        });
    }
    let result = values.last().copied();
    chain.finish(result.as_slice())
}
