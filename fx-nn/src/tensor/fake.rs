//! Tensors without data: made by their spec, or as the parameters of a model that is too large to
//! be there.

use std::cell::Cell;

use fx_core::shapes::Spec;
use fx_core::tensor::known_dims;
use fx_core::trace::FromValue;
use fx_core::value::{DType, Dim, Int};
use fx_core::{Error, Result};

use super::{FakeTensor, Repr, Tensor};
use crate::scope;

thread_local! {
    /// How many scopes of fake parameters the thread is in.
    static FAKED: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body`, in which new layers have parameters without data, as do random tensors: a model of
/// any size takes no memory. It can be traced, counted and planned, and runs on fake tensors;
/// [`materialise`](crate::weights::Materialise::materialise) loads it.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// let layer = nn::fake(|| nn::Linear::new(1 << 20, 1 << 20))?;
/// assert_eq!(layer.weight.numel()?.concrete(), Some(1 << 40));
/// let y = layer.forward(&Tensor::fake(spec!["batch", 1 << 20; F32])?)?;
/// assert_eq!(format!("{y:?}"), "Tensor fake float32[batch, 1048576]");
/// # Ok::<(), fx_nn::Error>(())
/// ```
pub fn fake<R>(body: impl FnOnce() -> R) -> R {
    scope::within(&FAKED, body)
}

/// A new tensor of a shape, if the thread is in a scope of fakes.
pub(crate) fn faked(shape: &[usize], dtype: DType) -> Option<Tensor> {
    let is_faked = FAKED.get() > 0;
    is_faked.then(|| Tensor::of_fake(FakeTensor::new(sizes(shape), Some(dtype), None)))
}

fn sizes(shape: &[usize]) -> Vec<Dim> {
    shape.iter().copied().map(Dim::known).collect()
}

impl Tensor {
    /// A tensor of a shape and a type, without data: every operation works on it, and gives what
    /// its shape rule says. A size may have a name.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_nn::shapes::spec;
    /// let x = Tensor::fake(spec!["n", 3; F32])?;
    /// let y = x.matmul(&Tensor::fake(spec![3, 4; F32])?)?.relu()?;
    /// assert_eq!(format!("{y:?}"), "Tensor fake float32[n, 4]");
    /// let wrong = x.matmul(&Tensor::fake(spec![5, 4; F32])?).unwrap_err().to_string();
    /// assert!(wrong.contains("the shapes [n, 3] and [5, 4] do not fit: 3 and 5 differ"), "{wrong}");
    /// assert!(y.to_vec().unwrap_err().to_string().contains("has no data"));
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the spec is not of a tensor.
    pub fn fake(spec: Spec) -> Result<Tensor> {
        Tensor::from_value(spec.fake_value()?)
    }

    pub(crate) fn of_fake(fake: FakeTensor) -> Self {
        Tensor(Repr::Fake(fake))
    }

    /// The tensor without data that this is.
    pub(crate) fn as_fake(&self) -> Option<&FakeTensor> {
        match &self.0 {
            Repr::Fake(fake) => Some(fake),
            _ => None,
        }
    }

    /// A leaf of the gradient graph, if this tensor or the thread is fake.
    pub(super) fn fake_parameter(&self) -> Result<Option<Tensor>> {
        let fake = match self.as_fake() {
            Some(fake) => fake.clone(),
            None if FAKED.get() > 0 => {
                FakeTensor::new(sizes(self.dims()?), Some(self.dtype()?), None)
            }
            None => return Ok(None),
        };
        Ok(Some(Tensor::of_fake(fake.with_grad(true))))
    }

    /// How many dims there are, unless it is symbolic and its trace does not know.
    pub(crate) fn known_rank(&self) -> Option<usize> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => Some(data.rank()),
            Repr::Fake(fake) => Some(fake.dims().len()),
            Repr::Proxy(proxy) => known_dims(*proxy).map(|dims| dims.len()),
        }
    }

    /// Takes the elements of another tensor, in this one's type.
    pub(super) fn materialised(fake: &FakeTensor, source: &Tensor) -> Result<Tensor> {
        if fake.shape() != Some(source.dims()?) {
            return Err(Error::msg(format_args!(
                "the fake tensor {fake:?} cannot take data of shape {:?}",
                source.dims()?
            )));
        }
        let data = match fake.dtype() {
            Some(dtype) => source.cast(dtype)?,
            None => source.clone(),
        };
        match fake.requires_grad() {
            true => data.into_parameter(),
            false => data.detach(),
        }
    }
}

/// A size as a number of the program.
pub(crate) fn int_of(dim: &Dim) -> Result<Int> {
    Int::from_value(Spec::int(dim).fake_value()?)
}
