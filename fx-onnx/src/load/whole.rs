//! `Whole`: a whole number that a rule computes with, whether it is known, a size, or only a run's.
//!
//! Invariant: what is known or a size stays one for as long as sizes have the arithmetic; else it is computed when the
//! graph runs, and never asked for while it is recorded.

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::{Dim, IntoValue};
use fx_nn::{Bound, Result};

use super::value::{V, as_type, int_of, of_ints};

/// A whole number.
#[derive(Debug, Clone)]
pub(super) enum Whole {
    /// A number or a size.
    Size(Int),
    /// A tensor without dims that a run computes.
    Run(Tensor),
}

impl From<Int> for Whole {
    fn from(size: Int) -> Self {
        Whole::Size(size)
    }
}

impl From<i64> for Whole {
    fn from(number: i64) -> Self {
        Whole::Size(number.into())
    }
}

impl Whole {
    /// The number, if it is known.
    pub fn known(&self) -> Option<i64> {
        match self {
            Whole::Size(size) => size.concrete(),
            Whole::Run(_) => None,
        }
    }

    /// What is known of a size.
    pub fn dim(&self) -> Option<Dim> {
        let Whole::Size(size) = self else {
            return None;
        };
        match size.into_value() {
            Value::Int(number) => Some(Dim::from(number)),
            Value::Proxy(proxy) => match proxy.meta().ok().flatten()? {
                ValueMeta::Int(dim) => Some(dim),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is a size that is below 0 where the sizes are large that it is computed of.
    pub fn falls(&self) -> bool {
        let dim = self.dim().filter(|dim| dim.as_number().is_none());
        dim.is_some_and(|dim| dim.eval(|_| Some(1 << 30)).is_ok_and(|n| n < 0))
    }

    /// As a tensor without dims.
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Whole::Size(size) => of_ints(&[*size], true),
            Whole::Run(tensor) => Ok(tensor.clone()),
        }
    }

    /// As a size of a tensor, or a place in one.
    pub fn int(&self) -> Result<Int> {
        match self {
            Whole::Size(size) => Ok(*size),
            Whole::Run(tensor) => int_of(tensor),
        }
    }

    fn with(
        &self,
        other: &Whole,
        on_sizes: impl FnOnce(Int, Int) -> Result<Int>,
        compute: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Whole> {
        Ok(match (self, other) {
            (Whole::Size(a), Whole::Size(b)) => Whole::Size(on_sizes(*a, *b)?),
            (a, b) => Whole::Run(compute(&a.tensor()?, &b.tensor()?)?),
        })
    }

    pub fn plus(&self, other: impl Into<Whole>) -> Result<Whole> {
        let other = other.into();
        match (self.known(), other.known()) {
            (Some(0), _) => Ok(other),
            (_, Some(0)) => Ok(self.clone()),
            _ => self.with(&other, |a, b| a + b, |a, b| a + b),
        }
    }

    pub fn minus(&self, other: impl Into<Whole>) -> Result<Whole> {
        let other = other.into();
        match other.known() {
            Some(0) => Ok(self.clone()),
            _ => self.with(&other, |a, b| a - b, |a, b| a - b),
        }
    }

    pub fn times(&self, other: impl Into<Whole>) -> Result<Whole> {
        let other = other.into();
        match (self.known(), other.known()) {
            (Some(1), _) => Ok(other),
            (_, Some(1)) => Ok(self.clone()),
            _ => self.with(&other, |a, b| a * b, |a, b| a * b),
        }
    }

    /// The quotient, rounded down.
    pub fn over(&self, other: impl Into<Whole>) -> Result<Whole> {
        let other = other.into();
        match other.known() {
            Some(1) => Ok(self.clone()),
            _ => self.with(&other, |a, b| a.floordiv(b), |a, b| ops::floor_divide(a, b)),
        }
    }

    /// The quotient, rounded up.
    pub fn steps(&self, other: impl Into<Whole>) -> Result<Whole> {
        let none = Whole::from(0);
        none.minus(none.minus(self.clone())?.over(other)?)
    }

    /// The larger one.
    pub fn at_least(&self, other: impl Into<Whole>) -> Result<Whole> {
        let other = other.into();
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => Ok(a.max(b).into()),
            (None, Some(low)) => Ok(Whole::Run(ops::clamp(&self.tensor()?, low, none())?)),
            _ => Ok(Whole::Run(ops::maximum(&self.tensor()?, &other.tensor()?)?)),
        }
    }

    /// The smaller one.
    pub fn at_most(&self, other: impl Into<Whole>) -> Result<Whole> {
        let other = other.into();
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => Ok(a.min(b).into()),
            (None, Some(high)) => Ok(Whole::Run(ops::clamp(&self.tensor()?, none(), high)?)),
            _ => Ok(Whole::Run(ops::minimum(&self.tensor()?, &other.tensor()?)?)),
        }
    }

    /// `then` if this is below 0, else `otherwise`.
    pub fn if_negative(&self, then: Whole, otherwise: Whole) -> Result<Whole> {
        match self.known() {
            Some(number) if number < 0 => Ok(then),
            Some(_) => Ok(otherwise),
            None => {
                let is = self.tensor()?.lt(0)?;
                let (then, otherwise) = (then.tensor()?, otherwise.tensor()?);
                Ok(Whole::Run(ops::r#where(&is, &then, &otherwise)?))
            }
        }
    }

    /// `then` if this is 0, else `otherwise`.
    pub fn if_zero(&self, then: Whole, otherwise: Whole) -> Result<Whole> {
        match self.known() {
            Some(0) => Ok(then),
            Some(_) => Ok(otherwise),
            None => {
                let is = self.tensor()?.eq(0)?;
                let (then, otherwise) = (then.tensor()?, otherwise.tensor()?);
                Ok(Whole::Run(ops::r#where(&is, &then, &otherwise)?))
            }
        }
    }

    /// A place that may be counted from the end of a dim, counted from its start.
    pub fn counted(&self, size: &Whole) -> Result<Whole> {
        match self.known() {
            Some(0..) => Ok(self.clone()),
            Some(_) => self.plus(size.clone()),
            None => self.if_negative(self.plus(size.clone())?, self.clone()),
        }
    }
}

/// The numbers of a tensor of a known shape.
pub(super) fn of_run(tensor: &Tensor, shape: Option<&[usize]>) -> Result<Vec<Whole>> {
    let wide = as_type(tensor, DType::I64)?;
    match shape {
        Some([]) => Ok(vec![Whole::Run(wide)]),
        Some([count]) if *count <= 1024 => (0..*count as i64)
            .map(|at| Ok(Whole::Run(ops::select(&wide, 0, at)?)))
            .collect(),
        _ => Err(Error::msg(
            "numbers that only a run knows, and how many: give the input a shape with `Load::input`",
        )),
    }
}

fn none() -> Bound {
    Bound::from(None::<f64>)
}

impl V {
    /// As whole numbers, of which there are a known count.
    pub fn wholes(&self) -> Result<Vec<Whole>> {
        match self {
            V::Tensor(tensor, _) if tensor.proxy().is_some() => {
                let shape = self.meta().and_then(|meta| meta.known_shape());
                of_run(tensor, shape.as_deref())
            }
            other => Ok(other.ints()?.into_iter().map(Whole::Size).collect()),
        }
    }
}
