//! Convolutions, pools, products, attention and networks over sequences as steps of a plan.
//!
//! Invariant: a kernel is given slices of the lengths that its sizes say.

use fx_core::{Error, Result};
use fx_kernels::Activation;
use fx_static::{
    AdaptivePool, Attention, Conv, ConvSpec, ConvTranspose, Linear, Matmul, Pool, PoolSpec, Pooled,
    Recurrent, Unit,
};
use smallvec::SmallVec;

use super::floats::{Floats, collapsed};
use super::items::{Given, Planner};
use super::plan::Work;
use crate::Tensor;
use crate::cpu::array::{Dims, broadcast};
use crate::cpu::draft::{Attending, ConvSteps, Id, Matrix, Recurring};
use crate::cpu::views::Viewing;

/// The sizes of images.
fn four(x: &Floats) -> Result<[usize; 4]> {
    <[usize; 4]>::try_from(&x.dims[..]).map_err(|_| Error::msg("images have four dims"))
}

impl Planner<'_> {
    pub fn conv(
        &mut self,
        inputs: &[Id],
        spec: ConvSpec,
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
    ) -> Result<Floats> {
        let x = self.in_order(inputs[0])?;
        let weight = self.plan.weights.add(weight)?;
        let bias = bias.map(|bias| self.plan.weights.add(bias)).transpose()?;
        let residual = inputs.get(1).map(|id| self.in_order(*id)).transpose()?;
        self.convolved(spec, x, [Some(weight), bias, residual], activation)
    }

    pub fn conv_of(
        &mut self,
        inputs: &[Id],
        groups: usize,
        [stride, padding, dilation]: [[usize; 2]; 3],
    ) -> Result<Floats> {
        let (x, weight) = (self.in_order(inputs[0])?, self.in_order(inputs[1])?);
        let bias = inputs.get(2).map(|id| self.in_order(*id)).transpose()?;
        let [out_channels, group_in, rows, columns] = four(&weight)?;
        let spec = ConvSpec {
            in_channels: group_in * groups,
            out_channels,
            groups,
            kernel: [rows, columns],
            stride,
            padding,
            dilation,
        };
        self.convolved(spec, x, [Some(weight), bias, None], Activation::None)
    }

    fn convolved(
        &mut self,
        spec: ConvSpec,
        x: Floats,
        [weight, bias, residual]: [Option<Floats>; 3],
        activation: Activation,
    ) -> Result<Floats> {
        let is_single = x.dims.len() == 3;
        let batched = |x: Floats| if is_single { x.with_one(0) } else { x };
        let (x, others) = (batched(x), [weight, bias, residual.map(batched)]);
        let [images, channels, height, width] = four(&x)?;
        if channels != spec.in_channels || spec.stride.contains(&0) || spec.dilation.contains(&0) {
            return Err(Error::msg("a convolution is of other channels"));
        }
        let (rows, columns) = spec.out_size(height, width);
        if rows == 0 || columns == 0 {
            return Err(Error::msg(
                "no window of the convolution fits into the image",
            ));
        }
        let dims: Dims = SmallVec::from_slice(&[images, spec.out_channels, rows, columns]);
        if others[2]
            .as_ref()
            .is_some_and(|residual| residual.dims != dims)
        {
            return Err(Error::msg("a sum changes the sizes of an image"));
        }
        let conv = Conv {
            spec,
            size: [height, width],
            has_bias: others[1].is_some(),
            has_residual: others[2].is_some(),
            activation,
        };
        let reads: Vec<&Floats> = [&x].into_iter().chain(others.iter().flatten()).collect();
        let made = self.kernel(conv, &reads, dims)?;
        Ok(if is_single { made.without(0) } else { made })
    }

    pub fn conv_transpose(&mut self, inputs: &[Id], steps: ConvSteps) -> Result<Floats> {
        let (x, weight) = (self.in_order(inputs[0])?, self.in_order(inputs[1])?);
        let is_single = x.dims.len() == 3;
        let x = if is_single { x.with_one(0) } else { x };
        let [images, channels, height, width] = four(&x)?;
        let [in_channels, group_out, rows, columns] = four(&weight)?;
        if in_channels != channels || height * width == 0 || steps.groups == 0 {
            return Err(Error::msg("a transposed convolution is of other channels"));
        }
        let spec = ConvSpec {
            in_channels,
            out_channels: group_out * steps.groups,
            groups: steps.groups,
            kernel: [rows, columns],
            stride: steps.stride,
            padding: steps.padding,
            dilation: steps.dilation,
        };
        let side = |at: usize, size: usize| {
            let reach = steps.dilation[at] * (spec.kernel[at] - 1) + 1 + steps.added[at];
            ((size - 1) * steps.stride[at] + reach).checked_sub(2 * steps.padding[at])
        };
        let sides = side(0, height).zip(side(1, width));
        let (out_rows, out_columns) = sides
            .ok_or_else(|| Error::msg("a transposed convolution cuts off more than there is"))?;
        let conv = ConvTranspose {
            spec,
            size: [height, width],
            out_size: [out_rows, out_columns],
        };
        let dims = SmallVec::from_slice(&[images, spec.out_channels, out_rows, out_columns]);
        let made = self.kernel(conv, &[&x, &weight], dims)?;
        Ok(if is_single { made.without(0) } else { made })
    }

    /// A pool of images; rows are images of height 1.
    pub fn pool(&mut self, x: Floats, spec: &PoolSpec, how: Pooled) -> Result<Floats> {
        let x = self.contiguous(x)?;
        let [outer @ .., height, width] = &x.dims[..] else {
            return Err(Error::msg("images have rows and columns"));
        };
        let sides = spec.kernel.iter().chain(&spec.stride).chain(&spec.dilation);
        let is_wide = (0..2).any(|at| spec.padding[at] > spec.kernel[at] / 2);
        if sides.into_iter().any(|side| *side == 0) || is_wide {
            return Err(Error::msg(
                "a size of the pool is 0, or its padding more than half of its window",
            ));
        }
        let (rows, columns) = spec.out_size(*height, *width);
        if rows == 0 || columns == 0 {
            return Err(Error::msg("no window of the pool fits into the image"));
        }
        let mut dims: Dims = outer.into();
        dims.extend([rows, columns]);
        let pool = Pool {
            how,
            spec: *spec,
            size: [*height, *width],
        };
        self.kernel(pool, &[&x], dims)
    }

    pub fn adaptive_pool(&mut self, x: Floats, size: [i64; 2]) -> Result<Floats> {
        let x = self.contiguous(x)?;
        let [outer @ .., height, width] = &x.dims[..] else {
            return Err(Error::msg("images have rows and columns"));
        };
        // -1 is the size that is there.
        let side = |size: i64, same: usize| usize::try_from(size).unwrap_or(same);
        let out_size = [side(size[0], *height), side(size[1], *width)];
        let mut dims: Dims = outer.into();
        dims.extend(out_size);
        let pool = AdaptivePool {
            size: [*height, *width],
            out_size,
        };
        self.kernel(pool, &[&x], dims)
    }

    pub fn linear(
        &mut self,
        inputs: &[Id],
        weight: &Matrix,
        bias: Option<&Tensor>,
        activation: Activation,
        is_residual_first: bool,
    ) -> Result<Floats> {
        let Matrix::Dense(weight) = weight else {
            return Err(Error::msg(
                "its weight is in blocks of few bits, and a static crate has f32 alone",
            ));
        };
        let x = self.in_order(inputs[0])?;
        let weight = self.plan.weights.add(weight)?;
        let bias = bias.map(|bias| self.plan.weights.add(bias)).transpose()?;
        let (mut linear, dims) = linear_sizes(&x, &weight, bias.is_some())?;
        let residual = match inputs.get(1) {
            Some(id) => {
                let residual = self.floats(*id)?.expanded(&dims);
                let residual = residual.ok_or_else(|| Error::msg("a sum changes the sizes"))?;
                Some(self.contiguous(residual)?)
            }
            None => None,
        };
        linear.activation = activation;
        linear.has_residual = residual.is_some();
        linear.is_residual_first = is_residual_first;
        let others = [bias, residual];
        let reads: Vec<&Floats> = [&x, &weight]
            .into_iter()
            .chain(others.iter().flatten())
            .collect();
        self.kernel(linear, &reads, dims)
    }

    pub fn linear_of(&mut self, inputs: &[Id]) -> Result<Floats> {
        let (x, weight) = (self.in_order(inputs[0])?, self.in_order(inputs[1])?);
        let bias = inputs.get(2).map(|id| self.in_order(*id)).transpose()?;
        let (linear, dims) = linear_sizes(&x, &weight, bias.is_some())?;
        let reads: Vec<&Floats> = [&x, &weight].into_iter().chain(&bias).collect();
        self.kernel(linear, &reads, dims)
    }

    pub fn matmul(&mut self, inputs: &[Id]) -> Result<Floats> {
        let (a, b) = (self.floats(inputs[0])?, self.floats(inputs[1])?);
        let (is_row, is_column) = (a.dims.len() == 1, b.dims.len() == 1);
        let a = if is_row { a.with_one(0) } else { a };
        let b = if is_column { b.with_one(1) } else { b };
        let (Some(at), Some(bt)) = (a.dims.len().checked_sub(2), b.dims.len().checked_sub(2))
        else {
            return Err(Error::msg("a product of matrices needs dims"));
        };
        let size = [a.dims[at], a.dims[at + 1], b.dims[bt + 1]];
        if b.dims[bt] != size[1] {
            return Err(Error::msg("the inner sizes of a product differ"));
        }
        let batch = broadcast([&a.dims[..at], &b.dims[..bt]]);
        let batch = batch.ok_or_else(|| Error::msg("the batches of a product do not fit"))?;
        let expand = |x: &Floats, rows: usize, columns: usize| {
            let mut dims = batch.clone();
            dims.extend([rows, columns]);
            x.expanded(&dims)
                .ok_or_else(|| Error::msg("the batches of a product do not fit"))
        };
        let (a, b) = (expand(&a, size[0], size[1])?, expand(&b, size[1], size[2])?);
        let at = batch.len();
        let (all, strides) = collapsed::<4>(&batch, &[&a.strides[..at], &b.strides[..at]])?;
        let product = Matmul {
            batch: all,
            a_batch: strides[0],
            b_batch: strides[1],
            size,
            a: [a.strides[at], a.strides[at + 1]],
            b: [b.strides[at], b.strides[at + 1]],
        };
        let mut dims = batch;
        if !is_row {
            dims.push(size[0]);
        }
        if !is_column {
            dims.push(size[2]);
        }
        self.kernel(product, &[&a, &b], dims)
    }

    pub fn attention(&mut self, inputs: &[Id], how: Attending) -> Result<Floats> {
        let q = self.floats(inputs[0])?;
        let rank = q.dims.len();
        let mut operands: SmallVec<[Floats; 3]> = SmallVec::new();
        for id in &inputs[..3] {
            let mut x = self.floats(*id)?;
            if x.dims.len() != rank || rank > 4 {
                return Err(Error::msg(
                    "attention is over at most four dims, as many of each operand",
                ));
            }
            while x.dims.len() < 4 {
                x = x.with_one(0);
            }
            operands.push(x);
        }
        let [q, k, v] = &operands[..] else {
            return Err(Error::msg("attention takes queries, keys and values"));
        };
        let [batch, heads, queries, size] = four(q)?;
        let [kb, kv_heads, keys, k_size] = four(k)?;
        let [vb, v_heads, v_keys, value_size] = four(v)?;
        let fits = (kb, vb, v_heads, v_keys, k_size) == (batch, batch, kv_heads, keys, size);
        if !fits || size == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(Error::msg("queries, keys and values do not fit"));
        }
        let mask_id = inputs.get(3).copied();
        let mask = self.mask_kind(how.mask, mask_id);
        let mask_floats = match mask.and(mask_id) {
            Some(id) => {
                let wide = self.floats(id)?.expanded(&[batch, heads, queries, keys]);
                Some(wide.ok_or_else(|| Error::msg("the mask does not fit"))?)
            }
            None => None,
        };
        let strides = |x: &Floats| [x.strides[0], x.strides[1], x.strides[2], x.strides[3]];
        let attention = Attention {
            sizes: [batch, heads, queries, keys],
            kv_heads,
            size,
            value_size,
            scale: how.scale.unwrap_or(1.0 / (size as f32).sqrt()),
            is_causal: how.is_causal,
            is_safe: how.is_safe,
            mask,
            q: strides(q),
            k: strides(k),
            v: strides(v),
            mask_strides: mask_floats.as_ref().map_or([0; 4], strides),
        };
        let reads: Vec<&Floats> = operands.iter().chain(&mask_floats).collect();
        let dims = SmallVec::from_slice(&[batch, queries, heads, value_size]);
        let work = Work::Kernel(Box::new(attention));
        let made = self.plan.push(&self.what, work, &reads, dims, keys)?;
        let mut made = made.permuted(&[0, 2, 1, 3]);
        while made.dims.len() > rank {
            made = made.without(0);
        }
        Ok(made)
    }

    /// A network over sequences: the states of its last layer, and the last states of all.
    pub fn recurrent(
        &mut self,
        inputs: &[Id],
        how: Recurring,
        weights: Option<&[Tensor]>,
    ) -> Result<Given> {
        let Some(weights) = weights else {
            return Err(Error::msg(
                "the weights of a network are not the same in every run",
            ));
        };
        let mut x = self.floats(inputs[0])?;
        let is_batched = x.dims.len() == 3;
        match (is_batched, how.is_batch_first) {
            (true, true) => x = x.permuted(&[1, 0, 2]),
            (true, false) => {}
            (false, _) => x = x.with_one(1),
        }
        let mut x = self.contiguous(x)?;
        let [time, batch, _] = x.dims[..] else {
            return Err(Error::msg("sequences have two or three dims"));
        };
        let mut first = [None, None];
        let mut rest = inputs[1..].iter();
        for (at, is_given) in how.is_given.iter().enumerate() {
            if *is_given {
                let id = rest
                    .next()
                    .ok_or_else(|| Error::msg("a first state is missing"))?;
                let state = self.in_order(*id)?;
                first[at] = Some(if is_batched { state } else { state.with_one(1) });
            }
        }
        let each = weights.len() / (how.layers * how.directions).max(1);
        let mut last: [Vec<Floats>; 2] = Default::default();
        for layer in 0..how.layers {
            let mut ways = Vec::with_capacity(how.directions);
            for way in 0..how.directions {
                let index = layer * how.directions + way;
                let given: Result<Vec<Floats>> = weights[index * each..][..each]
                    .iter()
                    .map(|tensor| self.plan.weights.add(tensor))
                    .collect();
                let given = given?;
                let state_of = |state: &Option<Floats>| {
                    let state = state.as_ref()?;
                    Some(state.sliced(0, index, 1, 1).without(0))
                };
                let states = [state_of(&first[0]), state_of(&first[1])];
                let [_, _, features] = x.dims[..] else {
                    return Err(Error::msg("sequences have a time, a batch and features"));
                };
                let hidden = given[1].dims[1];
                let gates = how.unit.gates() * hidden;
                let kernel = Recurrent {
                    unit: how.unit,
                    time,
                    batch,
                    inputs: features,
                    hidden,
                    is_reverse: way == 1,
                    has_biases: how.has_biases,
                    is_given: [states[0].is_some(), states[1].is_some()],
                };
                let cells = if how.unit == Unit::Lstm {
                    batch * hidden
                } else {
                    0
                };
                let length = time * batch * hidden;
                let all = SmallVec::from_slice(&[length + batch * hidden + cells]);
                let reads: Vec<&Floats> = [&x]
                    .into_iter()
                    .chain(&given)
                    .chain(states.iter().flatten())
                    .collect();
                let work = Work::Kernel(Box::new(kernel));
                let made = self.plan.push(&self.what, work, &reads, all, 2 * gates)?;
                let part = |start: usize, dims: &[usize]| {
                    let mut part = Floats::of(made.memory, dims.into());
                    part.start = start;
                    part
                };
                ways.push(part(0, &[time, batch, hidden]));
                last[0].push(part(length, &[1, batch, hidden]));
                if cells > 0 {
                    last[1].push(part(length + batch * hidden, &[1, batch, hidden]));
                }
            }
            x = self.joined(ways, 2)?;
        }
        let narrowed = |x: Floats| if is_batched { x } else { x.without(1) };
        let out = match is_batched && how.is_batch_first {
            true => x.permuted(&[1, 0, 2]),
            false => x,
        };
        let mut parts = vec![narrowed(out)];
        for states in last {
            if !states.is_empty() {
                parts.push(narrowed(self.joined(states, 0)?));
            }
        }
        Ok(Given::Parts(parts))
    }

    /// Floats side by side.
    fn joined(&mut self, mut parts: Vec<Floats>, dim: usize) -> Result<Floats> {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return Ok(only);
        }
        let mut dims = parts[0].dims.clone();
        dims[dim] = parts.iter().map(|part| part.dims[dim]).sum();
        let outer = dims[..dim].iter().product();
        let reads: Vec<&Floats> = parts.iter().collect();
        self.kernel(fx_static::Join { outer }, &reads, dims)
    }
}

/// A linear layer of these operands, and the sizes of what it gives.
fn linear_sizes(x: &Floats, weight: &Floats, has_bias: bool) -> Result<(Linear, Dims)> {
    let [outputs, inputs] = weight.dims[..] else {
        return Err(Error::msg("the weight of a linear layer has two dims"));
    };
    let mut dims = x.dims.clone();
    match dims.last_mut() {
        Some(last) if *last == inputs => *last = outputs,
        _ => return Err(Error::msg("the input of a linear layer has another width")),
    }
    let linear = Linear {
        inputs,
        outputs,
        has_bias,
        has_residual: false,
        is_residual_first: false,
        activation: Activation::None,
    };
    Ok((linear, dims))
}
