//! A tensor's data: making it, its shape and type, reading it out, training it.

use candle_core::{Device, Var};
use fx_core::{DType, Error, Result};

use super::{Shape, Tensor, candle_dtype, fx_dtype};
use crate::error::Fx;

impl Tensor {
    /// A tensor of the given data, row-major.
    ///
    /// # Errors
    /// When the shape has another number of elements.
    pub fn from_vec<T: candle_core::WithDType>(
        data: Vec<T>,
        shape: impl Into<Shape>,
    ) -> Result<Tensor> {
        candle_core::Tensor::from_vec(data, shape.into().0, &Device::Cpu)
            .map(Tensor::from)
            .fx()
    }

    /// A tensor of one value.
    ///
    /// # Errors
    /// When candle has no room for it.
    pub fn full(shape: impl Into<Shape>, value: f64, dtype: DType) -> Result<Tensor> {
        let dtype = candle_dtype(dtype)?;
        candle_core::Tensor::full(value, shape.into().0, &Device::Cpu)
            .and_then(|t| t.to_dtype(dtype))
            .map(Tensor::from)
            .fx()
    }

    /// The element type.
    ///
    /// # Errors
    /// When the tensor is symbolic.
    #[track_caller]
    pub fn dtype(&self) -> Result<DType> {
        if self.is_bool() {
            return Ok(DType::Bool);
        }
        fx_dtype(self.data("dtype")?.dtype())
    }

    /// The sizes.
    ///
    /// # Errors
    /// When the tensor is symbolic: `x.size(d)` gives a symbolic size.
    #[track_caller]
    pub fn dims(&self) -> Result<&[usize]> {
        let data = self.data("dims")?;
        Ok(data.dims())
    }

    /// All elements as `f64`, row-major.
    ///
    /// # Errors
    /// When the tensor is symbolic.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        let data = self.data("to_vec")?;
        data.to_dtype(candle_core::DType::F64)
            .and_then(|t| t.flatten_all()?.to_vec1())
            .fx()
    }

    /// The one element, as `f64`.
    ///
    /// # Errors
    /// When the tensor is symbolic, or has not exactly one element.
    #[track_caller]
    pub fn item(&self) -> Result<f64> {
        let data = self.data("item")?;
        if data.elem_count() != 1 {
            return Err(Error::msg(format_args!(
                "item: a tensor of shape {:?} has {} elements, not one",
                data.dims(),
                data.elem_count()
            )));
        }
        data.to_dtype(candle_core::DType::F64)
            .and_then(|t| t.flatten_all()?.to_vec1::<f64>())
            .fx()?
            .first()
            .copied()
            .ok_or_else(|| Error::msg("item: the tensor is empty"))
    }

    /// The known data as another element type.
    pub(crate) fn cast(&self, dtype: DType) -> Result<Tensor> {
        let data = self.data("to_dtype")?;
        if dtype == self.dtype()? {
            return Ok(self.clone());
        }
        if dtype == DType::Bool {
            let zero = data.zeros_like().fx()?;
            return data.ne(&zero).map(Tensor::from_bools).fx();
        }
        data.to_dtype(candle_dtype(dtype)?).map(Tensor::from).fx()
    }

    /// Integers and truth values as `float32`, as PyTorch promotes them where only floats will do.
    pub(crate) fn as_float(&self) -> Result<Tensor> {
        if self.dtype()?.is_floating_point() {
            Ok(self.clone())
        } else {
            self.cast(DType::F32)
        }
    }

    /// The type that this tensor and `other` are promoted to.
    pub(crate) fn common_type(&self, other: &Tensor) -> Result<DType> {
        super::apply::common_type(self, other)
    }

    /// A leaf of the gradient graph with this data: a parameter to train. An existing one is kept.
    ///
    /// # Errors
    /// When the tensor is symbolic.
    pub fn into_parameter(self) -> Result<Tensor> {
        let var = Var::from_tensor(self.data("into_parameter")?).fx()?;
        Ok(var.as_tensor().clone().into())
    }

    /// The same data, without its gradient history.
    ///
    /// # Errors
    /// When the tensor is symbolic.
    #[track_caller]
    pub fn detach(&self) -> Result<Tensor> {
        let data = self.data("detach")?.detach();
        Ok(self.with_data(data))
    }

    /// Overwrites the data in place, so that every holder of it sees the change: a traced module too. (A view
    /// whose elements are not next to each other is replaced instead.)
    ///
    /// # Errors
    /// When the shapes differ, or either is symbolic.
    pub fn copy_from(&mut self, source: &Tensor) -> Result<()> {
        let (own, other) = (self.data("copy_from")?, source.data("copy_from")?);
        if own.dims() != other.dims() {
            return Err(Error::msg(format_args!(
                "copy_from: shape {:?} cannot take data of shape {:?}",
                own.dims(),
                other.dims()
            )));
        }
        let other = other.to_dtype(own.dtype()).fx()?;
        if own.is_variable() {
            return Var::from_tensor(own).and_then(|var| var.set(&other)).fx();
        }
        if own.is_contiguous() && own.elem_count() > 0 {
            let flat = |t: &candle_core::Tensor| t.reshape(t.elem_count());
            let in_place = || flat(own)?.slice_set(&flat(&other.contiguous()?)?, 0, 0);
            return in_place().fx();
        }
        *self = self.with_data(other);
        Ok(())
    }
}
