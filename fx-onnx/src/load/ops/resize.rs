//! Images of other sizes: each place of the result is a sum of places of the source, dim by dim.

mod open;
mod target;
mod weighting;

use fx_nn::prelude::*;

use self::target::{Factor, Target};
use self::weighting::Weighting;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};
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
