//! `TensorSource`: what a tensor library calls that for which Rust has no sign, as generated source writes it.
//!
//! Invariant: fx-core writes no name of a tensor library; a name comes from the registration of its tensor type.

use std::any::TypeId;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::value::operator::Operator;

/// How generated source writes what is done with tensors of a type, where Rust has no sign for it.
///
/// It is given with the registration of the type, [`register_tensor!`](crate::register_tensor). Each method gives an
/// expression of a `Result`, of operands that are expressions; where it gives nothing, a plain call of the operator is
/// written, which every library has.
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

    /// An operator that Rust has no sign for: `matmul`, `pow`, `floordiv`, `abs`. The first operand is a tensor, to call a
    /// method on; others are as they are lent.
    fn operator(&self, op: Operator, operands: &[&str]) -> Option<String> {
        let _ = (op, operands);
        None
    }

    /// An attribute: its `shape`, a `List<Int>`, or its `ndim`, an `Int`, or its `dtype`.
    fn attribute(&self, tensor: &str, name: &str) -> Option<String> {
        let _ = (tensor, name);
        None
    }

    /// The names that the library's prelude has beside the tensor type's, which types of generated crates must not take.
    fn names(&self) -> &[&'static str] {
        &[]
    }
}

/// An index of a tensor, its parts written as expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexSource {
    /// A position, or another value that is lent.
    At(String),
    /// A new dim of size 1: Python's `None`.
    NewDim,
    /// All dims that the other parts leave over: Python's `...`.
    Rest,
    /// From, to and step, as far as they are there.
    Slice([Option<String>; 3]),
    /// A part for each of the first dims.
    Parts(Vec<IndexSource>),
}

/// One entry of the registry, submitted by [`register_tensor!`](crate::register_tensor).
pub struct TensorSpelling {
    id: TypeId,
    source: &'static dyn TensorSource,
}

impl TensorSpelling {
    /// The entry of a tensor type.
    pub const fn of<T: 'static>(source: &'static dyn TensorSource) -> Self {
        TensorSpelling {
            id: TypeId::of::<T>(),
            source,
        }
    }
}

inventory::collect!(TensorSpelling);

/// How a tensor type is written.
pub(super) fn source_of(id: TypeId) -> Option<&'static dyn TensorSource> {
    static TABLE: OnceLock<FxHashMap<TypeId, &'static dyn TensorSource>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let entries = inventory::iter::<TensorSpelling>.into_iter();
        entries.map(|entry| (entry.id, entry.source)).collect()
    });
    table.get(&id).copied()
}

/// The names that libraries' preludes have.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let entries = inventory::iter::<TensorSpelling>.into_iter();
    entries.flat_map(|entry| entry.source.names().iter().copied())
}
