//! `Forward`: calling a module without knowing its type, as one calls a layer.

use std::panic::Location;

use super::call_args::{CallArgs, IntoArgs, bind_values};
use super::convert::FromValue;
use super::dispatch::call_module;
use super::scope;
use crate::error::Result;
use crate::module::module::Module;
use crate::value::value::Value;

/// `forward` on `dyn Module` and on generic modules.
///
/// ```
/// # use fx_core::prelude::*;
/// # use fx_core::module::Module;
/// fn chain(layers: &[Box<dyn Module>], x: Value) -> Result<Value> {
///     let mut h = x;
///     for layer in layers {
///         h = layer.forward(h)?;
///     }
///     Ok(h)
/// }
/// ```
///
/// It also calls a layer of known type by keywords; a type's own `forward` takes precedence, so
/// name the trait:
///
/// ```
/// # use fx_core::prelude::*;
/// # use fx_core::trace::Forward;
/// # #[derive(fx_core::Module, Default)] struct Scale { tag: fx_core::module::Tag }
/// #[trace(leaf)]
/// impl Scale {
///     fn forward(&self, x: Float, by: Float, #[default(0.0)] plus: f64) -> Result<Float> {
///         (x * by)? + plus
///     }
/// }
/// let layer = Scale::default();
/// assert_eq!(Forward::forward::<f64>(&layer, args![2.0, plus = 1.0, by = 3.0])?, 7.0);
/// # Ok::<(), Error>(())
/// ```
pub trait Forward: Module {
    /// Calls the module's `forward`. A tuple is the argument list, [`args!`](crate::args) adds
    /// keywords.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit, or the forward fails.
    #[track_caller]
    fn forward<R: FromValue>(&self, args: impl IntoArgs) -> Result<R> {
        let caller = Location::caller();
        R::from_value(called(self.as_module(), args.into_args(), caller)?)
    }
}

/// What a call gives. Not generic, so that other crates do not compile it again.
fn called(
    module: &dyn Module,
    args: CallArgs,
    caller: &'static Location<'static>,
) -> Result<Value> {
    let args = bind_values(module.type_name(), module.params(), args)?;
    if scope::may_record() {
        return call_module(module, args, caller);
    }
    let lent: Vec<&Value> = args.iter().collect();
    let mut out = Value::None;
    crate::stack::level(|| module.run(&lent, &mut out))?;
    Ok(out)
}

impl<M: Module + ?Sized> Forward for M {}
