//! The gradients of operations that rearrange, pick and multiply.

use std::collections::BTreeSet;

use fx_nn::prelude::*;

use crate::gradients::{held, ints};
use crate::support::{check, varied};

fn rearranged(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "pad"(x: [1, 2, 3]) {
        let own = (ops::pad(x, (1, -1), "constant", 2.0)?.sum(..)? + ops::pad(x, (2, 1), "reflect", None)?)?;
        (own + ops::pad(x, (2, 1), "replicate", None)?)? * ops::pad(x, (1, 2), "circular", None)?
    });
    held!(seen: "roll"(x: [2, 3]) ops::roll(x, (1, -1), (0, 1))? * ops::roll(x, 2, ..)?);
    held!(seen: "flip"(x: [2, 3]) ops::flip(x, (0, -1)));
    held!(seen: "fliplr"(x: [2, 3]) ops::fliplr(x));
    held!(seen: "flipud"(x: [2, 3]) ops::flipud(x));
    held!(seen: "rot90"(x: [2, 3]) ops::rot90(x, 3, (0, 1)));
    held!(seen: "repeat_interleave"(x: [2, 3]) ops::repeat_interleave(x, (2, 1, 3), 1));
    held!(seen: "repeat"(x: [2, 3]) ops::repeat(x, (2, 1, 2)));
    held!(seen: "tile"(x: [2, 3]) ops::tile(x, 2));
    held!(seen: "meshgrid"(x: [2], y: [3]) {
        let [a, b] = ops::meshgrid(&[x.clone(), y.clone()], "xy")?.unpack()?;
        a * b
    });
    held!(seen: "movedim"(x: [2, 3, 2]) ops::movedim(x, (0, 1), (2, 0)));
    held!(seen: "moveaxis"(x: [2, 3, 2]) ops::moveaxis(x, 0, -1));
    held!(seen: "swapaxes"(x: [2, 3]) ops::swapaxes(x, 0, 1));
    held!(seen: "swapdims"(x: [2, 3]) ops::swapdims(x, 0, 1));
    held!(seen: "atleast_1d"(x: [2]) ops::atleast_1d(x));
    held!(seen: "atleast_2d"(x: [2]) ops::atleast_2d(x));
    held!(seen: "atleast_3d"(x: [2]) ops::atleast_3d(x));
    held!(seen: "unflatten"(x: [2, 6]) ops::unflatten(x, 1, (2, -1)));
    held!(seen: "ravel"(x: [2, 3]) ops::ravel(x));
    held!(seen: "broadcast_to"(x: [2, 1]) ops::broadcast_to(x, (3, 2, 4)));
    held!(seen: "broadcast_tensors"(x: [2, 1], y: [3]) {
        let [a, b] = ops::broadcast_tensors(&[x.clone(), y.clone()])?.unpack()?;
        a * b
    });
    held!(seen: "narrow"(x: [2, 5]) ops::narrow(x, 1, 1, 3));
    held!(seen: "select"(x: [2, 5]) ops::select(x, 1, -2));
    held!(seen: "tensor_split"(x: [5, 2]) ops::tensor_split(x, [1, 3], 0)?.get(1));
    held!(seen: "hsplit"(x: [2, 4]) ops::hsplit(x, 2)?.get(1));
    held!(seen: "vsplit"(x: [4, 2]) ops::vsplit(x, 2)?.get(1));
    held!(seen: "dsplit"(x: [1, 2, 4]) ops::dsplit(x, 2)?.get(1));
    held!(seen: "hstack"(x: [2, 3], y: [2, 1]) ops::hstack(&[x.clone(), y.clone()]));
    held!(seen: "vstack"(x: [3], y: [2, 3]) ops::vstack(&[x.clone(), y.clone()]));
    held!(seen: "row_stack"(x: [3], y: [2, 3]) ops::row_stack(&[x.clone(), y.clone()]));
    held!(seen: "dstack"(x: [2, 3], y: [2, 3]) ops::dstack(&[x.clone(), y.clone()]));
    held!(seen: "column_stack"(x: [2], y: [2, 3]) ops::column_stack(&[x.clone(), y.clone()]));
    held!(seen: "block_diag"(x: [2], y: [2, 3]) ops::block_diag(&[x.clone(), y.clone()]));
    held!(seen: "cartesian_prod"(x: [2], y: [3]) ops::cartesian_prod(&[x.clone(), y.clone()]));
    held!(seen: "combinations"(x: [4]) ops::combinations(x, 2, true));
    held!(seen: "diagonal"(x: [2, 3, 4]) ops::diagonal(x, 1, 0, 2));
    held!(seen: "diag_embed"(x: [2, 3]) ops::diag_embed(x, 1, 0, 2));
    held!(seen: "diag"(x: [3]) ops::diag(x, -1));
    held!(seen: "diagflat"(x: [2, 2]) ops::diagflat(x, 1));
    held!(seen: "trace"(x: [2, 3]) ops::trace(x));
    Ok(())
}

fn picked(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    let index = ints(&[2, 0, 1, 2], &[2, 2])?;
    held!(seen: "scatter"(x: [2, 3], y: [2, 2]) using index: ops::scatter(x, 1, &index, y));
    held!(seen: "scatter_value"(x: [2, 3]) using index: ops::scatter_value(x, 1, &index, 2.0));
    held!(seen: "scatter_add"(x: [2, 3], y: [2, 2]) using index: ops::scatter_add(x, 1, &index, y));
    held!(seen: "scatter_reduce"(x: [2, 3], y: [2, 2]) using index: {
        let sums = ops::scatter_reduce(x, 1, &index, y, "mean", true)?;
        let tops = ops::scatter_reduce(x, 0, &(&index % 2)?, y, "amax", false)?;
        (sums + tops)? * ops::scatter_reduce(x, 0, &(&index % 2)?, y, "prod", true)?
    });
    let at = ints(&[1, 1, 0], &[3])?;
    held!(seen: "index_add"(x: [2, 3], y: [3, 3]) using at: ops::index_add(x, 0, &at, y, 2.0));
    held!(seen: "index_copy"(x: [2, 3], y: [3, 3]) using at: ops::index_copy(x, 0, &at, y));
    held!(seen: "index_fill"(x: [3, 3]) using at: ops::index_fill(x, 0, &at, 2.0));
    held!(seen: "index_put"(x: [2, 3], y: [3]) using at: {
        let places = [at.clone(), at.clone()];
        ops::index_put(x, &places, y, true)? * ops::index_put(x, &places, y, false)?
    });
    held!(seen: "take"(x: [2, 3]) using at: ops::take(x, &at));
    held!(seen: "take_along_dim"(x: [1, 3]) using index: ops::take_along_dim(x, &index, 1));
    let mask = Tensor::from_vec(vec![1i64, 0, 1], 3)?.gt(0)?;
    held!(seen: "masked_scatter"(x: [2, 3], y: [4]) using mask: ops::masked_scatter(x, &mask, y));
    held!(seen: "masked_select"(x: [2, 3]) using mask: ops::masked_select(x, &mask));
    held!(seen: "select_scatter"(x: [2, 3], y: [2]) ops::select_scatter(x, y, 1, -1));
    held!(seen: "slice_scatter"(x: [5], y: [2]) ops::slice_scatter(x, y, 0, 1, 5, 2));
    held!(seen: "diagonal_scatter"(x: [2, 3], y: [2]) ops::diagonal_scatter(x, y, 1, 0, 1));
    held!(seen: "sort"(x: [2, 4]) Ok(ops::sort(x, 1, true)?.0));
    held!(seen: "msort"(x: [3, 2]) ops::msort(x));
    held!(seen: "unique"(x: [4]) Ok(ops::unique(x, true, false, false, None)?.0));
    held!(seen: "unique_consecutive"(x: [4]) Ok(ops::unique_consecutive(x, false, false, None)?.0));
    Ok(())
}

fn multiplied(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "mm"(x: [2, 3], y: [3, 2]) ops::mm(x, y));
    held!(seen: "bmm"(x: [2, 2, 3], y: [2, 3, 1]) ops::bmm(x, y));
    held!(seen: "mv"(x: [2, 3], y: [3]) ops::mv(x, y));
    held!(seen: "dot"(x: [3], y: [3]) ops::dot(x, y));
    held!(seen: "vdot"(x: [3], y: [3]) ops::vdot(x, y));
    held!(seen: "inner"(x: [2, 3], y: [2, 2, 3]) ops::inner(x, y));
    held!(seen: "outer"(x: [2], y: [3]) ops::outer(x, y));
    held!(seen: "ger"(x: [2], y: [3]) ops::ger(x, y));
    held!(seen: "addmm"(x: [3], y: [2, 2], z: [2, 3]) ops::addmm(x, y, z, 0.5, 2.0));
    held!(seen: "addmv"(x: [2], y: [2, 3], z: [3]) ops::addmv(x, y, z, 0.5, 2.0));
    held!(seen: "addbmm"(x: [2, 3], y: [2, 2, 2], z: [2, 2, 3]) ops::addbmm(x, y, z, 0.5, 2.0));
    held!(seen: "baddbmm"(x: [2, 3], y: [2, 2, 2], z: [2, 2, 3]) ops::baddbmm(x, y, z, 0.5, 2.0));
    held!(seen: "addr"(x: [2, 3], y: [2], z: [3]) ops::addr(x, y, z, 0.5, 2.0));
    held!(seen: "kron"(x: [2, 1], y: [2, 3]) ops::kron(x, y));
    held!(seen: "tensordot"(x: [2, 3], y: [3, 2]) ops::tensordot(x, y, 1));
    held!(seen: "tensordot_dims"(x: [2, 3], y: [2, 3]) ops::tensordot_dims(x, y, 1, 1));
    held!(seen: "multi_dot"(x: [2], y: [2, 3], z: [3, 1]) ops::multi_dot(&[x.clone(), y.clone(), z.clone()]));
    held!(seen: "chain_matmul"(x: [1, 2], y: [2, 3]) ops::chain_matmul(&[x.clone(), y.clone()]));
    held!(seen: "cross"(x: [2, 3], y: [1, 3]) ops::cross(x, y, 1));
    held!(seen: "vander"(x: [3]) ops::vander(x, 4, false));
    held!(seen: "bilinear"(x: [2, 3], y: [2, 2], w: [2, 3, 2], b: [2]) ops::bilinear(x, y, w, Some(b)));
    held!(seen: "cdist"(x: [2, 3], y: [4, 3]) {
        let near = ops::cdist(x, y, 2.0, "use_mm_for_euclid_dist")?;
        near * ops::cdist(x, y, 1.5, "donot_use_mm_for_euclid_dist")?
    });
    held!(seen: "pairwise_distance"(x: [2, 3], y: [2, 3]) ops::pairwise_distance(x, y, 2.0, 1e-6, false));
    held!(seen: "normalize"(x: [2, 3]) ops::normalize(x, 3.0, 1, 1e-12));
    Ok(())
}

fn windows(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "conv3d"(x: [1, 2, 3, 3, 2], w: [2, 1, 2, 2, 1], b: [2]) ops::conv3d(x, w, Some(b), 1, 1, 1, 2));
    held!(seen: "conv_transpose1d"(x: [1, 2, 3], w: [2, 1, 2], b: [1]) {
        ops::conv_transpose1d(x, w, Some(b), 2, 1, 1, 1, 1)
    });
    held!(seen: "conv_transpose3d"(x: [1, 2, 2, 2, 1], w: [2, 1, 2, 1, 2], b: [1]) {
        ops::conv_transpose3d(x, w, Some(b), 2, 0, 1, 1, 1)
    });
    held!(seen: "max_pool1d"(x: [1, 2, 5]) ops::max_pool1d(x, 2, 2, 0, 1, true));
    held!(seen: "max_pool3d"(x: [1, 3, 3, 4]) ops::max_pool3d(x, 2, 1, 0, 1, false));
    held!(seen: "max_pool1d_with_indices"(x: [1, 5]) Ok(ops::max_pool1d_with_indices(x, 3, 1, 1, 1, false)?.0));
    held!(seen: "max_pool2d_with_indices"(x: [1, 4, 3]) Ok(ops::max_pool2d_with_indices(x, 2, 1, 0, 1, false)?.0));
    held!(seen: "max_pool3d_with_indices"(x: [1, 2, 4, 3]) {
        Ok(ops::max_pool3d_with_indices(x, 2, 1, 0, 1, false)?.0)
    });
    held!(seen: "adaptive_max_pool1d"(x: [1, 5]) ops::adaptive_max_pool1d(x, 2));
    held!(seen: "adaptive_max_pool2d"(x: [1, 5, 4]) ops::adaptive_max_pool2d(x, (2, 3)));
    held!(seen: "adaptive_max_pool3d"(x: [1, 2, 3, 4]) ops::adaptive_max_pool3d(x, (2, 2, 3)));
    held!(seen: "adaptive_max_pool1d_with_indices"(x: [1, 5]) Ok(ops::adaptive_max_pool1d_with_indices(x, 3)?.0));
    held!(seen: "adaptive_max_pool2d_with_indices"(x: [1, 3, 4]) {
        Ok(ops::adaptive_max_pool2d_with_indices(x, 2)?.0)
    });
    held!(seen: "adaptive_max_pool3d_with_indices"(x: [1, 2, 3, 4]) {
        Ok(ops::adaptive_max_pool3d_with_indices(x, 2)?.0)
    });
    held!(seen: "avg_pool1d"(x: [1, 2, 5]) ops::avg_pool1d(x, 3, 2, 1, false, true));
    held!(seen: "avg_pool3d"(x: [1, 3, 4, 3]) ops::avg_pool3d(x, 2, (1, 2, 1), 1, true, false));
    held!(seen: "adaptive_avg_pool1d"(x: [1, 5]) ops::adaptive_avg_pool1d(x, 3));
    held!(seen: "adaptive_avg_pool3d"(x: [1, 2, 3, 4]) ops::adaptive_avg_pool3d(x, (2, 2, 3)));
    held!(seen: "lp_pool1d"(x: [1, 5]) ops::lp_pool1d(&(x + 2.0)?, 3.0, 2, 1, false));
    held!(seen: "lp_pool2d"(x: [1, 4, 3]) ops::lp_pool2d(x, 2.0, 2, 1, false));
    let at = ints(&[1, 2], &[1, 2])?;
    held!(seen: "max_unpool1d"(x: [1, 2]) using at: ops::max_unpool1d(x, &at, 2, 2, 0, None));
    let at = ints(&[1, 6], &[1, 1, 2])?;
    held!(seen: "max_unpool2d"(x: [1, 1, 2]) using at: ops::max_unpool2d(x, &at, 2, 2, 0, None));
    let at = ints(&[1, 15], &[1, 1, 1, 2])?;
    held!(seen: "max_unpool3d"(x: [1, 1, 1, 2]) using at: ops::max_unpool3d(x, &at, 2, 2, 0, None));
    held!(seen: "unfold"(x: [1, 2, 3, 4]) ops::unfold(x, 2, 1, 1, 2));
    held!(seen: "fold"(x: [1, 8, 4]) ops::fold(x, 3, 2, 1, 0, 1));
    held!(seen: "pixel_shuffle"(x: [4, 2, 1]) ops::pixel_shuffle(x, 2));
    held!(seen: "pixel_unshuffle"(x: [1, 2, 4]) ops::pixel_unshuffle(x, 2));
    held!(seen: "channel_shuffle"(x: [1, 4, 2]) ops::channel_shuffle(x, 2));
    held!(seen: "grid_sample"(x: [1, 2, 3, 3], grid: [1, 2, 2, 2]) {
        let zeros = ops::grid_sample(x, grid, "bilinear", "zeros", false)?;
        zeros * ops::grid_sample(x, &(grid * 1.7)?, "bilinear", "reflection", true)?
    });
    held!(seen: "affine_grid"(theta: [1, 2, 3]) ops::affine_grid(theta, (1, 1, 2, 3), false));
    Ok(())
}

fn others(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "gru"(x: [3, 2, 2], w: [6, 2], u: [6, 2], h: [1, 2, 2]) {
        let (y, h) = ops::gru(x, Some(h), &[w.clone(), u.clone()], false, 1, 0.0, false, false, false)?;
        y * h
    });
    held!(seen: "rnn_tanh"(x: [3, 2, 2], w: [2, 2], u: [2, 2], h: [1, 2, 2]) {
        Ok(ops::rnn_tanh(x, Some(h), &[w.clone(), u.clone()], false, 1, 0.0, false, false, false)?.0)
    });
    held!(seen: "rnn_relu"(x: [3, 2, 2], w: [2, 2], u: [2, 2], h: [1, 2, 2]) {
        Ok(ops::rnn_relu(x, Some(h), &[w.clone(), u.clone()], false, 1, 0.0, false, false, false)?.0)
    });
    held!(seen: "gru_cell"(x: [2, 2], w: [6, 2], u: [6, 2], h: [2, 2]) ops::gru_cell(x, Some(h), w, u, None, None));
    held!(seen: "rnn_tanh_cell"(x: [2, 2], w: [2, 2], u: [2, 2], h: [2, 2]) ops::rnn_tanh_cell(x, Some(h), w, u, None, None));
    held!(seen: "rnn_relu_cell"(x: [2, 2], w: [2, 2], u: [2, 2], h: [2, 2]) ops::rnn_relu_cell(x, Some(h), w, u, None, None));
    held!(seen: "lstm_cell"(x: [2, 2], w: [8, 2], u: [8, 2], h: [2, 2]) {
        let (h, c) = ops::lstm_cell(x, Some(h), Some(h), w, u, None, None)?;
        h * c
    });
    held!(seen: "instance_norm"(x: [2, 2, 3], w: [2], b: [2]) {
        ops::instance_norm(x, None, None, Some(w), Some(b), true, 0.1, 1e-3)
    });
    held!(seen: "local_response_norm"(x: [1, 4, 2]) ops::local_response_norm(x, 3, 0.5, 0.75, 1.0));
    held!(seen: "dropout1d"(x: [2, 3]) ops::dropout1d(x, 0.5, false));
    held!(seen: "dropout2d"(x: [2, 3]) ops::dropout2d(x, 0.5, false));
    held!(seen: "dropout3d"(x: [2, 3]) ops::dropout3d(x, 0.5, false));
    held!(seen: "alpha_dropout"(x: [2, 3]) ops::alpha_dropout(x, 0.5, false));
    held!(seen: "feature_alpha_dropout"(x: [2, 3]) ops::feature_alpha_dropout(x, 0.5, false));
    held!(seen: "stochastic_depth"(x: [2, 3]) ops::stochastic_depth(x, 0.5, "row", false));
    Ok(())
}

/// Checks all of them.
pub fn all(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    for family in [rearranged, picked, multiplied, windows, others] {
        family(seen)?;
    }
    Ok(())
}
