//! Views under another name, and those of a fixed dim.

use fx_core::Result;

use super::decompose;
use crate::tensor::Tensor;
use crate::{Dims, Sections, Sizes, ops};

decompose! {
    ops::contiguous(x: Tensor) => Ok(x);
    ops::view(x: Tensor, shape: Sizes) => ops::reshape(&x, shape);
    ops::ravel(x: Tensor) => ops::reshape(&x, -1);
    ops::broadcast_to(x: Tensor, size: Sizes) => ops::expand(&x, size);
    ops::swapaxes(x: Tensor, axis0: i64, axis1: i64) => ops::transpose(&x, axis0, axis1);
    ops::swapdims(x: Tensor, dim0: i64, dim1: i64) => ops::transpose(&x, dim0, dim1);
    ops::moveaxis(x: Tensor, source: Dims, destination: Dims) => ops::movedim(&x, source, destination);
    ops::fliplr(x: Tensor) => ops::flip(&x, 1);
    ops::flipud(x: Tensor) => ops::flip(&x, 0);
    ops::stack(tensors: Vec<Tensor>, dim: i64) => stack(&tensors, dim);
    ops::row_stack(tensors: Vec<Tensor>) => ops::vstack(&tensors);
    ops::vsplit(x: Tensor, indices_or_sections: Sections) => ops::tensor_split(&x, indices_or_sections, 0);
    ops::dsplit(x: Tensor, indices_or_sections: Sections) => ops::tensor_split(&x, indices_or_sections, 2);
    ops::diagflat(x: Tensor, offset: i64) => ops::diag_embed(&ops::reshape(&x, -1)?, offset, -2, -1);
    ops::channel_shuffle(x: Tensor, groups: i64) => channel_shuffle(&x, groups);
}

fn stack(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let rows = tensors.iter().map(|x| ops::unsqueeze(x, dim));
    ops::cat(&rows.collect::<Result<Vec<_>>>()?, dim)
}

fn channel_shuffle(x: &Tensor, groups: i64) -> Result<Tensor> {
    let per_group = x.size(1)?.floordiv(groups)?;
    let flat = ops::flatten(x, 2, -1)?;
    // A size that is left open is not found where there are no elements.
    let shape = [x.size(0)?, groups.into(), per_group, flat.size(2)?];
    let grouped = ops::reshape(&flat, shape)?;
    ops::reshape(&ops::transpose(&grouped, 1, 2)?, x.shape()?)
}
