//! Modules: their traits, the hierarchy of children, parameters and buffers by path, and calls of
//! nodes.
//!
//! ```
//! use fx_core::prelude::*;
//! use fx_core::module::Module;
//! #[derive(Module)]
//! struct Scale { by: f64 }
//! #[trace]
//! impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
//! assert_eq!(Module::params(&Scale { by: 2.0 })[0].name, "x");
//! ```

pub(crate) mod argument;
pub(crate) mod attributes;
pub(crate) mod call;
pub(crate) mod containers;
pub(crate) mod forward;
pub(crate) mod hierarchy;
pub(crate) mod items;
#[allow(
    clippy::module_inception,
    reason = "the file is named after the trait it holds"
)]
pub(crate) mod module;
pub(crate) mod order;
pub(crate) mod parts;
pub(crate) mod path_pattern;
pub(crate) mod paths;
pub(crate) mod plain;
pub(crate) mod registry;
pub(crate) mod saved_fields;
pub(crate) mod skipped;
pub(crate) mod walk;

pub use self::argument::ModuleArg;
pub use self::attributes::Attributes;
pub use self::call::{Call, Callee};
pub use self::containers::MapKey;
pub use self::hierarchy::ComponentExt;
pub use self::items::Items;
pub use self::module::{IntoModule, Module, RunGraph};
pub use self::path_pattern::PathPattern;
pub use self::plain::Tag;
pub use self::walk::{
    Component, ComponentKey, TensorKind, Visitor, VisitorMut, Walk, WalkMut, walk, walk_mut,
};
