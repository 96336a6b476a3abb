//! `Argument`: an item of a node's argument list: a literal, another node, or a structure of both; and
//! `Args`, the list, of which a short one needs no allocation.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use smallvec::SmallVec;

use super::signature::Literal;
use crate::error::Result;
use crate::value::device::Device;
use crate::value::dtype::DType;
use crate::value::handle::NodeId;
use crate::value::nested::{self, MAX_DEPTH, Nested, Shown, ShownItems};
use crate::value::value::Value;

/// The deepest nesting of arguments.
pub const MAX_ARGUMENT_DEPTH: usize = MAX_DEPTH;

/// An argument of a node. Structures are shared and immutable: an edit creates a new one.
///
/// Structures of any depth can be compared and dropped; `{:?}` shows 64 levels, and nodes accept at
/// most 64.
#[derive(Clone)]
pub enum Argument {
    /// The result of another node.
    Node(NodeId),
    /// No value.
    None,
    /// `...` in an index.
    Ellipsis,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<String>),
    /// An element type.
    DType(DType),
    /// A device.
    Device(Device),
    /// A list.
    List(Arc<Vec<Argument>>),
    /// A tuple.
    Tuple(Arc<Vec<Argument>>),
    /// Named arguments, in order.
    Dict(Arc<Vec<(Arc<str>, Argument)>>),
    /// Start, stop and step of a slice.
    Slice(Arc<[Argument; 3]>),
    /// Start, stop and step of a range of integers.
    Range(Arc<[Argument; 3]>),
}

/// A node's keyword arguments, in order.
pub type Kwargs = Vec<(Arc<str>, Argument)>;

impl Argument {
    /// The node, if it is one.
    pub fn as_node(&self) -> Option<NodeId> {
        match self {
            Argument::Node(id) => Some(*id),
            _ => None,
        }
    }

    /// Calls `visit` with every node inside, in order.
    pub fn for_each_node(&self, visit: &mut dyn FnMut(NodeId)) {
        match self {
            Argument::Node(id) => visit(*id),
            Argument::List(items) | Argument::Tuple(items) => {
                items.iter().for_each(|a| a.for_each_node(visit));
            }
            Argument::Dict(items) => items.iter().for_each(|(_, a)| a.for_each_node(visit)),
            Argument::Slice(parts) | Argument::Range(parts) => {
                parts.iter().for_each(|a| a.for_each_node(visit));
            }
            _ => {}
        }
    }

    /// The same structure with every node replaced by the result of `map`; parts without nodes stay
    /// shared.
    #[must_use]
    pub fn map_nodes(&self, map: &mut dyn FnMut(NodeId) -> Argument) -> Argument {
        match self {
            Argument::Node(id) => map(*id),
            Argument::List(items) => {
                Argument::List(Arc::new(items.iter().map(|a| a.map_nodes(map)).collect()))
            }
            Argument::Tuple(items) => {
                Argument::Tuple(Arc::new(items.iter().map(|a| a.map_nodes(map)).collect()))
            }
            Argument::Dict(items) => Argument::Dict(Arc::new(
                items
                    .iter()
                    .map(|(k, a)| (k.clone(), a.map_nodes(map)))
                    .collect(),
            )),
            Argument::Slice(parts) => Argument::Slice(Arc::new(map_three(parts, map))),
            Argument::Range(parts) => Argument::Range(Arc::new(map_three(parts, map))),
            other => other.clone(),
        }
    }

    /// The argument as a value; `value_of` supplies the value of each node.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
    /// let add = gm.graph().find_name("add").ok_or_else(|| Error::msg("the graph adds"))?;
    /// let args = add.args().iter().map(|a| a.to_value(&mut |_| Ok(Value::Float(2.5))));
    /// assert_eq!(args.map(|v| f64::from_value(v?)).collect::<Result<Vec<_>>>()?, [2.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error of `value_of`.
    pub fn to_value(&self, value_of: &mut dyn FnMut(NodeId) -> Result<Value>) -> Result<Value> {
        fn all(
            items: &[Argument],
            value_of: &mut dyn FnMut(NodeId) -> Result<Value>,
        ) -> Result<Box<[Value]>> {
            items.iter().map(|a| a.to_value(value_of)).collect()
        }
        fn three(
            [a, b, c]: &[Argument; 3],
            value_of: &mut dyn FnMut(NodeId) -> Result<Value>,
        ) -> Result<Box<[Value; 3]>> {
            Ok(Box::new([
                a.to_value(value_of)?,
                b.to_value(value_of)?,
                c.to_value(value_of)?,
            ]))
        }
        Ok(match self {
            Argument::Node(id) => value_of(*id)?,
            Argument::List(items) => Value::List(all(items, value_of)?),
            Argument::Tuple(items) => Value::Tuple(all(items, value_of)?),
            Argument::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(k, a)| Ok((k.clone(), a.to_value(value_of)?)));
                Value::Dict(Box::new(items.collect::<Result<_>>()?))
            }
            Argument::Slice(parts) => Value::Slice(three(parts, value_of)?),
            Argument::Range(parts) => Value::Range(three(parts, value_of)?),
            plain => plain.plain_value().unwrap_or_default(),
        })
    }

    /// Rejects nesting deeper than [`MAX_ARGUMENT_DEPTH`], so that walks over arguments may
    /// recurse.
    pub(crate) fn check_depth(&self) -> Result<()> {
        nested::check_depth(self, "an argument")
    }

    pub(crate) fn is_leaf(&self) -> bool {
        !matches!(
            self,
            Argument::List(_)
                | Argument::Tuple(_)
                | Argument::Dict(_)
                | Argument::Slice(_)
                | Argument::Range(_)
        )
    }

    /// The value of a plain argument: neither a node nor a structure.
    pub(crate) fn plain_value(&self) -> Option<Value> {
        Some(match self {
            Argument::None => Value::None,
            Argument::Ellipsis => Value::Ellipsis,
            Argument::Bool(x) => Value::Bool(*x),
            Argument::Int(x) => Value::Int(*x),
            Argument::Float(x) => Value::Float(*x),
            Argument::Str(x) => Value::Str(x.as_str().into()),
            Argument::DType(x) => Value::DType(*x),
            Argument::Device(x) => Value::Device(*x),
            _ => return None,
        })
    }

    /// A plain value as an argument; `None` for an object, a proxy or a structure.
    ///
    /// ```
    /// use fx_core::ir::Argument;
    /// use fx_core::value::Value;
    /// assert_eq!(Argument::of_plain(&Value::Int(3)), Some(Argument::Int(3)));
    /// assert_eq!(Argument::of_plain(&Value::of((1, 2))), None);
    /// ```
    pub fn of_plain(value: &Value) -> Option<Argument> {
        Some(match value {
            Value::None => Argument::None,
            Value::Ellipsis => Argument::Ellipsis,
            Value::Bool(x) => Argument::Bool(*x),
            Value::Int(x) => Argument::Int(*x),
            Value::Float(x) => Argument::Float(*x),
            Value::Str(x) => Argument::from(&**x),
            Value::DType(x) => Argument::DType(*x),
            Value::Device(x) => Argument::Device(*x),
            _ => return None,
        })
    }

    /// Whether it equals the literal in both type and value.
    pub(crate) fn equals_literal(&self, literal: &Literal) -> bool {
        match (self, literal) {
            (Argument::None, Literal::None) => true,
            (Argument::Bool(a), Literal::Bool(b)) => a == b,
            (Argument::Int(a), Literal::Int(b)) => a == b,
            (Argument::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
            (Argument::Str(a), Literal::Str(b)) => a.as_str() == b,
            _ => false,
        }
    }
}

impl Nested for Argument {
    fn is_structure(&self) -> bool {
        !self.is_leaf()
    }

    fn child(&self, at: usize) -> Option<&Self> {
        match self {
            Argument::List(items) | Argument::Tuple(items) => items.get(at),
            Argument::Dict(items) => items.get(at).map(|(_, item)| item),
            Argument::Slice(parts) | Argument::Range(parts) => parts.get(at),
            _ => None,
        }
    }

    fn take_structures(&mut self, out: &mut SmallVec<[Self; 4]>) {
        let mut take = |child: &mut Argument| {
            if !child.is_leaf() {
                out.push(std::mem::replace(child, Argument::None));
            }
        };
        match self {
            Argument::List(items) | Argument::Tuple(items) => {
                if let Some(items) = Arc::get_mut(items) {
                    items.iter_mut().for_each(take);
                }
            }
            Argument::Dict(items) => {
                if let Some(items) = Arc::get_mut(items) {
                    items.iter_mut().for_each(|(_, child)| take(child));
                }
            }
            Argument::Slice(parts) | Argument::Range(parts) => {
                if let Some(parts) = Arc::get_mut(parts) {
                    parts.iter_mut().for_each(take);
                }
            }
            _ => {}
        }
    }

    fn with(&self, _: Vec<Self>) -> Self {
        // Structures are shared.
        self.clone()
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Argument::Node(a), Argument::Node(b)) => a == b,
            (Argument::None, Argument::None) | (Argument::Ellipsis, Argument::Ellipsis) => true,
            (Argument::Bool(a), Argument::Bool(b)) => a == b,
            (Argument::Int(a), Argument::Int(b)) => a == b,
            (Argument::Float(a), Argument::Float(b)) => a == b,
            (Argument::Str(a), Argument::Str(b)) => a == b,
            (Argument::DType(a), Argument::DType(b)) => a == b,
            (Argument::Device(a), Argument::Device(b)) => a == b,
            (Argument::List(a), Argument::List(b)) | (Argument::Tuple(a), Argument::Tuple(b)) => {
                a.len() == b.len()
            }
            (Argument::Dict(a), Argument::Dict(b)) => {
                let mut keys = a.iter().zip(b.iter());
                a.len() == b.len() && keys.all(|((a, _), (b, _))| a == b)
            }
            (Argument::Slice(_), Argument::Slice(_)) | (Argument::Range(_), Argument::Range(_)) => {
                true
            }
            _ => false,
        }
    }
}

impl PartialEq for Argument {
    fn eq(&self, other: &Self) -> bool {
        nested::are_equal(self, other)
    }
}

/// Arguments of any depth are dropped without recursion.
impl Drop for Argument {
    fn drop(&mut self) {
        nested::release(self);
    }
}

impl fmt::Debug for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, MAX_DEPTH).fmt(f)
    }
}

impl fmt::Debug for Shown<'_, Argument> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(arg, levels) = *self;
        if levels == 0 && !arg.is_leaf() {
            return f.write_str("..");
        }
        let inside = levels.saturating_sub(1);
        let mut shown =
            |name: &str, field: &dyn fmt::Debug| f.debug_tuple(name).field(field).finish();
        match arg {
            Argument::Node(x) => shown("Node", x),
            Argument::Bool(x) => shown("Bool", x),
            Argument::Int(x) => shown("Int", x),
            Argument::Float(x) => shown("Float", x),
            Argument::Str(x) => shown("Str", x),
            Argument::DType(x) => shown("DType", x),
            Argument::Device(x) => shown("Device", x),
            Argument::List(items) => shown("List", &ShownItems(items, inside)),
            Argument::Tuple(items) => shown("Tuple", &ShownItems(items, inside)),
            Argument::Dict(items) => {
                let items = items.iter().map(|(key, item)| (key, Shown(item, inside)));
                shown("Dict", &items.collect::<Vec<_>>())
            }
            Argument::Slice(parts) => shown("Slice", &ShownItems(&parts[..], inside)),
            Argument::Range(parts) => shown("Range", &ShownItems(&parts[..], inside)),
            Argument::None => f.write_str("None"),
            Argument::Ellipsis => f.write_str("Ellipsis"),
        }
    }
}

fn map_three(parts: &[Argument; 3], map: &mut dyn FnMut(NodeId) -> Argument) -> [Argument; 3] {
    let [a, b, c] = parts;
    [a.map_nodes(map), b.map_nodes(map), c.map_nodes(map)]
}

impl From<&Literal> for Argument {
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::None => Argument::None,
            Literal::Bool(b) => Argument::Bool(*b),
            Literal::Int(n) => Argument::Int(*n),
            Literal::Float(x) => Argument::Float(*x),
            Literal::Str(s) => Argument::from(s.as_ref()),
        }
    }
}

macro_rules! argument_from {
    ($($t:ty => |$x:ident| $arg:expr;)*) => {$(
        impl From<$t> for Argument {
            fn from($x: $t) -> Self {
                $arg
            }
        }
    )*};
}

argument_from! {
    NodeId => |x| Argument::Node(x);
    bool => |x| Argument::Bool(x);
    i64 => |x| Argument::Int(x);
    i32 => |x| Argument::Int(x.into());
    f64 => |x| Argument::Float(x);
    &str => |x| Argument::Str(Arc::new(x.to_owned()));
    String => |x| Argument::Str(Arc::new(x));
    DType => |x| Argument::DType(x);
    Device => |x| Argument::Device(x);
    () => |_x| Argument::None;
}

impl<T: Into<Argument>> From<Option<T>> for Argument {
    fn from(value: Option<T>) -> Self {
        value.map_or(Argument::None, Into::into)
    }
}

impl<T: Into<Argument>> From<Vec<T>> for Argument {
    fn from(items: Vec<T>) -> Self {
        Argument::List(Arc::new(items.into_iter().map(Into::into).collect()))
    }
}

impl<T: Into<Argument>, const N: usize> From<[T; N]> for Argument {
    fn from(items: [T; N]) -> Self {
        Argument::List(Arc::new(items.into_iter().map(Into::into).collect()))
    }
}

/// A node's positional arguments, built from arguments in order, and read and changed as a slice.
///
/// ```
/// use fx_core::ir::{Args, Argument};
/// let mut args = Args::from_iter([Argument::Int(1), Argument::None]);
/// args.push(Argument::Bool(true));
/// args[1] = Argument::Int(2);
/// assert_eq!(args, Args::from(vec![1.into(), 2.into(), true.into()]));
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Args(SmallVec<[Argument; 2]>);

impl Args {
    /// No arguments.
    pub fn new() -> Self {
        Args::default()
    }

    /// Removes all arguments, and frees what a long list took.
    pub(super) fn clear(&mut self) {
        match self.0.spilled() {
            true => self.0 = SmallVec::new(),
            false => self.0.clear(),
        }
    }

    /// Appends an argument.
    pub fn push(&mut self, argument: Argument) {
        self.0.push(argument);
    }
}

impl Deref for Args {
    type Target = [Argument];

    #[inline]
    fn deref(&self) -> &[Argument] {
        &self.0
    }
}

impl DerefMut for Args {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Argument] {
        &mut self.0
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<Vec<Argument>> for Args {
    fn from(args: Vec<Argument>) -> Self {
        Args(SmallVec::from_vec(args))
    }
}

impl From<Args> for Vec<Argument> {
    fn from(args: Args) -> Self {
        args.0.into_vec()
    }
}

impl FromIterator<Argument> for Args {
    fn from_iter<I: IntoIterator<Item = Argument>>(args: I) -> Self {
        Args(args.into_iter().collect())
    }
}

impl Extend<Argument> for Args {
    fn extend<I: IntoIterator<Item = Argument>>(&mut self, args: I) {
        self.0.extend(args);
    }
}

/// An iterator over the arguments taken out of [`Args`].
#[derive(Debug)]
pub struct ArgsIntoIter(smallvec::IntoIter<[Argument; 2]>);

impl Iterator for ArgsIntoIter {
    type Item = Argument;

    fn next(&mut self) -> Option<Argument> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for ArgsIntoIter {}

impl IntoIterator for Args {
    type Item = Argument;
    type IntoIter = ArgsIntoIter;

    fn into_iter(self) -> ArgsIntoIter {
        ArgsIntoIter(self.0.into_iter())
    }
}

impl<'a> IntoIterator for &'a Args {
    type Item = &'a Argument;
    type IntoIter = std::slice::Iter<'a, Argument>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Positional arguments for a new node: a tuple, a `Vec`, or nothing (`()`).
pub trait IntoArguments {
    /// The arguments.
    fn into_arguments(self) -> Args;
}

impl IntoArguments for Args {
    fn into_arguments(self) -> Args {
        self
    }
}

impl IntoArguments for Vec<Argument> {
    fn into_arguments(self) -> Args {
        self.into()
    }
}

impl IntoArguments for () {
    fn into_arguments(self) -> Args {
        Args::new()
    }
}

macro_rules! tuple_into_arguments {
    ($($name:ident)+) => {
        impl<$($name: Into<Argument>),+> IntoArguments for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_arguments(self) -> Args {
                let ($($name,)+) = self;
                let mut args = Args::new();
                $(args.push($name.into());)+
                args
            }
        }
    };
}
tuple_into_arguments! { A }
tuple_into_arguments! { A B }
tuple_into_arguments! { A B C }
tuple_into_arguments! { A B C D }
tuple_into_arguments! { A B C D E }
tuple_into_arguments! { A B C D E F }

/// Keyword arguments for a new node: `[("dim", 1)]`,
/// `[("dim", 1.into()), ("keepdim", true.into())]`, or nothing (`()`).
pub trait IntoKwargs {
    /// The arguments.
    fn into_kwargs(self) -> Kwargs;
}

impl IntoKwargs for () {
    fn into_kwargs(self) -> Kwargs {
        Kwargs::new()
    }
}

impl IntoKwargs for Kwargs {
    fn into_kwargs(self) -> Kwargs {
        self
    }
}

impl<T: Into<Argument>, const N: usize> IntoKwargs for [(&str, T); N] {
    fn into_kwargs(self) -> Kwargs {
        self.into_iter()
            .map(|(k, v)| (k.into(), v.into()))
            .collect()
    }
}
