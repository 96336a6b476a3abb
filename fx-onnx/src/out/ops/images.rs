//! Windows over images: convolutions, pools, and images at the points of a grid.

use fx_nn::{Error, Result};

use super::rules;
use crate::out::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    conv1d => |cx, call| conv(cx, call, 1, false), conv2d => |cx, call| conv(cx, call, 2, false),
    conv3d => |cx, call| conv(cx, call, 3, false),
    conv_transpose1d => |cx, call| conv(cx, call, 1, true),
    conv_transpose2d => |cx, call| conv(cx, call, 2, true),
    conv_transpose3d => |cx, call| conv(cx, call, 3, true),
    max_pool1d => |cx, call| pool(cx, call, 1, "MaxPool"), max_pool2d => |cx, call| pool(cx, call, 2, "MaxPool"),
    max_pool3d => |cx, call| pool(cx, call, 3, "MaxPool"),
    avg_pool1d => |cx, call| pool(cx, call, 1, "AveragePool"), avg_pool2d => |cx, call| pool(cx, call, 2, "AveragePool"),
    avg_pool3d => |cx, call| pool(cx, call, 3, "AveragePool"),
    max_pool1d_with_indices => |cx, call| pool(cx, call, 1, "MaxPoolWithIndices"),
    max_pool2d_with_indices => |cx, call| pool(cx, call, 2, "MaxPoolWithIndices"),
    max_pool3d_with_indices => |cx, call| pool(cx, call, 3, "MaxPoolWithIndices"),
    adaptive_avg_pool1d => |cx, call| adaptive(cx, call, 1, "AveragePool"),
    adaptive_avg_pool2d => |cx, call| adaptive(cx, call, 2, "AveragePool"),
    adaptive_avg_pool3d => |cx, call| adaptive(cx, call, 3, "AveragePool"),
    adaptive_max_pool1d => |cx, call| adaptive(cx, call, 1, "MaxPool"),
    adaptive_max_pool2d => |cx, call| adaptive(cx, call, 2, "MaxPool"),
    adaptive_max_pool3d => |cx, call| adaptive(cx, call, 3, "MaxPool"),
    lp_pool1d => |cx, call| lp(cx, call, 1), lp_pool2d => |cx, call| lp(cx, call, 2),
    fold => |cx, call| {
        let x = call.tensor("x")?;
        if x.rank() != 3 {
            return Err(Error::not_in_format("columns of other than three dims: add the batch"));
        }
        let (size, kernel) = (call.several("output_size", 2)?, call.several("kernel_size", 2)?);
        let (size, block) = (cx.i64s(&size), cx.i64s(&kernel));
        let pads = call.several("padding", 2)?;
        let node = cx.node("Col2Im").input(&x.name).input(&size).input(&block);
        let node = node.ints("dilations", call.several("dilation", 2)?).ints("strides", call.several("stride", 2)?);
        let name = node.ints("pads", [pads.clone(), pads].concat()).output();
        call.given(name)
    },
    grid_sample => |cx, call| {
        let (x, grid) = (call.tensor("x")?, call.tensor("grid")?);
        let mode = call.text("mode")?;
        let mode = match (&*mode, cx.opset() >= 20) {
            ("bilinear", true) => "linear",
            ("bicubic", true) => "cubic",
            (other, _) => other,
        };
        if x.rank() == 5 && cx.opset() < 20 {
            return Err(Error::msg("ONNX reads volumes at the points of a grid from opset 20 on"));
        }
        if call.text("mode")? == "bicubic" && call.text("padding_mode")? == "border" {
            return Err(Error::not_in_format(
                "ONNX moves points to the border before it weighs pixels by a curve: pad with \"reflection\" or \"zeros\"",
            ));
        }
        let corners = i64::from(call.flag("align_corners")?);
        let node = cx.node("GridSample").input(&x.name).input(&grid.name).text("mode", mode);
        let name = node.text("padding_mode", &call.text("padding_mode")?).int("align_corners", corners).output();
        call.given(name)
    },
    affine_grid => |cx, call| {
        if cx.opset() < 20 {
            return Err(Error::not_in_format("ONNX has affine grids from opset 20 on"));
        }
        let theta = call.tensor("theta")?;
        let Val::List(size) = call.val("size")? else {
            return Err(Error::msg("the size of a grid is not a list"));
        };
        let size = size.into_iter().map(|val| match val {
            Val::Dim(dim) => Ok(dim),
            other => Err(Error::msg(format_args!("a size of a grid is {}", other.describe()))),
        });
        let size = cx.sizes(&size.collect::<Result<Vec<_>>>()?)?;
        let corners = i64::from(call.flag("align_corners")?);
        let points = call.result()?;
        let points = &points.shape[1..points.shape.len() - 1];
        if corners == 1 && points.iter().any(|size| size.as_number() == Some(1)) {
            return Err(Error::not_in_format(
                "ONNX has the one point of a dim of size 1 at its start where corners are aligned, and PyTorch in the middle",
            ));
        }
        let name = cx.node("AffineGrid").input(&theta.name).input(&size).int("align_corners", corners).output();
        call.given(name)
    },
}

/// Gives a batch to what has none: one dim fewer than windows take.
fn batched(cx: &mut Cx, x: &Operand, dims: usize) -> (Name, bool) {
    if x.rank() == dims + 1 {
        let zero = cx.i64s(&[0]);
        return (cx.op("Unsqueeze", &[&x.name, &zero]), true);
    }
    (x.name.clone(), false)
}

fn unbatched(cx: &mut Cx, name: Name, added: bool) -> Name {
    if !added {
        return name;
    }
    let zero = cx.i64s(&[0]);
    cx.op("Squeeze", &[&name, &zero])
}

fn conv(cx: &mut Cx, call: &OpCall<'_>, dims: usize, transposed: bool) -> Result<Val> {
    let (x, weight, bias) = (
        call.tensor("x")?,
        call.tensor("weight")?,
        call.optional_tensor("bias")?,
    );
    let (input, added) = batched(cx, &x, dims);
    let pads = call.several("padding", dims)?;
    let op = if transposed { "ConvTranspose" } else { "Conv" };
    let input = cx.carried(
        op,
        &Operand {
            name: input,
            ..x.clone()
        },
    )?;
    let carried = |cx: &mut Cx, of: &Operand| cx.cast(of, input.dtype);
    let weight = carried(cx, &weight)?;
    let bias = bias.map(|bias| carried(cx, &bias)).transpose()?;
    let (mut behind, mut more) = (pads.clone(), Vec::new());
    // Places behind that no window reaches.
    let mut rest = vec![0; dims];
    if transposed {
        more = call.several("output_padding", dims)?;
        let strides = call.several("stride", dims)?;
        for dim in 0..dims {
            // Engines take less than a stride: what is cut behind is cut less instead.
            if more[dim] >= strides[dim] {
                rest[dim] = (more[dim] - behind[dim]).max(0);
                behind[dim] = (behind[dim] - more[dim]).max(0);
                more[dim] = 0;
            }
        }
    }
    let is_longer = rest.iter().any(|count| *count > 0);
    let own = bias.as_ref().filter(|_| !is_longer);
    let node = cx
        .node(op)
        .input(&input.name)
        .input(&weight.name)
        .optional(own.map(|of| &of.name));
    let kernel = weight.shape[2..].iter().filter_map(|dim| dim.as_number());
    let node = node
        .ints("kernel_shape", kernel)
        .ints("strides", call.several("stride", dims)?);
    let node = node
        .ints("pads", [pads, behind].concat())
        .ints("dilations", call.several("dilation", dims)?);
    let node = node.int("group", call.int("groups")?);
    let node = match transposed {
        true => node.ints("output_padding", more),
        false => node,
    };
    let mut name = node.output();
    if is_longer {
        let pads = [vec![0; dims + 4], rest].concat();
        let pads = cx.i64s(&pads);
        name = cx.op("Pad", &[&name, &pads]);
        if let Some(bias) = bias {
            let shape: Vec<i64> = [1, -1].into_iter().chain(vec![1; dims]).collect();
            let shape = cx.i64s(&shape);
            let bias = cx.op("Reshape", &[&bias.name, &shape]);
            name = cx.op("Add", &[&name, &bias]);
        }
    }
    let name = cx.given_as(name, input.dtype, x.dtype)?;
    let name = unbatched(cx, name, added);
    call.given(name)
}

/// The sizes of a window along each dim.
struct Window {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    before: Vec<i64>,
    /// What is padded behind, so that the last window ends there: the number of windows is the result's.
    behind: Vec<i64>,
    /// Whether the engine rounds the number of windows up, where sizes are not known.
    ceil: bool,
}

/// The window of a pool. ONNX rounds the number of windows up by another rule than PyTorch, which leaves one out that
/// would start in the padding behind: the padding says how many there are.
fn window(
    call: &OpCall<'_>,
    x: &Operand,
    dims: usize,
    dilation: Vec<i64>,
    pads: Vec<i64>,
) -> Result<Window> {
    let ceil = call.flag("ceil_mode")?;
    let mut window = Window {
        kernel: call.several("kernel_size", dims)?,
        stride: call.several("stride", dims)?,
        dilation,
        behind: pads.clone(),
        before: pads,
        ceil: false,
    };
    if !ceil {
        return Ok(window);
    }
    let result = match call.results()?.first() {
        Some(meta) => meta.shape.clone(),
        None => Vec::new(),
    };
    // A mean over padding that was added needs the numbers of all dims.
    let is_fixed = (0..dims).all(|dim| size(&x.shape, dim, dims).is_some());
    let mut is_known = true;
    for dim in 0..dims {
        let (Some(own), Some(made)) = (size(&x.shape, dim, dims), size(&result, dim, dims)) else {
            // Steps of 1 leave nothing to round.
            is_known &= window.stride[dim] == 1;
            continue;
        };
        let reach =
            (made - 1) * window.stride[dim] + window.dilation[dim] * (window.kernel[dim] - 1) + 1;
        window.behind[dim] = (reach - own - window.before[dim]).max(0);
        is_known &= window.behind[dim] == window.before[dim] || is_fixed;
    }
    match is_known {
        true => Ok(window),
        false => rounded_up(call, x, window),
    }
}

/// A size of the last dims, if it is a number.
fn size(shape: &[fx_nn::value::Dim], dim: usize, dims: usize) -> Option<i64> {
    shape
        .get((shape.len() + dim).checked_sub(dims)?)?
        .as_number()
}

/// The window with the padding that was asked for, where an engine that rounds up has as many windows.
fn rounded_up(call: &OpCall<'_>, x: &Operand, window: Window) -> Result<Window> {
    let result = call.results()?;
    let (own, made) = (&x.shape, result.first().map(|meta| &meta.shape));
    let dims = window.kernel.len();
    for dim in 0..dims {
        let (own, made) = (
            size(own, dim, dims),
            made.and_then(|made| size(made, dim, dims)),
        );
        let count = own.map(|own| {
            let reach = window.dilation[dim] * (window.kernel[dim] - 1) + 1;
            let rest = own + 2 * window.before[dim] - reach;
            (rest + window.stride[dim] - 1).div_euclid(window.stride[dim]) + 1
        });
        if count != made {
            return Err(Error::not_in_format(
                "ONNX has another number of windows with `ceil_mode` here: pad before",
            ));
        }
    }
    Ok(Window {
        behind: window.before.clone(),
        ceil: true,
        ..window
    })
}

/// How many elements of a window count for a mean, of those that it covers with its padding, at each place of the result;
/// `None` if all do everywhere.
fn shares(window: &Window, own: &[i64], includes_pads: bool, made: &[i64]) -> Option<Vec<f64>> {
    let mut all = vec![1.0];
    let mut is_whole = true;
    for dim in 0..window.kernel.len() {
        // What is padded beyond the padding that was asked for counts in no mean.
        let (low, high) = match includes_pads {
            true => (-window.before[dim], own[dim] + window.before[dim]),
            false => (0, own[dim]),
        };
        let counts = (0..made[dim]).map(|at| {
            let start = at * window.stride[dim] - window.before[dim];
            let end = start + window.kernel[dim];
            (end.min(high) - start.max(low)) as f64 / window.kernel[dim] as f64
        });
        let counts: Vec<f64> = counts.collect();
        is_whole &= counts.iter().all(|share| *share == 1.0);
        all = all
            .iter()
            .flat_map(|a| counts.iter().map(move |b| a * b))
            .collect();
    }
    (!is_whole).then_some(all)
}

/// The mean of each window; `includes_pads` counts the padding that was asked for.
fn averaged(
    cx: &mut Cx,
    call: &OpCall<'_>,
    x: &Operand,
    input: &Operand,
    window: &Window,
    includes_pads: bool,
) -> Result<Name> {
    let dims = window.kernel.len();
    let carried = cx.carried("AveragePool", input)?;
    // Where padding was added to round up, the engine counts all of it, and the shares correct the mean.
    let rounds_up = window.behind != window.before;
    let node = cx.node("AveragePool").input(&carried.name);
    let node = node
        .ints("kernel_shape", window.kernel.clone())
        .ints("strides", window.stride.clone())
        .ints(
            "pads",
            [window.before.clone(), window.behind.clone()].concat(),
        )
        .int("ceil_mode", i64::from(window.ceil));
    let name = node
        .int("count_include_pad", i64::from(includes_pads || rounds_up))
        .output();
    let mut name = cx.given_as(name, carried.dtype, input.dtype)?;
    if rounds_up {
        let numbers = |shape: &[fx_nn::value::Dim]| -> Vec<i64> {
            let own = &shape[shape.len() - dims..];
            own.iter().filter_map(|dim| dim.as_number()).collect()
        };
        let made = numbers(&call.result()?.shape);
        if let Some(shares) = shares(window, &numbers(&x.shape), includes_pads, &made) {
            let shares = Operand {
                name: cx.numbers(&shares, input.dtype),
                dtype: input.dtype,
                shape: vec![made.iter().product::<i64>().into()],
            };
            let shape: Vec<fx_nn::value::Dim> = made.into_iter().map(Into::into).collect();
            let shares = cx.reshape(&shares, &shape)?;
            name = cx.op("Div", &[&name, &shares]);
        }
    }
    Ok(name)
}

fn pool(cx: &mut Cx, call: &OpCall<'_>, dims: usize, op: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let (input, added) = batched(cx, &x, dims);
    let input = Operand {
        name: input,
        ..x.clone()
    };
    let pads = call.several("padding", dims)?;
    if op == "AveragePool" {
        let window = window(call, &x, dims, vec![1; dims], pads)?;
        let includes_pads = call.flag("count_include_pad")?;
        let name = averaged(cx, call, &x, &input, &window, includes_pads)?;
        let name = unbatched(cx, name, added);
        return call.given(name);
    }
    let mut window = window(call, &x, dims, call.several("dilation", dims)?, pads)?;
    if window
        .behind
        .iter()
        .zip(&window.kernel)
        .any(|(pad, kernel)| pad >= kernel)
    {
        // Engines pad by less than a window: theirs is the number of windows then, if it is the same.
        window = rounded_up(call, &x, window)?;
    }
    let carried = cx.carried("MaxPool", &input)?;
    let node = cx.node("MaxPool").input(&carried.name);
    let node = node
        .ints("kernel_shape", window.kernel)
        .ints("strides", window.stride)
        .ints("pads", [window.before, window.behind].concat())
        .int("ceil_mode", i64::from(window.ceil))
        .ints("dilations", window.dilation);
    if op == "MaxPool" {
        let name = node.output();
        let name = cx.given_as(name, carried.dtype, x.dtype)?;
        let name = unbatched(cx, name, added);
        return call.given(name);
    }
    let names = node.outputs(2);
    // ONNX counts places through the whole tensor, PyTorch through each image.
    let area = fx_nn::value::Dim::product(&x.shape[x.rank() - dims..])?;
    let area = cx.size(&area)?;
    let places = cx.op("Mod", &[&names[1], &area]);
    let best = cx.given_as(names[0].clone(), carried.dtype, x.dtype)?;
    let (best, places) = (unbatched(cx, best, added), unbatched(cx, places, added));
    call.all_given(vec![best, places])
}

fn adaptive(cx: &mut Cx, call: &OpCall<'_>, dims: usize, op: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let sizes = call.several("output_size", dims)?;
    let own = &x.shape[x.rank() - dims..];
    if own
        .iter()
        .zip(&sizes)
        .all(|(own, size)| own.as_number() == Some(*size))
    {
        return call.val("x");
    }
    let (input, added) = batched(cx, &x, dims);
    let input = Operand {
        name: input,
        ..x.clone()
    };
    if sizes.iter().all(|size| *size == 1) {
        let op = if op == "MaxPool" {
            "GlobalMaxPool"
        } else {
            "GlobalAveragePool"
        };
        let name = cx.cast_op(op, &[&input])?;
        let name = unbatched(cx, name, added);
        return call.given(name);
    }
    let kernel: Option<Vec<i64>> = own
        .iter()
        .zip(&sizes)
        .map(|(own, size)| {
            let own = own.as_number()?;
            (*size > 0 && own % size == 0).then(|| own / size)
        })
        .collect();
    let Some(kernel) = kernel else {
        return Err(Error::not_in_format(format_args!(
            "an adaptive pool to {sizes:?} of {own:?}: ONNX has those to size 1, and where the size is known and divides"
        )));
    };
    let carried = cx.carried(op, &input)?;
    let node = cx.node(op).input(&carried.name);
    let name = node
        .ints("kernel_shape", kernel.clone())
        .ints("strides", kernel)
        .output();
    let name = cx.given_as(name, carried.dtype, x.dtype)?;
    let name = unbatched(cx, name, added);
    call.given(name)
}

fn lp(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, p) = (call.tensor("x")?, call.float("norm_type")?);
    let (input, added) = batched(cx, &x, dims);
    let input = Operand {
        name: input,
        ..x.clone()
    };
    let window = window(call, &x, dims, vec![1; dims], vec![0; dims])?;
    let name = if p > 0.0 && p % 2.0 == 0.0 && window.behind == window.before && !window.ceil {
        let carried = cx.carried("LpPool", &input)?;
        let node = cx.node("LpPool").input(&carried.name);
        let node = node
            .ints("kernel_shape", window.kernel)
            .ints("strides", window.stride);
        let name = node.int("p", p as i64).output();
        cx.given_as(name, carried.dtype, x.dtype)?
    } else {
        // ONNX sums powers of absolute values, PyTorch powers.
        let count: i64 = window.kernel.iter().product();
        let power = cx.number(p, x.dtype);
        let powers = Operand {
            name: cx.op("Pow", &[&input.name, &power]),
            ..input
        };
        let mean = averaged(cx, call, &x, &powers, &window, true)?;
        let count = cx.number(count as f64, x.dtype);
        let sum = cx.op("Mul", &[&mean, &count]);
        let root = cx.number(1.0 / p, x.dtype);
        cx.op("Pow", &[&sum, &root])
    };
    let name = unbatched(cx, name, added);
    call.given(name)
}
