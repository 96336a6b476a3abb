//! A tensor as fx-core sees it: an object of graphs, a traced value, and a part of modules.
//!
//! Invariant: what is asked of an object is answered by the tensor as it is; only `operator` and
//! `apply` compute.

use std::borrow::Cow;

use fx_core::tensor::{FakeTensor, Object, OperandRef, TensorData, Traced};
use fx_core::value::{DType, Device, Dim, Operator, Proxy, Value};
use fx_core::{Error, Result};

use super::{Repr, Tensor, apply, saved};

/// The number inside candle's opaque tensor id.
fn id_number(id: candle_core::TensorId) -> u64 {
    use std::hash::{Hash, Hasher};
    struct Identity(u64);
    impl Hasher for Identity {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 << 8) | u64::from(*byte);
            }
        }
        fn write_usize(&mut self, n: usize) {
            self.0 = n as u64;
        }
    }
    let mut hasher = Identity(0);
    id.hash(&mut hasher);
    hasher.finish()
}

impl Object for Tensor {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn detached(&self) -> Value {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => {
                Value::object(self.with_data(data.detach()))
            }
            Repr::Proxy(_) | Repr::Fake(_) => Object::to_value(self),
        }
    }

    fn object_id(&self) -> Option<u64> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => {
                Some(id_number(data.id()))
            }
            Repr::Fake(fake) => Some(fake.id()),
            Repr::Proxy(_) => None,
        }
    }

    fn shape(&self) -> Option<&[usize]> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => Some(data.dims()),
            Repr::Fake(fake) => fake.shape(),
            Repr::Proxy(_) => None,
        }
    }

    fn dims(&self) -> Option<Cow<'_, [Dim]>> {
        match self.as_fake() {
            Some(fake) => Some(Cow::Borrowed(fake.dims())),
            None => Some(
                Object::shape(self)?
                    .iter()
                    .copied()
                    .map(Dim::known)
                    .collect(),
            ),
        }
    }

    fn is_fake(&self) -> bool {
        self.as_fake().is_some()
    }

    fn strides(&self) -> Option<Vec<Dim>> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => {
                Some(data.stride().iter().copied().map(Dim::known).collect())
            }
            Repr::Proxy(_) | Repr::Fake(_) => None,
        }
    }

    fn requires_grad(&self) -> Option<bool> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => Some(data.track_op()),
            Repr::Fake(fake) => Some(fake.requires_grad()),
            Repr::Proxy(_) => None,
        }
    }

    fn device(&self) -> Option<Device> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => {
                crate::device::of(data)
            }
            Repr::Fake(fake) => fake.device(),
            Repr::Proxy(_) => None,
        }
    }

    fn dtype(&self) -> Option<DType> {
        Tensor::dtype(self).ok()
    }

    fn to_data(&self) -> Result<TensorData<'_>> {
        saved::to_data(self)
    }

    #[inline]
    fn proxy(&self) -> Option<Proxy> {
        match &self.0 {
            Repr::Proxy(proxy) => Some(*proxy),
            _ => None,
        }
    }

    fn truth(&self) -> Result<bool> {
        self.item().map(|element| element != 0.0)
    }

    fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
        if let [a, b] = args
            && let Some(a) = a.downcast_ref::<Tensor>()
        {
            if op == Operator::Getitem {
                out.put_object(a.getitem(b)?);
                return Ok(());
            }
            if let Some(b) = b.downcast_ref::<Tensor>() {
                out.put_object(apply::both(op, a, b)?);
                return Ok(());
            }
        }
        let operand = |value| {
            OperandRef::of(value).ok_or_else(|| {
                Error::msg(format_args!(
                    "{} cannot be an operand of a tensor",
                    value.describe()
                ))
            })
        };
        let result = match args {
            [a] => apply::apply(op, &[operand(a)?]),
            [a, b] => apply::apply(op, &[operand(a)?, operand(b)?]),
            _ => Err(Error::msg(format_args!("`{op}` takes one or two operands"))),
        }?;
        out.put_object(result);
        Ok(())
    }
}

impl Traced for Tensor {
    fn from_proxy(proxy: Proxy) -> Self {
        proxy.into()
    }

    fn from_fake(fake: FakeTensor) -> Option<Self> {
        Some(Tensor::of_fake(fake))
    }

    #[inline(always)]
    fn has_no_data(&self) -> bool {
        matches!(self.0, Repr::Proxy(_) | Repr::Fake(_))
    }

    #[inline]
    fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Self> {
        apply::apply(op, operands)
    }

    #[inline(always)]
    fn apply_pair(op: Operator, lhs: &Self, rhs: &Self) -> Result<Self> {
        apply::both(op, lhs, rhs)
    }
}

fx_core::tensor::tensor_type!(Tensor);

impl fx_core::module::Component for Tensor {
    fn visit(&self, walk: &mut fx_core::module::Walk<'_, '_>) {
        walk.tensor(self);
    }

    fn visit_mut(&mut self, walk: &mut fx_core::module::WalkMut<'_, '_>) {
        walk.tensor(self);
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn to_saved(&self, saver: &mut fx_core::file::Saver) -> Result<fx_core::file::Json> {
        saver.tensor(self)
    }

    fn from_saved(
        saved: &fx_core::file::Json,
        loader: &mut fx_core::file::Loader<'_>,
    ) -> Result<Self> {
        loader.tensor(saved)
    }
}
