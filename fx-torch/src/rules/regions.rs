//! Operators of torchvision: boxes, regions of images, convolutions whose points are moved.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by};
use crate::call::Call;
use crate::leaves;

fn nms(call: &Call<'_>) -> Result<Value> {
    let (boxes, scores): (Tensor, Tensor) = (call.of("dets")?, call.of("scores")?);
    let threshold: f64 = call.of("iou_threshold")?;
    Ok(Value::object(leaves::nms(&boxes, &scores, threshold)?))
}

/// Regions of images; kinds that PyTorch gives two results of have no second one here.
fn regions(call: &Call<'_>, kind: &str) -> Result<Value> {
    let x: Tensor = call.of("input")?;
    let found = leaves::regions(
        &x,
        &call.of::<Tensor>("rois")?,
        kind,
        call.of("pooled_height")?,
        call.of("pooled_width")?,
        call.of("spatial_scale")?,
        call.or("sampling_ratio", 0)?,
        call.or("aligned", false)?,
    )?;
    Ok(match kind {
        "align" => Value::object(found),
        _ => Value::Tuple(vec![Value::object(found), Value::None].into()),
    })
}

fn f64_of(x: &Tensor) -> Result<Tensor> {
    ops::to_dtype(x, DType::F64)
}

/// A convolution whose points are moved: the image at the points, and one product for each group.
fn moved(call: &Call<'_>) -> Result<Value> {
    let (x, w): (Tensor, Tensor) = (call.of("input")?, call.of("weight")?);
    let (offset, dtype) = (call.of::<Tensor>("offset")?, call.dtype(0)?);
    let [outputs, inputs, height, width] = w.dims()?[..] else {
        return Err(Error::msg("the weight has no four dims"));
    };
    let pair = |what: &str| -> Result<[i64; 2]> {
        Ok([
            call.of(&format!("{what}_h"))?,
            call.of(&format!("{what}_w"))?,
        ])
    };
    let (strides, pads, dilations) = (pair("stride")?, pair("pad")?, pair("dilation")?);
    let groups: i64 = call.of("groups")?;
    let parts: i64 = call.of("offset_groups")?;
    let kernel = [height as i64, width as i64];
    let (points, channels) = (kernel[0] * kernel[1], inputs as i64 * groups);
    let results = [offset.size(2)?, offset.size(3)?];
    // Points are centred by the size of the image: in double precision, one at a pixel stays there.
    let wide = f64_of(&x)?;
    // How far each point is moved: `[images, groups, points, 2, rows, columns]`.
    let offset = ops::unflatten(&f64_of(&offset)?, 1, [parts, points, 2])?;
    let mut places = Vec::new();
    for dim in 0..2 {
        // Where it is without that: the place of the window, and its own in the window.
        let starts = ops::arange(Int::from(0), results[dim], Int::from(1), Some(DType::F64))?;
        let starts = ((starts * strides[dim] as f64)? - pads[dim] as f64)?;
        let starts = match dim {
            0 => ops::unsqueeze(&starts, 1)?,
            _ => starts,
        };
        let own = (0..points).map(|point| match dim {
            0 => point / kernel[1] * dilations[0],
            _ => point % kernel[1] * dilations[1],
        });
        let own: Vec<f64> = own.map(|place| place as f64).collect();
        let own = Tensor::from_vec(own, (points as usize, 1, 1))?;
        let place = (ops::select(&offset, 3, Int::from(dim as i64))? + (starts + own)?)?;
        // From -1 at the start of the first pixel to 1 at the end of the last one.
        let twice = ((place * 2.0)? + 1.0)?;
        let part: Tensor = operator::truediv.call_as((twice, x.size(2 + dim as i64)?))?;
        places.push((part - 1.0)?);
    }
    // `[images x groups, points x rows, columns, 2]`, of which the column is first.
    let grid = ops::stack(&[places.remove(1), places.remove(0)], -1)?;
    let grid = ops::flatten(&ops::flatten(&grid, 0, 1)?, 1, 2)?;
    let own = match parts {
        1 => wide,
        _ => ops::flatten(&ops::unflatten(&wide, 1, [parts, channels / parts])?, 0, 1)?,
    };
    let y = ops::grid_sample(&own, &grid, "bilinear", "zeros", false)?;
    let mut y = ops::to_dtype(&y, dtype)?;
    if call.or("use_mask", false)? {
        let mask = ops::unflatten(&call.of::<Tensor>("mask")?, 1, [parts, points])?;
        let mask = ops::flatten(&ops::flatten(&mask, 0, 1)?, 1, 2)?;
        y = (y * ops::unsqueeze(&mask, 1)?)?;
    }
    // `[images, groups, channels x points, rows x columns]`, times the weight of each group.
    let [rows, columns] = results;
    let (image, inner) = (x.size(0)?, inputs as i64 * points);
    let area = (rows * columns)?;
    let y = ops::reshape(&y, vec![image, groups.into(), inner.into(), area])?;
    let w = ops::reshape(&w, [groups, outputs as i64 / groups, inner])?;
    let y = ops::matmul(&w, &y)?;
    let y = ops::reshape(&y, vec![image, (outputs as i64).into(), rows, columns])?;
    let bias = ops::reshape(&call.of::<Tensor>("bias")?, [-1, 1, 1])?;
    Ok(Value::object((y + bias)?))
}

pub(crate) const RULES: &[Entry] = by! {
    "torchvision.nms" => nms,
    "torchvision.roi_align" => |call| regions(call, "align"),
    "torchvision.roi_pool" => |call| regions(call, "pool"),
    "torchvision.ps_roi_align" => |call| regions(call, "ps_align"),
    "torchvision.ps_roi_pool" => |call| regions(call, "ps_pool"),
    "torchvision.deform_conv2d" => moved,
};
