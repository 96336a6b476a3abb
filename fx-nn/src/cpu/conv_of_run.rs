//! Gradients of convolutions whose weights a run decides: of their images and of their weights.
//!
//! Invariant: what is summed is summed by one thread, in one order.

use fx_core::{Error, Result};
use fx_kernels::conv::{ConvSpec, DepthwiseSizes, depthwise_weight};
use fx_kernels::gather;
use fx_kernels::matrix::{Finish, Matrices, Sizes, matmul};
use smallvec::SmallVec;

use super::array::{Array, Dims, strides_of};
use super::call::{Args, Lowering};
use super::draft::{ConvSteps, Id, Kind};
use super::frame::{Reading, Register, array, filled, sizes_differ};
use super::memory::Pool;

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
        // A weight that is the same in every run is no gradient's.
        if !args.is_none("bias") || self.constant(args, "weight").is_some() {
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
        self.push(args, Kind::ConvTranspose(steps), inputs)
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
        if group_in == 1 && outputs == channels {
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
            return array(dims, pool, |out| {
                depthwise_weight(sizes, self.floats(&padded), self.floats(&grad), out)
            });
        }
        let reach = |out: usize, kernel: usize, at: usize| {
            out.saturating_sub(1) * steps.stride[at]
                + kernel.saturating_sub(1) * steps.dilation[at]
                + 1
        };
        if reach(rows, k_rows, 0) > image[0] || reach(columns, k_columns, 1) > image[1] {
            return Err(Error::msg("a window of a convolution leaves the image"));
        }
        // The windows as the rows of a matrix: [group, n, y, x, channel, window].
        let own = &padded.strides;
        let windows = Array {
            memory: padded.memory.clone(),
            start: padded.start,
            dims: SmallVec::from_slice(&[
                groups, batch, rows, columns, group_in, k_rows, k_columns,
            ]),
            strides: SmallVec::from_slice(&[
                group_in * own[1],
                own[0],
                steps.stride[0] * own[2],
                steps.stride[1] * own[3],
                own[1],
                steps.dilation[0] * own[2],
                steps.dilation[1] * own[3],
            ]),
        };
        let windows = self.contiguous(windows, pool)?;
        // The gradient as [group, channel, n, y, x].
        let group_out = outputs / groups;
        let grad = grad.permuted(&[1, 0, 2, 3]);
        let grad = self.contiguous(grad, pool)?;
        let (depth, width) = (batch * rows * columns, group_in * k_rows * k_columns);
        let strides = [[group_out * depth], [depth * width]];
        let matrices = |array, batch, row| Matrices {
            data: self.floats(array),
            start: 0,
            batch,
            row,
            column: 1,
        };
        let left = matrices(&grad, &strides[0][..], depth);
        let right = matrices(&windows, &strides[1][..], width);
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
