//! Images in other sizes, and images at the points of a grid.

use fx_nn::lowering::{OpCall, Resampling, Tap, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::picks::{put_rows, take, take_rows};
use super::rules;
use crate::out::cx::{Array, Cx};

rules! {
    interpolate => resize, interpolate_with => resize,
    affine_grid => |cx, call| {
        let theta = cx.tensor(call, "theta")?;
        let (dtype, shape) = cx.result(call)?;
        call.needs_no(&["size"]);
        let corners = call.flag("align_corners")?;
        let sizes = &shape[1..shape.len() - 1];
        let points = [sizes.to_vec(), vec![1]].concat();
        let mut parts = Vec::new();
        for (dim, size) in sizes.iter().enumerate().rev() {
            let places: Vec<f64> = (0..*size).map(|at| match (corners, *size) {
                (_, 1) => 0.0,
                (true, size) => 2.0 * at as f64 / (size - 1) as f64 - 1.0,
                (false, size) => (2.0 * at as f64 + 1.0) / size as f64 - 1.0,
            }).collect();
            let places = cx.numbers(&places, dtype);
            parts.push(cx.broadcast(&places, &[dim as i64], &points));
        }
        parts.push(cx.splat(1.0, dtype, &points));
        let last = points.len() - 1;
        let base = cx.concatenate(&parts, last);
        // `[.., k]` by `[N, d, k]`, with the batch moved to the front.
        let product = cx.dot(&base, &theta, &[], &[[last as i64, 2]]);
        let rank = product.rank() as i64;
        let mut order = vec![rank - 2];
        order.extend(0..rank - 2);
        order.push(rank - 1);
        Ok(cx.transpose(&product, &order).into())
    },
    grid_sample => grid_sample,
    max_unpool1d => unpooled, max_unpool2d => unpooled, max_unpool3d => unpooled,
}

/// Images of other sizes, a dim after another: sums of weighted places, or a product where there are many of them.
fn resize(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let how = Resampling::of(call)?;
    if how.is_rounded() {
        return Err(Error::not_in_format(
            "uint8 images between places are rounded by PyTorch's own rule, which StableHLO has not: convert them to \
             float32 before",
        ));
    }
    let (mut x, (_, shape)) = (cx.tensor(call, "x")?, cx.result(call)?);
    for dim in (2..shape.len()).rev() {
        let taps = how.taps(dim - 2, x.shape[dim] as usize, shape[dim] as usize)?;
        let slots = taps.iter().map(Vec::len).max().unwrap_or(0);
        x = if slots > 4 {
            product(cx, &x, dim, &taps)
        } else {
            sum(cx, &x, dim, &taps, slots)
        };
    }
    Ok(x.into())
}

fn sum(cx: &mut Cx, x: &Array, dim: usize, taps: &[Vec<Tap>], slots: usize) -> Array {
    let mut sum: Option<Array> = None;
    for slot in 0..slots {
        let of = |taps: &Vec<Tap>| {
            taps.get(slot)
                .map_or((0, 0.0), |tap| (tap.place as i64, tap.weight))
        };
        let (places, weights): (Vec<i64>, Vec<f64>) = taps.iter().map(of).unzip();
        if weights.iter().all(|weight| *weight == 0.0) {
            continue;
        }
        let places = cx.ints(&places, DType::I64);
        let mut part = take(cx, x, dim, &places);
        if weights.iter().any(|weight| *weight != 1.0) {
            let weights = cx.numbers(&weights, x.dtype);
            let weights = cx.broadcast(&weights, &[dim as i64], &part.shape);
            part = cx.binary("multiply", &part, &weights);
        }
        sum = Some(match sum {
            Some(sum) => cx.binary("add", &sum, &part),
            None => part,
        });
    }
    sum.unwrap_or_else(|| x.clone())
}

fn product(cx: &mut Cx, x: &Array, dim: usize, taps: &[Vec<Tap>]) -> Array {
    let from = x.shape[dim] as usize;
    let mut table = vec![0.0; taps.len() * from];
    for (row, taps) in table.chunks_mut(from).zip(taps) {
        taps.iter().for_each(|tap| row[tap.place] += tap.weight);
    }
    let table = cx.numbers(&table, x.dtype);
    let table = cx.reshape(&table, &[taps.len() as i64, from as i64]);
    let y = cx.dot(x, &table, &[], &[[dim as i64, 1]]);
    // The new dim is the last one.
    let (last, dim) = (x.rank() as i64 - 1, dim as i64);
    let order: Vec<i64> = (0..dim).chain([last]).chain(dim..last).collect();
    cx.transpose(&y, &order)
}

/// The coordinates of a grid along a dim, in elements.
fn coordinates(cx: &mut Cx, call: &OpCall<'_>, grid: &Array, at: i64, size: i64) -> Result<Array> {
    let part = cx.slice_dim(grid, 3, at, at + 1, 1);
    let part = cx.reshape(&part, &grid.shape[..3]);
    let corners = call.flag("align_corners")?;
    let place = match corners {
        true => {
            let place = cx.with_number("add", &part, 1.0);
            cx.with_number("multiply", &place, (size - 1) as f64 / 2.0)
        }
        false => {
            let place = cx.with_number("add", &part, 1.0);
            let place = cx.with_number("multiply", &place, size as f64);
            let place = cx.with_number("add", &place, -1.0);
            cx.with_number("multiply", &place, 0.5)
        }
    };
    let last = (size - 1) as f64;
    let clamped = |cx: &mut Cx, x: &Array| {
        let x = cx.with_number("maximum", x, 0.0);
        cx.with_number("minimum", &x, last)
    };
    Ok(match &*call.text("padding_mode")? {
        "zeros" => place,
        "border" => clamped(cx, &place),
        "reflection" => {
            let (low, span) = if corners {
                (0.0, last)
            } else {
                (-0.5, size as f64)
            };
            if span == 0.0 {
                return Ok(cx.with_number("multiply", &place, 0.0));
            }
            // Folded at both ends.
            let from = cx.with_number("add", &place, -low);
            let from = cx.unary("abs", &from);
            let turns = cx.with_number("divide", &from, span);
            let turns = cx.unary("floor", &turns);
            let whole = cx.with_number("multiply", &turns, span);
            let rest = cx.binary("subtract", &from, &whole);
            let back = cx.splat(span, rest.dtype, &rest.shape);
            let back = cx.binary("subtract", &back, &rest);
            let half = cx.with_number("multiply", &turns, 0.5);
            let floor = cx.unary("floor", &half);
            let is_even = cx.compare("EQ", &half, &floor);
            let folded = cx.select(&is_even, &rest, &back);
            let folded = cx.with_number("add", &folded, low);
            clamped(cx, &folded)
        }
        other => return Err(Error::msg(format_args!("{other:?} is no way to pad"))),
    })
}

fn grid_sample(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let (x, grid) = (cx.tensor(call, "x")?, cx.tensor(call, "grid")?);
    if x.rank() != 4 {
        return Err(Error::not_in_format(
            "points in volumes: StableHLO's rule is for images",
        ));
    }
    let sizes = [x.shape[2], x.shape[3]];
    let column = coordinates(cx, call, &grid, 0, sizes[1])?;
    let row = coordinates(cx, call, &grid, 1, sizes[0])?;
    // `[N, H, W, C]`, so that a point picks all channels.
    let pixels = cx.transpose(&x, &[0, 2, 3, 1]);
    let mut sum: Option<Array> = None;
    let corners: &[[f64; 2]] = match &*call.text("mode")? {
        "bilinear" => &[[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]],
        "nearest" => &[[0.0, 0.0]],
        other => {
            return Err(Error::not_in_format(format_args!(
                "points by {other:?}: StableHLO's rule has \"bilinear\" and \"nearest\""
            )));
        }
    };
    let nearest = corners.len() == 1;
    let floor = |cx: &mut Cx, x: &Array| {
        cx.unary(
            if nearest {
                "round_nearest_even"
            } else {
                "floor"
            },
            x,
        )
    };
    let (row_0, column_0) = (floor(cx, &row), floor(cx, &column));
    for [down, right] in corners {
        let places = [
            (&row, &row_0, *down, sizes[0]),
            (&column, &column_0, *right, sizes[1]),
        ];
        let mut weight: Option<Array> = None;
        let mut indices = Vec::new();
        for (exact, first, by, size) in places {
            let at = cx.with_number("add", first, by);
            let (low, high) = (
                cx.compare_number("GE", &at, 0.0),
                cx.compare_number("LE", &at, (size - 1) as f64),
            );
            let inside = cx.binary("and", &low, &high);
            let mut part = cx.convert(&inside, exact.dtype);
            if !nearest {
                let apart = cx.binary("subtract", exact, &at);
                let apart = cx.unary("abs", &apart);
                let one = cx.splat(1.0, apart.dtype, &apart.shape);
                let share = cx.binary("subtract", &one, &apart);
                part = cx.binary("multiply", &part, &share);
            }
            weight = Some(match weight {
                Some(weight) => cx.binary("multiply", &weight, &part),
                None => part,
            });
            let at = cx.with_number("maximum", &at, 0.0);
            let at = cx.with_number("minimum", &at, (size - 1) as f64);
            indices.push(cx.convert(&at, DType::I64));
        }
        let batch = cx.iota(0, DType::I64, &row.shape);
        let places = [(0, batch), (1, indices[0].clone()), (2, indices[1].clone())];
        let picked = take_rows(cx, &pixels, &places);
        let Some(weight) = weight else { continue };
        let weight = cx.broadcast(&weight, &[0, 1, 2], &picked.shape);
        let part = cx.binary("multiply", &picked, &weight);
        sum = Some(match sum {
            Some(sum) => cx.binary("add", &sum, &part),
            None => part,
        });
    }
    let Some(sum) = sum else {
        return Err(Error::msg("a grid without corners"));
    };
    Ok(cx.transpose(&sum, &[0, 3, 1, 2]).into())
}

/// Elements back at the places that they had before a pool.
fn unpooled(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    call.needs_no(&["kernel_size", "stride", "padding", "output_size"]);
    let (x, index) = (cx.tensor(call, "x")?, cx.tensor(call, "indices")?);
    let (dtype, shape) = cx.result(call)?;
    let dims = match call.function() {
        f if f == function!(ops::max_unpool1d) => 1,
        f if f == function!(ops::max_unpool2d) => 2,
        _ => 3,
    };
    let images: i64 = x.shape[..x.rank() - dims].iter().product();
    let area: i64 = shape[shape.len() - dims..].iter().product();
    let (x, index) = (
        cx.reshape(&x, &[images, x.count() / images.max(1)]),
        cx.reshape(&index, &[images, index.count() / images.max(1)]),
    );
    let empty = cx.splat(0.0, dtype, &[images, area]);
    let image = cx.iota(0, DType::I64, &index.shape);
    let put = put_rows(cx, &empty, &[(0, image), (1, index)], &x, "second")?;
    Ok(cx.reshape(&put, &shape).into())
}
