//! What the item of a call is made from: its arguments by name, and the items of the nodes before it.
//!
//! Invariant: a question that the arguments or items do not answer has no answer, and then the call is
//! made as it is.

use std::borrow::Cow;
use std::collections::HashMap;

use fx_core::ir::{Argument, BoundArgs, NodeRef};
use fx_core::value::{DType, NodeId};
use fx_core::{Error, GraphModule, Result};
use fx_kernels::convert::Half;

use super::draft::{Draft, Id, Kind, SizeArg, SizesArg, View};
use super::types::{dtype_of, half_of};
use crate::Tensor;

/// A draft in the making.
#[derive(Debug)]
pub(super) struct Lowering<'g> {
    pub gm: &'g GraphModule,
    pub draft: Draft,
    pub items: HashMap<NodeId, Id>,
    /// The calls that give a tensor of floats, and inputs that are one of 16 bits, each with the item of its floats if anything reads it.
    pub called: HashMap<Id, Option<Id>>,
    /// The comparisons of floats, each with the item of its ones and zeros.
    pub masks: HashMap<NodeId, Id>,
    /// Whether tensors of 16 bits are computed.
    pub has_halves: bool,
    /// Whether a function without an item cannot be called as it is.
    pub is_static: bool,
    /// Whether the arguments are of the types that the graph was given shapes for.
    pub is_known: bool,
}

/// The arguments of a node.
#[derive(Debug)]
pub(super) struct Args<'g> {
    pub node: NodeRef<'g>,
    pub bound: BoundArgs<'g>,
}

impl<'g> Args<'g> {
    pub fn get(&self, name: &str) -> Option<Cow<'g, Argument>> {
        self.bound.get(name)
    }

    /// The name of a parameter.
    pub fn param(&self, index: usize) -> Option<&'g str> {
        self.bound.params().get(index).map(|param| &*param.name)
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        match *self.get(name)? {
            Argument::Float(x) => Some(x),
            Argument::Int(n) => Some(n as f64),
            _ => None,
        }
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        match *self.get(name)? {
            Argument::Int(n) => Some(n),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name).as_deref(), Some(Argument::Bool(true)))
    }

    pub fn is_none(&self, name: &str) -> bool {
        matches!(self.get(name).as_deref(), None | Some(Argument::None))
    }

    /// One number for each of two dimensions, or one for both.
    pub fn pair(&self, name: &str) -> Option<[i64; 2]> {
        match &*self.get(name)? {
            Argument::Int(n) => Some([*n; 2]),
            Argument::Tuple(items) | Argument::List(items) => match items[..] {
                [Argument::Int(a), Argument::Int(b)] => Some([a, b]),
                [Argument::Int(a)] => Some([a; 2]),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn sizes(&self, name: &str) -> Option<[usize; 2]> {
        let [a, b] = self.pair(name)?;
        Some([usize::try_from(a).ok()?, usize::try_from(b).ok()?])
    }

    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        let int = |item: &Argument| match item {
            Argument::Int(n) => Some(*n),
            _ => None,
        };
        match &*self.get(name)? {
            Argument::Int(n) => Some(vec![*n]),
            Argument::Tuple(items) | Argument::List(items) => items.iter().map(int).collect(),
            _ => None,
        }
    }
}

impl Lowering<'_> {
    pub fn item(&self, node: NodeRef<'_>) -> Result<Id> {
        let found = self.items.get(&node.id()).copied();
        found.ok_or_else(|| Error::msg("a node is used before it is computed"))
    }

    pub fn item_of(&self, argument: &Argument) -> Option<Id> {
        self.items.get(&argument.as_node()?).copied()
    }

    /// The ones and zeros of a comparison of floats.
    pub fn mask_of(&self, argument: &Argument) -> Option<Id> {
        self.masks.get(&argument.as_node()?).copied()
    }

    /// The floats of an argument.
    pub fn floats(&mut self, args: &Args<'_>, name: &str) -> Option<Id> {
        let id = self.item_of(&*args.get(name)?)?;
        self.floats_of(id)
    }

    /// The floats of an item: its own, or those of the tensor that a call gives or an input is.
    pub fn floats_of(&mut self, id: Id) -> Option<Id> {
        if self.draft.items[id].is_floats {
            return Some(id);
        }
        let known = self.called.get(&id).copied()?;
        if known.is_some() {
            return known;
        }
        let name = self.draft.items[id].nodes.join(", ");
        let floats = self.draft.push(Kind::Floats, vec![id], name, true);
        self.called.insert(id, Some(floats));
        Some(floats)
    }

    /// The type of 16 bits that a type is, where these are computed.
    pub fn half_type(&self, dtype: DType) -> Option<Half> {
        half_of(dtype).filter(|_| self.has_halves)
    }

    /// Whether tensors of a type are computed.
    pub fn is_computed(&self, dtype: DType) -> bool {
        dtype == DType::F32 || self.half_type(dtype).is_some()
    }

    /// The type of 16 bits that an argument has.
    pub fn half(&self, args: &Args<'_>, name: &str) -> Option<Half> {
        let node = args.get(name)?.as_node()?;
        self.draft.halves.get(&node).copied()
    }

    /// The type of 16 bits that a call gives.
    pub fn half_of_result(&self, args: &Args<'_>) -> Option<Half> {
        self.half_type(dtype_of(args.node)?)
    }

    /// Whether an item is, or gives, floats.
    pub fn has_floats(&self, id: Id) -> bool {
        self.draft.items[id].is_floats || self.called.contains_key(&id)
    }

    /// The tensor of an argument, if it is the same in every run; `Some(None)` if it is left out.
    pub fn constant(&self, args: &Args<'_>, name: &str) -> Option<Option<Tensor>> {
        if args.is_none(name) {
            return Some(None);
        }
        let id = self.item_of(&*args.get(name)?)?;
        match &self.draft.items[id].kind {
            Kind::Constant(tensor) if self.draft.items[id].is_floats => Some(Some(tensor.clone())),
            _ => None,
        }
    }

    pub fn size(&self, argument: &Argument) -> Option<SizeArg> {
        match argument {
            Argument::Int(n) => Some(SizeArg::Known(*n)),
            Argument::Node(_) => Some(SizeArg::Of(self.item_of(argument)?)),
            _ => None,
        }
    }

    pub fn all_sizes(&self, args: &Args<'_>, name: &str) -> Option<SizesArg> {
        match &*args.get(name)? {
            Argument::Int(n) => Some(SizesArg::Listed(vec![SizeArg::Known(*n)])),
            Argument::Tuple(items) | Argument::List(items) => {
                let sizes = items.iter().map(|item| self.size(item));
                Some(SizesArg::Listed(sizes.collect::<Option<_>>()?))
            }
            argument @ Argument::Node(_) => Some(SizesArg::Of(self.item_of(argument)?)),
            _ => None,
        }
    }

    pub fn push(&mut self, args: &Args<'_>, kind: Kind, inputs: Vec<Id>) -> Option<Id> {
        Some(self.draft.push(kind, inputs, args.node.name(), true))
    }

    pub fn view(&mut self, args: &Args<'_>, view: View) -> Option<Id> {
        let x = self.floats(args, "x")?;
        self.push(args, Kind::View(view), vec![x])
    }

    /// The first argument, if it is floats.
    pub fn first(&mut self, args: &Args<'_>) -> Option<Id> {
        let id = self.item_of(args.node.args().first()?)?;
        self.floats_of(id)
    }

    pub fn number(&mut self, args: &Args<'_>, kind: Kind, of: Id) -> Option<Id> {
        Some(self.draft.push(kind, vec![of], args.node.name(), false))
    }
}
