//! What each kernel does with registers.
//!
//! Invariant: a step writes what its inputs' sizes say, or fails.

use std::borrow::Cow;
use std::sync::Arc;

use candle_core::{CpuStorage, Storage};
use fx_core::value::Value;
use fx_core::{Error, Result};
use fx_kernels::conv::{self, Blocked, Conv2d, ConvFinish, ConvOptions, ConvSpec};
use fx_kernels::matrix::{Finish, linear};
use fx_kernels::pointwise::{Operand, Tape};
use fx_kernels::reduce::{Reduction, reduce};
use fx_kernels::{Buffer, SizeError, embedding, gather, norm};
use smallvec::SmallVec;

use super::array::{Array, Dims};
use super::draft::{Id, Kind};
use super::frame::{
    Reading, Register, array, filled, image, place, room_of, sizes_differ, slice, spread,
};
use super::memory::{ImageSizes, Pool, sizes_of};
use super::over;
use super::program::{Kernel, Step};
use super::types::float_type;
use crate::Tensor;

impl Reading<'_> {
    /// Runs a step.
    pub fn step(&self, step: &Step, pool: &mut Pool) -> Result<Register> {
        let level = self.level;
        let inputs = &step.inputs;
        match &step.kernel {
            Kernel::Plain(kind) => self.plain(step, kind, pool),
            Kernel::Conv { conv, activation } => {
                let spec = conv.spec();
                let [batch, _, height, width] = self.dims(inputs[0])?[..] else {
                    return Err(Error::msg("an image has four dimensions"));
                };
                let size = spec.out_size(height, width);
                let sizes = (batch, spec.out_channels, size.0, size.1, step.halo);
                let finish = ConvFinish {
                    adds: inputs.len() > 1,
                    activation: *activation,
                };
                if let Register::Image(x) = &self.registers[inputs[0]] {
                    return self.convolved(step, sizes, pool, |out| conv.run(x, finish, out));
                }
                let x = self.array(inputs[0], pool)?;
                let x = self.contiguous(x, pool)?;
                let size = (batch, height, width);
                self.convolved(step, sizes, pool, |out| {
                    conv.run_nchw(self.floats(&x), size, finish, out)
                })
            }
            Kernel::Linear {
                matrix,
                bias,
                activation,
                order,
            } => {
                let x = self.array(inputs[0], pool)?;
                let x = self.contiguous(x, pool)?;
                let mut dims = x.dims.clone();
                match dims.last_mut() {
                    Some(last) if *last == matrix.inputs() => *last = matrix.outputs(),
                    _ => return Err(Error::msg("the input of a linear layer has another width")),
                }
                let rows = x.numel().checked_div(matrix.inputs()).unwrap_or(0);
                let residual = match inputs.get(1) {
                    Some(id) => {
                        let residual = self.array(*id, pool)?;
                        let residual = residual
                            .expanded(&dims)
                            .ok_or_else(|| Error::msg("a sum changes the sizes"))?;
                        Some(self.contiguous(residual, pool)?)
                    }
                    None => None,
                };
                let finish = Finish {
                    bias: bias.as_ref().map(|bias| &***bias),
                    residual: residual.as_ref().map(|array| self.floats(array)),
                    activation: *activation,
                    order: *order,
                };
                array(dims, pool, |out| {
                    linear(level, rows, self.floats(&x), matrix, finish, out)
                })
            }
            Kernel::LayerNorm {
                size,
                weight,
                bias,
                eps,
            } => self.rows(inputs[0], *size, pool, |x, out| {
                let (weight, bias) = (weight.as_ref(), bias.as_ref());
                let (weight, bias) = (weight.map(|w| &***w), bias.map(|b| &***b));
                norm::layer_norm(level, *size, x, weight, bias, *eps, out)
            }),
            Kernel::RmsNorm { size, weight, eps } => self.rows(inputs[0], *size, pool, |x, out| {
                let weight = weight.as_ref().map(|w| &***w);
                norm::rms_norm(level, *size, x, weight, *eps, out)
            }),
            Kernel::ChannelAffine {
                factors,
                shifts,
                activation,
                tape: None,
            } => {
                let x = self.image(inputs[0])?;
                image(sizes_of(x, step.halo), pool, |out| {
                    conv::affine(level, x, factors, shifts, *activation, out)
                })
            }
            Kernel::ChannelAffine {
                factors,
                shifts,
                tape: Some(tape),
                ..
            } => {
                let x = self.array(inputs[0], pool)?;
                let mut channels: Dims = SmallVec::from_elem(0, x.dims.len());
                match channels.get_mut(1) {
                    Some(stride) if x.dims[1] == factors.len() => *stride = 1,
                    _ => return Err(Error::msg("a batch norm is over other channels")),
                }
                let operands = [
                    self.operand(&x),
                    Operand::full(factors, &channels),
                    Operand::full(shifts, &channels),
                ];
                array(x.dims.clone(), pool, |out| {
                    tape.run(level, &x.dims, &operands, &mut [out])
                })
            }
            Kernel::Embedding { table, size } => self.embedding(inputs[0], table, *size, pool),
            Kernel::ImageTape(tape, channels) => self.image_tape(step, tape, channels, pool),
            Kernel::Recurrent(how, network) => self.recurrent(inputs, *how, network, pool),
            Kernel::Tape(tape) => self.pointwise(tape, inputs, pool),
        }
    }

    /// The floating-point operations that a step did, whose result is `made`; 0 where few.
    pub fn flops(&self, step: &Step, made: &Register) -> u64 {
        let results = match made {
            Register::Array(array) => array.numel(),
            Register::Image(x) => x.batch() * x.channels() * x.height() * x.width(),
            _ => 0,
        };
        let last = |at: usize| match step.inputs.get(at).map(|id| &self.registers[*id]) {
            Some(Register::Array(array)) => array.dims.last().copied().unwrap_or(1),
            _ => 0,
        };
        let depth = match &step.kernel {
            Kernel::Conv { conv, .. } => {
                let spec = conv.spec();
                spec.group_in() * spec.kernel[0] * spec.kernel[1]
            }
            Kernel::Linear { matrix, .. } => matrix.inputs(),
            Kernel::Plain(Kind::Matmul) => last(0),
            Kernel::Plain(Kind::Attention(_)) => {
                // For each result a score of each key, and its share of the values.
                let keys = match &self.registers[step.inputs[1]] {
                    Register::Array(k) => k.dims.iter().rev().nth(1).copied().unwrap_or(1),
                    _ => 0,
                };
                keys * (last(0) + last(2)) / last(2).max(1)
            }
            _ => 0,
        };
        2 * results as u64 * depth as u64
    }

    /// The result of a convolution, in place of its residual if it has one that nothing else reads.
    fn convolved(
        &self,
        step: &Step,
        sizes: ImageSizes,
        pool: &mut Pool,
        run: impl FnOnce(&mut Blocked) -> Result<(), SizeError>,
    ) -> Result<Register> {
        let Some(id) = step.inputs.get(1) else {
            return image(sizes, pool, run);
        };
        let residual = match pool.adds_to.take() {
            Some(residual) => residual,
            None => Arc::clone(self.image(*id)?),
        };
        if sizes_of(&residual, step.halo) != sizes {
            return Err(Error::msg("a sum changes the sizes of an image"));
        }
        let run = |out: &mut Blocked| run(out).map_err(sizes_differ);
        let made = pool.image_over(self.level, residual, step.halo, run)?;
        Ok(Register::Image(made))
    }

    /// Rows of a size to rows of the same size.
    pub(super) fn rows(
        &self,
        id: Id,
        size: usize,
        pool: &mut Pool,
        run: impl FnOnce(&[f32], &mut [f32]) -> Result<(), SizeError>,
    ) -> Result<Register> {
        let x = self.array(id, pool)?;
        if x.dims.last() != Some(&size) {
            return Err(Error::msg("the rows of a norm have another size"));
        }
        let x = self.contiguous(x, pool)?;
        array(x.dims.clone(), pool, |out| run(self.floats(&x), out))
    }

    fn embedding(
        &self,
        id: Id,
        table: &candle_core::Tensor,
        size: usize,
        pool: &mut Pool,
    ) -> Result<Register> {
        let (mut dims, places) = self.indices(id)?;
        dims.push(size);
        let (storage, layout) = table.storage_and_layout();
        let of = layout.start_offset()..layout.start_offset() + layout.shape().elem_count();
        macro_rules! gathered {
            ($table:expr) => {
                array(dims, pool, |out| {
                    embedding::gather(size, &$table[of], &places, out)
                })
            };
        }
        match &*storage {
            Storage::Cpu(CpuStorage::F16(table)) => gathered!(table),
            Storage::Cpu(CpuStorage::BF16(table)) => gathered!(table),
            storage => {
                let table = slice(storage)?;
                gathered!(table)
            }
        }
    }

    fn plain(&self, step: &Step, kind: &Kind, pool: &mut Pool) -> Result<Register> {
        let level = self.level;
        let inputs = &step.inputs;
        Ok(match kind {
            Kind::Host {
                function,
                args,
                items,
            } => {
                let values = args.iter().map(|arg| {
                    arg.to_value(&mut |node| {
                        let id = items.get(&node).copied();
                        let id = id.ok_or_else(|| Error::msg("an operand was not computed"))?;
                        self.value(id, self.halves.get(&node).copied())
                    })
                });
                let values: SmallVec<[Value; 6]> = values.collect::<Result<_>>()?;
                let lent: SmallVec<[&Value; 6]> = values.iter().collect();
                let mut out = Value::None;
                function.run(&lent, &mut out)?;
                Register::Value(out)
            }
            Kind::Floats => {
                let Register::Value(value) = &self.registers[inputs[0]] else {
                    return Err(Error::msg("a call gave no value"));
                };
                let tensor = value.downcast_ref::<Tensor>();
                // What was known of the call does not hold in this run.
                let dtype = tensor.and_then(|tensor| tensor.dtype().ok());
                if dtype.and_then(float_type).is_none() {
                    return Err(Error::msg("a call gave no tensor of floats"));
                }
                Register::Array(self.array(inputs[0], pool)?)
            }
            Kind::ShapeOf => {
                let dims = self.dims(inputs[0])?;
                let sizes = dims.iter().map(|size| Value::Int(*size as i64));
                Register::Value(Value::Tuple(sizes.collect()))
            }
            Kind::SizeOf(dim) => {
                let dims = self.dims(inputs[0])?;
                let size = dims[place(*dim, dims.len())?];
                Register::Value(Value::Int(size as i64))
            }
            Kind::RankOf => Register::Value(Value::Int(self.dims(inputs[0])?.len() as i64)),
            Kind::View(view) => {
                let x = self.array(inputs[0], pool)?;
                Register::Array(self.viewed(x, view, pool)?)
            }
            Kind::MaxPool(spec) | Kind::AveragePool(spec) => {
                let x = self.image(inputs[0])?;
                let (height, width) = spec.out_size(x.height(), x.width());
                if height == 0 || width == 0 {
                    return Err(Error::msg("no window of the pool fits into the image"));
                }
                let sizes = (x.batch(), x.channels(), height, width, step.halo);
                image(sizes, pool, |out| match kind {
                    Kind::MaxPool(_) => conv::max_pool(level, x, spec, out),
                    _ => conv::average_pool(level, x, spec, out),
                })?
            }
            Kind::AdaptivePool([height, width]) => {
                let x = self.image(inputs[0])?;
                let side = |size: i64, same: usize| usize::try_from(size).unwrap_or(same);
                let (height, width) = (side(*height, x.height()), side(*width, x.width()));
                let sizes = (x.batch(), x.channels(), height, width, step.halo);
                image(sizes, pool, |out| {
                    conv::adaptive_average_pool(level, x, out)
                })?
            }
            Kind::Matmul => self.matmul(inputs, pool)?,
            Kind::LinearOf => self.linear_of(inputs, pool)?,
            Kind::NormOf(how) => self.norm_of(inputs, *how, pool)?,
            Kind::EmbeddingOf => self.embedding_of(inputs, pool)?,
            Kind::AddRows => self.add_rows(inputs, pool)?,
            Kind::TakeAlong(dim) => self.take_along(inputs, *dim, pool)?,
            Kind::AddAlong(dim) => self.add_along(inputs, *dim, pool)?,
            Kind::ConvWeight(steps) => self.conv_weight(inputs, *steps, pool)?,
            Kind::ConvTranspose(steps) => self.conv_transpose(inputs, *steps, pool)?,
            Kind::Filled(number) => self.filled_like(inputs[0], *number, pool)?,
            Kind::Attention(how) => self.attention(inputs, *how, pool)?,
            Kind::AttentionBack(how) => self.attention_back(inputs, *how, pool)?,
            Kind::Softmax(dim) | Kind::LogSoftmax(dim) => {
                let x = self.array(inputs[0], pool)?;
                let dim = place(*dim, x.dims.len())?;
                let last = x.dims.len() - 1;
                let mut order: Dims = (0..x.dims.len()).collect();
                order.swap(dim, last);
                let size = x.dims[dim];
                if dim == last
                    && let Some(own) = pool.taken_over(inputs[0], &x.dims)
                {
                    drop(x);
                    return over::write(own, pool, |out| match kind {
                        Kind::Softmax(_) => norm::softmax_in_place(level, size, out),
                        _ => norm::log_softmax_in_place(level, size, out),
                    });
                }
                let x = self.contiguous(x.permuted(&order), pool)?;
                let made = filled(x.dims.clone(), pool, |out| {
                    let x = self.floats(&x);
                    let run = match kind {
                        Kind::Softmax(_) => norm::softmax(level, size, x, out),
                        _ => norm::log_softmax(level, size, x, out),
                    };
                    run.map_err(sizes_differ)
                })?;
                Register::Array(made.permuted(&order))
            }
            Kind::Cat(dim) => self.cat(inputs, *dim, pool)?,
            Kind::Append(dim, half) => self.append(inputs, *dim, *half, pool)?,
            Kind::Reduce { how, dims, keepdim } => {
                self.reduced(inputs[0], *how, (dims, *keepdim), pool)?
            }
            Kind::Gather { dim, places } => self.gathered(inputs[0], *dim, places, pool)?,
            Kind::Pad { sides, value } => self.padded(inputs[0], sides, *value, pool)?,
            Kind::Convert => Register::Array(self.array(inputs[0], pool)?),
            Kind::ConvOf {
                groups,
                stride,
                padding,
                dilation,
            } => {
                let spec = ConvSpec {
                    groups: *groups,
                    stride: *stride,
                    padding: *padding,
                    dilation: *dilation,
                    ..ConvSpec::new(1, 1, 1)
                };
                self.convolved_by(step, spec, pool)?
            }
            Kind::Recurrent(how, _) => self.recurrent_by(inputs, *how, pool)?,
            Kind::Part(at) => match &self.registers[inputs[0]] {
                Register::Parts(parts) => {
                    let part = parts.get(*at).cloned();
                    Register::Array(
                        part.ok_or_else(|| Error::msg("a network gives fewer results"))?,
                    )
                }
                _ => return Err(Error::msg("a network gave no results")),
            },
            Kind::ImageAdd(activation) => {
                let (a, b) = (self.image(inputs[0])?, self.image(inputs[1])?);
                let sizes = sizes_of(a, step.halo);
                image(sizes, pool, |out| conv::add(level, a, b, *activation, out))?
            }
            Kind::ImageActivate(activation) => {
                let x = self.image(inputs[0])?;
                let sizes = sizes_of(x, step.halo);
                image(sizes, pool, |out| {
                    conv::activate(level, x, *activation, out)
                })?
            }
            Kind::ImageScale => {
                let (x, gates) = (self.image(inputs[0])?, self.image(inputs[1])?);
                if (gates.height(), gates.width()) != (1, 1) {
                    return Err(Error::msg("channels are scaled by one number each"));
                }
                let count: Dims = SmallVec::from_slice(&[gates.batch(), gates.channels()]);
                let gates = filled(count, pool, |out| gates.to_nchw(out).map_err(sizes_differ))?;
                let gates = self.floats(&gates);
                let sizes = sizes_of(x, step.halo);
                let none = fx_kernels::Activation::None;
                image(sizes, pool, |out| conv::scale(level, x, gates, none, out))?
            }
            Kind::ImageCat => {
                let parts: Result<SmallVec<[&Blocked; 8]>> = inputs
                    .iter()
                    .map(|id| self.image(*id).map(|i| &**i))
                    .collect();
                let parts = parts?;
                let channels = parts.iter().map(|part| part.channels()).sum();
                let first = parts.first();
                let first = first.ok_or_else(|| Error::msg("nothing is concatenated"))?;
                let sizes = (
                    first.batch(),
                    channels,
                    first.height(),
                    first.width(),
                    step.halo,
                );
                image(sizes, pool, |out| conv::concat_channels(&parts, out))?
            }
            Kind::ImagePlaces { is_row, places } => {
                let x = self.image(inputs[0])?;
                let side = if *is_row { x.height() } else { x.width() };
                if places.iter().any(|at| *at >= side) {
                    return Err(Error::msg("an index is behind the end"));
                }
                let (batch, channels, height, width, halo) = sizes_of(x, step.halo);
                let sizes = match is_row {
                    true => (batch, channels, places.len(), width, halo),
                    false => (batch, channels, height, places.len(), halo),
                };
                image(sizes, pool, |out| conv::places(x, *is_row, places, out))?
            }
            Kind::ImagePad { sides, value } => {
                let x = self.image(inputs[0])?;
                let (batch, channels, height, width, halo) = sizes_of(x, step.halo);
                let more = |side: usize, at: usize| {
                    let sum = side.checked_add(sides[at][0])?;
                    sum.checked_add(sides[at][1])
                };
                let larger = more(height, 1).zip(more(width, 0));
                let (height, width) =
                    larger.ok_or_else(|| Error::msg("the padded sizes are too large"))?;
                if height == 0 || width == 0 {
                    return Err(Error::msg("nothing is left of a dimension"));
                }
                let sizes = (batch, channels, height, width, halo);
                image(sizes, pool, |out| {
                    conv::pad(x, sides[1], sides[0], *value, out)
                })?
            }
            Kind::ToImage => {
                let x = self.array(inputs[0], pool)?;
                let [batch, channels, height, width] = x.dims[..] else {
                    return Err(Error::msg("an image has four dimensions"));
                };
                let x = self.contiguous(x, pool)?;
                let sizes = (batch, channels, height, width, step.halo);
                image(sizes, pool, |out| out.copy_from_nchw(self.floats(&x)))?
            }
            Kind::ToArray => {
                let x = self.image(inputs[0])?;
                let dims = self.dims(inputs[0])?;
                array(dims, pool, |out| x.to_nchw(out))?
            }
            _ => return Err(Error::msg("an item has no kernel")),
        })
    }

    /// An array as it lies, for a tape.
    pub(super) fn operand<'a>(&'a self, array: &'a Array) -> Operand<'a> {
        Operand {
            data: self.memory(array),
            start: array.start,
            strides: &array.strides,
        }
    }

    /// Steps of images and of numbers of channels.
    fn image_tape(
        &self,
        step: &Step,
        tape: &Tape,
        channels: &[Buffer],
        pool: &mut Pool,
    ) -> Result<Register> {
        let images: SmallVec<[&Blocked; 4]> = step
            .inputs
            .iter()
            .map(|id| self.image(*id).map(|image| &**image))
            .collect::<Result<_>>()?;
        // An image of one pixel stands for each.
        let is_pixel = |image: &&&Blocked| (image.height(), image.width()) == (1, 1);
        let mut larger = images.iter().filter(|image| !is_pixel(image));
        let first = larger.next().or(images.first());
        let first = first.ok_or_else(|| Error::msg("no image is there"))?;
        let sizes = sizes_of(first, step.halo);
        let fits = |image: &&Blocked| {
            let own = sizes_of(image, step.halo);
            own == sizes || (is_pixel(&image) && (own.0, own.1) == (sizes.0, sizes.1))
        };
        let is_spread = |floats: &Buffer| floats.len() == 1 || floats.len() == sizes.1;
        if !images.iter().all(fits) || !channels.iter().all(is_spread) {
            return self.uneven_tape(step, tape, channels, pool);
        }
        // A number for all channels stands for each.
        let count = first.channels();
        let each: SmallVec<[Cow<'_, [f32]>; 4]> = channels
            .iter()
            .map(|floats| match floats[..] {
                [one] => Cow::Owned(vec![one; count]),
                _ => Cow::Borrowed(&floats[..]),
            })
            .collect();
        let lent: SmallVec<[&[f32]; 4]> = each.iter().map(|floats| &**floats).collect();
        image(sizes, pool, |out| {
            conv::pointwise(self.level, tape, &images, &lent, out)
        })
    }

    /// Steps of images of several sizes, which are broadcast.
    fn uneven_tape(
        &self,
        step: &Step,
        tape: &Tape,
        channels: &[Buffer],
        pool: &mut Pool,
    ) -> Result<Register> {
        let mut arrays: SmallVec<[Array; 6]> = SmallVec::new();
        for id in &step.inputs {
            let (x, dims) = (self.image(*id)?, self.dims(*id)?);
            arrays.push(filled(dims, pool, |out| {
                x.to_nchw(out).map_err(sizes_differ)
            })?);
        }
        for floats in channels {
            let dims = SmallVec::from_slice(&[floats.len(), 1, 1]);
            arrays.push(filled(dims, pool, |out| {
                out.copy_from_slice(floats);
                Ok(())
            })?);
        }
        let (dims, arrays) = spread(&arrays)?;
        let operands: SmallVec<[Operand<'_>; 6]> =
            arrays.iter().map(|array| self.operand(array)).collect();
        let made = filled(dims.clone(), pool, |out| {
            let run = tape.run(self.level, &dims, &operands, &mut [out]);
            run.map_err(sizes_differ)
        })?;
        let [batch, channels, height, width] = dims[..] else {
            return Err(Error::msg("an image has four dimensions"));
        };
        let sizes = (batch, channels, height, width, step.halo);
        image(sizes, pool, |out| out.copy_from_nchw(self.floats(&made)))
    }

    fn cat(&self, inputs: &[Id], dim: i64, pool: &mut Pool) -> Result<Register> {
        let parts: Result<SmallVec<[Array; 8]>> =
            inputs.iter().map(|id| self.array(*id, pool)).collect();
        // An empty tensor of one dimension fits everything.
        let mut parts = parts?;
        parts.retain(|part| part.dims[..] != [0]);
        let first = parts.first();
        let first = first.ok_or_else(|| Error::msg("nothing is concatenated"))?;
        let dim = place(dim, first.dims.len())?;
        let mut dims = first.dims.clone();
        dims[dim] = 0;
        for part in &parts {
            let fits = part.dims.len() == dims.len();
            let mut sizes = part.dims.iter().zip(&dims).enumerate();
            if !fits || !sizes.all(|(at, (a, b))| at == dim || a == b) {
                return Err(Error::msg("the sizes of what is concatenated differ"));
            }
            dims[dim] += part.dims[dim];
        }
        let outer: usize = dims[..dim].iter().product();
        let inner: usize = dims[dim + 1..].iter().product();
        let parts: Result<SmallVec<[Array; 8]>> = parts
            .into_iter()
            .map(|part| self.contiguous(part, pool))
            .collect();
        let parts = parts?;
        array(dims, pool, |out| {
            let lent: SmallVec<[(&[f32], usize); 8]> = parts
                .iter()
                .map(|part| (self.floats(part), part.dims[dim] * inner))
                .collect();
            gather::join(outer, &lent, out)
        })
    }

    /// Reduces some dimensions of an array, or all if none are named.
    fn reduced(
        &self,
        id: Id,
        how: Reduction,
        (dims, keepdim): (&[i64], bool),
        pool: &mut Pool,
    ) -> Result<Register> {
        let x = self.array(id, pool)?;
        let rank = x.dims.len();
        let mut is_gone: SmallVec<[bool; 6]> = SmallVec::from_elem(dims.is_empty(), rank);
        for dim in dims {
            if rank == 0 && matches!(dim, -1 | 0) {
                continue;
            }
            let is_gone = &mut is_gone[place(*dim, rank)?];
            if std::mem::replace(is_gone, true) {
                return Err(Error::msg("a reduction is over a dimension twice"));
            }
        }
        let size = |gone: bool| -> usize {
            let left = (0..rank).filter(|at| is_gone[*at] == gone);
            left.map(|at| x.dims[at]).product()
        };
        let (count, all) = (size(true), size(false));
        if count == 0 && matches!(how, Reduction::Max | Reduction::Min) {
            return Err(Error::msg("there is nothing to take the largest of"));
        }
        let left: Dims = (0..rank)
            .filter(|at| keepdim || !is_gone[*at])
            .map(|at| if is_gone[at] { 1 } else { x.dims[at] })
            .collect();
        // Dimensions next to each other are reduced where they are; others go to the end.
        let first = is_gone.iter().position(|gone| *gone).unwrap_or(rank);
        let last = is_gone
            .iter()
            .rposition(|gone| *gone)
            .map_or(first, |at| at + 1);
        let (x, sizes) = match is_gone[first..last].iter().all(|gone| *gone) {
            true => {
                let outer = x.dims[..first].iter().product();
                let inner = x.dims[last..].iter().product();
                (x, [outer, count, inner])
            }
            false => {
                let kept = (0..rank).filter(|at| !is_gone[*at]);
                let order: Dims = kept.chain((0..rank).filter(|at| is_gone[*at])).collect();
                (x.permuted(&order), [all, count, 1])
            }
        };
        let x = self.contiguous(x, pool)?;
        array(left, pool, |out| {
            reduce(self.level, how, sizes, self.floats(&x), out)
        })
    }

    /// Places of a dimension of an array.
    fn gathered(&self, id: Id, dim: i64, places: &[usize], pool: &mut Pool) -> Result<Register> {
        let x = self.array(id, pool)?;
        let dim = place(dim, x.dims.len())?;
        if places.iter().any(|at| *at >= x.dims[dim]) {
            return Err(Error::msg("an index is behind the end"));
        }
        let mut dims = x.dims.clone();
        dims[dim] = places.len();
        let outer = x.dims[..dim].iter().product();
        let inner = x.dims[dim + 1..].iter().product();
        let sizes = [outer, x.dims[dim], inner];
        let x = self.contiguous(x, pool)?;
        array(dims, pool, |out| {
            gather::places(sizes, self.floats(&x), places, out)
        })
    }

    /// An array with elements of a number around its last dimensions.
    fn padded(
        &self,
        id: Id,
        sides: &[[usize; 2]],
        value: f32,
        pool: &mut Pool,
    ) -> Result<Register> {
        let x = self.array(id, pool)?;
        let rank = x.dims.len();
        if sides.len() > rank {
            return Err(Error::msg("there are more sides than dimensions"));
        }
        let side = |at: usize, which: usize| sides.get(rank - 1 - at).map_or(0, |side| side[which]);
        let before: Dims = (0..rank).map(|at| side(at, 0)).collect();
        let after: Dims = (0..rank).map(|at| side(at, 1)).collect();
        let larger = |at: usize| {
            let sum = x.dims[at].checked_add(before[at])?;
            sum.checked_add(after[at])
        };
        let dims: Option<Dims> = (0..rank).map(larger).collect();
        let dims = dims.ok_or_else(|| Error::msg("the padded sizes are too large"))?;
        if dims.contains(&0) {
            return Err(Error::msg("nothing is left of a dimension"));
        }
        room_of(&dims)?;
        let x = self.contiguous(x, pool)?;
        array(dims, pool, |out| {
            gather::pad(&x.dims, self.floats(&x), &before, &after, value, out)
        })
    }

    /// A convolution whose weight is there only now.
    fn convolved_by(&self, step: &Step, spec: ConvSpec, pool: &mut Pool) -> Result<Register> {
        let inputs = &step.inputs;
        let (x, weight) = (self.array(inputs[0], pool)?, self.array(inputs[1], pool)?);
        let bias = inputs.get(2).map(|id| self.in_order(*id, pool));
        let bias = bias.transpose()?;
        if bias.is_none()
            && let Some(made) = self.convolved_as_product(&x, &weight, spec, pool)?
        {
            return Ok(made);
        }
        self.convolved_arrays(x, weight, bias, spec, pool)
    }

    /// A convolution of arrays.
    pub(super) fn convolved_arrays(
        &self,
        mut x: Array,
        weight: Array,
        bias: Option<Array>,
        spec: ConvSpec,
        pool: &mut Pool,
    ) -> Result<Register> {
        let is_single = x.dims.len() == 3;
        if is_single {
            x = x.with_one(0);
        }
        let ([batch, channels, height, width], [out_channels, group_in, rows, columns]) =
            (&x.dims[..], &weight.dims[..])
        else {
            return Err(Error::msg("a convolution is of images by windows"));
        };
        let spec = ConvSpec {
            in_channels: group_in * spec.groups,
            out_channels: *out_channels,
            kernel: [*rows, *columns],
            ..spec
        };
        if spec.in_channels != *channels {
            return Err(Error::msg("a convolution is of other channels"));
        }
        if x.numel() == 0 {
            return Err(Error::msg("a convolution is of images without elements"));
        }
        let size = (*batch, *height, *width);
        let (x, weight) = (self.contiguous(x, pool)?, self.contiguous(weight, pool)?);
        let options = ConvOptions {
            level: self.level,
            winograd: false,
            bf16: false,
        };
        let bias = bias.as_ref().map(|bias| self.floats(bias));
        let conv = Conv2d::new(spec, self.floats(&weight), bias, options).map_err(sizes_differ)?;
        let (height, width) = spec.out_size(size.1, size.2);
        let sizes = (size.0, spec.out_channels, height, width, 0);
        let made = pool.image(sizes, |out| {
            let run = conv.run_nchw(self.floats(&x), size, ConvFinish::default(), out);
            run.map_err(sizes_differ)
        })?;
        let mut dims: Dims = SmallVec::from_slice(&[size.0, spec.out_channels, height, width]);
        if is_single {
            dims.remove(0);
        }
        array(dims, pool, |out| made.to_nchw(out))
    }
}
