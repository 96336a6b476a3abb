//! The steps of a graph of integers, and their run.
//!
//! Invariant: a step writes registers of its own; memory of a register that nothing reads any more is used again.

use std::borrow::Cow;
use std::sync::Mutex;
use std::time::Instant;

use fx_core::passes::backend::{Executable, StepReport, StepRun};
use fx_core::trace::FromValue;
use fx_core::value::{DType, Value};
use fx_core::{Error, Result};
use fx_kernels::Level;
use fx_kernels::integer::{
    Bytes, IntegerConv, Rounding, Term, Windows, add, average_pool, clamp, dequantize, max_pool,
    quantize, rescale,
};
use fx_nn::Tensor;

/// A register of bytes.
pub(super) type Id = usize;

/// What a step does.
#[derive(Debug)]
pub(super) enum Kernel {
    /// The floats of an input, times the inverse of the scale.
    Quantize {
        input: usize,
        inverse: f32,
        rounding: Rounding,
    },
    /// A product of images, or of rows.
    Product {
        x: Id,
        conv: IntegerConv,
        of_rows: bool,
    },
    /// A product of rows, whose result is floats.
    ToFloats {
        x: Id,
        conv: IntegerConv,
    },
    Add {
        a: (Id, Term),
        b: (Id, Term),
        rounding: Rounding,
    },
    Clamp {
        x: Id,
        low: u8,
        high: u8,
    },
    Rescale {
        x: (Id, Term),
        rounding: Rounding,
    },
    MaxPool {
        x: Id,
        windows: Windows,
    },
    AveragePool {
        x: Id,
        windows: Option<Windows>,
        scale: f32,
        zero_point: u8,
        counts: bool,
        rounding: Rounding,
    },
    /// Dims from one up to another as one.
    Flatten {
        x: Id,
        start: i64,
        end: i64,
    },
    Dequantize {
        x: Id,
        scale: f32,
        zero_point: u8,
    },
}

/// A step, and the registers that nothing reads after it.
#[derive(Debug)]
pub(super) struct Step {
    pub kernel: Kernel,
    pub to: Id,
    pub frees: Vec<Id>,
    pub report: StepReport,
}

/// The steps of a part.
#[derive(Debug)]
pub(super) struct Program {
    pub level: Level,
    pub steps: Vec<Step>,
    pub registers: usize,
    /// The registers of the results, and whether there are several.
    pub results: Vec<Id>,
    pub is_tuple: bool,
    /// Memory between runs.
    pub rooms: Mutex<Rooms>,
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    free: Vec<Vec<u32>>,
    scratch: Vec<u32>,
}

enum Register {
    Empty,
    /// Bytes, and the sizes of the tensor that they are.
    Bytes(Bytes, Vec<usize>),
    Floats(Tensor),
}

/// The sizes of the images that a tensor is: four dims are images, others rows.
fn image_of(dims: &[usize]) -> (usize, usize, usize, usize) {
    match *dims {
        [batch, channels, height, width] => (batch, height, width, channels),
        [.., last] => (dims[..dims.len() - 1].iter().product(), 1, 1, last),
        [] => (1, 1, 1, 1),
    }
}

/// The bytes in the order of a tensor's elements.
fn plain(x: &Bytes) -> Vec<u8> {
    let (batch, height, width, channels) = x.sizes();
    let (pixels, stride) = (height * width, x.stride());
    let mut out = vec![0; batch * pixels * channels];
    for (pixel, words) in x.words().chunks_exact(stride.max(1)).enumerate() {
        let (image, at) = (pixel / pixels.max(1), pixel % pixels.max(1));
        for channel in 0..channels {
            let byte = words[channel / 4].to_ne_bytes()[channel % 4];
            out[(image * channels + channel) * pixels + at] = byte;
        }
    }
    out
}

/// Bytes in the order of a tensor's elements as images.
fn imaged(bytes: &[u8], dims: &[usize], words: Vec<u32>) -> Bytes {
    let (batch, height, width, channels) = image_of(dims);
    let mut out = Bytes::reusing(words, (batch, height, width, channels));
    let (pixels, stride) = (height * width, out.stride());
    for (pixel, words) in out.words_mut().chunks_exact_mut(stride.max(1)).enumerate() {
        let (image, at) = (pixel / pixels.max(1), pixel % pixels.max(1));
        for (word, to) in words.iter_mut().enumerate() {
            let of = |byte: usize| match word * 4 + byte < channels {
                true => bytes[(image * channels + word * 4 + byte) * pixels + at],
                false => 0,
            };
            *to = u32::from_ne_bytes([of(0), of(1), of(2), of(3)]);
        }
    }
    out
}

/// Runs a function on the floats of a tensor.
fn with_floats<R>(x: &Tensor, run: impl FnOnce(&[f32]) -> Result<R>) -> Result<R> {
    let x = x.candle()?.contiguous().map_err(Error::other)?;
    let (storage, layout) = x.storage_and_layout();
    match &*storage {
        candle_core::Storage::Cpu(candle_core::CpuStorage::F32(all)) => {
            let start = layout.start_offset();
            run(&all[start..start + layout.shape().elem_count()])
        }
        _ => Err(Error::msg("an input is not `float32` on the CPU")),
    }
}

struct Run<'p, 'v> {
    program: &'p Program,
    inputs: &'p [&'v Value],
    registers: Vec<Register>,
    rooms: Rooms,
}

impl Run<'_, '_> {
    fn bytes(&self, id: Id) -> Result<(&Bytes, &[usize])> {
        match &self.registers[id] {
            Register::Bytes(bytes, dims) => Ok((bytes, dims)),
            _ => Err(Error::msg("a register has no bytes")),
        }
    }

    fn room(&mut self) -> Vec<u32> {
        self.rooms.free.pop().unwrap_or_default()
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let level = self.program.level;
        let words = self.room();
        let made = match &step.kernel {
            Kernel::Quantize {
                input,
                inverse,
                rounding,
            } => {
                let x = Tensor::from_value((*self.inputs[*input]).clone())?;
                let dims = x.dims()?.to_vec();
                let mut out = Bytes::reusing(words, image_of(&dims));
                with_floats(&x, |x| {
                    quantize(level, x, *inverse, *rounding, &mut out).map_err(Error::other)
                })?;
                Register::Bytes(out, dims)
            }
            Kernel::Product { x, conv, of_rows } => {
                let mut scratch = std::mem::take(&mut self.rooms.scratch);
                let (x, dims) = self.bytes(*x)?;
                let mut dims = dims.to_vec();
                let out = match (*of_rows, &dims[..]) {
                    (false, [_, _, _, _]) => conv.run(level, x, words, &mut scratch),
                    // The last dim of four is not that of channels.
                    (true, [_, _, _, _]) => {
                        let (batch, height, width) = (dims[0] * dims[1], 1, dims[2]);
                        let rows =
                            imaged(&plain(x), &[batch * height * width, dims[3]], Vec::new());
                        conv.run(level, &rows, words, &mut scratch)
                    }
                    (true, _) => conv.run(level, x, words, &mut scratch),
                    (false, _) => return Err(Error::msg("an image has four dims")),
                };
                let mut out = out.map_err(Error::other)?;
                match *of_rows {
                    true => {
                        if let Some(last) = dims.last_mut() {
                            *last = out.channels();
                        }
                        if dims.len() == 4 {
                            out = imaged(&plain(&out), &dims, Vec::new());
                        }
                    }
                    false => dims = vec![out.batch(), out.channels(), out.height(), out.width()],
                }
                self.rooms.scratch = scratch;
                Register::Bytes(out, dims)
            }
            Kernel::ToFloats { x, conv } => {
                let (x, dims) = self.bytes(*x)?;
                let mut dims = dims.to_vec();
                let rows = match dims.len() {
                    4 => Cow::Owned(imaged(
                        &plain(x),
                        &[dims[0] * dims[1] * dims[2], dims[3]],
                        words,
                    )),
                    _ => Cow::Borrowed(x),
                };
                let channels = conv.spec().out_channels;
                let mut out = vec![0.0; rows.pixels() * channels];
                conv.run_to_floats(level, &rows, &mut out)
                    .map_err(Error::other)?;
                if let Some(last) = dims.last_mut() {
                    *last = channels;
                }
                Register::Floats(Tensor::from_vec(out, dims)?)
            }
            Kernel::Add { a, b, rounding } => {
                let ((x, of_x), (y, of_y)) = (a, b);
                let ((x, x_dims), (y, y_dims)) = (self.bytes(*x)?, self.bytes(*y)?);
                if x_dims == y_dims {
                    let sum = add(level, (x, *of_x), (y, *of_y), *rounding, words);
                    Register::Bytes(sum.map_err(Error::other)?, x_dims.to_vec())
                } else {
                    let dims = broadcast(x_dims, y_dims)?;
                    let spread = |x: &Bytes, own: &[usize]| {
                        imaged(&expanded(&plain(x), own, &dims), &dims, Vec::new())
                    };
                    let (x, y) = (spread(x, x_dims), spread(y, y_dims));
                    let sum = add(level, (&x, *of_x), (&y, *of_y), *rounding, words);
                    Register::Bytes(sum.map_err(Error::other)?, dims)
                }
            }
            Kernel::Clamp { x, low, high } => {
                let (x, dims) = self.bytes(*x)?;
                Register::Bytes(clamp(level, x, *low, *high, words), dims.to_vec())
            }
            Kernel::Rescale {
                x: (x, of_x),
                rounding,
            } => {
                let (x, dims) = self.bytes(*x)?;
                Register::Bytes(rescale(level, (x, *of_x), *rounding, words), dims.to_vec())
            }
            Kernel::MaxPool { x, windows } => {
                let (x, dims) = self.bytes(*x)?;
                is_image(dims)?;
                image(max_pool(level, x, *windows, words).map_err(Error::other)?)
            }
            Kernel::AveragePool {
                x,
                windows,
                scale,
                zero_point,
                counts,
                rounding,
            } => {
                let (x, dims) = self.bytes(*x)?;
                is_image(dims)?;
                let windows = windows.unwrap_or(Windows {
                    kernel: [x.height(), x.width()],
                    stride: [1, 1],
                    padding: [0, 0],
                });
                let made = average_pool(
                    level,
                    x,
                    windows,
                    (*scale, *zero_point, *counts),
                    *rounding,
                    words,
                );
                image(made.map_err(Error::other)?)
            }
            Kernel::Flatten { x, start, end } => {
                let (x, dims) = self.bytes(*x)?;
                let rank = dims.len() as i64;
                let at = |dim: i64| {
                    usize::try_from(if dim < 0 { dim + rank } else { dim }).map_err(Error::other)
                };
                let (start, end) = (at(*start)?, at(*end)?);
                if start > end || end >= dims.len() {
                    return Err(Error::msg("the dims to flatten do not exist"));
                }
                let mut flat = dims[..start].to_vec();
                flat.push(dims[start..=end].iter().product());
                flat.extend(&dims[end + 1..]);
                Register::Bytes(imaged(&plain(x), &flat, words), flat)
            }
            Kernel::Dequantize {
                x,
                scale,
                zero_point,
            } => {
                let (x, dims) = self.bytes(*x)?;
                let mut out = vec![0.0; x.pixels() * x.channels()];
                dequantize(level, x, *scale, *zero_point, &mut out).map_err(Error::other)?;
                Register::Floats(Tensor::from_vec(out, dims.to_vec())?)
            }
        };
        self.registers[step.to] = made;
        for id in &step.frees {
            if let Register::Bytes(bytes, _) =
                std::mem::replace(&mut self.registers[*id], Register::Empty)
            {
                self.rooms.free.push(bytes.into_words());
            }
        }
        Ok(())
    }
}

fn is_image(dims: &[usize]) -> Result<()> {
    match dims.len() {
        4 => Ok(()),
        _ => Err(Error::msg("a pool is of images with four dims")),
    }
}

fn image(x: Bytes) -> Register {
    let dims = vec![x.batch(), x.channels(), x.height(), x.width()];
    Register::Bytes(x, dims)
}

/// The sizes that two shapes have together.
fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let of = |dims: &[usize], at: usize| match at + dims.len() >= rank {
        true => dims[at + dims.len() - rank],
        false => 1,
    };
    (0..rank)
        .map(|at| match (of(a, at), of(b, at)) {
            (a, b) if a == b || b == 1 => Ok(a),
            (1, b) => Ok(b),
            _ => Err(Error::msg(format_args!(
                "the shapes {a:?} and {b:?} do not broadcast"
            ))),
        })
        .collect()
}

/// Bytes of a shape, repeated in a wider one.
fn expanded(bytes: &[u8], own: &[usize], dims: &[usize]) -> Vec<u8> {
    let count: usize = dims.iter().product();
    (0..count)
        .map(|index| {
            let (mut rest, mut at, mut stride) = (index, 0, 1);
            for (from_end, size) in dims.iter().rev().enumerate() {
                let place = rest % size;
                rest /= size;
                if let Some(own) = own.iter().rev().nth(from_end) {
                    at += if *own == 1 { 0 } else { place * stride };
                    stride *= own;
                }
            }
            bytes[at]
        })
        .collect()
}

impl Executable for Program {
    fn covers(&self, inputs: &[&Value]) -> std::result::Result<(), Cow<'static, str>> {
        for step in &self.steps {
            let Kernel::Quantize { input, .. } = &step.kernel else {
                continue;
            };
            let tensor = inputs
                .get(*input)
                .and_then(|value| value.downcast_ref::<Tensor>());
            let Some(tensor) = tensor else {
                return Err("an input is no tensor".into());
            };
            if tensor.dtype().ok() != Some(DType::F32) || tensor.candle().is_err() {
                return Err("an input is not of `float32`".into());
            }
            if tensor.requires_grad().unwrap_or(true) {
                return Err("an input needs a gradient".into());
            }
        }
        Ok(())
    }

    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        self.run_timed(inputs, out, &mut |_| {})
    }

    fn steps(&self) -> Vec<StepReport> {
        self.steps.iter().map(|step| step.report.clone()).collect()
    }

    fn run_timed(
        &self,
        inputs: &[&Value],
        out: &mut Value,
        on_step: &mut dyn FnMut(StepRun<'_>),
    ) -> Result<()> {
        // Runs at the same time have memory of their own.
        let rooms = self
            .rooms
            .try_lock()
            .map(|mut rooms| std::mem::take(&mut *rooms))
            .unwrap_or_default();
        let mut registers = Vec::new();
        registers.resize_with(self.registers, || Register::Empty);
        let mut run = Run {
            program: self,
            inputs,
            registers,
            rooms,
        };
        for step in &self.steps {
            let start = Instant::now();
            run.step(step)?;
            on_step(StepRun {
                step: &step.report,
                time: start.elapsed(),
                flops: 0,
            });
        }
        let mut results = Vec::with_capacity(self.results.len());
        for id in &self.results {
            match &run.registers[*id] {
                Register::Floats(tensor) => results.push(Value::object(tensor.clone())),
                _ => return Err(Error::msg("a result has no floats")),
            }
        }
        for register in run.registers {
            if let Register::Bytes(bytes, _) = register {
                run.rooms.free.push(bytes.into_words());
            }
        }
        if let Ok(mut rooms) = self.rooms.try_lock() {
            *rooms = run.rooms;
        }
        *out = match (self.is_tuple, results.pop()) {
            (false, Some(only)) => only,
            (_, last) => {
                results.extend(last);
                Value::Tuple(results.into())
            }
        };
        Ok(())
    }
}
