//! Images of other sizes: `Resize` where it gives PyTorch's numbers, and else the sums that PyTorch computes.
//!
//! Invariant: ONNX's formula is taken only for what it computes as PyTorch does.

use fx_nn::lowering::{Mode, Name, OpCall, Operand, Resampling, Tap, Val};
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::rules;
use crate::out::context::Cx;

rules! {
    interpolate => resize,
    interpolate_with => resize,
}

/// The sizes of a dim before and after, where both are known.
type Known = Option<Vec<(usize, usize)>>;

fn resize(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let (x, how) = (call.tensor("x")?, Resampling::of(call)?);
    let sizes = &call.result()?.shape[2..];
    let known: Known = x.shape[2..]
        .iter()
        .zip(sizes)
        .map(|(from, to)| Some((from.as_known()?, to.as_known()?)))
        .collect();
    if how.is_rounded() {
        return Err(Error::not_in_format(
            "uint8 images between places are rounded by PyTorch's own rule, which ONNX has not: convert them to \
             float32 before",
        ));
    }
    let name = match (how.mode(), known) {
        (Mode::Area, None) => {
            return Err(Error::not_in_format(
                "`area` where sizes are named: ONNX has means of places of sizes that are known",
            ));
        }
        (Mode::Area, Some(known)) => match pooled(cx, &x, &known) {
            Some(name) => name,
            None => summed(cx, &x, &how, &known)?,
        },
        (Mode::Nearest | Mode::NearestExact, Some(known))
            if is_copied(&how, &known) || !is_onnx(&how, &known)? =>
        {
            let dims = known.iter().enumerate();
            let taps = dims.map(|(dim, (from, to))| how.taps(dim, *from, *to));
            let taps = taps.collect::<Result<Vec<_>>>()?.into_iter();
            let place = |tap: &Tap| tap.place as i64;
            picked(
                cx,
                &x,
                taps.map(|of| of.iter().flatten().map(place).collect()),
            )
        }
        (_, known) if how.is_antialiased() && !has_antialias(cx, &how, known.as_deref()) => {
            let known = known.ok_or_else(|| {
                Error::not_in_format("ONNX has `antialias` from opset 18 on, without `align_corners` and `lanczos`, unless sizes are known")
            })?;
            summed(cx, &x, &how, &known)?
        }
        (Mode::Linear, Some(known)) if stays(&how, &known) => summed(cx, &x, &how, &known)?,
        (Mode::Cubic, Some(known)) if is_copied(&how, &known) => summed(cx, &x, &how, &known)?,
        _ => node(cx, call, &x, &how)?,
    };
    call.given(name)
}

/// Whether PyTorch leaves a dim alone whose factor ONNX would follow: one that keeps its size, whatever the factor.
fn stays(how: &Resampling, known: &[(usize, usize)]) -> bool {
    how.factors().is_some() && known.iter().any(|(from, to)| from == to)
}

/// Whether engines copy what PyTorch moves by a factor: images of which every dim keeps its size.
fn is_copied(how: &Resampling, known: &[(usize, usize)]) -> bool {
    how.factors().is_some() && known.iter().all(|(from, to)| from == to)
}

/// Whether ONNX's antialias is PyTorch's, which moves corners with the edges.
fn has_antialias(cx: &Cx, how: &Resampling, known: Option<&[(usize, usize)]>) -> bool {
    let is_moved = how.has_corners() || known.is_some_and(|known| stays(how, known));
    cx.opset() >= 18 && how.mode() != Mode::Lanczos && !is_moved
}

/// ONNX's own operator.
fn node(cx: &mut Cx, call: &OpCall<'_>, x: &Operand, how: &Resampling) -> Result<Name> {
    let (mode, transform) = match (how.mode(), how.has_corners()) {
        (Mode::Nearest, _) => ("nearest", "asymmetric"),
        (Mode::NearestExact, _) => ("nearest", "half_pixel"),
        (Mode::Cubic, true) => ("cubic", "align_corners"),
        (Mode::Cubic, false) => ("cubic", "half_pixel"),
        (_, true) => ("linear", "align_corners"),
        // `pytorch_half_pixel` is what PyTorch computed for results of one place before.
        (_, false) => ("linear", "half_pixel"),
    };
    let (scales, sizes) = match how.factors() {
        // What PyTorch computes with where a factor is given.
        Some(factors) if !how.has_corners() => {
            let all = [&[1.0, 1.0], factors].concat();
            (Some(cx.numbers(&all, DType::F32)), None)
        }
        _ => (None, Some(cx.sizes(&call.result()?.shape)?)),
    };
    let empty: Option<&Name> = None;
    let node = cx.node("Resize").input(&x.name).optional(empty);
    let node = node.optional(scales.as_ref()).optional(sizes.as_ref());
    let node = node
        .text("mode", mode)
        .text("coordinate_transformation_mode", transform);
    let node = match how.mode() {
        Mode::Nearest => node.text("nearest_mode", "floor"),
        Mode::NearestExact => node.text("nearest_mode", "round_prefer_ceil"),
        Mode::Cubic => node.float(
            "cubic_coeff_a",
            if how.is_antialiased() { -0.5 } else { -0.75 },
        ),
        _ => node,
    };
    // PyTorch, as Pillow does, weighs only what is inside.
    let node = match how.is_antialiased() {
        true => node.int("antialias", 1).int("exclude_outside", 1),
        false => node,
    };
    Ok(node.output())
}

/// Whether ONNX's formula, in the floats of its engines, finds the same nearest places.
fn is_onnx(how: &Resampling, known: &[(usize, usize)]) -> Result<bool> {
    for (dim, (from, to)) in known.iter().enumerate() {
        let scale = match how.factors() {
            Some(factors) => factors[dim] as f32,
            None => *to as f32 / *from as f32,
        };
        for (place, taps) in how.taps(dim, *from, *to)?.iter().enumerate() {
            let near = match how.mode() {
                Mode::Nearest => (place as f32 / scale).floor(),
                _ => ((place as f32 + 0.5) / scale - 0.5).round(),
            };
            let near = near.clamp(0.0, (from - 1) as f32) as usize;
            if taps.iter().any(|tap| tap.place != near) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The elements at places of each dim.
fn picked(cx: &mut Cx, x: &Operand, places: impl Iterator<Item = Vec<i64>>) -> Name {
    let mut y = x.name.clone();
    for (dim, places) in (2..).zip(places) {
        let places = cx.i64s(&places);
        y = cx
            .node("Gather")
            .input(&y)
            .input(&places)
            .int("axis", dim)
            .output();
    }
    y
}

/// Means of places that do not overlap.
fn pooled(cx: &mut Cx, x: &Operand, known: &[(usize, usize)]) -> Option<Name> {
    if known.iter().all(|(from, to)| from == to) {
        return Some(x.name.clone());
    }
    if known.iter().all(|(_, to)| *to == 1) {
        return Some(cx.op("GlobalAveragePool", &[&x.name]));
    }
    let windows: Option<Vec<i64>> = known
        .iter()
        .map(|(from, to)| (*to > 0 && from % to == 0).then(|| (from / to) as i64))
        .collect();
    let windows = windows?;
    let node = cx
        .node("AveragePool")
        .input(&x.name)
        .ints("kernel_shape", windows.clone());
    Some(node.ints("strides", windows).output())
}

/// Sums of weighted places, dim by dim, as products with the weights.
fn summed(cx: &mut Cx, x: &Operand, how: &Resampling, known: &[(usize, usize)]) -> Result<Name> {
    let (mut y, rank) = (x.name.clone(), x.rank());
    for (dim, (from, to)) in known.iter().enumerate().rev() {
        let taps = how.taps(dim, *from, *to)?;
        let table = table(&taps, *from);
        let shape = cx.i64s(&[*from as i64, *to as i64]);
        let table = cx.numbers(&table, x.dtype);
        let table = cx.op("Reshape", &[&table, &shape]);
        // The dim is the last one for the product.
        let mut order: Vec<i64> = (0..rank as i64).collect();
        order.swap(2 + dim, rank - 1);
        let is_last = 2 + dim == rank - 1;
        let swapped = |cx: &mut Cx, name: Name| match is_last {
            true => name,
            false => cx
                .node("Transpose")
                .input(&name)
                .ints("perm", order.clone())
                .output(),
        };
        y = swapped(cx, y);
        y = cx.op("MatMul", &[&y, &table]);
        y = swapped(cx, y);
    }
    Ok(y)
}

/// Weights by place of the input, for each place of the result.
fn table(taps: &[Vec<Tap>], from: usize) -> Vec<f64> {
    let mut table = vec![0.0; from * taps.len()];
    for (at, taps_of) in taps.iter().enumerate() {
        for tap in taps_of {
            table[tap.place * taps.len() + at] += tap.weight;
        }
    }
    table
}
