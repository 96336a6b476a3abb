//! `functional_call`, which takes symbolic tensors too: parameters become arguments.

use fx_core::module::Module;
use fx_core::trace::{FromValue, IntoArgs};
use fx_core::value::{IntoValue, Value};
use fx_core::{Result, graph_module};

use crate::tensor::Tensor;

/// Calls a module with some of its parameters and buffers replaced, by path, for this call alone:
/// `torch.func.functional_call`. In a function that is transformed the tensors are arguments of it:
///
/// ```
/// use fx_nn::func::{Transform, functional_call, grad, vmap};
/// use fx_nn::module::ComponentExt;
/// use fx_nn::prelude::*;
/// use fx_nn::IndexMap;
///
/// let net = nn::Linear::new(3, 1)?;
/// let own = net.clone();
/// let loss = traced!(move |p: IndexMap<String, Tensor>, x: &Tensor| {
///     functional_call::<Tensor>(&own, &p, x)?.square()?.sum(..)
/// });
/// // The parameters are the same for all examples.
/// let per_example = vmap(&grad(loss)).in_axes([None, Some(0)]);
/// let slopes: IndexMap<String, Tensor> =
///     per_example.call((net.named_parameters(), &Tensor::ones((5, 3))?))?;
/// assert_eq!(slopes["weight"].dims()?, [5, 1, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// Else it is [`fx_core::graph_module::functional_call`].
///
/// # Errors
/// Returns an error if the module has no tensor at a path, the given one is of another tensor type,
/// two different ones are for one tensor, or as the call.
pub fn functional_call<R: FromValue>(
    module: &(impl Module + ?Sized),
    tensors: impl IntoIterator<Item = (impl AsRef<str>, impl IntoValue)>,
    args: impl IntoArgs,
) -> Result<R> {
    let tensors = tensors.into_iter().map(|(path, value)| {
        let value = match value.into_value() {
            Value::Proxy(proxy) => Value::object(Tensor::from(proxy)),
            other => other,
        };
        (path, value)
    });
    graph_module::functional_call(module, tensors, args)
}
