//! What a node calls, and its arguments as the callee's signature has them: one form for calls that do the same.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ir::argument::Argument;
use crate::ir::function::Function;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::registry;
use crate::ir::signature::{Bound, ParamSpec};
use crate::module::attributes::Attributes;

/// What a call calls: a method that one type alone has is that type's function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Callee<'g> {
    Function(Function),
    Op(&'g Op),
}

impl<'g> Callee<'g> {
    pub fn of(node: NodeRef<'g>) -> Self {
        match node.op() {
            Op::CallFunction(function) => Callee::Function(*function),
            Op::CallMethod(name) => match registry::methods(name) {
                [function] => Callee::Function(*function),
                _ => Callee::Op(node.op()),
            },
            op => Callee::Op(op),
        }
    }

    /// The parameters, where they are known.
    pub fn params(self, attributes: &Attributes) -> Option<&[ParamSpec]> {
        match self {
            Callee::Function(function) => Some(function.params()),
            Callee::Op(Op::CallModule(path)) => {
                let module = attributes.modules.get(path);
                module.map(|module| module.params())
            }
            Callee::Op(_) => None,
        }
    }
}

/// A call's arguments in the order of the signature, defaults filled in; where there is no signature, as they are,
/// names with them.
pub(super) struct BoundCall<'g> {
    pub args: SmallVec<[Cow<'g, Argument>; 4]>,
    pub named: &'g [(Arc<str>, Argument)],
}

impl<'g> BoundCall<'g> {
    pub fn of(node: NodeRef<'g>, callee: Callee<'_>, attributes: &Attributes) -> Self {
        let plain = |named| BoundCall {
            args: node.args().iter().map(Cow::Borrowed).collect(),
            named,
        };
        let Some(params) = callee.params(attributes) else {
            return plain(node.kwargs());
        };
        if node.kwargs().is_empty() && node.args().len() == params.len() {
            return plain(&[]);
        }
        // Arguments that do not fit are told by lint.
        let Ok(bound) = node.bound(node.target(), params) else {
            return plain(node.kwargs());
        };
        let args = bound.into_iter().map(|bound| match bound {
            Bound::Given(argument) => Cow::Borrowed(argument),
            Bound::Default(literal) => Cow::Owned(literal.into()),
        });
        BoundCall {
            args: args.collect(),
            named: &[],
        }
    }
}
