//! Boxes on images: which of them to keep, and what lies in them; and convolutions whose points are moved.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use crate::load::checks::{Constants, at_least, rank, windows};
use crate::load::leaves::{non_max_suppression, roi_align};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[
    op("NonMaxSuppression", |cx| {
        let (boxes, scores) = (cx.tensor(0)?, cx.tensor(1)?);
        let [most, iou, least] = [2, 3, 4].map(|at| cx.optional(at));
        let (most, iou, least) = (most?, iou?, least?);
        let (most, iou, least) = (most.as_ref(), iou.as_ref(), least.as_ref());
        let centre = cx.flag("center_point_box");
        let left = non_max_suppression(&boxes, &scores, most, iou, least, centre)?;
        cx.of(left, DType::I64)
    })
    .check(|cx| {
        rank(cx, 0, 3..4)?;
        rank(cx, 1, 3..4)
    }),
    op("RoiAlign", |cx| regions(cx, "output_half_pixel"))
        .check(parts)
        .makes(parts_made),
    op("RoiAlign", |cx| regions(cx, "half_pixel"))
        .since(16)
        .check(parts)
        .makes(parts_made),
    op("DeformConv", moved).check(|cx| {
        windows(cx)?;
        rank(cx, 0, 4..5)?;
        rank(cx, 2, 4..5)?;
        at_least(cx, "group", 1)?;
        at_least(cx, "offset_group", 1)
    }),
];

/// What regions of images ask.
fn parts(cx: &NodeCx<'_>) -> Result<()> {
    rank(cx, 0, 4..5)?;
    rank(cx, 1, 2..3)?;
    rank(cx, 2, 1..2)?;
    at_least(cx, "output_height", 1)?;
    at_least(cx, "output_width", 1)
}

fn parts_made(of: &Constants<'_>) -> u64 {
    let size = of
        .attribute("output_height")
        .saturating_mul(of.attribute("output_width"));
    of.products().saturating_mul(size)
}

fn regions(cx: &NodeCx<'_>, places: &str) -> Given {
    let (x, regions, images) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let y = roi_align(
        &x,
        &regions,
        &images,
        &cx.text("mode", "avg"),
        cx.int("output_height", 1) as usize,
        cx.int("output_width", 1) as usize,
        cx.float("spatial_scale", 1.0),
        cx.int("sampling_ratio", 0),
        cx.text("coordinate_transformation_mode", places) == "half_pixel",
    )?;
    cx.like(y)
}

/// A convolution whose points are moved: the image at the points, and one product for each group.
fn moved(cx: &mut NodeCx<'_>) -> Given {
    let weight = cx.known_shape(1)?;
    let [outputs, inputs, height, width] = weight[..] else {
        return Err(Error::msg(format_args!(
            "a convolution with moved points of a weight of {weight:?}, and images of two dims alone are read"
        )));
    };
    let kernel = [height as i64, width as i64];
    if cx.ints("kernel_shape").is_some_and(|own| own != kernel) {
        return Err(Error::msg(format_args!(
            "`kernel_shape` is {:?}, and the weight is {weight:?}",
            cx.ints("kernel_shape").unwrap_or_default()
        )));
    }
    let pair = |name: &str, or: i64| match cx.ints(name).as_deref() {
        Some([a, b, ..]) => [*a, *b],
        _ => [or; 2],
    };
    let (strides, dilations, pads) = (pair("strides", 1), pair("dilations", 1), pair("pads", 0));
    let (groups, parts) = (cx.int("group", 1), cx.int("offset_group", 1));
    let channels = inputs as i64 * groups;
    if channels % parts != 0 || outputs as i64 % groups != 0 {
        return Err(Error::msg(format_args!(
            "{channels} channels and {outputs} results in {groups} groups, with offsets of {parts} groups"
        )));
    }
    // Points are centred by the size of the image: in double precision, one at a pixel stays there.
    let wide = |at: usize| as_type(&cx.tensor(at)?, DType::F64);
    let (mut x, w, offset) = (wide(0)?, cx.single(1)?, wide(2)?);
    let dtype = match cx.dtype(0)? {
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let points = kernel[0] * kernel[1];
    let results = [offset.size(2)?, offset.size(3)?];
    let sizes = cx.sizes(0)?;
    // How far each point is moved: `[images, groups, points, 2, rows, columns]`.
    let offset = ops::unflatten(&offset, 1, [parts, points, 2])?;
    let mut places = Vec::new();
    for dim in 0..2 {
        // Where it is without that: the place of the window, and its own in the window.
        let starts = as_type(&cx.numbers(results[dim])?, DType::F64)?;
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
        let place = (ops::select(&offset, 3, dim as i64)? + (starts + own)?)?;
        places.push(centred(&place, &sizes[2 + dim])?);
    }
    // `[images x groups, points x rows, columns, 2]`, of which the column is first.
    let grid = ops::stack(&[places.remove(1), places.remove(0)], -1)?;
    let grid = ops::flatten(&ops::flatten(&grid, 0, 1)?, 1, 2)?;
    if parts > 1 {
        x = ops::flatten(&ops::unflatten(&x, 1, [parts, channels / parts])?, 0, 1)?;
    }
    let y = ops::grid_sample(&x, &grid, "bilinear", "zeros", false)?;
    let mut y = as_type(&y, dtype)?;
    if cx.has(4) {
        let mask = ops::unflatten(&cx.single(4)?, 1, [parts, points])?;
        let mask = ops::flatten(&ops::flatten(&mask, 0, 1)?, 1, 2)?;
        y = (y * ops::unsqueeze(&mask, 1)?)?;
    }
    // `[images, groups, channels x points, rows x columns]`, times the weight of each group.
    let [rows, columns] = results;
    let image = sizes[0].int()?;
    let inner = inputs as i64 * points;
    let y = ops::reshape(
        &y,
        vec![image, groups.into(), inner.into(), (rows * columns)?],
    )?;
    let w = ops::reshape(&w, [groups, outputs as i64 / groups, inner])?;
    let y = ops::matmul(&w, &y)?;
    let mut y = ops::reshape(&y, vec![image, (outputs as i64).into(), rows, columns])?;
    if cx.has(3) {
        y = (y + ops::reshape(&cx.single(3)?, [-1, 1, 1])?)?;
    }
    Ok(vec![cx.rounded(&y)?])
}

/// Places of pixels as a grid has them: from -1 at the start of the first pixel to 1 at the end of the last one.
fn centred(place: &Tensor, size: &Whole) -> Result<Tensor> {
    let twice = ((place * 2.0)? + 1.0)?;
    let part = match size.known() {
        Some(size) => (twice / size as f64)?,
        None => (twice / as_type(&size.tensor()?, DType::F64)?)?,
    };
    part - 1.0
}
