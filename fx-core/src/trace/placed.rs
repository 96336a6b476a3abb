//! `placed`: the source location and the modules of the nodes that are recorded while a closure runs.
//!
//! Invariant: the place is that of the innermost trace, and ends with its scope, also on unwinding.

use std::rc::Rc;
use std::sync::Arc;

use super::scope::{Active, innermost};
use crate::ir::places::ScopeId;
use crate::location::SourceLocation;

/// Runs `body`; every node that is recorded meanwhile has this source location, and is inside of
/// these modules, each with its path and the name of its type, from the outside in. For who records
/// a program that is not Rust, such as a file of another format. Behind a path, `@1` says that the module was
/// called once before.
///
/// Outside of a trace only `body` runs.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::SourceLocation;
/// use fx_core::trace::placed;
/// let gm = symbolic_trace(traced!(|x: Float| {
///     let line = SourceLocation::new("model.txt", 7, 1);
///     placed(line, &[("block", "Block"), ("block.act", "Act")], || x * 2.0)
/// }))?;
/// let mul = gm.graph().find_name("mul").ok_or_else(|| Error::msg("it is recorded"))?;
/// assert_eq!(mul.location().map(ToString::to_string).as_deref(), Some("model.txt:7:1"));
/// assert_eq!(mul.module_stack().next().map(|scope| &*scope.path), Some("block.act"));
/// # Ok::<(), Error>(())
/// ```
pub fn placed<R>(
    location: SourceLocation,
    modules: &[(&str, &str)],
    body: impl FnOnce() -> R,
) -> R {
    let _place = innermost().map(|active| Place::enter(active, location, modules));
    body()
}

/// A path without the number of earlier calls behind it, and that number.
fn numbered(path: &str) -> (&str, u32) {
    let numbered = path.rsplit_once('@');
    let call = numbered.and_then(|(path, call)| Some((path, call.parse().ok()?)));
    call.unwrap_or((path, 0))
}

/// The former place, which comes back when this is dropped.
struct Place {
    active: Rc<Active>,
    origin: Option<SourceLocation>,
    scope: Option<ScopeId>,
}

impl Place {
    fn enter(active: Rc<Active>, location: SourceLocation, modules: &[(&str, &str)]) -> Self {
        let context = &active.context;
        let origin = context.origin.replace(Some(location));
        let mut former = None;
        if let Ok(mut graph) = context.graph_mut() {
            for (path, type_name) in modules {
                let (path, call) = numbered(path);
                let entered = graph.enter_scope(Arc::from(path), type_name.to_string(), call);
                former.get_or_insert(entered);
            }
        }
        Place {
            origin,
            scope: former,
            active,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let context = &self.active.context;
        context.origin.replace(self.origin.take());
        if let (Some(scope), Ok(mut graph)) = (self.scope, context.graph_mut()) {
            graph.leave_scope(scope);
        }
    }
}
