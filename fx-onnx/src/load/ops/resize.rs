//! Images of other sizes: each place of the result is a sum of places of the source, dim by dim.

mod open;

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::Dim;

use super::{Operator, op};
use crate::load::node::{Given, NodeCx};
use crate::load::value::{V, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[op("Resize", resize), op("Upsample", resize)];

/// Resizing, dim by dim: each place of the result is a sum of places of the source with weights.
fn resize(cx: &mut NodeCx<'_>) -> Given {
    let x = cx.tensor(0)?;
    let shape = cx.shape(0)?;
    let rank = shape.len();
    let old = cx.node.op_type == "Upsample" || cx.version < 11;
    let (scales_at, sizes_at, roi_at) = if old { (1, 9, 9) } else { (2, 3, 1) };
    let axes = match cx.ints("axes") {
        Some(axes) => axes
            .into_iter()
            .map(|axis| cx.place(axis, rank))
            .collect::<Result<Vec<i64>>>()?,
        None => (0..rank as i64).collect(),
    };
    let floats = |v: &V| -> Result<Vec<f64>> { v.tensor()?.to_vec() };
    let scales: Vec<Factor> = match cx.has(scales_at) {
        true => Factor::all(cx.input(scales_at))?,
        false => {
            let scales = cx.floats("scales").unwrap_or_default().into_iter();
            scales
                .map(|scale| Factor::Known(f64::from(scale)))
                .collect()
        }
    };
    let mode = cx.text("mode", "nearest");
    let transform = cx.text(
        "coordinate_transformation_mode",
        if old { "asymmetric" } else { "half_pixel" },
    );
    let nearest = cx.text(
        "nearest_mode",
        if old { "floor" } else { "round_prefer_floor" },
    );
    let from = cx.sizes(0)?;
    let kept = |at: usize| Target {
        to: from[at].clone(),
        factor: Factor::Known(1.0),
        is_kept: true,
    };
    let mut targets: Vec<Target> = (0..rank).map(kept).collect();
    if !scales.is_empty() {
        for (axis, scale) in axes.iter().zip(&scales) {
            let at = *axis as usize;
            targets[at] = Target::scaled(&from[at], scale)?;
        }
    } else {
        let asked = cx.wholes(sizes_at)?;
        let asked = axes.iter().map(|axis| *axis as usize).zip(&asked);
        match &*cx.text("keep_aspect_ratio_policy", "stretch") {
            "stretch" => {
                for (at, to) in asked {
                    targets[at] = Target::sized(&from[at], &shape[at], to)?;
                }
            }
            policy => in_proportion(policy, asked.collect(), &from, &mut targets)?,
        }
    }
    let is_open = |at: usize| !targets[at].is_kept && targets[at].known(&from[at]).is_none();
    let cubic = cx.float("cubic_coeff_a", -0.75);
    if (0..rank).any(is_open) && !cx.flag("antialias") && cx.is_float(0) {
        let way = open::Way {
            mode: &mode,
            transform: &transform,
            nearest: &nearest,
            plain: !cx.flag("exclude_outside") && cubic == -0.75,
            by_scales: !scales.is_empty(),
        };
        if let Some(y) = way.interpolated(&x, &targets)? {
            return cx.like(y);
        }
    }
    let roi = if cx.has(roi_at) {
        floats(cx.input(roi_at))?
    } else {
        Vec::new()
    };
    let rule = Weighting {
        rank,
        mode: &mode,
        transform: &transform,
        nearest: &nearest,
        cubic,
        antialias: cx.flag("antialias"),
        exclude: cx.flag("exclude_outside"),
        extrapolated: cx.float("extrapolation_value", 0.0),
    };
    let dtype = cx.dtype(0)?;
    let mut y = if dtype.is_floating_point() {
        x
    } else {
        as_type(&x, DType::F64)?
    };
    let mut outside: Option<Tensor> = None;
    let wide = match dtype.is_floating_point() {
        true => dtype,
        false => DType::F64,
    };
    for dim in 0..rank {
        let target = &targets[dim];
        let crops = transform == "tf_crop_and_resize";
        if target.is_kept && !crops {
            continue;
        }
        let Some((from, to, factor)) = target.known(&from[dim]) else {
            if crops {
                return Err(fx_nn::Error::msg(
                    "a crop of a size that only a run knows: fix it with `Load::dim`",
                ));
            }
            y = rule.opened(&y, dim as i64, &from[dim], target, wide)?;
            continue;
        };
        let at = axes.iter().position(|axis| *axis as usize == dim);
        let bounds = at.and_then(|at| Some((*roi.get(at)?, *roi.get(at + axes.len())?)));
        if from == to && factor == 1.0 && !crops {
            continue;
        }
        if from == 0 && to > 0 {
            return Err(fx_nn::Error::msg("an image without places has no points"));
        }
        let weighed = if mode == "nearest" { 1 } else { from };
        if to.saturating_mul(weighed) > cx.reader.limits.constant_bytes / 8 {
            return Err(fx_nn::Error::msg(
                "an image of a size beyond `Limits::constant_bytes`",
            ));
        }
        let points: Vec<(f64, bool)> = (0..to)
            .map(|place| rule.point(place, from, to, factor, bounds))
            .collect();
        let is_out = points.iter().map(|(_, out)| u8::from(*out)).collect();
        if mode == "nearest" {
            // No number is computed: an infinity stays one.
            let places = points.iter().map(|(point, _)| rule.near(*point, from));
            let places = Tensor::from_vec(places.collect::<Vec<i64>>(), to)?;
            y = ops::index_select(&y, dim as i64, &places)?;
            outside = outside_of(outside, is_out, dim, rank)?;
            continue;
        }
        let mut table = Vec::with_capacity(to * from);
        for (point, _) in &points {
            table.extend(rule.weights(*point, from, factor));
        }
        let wide = if y.dtype().is_ok_and(|d| d == DType::F64) || !dtype.is_floating_point() {
            DType::F64
        } else {
            dtype
        };
        let table = as_type(&Tensor::from_vec(table, (to, from))?, wide)?;
        y = ops::movedim(
            &ops::linear(&ops::movedim(&y, dim as i64, -1)?, &table, None)?,
            -1,
            dim as i64,
        )?;
        outside = outside_of(outside, is_out, dim, rank)?;
    }
    if let Some(outside) = outside {
        y = ops::masked_fill(&y, &outside, rule.extrapolated)?;
    }
    let y = if dtype.is_floating_point() {
        y
    } else {
        as_type(&y, dtype)?
    };
    cx.of(y, dtype)
}

/// A dim of the result.
struct Target {
    to: Whole,
    /// How far the places are stretched, which the sizes alone may not say.
    factor: Factor,
    /// Whether it is as it was, whatever its size.
    is_kept: bool,
}

impl Target {
    fn scaled(from: &Whole, factor: &Factor) -> Result<Self> {
        let to = match (from.known(), factor) {
            // In `float32`, in which scales are given: 10 times 0.7 is 7.
            (Some(from), Factor::Known(scale)) => {
                Whole::from((from as f32 * *scale as f32).floor() as i64)
            }
            (None, Factor::Known(scale)) if scale.fract() == 0.0 => from.times(*scale as i64)?,
            (_, factor) => {
                let size = as_type(&from.tensor()?, DType::F32)?;
                let to = ops::floor(&(size * factor.tensor()?)?)?;
                Whole::Run(as_type(&to, DType::I64)?)
            }
        };
        Ok(Target {
            to,
            is_kept: matches!(factor, Factor::Known(1.0)),
            factor: factor.clone(),
        })
    }

    fn sized(from: &Whole, own: &Dim, to: &Whole) -> Result<Self> {
        let factor = match (from.known(), to.known()) {
            (Some(from), Some(to)) => Factor::Known(to as f64 / from as f64),
            _ => {
                let [to, from] = [to, from].map(|size| as_type(&size.tensor()?, DType::F32));
                Factor::Run((to? / from?)?)
            }
        };
        Ok(Target {
            to: to.clone(),
            is_kept: to.dim().is_some_and(|to| to == *own),
            factor,
        })
    }

    /// The sizes and the factor, if all of them are known.
    fn known(&self, from: &Whole) -> Option<(usize, usize, f64)> {
        let Factor::Known(factor) = self.factor else {
            return None;
        };
        let (from, to) = (from.known()?, self.to.known()?.max(0));
        Some((usize::try_from(from).ok()?, to as usize, factor))
    }
}

/// How far places are stretched.
#[derive(Debug, Clone)]
enum Factor {
    Known(f64),
    /// A `float32` without dims.
    Run(Tensor),
}

impl Factor {
    /// The factors of an input.
    fn all(of: &V) -> Result<Vec<Factor>> {
        let x = of.tensor()?;
        if Object::proxy(&x).is_none() {
            return Ok(x.to_vec()?.into_iter().map(Factor::Known).collect());
        }
        let shape = of.meta().and_then(|meta| meta.known_shape());
        let Some([count]) = shape.as_deref() else {
            return Err(fx_nn::Error::msg(
                "scales that only a run knows, and how many",
            ));
        };
        let x = as_type(&x, DType::F32)?;
        let each = (0..*count as i64).map(|at| ops::select(&x, 0, at).map(Factor::Run));
        each.collect()
    }

    fn tensor(&self) -> Result<Tensor> {
        match self {
            Factor::Known(factor) => Tensor::from_vec(vec![*factor as f32], ()),
            Factor::Run(factor) => Ok(factor.clone()),
        }
    }
}

/// Sizes of one proportion, the largest that fit or the smallest that cover what is asked.
fn in_proportion(
    policy: &str,
    asked: Vec<(usize, &Whole)>,
    from: &[Whole],
    targets: &mut [Target],
) -> Result<()> {
    let known = asked
        .iter()
        .map(|(at, to)| Some((*at, to.known()?, from[*at].known()?)));
    let known: Vec<(usize, i64, i64)> = known.collect::<Option<_>>().ok_or_else(|| {
        fx_nn::Error::msg(
            "sizes of one proportion that only a run knows: fix them with `Load::dim`",
        )
    })?;
    let each = known.iter().map(|(_, to, from)| *to as f64 / *from as f64);
    let common = match policy {
        "not_larger" => each.fold(f64::INFINITY, f64::min),
        _ => each.fold(0.0, f64::max),
    };
    for (at, _, from) in known {
        targets[at] = Target {
            to: Whole::from((common as f32 * from as f32).round() as i64),
            factor: Factor::Known(common),
            is_kept: false,
        };
    }
    Ok(())
}

/// What lies outside of the source, with the places of one more dim.
fn outside_of(
    outside: Option<Tensor>,
    is_out: Vec<u8>,
    dim: usize,
    rank: usize,
) -> Result<Option<Tensor>> {
    if !is_out.contains(&1) {
        return Ok(outside);
    }
    let mut own = vec![1i64; rank];
    own[dim] = is_out.len() as i64;
    let count = is_out.len();
    let own = ops::reshape(&Tensor::from_vec(is_out, count)?.ne(0)?, own)?;
    Ok(Some(match outside {
        Some(outside) => ops::logical_or(&outside, &own)?,
        None => own,
    }))
}

/// How a place of a resized dim is computed.
struct Weighting<'r> {
    rank: usize,
    mode: &'r str,
    transform: &'r str,
    nearest: &'r str,
    cubic: f64,
    antialias: bool,
    exclude: bool,
    extrapolated: f64,
}

impl Weighting<'_> {
    /// Where a place of the result lies in the source, and whether that is outside.
    fn point(
        &self,
        place: usize,
        from: usize,
        to: usize,
        scale: f64,
        bounds: Option<(f64, f64)>,
    ) -> (f64, bool) {
        // In `float32`, as scales are given: which of two places is nearer depends on the last bit.
        let (at, size, target, scale) = (place as f32, from as f32, to as f32, scale as f32);
        let source = match self.transform {
            // By the length of the result, which a scale only leads to.
            "align_corners" if to == 1 => 0.0,
            "align_corners" => at * (size - 1.0) / (target - 1.0),
            "asymmetric" => at / scale,
            "pytorch_half_pixel" if to <= 1 => 0.0,
            "tf_half_pixel_for_nn" => (at + 0.5) / scale,
            "half_pixel_symmetric" => {
                let adjust = target / (scale * size);
                let centre = size / 2.0;
                centre * (1.0 - adjust) + (at + 0.5) / scale - 0.5
            }
            "tf_crop_and_resize" => {
                let (start, end) = bounds.unwrap_or((0.0, 1.0));
                let (start, end) = (start as f32, end as f32);
                match to {
                    1 => 0.5 * (start + end) * (size - 1.0),
                    _ => start * (size - 1.0) + at * (end - start) * (size - 1.0) / (target - 1.0),
                }
            }
            _ => (at + 0.5) / scale - 0.5,
        };
        let (source, size) = (f64::from(source), f64::from(size));
        let out = self.transform == "tf_crop_and_resize" && (source < 0.0 || source > size - 1.0);
        (source, out)
    }

    /// The nearest place to a point of the source.
    fn near(&self, point: f64, from: usize) -> i64 {
        let near = match self.nearest {
            "floor" => point.floor(),
            "ceil" => point.ceil(),
            "round_prefer_ceil" => (point + 0.5).floor(),
            _ => (point - 0.5).ceil(),
        };
        (near as i64).clamp(0, from as i64 - 1)
    }

    /// The weights of the source's places for a point of it.
    fn weights(&self, point: f64, from: usize, scale: f64) -> Vec<f64> {
        let (mut weights, last) = (vec![0.0; from], from as i64 - 1);
        // As the point was computed.
        let scale = f64::from(scale as f32);
        let stretch = if self.antialias && scale < 1.0 {
            1.0 / scale
        } else {
            1.0
        };
        let radius = if self.mode == "cubic" { 2.0 } else { 1.0 } * stretch;
        let kernel = |apart: f64| -> f64 {
            let d = (apart / stretch).abs();
            if self.mode != "cubic" {
                return (1.0 - d).max(0.0);
            }
            let a = self.cubic;
            match d {
                d if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
                d if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
                _ => 0.0,
            }
        };
        let (low, high) = (
            (point - radius).floor() as i64,
            (point + radius).ceil() as i64,
        );
        let mut sum = 0.0;
        for near in low..=high {
            let weight = kernel(near as f64 - point);
            let inside = (0..=last).contains(&near);
            if weight == 0.0 || (self.exclude && !inside) {
                continue;
            }
            weights[near.clamp(0, last) as usize] += weight;
            sum += weight;
        }
        if sum != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        weights
    }
}
