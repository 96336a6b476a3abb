//! New tensors of one number, by `full`, `full_like` and `new_full`.

use fx_core::value::DType;

use super::decompose;
use crate::tensor::Tensor;
use crate::{Sizes, ops};

decompose! {
    ops::zeros(shape: Sizes, dtype: Option<DType>) => ops::full(shape, 0.0, dtype);
    ops::ones(shape: Sizes, dtype: Option<DType>) => ops::full(shape, 1.0, dtype);
    ops::empty(shape: Sizes, dtype: Option<DType>) => ops::full(shape, 0.0, dtype);
    ops::zeros_like(x: Tensor, dtype: Option<DType>) => ops::full_like(&x, 0, dtype);
    ops::ones_like(x: Tensor, dtype: Option<DType>) => ops::full_like(&x, 1, dtype);
    ops::empty_like(x: Tensor, dtype: Option<DType>) => ops::full_like(&x, 0, dtype);
    ops::new_zeros(x: Tensor, shape: Sizes, dtype: Option<DType>) => ops::new_full(&x, shape, 0, dtype);
    ops::new_ones(x: Tensor, shape: Sizes, dtype: Option<DType>) => ops::new_full(&x, shape, 1, dtype);
    ops::new_empty(x: Tensor, shape: Sizes, dtype: Option<DType>) => ops::new_full(&x, shape, 0, dtype);
}
