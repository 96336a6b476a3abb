//! What a method name refers to: the functions of that name, narrowed by receiver type and
//! arguments.
//!
//! Invariant: the answer never depends on link order.

use super::function::{Effects, Function};
use super::meta::{Meta, MetaPolicy};
use super::node::NodeRef;
use super::op::Op;
use super::registry;
use crate::text::Escaped;

/// The method that a call was recorded as, if several linked types have a method of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedMethod(pub Function);

impl Meta for RecordedMethod {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

/// The functions that a node's call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Functions {
    /// It calls no function, or a method that no linked type has.
    None,
    /// A function, or the method of the only possible type.
    One(Function),
    /// A method of several types, in the order of their paths; the receiver decides at run time.
    Several(Vec<Function>),
}

impl Functions {
    /// The function, if there is exactly one.
    pub fn one(&self) -> Option<Function> {
        match self {
            Functions::One(function) => Some(*function),
            _ => None,
        }
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Function] {
        match self {
            Functions::None => &[],
            Functions::One(function) => std::slice::from_ref(function),
            Functions::Several(several) => several,
        }
    }

    /// What any of them may do; if there are none, anything.
    pub fn effects(&self) -> Effects {
        match self {
            Functions::None => Effects::ALL,
            known => effects_of(known.as_slice()),
        }
    }
}

/// What any of these functions may do.
pub(crate) fn effects_of(functions: &[Function]) -> Effects {
    functions
        .iter()
        .fold(Effects::PURE, |all, f| all.union(f.def().effects))
}

/// Why a method call cannot be written in source.
pub(crate) fn several_methods(name: &str, several: &[Function]) -> String {
    let paths: Vec<String> = several.iter().map(|f| format!("`{}`", f.path())).collect();
    format!(
        "several types have a method `{}`, and the graph does not say whose it is: {}; call one of these functions instead",
        Escaped(name),
        paths.join(", ")
    )
}

impl<'g> NodeRef<'g> {
    /// The function that a call is of: that of a function node, or of a method node whose method is one function's.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// let called: Vec<_> = gm.graph().nodes().filter_map(|node| node.function()).collect();
    /// assert_eq!(called, [fx_core::operator::add]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn function(self) -> Option<Function> {
        self.functions().one()
    }

    /// The functions that the node may call.
    pub(crate) fn functions(self) -> Functions {
        match self.op() {
            Op::CallFunction(function) => Functions::One(*function),
            Op::CallMethod(name) => match registry::methods(name) {
                [] => Functions::None,
                [only] => Functions::One(*only),
                several => self.narrowed(several),
            },
            _ => Functions::None,
        }
    }

    /// The methods of several types that the node can refer to.
    #[cold]
    fn narrowed(self, several: &[Function]) -> Functions {
        let receiver = |f: &Function| f.def().receiver.map(|ty| ty());
        let recorded = self
            .meta::<RecordedMethod>()
            .map(|known| receiver(&known.0));
        let of_receiver = |f: &&Function| recorded.is_none_or(|ty| receiver(f) == ty);
        let of_type: Vec<Function> = several.iter().filter(of_receiver).copied().collect();
        let takes = |f: &&Function| self.fits(f.path(), f.params()).is_ok();
        let fitting: Vec<Function> = of_type.iter().filter(takes).copied().collect();
        // If none accepts the arguments, the error refers to the methods of the type.
        let found = if fitting.is_empty() { of_type } else { fitting };
        match found.as_slice() {
            [] => Functions::None,
            [only] => Functions::One(*only),
            _ => Functions::Several(found),
        }
    }

    /// Whether both call methods of the same name, on types that may be the same.
    pub(crate) fn calls_same_method(self, other: NodeRef<'_>) -> bool {
        let (Op::CallMethod(a), Op::CallMethod(b)) = (self.op(), other.op()) else {
            return false;
        };
        let recorded = (
            self.meta::<RecordedMethod>(),
            other.meta::<RecordedMethod>(),
        );
        let may_be_one = match recorded {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        a == b && may_be_one
    }
}
