//! `Rule`: how calls of a function are written.

use std::fmt;
use std::sync::Arc;

use fx_nn::passes::DecomposedCall;
use fx_nn::prelude::*;

use super::call::OpCall;
use super::context::Cx;
use super::value::Val;

/// Writes a call.
type Emit = dyn Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync;

/// How calls of a function are written: an entry of a
/// [`FunctionTable`](fx_nn::ir::FunctionTable), registered by any crate.
///
/// ```
/// use fx_nn::function_table;
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::{Fake, ShapeRule};
/// use fx_onnx::{Export, OnnxExt, Rule};
///
/// #[wrap]
/// fn swish2(x: &Tensor) -> Result<Tensor> {
///     x * ops::sigmoid(&(x * 2.0)?)?
/// }
///
/// // Shapes are inferred before a file is written.
/// function_table! { ShapeRule {
///     function!(swish2) => ShapeRule(|call| Ok(Fake::tensor(call.tensor("x")?.clone()))),
/// } }
///
/// function_table! { Rule {
///     function!(swish2) => Rule::new(|cx, call| {
///         let x = call.tensor("x")?;
///         let y = cx.node("Swish2").domain("my.ops", 1).input(&x.name).output();
///         call.given(y)
///     }),
/// } }
///
/// let gm = symbolic_trace(traced!(|x: &Tensor| swish2(x)))?;
/// let (bytes, _) = gm.to_onnx_bytes(&Export::example(&Tensor::ones(3)?))?;
/// assert!(bytes.windows(6).any(|window| window == b"Swish2"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Rule(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    Emit(Arc<Emit>),
    As(fn(&DecomposedCall<'_>) -> Result<Value>),
    Refused(&'static str),
}

impl Rule {
    /// Writes calls as nodes.
    pub fn new(emit: impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync + 'static) -> Self {
        Rule(Kind::Emit(Arc::new(emit)))
    }

    /// Writes calls as what other functions give for their arguments.
    pub const fn decomposed(rule: fn(&DecomposedCall<'_>) -> Result<Value>) -> Self {
        Rule(Kind::As(rule))
    }

    /// Says why ONNX cannot have the function.
    pub const fn refused(reason: &'static str) -> Self {
        Rule(Kind::Refused(reason))
    }

    /// Why ONNX cannot have the function, if it cannot.
    pub fn reason(&self) -> Option<&'static str> {
        match self.0 {
            Kind::Refused(reason) => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Emit(_) => "Rule(nodes)",
            Kind::As(_) => "Rule(other functions)",
            Kind::Refused(reason) => reason,
        })
    }
}
