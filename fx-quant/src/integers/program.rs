//! The steps of a graph of integers, and their run.
//!
//! Invariant: a step writes registers of its own; memory of a register that nothing reads any more is used again.

use std::borrow::Cow;
use std::sync::Mutex;
use std::time::Instant;

use fx_core::passes::backend::{Executable, StepReport, StepRun};
use fx_core::trace::FromValue;
use fx_core::value::{DType, Value};
use fx_core::{Error, GraphModule, Result};
use fx_kernels::Level;
use fx_kernels::integer::{
    Bytes, IntegerConv, Rounding, Term, Windows, add, average_pool, clamp, dequantize, lookup,
    max_pool, multiply, quantize, rescale,
};
use fx_nn::{Tensor, ops};

use super::layout::{
    broadcast, bytes_of, channels_together, image_of, imaged, plain, rows_as_images, spread,
    with_floats,
};

/// A register of bytes.
pub(super) type Id = usize;

/// Where floats come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Floats {
    Input(usize),
    Register(Id),
}

/// A number, or an input that has one element.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scalar {
    Number(f64),
    Input(usize),
}

/// A scale and a zero point that a run decides.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfRun {
    pub scale: Scalar,
    pub zero_point: Scalar,
}

/// What a tensor of a product is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Rows whose elements are the last dim.
    Rows,
    /// `[batch, channels, height, width]`.
    Image,
    /// `[batch, channels, length]`.
    Sequence,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Kernel {
    /// Floats times the inverse of the scale.
    Quantize {
        from: Floats,
        inverse: f32,
        rounding: Rounding,
    },
    /// Floats by a scale and a zero point that a run decides, held between two integers, and how far bytes are from these.
    QuantizeOfRun {
        from: Floats,
        of: OfRun,
        moved: i64,
        ends: (i64, i64),
    },
    /// Integers of an input.
    Load {
        input: usize,
        is_signed: bool,
    },
    Constant {
        bytes: Vec<u8>,
        dims: Vec<usize>,
    },
    Product {
        x: Id,
        conv: IntegerConv,
        shape: Shape,
    },
    /// A product whose result is floats. If a run decides the scale of its input: by which, how far bytes are from its integers,
    /// and a bias.
    ToFloats {
        x: Id,
        conv: IntegerConv,
        shape: Shape,
        of: Option<(OfRun, i64, Vec<f32>)>,
    },
    Add {
        a: (Id, Term),
        b: (Id, Term),
        rounding: Rounding,
    },
    /// The two sides with their zero points.
    Mul {
        a: (Id, u8),
        b: (Id, u8),
        scale: f32,
        rounding: Rounding,
    },
    /// Bytes of one scale behind each other.
    Cat {
        all: Vec<Id>,
        dim: i64,
    },
    /// Each byte by a table.
    Each {
        x: Id,
        table: Box<[u8; 256]>,
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
    /// A byte around images: above, below, left, right.
    Pad {
        x: Id,
        by: [usize; 4],
        byte: u8,
    },
    AveragePool {
        x: Id,
        windows: Windows,
        scale: f32,
        zero_point: u8,
        counts: bool,
        rounding: Rounding,
    },
    /// The mean of all pixels of images, or of rows of channels, and whether their dims stay.
    Mean {
        x: Id,
        term: Term,
        keeps: bool,
        rounding: Rounding,
    },
    /// The same elements in another shape or order, as a call gives them.
    View {
        x: Id,
        call: Box<GraphModule>,
    },
    Dequantize {
        x: Id,
        scale: f32,
        zero_point: u8,
    },
    /// A tensor of integers.
    Store {
        x: Id,
        is_signed: bool,
    },
}

impl Kernel {
    /// The registers that it reads.
    pub fn reads(&self) -> Vec<Id> {
        match self {
            Kernel::Load { .. } | Kernel::Constant { .. } => Vec::new(),
            Kernel::Quantize { from, .. } | Kernel::QuantizeOfRun { from, .. } => match from {
                Floats::Input(_) => Vec::new(),
                Floats::Register(x) => vec![*x],
            },
            Kernel::Add { a, b, .. } => vec![a.0, b.0],
            Kernel::Mul { a, b, .. } => vec![a.0, b.0],
            Kernel::Cat { all, .. } => all.clone(),
            Kernel::Rescale { x, .. } => vec![x.0],
            Kernel::Product { x, .. }
            | Kernel::ToFloats { x, .. }
            | Kernel::Each { x, .. }
            | Kernel::Clamp { x, .. }
            | Kernel::MaxPool { x, .. }
            | Kernel::Pad { x, .. }
            | Kernel::AveragePool { x, .. }
            | Kernel::Mean { x, .. }
            | Kernel::View { x, .. }
            | Kernel::Dequantize { x, .. }
            | Kernel::Store { x, .. } => vec![*x],
        }
    }
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
    /// Floats, or integers as a tensor.
    Tensor(Tensor),
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

    fn input(&self, at: usize) -> Result<Tensor> {
        Tensor::from_value((*self.inputs[at]).clone())
    }

    fn floats(&self, from: Floats) -> Result<Tensor> {
        match from {
            Floats::Input(input) => self.input(input),
            Floats::Register(id) => match &self.registers[id] {
                Register::Tensor(x) => Ok(x.clone()),
                _ => Err(Error::msg("a register has no floats")),
            },
        }
    }

    fn scalar(&self, of: Scalar) -> Result<f64> {
        match of {
            Scalar::Number(number) => Ok(number),
            Scalar::Input(input) => {
                let all = self.input(input)?.to_vec()?;
                let one = all.first().copied();
                one.ok_or_else(|| Error::msg("a scale or a zero point has no element"))
            }
        }
    }

    /// Two registers with the sizes that they have together.
    fn two(&self, a: Id, b: Id) -> Result<(Cow<'_, Bytes>, Cow<'_, Bytes>, Vec<usize>)> {
        let ((x, of_x), (y, of_y)) = (self.bytes(a)?, self.bytes(b)?);
        if of_x == of_y {
            return Ok((Cow::Borrowed(x), Cow::Borrowed(y), of_x.to_vec()));
        }
        let dims = broadcast(of_x, of_y)?;
        let wide = |x: &Bytes, own: &[usize]| match *own == dims[..] {
            true => x.clone(),
            false => spread(x, own, &dims),
        };
        let (x, y) = (wide(x, of_x), wide(y, of_y));
        Ok((Cow::Owned(x), Cow::Owned(y), dims))
    }

    fn room(&mut self) -> Vec<u32> {
        self.rooms.free.pop().unwrap_or_default()
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let level = self.program.level;
        let mut words = self.room();
        let made = match &step.kernel {
            Kernel::Quantize {
                from,
                inverse,
                rounding,
            } => {
                let x = self.floats(*from)?;
                quantized(level, &x, *inverse, *rounding, words)?
            }
            Kernel::QuantizeOfRun {
                from,
                of,
                moved,
                ends: (low, high),
            } => {
                let x = self.floats(*from)?;
                let rounding = Rounding {
                    zero_point: byte_of(self.scalar(of.zero_point)?, *moved),
                    low: byte_of(*low as f64, *moved),
                    high: byte_of(*high as f64, *moved),
                };
                let inverse = 1.0 / self.scalar(of.scale)? as f32;
                quantized(level, &x, inverse, rounding, words)?
            }
            Kernel::Load { input, is_signed } => {
                let x = self.input(*input)?;
                let dims = x.dims()?.to_vec();
                Register::Bytes(imaged(&bytes_of(&x, *is_signed)?, &dims, words), dims)
            }
            Kernel::Constant { bytes, dims } => {
                Register::Bytes(imaged(bytes, dims, words), dims.clone())
            }
            Kernel::Product { x, conv, shape } => {
                let mut scratch = std::mem::take(&mut self.rooms.scratch);
                let (x, dims) = self.bytes(*x)?;
                let x = as_images(x, dims, *shape)?;
                let made = conv.run(level, &x, words, &mut scratch);
                let made = made.map_err(Error::other)?;
                let dims = product_dims(&made.sizes(), dims, *shape);
                // What is no image by its number of dims is laid out as rows, and an image of rows as one.
                let stays = *shape == Shape::Image || *shape == Shape::Rows && dims.len() != 4;
                let out = match stays {
                    true => made,
                    false => imaged(&plain(&made), &dims, Vec::new()),
                };
                self.rooms.scratch = scratch;
                Register::Bytes(out, dims)
            }
            Kernel::ToFloats { x, conv, shape, of } => {
                let (x, dims) = self.bytes(*x)?;
                let x = as_images(x, dims, *shape)?;
                let (height, width) = (conv.spec().out_size(x.height(), x.width()))
                    .ok_or_else(|| Error::msg("no window fits into the image"))?;
                let sizes = (x.batch(), height, width, conv.spec().out_channels);
                let mut out = vec![0.0; sizes.0 * sizes.1 * sizes.2 * sizes.3];
                match of {
                    None => conv.run_to_floats(level, &x, &mut out),
                    Some((of, moved, bias)) => {
                        let zero_point = byte_of(self.scalar(of.zero_point)?, *moved);
                        let scale = self.scalar(of.scale)? as f32;
                        let made = conv.run_to_floats_beside(level, &x, zero_point, &mut out);
                        scaled(&mut out, scale, bias);
                        made
                    }
                }
                .map_err(Error::other)?;
                let dims = product_dims(&sizes, dims, *shape);
                Register::Tensor(match shape {
                    Shape::Rows => Tensor::from_vec(out, dims)?,
                    // Channels are side by side.
                    _ => {
                        let pixels = [sizes.0, sizes.1 * sizes.2, sizes.3];
                        let turned = Tensor::from_vec(out, pixels.to_vec())?;
                        let turned = ops::transpose(&turned, 1, 2)?.contiguous()?;
                        let dims: Vec<i64> = dims.iter().map(|size| *size as i64).collect();
                        ops::reshape(&turned, dims)?
                    }
                })
            }
            Kernel::Add { a, b, rounding } => {
                let ((x, of_x), (y, of_y)) = (a, b);
                let (x, y, dims) = self.two(*x, *y)?;
                let sum = add(level, (&x, *of_x), (&y, *of_y), *rounding, words);
                Register::Bytes(sum.map_err(Error::other)?, dims)
            }
            Kernel::Mul {
                a,
                b,
                scale,
                rounding,
            } => {
                let (x, y, dims) = self.two(a.0, b.0)?;
                let product = multiply(level, (&x, a.1), (&y, b.1), *scale, *rounding, words);
                Register::Bytes(product.map_err(Error::other)?, dims)
            }
            Kernel::Cat { all, dim } => {
                let sides = all.iter().map(|x| self.bytes(*x));
                let sides = sides.collect::<Result<Vec<_>>>()?;
                let is_of_channels = matches!(dim, 1 | -3);
                if is_of_channels
                    && let Some((out, dims)) = channels_together(&sides, std::mem::take(&mut words))
                {
                    Register::Bytes(out, dims)
                } else {
                    let each = all.iter().map(|x| {
                        let (x, dims) = self.bytes(*x)?;
                        Tensor::from_vec(plain(x), dims.to_vec())
                    });
                    let all = each.collect::<Result<Vec<Tensor>>>()?;
                    let made = ops::cat(&all, *dim)?;
                    let dims = made.dims()?.to_vec();
                    Register::Bytes(imaged(&bytes_of(&made, false)?, &dims, words), dims)
                }
            }
            Kernel::Each { x, table } => {
                let (x, dims) = self.bytes(*x)?;
                Register::Bytes(lookup(level, x, table, words), dims.to_vec())
            }
            Kernel::Pad {
                x,
                by: [above, below, left, right],
                byte,
            } => {
                let (x, dims) = self.bytes(*x)?;
                is_image(dims)?;
                image(x.padded([*above, *below], [*left, *right], *byte, words))
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
                let made = average_pool(
                    level,
                    x,
                    *windows,
                    (*scale, *zero_point, *counts),
                    *rounding,
                    words,
                );
                image(made.map_err(Error::other)?)
            }
            Kernel::Mean {
                x,
                term,
                keeps,
                rounding,
            } => {
                let (x, dims) = self.bytes(*x)?;
                let shape = match dims.len() {
                    3 => Shape::Sequence,
                    _ => Shape::Image,
                };
                let x = as_images(x, dims, shape)?;
                let windows = Windows {
                    kernel: [x.height(), x.width()],
                    stride: [1, 1],
                    padding: [0, 0],
                    ceil: false,
                };
                let of = (term.scale, term.zero_point, false);
                let made = average_pool(level, &x, windows, of, *rounding, words);
                let made = made.map_err(Error::other)?;
                let mut dims = dims.to_vec();
                for dim in dims.iter_mut().skip(2) {
                    *dim = 1;
                }
                if !keeps {
                    dims.truncate(2);
                }
                // An image of one pixel is a row of its channels; a row of channels has them in another dim.
                match dims.len() {
                    3 => Register::Bytes(imaged(&plain(&made), &dims, Vec::new()), dims),
                    _ => Register::Bytes(made, dims),
                }
            }
            Kernel::View { x, call } => {
                let (x, dims) = self.bytes(*x)?;
                let x = Tensor::from_vec(plain(x), dims.to_vec())?;
                let made: Tensor = call.forward(&x)?;
                let dims = made.dims()?.to_vec();
                Register::Bytes(imaged(&bytes_of(&made, false)?, &dims, words), dims)
            }
            Kernel::Store { x, is_signed } => {
                let (x, dims) = self.bytes(*x)?;
                let made = Tensor::from_vec(plain(x), dims.to_vec())?;
                Register::Tensor(match is_signed {
                    false => made,
                    true => (made.to_dtype(DType::I64)? - 128)?.to_dtype(DType::I8)?,
                })
            }
            Kernel::Dequantize {
                x,
                scale,
                zero_point,
            } => {
                let (x, dims) = self.bytes(*x)?;
                let mut out = vec![0.0; x.pixels() * x.channels()];
                dequantize(level, x, *scale, *zero_point, &mut out).map_err(Error::other)?;
                Register::Tensor(Tensor::from_vec(out, dims.to_vec())?)
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

/// The byte of an integer; beyond the ends, the last one.
fn byte_of(whole: f64, moved: i64) -> u8 {
    (whole + moved as f64).clamp(0.0, 255.0) as u8
}

fn quantized(
    level: Level,
    x: &Tensor,
    inverse: f32,
    rounding: Rounding,
    words: Vec<u32>,
) -> Result<Register> {
    let dims = x.dims()?.to_vec();
    let mut out = Bytes::reusing(words, image_of(&dims));
    with_floats(x, |x| {
        quantize(level, x, inverse, rounding, &mut out).map_err(Error::other)
    })?;
    Ok(Register::Bytes(out, dims))
}

/// Rows times a scale, with a bias if there is one.
fn scaled(out: &mut [f32], scale: f32, bias: &[f32]) {
    if scale == 1.0 && bias.is_empty() {
        return;
    }
    if bias.is_empty() {
        out.iter_mut().for_each(|x| *x *= scale);
        return;
    }
    for row in out.chunks_mut(bias.len()) {
        for (x, bias) in row.iter_mut().zip(bias) {
            *x = *x * scale + bias;
        }
    }
}

/// The bytes of a product's input as it reads them.
fn as_images<'x>(x: &'x Bytes, dims: &[usize], shape: Shape) -> Result<Cow<'x, Bytes>> {
    Ok(match (shape, dims) {
        (Shape::Image, _) => {
            is_image(dims)?;
            Cow::Borrowed(x)
        }
        (Shape::Sequence, _) => Cow::Owned(imaged(&plain(x), &rows_as_images(dims)?, Vec::new())),
        // The last dim of four is not that of channels.
        (Shape::Rows, [a, b, c, last]) => {
            Cow::Owned(imaged(&plain(x), &[a * b * c, *last], Vec::new()))
        }
        (Shape::Rows, _) => Cow::Borrowed(x),
    })
}

/// The sizes of a product's result, of images of these sizes.
fn product_dims(
    &(batch, height, width, channels): &(usize, usize, usize, usize),
    dims: &[usize],
    shape: Shape,
) -> Vec<usize> {
    match shape {
        Shape::Image => vec![batch, channels, height, width],
        Shape::Sequence => vec![batch, channels, width],
        Shape::Rows => {
            let mut dims = dims.to_vec();
            if let Some(last) = dims.last_mut() {
                *last = channels;
            }
            dims
        }
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

impl Executable for Program {
    fn covers(&self, inputs: &[&Value]) -> std::result::Result<(), Cow<'static, str>> {
        for step in &self.steps {
            let (input, dtype) = match &step.kernel {
                Kernel::Quantize {
                    from: Floats::Input(input),
                    ..
                }
                | Kernel::QuantizeOfRun {
                    from: Floats::Input(input),
                    ..
                } => (input, DType::F32),
                Kernel::Load { input, is_signed } => match is_signed {
                    true => (input, DType::I8),
                    false => (input, DType::U8),
                },
                _ => continue,
            };
            let tensor = inputs
                .get(*input)
                .and_then(|value| value.downcast_ref::<Tensor>());
            let Some(tensor) = tensor else {
                return Err("an input is no tensor".into());
            };
            if tensor.dtype().ok() != Some(dtype) || tensor.candle().is_err() {
                return Err(format!("an input is not of {dtype}").into());
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
                Register::Tensor(tensor) => results.push(Value::object(tensor.clone())),
                _ => return Err(Error::msg("a result is no tensor")),
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
