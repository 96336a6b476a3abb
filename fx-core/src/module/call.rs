//! `Call`: what a node calls, with its parameters, the arguments bound to them, and its effects.
//!
//! Invariant: this is the one place where passes, patterns and emission learn what a call does.

use super::attributes::Attributes;
use super::module::Module;
use crate::error::{Error, Result};
use crate::ir::bound::BoundArgs;
use crate::ir::function::{Effects, Function};
use crate::ir::method::Functions;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::signature::ParamSpec;

/// What a node calls.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Callee<'g> {
    /// A function, or the method of the one type that it can be.
    Function(Function),
    /// A method of several linked types, in the order of their paths: the run decides by the receiver.
    Methods(Vec<Function>),
    /// A module.
    Module(&'g dyn Module),
    /// Nothing that is known: an input, an attribute, the output, a method that no linked type has, or a path without a
    /// module.
    None,
}

impl PartialEq for Callee<'_> {
    /// Modules are equal when they are one.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Callee::Function(a), Callee::Function(b)) => a == b,
            (Callee::Methods(a), Callee::Methods(b)) => a == b,
            (Callee::Module(a), Callee::Module(b)) => std::ptr::addr_eq(*a, *b),
            (Callee::None, Callee::None) => true,
            _ => false,
        }
    }
}

/// A node as a call: [`GraphModule::call`](crate::GraphModule::call).
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::{Callee, operator};
/// let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
/// let add = gm.graph().find_name("add").ok_or_else(|| Error::msg("it is recorded"))?;
/// let call = gm.call(add)?;
/// assert_eq!(call.function(), Some(operator::add));
/// assert!(call.effects().is_pure());
/// let names: Vec<String> = call.bind()?.iter().map(|(param, _)| param.name.to_string()).collect();
/// assert_eq!(names, ["a", "b"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Call<'g> {
    node: NodeRef<'g>,
    callee: Callee<'g>,
}

impl<'g> Call<'g> {
    /// The call of a node of a graph over attributes.
    pub fn of(node: NodeRef<'g>, attributes: &'g Attributes) -> Self {
        let callee = match node.op() {
            Op::CallModule(path) => match attributes.modules.get(path) {
                Some(module) => Callee::Module(&**module),
                None => Callee::None,
            },
            _ => match node.functions() {
                Functions::None => Callee::None,
                Functions::One(function) => Callee::Function(function),
                Functions::Several(several) => Callee::Methods(several),
            },
        };
        Call { node, callee }
    }

    /// The node.
    pub fn node(&self) -> NodeRef<'g> {
        self.node
    }

    /// What it calls.
    pub fn callee(&self) -> &Callee<'g> {
        &self.callee
    }

    /// The one function that it calls.
    pub fn function(&self) -> Option<Function> {
        match self.callee {
            Callee::Function(function) => Some(function),
            _ => None,
        }
    }

    /// The parameters of what is called, where one signature is known.
    pub fn params(&self) -> Option<&'g [ParamSpec]> {
        match &self.callee {
            Callee::Function(function) => Some(function.params()),
            Callee::Module(module) => Some(module.params()),
            Callee::Methods(_) | Callee::None => None,
        }
    }

    /// What the call does besides giving its result. What is not known may do anything; inputs and the output count as
    /// such, since they are never dropped.
    pub fn effects(&self) -> Effects {
        match (&self.callee, self.node.op()) {
            (Callee::Module(module), _) => module.effects(),
            (Callee::None, Op::GetAttr(_)) => Effects::PURE,
            (Callee::None, _) => Effects::ALL,
            _ => self.node.functions().effects(),
        }
    }

    /// Whether the first two arguments may change places.
    pub fn is_commutative(&self) -> bool {
        match &self.callee {
            Callee::Function(function) => function.def().commutative,
            Callee::Methods(several) => several.iter().all(|f| f.def().commutative),
            Callee::Module(_) | Callee::None => false,
        }
    }

    /// The arguments beside the parameters that they are for.
    ///
    /// # Errors
    /// When they do not fit; when the callee is not known, or several types have the method, each with a signature of its
    /// own. The error names the node.
    pub fn bind(&self) -> Result<BoundArgs<'g>> {
        let bound = match &self.callee {
            Callee::Module(module) => BoundArgs::of(self.node, self.node.target(), module.params()),
            Callee::None => Err(Error::msg(format_args!(
                "nothing is known at `{}` that could be called: link the crate of a method in, add a module to the attributes",
                self.node.target()
            ))),
            Callee::Function(_) | Callee::Methods(_) => return self.node.bound_to_functions(),
        };
        bound.map_err(|error| self.node.blame("binding", error))
    }
}
