//! Normal forms of calls: arguments in the form of the signature, methods as functions.
//!
//! Invariant: the computation, the names, the users and the meta stay.

use std::sync::Arc;

use super::pass::Pass;
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::bound::default_of;
use crate::ir::graph::Graph;
use crate::ir::method::Functions;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::ParamKind;
use crate::module::attributes::Attributes;
use crate::module::call::Call;
use crate::value::handle::NodeId;

/// Brings the arguments of every call of a known signature into one form.
///
/// [`canonical`](NormalizeArguments::canonical) is what a trace records: by position where the
/// signature has positions, by name where it has names, and without arguments that equal their
/// defaults. [`by_name`](NormalizeArguments::by_name) is all arguments by name, defaults filled in:
/// torch.fx's `NormalizeArgs`.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::Graph;
/// use fx_core::operator;
/// use fx_core::module::Attributes;
/// use fx_core::passes::NormalizeArguments;
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x")?;
/// let y = graph.call_function(operator::add, (x,), [("b", 1)])?;
/// graph.output(y)?;
/// let mut gm = GraphModule::new(Attributes::default(), graph, "Sum")?;
///
/// assert!(gm.apply(&NormalizeArguments::by_name())?.changed);
/// assert_eq!(gm.graph().node(y)?.kwargs().len(), 2);
/// gm.apply(&NormalizeArguments::canonical())?;
/// assert_eq!(gm.graph().node(y)?.args().len(), 2);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NormalizeArguments {
    by_name: bool,
}

impl NormalizeArguments {
    /// As a trace records them.
    pub fn canonical() -> Self {
        NormalizeArguments { by_name: false }
    }

    /// All by name, defaults filled in.
    pub fn by_name() -> Self {
        NormalizeArguments { by_name: true }
    }

    fn arguments(self, call: &Call<'_>) -> Result<(Args, Kwargs)> {
        let mut args = Args::new();
        let mut kwargs = Kwargs::new();
        // After a positional default that is left out, arguments have names.
        let mut named = self.by_name;
        let is_method = matches!(call.node().op(), Op::CallMethod(_));
        for (at, (param, given)) in call.bind()?.places().enumerate() {
            let argument = match given {
                Some(argument) => argument.clone(),
                None => default_of(param),
            };
            let default = param.default.as_ref();
            let is_default = default.is_some_and(|default| argument.equals_literal(default));
            if is_method && at == 0 {
                // The receiver of a method is its first argument.
                args.push(argument);
            } else if is_default && !self.by_name {
                named = true;
            } else if named || param.kind == ParamKind::Keyword {
                kwargs.push((Arc::from(&*param.name), argument));
            } else {
                args.push(argument);
            }
        }
        Ok((args, kwargs))
    }

    fn set(self, graph: &mut Graph, id: NodeId, attributes: &Attributes) -> Result<bool> {
        let node = graph.node(id)?;
        let call = Call::of(node, attributes);
        if call.params().is_none() {
            return Ok(false);
        }
        let (args, kwargs) = self.arguments(&call)?;
        if is_same(node, &args, &kwargs) {
            return Ok(false);
        }
        graph.node_mut(id)?.write_inputs(args, kwargs)?;
        Ok(true)
    }
}

fn is_same(node: NodeRef<'_>, args: &[Argument], kwargs: &[(Arc<str>, Argument)]) -> bool {
    node.args() == args && node.kwargs() == kwargs
}

impl Pass for NormalizeArguments {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut edit = gm.graph_mut();
        let (graph, attributes) = edit.parts();
        let mut changed = false;
        let mut cursor = graph.cursor();
        while let Some(id) = cursor.advance() {
            changed |= self.set(&mut cursor, id, attributes)?;
        }
        Ok(changed)
    }
}

/// Turns calls of methods into calls of functions, if only one type has a method of that name:
/// torch.fx's `NormalizeOperators` for methods.
///
/// With tensors, `x.relu()` becomes `relu(&x)`; a method that no type, or more than one, has stays
/// as it is.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::MethodsToFunctions;
/// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
/// assert!(!gm.apply(&MethodsToFunctions)?.changed); // numbers have operators only
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MethodsToFunctions;

impl Pass for MethodsToFunctions {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let mut graph = gm.graph_mut();
        let mut changed = false;
        let mut cursor = graph.cursor();
        while let Some(id) = cursor.advance() {
            let node = cursor.node(id)?;
            if let (Op::CallMethod(_), Functions::One(function)) = (node.op(), node.functions()) {
                cursor.node_mut(id)?.write_op(Op::CallFunction(function))?;
                changed = true;
            }
        }
        Ok(changed)
    }
}
