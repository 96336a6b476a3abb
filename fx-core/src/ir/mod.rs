//! The graph: an ordered list of nodes with six opcodes, and use lists that always agree with the
//! arguments; functions, their signatures, and tables of what is known about them.
//!
//! ```
//! use fx_core::ir::Graph;
//! use fx_core::operator;
//! let mut graph = Graph::new();
//! let x = graph.placeholder("x")?;
//! let y = graph.call_function(operator::add, (x, 1), ())?;
//! graph.output(y)?;
//! assert_eq!(graph.node(x)?.num_users(), 1);
//! # Ok::<(), fx_core::Error>(())
//! ```

mod acyclic;
pub(crate) mod argument;
pub(crate) mod bound;
pub(crate) mod build;
pub(crate) mod changes;
mod columns;
pub(crate) mod copy;
mod cursor;
mod dead_code;
mod edit;
pub(crate) mod entries;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod identity;
mod index;
pub(crate) mod insertion;
pub(crate) mod journal;
mod known;
pub(crate) mod lint;
mod liveness;
mod marks;
mod mentions;
pub(crate) mod meta;
pub(crate) mod method;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod observe;
pub(crate) mod op;
pub mod operator;
mod order;
pub(crate) mod param_type;
mod parse;
pub(crate) mod places;
pub(crate) mod print;
mod provenance;
pub mod registry;
pub(crate) mod returned;
pub(crate) mod rust_type;
pub(crate) mod signature;
mod small_set;
mod sort;
mod substitute;
pub(crate) mod table;
pub(crate) mod tensor_meta;
pub(crate) mod transaction;
mod type_matches;
mod undo;
pub(crate) mod unnamed;
mod uses;
pub(crate) mod value_meta;
pub(crate) mod version;
pub(crate) mod walk;

pub use self::argument::{Args, ArgsIntoIter, Argument, IntoArguments, IntoKwargs, Kwargs};
pub use self::bound::BoundArgs;
pub use self::build::NewNode;
pub use self::copy::ValueMap;
pub use self::entries::PassScope;
pub use self::function::{Effects, Function, FunctionDef, Kernel, WriteCall, Written, WrittenArg};
pub use self::graph::{Graph, Nodes};
pub use self::insertion::InsertionPoint;
pub use self::meta::{Meta, MetaPolicy, NodeAction, NodeSource};
pub use self::names::Name;
pub use self::node::{NodeMut, NodeRef};
pub use self::observe::{GraphObserver, ObserverId};
pub use self::op::{Op, Opcode};
pub use self::param_type::{ParamType, ScalarType, TypeName, TypePart};
pub use self::places::Scope;
pub use self::signature::{Literal, ParamKind, ParamSpec};
pub use self::table::FunctionTable;
pub use self::tensor_meta::TensorMeta;
pub use self::value_meta::ValueMeta;
pub use self::walk::NodeCursor;
pub use crate::location::SourceLocation;
