//! Windows over images.

use fx_nn::prelude::*;
use fx_nn::{Bound, Error, Result};

use super::affine::{Affine, steps};
use crate::load::checks::{Constants, at_least, rank, windows};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[
    op("Conv", conv).check(convolution).weights(&[1, 2]),
    op("ConvInteger", |cx| {
        if cx.reader.is_reference {
            let (x, w) = (steps(cx, 0, 2, 1)?, steps(cx, 1, 3, 0)?);
            let y = ops::round(&convolved(cx, x, &w, 1, None)?, 0)?;
            return cx.of(as_type(&y, DType::I32)?, DType::I32);
        }
        let wide = |at: usize, zero: usize| -> Result<Tensor> {
            let x = as_type(&cx.tensor(at)?, DType::F32)?;
            match cx.optional(zero)? {
                Some(z) => {
                    let z = as_type(&z, DType::F32)?;
                    // Those of weights may be one for each result.
                    let rank = cx.rank(at)?;
                    let shape: Vec<i64> = std::iter::once(-1)
                        .chain(std::iter::repeat_n(1, rank - 1))
                        .collect();
                    x - if zero == 3 {
                        ops::reshape(&z, shape)?
                    } else {
                        z
                    }
                }
                None => Ok(x),
            }
        };
        let (x, w) = (wide(0, 2)?, wide(1, 3)?);
        let y = convolved(cx, x, &w, 1, None)?;
        cx.of(as_type(&ops::round(&y, 0)?, DType::I32)?, DType::I32)
    })
    .check(convolution)
    .integers(&[1])
    .any_type(),
    op("ConvTranspose", transposed)
        .check(convolution)
        .makes(output_shape)
        .weights(&[1, 2]),
    op("MaxPool", |cx| pool(cx, true)).check(pool_windows),
    op("AveragePool", |cx| pool(cx, false)).check(pool_windows),
    op("LpPool", |cx| {
        let p = cx.int("p", 2) as f64;
        let x = cx.tensor(0)?;
        let powered = x.abs()?.pow(p)?;
        let dims = cx.rank(0)? - 2;
        let window = window(cx, dims, &cx.ints("kernel_shape").unwrap_or_default())?;
        if window.dilations.iter().any(|d| *d != 1) || cx.flag("ceil_mode") {
            let (after, _) = reached(cx, &window, cx.flag("ceil_mode"))?;
            let wide = padded(&powered, &window.before, &after, 0.0)?;
            return cx.like(summed(cx, &wide, &window)?.pow(1.0 / p)?);
        }
        let padded = padded(&powered, &window.before, &window.after, 0.0)?;
        let count: i64 = window.kernel.iter().product();
        let mean = averaged(&padded, &window, false, true, &[0; 3][..dims])?;
        cx.like((mean * count as f64)?.pow(1.0 / p)?)
    })
    .check(pool_windows),
    op("GlobalAveragePool", |cx| {
        global(cx, |x, dims| ops::mean(x, dims, true))
    })
    .check(image),
    op("GlobalMaxPool", |cx| {
        global(cx, |x, dims| ops::amax(x, dims, true))
    })
    .check(image),
    op("GlobalLpPool", |cx| {
        let p = cx.int("p", 2) as f64;
        global(cx, |x, dims| {
            ops::sum(&x.abs()?.pow(p)?, dims, true)?.pow(1.0 / p)
        })
    })
    .check(image),
    op("GridSample", |cx| {
        let (x, grid) = (cx.tensor(0)?, cx.tensor(1)?);
        let mode = match &*cx.text("mode", "linear") {
            "linear" | "bilinear" => "bilinear",
            "nearest" => "nearest",
            _ => "bicubic",
        };
        let padding = cx.text("padding_mode", "zeros");
        let corners = cx.flag("align_corners");
        let grid = match (mode, &*padding) {
            // Points outside are moved to the centres of the pixels at the edges first.
            ("bicubic", "border") => {
                let shape = cx.known_shape(0)?;
                let edges = shape[2..].iter().rev().map(|size| match corners {
                    true => 1.0,
                    false => 1.0 - 1.0 / *size as f32,
                });
                let edges: Vec<f32> = edges.collect();
                let dims = edges.len();
                let edges = as_type(&Tensor::from_vec(edges, dims)?, cx.dtype(1)?)?;
                let high = ops::r#where(&grid.gt(1.0)?, &edges, &grid)?;
                ops::r#where(&grid.lt(-1.0)?, (-edges)?, high)?
            }
            _ => grid,
        };
        cx.like(ops::grid_sample(&x, &grid, mode, &padding, corners)?)
    }),
    op("AffineGrid", |cx| {
        let theta = cx.tensor(0)?;
        let size = cx.input(1).ints()?;
        cx.like(ops::affine_grid(&theta, size, cx.flag("align_corners"))?)
    }),
    op("Col2Im", |cx| {
        let x = cx.tensor(0)?;
        let (size, block) = (cx.input(1).known_ints()?, cx.input(2).known_ints()?);
        let dims = size.len();
        let each = |name: &str, or: i64, count: usize| -> Result<Vec<i64>> {
            let all = cx.ints(name).unwrap_or_else(|| vec![or; count]);
            match all.len() == count && all.iter().all(|n| *n >= or) {
                true => Ok(all),
                false => Err(Error::msg(format_args!(
                    "`{name}` is {all:?} for {dims} dims"
                ))),
            }
        };
        let (dilations, strides) = (each("dilations", 1, dims)?, each("strides", 1, dims)?);
        let pads = each("pads", 0, 2 * dims)?;
        if block.len() != dims || dims == 0 || size.iter().chain(&block).any(|n| *n < 1) {
            return Err(Error::msg(format_args!(
                "an image of {size:?} of blocks of {block:?}"
            )));
        }
        if dims != 2 || pads[..2] != pads[2..] {
            let window = Window {
                kernel: block,
                strides,
                dilations,
                before: wholes(&pads[..dims]),
                after: wholes(&pads[dims..]),
            };
            return columns(cx, &x, &size, &window);
        }
        cx.like(ops::fold(
            &x,
            pair(&size),
            pair(&block),
            pair(&dilations),
            pair(&pads),
            pair(&strides),
        )?)
    })
    .makes(|of| of.first().saturating_mul(of.product(1))),
    op("MaxUnpool", |cx| {
        let (x, places) = (cx.tensor(0)?, cx.tensor(1)?);
        let (shape, kernel) = (
            cx.known_shape(0)?,
            cx.ints("kernel_shape").unwrap_or_default(),
        );
        let strides = cx.ints("strides").unwrap_or_else(|| vec![1; kernel.len()]);
        let pads = cx.ints("pads").unwrap_or_else(|| vec![0; 2 * kernel.len()]);
        let dims = kernel.len();
        let mut own: Vec<i64> = shape[..2].iter().map(|n| *n as i64).collect();
        for at in 0..dims {
            own.push(
                (shape[2 + at] as i64 - 1) * strides[at] + kernel[at] - pads[at] - pads[at + dims],
            );
        }
        let total: i64 = own.iter().product();
        let flat = ops::scatter(
            &ops::zeros(vec![total], Some(cx.dtype(0)?))?,
            0,
            &ops::reshape(&places, [-1])?,
            &ops::reshape(&x, [-1])?,
        )?;
        let mut y = ops::reshape(&flat, own.clone())?;
        if cx.has(2) {
            // Places are counted through the size that the windows give: the rest is beside it.
            let asked = cx.input(2).known_ints()?;
            let more: Vec<i64> = asked.iter().zip(&own).map(|(a, b)| a - b).collect();
            if more.len() != own.len() || more[..2] != [0, 0] || more.iter().any(|n| *n < 0) {
                return Err(Error::msg(format_args!(
                    "an output of {asked:?}, where the windows give {own:?}"
                )));
            }
            y = padded(&y, &wholes(&vec![0; dims]), &wholes(&more[2..]), 0.0)?;
        }
        cx.like(y)
    })
    .check(pool_windows)
    .makes(output_shape),
];

/// What a convolution asks of its image, weight and attributes.
pub(super) fn convolution(cx: &NodeCx<'_>) -> Result<()> {
    windows(cx)?;
    if let (Ok(x), Ok(w)) = (cx.rank(0), cx.rank(1))
        && (x != w || x < 3)
    {
        return Err(Error::msg(format_args!(
            "an input of {x} dims and a weight of {w}"
        )));
    }
    at_least(cx, "group", 1)
}

/// What a pool asks.
pub(super) fn pool_windows(cx: &NodeCx<'_>) -> Result<()> {
    if cx
        .ints("kernel_shape")
        .is_none_or(|kernel| kernel.is_empty())
    {
        return Err(Error::msg("`kernel_shape` is missing"));
    }
    windows(cx)
}

pub(super) fn image(cx: &NodeCx<'_>) -> Result<()> {
    rank(cx, 0, 3..)
}

/// The elements of a result whose shape is asked for.
fn output_shape(of: &Constants<'_>) -> u64 {
    of.attribute("output_shape").max(of.product(2))
}

/// How windows lie.
struct Window {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    before: Vec<Whole>,
    after: Vec<Whole>,
}

impl Window {
    /// The margins, if they are known and the same at both ends.
    fn even(&self) -> Option<Vec<i64>> {
        let each = self.before.iter().zip(&self.after);
        each.map(|(low, high)| low.known().filter(|low| Some(*low) == high.known()))
            .collect()
    }
}

/// Margins that are known.
fn wholes(of: &[i64]) -> Vec<Whole> {
    of.iter().map(|n| Whole::from(*n)).collect()
}

fn window(cx: &NodeCx<'_>, dims: usize, kernel: &[i64]) -> Result<Window> {
    let or = |name: &str, number: i64| {
        cx.ints(name)
            .filter(|v| v.len() == dims)
            .unwrap_or_else(|| vec![number; dims])
    };
    let (strides, dilations) = (or("strides", 1), or("dilations", 1));
    let pads = cx
        .ints("pads")
        .filter(|v| v.len() == 2 * dims)
        .unwrap_or_else(|| vec![0; 2 * dims]);
    let (mut before, mut after) = (wholes(&pads[..dims]), wholes(&pads[dims..]));
    let auto = cx.text("auto_pad", "NOTSET");
    if auto.starts_with("SAME") {
        let sizes = cx.sizes(0)?;
        for at in 0..dims {
            let (size, reach) = (&sizes[2 + at], (kernel[at] - 1) * dilations[at] + 1);
            let total = match (size.known(), strides[at]) {
                // As many windows as places, whatever the size.
                (None, 1) => Whole::from(reach - 1),
                (_, stride) => {
                    let last = size.steps(stride)?.minus(1)?.times(stride)?;
                    let total = last.plus(reach)?.minus(size.clone())?;
                    match total.known() {
                        None if reach >= stride => total,
                        _ => total.at_least(0)?,
                    }
                }
            };
            let small = total.over(2)?;
            let rest = total.minus(small.clone())?;
            (before[at], after[at]) = match auto == "SAME_UPPER" {
                true => (small, rest),
                false => (rest, small),
            };
        }
    } else if auto == "VALID" {
        (before, after) = (wholes(&vec![0; dims]), wholes(&vec![0; dims]));
    }
    Ok(Window {
        kernel: kernel.to_vec(),
        strides,
        dilations,
        before,
        after,
    })
}

/// The image with margins.
fn padded(x: &Tensor, before: &[Whole], after: &[Whole], value: f64) -> Result<Tensor> {
    if before.iter().chain(after).all(|n| n.known() == Some(0)) {
        return Ok(x.clone());
    }
    let mut sizes = Vec::new();
    for (low, high) in before.iter().zip(after).rev() {
        sizes.extend([low.int()?, high.int()?]);
    }
    ops::pad(x, sizes, "constant", Bound::from(value))
}

fn pair(of: &[i64]) -> (usize, usize) {
    (of[0].max(0) as usize, of[1].max(0) as usize)
}

fn triple(of: &[i64]) -> (usize, usize, usize) {
    (
        of[0].max(0) as usize,
        of[1].max(0) as usize,
        of[2].max(0) as usize,
    )
}

pub(super) fn conv(cx: &mut NodeCx<'_>) -> Given {
    let rank = cx.rank(0).or_else(|_| cx.rank(1))?;
    let (x, w, b) = (cx.ranked(0, rank)?, cx.tensor(1)?, cx.optional(2)?);
    let y = convolved(cx, x, &w, 1, b.as_ref())?;
    cx.like(y)
}

/// A convolution by the node's attributes, whose weight is an input.
pub(super) fn convolved(
    cx: &NodeCx<'_>,
    x: Tensor,
    w: &Tensor,
    at: usize,
    b: Option<&Tensor>,
) -> Result<Tensor> {
    let dims = cx.rank(0).or_else(|_| cx.rank(at))?.saturating_sub(2);
    let kernel = match cx.ints("kernel_shape") {
        Some(kernel) => kernel,
        None => cx.known_shape(at)?[2..].iter().map(|n| *n as i64).collect(),
    };
    let window = window(cx, dims, &kernel)?;
    let groups = cx.int("group", 1) as usize;
    let (x, pads) = match window.even() {
        Some(pads) => (x, pads),
        None => (
            padded(&x, &window.before, &window.after, 0.0)?,
            vec![0; dims],
        ),
    };
    let (s, d) = (&window.strides, &window.dilations);
    match dims {
        1 => ops::conv1d(
            &x,
            w,
            b,
            s[0] as usize,
            pads[0] as usize,
            d[0] as usize,
            groups,
        ),
        2 => ops::conv2d(&x, w, b, pair(s), pair(&pads), pair(d), groups),
        3 => ops::conv3d(&x, w, b, triple(s), triple(&pads), triple(d), groups),
        other => Err(Error::msg(format_args!("a convolution of {other} dims"))),
    }
}

fn transposed(cx: &mut NodeCx<'_>) -> Given {
    let (x, w, b) = (cx.tensor(0)?, cx.tensor(1)?, cx.optional(2)?);
    let shape = cx.known_shape(1)?;
    let dims = shape.len() - 2;
    let kernel: Vec<i64> = shape[2..].iter().map(|n| *n as i64).collect();
    let or = |name: &str, number: i64| {
        cx.ints(name)
            .filter(|v| v.len() == dims)
            .unwrap_or_else(|| vec![number; dims])
    };
    let (s, d, mut extra) = (
        or("strides", 1),
        or("dilations", 1),
        or("output_padding", 0),
    );
    let pads = cx
        .ints("pads")
        .filter(|v| v.len() == 2 * dims)
        .unwrap_or_else(|| vec![0; 2 * dims]);
    let (mut before, mut after) = (pads[..dims].to_vec(), pads[dims..].to_vec());
    let auto = cx.text("auto_pad", "NOTSET");
    let target = cx
        .ints("output_shape")
        .map(|shape| shape[shape.len() - dims..].to_vec());
    if target.is_some() || auto.starts_with("SAME") {
        let own = cx.known_shape(0)?;
        for at in 0..dims {
            let size = own[2 + at] as i64;
            let want = target.as_ref().map_or(size * s[at], |t| t[at]);
            let total = s[at] * (size - 1) + extra[at] + (kernel[at] - 1) * d[at] + 1 - want;
            if total < 0 {
                extra[at] -= total;
                (before[at], after[at]) = (0, 0);
                continue;
            }
            let small = total / 2;
            (before[at], after[at]) = if auto == "SAME_UPPER" {
                (small, total - small)
            } else {
                (total - small, small)
            };
        }
    }
    let groups = cx.int("group", 1) as usize;
    let common: Vec<i64> = before.iter().zip(&after).map(|(a, b)| *a.min(b)).collect();
    // What PyTorch does not add at the end, it can cut, or be padded with the bias.
    let too_long = extra.iter().zip(&s).any(|(e, s)| e >= s);
    if too_long {
        return Err(Error::msg("an output padding of a stride or more"));
    }
    let mut y = match dims {
        1 => ops::conv_transpose1d(
            &x,
            &w,
            b.as_ref(),
            s[0] as usize,
            common[0] as usize,
            extra[0] as usize,
            groups,
            d[0] as usize,
        )?,
        2 => ops::conv_transpose2d(
            &x,
            &w,
            b.as_ref(),
            pair(&s),
            pair(&common),
            pair(&extra),
            groups,
            pair(&d),
        )?,
        3 => ops::conv_transpose3d(
            &x,
            &w,
            b.as_ref(),
            triple(&s),
            triple(&common),
            triple(&extra),
            groups,
            triple(&d),
        )?,
        other => {
            return Err(Error::msg(format_args!(
                "a transposed convolution of {other} dims"
            )));
        }
    };
    for at in 0..dims {
        let (low, high) = (before[at] - common[at], after[at] - common[at]);
        if low != 0 || high != 0 {
            let size = (y.size(2 + at as i64)? - (low + high))?;
            y = ops::narrow(&y, 2 + at as i64, low, size)?;
        }
    }
    cx.like(y)
}

pub(super) fn pool(cx: &mut NodeCx<'_>, max: bool) -> Given {
    let x = cx.tensor(0)?;
    let dims = cx.rank(0)? - 2;
    let kernel = cx.ints("kernel_shape").unwrap_or_default();
    let window = window(cx, dims, &kernel)?;
    let ceil = cx.flag("ceil_mode");
    let with_places = cx.node.output.get(1).is_some_and(|name| !name.is_empty());
    let dtype = cx.dtype(0)?;
    if max {
        let is_bytes = cx.reader.is_reference && matches!(dtype, DType::U8 | DType::I8);
        let float = match dtype.is_floating_point() {
            true => x.clone(),
            // Elements as they are, by a scale of 1.
            false if is_bytes => Affine::STEPS.values(&x)?,
            false => as_type(&x, DType::F32)?,
        };
        let fits = |pads: &Vec<i64>| pads.iter().zip(&kernel).all(|(p, k)| 2 * p <= *k);
        let even = window.even().filter(fits);
        let small = even.is_some();
        let (source, pads) = match even {
            Some(pads) => (float, pads),
            None if with_places => {
                return Err(Error::msg("places in an image that is padded on one side"));
            }
            None => {
                let (after, _) = reached(cx, &window, ceil)?;
                let wide = padded(&float, &window.before, &after, f64::NEG_INFINITY)?;
                (wide, vec![0; dims])
            }
        };
        let ceil = ceil && small;
        let (k, s, d) = (&window.kernel, &window.strides, &window.dilations);
        if with_places {
            let (y, places) = match dims {
                1 => ops::max_pool1d_with_indices(
                    &source,
                    k[0] as usize,
                    s[0] as usize,
                    pads[0] as usize,
                    d[0] as usize,
                    ceil,
                )?,
                2 => ops::max_pool2d_with_indices(
                    &source,
                    pair(k),
                    pair(s),
                    pair(&pads),
                    pair(d),
                    ceil,
                )?,
                _ => ops::max_pool3d_with_indices(
                    &source,
                    triple(k),
                    triple(s),
                    triple(&pads),
                    triple(d),
                    ceil,
                )?,
            };
            // ONNX counts places through the whole tensor.
            let sizes = cx.sizes(0)?;
            let places = match cx.flag("storage_order") {
                true => by_columns(&places, &cx.known_shape(0)?[2..])?,
                false => places,
            };
            let images = sizes[0].times(sizes[1].clone())?;
            let area = sizes[2..]
                .iter()
                .try_fold(Whole::from(1), |n, size| n.times(size.clone()))?;
            let mut wide = vec![sizes[0].int()?, sizes[1].int()?];
            wide.extend(std::iter::repeat_n(Int::from(1i64), dims));
            let offsets = match (images.known(), area.known()) {
                (Some(images), Some(area)) => {
                    let offsets: Vec<i64> = (0..images).map(|at| at * area).collect();
                    Tensor::from_vec(offsets, images.max(0) as usize)?
                }
                _ => (cx.numbers(images.int()?)? * area.tensor()?)?,
            };
            let offsets = ops::reshape(&offsets, wide)?;
            return Ok(vec![
                V::of(as_type(&y, dtype)?, dtype),
                V::of((places + offsets)?, DType::I64),
            ]);
        }
        let y = match dims {
            1 => ops::max_pool1d(
                &source,
                k[0] as usize,
                s[0] as usize,
                pads[0] as usize,
                d[0] as usize,
                ceil,
            )?,
            2 => ops::max_pool2d(&source, pair(k), pair(s), pair(&pads), pair(d), ceil)?,
            3 => ops::max_pool3d(
                &source,
                triple(k),
                triple(s),
                triple(&pads),
                triple(d),
                ceil,
            )?,
            other => return Err(Error::msg(format_args!("a pool of {other} dims"))),
        };
        if is_bytes {
            return Ok(vec![Affine::STEPS.levels(&y, dtype)?]);
        }
        return cx.of(as_type(&y, dtype)?, dtype);
    }
    let counts_pads = cx.flag("count_include_pad");
    let fits = |pads: &Vec<i64>| {
        window.dilations.iter().all(|d| *d == 1)
            && pads.iter().zip(&kernel).all(|(p, k)| 2 * p <= *k)
    };
    if let Some(pads) = window.even().filter(fits) {
        return cx.like(averaged(&x, &window, ceil, counts_pads, &pads)?);
    }
    if ceil || window.dilations.iter().any(|d| *d != 1) {
        // Of each channel, and of the ones that are there.
        let here = if counts_pads { 1.0 } else { 0.0 };
        let (after, more) = reached(cx, &window, ceil)?;
        let wide = padded(&x, &window.before, &after, 0.0)?;
        let there = padded(
            &ops::ones_like(&x, None)?,
            &window.before,
            &window.after,
            here,
        )?;
        let there = padded(&there, &wholes(&vec![0; dims]), &more, 0.0)?;
        return cx.like((summed(cx, &wide, &window)? / summed(cx, &there, &window)?)?);
    }
    let wide = padded(&x, &window.before, &window.after, 0.0)?;
    let none = vec![0; dims];
    let mean = averaged(&wide, &window, false, true, &none)?;
    if counts_pads {
        return cx.like(mean);
    }
    let there = padded(
        &ops::ones_like(&x, None)?,
        &window.before,
        &window.after,
        0.0,
    )?;
    let share = averaged(&there, &window, false, true, &none)?;
    cx.like((mean / share)?)
}

/// The margins at the end with what the last windows reach beyond them, and that alone.
fn reached(cx: &NodeCx<'_>, window: &Window, ceil: bool) -> Result<(Vec<Whole>, Vec<Whole>)> {
    let mut more = wholes(&vec![0i64; window.kernel.len()]);
    if ceil {
        let sizes = cx.sizes(0)?;
        for (at, more) in more.iter_mut().enumerate() {
            let (stride, before) = (window.strides[at], &window.before[at]);
            let inside = sizes[2 + at].plus(before.clone())?;
            let reach = (window.kernel[at] - 1) * window.dilations[at] + 1;
            let room = inside.plus(window.after[at].clone())?.minus(reach)?;
            // Where the last window begins, unless that is behind all that is there.
            let last = room.steps(stride)?.times(stride)?;
            let before_it = last.minus(stride)?;
            let last = last.minus(inside)?.if_negative(last, before_it)?;
            *more = last.minus(room)?.at_least(0)?;
        }
    }
    let after = window.after.iter().zip(&more);
    let after = after.map(|(after, more)| after.plus(more.clone()));
    Ok((after.collect::<Result<_>>()?, more))
}

/// The sums of windows, as a convolution of each channel.
fn summed(cx: &NodeCx<'_>, x: &Tensor, window: &Window) -> Result<Tensor> {
    let channels = cx.shape(0)?[1].as_known();
    let channels =
        channels.ok_or_else(|| Error::msg("a number of channels that only a run knows"))?;
    let mut shape = vec![channels, 1];
    shape.extend(window.kernel.iter().map(|k| *k as usize));
    let ones = Tensor::full(shape, 1.0, cx.dtype(0)?)?;
    let (s, d) = (&window.strides, &window.dilations);
    match window.kernel.len() {
        1 => ops::conv1d(x, &ones, None, s[0] as usize, 0, d[0] as usize, channels),
        2 => ops::conv2d(x, &ones, None, pair(s), (0, 0), pair(d), channels),
        3 => ops::conv3d(x, &ones, None, triple(s), (0, 0, 0), triple(d), channels),
        other => Err(Error::msg(format_args!("a pool of {other} dims"))),
    }
}

/// Places in an image that are counted row by row, counted column by column.
fn by_columns(places: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    let (mut row, mut column) = (sizes.iter().product::<usize>() as i64, 1i64);
    for size in sizes {
        let size = *size as i64;
        row /= size.max(1);
        let own = ops::remainder(&ops::floor_divide(places, row)?, size)?;
        let own = (own * column)?;
        sum = Some(match sum {
            Some(sum) => (sum + own)?,
            None => own,
        });
        column *= size;
    }
    sum.ok_or_else(|| Error::msg("places without dims"))
}

/// An image of any number of dims as the sum of its blocks, which are columns.
fn columns(cx: &NodeCx<'_>, x: &Tensor, size: &[i64], window: &Window) -> Given {
    let dims = size.len();
    let (mut wide, mut counts) = (Vec::with_capacity(dims), Vec::with_capacity(dims));
    let known = |of: &[Whole]| {
        of.iter()
            .map(|n| n.known().unwrap_or(0))
            .collect::<Vec<i64>>()
    };
    let (before, after) = (known(&window.before), known(&window.after));
    for at in 0..dims {
        let whole = size[at] + before[at] + after[at];
        let reach = (window.kernel[at] - 1) * window.dilations[at] + 1;
        if whole < reach {
            return Err(Error::msg(format_args!(
                "blocks of {:?} in an image of {size:?}",
                window.kernel
            )));
        }
        wide.push(whole);
        counts.push((whole - reach) / window.strides[at] + 1);
    }
    let product = |all: &[i64]| all.iter().fold(1i64, |n, size| n.saturating_mul(*size));
    let (block, count, area) = (product(&window.kernel), product(&counts), product(&wide));
    if block.saturating_mul(count).max(area) > cx.reader.limits.constant_bytes as i64 / 8 {
        return Err(Error::msg(
            "an image of more places than `Limits::constant_bytes` holds",
        ));
    }
    // The place in the image of each element of a block, for each block.
    let mut places = Vec::with_capacity((block * count) as usize);
    for inside in 0..block {
        for number in 0..count {
            let (mut inside, mut number, mut place, mut step) = (inside, number, 0, 1);
            for at in (0..dims).rev() {
                let offset = inside % window.kernel[at] * window.dilations[at];
                let start = number % counts[at] * window.strides[at];
                place += (start + offset) * step;
                inside /= window.kernel[at];
                number /= counts[at];
                step *= wide[at];
            }
            places.push(place);
        }
    }
    let places = Tensor::from_vec(places, (block * count) as usize)?;
    let channels = x.size(1)?.floordiv(block)?;
    let rows = vec![x.size(0)?, channels, (block * count).into()];
    let source = ops::reshape(x, rows)?;
    let empty = ops::new_zeros(x, vec![x.size(0)?, channels, area.into()], None)?;
    let flat = ops::index_add(&empty, 2, &places, &source, 1)?;
    let mut image = vec![x.size(0)?, channels];
    image.extend(wide.iter().map(|size| Int::from(*size)));
    let mut y = ops::reshape(&flat, image)?;
    for at in 0..dims {
        if wide[at] != size[at] {
            y = ops::narrow(&y, 2 + at as i64, before[at], size[at])?;
        }
    }
    cx.like(y)
}

fn averaged(
    x: &Tensor,
    window: &Window,
    ceil: bool,
    counts_pads: bool,
    pads: &[i64],
) -> Result<Tensor> {
    let (k, s) = (&window.kernel, &window.strides);
    match k.len() {
        1 => ops::avg_pool1d(
            x,
            k[0] as usize,
            s[0] as usize,
            pads[0] as usize,
            ceil,
            counts_pads,
        ),
        2 => ops::avg_pool2d(x, pair(k), pair(s), pair(pads), ceil, counts_pads),
        3 => ops::avg_pool3d(x, triple(k), triple(s), triple(pads), ceil, counts_pads),
        other => Err(Error::msg(format_args!("a pool of {other} dims"))),
    }
}

fn global(cx: &NodeCx<'_>, compute: impl Fn(&Tensor, Vec<i64>) -> Result<Tensor>) -> Given {
    let x = cx.tensor(0)?;
    let dims: Vec<i64> = (2..cx.rank(0)? as i64).collect();
    if dims.len() == 2 && cx.node.op_type == "GlobalAveragePool" {
        return cx.like(ops::adaptive_avg_pool2d(&x, 1)?);
    }
    cx.like(compute(&x, dims)?)
}
