//! Multiply-adds: how many multiplications with an addition a function call takes, in a table that
//! any crate can extend.

use std::borrow::Cow;

use fx_core::Result;
use fx_core::ir::{Function, ValueMeta};
use fx_core::trace::CallArgs;
use fx_core::value::{Dim, Value};

/// How many multiplications with an addition a function call takes: an entry of a
/// [`FunctionTable`](fx_core::ir::FunctionTable). [`summary`](crate::summary) and
/// [`counts`](crate::passes::counts) count functions without an entry as 0.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::{MultiplyAdds, function_table, summary};
/// /// A product with itself.
/// #[wrap]
/// fn gram(x: &Tensor) -> Result<Tensor> {
///     x.matmul(&x.t()?)
/// }
/// function_table! { MultiplyAdds {
///     function!(gram) => MultiplyAdds(|call| {
///         let columns = call.shape("x").last().cloned().unwrap_or(1.into());
///         call.numel()? * columns
///     }),
/// } }
///
/// #[derive(Module)]
/// struct Gram { tag: Tag }
/// #[trace]
/// impl Gram {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> { gram(x) }
/// }
/// let counted = summary(&Gram { tag: Tag::default() }, &Tensor::rand((3, 5))?)?;
/// assert_eq!(counted.modules[0].multiply_adds, 3 * 3 * 5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MultiplyAdds(pub fn(&CountedCall<'_>) -> Result<Dim>);

/// A counted call: its arguments and its result.
#[derive(Debug)]
pub struct CountedCall<'c> {
    function: Function,
    args: &'c CallArgs,
    output: &'c ValueMeta,
}

impl<'c> CountedCall<'c> {
    pub(crate) fn new(function: Function, args: &'c CallArgs, output: &'c ValueMeta) -> Self {
        CountedCall {
            function,
            args,
            output,
        }
    }

    /// The argument of a parameter, if it is given.
    pub fn value(&self, param: &str) -> Option<&'c Value> {
        self.args.argument(self.function.params(), param)
    }

    /// The shape of a tensor argument; that of an empty tensor if there is none.
    pub fn shape(&self, param: &str) -> Vec<Dim> {
        dims_of(self.value(param).unwrap_or(&Value::None))
    }

    /// The result of the call.
    pub fn output(&self) -> &'c ValueMeta {
        self.output
    }

    /// The number of elements of the call's result.
    ///
    /// # Errors
    /// Returns an error if it does not fit an `i64`.
    pub fn numel(&self) -> Result<Dim> {
        match self.output.tensor() {
            Some(tensor) => Dim::product(&tensor.shape),
            None => Ok(Dim::known(0)),
        }
    }
}

/// The sizes of a tensor, which may have names.
pub(crate) fn dims_of(value: &Value) -> Vec<Dim> {
    let dims = value.as_object().and_then(|object| object.dims());
    dims.map_or_else(|| vec![Dim::known(0)], Cow::into_owned)
}
