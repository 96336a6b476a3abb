//! `Op`: the six opcodes, each with its only possible kind of target.

use std::fmt;
use std::sync::Arc;

use super::function::Function;

/// What a node does: opcode and target in one, so that an ill-typed target cannot be constructed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// An input of the graph; the target is the argument's name.
    Placeholder(Arc<str>),
    /// A parameter, buffer or constant, or a module that is passed to a function; the target is its
    /// dotted path.
    GetAttr(Arc<str>),
    /// A call to a function.
    CallFunction(Function),
    /// A call to a method of the first argument.
    CallMethod(Arc<str>),
    /// A call to a module; the target is its dotted path.
    CallModule(Arc<str>),
    /// The output of the graph; its one argument is the result.
    Output,
}

/// An opcode without its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "as in `Op`")]
pub enum Opcode {
    Placeholder,
    GetAttr,
    CallFunction,
    CallMethod,
    CallModule,
    Output,
}

impl From<Function> for Op {
    /// A call of the function.
    fn from(function: Function) -> Self {
        Op::CallFunction(function)
    }
}

impl Op {
    /// The opcode.
    pub fn opcode(&self) -> Opcode {
        match self {
            Op::Placeholder(_) => Opcode::Placeholder,
            Op::GetAttr(_) => Opcode::GetAttr,
            Op::CallFunction(_) => Opcode::CallFunction,
            Op::CallMethod(_) => Opcode::CallMethod,
            Op::CallModule(_) => Opcode::CallModule,
            Op::Output => Opcode::Output,
        }
    }

    /// The target as text.
    pub fn target(&self) -> &str {
        match self {
            Op::Placeholder(target)
            | Op::GetAttr(target)
            | Op::CallMethod(target)
            | Op::CallModule(target) => target,
            Op::CallFunction(function) => function.path(),
            Op::Output => "output",
        }
    }

    /// Whether it is the call of a function, a method or a module.
    pub fn is_call(&self) -> bool {
        matches!(
            self,
            Op::CallFunction(_) | Op::CallMethod(_) | Op::CallModule(_)
        )
    }

    /// The default name of such a node: the function's or method's name, otherwise the whole path.
    pub(crate) fn name_candidate(&self) -> &str {
        match self {
            Op::CallFunction(function) => function.name(),
            other => other.target(),
        }
    }
}

impl Opcode {
    /// All of them.
    pub(crate) const ALL: [Opcode; 6] = [
        Opcode::Placeholder,
        Opcode::GetAttr,
        Opcode::CallFunction,
        Opcode::CallMethod,
        Opcode::CallModule,
        Opcode::Output,
    ];

    /// The opcode with this name.
    pub(crate) fn named(name: &str) -> Option<Opcode> {
        Opcode::ALL.into_iter().find(|opcode| opcode.name() == name)
    }

    /// Its name in torch.fx.
    pub fn name(self) -> &'static str {
        match self {
            Opcode::Placeholder => "placeholder",
            Opcode::GetAttr => "get_attr",
            Opcode::CallFunction => "call_function",
            Opcode::CallMethod => "call_method",
            Opcode::CallModule => "call_module",
            Opcode::Output => "output",
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
