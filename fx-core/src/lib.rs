//! The core of fx, torch.fx for Rust: a `forward` is traced into a graph that a person can read, edit,
//! run and turn back into Rust source.
//!
//! This crate knows no tensor library: a tensor is an [`Object`], a tensor type that can be symbolic is
//! [`Traced`], and generated source has the names that come with the type's registration
//! ([`register_tensor!`]). `fx-nn` brings one. The layers, from the ground up: values, the graph ([`Graph`]), modules
//! ([`Module`]), tracing ([`Tracer`]), running and code generation ([`GraphModule`]).

// Macro expansions name the crate by its public name, also in its own tests and examples.
#[allow(unused_extern_crates, reason = "used by expansions")]
extern crate self as fx_core;

mod codegen;
mod error;
mod exec;
mod graph_module;
mod ir;
mod location;
mod module;
mod passes;
mod region;
mod rewrite;
mod save;
mod text;
mod trace;
mod value;

pub use codegen::crates::CrateInfo;
pub use codegen::hooks::{CodeGen, CodeHook, FunctionHead};
pub use codegen::source::{CodeLine, CodeOptions, RustCode};
pub use codegen::tensor_source::{IndexSource, TensorSource};
pub use error::{Error, ErrorKind, Result};
pub use exec::interpreter::{Interpretation, Interpreter, PlainInterpreter};
pub use fx_macros::{Module, Tree, function, trace, traced, wrap};
pub use graph_module::edit::GraphEdit;
pub use graph_module::folder::Folder;
pub use graph_module::parts::{Submodule, SubmoduleMut};
pub use graph_module::surgery::{ReplacedModule, Surgery};
pub use graph_module::{GraphModule, symbolic_trace};
/// Maps by names that keep their order: what traced functions take and return.
pub use indexmap::IndexMap;
pub use ir::argument::{Args, Argument, IntoArguments, IntoKwargs, Kwargs};
pub use ir::bound::BoundArgs;
pub use ir::build::NewNode;
pub use ir::copy::ValueMap;
pub use ir::function::{Effects, Function, FunctionDef, Kernel, WriteCall, Written, WrittenArg};
pub use ir::graph::{Graph, Nodes};
pub use ir::insertion::InsertionPoint;
pub use ir::meta::{Meta, MetaPolicy, NodeAction, NodeSource, PassScope};
pub use ir::names::Name;
pub use ir::node::{NodeMut, NodeRef};
pub use ir::observe::{GraphObserver, ObserverId};
pub use ir::op::{Op, Opcode};
pub use ir::operators as operator;
pub use ir::param_type::{ParamType, ScalarType, TypeName, TypePart};
pub use ir::places::Scope;
pub use ir::registry;
pub use ir::signature::{Literal, ParamKind, ParamSpec};
pub use ir::table::FunctionTable;
pub use ir::value_meta::{TensorMeta, ValueMeta};
pub use ir::walk::NodeCursor;
pub use location::SourceLocation;
pub use module::argument::ModuleArg;
pub use module::attributes::Attributes;
pub use module::call::{Call, Callee};
pub use module::containers::MapKey;
pub use module::hierarchy::ComponentExt;
pub use module::items::Items;
pub use module::module::Module;
pub use module::plain::Tag;
pub use module::walk::{
    Component, ComponentKey, TensorKind, Visitor, VisitorMut, Walk, WalkMut, walk, walk_mut,
};
pub use passes::annotate_types::AnnotateTypes;
pub use passes::canonicalize::Canonicalize;
pub use passes::closeness::Closeness;
pub use passes::cse::Cse;
pub use passes::dead_code::DeadCode;
pub use passes::decompose::{DecomposedCall, Decompositions};
pub use passes::divergence::{Divergence, first_divergence};
pub use passes::fold_constants::FoldConstants;
pub use passes::folded::FoldedConstants;
pub use passes::manager::{Culprit, PassManager, PassReport};
pub use passes::normalize::{MethodsToFunctions, NormalizeArguments};
pub use passes::pass::{Pass, PassFn, pass_fn};
pub use passes::profile::{NodeCost, Profile};
pub use passes::record::PassRecord;
pub use passes::split::SplitPart;
pub use region::region::Region;
pub use rewrite::found::Match;
pub use rewrite::matcher::SubgraphMatcher;
pub use rewrite::replace::{IntoMatcher, Rule, replace_pattern};
pub use rewrite::rewriter::{NearMiss, RewriteReport, Rewriter, Rewritten};
pub use rewrite::sources::{
    Source, SourcePartition, are_connected, sequential_partitions, source_partitions,
};
pub use rewrite::subgraph::{IntoSubgraph, Subgraph};
pub use save::json::{Json, JsonMap};
pub use save::loader::Loader;
pub use save::meta::SavedMeta;
pub use save::saver::Saver;
pub use trace::appending::GraphAppendingTracer;
pub use trace::ask::TracedExt;
pub use trace::assertion::Assertable;
pub use trace::blame::escape;
pub use trace::call_args::{CallArgs, IntoArgs};
pub use trace::compare;
pub use trace::concrete::{PH, Placeholder};
pub use trace::context::TraceContext;
pub use trace::convert::{FromValue, Output, Param};
pub use trace::dispatch::{CallForm, call_method, record_call, report_shape};
pub use trace::foreign::{IntoLeaf, ToForeign};
pub use trace::forward::Forward;
pub use trace::list::List;
pub use trace::mode::{Mode, ModeCall, ModeCallee, Next, with_mode};
pub use trace::operand::{Operand, binary, unary};
pub use trace::report::{Frozen, Report, ReportEntry};
pub use trace::returns::Returns;
pub use trace::root::{Outcome, Root, Rooted, Trace, TracedFn};
pub use trace::scalar::BesideInt;
pub use trace::scope::{is_recording, is_tracing, may_record};
pub use trace::tracer::{NoLeaves, SymbolicTracer, Tracer};
pub use value::data::{FromData, TensorData};
pub use value::device::Device;
pub use value::dtype::DType;
pub use value::handle::{NodeId, Proxy, TraceId};
pub use value::object::{Handle, Object, OperandRef, Traced, short_type_name};
pub use value::operator::Operator;
pub use value::symbol::{Bool, Float, Int, Sym};
pub use value::tree::Tree;
pub use value::value::{Arg, IntoValue, Value};

register_crate!(prelude = "fx_core::prelude");

/// What most programs use: `use fx_core::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Bool, ComponentExt, DType, Device, Error, Float, Forward, FromValue, Graph, GraphModule,
        IndexMap, Int, List, Module, NodeId, Op, PH, Proxy, Result, Tag, Trace, TraceContext,
        TracedExt, Tracer, Tree, Value, args, function, symbolic_trace, trace, traced, tree, wrap,
        wrap_fn,
    };
}

/// What macro expansions call; not for people.
#[doc(hidden)]
pub mod __private {
    pub use crate::codegen::tensor_source::TensorSpelling;
    pub use crate::ir::registry::Registration;
    pub use crate::ir::table::TableEntry;
    pub use crate::module::argument::{OfModule, module_of, module_value};
    pub use crate::module::parts::below;
    pub use crate::module::registry::ModuleType;
    pub use crate::module::skipped::{
        Skipped, WithDefault, WithoutDefault, known_fields, no_variant, variant,
    };
    pub use crate::save::file::write as write_file;
    pub use crate::save::meta::MetaType;
    pub use crate::trace::assertion::{Claim, assert_traced, claim};
    pub use crate::trace::call_args::{argument_error, arity_error};
    pub use crate::trace::convert::{Held, fields, hold, tuple_fields};
    pub use crate::trace::dispatch::{CallForm, call_module, record};
    pub use crate::trace::foreign::{into_leaf, to_foreign};
    pub use crate::value::data::TensorType;
    pub use inventory;
    pub use std::borrow::Cow;

    /// The type of a function item.
    pub fn type_of<F: 'static>(_: &F) -> std::any::TypeId {
        std::any::TypeId::of::<F>()
    }
}

/// The examples of `docs/errors.md`, compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/errors.md")]
struct Errors;
