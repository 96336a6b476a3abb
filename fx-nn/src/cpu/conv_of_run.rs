//! Gradients of convolutions whose weights a run decides: of their images and of their weights.
//!
//! Invariant: what is summed is summed by one thread, in one order.

use fx_core::{Error, Result};
use fx_kernels::Activation;
use fx_kernels::conv::{self, ConvSpec, DepthwiseSizes, WindowSizes, depthwise_weight};
use fx_kernels::gather;
use fx_kernels::matrix::{Finish, Matrices, Sizes, matmul};
use smallvec::SmallVec;

use super::array::{Array, Dims, strides_of};
use super::call::{Args, Lowering};
use super::draft::{ConvSteps, Id, Kind};
use super::frame::{Reading, Register, array, filled, sizes_differ};
use super::memory::Pool;
use crate::Tensor;

impl Lowering<'_> {
    /// The gradient of the weights of a convolution; its inputs are the images, the weights and the gradient.
    pub fn conv_weight(&mut self, args: &Args<'_>) -> Option<Id> {
        let inputs = ["x", "weight", "grad"].map(|name| self.floats(args, name));
        let inputs = inputs.into_iter().collect::<Option<Vec<Id>>>()?;
        let steps = ConvSteps {
            stride: args.sizes("stride")?,
            padding: args.sizes("padding")?,
            dilation: args.sizes("dilation")?,
            groups: usize::try_from(args.int("groups")?).ok()?,
            added: [0, 0],
        };
        self.push(args, Kind::ConvWeight(steps), inputs)
    }

    /// A transposed convolution.
    pub fn conv_transpose(&mut self, args: &Args<'_>) -> Option<Id> {
        // A weight that is the same in every run is no gradient's: the function is as fast then, where it can be called.
        let is_gradient = args.is_none("bias") && self.constant(args, "weight").is_none();
        if !is_gradient && !self.is_static {
            return None;
        }
        let inputs = vec![self.floats(args, "x")?, self.floats(args, "weight")?];
        let steps = ConvSteps {
            stride: args.sizes("stride")?,
            padding: args.sizes("padding")?,
            dilation: args.sizes("dilation")?,
            groups: usize::try_from(args.int("groups")?).ok()?,
            added: args.sizes("output_padding")?,
        };
        let made = self.push(args, Kind::ConvTranspose(steps), inputs);
        let Some(Some(bias)) = self.constant(args, "bias") else {
            return made.filter(|_| args.is_none("bias"));
        };
        let kind = Kind::ChannelAffine {
            factors: Tensor::ones(bias.dims().ok()?).ok()?,
            shifts: bias,
            activation: Activation::None,
            is_image: false,
        };
        self.push(args, kind, vec![made?])
    }
}

/// The most floats of windows for which a convolution is a product: 16 MiB.
const MOST_WINDOWS: usize = 4 << 20;

/// A matrix in order.
fn whole(data: &[f32], columns: usize) -> Matrices<'_> {
    Matrices {
        data,
        start: 0,
        batch: &[],
        row: columns,
        column: 1,
    }
}

fn four(dims: &[usize]) -> Result<[usize; 4]> {
    <[usize; 4]>::try_from(dims).map_err(|_| Error::msg("images have four dimensions"))
}

impl Reading<'_> {
    pub fn conv_weight(
        &self,
        inputs: &[Id],
        steps: ConvSteps,
        pool: &mut Pool,
    ) -> Result<Register> {
        let (x, grad) = (
            self.in_order(inputs[0], pool)?,
            self.array(inputs[2], pool)?,
        );
        let dims = self.dims(inputs[1])?;
        let [batch, channels, height, width] = four(&x.dims)?;
        let [outputs, group_in, k_rows, k_columns] = four(&dims)?;
        let [grad_batch, grad_channels, rows, columns] = four(&grad.dims)?;
        let groups = steps.groups.max(1);
        if (grad_batch, grad_channels, group_in * groups) != (batch, outputs, channels) {
            return Err(Error::msg(
                "a convolution and its gradient are of other sizes",
            ));
        }
        if group_in == 1 && outputs == channels {
            return self.depthwise_weight(x, grad, dims, steps, pool);
        }
        let sizes = WindowSizes {
            batch,
            channels,
            image: [height, width],
            count: [rows, columns],
            kernel: [k_rows, k_columns],
            stride: steps.stride,
            padding: steps.padding,
            dilation: steps.dilation,
        };
        let windows = self.windows(&x, sizes, pool)?;
        // The gradient as [group, channel, n, y, x].
        let group_out = outputs / groups;
        let grad = grad.permuted(&[1, 0, 2, 3]);
        let grad = self.contiguous(grad, pool)?;
        let (depth, width) = (batch * rows * columns, group_in * k_rows * k_columns);
        let strides = [[group_out * depth], [depth * width]];
        let left = Matrices {
            data: self.floats(&grad),
            start: 0,
            batch: &strides[0],
            row: depth,
            column: 1,
        };
        let right = Matrices {
            data: self.floats(&windows),
            start: 0,
            batch: &strides[1],
            row: 1,
            column: depth,
        };
        let sizes = Sizes {
            batch: &[groups],
            rows: group_out,
            depth,
            columns: width,
        };
        array(dims, pool, |out| {
            matmul(self.level, sizes, left, right, 1.0, Finish::default(), out)
        })
    }

    /// The windows of images as the rows of a matrix.
    fn windows(&self, x: &Array, sizes: WindowSizes, pool: &mut Pool) -> Result<Array> {
        filled(SmallVec::from_slice(&[sizes.floats()]), pool, |out| {
            conv::windows(self.level, sizes, self.floats(x), out).map_err(sizes_differ)
        })
    }

    fn depthwise_weight(
        &self,
        x: Array,
        grad: Array,
        dims: Dims,
        steps: ConvSteps,
        pool: &mut Pool,
    ) -> Result<Register> {
        let [batch, channels, height, width] = four(&x.dims)?;
        let [.., rows, columns] = four(&grad.dims)?;
        let [.., k_rows, k_columns] = four(&dims)?;
        let [top, left] = steps.padding;
        let image = [height + 2 * top, width + 2 * left];
        let padded = filled(
            SmallVec::from_slice(&[batch, channels, image[0], image[1]]),
            pool,
            |out| {
                let sides = [0, 0, top, left];
                gather::pad(&x.dims, self.floats(&x), &sides, &sides, 0.0, out)
                    .map_err(sizes_differ)
            },
        )?;
        let grad = self.contiguous(grad, pool)?;
        let sizes = DepthwiseSizes {
            batch,
            channels,
            image,
            out: [rows, columns],
            kernel: [k_rows, k_columns],
            stride: steps.stride,
            dilation: steps.dilation,
        };
        array(dims, pool, |out| {
            depthwise_weight(sizes, self.floats(&padded), self.floats(&grad), out)
        })
    }

    /// A convolution as a product of its weights with the windows of images, if these are not too many.
    pub fn convolved_as_product(
        &self,
        x: &Array,
        weight: &Array,
        spec: ConvSpec,
        pool: &mut Pool,
    ) -> Result<Option<Register>> {
        let (Ok([batch, channels, height, width]), Ok([outputs, group_in, k_rows, k_columns])) =
            (four(&x.dims), four(&weight.dims))
        else {
            return Ok(None);
        };
        let spec = ConvSpec {
            kernel: [k_rows, k_columns],
            ..spec
        };
        let is_empty = x.numel() == 0 || weight.numel() == 0;
        if spec.groups != 1 || group_in != channels || is_empty {
            return Ok(None);
        }
        let (rows, columns) = spec.out_size(height, width);
        let sizes = WindowSizes {
            batch,
            channels,
            image: [height, width],
            count: [rows, columns],
            kernel: spec.kernel,
            stride: spec.stride,
            padding: spec.padding,
            dilation: spec.dilation,
        };
        if sizes.floats() > MOST_WINDOWS {
            return Ok(None);
        }
        let x = self.contiguous(x.clone(), pool)?;
        let weight = self.contiguous(weight.clone(), pool)?;
        let windows = self.windows(&x, sizes, pool)?;
        let (depth, places) = (channels * k_rows * k_columns, batch * rows * columns);
        let left = whole(self.floats(&weight), depth);
        let right = whole(self.floats(&windows), places);
        let sizes = Sizes {
            batch: &[],
            rows: outputs,
            depth,
            columns: places,
        };
        let made = filled(
            SmallVec::from_slice(&[outputs, batch, rows, columns]),
            pool,
            |out| {
                matmul(self.level, sizes, left, right, 1.0, Finish::default(), out)
                    .map_err(sizes_differ)
            },
        )?;
        let made = self.contiguous(made.permuted(&[1, 0, 2, 3]), pool)?;
        Ok(Some(Register::Array(made)))
    }

    /// A transposed convolution as a sum of windows, each a product with the weights, if these are not too many.
    fn transposed_as_product(
        &self,
        x: &Array,
        weight: &Array,
        steps: ConvSteps,
        pool: &mut Pool,
    ) -> Result<Option<Register>> {
        let [batch, channels, height, width] = four(&x.dims)?;
        let [_, outputs, k_rows, k_columns] = four(&weight.dims)?;
        let kernel = [k_rows, k_columns];
        let size = |at: usize, count: usize| {
            let reach = (count - 1) * steps.stride[at]
                + steps.dilation[at] * kernel[at].saturating_sub(1)
                + 1
                + steps.added[at];
            reach.checked_sub(2 * steps.padding[at])
        };
        let (Some(rows), Some(columns)) = (size(0, height), size(1, width)) else {
            return Ok(None);
        };
        let sizes = WindowSizes {
            batch,
            channels: outputs,
            image: [rows, columns],
            count: [height, width],
            kernel,
            stride: steps.stride,
            padding: steps.padding,
            dilation: steps.dilation,
        };
        if steps.groups != 1 || sizes.floats() > MOST_WINDOWS {
            return Ok(None);
        }
        let x = self.contiguous(x.permuted(&[1, 0, 2, 3]), pool)?;
        let (places, width) = (batch * height * width, outputs * k_rows * k_columns);
        let left = Matrices {
            row: 1,
            column: width,
            ..whole(self.floats(weight), width)
        };
        let right = whole(self.floats(&x), places);
        let product = Sizes {
            batch: &[],
            rows: width,
            depth: channels,
            columns: places,
        };
        let windows = filled(SmallVec::from_slice(&[sizes.floats()]), pool, |out| {
            matmul(
                self.level,
                product,
                left,
                right,
                1.0,
                Finish::default(),
                out,
            )
            .map_err(sizes_differ)
        })?;
        let dims = SmallVec::from_slice(&[batch, outputs, rows, columns]);
        let made = array(dims, pool, |out| {
            conv::sum_windows(self.level, sizes, self.floats(&windows), out)
        })?;
        Ok(Some(made))
    }

    pub fn conv_transpose(
        &self,
        inputs: &[Id],
        steps: ConvSteps,
        pool: &mut Pool,
    ) -> Result<Register> {
        let x = self.in_order(inputs[0], pool)?;
        let weight = self.in_order(inputs[1], pool)?;
        let [batch, channels, height, width] = four(&x.dims)?;
        let [inputs_of, group_out, k_rows, k_columns] = four(&weight.dims)?;
        let groups = steps.groups.max(1);
        if inputs_of != channels || height == 0 || width == 0 {
            return Err(Error::msg("a transposed convolution is of other channels"));
        }
        let (kernel, group_in) = ([k_rows, k_columns], channels / groups);
        let padding = [0, 1].map(|at| {
            let reach = steps.dilation[at] * kernel[at].saturating_sub(1);
            reach.checked_sub(steps.padding[at])
        });
        let [Some(top), Some(left)] = padding else {
            return Err(Error::msg(
                "a transposed convolution cuts off more than a window",
            ));
        };
        if let Some(made) = self.transposed_as_product(&x, &weight, steps, pool)? {
            return Ok(made);
        }
        // Images whose pixels are a stride apart, with zeros between.
        let sizes = [
            (height - 1) * steps.stride[0] + 1 + steps.added[0],
            (width - 1) * steps.stride[1] + 1 + steps.added[1],
        ];
        let spread = match sizes == [height, width] {
            true => x,
            false => filled(
                SmallVec::from_slice(&[batch, channels, sizes[0], sizes[1]]),
                pool,
                |out| {
                    out.fill(0.0);
                    let planes = out.chunks_exact_mut(sizes[0] * sizes[1]);
                    for (plane, x) in planes.zip(self.floats(&x).chunks_exact(height * width)) {
                        for (row, x) in x.chunks_exact(width).enumerate() {
                            let row = &mut plane[row * steps.stride[0] * sizes[1]..];
                            for (out, x) in row.iter_mut().step_by(steps.stride[1]).zip(x) {
                                *out = *x;
                            }
                        }
                    }
                    Ok(())
                },
            )?,
        };
        // The windows turned around, with the channels of the result first.
        let outputs = group_out * groups;
        let turned: Dims = SmallVec::from_slice(&[outputs, group_in, k_rows, k_columns]);
        let area = k_rows * k_columns;
        let turned = filled(turned, pool, |out| {
            let floats = self.floats(&weight);
            for (at, out) in out.chunks_exact_mut(area.max(1)).enumerate() {
                let (output, input) = (at / group_in, at % group_in);
                let (group, output) = (output / group_out, output % group_out);
                let from = ((group * group_in + input) * group_out + output) * area;
                for (out, x) in out.iter_mut().rev().zip(&floats[from..][..area]) {
                    *out = *x;
                }
            }
            Ok(())
        })?;
        let spec = ConvSpec {
            groups,
            stride: [1, 1],
            padding: [top, left],
            dilation: steps.dilation,
            ..ConvSpec::new(1, 1, 1)
        };
        debug_assert_eq!(spread.strides, strides_of(&spread.dims));
        self.convolved_arrays(spread, turned, None, spec, pool)
    }
}
