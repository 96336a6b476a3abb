//! Reading sizes: of traced tensors as symbolic numbers, of parameters as known ones.

use crate::op;
use fx_core::ir::ValueMeta;
use fx_core::shapes::ShapeRule;
use fx_core::trace::{FromValue, List};
use fx_core::value::{Dim, Int, IntoValue, Value};
use fx_core::{Error, Result, function, function_table};

use crate::error::{Fx, require};
use crate::kernels;
use crate::tensor::Tensor;
use crate::tensor::fake::int_of;

/// The size of a dim.
///
/// # Errors
/// Returns an error if there is no such dim.
#[op(member, flat = "gives a number", path = "fx_nn::ops::size")]
pub fn size(x: &Tensor, dim: i64) -> Result<Int> {
    let data = x.elements("size")?;
    require("size", data.rank() != 0)?;
    let at = kernels::dim::dim("size", dim, data.rank()).fx()?;
    Ok(data.dims()[at].into())
}

/// The method: with a dim its size, without one all sizes.
pub(crate) mod size_of {
    use fx_core::ir::{Argument, Written, WrittenArg};

    use super::{FromValue, Int, IntoValue, List, Result, Tensor, Value, op};

    fn written(args: &[Argument]) -> Option<Written> {
        Some(match args.get(1)? {
            Argument::None => Written::new("sizes", []).with_result(<List<Int> as FromValue>::TYPE),
            Argument::Int(_) => {
                Written::new("size", [WrittenArg::Of(1)]).with_result(<Int as FromValue>::TYPE)
            }
            _ => return None,
        })
    }

    #[op(member, method = custom, path = "fx_nn::Tensor::size", written = written)]
    pub fn size(x: &Tensor, dim: Option<i64>) -> Result<Value> {
        match dim {
            Some(dim) => super::size(x, dim).map(Int::into_value),
            None => Ok(x.dims()?.to_vec().into_value()),
        }
    }
}

#[op(member, method = custom, path = "fx_nn::Tensor::dim")]
pub(crate) fn dim(x: &Tensor) -> Result<Int> {
    Ok(x.dims()?.len().into())
}

#[op(member, method = custom, path = "fx_nn::Tensor::numel")]
pub(crate) fn numel(x: &Tensor) -> Result<Int> {
    Ok(x.dims()?.iter().product::<usize>().into())
}

function_table! { ShapeRule {
    function!(size_of::size) => ShapeRule(|call| {
        // One dim of a tensor whose number of dims a run decides is a number all the same.
        if call.is_unranked("x")? && !call.arg("dim")?.is_none() {
            return Ok(ValueMeta::Int(call.env().fresh(0, None)?));
        }
        let x = call.tensor("x")?;
        let Some(dim) = call.optional_int("dim")? else {
            return Ok(ValueMeta::List(x.shape.iter().cloned().map(ValueMeta::Int).collect()));
        };
        let size = x.shape.get(call.place(dim, x.shape.len())?).cloned();
        size.map(ValueMeta::Int).ok_or_else(|| Error::msg("size: the tensor has no dims"))
    }),
    function!(dim) => ShapeRule(|call| Ok(ValueMeta::Int(call.tensor("x")?.shape.len().into()))),
    function!(numel) => ShapeRule(|call| Ok(ValueMeta::Int(Dim::product(&call.tensor("x")?.shape)?))),
} }

impl Tensor {
    /// All sizes; a traced tensor's are symbolic, a parameter's are known.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let f = traced!(|x: &Tensor| x.view((x.shape()?.get(0)?, -1))? * x.ndim()?);
    /// let gm = symbolic_trace(f)?;
    /// let y: Tensor = gm.forward(&Tensor::ones((2, 3, 4))?)?;
    /// assert_eq!(y.dims()?, [2, 12]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn shape(&self) -> Result<List<Int>> {
        match fx_core::tensor::Object::proxy(self) {
            Some(proxy) => proxy.attr_as("shape"),
            None => Ok(self.known_sizes()?.into_iter().collect()),
        }
    }

    /// The size of a tensor of one dim, known or symbolic.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let swapped = traced!(|x: &Tensor| {
    ///     let (height, width) = x.dims2()?;
    ///     x.reshape((width, height))
    /// });
    /// let y: Tensor = symbolic_trace(swapped)?.forward(&Tensor::ones((2, 3))?)?;
    /// assert_eq!(y.dims()?, [3, 2]);
    /// assert!(y.dims1().is_err());
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the tensor has a different number of dims. That of a traced tensor is
    /// not known: the graph takes the first ones.
    #[track_caller]
    pub fn dims1(&self) -> Result<Int> {
        let [size] = self.sizes_of_rank("dims1")?;
        Ok(size)
    }

    /// As many sizes as a method asks for.
    #[track_caller]
    fn sizes_of_rank<const N: usize>(&self, method: &str) -> Result<[Int; N]> {
        if let Some(rank) = self.known_rank()
            && rank != N
        {
            return Err(Error::msg(format_args!(
                "{method}: the tensor has {rank} dims, of shape {:?}: use `dims{rank}`, or `shape()?`",
                fx_core::tensor::Object::dims(self).unwrap_or_default()
            )));
        }
        self.shape()?.unpack()
    }

    /// All sizes, by PyTorch's method `size()`.
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn sizes(&self) -> Result<List<Int>> {
        match fx_core::tensor::Object::proxy(self) {
            Some(_) => List::from_value(size_of::size::method(self, None)?),
            None => self.shape(),
        }
    }

    /// How many dims there are.
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn ndim(&self) -> Result<Int> {
        match fx_core::tensor::Object::proxy(self) {
            Some(proxy) => proxy.attr_as("ndim"),
            None => Ok(self.known_sizes()?.len().into()),
        }
    }

    /// How many dims there are, by PyTorch's other name.
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn dim(&self) -> Result<Int> {
        match fx_core::tensor::Object::proxy(self) {
            Some(_) => dim::method(self),
            None => self.ndim(),
        }
    }

    /// The size of a dim; a parameter's is known while tracing.
    ///
    /// # Errors
    /// Returns an error if there is no such dim.
    #[track_caller]
    pub fn size(&self, dim: i64) -> Result<Int> {
        if fx_core::tensor::Object::proxy(self).is_some() {
            return Int::from_value(size_of::size::method(self, Some(dim))?);
        }
        let sizes = self.known_sizes()?;
        let at = kernels::dim::dim("size", dim, sizes.len()).fx()?;
        sizes
            .get(at)
            .copied()
            .ok_or_else(|| Error::msg("size: a tensor without dims has no sizes"))
    }

    /// How many elements there are; a parameter's count is known while tracing.
    ///
    /// # Errors
    /// Returns an error if its trace is not running here.
    #[track_caller]
    pub fn numel(&self) -> Result<Int> {
        match fx_core::tensor::Object::proxy(self) {
            Some(_) => numel::method(self),
            None => self
                .known_sizes()?
                .into_iter()
                .try_fold(Int::from(1), |product, size| product * size),
        }
    }

    /// The sizes of a known tensor; a trace's report says which ones it read.
    fn known_sizes(&self) -> Result<Vec<Int>> {
        fx_core::tensor::report_shape(self);
        match self.as_fake() {
            Some(fake) => fake.dims().iter().map(int_of).collect(),
            None => Ok(self
                .elements("shape")?
                .dims()
                .iter()
                .copied()
                .map(Int::from)
                .collect()),
        }
    }
}

macro_rules! dims {
    ($($name:ident $count:literal ($($size:ident $type:ident),+);)*) => {$(
        impl Tensor {
            #[doc = concat!("The sizes of a tensor of ", $count, " dims, known or symbolic.")]
            ///
            /// # Errors
            /// Returns the errors of [`dims1`](Tensor::dims1).
            #[track_caller]
            pub fn $name(&self) -> Result<($($type),+)> {
                let [$($size),+] = self.sizes_of_rank(stringify!($name))?;
                Ok(($($size),+))
            }
        }
    )*};
}

dims! {
    dims2 2 (a Int, b Int);
    dims3 3 (a Int, b Int, c Int);
    dims4 4 (a Int, b Int, c Int, d Int);
    dims5 5 (a Int, b Int, c Int, d Int, e Int);
}
