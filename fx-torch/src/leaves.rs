//! Functions that PyTorch's programs call and fx has none for, as leaves: boxes of images.
//!
//! Invariant: a leaf computes what PyTorch and torchvision do, in the element type that they do it in.

use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::shapes::{RuleCall, ShapeRule};
use fx_nn::value::Dim;
use fx_nn::{Error, Result};

/// The most points of a part of a region, along one dim.
const MOST_POINTS: f32 = 4096.0;

/// The indices of the boxes that are left of those that overlap, the best score first: torchvision's `nms`.
///
/// `boxes` are `[boxes, 4]`, two corners `x, y, x, y`. A box is left out if it shares more than `iou_threshold` of the
/// area with a better one.
///
/// ```
/// use fx_nn::prelude::*;
/// let boxes = Tensor::from_vec(vec![0f32, 0., 1., 1., 0., 0., 0.9, 1., 2., 2., 3., 3.], (3, 4))?;
/// let scores = Tensor::from_vec(vec![0.5f32, 0.9, 0.7], 3)?;
/// assert_eq!(fx_torch::nms(&boxes, &scores, 0.5)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes are others.
#[wrap(path = "fx_torch::nms")]
pub fn nms(boxes: &Tensor, scores: &Tensor, iou_threshold: f64) -> Result<Tensor> {
    let (&[count, 4], &[scored]) = (boxes.dims()?, scores.dims()?) else {
        return Err(no_boxes(&boxes.dims()?, &scores.dims()?));
    };
    if count != scored {
        return Err(no_boxes(&boxes.dims()?, &scores.dims()?));
    }
    let corners: Vec<[f32; 4]> = singles(boxes)?.as_chunks::<4>().0.to_vec();
    let scores = singles(scores)?;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| (scores[*b] + 0.0).total_cmp(&(scores[*a] + 0.0)));
    let mut kept: Vec<usize> = Vec::new();
    for next in order {
        // The threshold is in double precision.
        let overlaps =
            |other: &usize| f64::from(shared(&corners[*other], &corners[next])) > iou_threshold;
        if !kept.iter().any(overlaps) {
            kept.push(next);
        }
    }
    let rows = kept.len();
    Tensor::from_vec(
        kept.into_iter().map(|at| at as i64).collect::<Vec<i64>>(),
        rows,
    )
}

/// What two boxes share, of what they have together.
fn shared(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let area = |of: &[f32; 4]| (of[2] - of[0]) * (of[3] - of[1]);
    let both = width * height;
    both / (area(a) + area(b) - both)
}

fn no_boxes(boxes: &impl std::fmt::Debug, scores: &impl std::fmt::Debug) -> Error {
    Error::msg(format_args!(
        "nms: boxes of {boxes:?} and scores of {scores:?}, and [boxes, 4] and [boxes] are expected"
    ))
}

/// What lies in regions of images, `[regions, channels, height, width]`: torchvision's `roi_align`, `roi_pool`,
/// `ps_roi_align` and `ps_roi_pool`, by `kind` (`"align"`, `"pool"`, `"ps_align"`, `"ps_pool"`).
///
/// `x` are images, `[images, channels, rows, columns]`; `regions` are `[regions, 5]`: the image of each, and two corners
/// `x, y, x, y`. A region times `spatial_scale` is divided into parts. A part gives the mean of `sampling_ratio` points a
/// dim (with 0 and below, of as many as it has pixels), or for `"pool"` its largest pixel, or for `"ps_pool"` their mean.
/// The kinds with `ps` have channels of their own for each part. With `aligned`, a pixel's place is its centre. No
/// gradient runs through it.
///
/// # Errors
/// Returns an error if the shapes are others, there is no such image or kind, or a region has too many points.
#[wrap(path = "fx_torch::regions")]
#[allow(clippy::too_many_arguments, reason = "torchvision's arguments")]
pub fn regions(
    x: &Tensor,
    regions: &Tensor,
    kind: &str,
    height: usize,
    width: usize,
    spatial_scale: f64,
    sampling_ratio: i64,
    aligned: bool,
) -> Result<Tensor> {
    let (&[batch, channels, rows, columns], &[count, 5]) = (x.dims()?, regions.dims()?) else {
        return Err(no_regions(&x.dims()?, &regions.dims()?));
    };
    let own_parts = kind.starts_with("ps_");
    let parts = if own_parts { height * width } else { 1 };
    if parts == 0 || !channels.is_multiple_of(parts) {
        return Err(Error::msg(format_args!(
            "regions: {channels} channels for {height} x {width} parts"
        )));
    }
    let is_pool = match kind {
        "align" | "ps_align" => false,
        "pool" | "ps_pool" => true,
        other => return Err(Error::msg(format_args!("regions: the kind is {other:?}"))),
    };
    let (pixels, corners) = (singles(x)?, singles(regions)?);
    let scale = spatial_scale as f32;
    let mut y: Vec<f32> = Vec::new();
    for [image, corners @ ..] in corners.as_chunks::<5>().0 {
        if !(0.0..batch as f32).contains(image) {
            return Err(Error::msg(format_args!(
                "regions: a region of image {image}, and there are {batch}"
            )));
        }
        let image = *image as usize;
        let along = |from: f32, to: f32, parts: usize, pixels: usize| match is_pool {
            true => Ok(cells(from, to, parts, pixels, scale, own_parts)),
            false => {
                let shift = if own_parts || aligned { 0.5 } else { 0.0 };
                let least = (!own_parts && !aligned).then_some(1.0);
                let from = from * scale - shift;
                let size = to * scale - shift - from;
                let size = least.map_or(size, |least| size.max(least));
                points(from, size, parts, pixels, sampling_ratio)
            }
        };
        let [left, top, right, bottom] = corners;
        let down = along(*top, *bottom, height, rows)?;
        let across = along(*left, *right, width, columns)?;
        for channel in 0..channels / parts {
            for (row, down) in down.iter().enumerate() {
                for (column, across) in across.iter().enumerate() {
                    let channel = match own_parts {
                        true => (channel * height + row) * width + column,
                        false => channel,
                    };
                    let first = (image * channels + channel) * rows * columns;
                    let own = &pixels[first..first + rows * columns];
                    y.push(match kind {
                        "pool" => largest(own, columns, down, across),
                        _ => mean(own, columns, down, across),
                    });
                }
            }
        }
    }
    let shape = vec![count, channels / parts, height, width];
    ops::to_dtype(&Tensor::from_vec(y, shape)?, x.dtype()?)
}

fn no_regions(x: &impl std::fmt::Debug, regions: &impl std::fmt::Debug) -> Error {
    Error::msg(format_args!(
        "regions: images of {x:?} and regions of {regions:?}, and [images, channels, rows, columns] and [regions, 5] are expected"
    ))
}

/// A point along a dim: the pixels beside it, and how near they are; a point outside has no weights.
#[derive(Clone, Copy)]
struct Point {
    pixels: [usize; 2],
    weights: [f32; 2],
}

/// The points of each part of a region, along a dim.
fn points(
    from: f32,
    size: f32,
    parts: usize,
    pixels: usize,
    ratio: i64,
) -> Result<Vec<Vec<Point>>> {
    let length = size / parts as f32;
    let each = match ratio {
        1.. => ratio as f32,
        _ => length.ceil().max(0.0),
    };
    if each > MOST_POINTS {
        return Err(Error::msg(format_args!(
            "regions: a part has {each} points along a dim, and {MOST_POINTS} are the most"
        )));
    }
    let own = |part: usize| {
        let start = from + part as f32 * length;
        let place = move |point: usize| start + (point as f32 + 0.5) * length / each;
        (0..each as usize).map(move |point| at(place(point), pixels))
    };
    Ok((0..parts).map(|part| own(part).collect()).collect())
}

/// The pixels beside a place.
fn at(place: f32, pixels: usize) -> Point {
    if place < -1.0 || place > pixels as f32 || pixels == 0 {
        return Point {
            pixels: [0, 0],
            weights: [0.0, 0.0],
        };
    }
    let place = place.max(0.0);
    let low = place as usize;
    if low + 1 >= pixels {
        return Point {
            pixels: [pixels - 1; 2],
            weights: [1.0, 0.0],
        };
    }
    let far = place - low as f32;
    Point {
        pixels: [low, low + 1],
        weights: [1.0 - far, far],
    }
}

/// The whole pixels of each part of a region, along a dim.
fn cells(
    from: f32,
    to: f32,
    parts: usize,
    pixels: usize,
    scale: f32,
    own_parts: bool,
) -> Vec<Vec<Point>> {
    let (from, size) = match own_parts {
        true => {
            let from = (from * scale).round();
            (from, ((to * scale).round() - from).max(1.0))
        }
        false => {
            let from = (from * scale).round();
            (from, ((to * scale).round() - from + 1.0).max(1.0))
        }
    };
    let length = size / parts as f32;
    let own = |part: usize| {
        let end = |at: f32| (at + from).clamp(0.0, pixels as f32) as usize;
        let first = end((part as f32 * length).floor());
        let last = end(((part + 1) as f32 * length).ceil());
        let point = |at: usize| Point {
            pixels: [at, at],
            weights: [1.0, 0.0],
        };
        (first..last).map(point).collect()
    };
    (0..parts).map(own).collect()
}

fn mean(image: &[f32], width: usize, down: &[Point], across: &[Point]) -> f32 {
    let mut sum = 0.0;
    for row in down {
        for column in across {
            let weighted = |a: usize, b: usize| {
                let weight = row.weights[a] * column.weights[b];
                weight * image[row.pixels[a] * width + column.pixels[b]]
            };
            sum += weighted(0, 0) + weighted(0, 1) + weighted(1, 0) + weighted(1, 1);
        }
    }
    sum / (down.len() * across.len()).max(1) as f32
}

fn largest(image: &[f32], width: usize, down: &[Point], across: &[Point]) -> f32 {
    let pixel = |row: &Point, column: &Point| image[row.pixels[0] * width + column.pixels[0]];
    let all = down
        .iter()
        .flat_map(|row| across.iter().map(move |column| pixel(row, column)));
    all.reduce(f32::max).unwrap_or(0.0)
}

/// The elements in single precision.
fn singles(x: &Tensor) -> Result<Vec<f32>> {
    Ok(x.to_vec()?.into_iter().map(|x| x as f32).collect())
}

fx_nn::function_table! { ShapeRule {
    fx_nn::function!(crate::leaves::nms) => ShapeRule(left),
    fx_nn::function!(crate::leaves::regions) => ShapeRule(in_regions),
} }

/// As many boxes as the data decides.
fn left(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (boxes, scores) = (call.tensor("boxes")?, call.tensor("scores")?);
    let wrong = || no_boxes(&boxes.shape, &scores.shape);
    let ([count, four], [each]) = (&boxes.shape[..], &scores.shape[..]) else {
        return Err(wrong());
    };
    for (a, b) in [(count, each), (four, &Dim::from(4i64))] {
        call.same(a, b, || wrong().to_string())?;
    }
    let (_, most) = call.env().bounds(count);
    let found = call.env().fresh(0, most)?;
    Ok(TensorMeta::new([found]).dtype(DType::I64).into())
}

fn in_regions(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, regions) = (call.tensor("x")?, call.tensor("regions")?);
    let wrong = || no_regions(&x.shape, &regions.shape);
    let ([_, channels, _, _], [count, five]) = (&x.shape[..], &regions.shape[..]) else {
        return Err(wrong());
    };
    call.same(five, &Dim::from(5i64), || wrong().to_string())?;
    let (height, width) = (call.size("height")?, call.size("width")?);
    let channels = match call.text("kind")?.starts_with("ps_") {
        true => channels.div(Dim::product([&height, &width])?)?,
        false => channels.clone(),
    };
    let mut meta = TensorMeta::new([count.clone(), channels, height, width]);
    meta.dtype = x.dtype;
    Ok(meta.into())
}
