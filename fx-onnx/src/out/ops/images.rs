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
            return Err(Error::msg("columns of other than three dims: add the batch"));
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
            return Err(Error::msg(
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
            return Err(Error::msg("ONNX has affine grids from opset 20 on"));
        }
        let theta = call.tensor("theta")?;
        let Val::List(size) = call.val("size")? else {
            return Err(Error::msg("the size of a grid is not a list"));
        };
        let size: Option<Vec<_>> = size.into_iter().map(|val| match val { Val::Dim(dim) => Some(dim), _ => None }).collect();
        let size = cx.sizes(&size.unwrap_or_default())?;
        let corners = i64::from(call.flag("align_corners")?);
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
    let node = cx.node(if transposed { "ConvTranspose" } else { "Conv" });
    let node = node
        .input(&input)
        .input(&weight.name)
        .optional(bias.as_ref().map(|of| &of.name));
    let kernel = weight.shape[2..].iter().filter_map(|dim| dim.as_number());
    let node = node
        .ints("kernel_shape", kernel)
        .ints("strides", call.several("stride", dims)?);
    let node = node
        .ints("pads", [pads.clone(), pads].concat())
        .ints("dilations", call.several("dilation", dims)?);
    let node = node.int("group", call.int("groups")?);
    let node = match transposed {
        true => node.ints("output_padding", call.several("output_padding", dims)?),
        false => node,
    };
    let name = node.output();
    let name = unbatched(cx, name, added);
    call.given(name)
}

fn pool(cx: &mut Cx, call: &OpCall<'_>, dims: usize, op: &str) -> Result<Val> {
    let x = call.tensor("x")?;
    let (input, added) = batched(cx, &x, dims);
    let pads = call.several("padding", dims)?;
    let ceil = i64::from(call.flag("ceil_mode")?);
    let kernel = call.several("kernel_size", dims)?;
    let op_type = if op == "AveragePool" { op } else { "MaxPool" };
    let node = cx.node(op_type).input(&input).ints("kernel_shape", kernel);
    let node = node
        .ints("strides", call.several("stride", dims)?)
        .ints("pads", [pads.clone(), pads].concat());
    let node = node.int("ceil_mode", ceil);
    if op == "AveragePool" {
        let name = node
            .int(
                "count_include_pad",
                i64::from(call.flag("count_include_pad")?),
            )
            .output();
        let name = unbatched(cx, name, added);
        return call.given(name);
    }
    let node = node.ints("dilations", call.several("dilation", dims)?);
    if op == "MaxPool" {
        let name = node.output();
        let name = unbatched(cx, name, added);
        return call.given(name);
    }
    let names = node.outputs(2);
    // ONNX counts places through the whole tensor, PyTorch through each image.
    let area = fx_nn::value::Dim::product(&x.shape[x.rank() - dims..])?;
    let area = cx.size(&area)?;
    let places = cx.op("Mod", &[&names[1], &area]);
    let (best, places) = (
        unbatched(cx, names[0].clone(), added),
        unbatched(cx, places, added),
    );
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
    if sizes.iter().all(|size| *size == 1) {
        let op = if op == "MaxPool" {
            "GlobalMaxPool"
        } else {
            "GlobalAveragePool"
        };
        let name = cx.op(op, &[&input]);
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
        return Err(Error::msg(format_args!(
            "an adaptive pool to {sizes:?} of {own:?}: ONNX has those to size 1, and where the size is known and divides"
        )));
    };
    let name = cx
        .node(op)
        .input(&input)
        .ints("kernel_shape", kernel.clone())
        .ints("strides", kernel)
        .output();
    let name = unbatched(cx, name, added);
    call.given(name)
}

fn lp(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, p) = (call.tensor("x")?, call.float("norm_type")?);
    if p.fract() != 0.0 || call.flag("ceil_mode")? {
        return Err(Error::msg(
            "an LP pool of a broken power or with `ceil_mode`: ONNX has none",
        ));
    }
    let (input, added) = batched(cx, &x, dims);
    let node = cx
        .node("LpPool")
        .input(&input)
        .ints("kernel_shape", call.several("kernel_size", dims)?);
    let name = node
        .ints("strides", call.several("stride", dims)?)
        .int("p", p as i64)
        .output();
    let name = unbatched(cx, name, added);
    call.given(name)
}
