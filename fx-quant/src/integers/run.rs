//! The run of a part: what each step does with registers.
//!
//! Invariant: memory of a register that nothing reads any more is used again.

use std::borrow::Cow;

use fx_core::trace::FromValue;
use fx_core::value::{DType, Value};
use fx_core::{Error, Result};
use fx_kernels::Level;
use fx_kernels::integer::{
    self, Bytes, Rounding, Windows, add, average_pool, clamp, dequantize, lookup, max_pool,
    multiply, quantize, rescale,
};
use fx_nn::{Tensor, ops};

use super::layout::{
    broadcast, bytes_of, channels_together, image_of, imaged, plain, rows_as_images, spread,
    with_floats,
};
use super::step::{Floats, Id, Kernel, Scalar, Shape, Step};

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    pub free: Vec<Vec<u32>>,
    pub scratch: Vec<u32>,
}

/// What a register holds.
pub(super) enum Register {
    Empty,
    /// Bytes, and the sizes of the tensor that they are.
    Bytes(Bytes, Vec<usize>),
    /// Floats, or integers as a tensor.
    Tensor(Tensor),
}

/// A run of a part.
pub(super) struct Run<'p, 'v> {
    pub level: Level,
    pub inputs: &'p [&'v Value],
    pub registers: Vec<Register>,
    pub rooms: Rooms,
}

impl Run<'_, '_> {
    fn bytes(&self, id: Id) -> Result<(&Bytes, &[usize])> {
        match &self.registers[id] {
            Register::Bytes(bytes, dims) => Ok((bytes, dims)),
            _ => Err(Error::msg("a register has no bytes")),
        }
    }

    /// Bytes as a tensor of `uint8`.
    fn tensor(&self, id: Id) -> Result<Tensor> {
        let (bytes, dims) = self.bytes(id)?;
        Tensor::from_vec(plain(bytes), dims.to_vec())
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

    pub fn step(&mut self, step: &Step) -> Result<()> {
        let level = self.level;
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
                of_tensor(&self.input(*input)?, *is_signed, words)?
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
                    Some(own) => {
                        let scale = self.scalar(own.of.scale)? as f32;
                        let of_run = integer::OfRun {
                            zero_point: byte_of(self.scalar(own.of.zero_point)?, own.moved),
                            scale: scale * self.scalar(own.factor)? as f32,
                            bias: &own.bias,
                        };
                        conv.run_to_floats_of_run(level, &x, of_run, &mut out)
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
                    let each = all.iter().map(|x| self.tensor(*x));
                    let all = each.collect::<Result<Vec<Tensor>>>()?;
                    of_tensor(&ops::cat(&all, *dim)?, false, words)?
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
                let made: Tensor = call.forward(&self.tensor(*x)?)?;
                of_tensor(&made, false, words)?
            }
            Kernel::Store { x, is_signed } => {
                let made = self.tensor(*x)?;
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

/// The bytes of a tensor of `uint8`, or of `int8`.
fn of_tensor(x: &Tensor, is_signed: bool, words: Vec<u32>) -> Result<Register> {
    let dims = x.dims()?.to_vec();
    Ok(Register::Bytes(
        imaged(&bytes_of(x, is_signed)?, &dims, words),
        dims,
    ))
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
