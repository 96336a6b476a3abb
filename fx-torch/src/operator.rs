//! `Operator`: which operator of PyTorch a function is, as any crate says it for its own.
//!
//! Invariant: an operator is one function.

use std::sync::OnceLock;

use fx_nn::ir::{Function, FunctionTable};
use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

/// Which operator of PyTorch a function is: an entry of a [`FunctionTable`], registered by any crate. A file that calls the
/// operator is read as a graph that calls the function.
///
/// Arguments are given by name. What stands here comes before what fx knows of the operator itself.
///
/// ```
/// use fx_nn::function_table;
/// use fx_nn::prelude::*;
/// use fx_torch::Operator;
///
/// #[wrap]
/// fn gated(x: &Tensor, by: f64) -> Result<Tensor> {
///     x * ops::sigmoid(&(x * by)?)?
/// }
///
/// // torch.library.custom_op("shop::gated")
/// function_table! { Operator {
///     function!(gated) => Operator::named("shop.gated").renamed("scale", "by"),
/// } }
///
/// assert!(fx_torch::operators().contains(&"shop.gated"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    name: &'static str,
    renamed: Vec<(&'static str, &'static str)>,
}

impl Operator {
    /// An operator by its name, as `shop.gated`; with an overload, as `shop.gated.out`, where that alone is the function.
    pub fn named(name: &'static str) -> Self {
        Operator {
            name,
            renamed: Vec::new(),
        }
    }

    /// Says that an argument of the operator is a parameter of the function with another name.
    #[must_use]
    pub fn renamed(mut self, argument: &'static str, parameter: &'static str) -> Self {
        self.renamed.push((argument, parameter));
        self
    }

    /// The names of arguments, each with the parameter's.
    pub(crate) fn names(&self) -> &[(&'static str, &'static str)] {
        &self.renamed
    }
}

/// The functions of a process, by the operators that they are.
type Registered = FxHashMap<&'static str, (Function, &'static Operator)>;

/// The functions that linked crates have registered, by operator.
///
/// # Errors
/// Returns an error if two functions are one operator.
pub(crate) fn registered() -> Result<&'static Registered> {
    static REGISTERED: OnceLock<Registered> = OnceLock::new();
    if let Some(all) = REGISTERED.get() {
        return Ok(all);
    }
    let mut all = Registered::default();
    for (function, operator) in FunctionTable::<Operator>::registered()?.iter() {
        if let Some((other, _)) = all.insert(operator.name, (function, operator)) {
            return Err(Error::msg(format_args!(
                "`{}` and `{}` are both registered for the operator `{}`: remove one of them",
                other.path(),
                function.path(),
                operator.name
            )));
        }
    }
    Ok(REGISTERED.get_or_init(|| all))
}
