//! ONNX Runtime's operators on images whose channels lie in blocks (`com.microsoft.nchwc`), which its optimizer writes for
//! the machine that it runs on.
//!
//! Invariant: images keep their channels as ONNX has them, filled up with zeros to whole blocks; only weights, which the
//! file has in blocks, are put in order.

use fx_nn::prelude::*;
use fx_nn::{Bound, Error, Result};

use super::contrib::after_product;
use super::windows::{convolution, convolved, image, pool, pool_windows};
use crate::load::blocks::DOMAIN;
use crate::load::checks::{at_least, rank};
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};

pub(super) const TABLE: &[Operator] = &[
    op("ReorderInput", |cx| {
        let x = cx.tensor(0)?;
        let (x, at) = match cx.flag("channels_last") {
            true => (ops::movedim(&x, -1, 1)?, cx.rank(0)? - 1),
            false => (x, 1),
        };
        let channels = cx.shape(0)?[at].as_number().ok_or_else(|| {
            Error::msg("an image of a number of channels that is not known, in blocks")
        })?;
        let more = (-channels).rem_euclid(cx.reader.block.max(1));
        if more == 0 {
            return cx.like(x);
        }
        let mut sizes = vec![0i64; 2 * (cx.rank(0)? - 2)];
        sizes.extend([0, more]);
        cx.like(ops::pad(&x, sizes, "constant", Bound::from(0.0))?)
    })
    .domain(DOMAIN)
    .check(|cx| rank(cx, 0, 3..)),
    op("ReorderOutput", |cx| {
        let x = ops::narrow(&cx.tensor(0)?, 1, 0, cx.int("channels", 0))?;
        cx.like(match cx.flag("channels_last") {
            true => ops::movedim(&x, 1, -1)?,
            false => x,
        })
    })
    .domain(DOMAIN)
    .check(|cx| {
        rank(cx, 0, 3..)?;
        at_least(cx, "channels", 1)
    }),
    op("Conv", |cx| {
        let w = ordered(cx)?;
        let y = convolved(cx, cx.tensor(0)?, &w, 1, cx.optional(2)?.as_ref())?;
        after_product(cx, y)
    })
    .domain(DOMAIN)
    .check(convolution),
    op("MaxPool", |cx| pool(cx, true))
        .domain(DOMAIN)
        .check(pool_windows),
    op("AveragePool", |cx| pool(cx, false))
        .domain(DOMAIN)
        .check(pool_windows),
    op("GlobalMaxPool", |cx| {
        let dims: Vec<i64> = (2..cx.rank(0)? as i64).collect();
        cx.like(ops::amax(&cx.tensor(0)?, dims, true)?)
    })
    .domain(DOMAIN)
    .check(image),
    op("GlobalAveragePool", |cx| {
        let dims: Vec<i64> = (2..cx.rank(0)? as i64).collect();
        cx.like(ops::mean(&cx.tensor(0)?, dims, true)?)
    })
    .domain(DOMAIN)
    .check(image),
];

/// A weight `[results, channels, sizes ..]` of blocks of results, and of channels where these are images in blocks.
fn ordered(cx: &NodeCx<'_>) -> Result<Tensor> {
    let (w, shape, block) = (cx.tensor(1)?, cx.known_shape(1)?, cx.reader.block);
    let sizes: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
    let (&[results, channels], kernel) = sizes.split_at(2) else {
        return Err(Error::msg("a weight of too few dims"));
    };
    if results % block != 0 {
        return Err(Error::msg(format_args!(
            "a weight of {results} results in blocks of {block}"
        )));
    }
    let dims = kernel.len() as i64;
    // A few channels are those of an image without blocks; one for each group has none.
    if channels < block {
        let parts = [&[results / block, channels], kernel, &[block]].concat();
        let order: Vec<i64> = [0, dims + 2].into_iter().chain(1..dims + 2).collect();
        let turned = ops::permute(&ops::reshape(&w, parts)?, order)?;
        return ops::reshape(&turned, sizes.clone());
    }
    if channels % block != 0 {
        return Err(Error::msg(format_args!(
            "a weight of {channels} channels in blocks of {block}"
        )));
    }
    let parts = [
        &[results / block, channels / block],
        kernel,
        &[block, block],
    ]
    .concat();
    let order: Vec<i64> = [0, dims + 3, 1, dims + 2]
        .into_iter()
        .chain(2..dims + 2)
        .collect();
    let turned = ops::permute(&ops::reshape(&w, parts)?, order)?;
    ops::reshape(&turned, sizes.clone())
}
