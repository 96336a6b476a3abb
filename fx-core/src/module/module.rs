//! `Module`: a component with a `forward`, callable without knowing its type.

use std::any::Any;
use std::panic::Location;

use super::walk::Component;
use crate::error::Result;
use crate::ir::function::Effects;
use crate::ir::param_type::ParamType;
use crate::ir::signature::ParamSpec;
use crate::value::tree::Tree;
use crate::value::value::Value;

impl std::fmt::Debug for dyn Module {
    /// The type's name.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::value::object::short_type_name(self.type_name()))
    }
}

/// A component with a `forward`. `#[trace] impl` writes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "has no traced `forward`",
    note = "derive `Module` for the struct, and annotate the impl block that has `forward` with #[trace]"
)]
pub trait Module: Component + Any + Send + Sync {
    /// The parameters of `forward`.
    fn params(&self) -> &[ParamSpec];

    /// What `forward` returns inside of its `Result`, as written; empty where that is not known.
    fn returns(&self) -> &str {
        ""
    }

    /// The same as data; none where it is not known.
    fn result_type(&self) -> Option<ParamType> {
        None
    }

    /// Runs the body of `forward` on bound arguments, without asking a tracer.
    ///
    /// # Errors
    /// When an argument has the wrong type, or the body fails.
    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()>;

    /// Itself, as a trait object.
    fn as_module(&self) -> &dyn Module;

    /// A copy whose tensors share storage with this one's.
    fn duplicate_box(&self) -> Box<dyn Module>;

    /// Whether tracers record a call of it instead of going inside (`#[trace(leaf)]`).
    fn is_leaf(&self) -> bool {
        false
    }

    /// What running it does besides computing its result: drawing random numbers, updating statistics.
    fn effects(&self) -> Effects {
        Effects::PURE
    }

    /// Why source cannot have a call of it; `None` where it can.
    fn source_problem(&self) -> Option<&'static str> {
        None
    }

    /// Where its `forward` is written.
    fn location(&self) -> Option<&'static Location<'static>> {
        None
    }

    /// The structure of each parameter, where a graph has an input for each leaf of it; empty where every
    /// parameter is one input. A trace of the module flattens its arguments the same way.
    fn input_trees(&self) -> &[Tree] {
        &[]
    }

    /// Starts an edit that can be taken back, where the module keeps a journal; `false` where it does not, and a copy of it
    /// is put away instead.
    #[doc(hidden)]
    fn open_edit(&mut self) -> bool {
        false
    }

    /// Ends the innermost edit, and takes it back unless it is to `keep`.
    #[doc(hidden)]
    fn close_edit(&mut self, keep: bool) {
        let _ = keep;
    }

    /// The type's full name.
    fn type_name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }
}

impl<M: Module> From<M> for Box<dyn Module> {
    fn from(module: M) -> Self {
        Box::new(module)
    }
}
