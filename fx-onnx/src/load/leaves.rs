//! Functions of ONNX that fx has no own ones for, as leaves: boxes of images, and bits as another type.
//!
//! Invariant: a leaf computes what ONNX Runtime does, and is written back as the operator that it was read from.

use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::shapes::{RuleCall, ShapeRule};
use fx_nn::tensor::Object;
use fx_nn::value::Dim;
use fx_nn::{Error, Result, candle_core};

use super::tensors::of_bytes;
use crate::out::Rule;

/// The most points of a part of a region, along one dim.
const MOST_POINTS: f64 = 4096.0;

/// The boxes that are left of those that overlap, `[count, 3]`: the image, the class and the box of each, the best of
/// a class first. ONNX's `NonMaxSuppression`.
///
/// `boxes` are `[images, boxes, 4]`: two opposite corners `y, x, y, x`, or, with `center_point_box`, the centre `x, y`
/// with width and height. `scores` are `[images, classes, boxes]`. Of each class, at most `most` boxes are left; none
/// without it. A box is left out if it shares more than `iou` of its area with a better one, or if its score is not
/// above `least`.
///
/// ```
/// use fx_nn::prelude::*;
/// let boxes = Tensor::from_vec(vec![0f32, 0., 1., 1., 0., 0., 1., 0.9, 2., 2., 3., 3.], (1, 3, 4))?;
/// let scores = Tensor::from_vec(vec![0.5f32, 0.9, 0.7], (1, 1, 3))?;
/// let (most, iou) = (Tensor::from_vec(vec![3i64], 1)?, Tensor::from_vec(vec![0.5f32], 1)?);
/// let left = fx_onnx::non_max_suppression(&boxes, &scores, Some(&most), Some(&iou), None, false)?;
/// assert_eq!(left.to_vec()?, [0., 0., 1., 0., 0., 2.]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes are others.
#[wrap(path = "fx_onnx::non_max_suppression")]
pub fn non_max_suppression(
    boxes: &Tensor,
    scores: &Tensor,
    most: Option<&Tensor>,
    iou: Option<&Tensor>,
    least: Option<&Tensor>,
    center_point_box: bool,
) -> Result<Tensor> {
    let (&[images, count, 4], &[rows, classes, each]) = (boxes.dims()?, scores.dims()?) else {
        return Err(no_boxes(&boxes.dims()?, &scores.dims()?));
    };
    if images != rows || count != each {
        return Err(no_boxes(&boxes.dims()?, &scores.dims()?));
    }
    let number = |x: Option<&Tensor>| x.map(Tensor::item).transpose();
    let most = number(most)?.unwrap_or(0.0).max(0.0) as usize;
    let iou = number(iou)?.unwrap_or(0.0) as f32;
    let least = number(least)?.map(|least| least as f32);
    let corners: Vec<[f32; 4]> = singles(boxes)?
        .as_chunks::<4>()
        .0
        .iter()
        .map(|own| match center_point_box {
            true => {
                let [x, y, width, height] = *own;
                let (right, down) = (width / 2.0, height / 2.0);
                [x - right, y - down, x + right, y + down]
            }
            false => {
                let [y, x, down, right] = *own;
                [x.min(right), y.min(down), x.max(right), y.max(down)]
            }
        })
        .collect();
    let scores = singles(scores)?;
    let mut left: Vec<i64> = Vec::new();
    for at in 0..images * classes {
        let (image, class) = (at / classes, at % classes);
        let (own, scores) = (&corners[image * count..], &scores[at * count..]);
        let is_above = |at: &usize| least.is_none_or(|least| scores[*at] > least);
        let mut order: Vec<usize> = (0..count).filter(is_above).collect();
        // Zeros of both signs are the same score; of equal ones, the first box is the best.
        order.sort_by(|a, b| (scores[*b] + 0.0).total_cmp(&(scores[*a] + 0.0)));
        let mut kept: Vec<usize> = Vec::new();
        for next in order {
            if kept.len() >= most {
                break;
            }
            let overlaps = |other: &usize| shared(&own[next], &own[*other]) > iou;
            if !kept.iter().any(overlaps) {
                kept.push(next);
            }
        }
        left.extend(
            kept.into_iter()
                .flat_map(|at| [image as i64, class as i64, at as i64]),
        );
    }
    let rows = left.len() / 3;
    on_device_of(boxes, left, &[rows, 3])
}

/// The part of two boxes that both of them have, of what they have together; below 0 if that is nothing, so that no
/// threshold is below it.
fn shared(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let width = a[2].min(b[2]) - a[0].max(b[0]);
    let height = a[3].min(b[3]) - a[1].max(b[1]);
    let area = |of: &[f32; 4]| (of[2] - of[0]) * (of[3] - of[1]);
    let (both, own, other) = (width * height, area(a), area(b));
    let all = own + other - both;
    let is_shared = width > 0.0 && height > 0.0 && both > 0.0;
    match is_shared && own > 0.0 && other > 0.0 && all > 0.0 {
        true => both / all,
        false => f32::NEG_INFINITY,
    }
}

fn no_boxes(boxes: &impl std::fmt::Debug, scores: &impl std::fmt::Debug) -> Error {
    Error::msg(format_args!(
        "non_max_suppression: boxes of {boxes:?} and scores of {scores:?}, and [images, boxes, 4] and [images, classes, boxes] are expected"
    ))
}

/// What lies in regions of images, `[regions, channels, output_height, output_width]`. ONNX's `RoiAlign`.
///
/// `x` are images, `[images, channels, height, width]`; `regions` have corners `x, y, x, y` each, and `images` says of
/// which image each is. A region times `spatial_scale` is divided into parts, each of `sampling_ratio` points a dim, or,
/// with 0, of as many as it has pixels. A part gives the mean of its points, or their largest weighted pixel, by `mode`
/// (`"avg"`, `"max"`). With `half_pixel`, a pixel's place is its centre. No gradient runs through it.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = ops::arange(0, 16, 1, Some(DType::F32))?.reshape((1, 1, 4, 4))?;
/// let region = Tensor::from_vec(vec![0f32, 0., 4., 4.], (1, 4))?;
/// let image = Tensor::from_vec(vec![0i64], 1)?;
/// let y = fx_onnx::roi_align(&x, &region, &image, "avg", 2, 2, 1.0, 0, true)?;
/// assert_eq!(y.to_vec()?, [2.5, 4.5, 10.5, 12.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes are others, there is no such image, or a region has too many points.
#[wrap(path = "fx_onnx::roi_align")]
#[allow(clippy::too_many_arguments, reason = "ONNX's attributes")]
pub fn roi_align(
    x: &Tensor,
    regions: &Tensor,
    images: &Tensor,
    mode: &str,
    output_height: usize,
    output_width: usize,
    spatial_scale: f64,
    sampling_ratio: i64,
    half_pixel: bool,
) -> Result<Tensor> {
    let (&[batch, channels, height, width], &[count, 4]) = (x.dims()?, regions.dims()?) else {
        return Err(no_regions(&x.dims()?, &regions.dims()?));
    };
    let of_image = images.to_vec()?;
    if of_image.len() != count {
        return Err(no_regions(&x.dims()?, &regions.dims()?));
    }
    let shape = [count, channels, output_height, output_width];
    let elements = shape
        .iter()
        .try_fold(1usize, |n, size| n.checked_mul(*size));
    let no_room = || Error::msg(format_args!("roi_align: no room for a result of {shape:?}"));
    let mut y: Vec<f64> = Vec::new();
    y.try_reserve_exact(elements.ok_or_else(no_room)?)
        .map_err(|_| no_room())?;
    let is_max = match mode {
        "avg" => false,
        "max" => true,
        other => {
            return Err(Error::msg(format_args!(
                "roi_align: the mode is {other:?}, and there are \"avg\" and \"max\""
            )));
        }
    };
    let places = Places {
        single: x.dtype()? != DType::F64,
        scale: spatial_scale,
        ratio: sampling_ratio,
        half_pixel,
    };
    let (pixels, regions) = (x.to_vec()?, regions.to_vec()?);
    let (regions, _) = regions.as_chunks::<4>();
    for ([left, top, right, bottom], image) in regions.iter().zip(of_image) {
        if !(0.0..batch as f64).contains(&image) {
            return Err(Error::msg(format_args!(
                "roi_align: a region of image {image}, and there are {batch}"
            )));
        }
        let rows = places.along(*top, *bottom, output_height, height)?;
        let columns = places.along(*left, *right, output_width, width)?;
        for channel in 0..channels {
            let first = (image as usize * channels + channel) * height * width;
            let own = &pixels[first..first + height * width];
            for row in 0..output_height {
                for column in 0..output_width {
                    y.push(part(own, width, rows.of(row), columns.of(column), is_max));
                }
            }
        }
    }
    let dtype = x.dtype()?;
    on_device_of(x, y, &shape)?.to_dtype(dtype)
}

fn no_regions(x: &impl std::fmt::Debug, regions: &impl std::fmt::Debug) -> Error {
    Error::msg(format_args!(
        "roi_align: images of {x:?} and regions of {regions:?}, and [images, channels, height, width] and [regions, 4] are expected, with the image of each region"
    ))
}

/// How the points of a region lie.
struct Places {
    /// Whether places are computed in single precision, as those of images in it are.
    single: bool,
    scale: f64,
    ratio: i64,
    half_pixel: bool,
}

/// A point along a dim: the pixels beside it, and how near they are.
#[derive(Clone, Copy)]
struct Point {
    pixels: [usize; 2],
    weights: [f64; 2],
}

/// The points of a region along a dim, as many for each part; `None` for those outside of the image.
struct Points {
    all: Vec<Option<Point>>,
    each: usize,
}

impl Points {
    fn of(&self, part: usize) -> &[Option<Point>] {
        &self.all[part * self.each..(part + 1) * self.each]
    }
}

impl Places {
    fn rounded(&self, x: f64) -> f64 {
        match self.single {
            true => f64::from(x as f32),
            false => x,
        }
    }

    /// The points between two ends, of so many parts, in an image of so many pixels.
    fn along(&self, from: f64, to: f64, parts: usize, pixels: usize) -> Result<Points> {
        let round = |x: f64| self.rounded(x);
        let shift = if self.half_pixel { 0.5 } else { 0.0 };
        let scale = round(self.scale);
        let end = |at: f64| round(round(at * scale) - shift);
        let from = end(from);
        let mut size = round(end(to) - from);
        if !self.half_pixel {
            size = size.max(1.0);
        }
        let length = round(size / parts as f64);
        let each = match self.ratio {
            1.. => self.ratio as f64,
            _ => length.ceil().max(0.0),
        };
        if each > MOST_POINTS {
            return Err(Error::msg(format_args!(
                "roi_align: a part of a region has {each} points along a dim, and {MOST_POINTS} are the most"
            )));
        }
        let mut all = Vec::new();
        for part in 0..parts {
            let start = round(from + round(part as f64 * length));
            for point in 0..each as usize {
                let inside = round(round((point as f64 + 0.5) * length) / each);
                all.push(at(round(start + inside), pixels));
            }
        }
        let each = each as usize;
        Ok(Points { all, each })
    }
}

/// The pixels beside a place.
fn at(place: f64, pixels: usize) -> Option<Point> {
    if place < -1.0 || place > pixels as f64 || pixels == 0 {
        return None;
    }
    let place = place.max(0.0);
    let low = (place as usize).min(pixels - 1);
    if low + 1 == pixels {
        return Some(Point {
            pixels: [low, low],
            weights: [1.0, 0.0],
        });
    }
    let far = place - low as f64;
    Some(Point {
        pixels: [low, low + 1],
        weights: [1.0 - far, far],
    })
}

/// What a part of a region gives.
fn part(
    image: &[f64],
    width: usize,
    rows: &[Option<Point>],
    columns: &[Option<Point>],
    is_max: bool,
) -> f64 {
    let (mut sum, mut largest) = (0.0, None::<f64>);
    for row in rows {
        for column in columns {
            let mut near = 0.0f64;
            if let (Some(row), Some(column)) = (row, column) {
                let weighted = |down: usize, right: usize| {
                    let pixel = image[row.pixels[down] * width + column.pixels[right]];
                    row.weights[down] * column.weights[right] * pixel
                };
                let all = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| weighted(a, b));
                sum += all.iter().sum::<f64>();
                near = all.into_iter().fold(f64::NEG_INFINITY, f64::max);
            }
            largest = Some(largest.map_or(near, |other| other.max(near)));
        }
    }
    match is_max {
        true => largest.unwrap_or(0.0),
        false => sum / (rows.len() * columns.len()).max(1) as f64,
    }
}

/// The bits of the elements as those of another type of the same size. ONNX's `BitCast`. No gradient runs through it.
///
/// ```
/// use fx_nn::prelude::*;
/// let bits = fx_onnx::bit_cast(&Tensor::from_vec(vec![1f32], 1)?, DType::I32)?;
/// assert_eq!(bits.to_vec()?, [f64::from(0x3f80_0000)]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the types have other sizes.
#[wrap(path = "fx_onnx::bit_cast")]
pub fn bit_cast(x: &Tensor, dtype: DType) -> Result<Tensor> {
    same_size(x.dtype()?, dtype)?;
    let (data, device) = (x.to_data()?, x.device()?);
    let y = of_bytes(&data.bytes()?, dtype, x.dims()?, false)?;
    ops::to_device(&y, device)
}

fn same_size(from: DType, to: DType) -> Result<()> {
    match from.size_in_bytes() == to.size_in_bytes() {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "bit_cast: elements of {from} have other sizes than those of {to}"
        ))),
    }
}

/// The elements in single precision.
fn singles(x: &Tensor) -> Result<Vec<f32>> {
    let data = x.candle()?.to_dtype(candle_core::DType::F32);
    data.and_then(|data| data.flatten_all()?.to_vec1())
        .map_err(Error::other)
}

/// Elements as a tensor where another one is.
fn on_device_of<T: candle_core::WithDType>(
    x: &Tensor,
    all: Vec<T>,
    shape: &[usize],
) -> Result<Tensor> {
    candle_core::Tensor::from_vec(all, shape, x.candle()?.device())
        .map(Tensor::from)
        .map_err(Error::other)
}

fx_nn::function_table! { ShapeRule {
    fx_nn::function!(crate::load::non_max_suppression) => ShapeRule(left),
    fx_nn::function!(crate::load::roi_align) => ShapeRule(in_regions),
    fx_nn::function!(crate::load::bit_cast) => ShapeRule(|call| {
        let x = call.tensor("x")?;
        let (from, to) = (x.dtype, call.dtype("dtype")?);
        if let (Some(from), Some(to)) = (from, to) {
            same_size(from, to)?;
        }
        let mut meta = x.clone();
        meta.dtype = to;
        Ok(meta.into())
    }),
} }

/// As many boxes as the data decides.
fn left(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (boxes, scores) = (call.tensor("boxes")?, call.tensor("scores")?);
    let wrong = || no_boxes(&boxes.shape, &scores.shape);
    let ([images, count, four], [rows, _, each]) = (&boxes.shape[..], &scores.shape[..]) else {
        return Err(wrong());
    };
    for (a, b) in [(images, rows), (count, each), (four, &Dim::from(4i64))] {
        call.same(a, b, || wrong().to_string())?;
    }
    let all = Dim::product(&scores.shape)?;
    let (_, most) = call.env().bounds(&all);
    let found = call.env().fresh(0, most)?;
    Ok(TensorMeta::new([found, Dim::from(3i64)])
        .dtype(DType::I64)
        .into())
}

fn in_regions(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, regions, images) = (
        call.tensor("x")?,
        call.tensor("regions")?,
        call.tensor("images")?,
    );
    let wrong = || no_regions(&x.shape, &regions.shape);
    let ([_, channels, _, _], [count, four], [each]) =
        (&x.shape[..], &regions.shape[..], &images.shape[..])
    else {
        return Err(wrong());
    };
    for (a, b) in [(count, each), (four, &Dim::from(4i64))] {
        call.same(a, b, || wrong().to_string())?;
    }
    let (height, width) = (call.size("output_height")?, call.size("output_width")?);
    let mut meta = TensorMeta::new([count.clone(), channels.clone(), height, width]);
    meta.dtype = x.dtype;
    Ok(meta.into())
}

fx_nn::function_table! { Rule {
    fx_nn::function!(crate::load::non_max_suppression) => Rule::new(|cx, call| {
        let (boxes, scores) = (call.tensor("boxes")?, call.tensor("scores")?);
        let (boxes, scores) = (cx.cast(&boxes, DType::F32)?, cx.cast(&scores, DType::F32)?);
        let mut optional = |name: &str, dtype: DType| {
            let given = call.optional_tensor(name)?;
            let given = given.map(|x| cx.cast(&x, dtype)).transpose()?;
            Ok::<_, Error>(given.map(|x| x.name))
        };
        let most = optional("most", DType::I64)?;
        let (iou, least) = (optional("iou", DType::F32)?, optional("least", DType::F32)?);
        let node = cx.node("NonMaxSuppression").input(&boxes.name).input(&scores.name);
        let node = node.optional(most.as_ref()).optional(iou.as_ref()).optional(least.as_ref());
        let centre = i64::from(call.flag("center_point_box")?);
        let name = node.int("center_point_box", centre).output();
        call.given(name)
    }),
    fx_nn::function!(crate::load::roi_align) => Rule::new(|cx, call| {
        let (x, regions) = (call.tensor("x")?, call.tensor("regions")?);
        let regions = cx.cast(&regions, x.dtype)?;
        let images = cx.cast(&call.tensor("images")?, DType::I64)?;
        let mode = match call.flag("half_pixel")? {
            true => "half_pixel",
            false => "output_half_pixel",
        };
        let node = cx.node("RoiAlign").input(&x.name).input(&regions.name).input(&images.name);
        let node = node.text("mode", &call.text("mode")?).text("coordinate_transformation_mode", mode);
        let node = node.int("output_height", call.int("output_height")?).int("output_width", call.int("output_width")?);
        let node = node.float("spatial_scale", call.float("spatial_scale")?);
        let name = node.int("sampling_ratio", call.int("sampling_ratio")?).output();
        call.given(name)
    }),
    fx_nn::function!(crate::load::bit_cast) => Rule::refused(
        "ONNX has bits as another type from opset 26 on, and files are written up to 23"
    ),
} }
