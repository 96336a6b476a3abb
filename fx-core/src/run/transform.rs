//! Runs a graph on symbolic values into a new graph: what `GraphModule::transform` does.

use super::interpreter::{Interpretation, Interpreter};
use crate::error::Result;
use crate::module::module::Module;
use crate::trace::context::TraceContext;
use crate::trace::root::{Outcome, retraced};
use crate::trace::tracer::Tracer;

/// Every module that the graph calls stays a call.
struct TransformTracer;

impl Tracer for TransformTracer {
    fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, _: &str) -> bool {
        true
    }
}

/// Runs a graph on symbolic values; `root` is the module that it belongs to.
///
/// # Errors
/// Returns the error of an override or of the recording.
pub(crate) fn transform(
    root: &dyn Module,
    run: Interpretation<'_>,
    interpreter: &mut dyn Interpreter,
) -> Result<Outcome> {
    retraced(TransformTracer, root, |context| {
        run.recording(context).run(interpreter, Vec::new())
    })
}
