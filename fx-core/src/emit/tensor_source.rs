//! `TensorSource`: how generated source writes the tensor operations that have no symbol in Rust.
//!
//! Invariant: fx-core contains no name of a tensor library; such names come from the registration
//! of the tensor type.

use std::any::TypeId;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::value::operator::Operator;

/// How generated source writes operations on a tensor type that have no symbol in Rust.
///
/// It is passed to the registration of the type, [`register_tensor!`](crate::register_tensor). Each
/// method takes operands as expressions and returns an expression of type `Result`. If it returns
/// `None`, a plain call to the operator is written, which works for every library.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::tensor::{IndexSource, TensorSource};
/// use fx_core::value::Operator;
/// struct Spelling;
/// impl TensorSource for Spelling {
///     fn index(&self, tensor: &str, index: &IndexSource) -> Option<String> {
///         match index {
///             IndexSource::At(at) => Some(format!("{tensor}.row({at})")),
///             _ => None,
///         }
///     }
///     fn operator(&self, op: Operator, operands: &[&str]) -> Option<String> {
///         match (op, operands) {
///             (Operator::Pow, [base, exponent]) => Some(format!("{base}.raised({exponent})")),
///             _ => None,
///         }
///     }
/// }
/// // fx_core::register_tensor!(Array, "my_crate::Array", from_data, source = Spelling);
/// assert_eq!(Spelling.operator(Operator::Pow, &["x", "2"]).as_deref(), Some("x.raised(2)"));
/// assert_eq!(Spelling.operator(Operator::Abs, &["x"]), None);
/// ```
pub trait TensorSource: Send + Sync {
    /// `x[index]`.
    fn index(&self, tensor: &str, index: &IndexSource) -> Option<String> {
        let _ = (tensor, index);
        None
    }

    /// An operator without a symbol in Rust: `matmul`, `pow`, `floordiv`, `abs`. The first operand
    /// is a tensor to call a method on; the others are borrowed.
    fn operator(&self, op: Operator, operands: &[&str]) -> Option<String> {
        let _ = (op, operands);
        None
    }

    /// An attribute: `shape`, a `List<Int>`; `ndim`, an `Int`; or `dtype`.
    fn attribute(&self, tensor: &str, name: &str) -> Option<String> {
        let _ = (tensor, name);
        None
    }

    /// Other names in the library's prelude, which types of generated crates must not take.
    fn names(&self) -> &[&'static str] {
        &[]
    }
}

/// An index of a tensor, with its parts as expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexSource {
    /// A position, or another borrowed value.
    At(String),
    /// A new dim of size 1: Python's `None`.
    NewDim,
    /// All dims that the other parts leave: Python's `...`.
    Rest,
    /// Start, stop and step, as far as they are given.
    Slice([Option<String>; 3]),
    /// One part for each of the first dims.
    Parts(Vec<IndexSource>),
}

/// One entry of the registry, submitted by [`register_tensor!`](crate::register_tensor).
pub struct TensorSpelling {
    id: TypeId,
    source: &'static dyn TensorSource,
}

impl TensorSpelling {
    /// Creates the entry of a tensor type.
    pub const fn of<T: 'static>(source: &'static dyn TensorSource) -> Self {
        TensorSpelling {
            id: TypeId::of::<T>(),
            source,
        }
    }
}

crate::__private::table! { (crate) TensorSpelling }

/// The source writer of a tensor type.
pub(super) fn source_of(id: TypeId) -> Option<&'static dyn TensorSource> {
    static TABLE: OnceLock<FxHashMap<TypeId, &'static dyn TensorSource>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let entries = fx_registry::entries::<TensorSpelling>();
        entries.map(|entry| (entry.id, entry.source)).collect()
    });
    table.get(&id).copied()
}

/// The extra names in the preludes of all libraries.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let entries = fx_registry::entries::<TensorSpelling>();
    entries.flat_map(|entry| entry.source.names().iter().copied())
}
