//! Half precision is computed in `f32` and rounded once, at the end, as PyTorch does: the one place that widens.

use candle_core::{DType, Result, Tensor};

/// Whether a type is too narrow to compute in.
pub fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::BF16 | DType::F16)
}

/// The operands of a kernel: tensors, optional tensors, and tuples of them.
pub trait Operands {
    /// The same, owned.
    type Owned;

    /// The half-precision operands converted to `to`; others unchanged.
    ///
    /// # Errors
    /// Returns only candle's errors.
    fn cast(self, to: Option<DType>) -> Result<Self::Owned>;
}

impl Operands for &Tensor {
    type Owned = Tensor;

    fn cast(self, to: Option<DType>) -> Result<Tensor> {
        match to {
            Some(to) if is_half(self.dtype()) => self.to_dtype(to),
            _ => Ok(self.clone()),
        }
    }
}

impl Operands for Option<&Tensor> {
    type Owned = Option<Tensor>;

    fn cast(self, to: Option<DType>) -> Result<Option<Tensor>> {
        self.map(|t| t.cast(to)).transpose()
    }
}

impl Operands for &[Tensor] {
    type Owned = Vec<Tensor>;

    fn cast(self, to: Option<DType>) -> Result<Vec<Tensor>> {
        self.iter().map(|t| t.cast(to)).collect()
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {$(
        impl<$($name: Operands),+> Operands for ($($name,)+) {
            type Owned = ($($name::Owned,)+);

            #[allow(non_snake_case)]
            fn cast(self, to: Option<DType>) -> Result<Self::Owned> {
                let ($($name,)+) = self;
                Ok(($($name.cast(to)?,)+))
            }
        }
    )*};
}

tuples! {
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
}

/// The results of a kernel: a tensor, or several.
pub trait Results: Sized {
    /// The results converted to `to`.
    ///
    /// # Errors
    /// Returns only candle's errors.
    fn narrowed(self, to: DType) -> Result<Self>;
}

impl Results for Tensor {
    fn narrowed(self, to: DType) -> Result<Self> {
        self.to_dtype(to)
    }
}

impl Results for (Tensor, Tensor, Tensor) {
    fn narrowed(self, to: DType) -> Result<Self> {
        let (a, b, c) = self;
        Ok((a.to_dtype(to)?, b.to_dtype(to)?, c.to_dtype(to)?))
    }
}

/// Runs `kernel` on `inputs`, with half precision as `f32` where `x` is half; the result is of the type of `x` again.
///
/// Nothing is copied where `x` is not half. Gradients run through the conversions.
///
/// # Errors
/// Returns the errors of `kernel`.
pub fn widened<I: Operands, R: Results>(
    x: &Tensor,
    inputs: I,
    kernel: impl FnOnce(I::Owned) -> Result<R>,
) -> Result<R> {
    if !is_half(x.dtype()) {
        return kernel(inputs.cast(None)?);
    }
    kernel(inputs.cast(Some(DType::F32))?)?.narrowed(x.dtype())
}
