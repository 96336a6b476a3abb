//! A tensor's data: creating it, its shape and type, reading it, training it.

use candle_core::Var;
use fx_core::tensor::{escape_with, known_shape};
use fx_core::value::{DType, Device};
use fx_core::{Error, Result};

use super::writes::written;
use super::{Number, Repr, Shape, Tensor, candle_dtype, fx_dtype, narrowed};
use crate::device;
use crate::error::Fx;
use crate::kernels::{comparison, integers};
use crate::room;

fn not_one(op: &str, dims: &[usize]) -> Error {
    let count: usize = dims.iter().product();
    Error::msg(format_args!(
        "{op}: a tensor of shape {dims:?} has {count} elements, not one"
    ))
}

/// Floats as integers: without their fractions. Numbers that do not fit become what PyTorch makes
/// of them on x86: the least number of 32 or 64 bits, of which narrower types keep the last bits.
fn whole_parts(data: &candle_core::Tensor, dtype: DType) -> Result<Tensor> {
    let floats = data
        .to_dtype(candle_core::DType::F64)
        .and_then(|t| t.flatten_all()?.to_vec1::<f64>())
        .fx()?;
    let whole: Vec<i64> = match dtype {
        DType::U64 => {
            let cut = |x: f64| match x < 0.0 {
                true => x as i64,
                false => (x as u64).cast_signed(),
            };
            floats.into_iter().map(cut).collect()
        }
        DType::I8 | DType::U16 | DType::I16 | DType::I32 => {
            let fits = -2_147_483_649.0..2_147_483_648.0;
            let cut = |x: f64| match x > fits.start && x < fits.end {
                true => x as i64,
                false => i32::MIN.into(),
            };
            floats.into_iter().map(cut).collect()
        }
        _ => {
            let cut = |x: f64| match x < -(i64::MIN as f64) {
                true => x as i64,
                false => i64::MIN,
            };
            floats.into_iter().map(cut).collect()
        }
    };
    whole_like(whole, data, dtype)
}

/// Whole numbers where others are, as elements of a type that they wrap around in.
fn whole_like(whole: Vec<i64>, like: &candle_core::Tensor, dtype: DType) -> Result<Tensor> {
    let held = candle_dtype(dtype)?;
    let whole: Vec<i64> = whole.into_iter().map(|n| narrowed(n, dtype)).collect();
    candle_core::Tensor::from_vec(whole, like.dims(), like.device())
        .and_then(|t| t.to_dtype(held))
        .map(|data| Tensor::of_type(data, dtype))
        .fx()
}

/// The numbers of 64 bits without a sign, which are held bit for bit with one, as floats.
fn unsigned_as_floats(data: &candle_core::Tensor, dtype: DType) -> Result<candle_core::Tensor> {
    let whole = integers::elements(data).fx()?.into_iter();
    let (dims, device) = (data.dims(), data.device());
    // Rounded once.
    if dtype == DType::F32 {
        let floats: Vec<f32> = whole.map(|n| n.cast_unsigned() as f32).collect();
        return candle_core::Tensor::from_vec(floats, dims, device).fx();
    }
    let (floats, held): (Vec<f64>, _) = (
        whole.map(|n| n.cast_unsigned() as f64).collect(),
        candle_dtype(dtype)?,
    );
    candle_core::Tensor::from_vec(floats, dims, device)
        .and_then(|t| t.to_dtype(held))
        .fx()
}

/// Whether a type of 8 or 16 bits has all the numbers of another one.
fn is_within(own: DType, dtype: DType) -> bool {
    matches!((own, dtype), (DType::Bool, _) | (DType::U8, DType::U16))
}

/// Checks that `len` elements fill a shape.
fn holds(op: &str, dims: &[usize], len: usize) -> Result<()> {
    let count = room::count(op, dims).fx()?;
    if count != len {
        return Err(Error::msg(format_args!(
            "{op}: shape {dims:?} has {count} elements, and {len} are given"
        )));
    }
    Ok(())
}

impl Tensor {
    /// A tensor of the given data, row-major.
    ///
    /// # Errors
    /// Returns an error if the shape has a different number of elements.
    pub fn from_vec<T: candle_core::WithDType>(
        data: Vec<T>,
        shape: impl Into<Shape>,
    ) -> Result<Tensor> {
        let Shape(dims) = shape.into();
        holds("from_vec", &dims, data.len())?;
        candle_core::Tensor::from_vec(data, dims, &device::current())
            .map(Tensor::from)
            .fx()
    }

    /// A tensor of one value.
    ///
    /// # Errors
    /// Returns an error if the type does not hold the value, or the tensor does not fit into
    /// memory.
    pub fn full(shape: impl Into<Shape>, value: impl Into<Number>, dtype: DType) -> Result<Tensor> {
        let number = value.into().checked("full", dtype)?;
        let number = number.to_device(&device::current()).fx()?;
        let data = room::full("full", &shape.into().0, &number).fx()?;
        Ok(Tensor::of_type(data, dtype))
    }

    /// The device of the elements.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic.
    #[track_caller]
    pub fn device(&self) -> Result<Device> {
        if let Some(fake) = self.as_fake() {
            return Ok(device::of_fake(fake));
        }
        let data = self.elements("device")?;
        device::of(data).ok_or_else(|| Error::msg("device: its number is beyond 32 bits"))
    }

    /// The element type.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic.
    #[track_caller]
    pub fn dtype(&self) -> Result<DType> {
        if let Repr::Held(dtype, _) = self.0 {
            return Ok(dtype);
        }
        if let Some(fake) = self.as_fake() {
            let dtype = fake.dtype();
            return dtype.ok_or_else(|| Error::msg("the type of the fake tensor is not known"));
        }
        fx_dtype(self.data("dtype")?.dtype())
    }

    /// The sizes.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic: `x.size(d)` gives a symbolic size.
    #[track_caller]
    pub fn dims(&self) -> Result<&[usize]> {
        match &self.0 {
            Repr::Proxy(proxy) => match known_shape(*proxy) {
                Some(shape) => Ok(shape),
                None => Err(escape_with(
                    "dims",
                    "sizes are known only when the graph runs; `x.ndim()?`, `x.size(0)?`, `x.dims3()?` and `x.shape()?` \
                     give sizes that stay in the graph, and `Trace::inputs` tells a trace what they are",
                    *proxy,
                )),
            },
            Repr::Fake(fake) => fake.shape().ok_or_else(|| {
                Error::msg(format_args!(
                    "dims: a size of {fake:?} is known by name alone: `x.ndim()?` and `x.size(0)?` work without a value"
                ))
            }),
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => Ok(data.dims()),
        }
    }

    /// All elements as `f64`, row-major.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        self.in_f64("to_vec")?
            .flatten_all()
            .and_then(|t| t.to_vec1())
            .fx()
    }

    /// The elements as floats of 64 bits.
    fn in_f64(&self, what: &str) -> Result<candle_core::Tensor> {
        let data = self.elements(what)?;
        match self.0 {
            Repr::Held(DType::U64, _) => unsigned_as_floats(data, DType::F64),
            _ => data.to_dtype(candle_core::DType::F64).fx(),
        }
    }

    /// The only element, in its own kind: an integer of any size stays exact.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic, or does not have exactly one element.
    #[track_caller]
    pub fn number(&self) -> Result<Number> {
        let data = self.elements("number")?;
        if data.dtype().is_float() {
            return self.item().map(Number::Float);
        }
        let whole = data
            .to_dtype(candle_core::DType::I64)
            .and_then(|t| t.flatten_all()?.to_vec1::<i64>())
            .fx()?;
        match whole.as_slice() {
            [n] if self.is_bool() => Ok(Number::Bool(*n != 0)),
            [n] if *n < 0 && matches!(self.0, Repr::Held(DType::U64, _)) => {
                Err(Error::msg(format_args!(
                    "number: {} is beyond 63 bits: `item` gives it as a float",
                    n.cast_unsigned()
                )))
            }
            [n] => Ok(Number::Int(*n)),
            _ => Err(not_one("number", data.dims())),
        }
    }

    /// The only element, as `f64`; [`number`](Tensor::number) returns integers exactly.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic, or does not have exactly one element.
    #[track_caller]
    pub fn item(&self) -> Result<f64> {
        let data = self.elements("item")?;
        if data.elem_count() != 1 {
            return Err(not_one("item", data.dims()));
        }
        self.in_f64("item")?
            .flatten_all()
            .and_then(|t| t.to_vec1::<f64>())
            .fx()?
            .first()
            .copied()
            .ok_or_else(|| Error::msg("item: the tensor is empty"))
    }

    /// The known data as another element type.
    pub(crate) fn cast(&self, dtype: DType) -> Result<Tensor> {
        let data = self.elements("to_dtype")?;
        let own = self.dtype()?;
        if dtype == own {
            return Ok(self.clone());
        }
        if dtype == DType::Bool {
            let zero = data.zeros_like().fx()?;
            return comparison::ne(data, &zero).map(Tensor::from_bools).fx();
        }
        if data.dtype().is_float() && !dtype.is_floating_point() {
            return whole_parts(data, dtype);
        }
        match (own, dtype) {
            (DType::U64, dtype) if dtype.is_floating_point() => {
                return unsigned_as_floats(data, dtype).map(Tensor::made);
            }
            // It may not have room for the numbers, and the type that holds it does.
            (_, DType::I8 | DType::U16) if !is_within(own, dtype) => {
                return whole_like(integers::elements(data).fx()?, data, dtype);
            }
            _ => {}
        }
        data.to_dtype(candle_dtype(dtype)?)
            .map(|data| Tensor::of_type(data, dtype))
            .fx()
    }

    /// Integers and truth values as `float32`, as PyTorch promotes them for functions of floats.
    pub(crate) fn as_float(&self) -> Result<Tensor> {
        if self.dtype()?.is_floating_point() {
            Ok(self.clone())
        } else {
            self.cast(DType::F32)
        }
    }

    /// A leaf of the gradient graph with this data: a parameter to train. An existing one is kept.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic.
    pub fn into_parameter(self) -> Result<Tensor> {
        if let Some(fake) = self.fake_parameter()? {
            return Ok(fake);
        }
        let var = Var::from_tensor(self.elements("into_parameter")?).fx()?;
        Ok(self.with_data(var.as_tensor().clone()))
    }

    /// Overwrites the data in place, so that every holder of it sees the change: a traced module too. (A view
    /// whose elements are not next to each other is replaced instead, and so is a cache that compiled code appended to:
    /// earlier ones share its elements.)
    ///
    /// # Errors
    /// Returns an error if the shapes differ, or either is symbolic.
    pub fn copy_from(&mut self, source: &Tensor) -> Result<()> {
        if let Some(fake) = self.as_fake() {
            *self = Tensor::materialised(fake, source)?;
            return Ok(());
        }
        let (own, other) = (self.elements("copy_from")?, source.elements("copy_from")?);
        if own.dims() != other.dims() {
            return Err(Error::msg(format_args!(
                "copy_from: shape {:?} cannot take data of shape {:?}",
                own.dims(),
                other.dims()
            )));
        }
        // Through this tensor's type: elements of a tensor of truth values become 0 or 1.
        let source = source.cast(self.dtype()?)?;
        let other = source.elements("copy_from")?.clone();
        if own.is_variable() {
            Var::from_tensor(own).and_then(|var| var.set(&other)).fx()?;
            written(own);
            return Ok(());
        }
        if own.is_contiguous() && own.elem_count() > 0 && !self.is_front() {
            let flat = |t: &candle_core::Tensor| t.reshape(t.elem_count());
            let in_place = || flat(own)?.slice_set(&flat(&other.contiguous()?)?, 0, 0);
            in_place().fx()?;
            written(own);
            return Ok(());
        }
        *self = self.with_data(other);
        Ok(())
    }
}
