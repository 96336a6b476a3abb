//! Windows over images.

use fx_nn::prelude::*;
use fx_nn::{Bound, Error, Result};

use super::Rule;
use crate::load::node::{Given, NodeCx};
use crate::load::value::{V, as_type};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Conv" => conv,
        "ConvInteger" => |cx| {
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
            let y = convolved(cx, x, &w, None)?;
            cx.of(as_type(&ops::round(&y, 0)?, DType::I32)?, DType::I32)
        },
        "ConvTranspose" => transposed,
        "MaxPool" => |cx| pool(cx, true),
        "AveragePool" => |cx| pool(cx, false),
        "LpPool" => |cx| {
            let p = cx.int("p", 2) as f64;
            let x = cx.tensor(0)?;
            let powered = x.abs()?.pow(p)?;
            let dims = cx.rank(0)? - 2;
            let window = window(cx, dims, &cx.ints("kernel_shape").unwrap_or_default())?;
            if window.dilations.iter().any(|d| *d != 1) {
                return Err(Error::msg("an LP pool with dilations"));
            }
            let padded = padded(&powered, &window.before, &window.after, 0.0)?;
            let count: i64 = window.kernel.iter().product();
            let mean = averaged(
                &padded,
                &window,
                cx.flag("ceil_mode"),
                true,
                &[0; 3][..dims],
            )?;
            cx.like((mean * count as f64)?.pow(1.0 / p)?)
        },
        "GlobalAveragePool" => |cx| global(cx, |x, dims| ops::mean(x, dims, true)),
        "GlobalMaxPool" => |cx| global(cx, |x, dims| ops::amax(x, dims, true)),
        "GlobalLpPool" => |cx| {
            let p = cx.int("p", 2) as f64;
            global(cx, |x, dims| {
                ops::sum(&x.abs()?.pow(p)?, dims, true)?.pow(1.0 / p)
            })
        },
        "GridSample" => |cx| {
            let (x, grid) = (cx.tensor(0)?, cx.tensor(1)?);
            if cx.rank(0)? != 4 {
                return Err(Error::msg("samples of other than images"));
            }
            let mode = match &*cx.text("mode", "linear") {
                "linear" | "bilinear" => "bilinear",
                "nearest" => "nearest",
                _ => "bicubic",
            };
            let padding = cx.text("padding_mode", "zeros");
            cx.like(ops::grid_sample(
                &x,
                &grid,
                mode,
                &padding,
                cx.flag("align_corners"),
            )?)
        },
        "AffineGrid" => |cx| {
            let theta = cx.tensor(0)?;
            let size = cx.input(1).ints()?;
            cx.like(ops::affine_grid(&theta, size, cx.flag("align_corners"))?)
        },
        "Col2Im" => |cx| {
            let x = cx.tensor(0)?;
            let (size, block) = (cx.input(1).known_ints()?, cx.input(2).known_ints()?);
            if size.len() != 2 {
                return Err(Error::msg("columns of other than images"));
            }
            let two = |name: &str, or: i64| cx.ints(name).unwrap_or_else(|| vec![or; 2]);
            let pads = cx.ints("pads").unwrap_or_else(|| vec![0; 4]);
            if pads[..2] != pads[2..] {
                return Err(Error::msg("columns padded on one side"));
            }
            let pair = |v: &[i64]| (v[0] as usize, v[1] as usize);
            cx.like(ops::fold(
                &x,
                pair(&size),
                pair(&block),
                pair(&two("dilations", 1)),
                pair(&pads),
                pair(&two("strides", 1)),
            )?)
        },
        "MaxUnpool" => |cx| {
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
                    (shape[2 + at] as i64 - 1) * strides[at] + kernel[at]
                        - pads[at]
                        - pads[at + dims],
                );
            }
            let total: i64 = own.iter().product();
            let flat = ops::scatter(
                &ops::zeros(vec![total], Some(cx.dtype(0)?))?,
                0,
                &ops::reshape(&places, [-1])?,
                &ops::reshape(&x, [-1])?,
            )?;
            let y = ops::reshape(&flat, own)?;
            if cx.has(2) {
                return Err(Error::msg(
                    "unpooling to a size that is asked for: its places are counted through another",
                ));
            }
            cx.like(y)
        },
        _ => return None,
    })
}

/// How windows lie.
struct Window {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    before: Vec<i64>,
    after: Vec<i64>,
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
    let (mut before, mut after) = (pads[..dims].to_vec(), pads[dims..].to_vec());
    let auto = cx.text("auto_pad", "NOTSET");
    if auto.starts_with("SAME") {
        let shape = cx.known_shape(0)?;
        for at in 0..dims {
            let size = shape[2 + at] as i64;
            let count = (size + strides[at] - 1) / strides[at];
            let total =
                ((count - 1) * strides[at] + (kernel[at] - 1) * dilations[at] + 1 - size).max(0);
            let small = total / 2;
            (before[at], after[at]) = if auto == "SAME_UPPER" {
                (small, total - small)
            } else {
                (total - small, small)
            };
        }
    } else if auto == "VALID" {
        (before, after) = (vec![0; dims], vec![0; dims]);
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
fn padded(x: &Tensor, before: &[i64], after: &[i64], value: f64) -> Result<Tensor> {
    if before.iter().chain(after).all(|n| *n == 0) {
        return Ok(x.clone());
    }
    let sizes: Vec<i64> = before
        .iter()
        .zip(after)
        .rev()
        .flat_map(|(low, high)| [*low, *high])
        .collect();
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

fn conv(cx: &mut NodeCx<'_>) -> Given {
    let (x, w, b) = (cx.tensor(0)?, cx.tensor(1)?, cx.optional(2)?);
    let y = convolved(cx, x, &w, b.as_ref())?;
    cx.like(y)
}

fn convolved(cx: &NodeCx<'_>, x: Tensor, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor> {
    let dims = cx.rank(0)?.saturating_sub(2);
    let kernel = match cx.ints("kernel_shape") {
        Some(kernel) => kernel,
        None => cx.known_shape(1)?[2..].iter().map(|n| *n as i64).collect(),
    };
    let window = window(cx, dims, &kernel)?;
    let groups = cx.int("group", 1) as usize;
    let (x, pads) = match window.before == window.after {
        true => (x, window.before.clone()),
        false => (
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

fn pool(cx: &mut NodeCx<'_>, max: bool) -> Given {
    let x = cx.tensor(0)?;
    let dims = cx.rank(0)? - 2;
    let kernel = cx.ints("kernel_shape").unwrap_or_default();
    let window = window(cx, dims, &kernel)?;
    let ceil = cx.flag("ceil_mode");
    let with_places = cx.node.output.get(1).is_some_and(|name| !name.is_empty());
    let dtype = cx.dtype(0)?;
    if max {
        let float = if dtype.is_floating_point() {
            x.clone()
        } else {
            as_type(&x, DType::F32)?
        };
        if with_places && cx.flag("storage_order") {
            return Err(Error::msg("places by columns"));
        }
        let small = window.before == window.after
            && window.before.iter().zip(&kernel).all(|(p, k)| 2 * p <= *k);
        let (source, pads) = match small {
            true => (float, window.before.clone()),
            false if with_places => {
                return Err(Error::msg("places in an image that is padded on one side"));
            }
            false => (
                padded(&float, &window.before, &window.after, f64::NEG_INFINITY)?,
                vec![0; dims],
            ),
        };
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
            let shape = cx.known_shape(0)?;
            let (images, area) = (shape[0] * shape[1], shape[2..].iter().product::<usize>());
            let offsets: Vec<i64> = (0..images).map(|at| (at * area) as i64).collect();
            let mut wide = vec![shape[0] as i64, shape[1] as i64];
            wide.extend(std::iter::repeat_n(1, dims));
            let offsets = ops::reshape(&Tensor::from_vec(offsets, images)?, wide)?;
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
        return cx.of(as_type(&y, dtype)?, dtype);
    }
    let counts_pads = cx.flag("count_include_pad");
    let plain = window.before == window.after
        && window.dilations.iter().all(|d| *d == 1)
        && window.before.iter().zip(&kernel).all(|(p, k)| 2 * p <= *k);
    if plain {
        return cx.like(averaged(&x, &window, ceil, counts_pads, &window.before)?);
    }
    if window.dilations.iter().any(|d| *d != 1) {
        // As a convolution of each channel, and of the ones that are there.
        let channels = cx.known_shape(0)?[1];
        let mut shape = vec![channels, 1];
        shape.extend(kernel.iter().map(|k| *k as usize));
        let ones = Tensor::full(shape, 1.0, dtype)?;
        let here = if counts_pads { 1.0 } else { 0.0 };
        let (mut after, known) = (window.after.clone(), cx.known_shape(0)?);
        let mut more = vec![0i64; dims];
        if ceil {
            for at in 0..dims {
                let room = known[2 + at] as i64 + window.before[at] + window.after[at]
                    - (kernel[at] - 1) * window.dilations[at]
                    - 1;
                let mut count = (room + window.strides[at] - 1) / window.strides[at] + 1;
                if (count - 1) * window.strides[at] >= known[2 + at] as i64 + window.before[at] {
                    count -= 1;
                }
                more[at] = ((count - 1) * window.strides[at] - room).max(0);
                after[at] += more[at];
            }
        }
        let wide = padded(&x, &window.before, &after, 0.0)?;
        let there = padded(
            &ops::ones_like(&x, None)?,
            &window.before,
            &window.after,
            here,
        )?;
        let there = padded(&there, &vec![0; dims], &more, 0.0)?;
        let through = |x: &Tensor| match dims {
            1 => ops::conv1d(
                x,
                &ones,
                None,
                window.strides[0] as usize,
                0,
                window.dilations[0] as usize,
                channels,
            ),
            2 => ops::conv2d(
                x,
                &ones,
                None,
                pair(&window.strides),
                (0, 0),
                pair(&window.dilations),
                channels,
            ),
            _ => ops::conv3d(
                x,
                &ones,
                None,
                triple(&window.strides),
                (0, 0, 0),
                triple(&window.dilations),
                channels,
            ),
        };
        return cx.like((through(&wide)? / through(&there)?)?);
    }
    let wide = padded(&x, &window.before, &window.after, 0.0)?;
    let none = vec![0; dims];
    let mean = averaged(&wide, &window, ceil, true, &none)?;
    if counts_pads {
        return cx.like(mean);
    }
    let there = padded(
        &ops::ones_like(&x, None)?,
        &window.before,
        &window.after,
        0.0,
    )?;
    let share = averaged(&there, &window, ceil, true, &none)?;
    cx.like((mean / share)?)
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
