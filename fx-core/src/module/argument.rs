//! `ModuleArg`: a module as a value, for functions that take one.
//!
//! Invariant: it knows which module it is a copy of, so that a trace can find the module's path.

use std::any::Any;
use std::fmt;

use super::module::Module;
use super::walk::ComponentKey;
use crate::error::{Error, Result};
use crate::ir::param_type::{ParamType, TypeName, TypePart};
use crate::value::object::{Object, short_type_name};
use crate::value::value::Value;

/// A module as a function argument: a copy that shares the module's tensors. A `#[wrap]` function
/// takes it as `&Linear`; in a graph it is the value of a `get_attr` node that names a module.
///
/// ```
/// use fx_core::prelude::*;
/// #[derive(Module)]
/// struct Scale { by: f64 }
/// #[trace(leaf)]
/// impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
/// #[wrap]
/// fn twice(layer: &Scale, x: Float) -> Result<Float> { layer.forward(layer.forward(x)?) }
///
/// #[derive(Module)]
/// struct Net { scale: Scale }
/// #[trace]
/// impl Net { fn forward(&self, x: Float) -> Result<Float> { twice(&self.scale, x) } }
///
/// let mut gm = symbolic_trace(&Net { scale: Scale { by: 3.0 } })?;
/// let nodes = gm.graph().to_string();
/// assert!(nodes.contains("%scale : [num_users=1] = get_attr[target=scale]"), "{nodes}");
/// assert_eq!(gm.forward::<f64>(1.0)?, 9.0);
/// gm.submodule_as_mut::<Scale>("scale")?.by = 2.0;
/// assert_eq!(gm.forward::<f64>(1.0)?, 4.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct ModuleArg {
    module: Box<dyn Module>,
    of: ComponentKey,
}

impl ModuleArg {
    /// Copies a module.
    pub fn of(module: &dyn Module) -> Self {
        ModuleArg {
            module: module.duplicate_box(),
            of: ComponentKey::of_any(module),
        }
    }

    /// The module.
    pub fn module(&self) -> &dyn Module {
        &*self.module
    }

    /// The key of the module that it is a copy of.
    pub(crate) fn key(&self) -> ComponentKey {
        self.of
    }
}

impl fmt::Debug for ModuleArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.module().fmt(f)
    }
}

impl Object for ModuleArg {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn type_name(&self) -> &'static str {
        self.module().type_name()
    }
}

/// The parameter type of `&M`.
#[derive(Debug)]
pub struct OfModule<M>(std::marker::PhantomData<M>);

impl<M: Module> OfModule<M> {
    const OWNED: ParamType = ParamType::Named(TypeName::of::<M>());
    /// The type of the parameter.
    pub const TYPE: ParamType = ParamType::Reference(TypePart::Fixed(&Self::OWNED));
}

/// The module in a value, if it has the given type.
///
/// # Errors
/// Returns an error if the value is not such a module.
pub fn module_of<M: Module>(value: &Value) -> Result<&M> {
    let module = value.downcast_ref::<ModuleArg>().map(ModuleArg::module);
    let found = module.and_then(|module| (module as &dyn Any).downcast_ref());
    found.ok_or_else(|| {
        Error::expected(
            format_args!("`{}`", short_type_name(std::any::type_name::<M>())),
            value.describe(),
        )
    })
}

/// A module as a value.
pub fn module_value(module: &dyn Module) -> Value {
    Value::object(ModuleArg::of(module))
}
