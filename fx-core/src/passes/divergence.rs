//! `first_divergence`: the first node whose values differ between two modules.

use std::fmt;

use super::closeness::{Closeness, Difference, difference};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::run::interpreter::PlainInterpreter;
use crate::trace::call_args::IntoArgs;

/// The first node whose numbers differ between two modules: made by [`first_divergence`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Divergence {
    /// The node's name, in both.
    pub node: String,
    /// How far its values are apart, or why they cannot be compared.
    pub difference: std::result::Result<Closeness, String>,
    /// The user's source line of the node in the first module.
    pub location: Option<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.node)?;
        if let Some(location) = &self.location {
            write!(f, " ({location})")?;
        }
        match &self.difference {
            Ok(closeness) => write!(f, ": {closeness}"),
            Err(problem) => write!(f, ": {problem}"),
        }
    }
}

/// Runs two modules on one input and finds the first node, in the first module's order, whose
/// numbers differ from those of the node of the same name in the other; `None` if there is none.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::first_divergence;
/// let a = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let b = symbolic_trace(traced!(|x: Float| (x * 3.0)? + 1.0))?;
/// let part = first_divergence(&a, &b, 1.5, 0.0, 0.0)?;
/// assert_eq!(part.map(|part| part.node).as_deref(), Some("mul"));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns the error of either run.
pub fn first_divergence(
    a: &GraphModule,
    b: &GraphModule,
    args: impl IntoArgs,
    rtol: f64,
    atol: f64,
) -> Result<Option<Divergence>> {
    let call = args.into_args();
    let (mut first, mut second) = (
        a.interpretation().keep_values(),
        b.interpretation().keep_values(),
    );
    first.run(&mut PlainInterpreter, a.process_inputs(call.clone())?)?;
    second.run(&mut PlainInterpreter, b.process_inputs(call)?)?;
    for node in a.graph() {
        let name = node.name().to_string();
        let other = b.graph().find_name(&name);
        let other = other.and_then(|n| second.value(n.id()));
        let (Some(found), Some(expected)) = (first.value(node.id()), other) else {
            continue;
        };
        if let Some(difference) = difference(found, expected, rtol, atol) {
            return Ok(Some(Divergence {
                node: name,
                difference: match difference {
                    Difference::Numbers(closeness) => Ok(closeness),
                    Difference::Told(text) => Err(text),
                },
                location: node.location().map(|l| format!("{}:{}", l.file, l.line)),
            }));
        }
    }
    Ok(None)
}
