#![doc = include_str!("../README.md")]
//!
//! # The modules
//!
//! | module | contents |
//! |---|---|
//! | [`prelude`] | names for programs that use models |
//! | [`passes`] | passes, and analyses of runs; [`passes::prelude`] for writing transforms |
//! | [`control`] | branches and loops that a graph decides when it runs |
//! | [`trace`](mod@trace) | tracing: [`Trace`](trace::Trace), [`Tracer`](trace::Tracer), modes, conversions |
//! | [`graph_module`] | [`GraphModule`]: edits, parts by path, surgery, crates |
//! | [`ir`] | [`Graph`](ir::Graph), nodes, functions and their tables |
//! | [`pattern`] | finding sub-graphs and replacing them |
//! | [`run`] | running node by node |
//! | [`emit`] | generated source |
//! | [`file`](mod@file) | saved files |
//! | [`module`](mod@module) | the traits of modules, and their hierarchy |
//! | [`value`] | values, numbers, structures |
//! | [`tensor`] | what a tensor type implements |

// Macro expansions refer to the crate by its public name, also in its own tests and examples.
#[allow(unused_extern_crates, reason = "used by expansions")]
extern crate self as fx_core;

mod error;
mod former;
mod inference;
mod location;
mod outlined;
mod region;
mod shelf;
mod stack;
mod submit;
mod text;

pub mod control;
pub mod draw;
pub mod emit;
pub mod file;
pub mod graph_module;
pub mod ir;
pub mod module;
pub mod passes;
pub mod pattern;
pub mod run;
pub mod shapes;
pub mod tensor;
pub mod trace;
pub mod value;

pub use error::{Error, ErrorKind, Result};
pub use fx_macros::{Module, Tree, function, trace, traced, wrap};
pub use graph_module::{GraphModule, symbolic_trace};
/// Maps by name that keep insertion order, as traced functions take and return them.
pub use indexmap::IndexMap;
pub use ir::operator;

register_crate!(prelude = "fx_core::prelude");
__private::entry! { (crate) LibrarySource, location::LibrarySource(file!()) }

/// The names that most programs need: `use fx_core::prelude::*;`. Programs that write transforms
/// add [`passes::prelude`].
pub mod prelude {
    pub use crate::module::{ComponentExt, Module, Tag};
    pub use crate::trace::{Forward, FromValue, List, PH, Trace, TracedExt};
    pub use crate::value::{Bool, DType, Device, Float, Int, Tree, Value};
    pub use crate::{
        Error, GraphModule, IndexMap, Module, Result, Tree, args, function, symbolic_trace, trace,
        traced, tree, wrap, wrap_fn,
    };
}

/// Called by macro expansions; not a public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::__submit as submit;
    pub use crate::control::{mentioned, written as control};
    pub use crate::emit::crates::CrateInfo;
    pub use crate::emit::tensor_source::TensorSpelling;
    pub use crate::file::container::{Container, Outgoing, Prepared};
    pub use crate::file::disk::opened;
    pub use crate::file::json::{Json, JsonMap};
    pub use crate::file::loader::Loader;
    pub use crate::file::meta::MetaType;
    pub use crate::file::saver::Saver;
    pub use crate::ir::function::{Effects, Function, FunctionDef};
    pub use crate::ir::param_type::{ParamType, TypePart};
    pub use crate::ir::registry::{MethodPath, Registration};
    pub use crate::ir::signature::{Literal, ParamSpec, arity_error};
    pub use crate::ir::table::{PathEntry, TableEntry};
    pub use crate::location::LibrarySource;
    pub use crate::module::argument::{OfModule, module_of, module_value};
    pub use crate::module::forward::{Entry, HasEntry, NoEntry, Submitted, Unsaid};
    pub use crate::module::module::Module;
    pub use crate::module::parts::{part, part_mut};
    pub use crate::module::registry::{ModuleOf, ModuleType};
    pub use crate::module::saved_fields::{save, save_variant};
    pub use crate::module::skipped::{
        Skipped, WithDefault, WithoutDefault, known_fields, no_variant, variant,
    };
    pub use crate::module::walk::{
        Component, EachField, EachFieldMut, Field, FieldMut, Walk, WalkMut,
    };
    pub use crate::trace::assertion::{Claim, assert_traced, claim};
    pub use crate::trace::call_args::CallForm;
    pub use crate::trace::call_args::{CallArgs, argument_error};
    pub use crate::trace::compare;
    pub use crate::trace::convert::{
        FromValue, Held, Output, Param, TreeField, fields, hold, tuple_fields,
    };
    pub use crate::trace::dispatch::{call_forward, record};
    pub use crate::trace::foreign::{into_leaf, to_foreign};
    pub use crate::trace::operand::{Operand, binary, unary};
    pub use crate::trace::range;
    pub use crate::trace::returns::Returns;
    pub use crate::trace::root::TracedFn;
    pub use crate::trace::scope::may_record;
    pub use crate::value::object::{Object, OperandRef, Traced};
    pub use crate::value::operator::Operator;
    pub use crate::value::symbol::{Float, Int};
    pub use crate::value::tensor_types::TensorType;
    pub use crate::value::value::{Arg, IntoValue, Value};
    pub use fx_macros::op;
    pub use fx_macros::{entry, table, table_entry};
    pub use fx_registry;
    pub use std::borrow::Cow;

    /// The type of a function item.
    pub fn type_of<F: 'static>(_: &F) -> std::any::TypeId {
        std::any::TypeId::of::<F>()
    }
}
