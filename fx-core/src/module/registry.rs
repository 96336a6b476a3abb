//! The registry of module types: how type paths in a saved file become modules.
//!
//! Invariant: a path names one type, and a type is saved under one path.

use std::any::{Any, TypeId};
use std::sync::{LazyLock, OnceLock};

use rustc_hash::FxHashMap;

use super::module::Module;
use super::walk::Component;
use crate::error::{Error, Result};
use crate::file::json::{self, Excerpt, Json, JsonMap};
use crate::file::loader::Loader;
use crate::file::meta;
use crate::file::names::module::{CONFIG, TYPE};
use crate::file::saver::Saver;
use crate::former::known;
use crate::ir::registry as functions;
use crate::submit::REGISTRY_HINT;
use crate::value::object::short_type_name;

type Load = fn(&Json, &mut Loader<'_>) -> Result<Box<dyn Module>>;

/// One entry, submitted by `#[trace]` and by [`register_module!`](crate::register_module).
#[derive(Debug)]
pub struct ModuleType {
    path: fn() -> &'static str,
    ty: fn() -> TypeId,
    load: Load,
    /// Whether files are written with this path; otherwise only older files have it.
    current: bool,
}

impl ModuleType {
    /// The entry of a type, under its full name.
    pub const fn of<M: Module>() -> Self {
        ModuleType::named::<M>(std::any::type_name::<M>)
    }

    /// The entry of a type, under a custom path.
    pub const fn named<M: Module>(path: fn() -> &'static str) -> Self {
        ModuleType {
            path,
            ty: TypeId::of::<M>,
            load: loaded::<M>,
            current: true,
        }
    }

    /// The entry of a type under a path that older files have.
    pub const fn formerly<M: Module>(path: fn() -> &'static str) -> Self {
        ModuleType {
            current: false,
            ..ModuleType::named::<M>(path)
        }
    }
}

/// How values of a type are modules, submitted beside its [`ModuleType`]. What is submitted says nothing of a type that has
/// an entry of its own ([`Component::module_entry`]), so that a program may ask without holding the modules.
#[derive(Debug)]
pub struct ModuleOf {
    ty: fn() -> TypeId,
    as_module: fn(&dyn Any) -> Option<&dyn Module>,
    as_module_mut: fn(&mut dyn Any) -> Option<&mut dyn Module>,
}

impl ModuleOf {
    /// The entry of a type.
    pub const fn of<M: Module>() -> Self {
        ModuleOf {
            ty: TypeId::of::<M>,
            as_module: of_any::<M>,
            as_module_mut: of_any_mut::<M>,
        }
    }

    /// The entry of a type that has one itself, which nobody looks up: one for all such types, so that nothing of them is
    /// compiled for it.
    pub const NOTHING: ModuleOf = ModuleOf {
        ty: TypeId::of::<()>,
        as_module: |_| None,
        as_module_mut: |_| None,
    };
}

crate::__private::table! { (crate) ModuleOf }

// Functions instead of closures: what makes a function pointer of a closure is compiled too, once per type.

fn loaded<M: Module>(saved: &Json, loader: &mut Loader<'_>) -> Result<Box<dyn Module>> {
    match M::from_saved(saved, loader) {
        Ok(module) => Ok(Box::new(module)),
        Err(error) => Err(error),
    }
}

fn of_any<M: Module>(any: &dyn Any) -> Option<&dyn Module> {
    Some(any.downcast_ref::<M>()?)
}

fn of_any_mut<M: Module>(any: &mut dyn Any) -> Option<&mut dyn Module> {
    Some(any.downcast_mut::<M>()?)
}

crate::__private::table! { (crate) ModuleType }

#[derive(Default)]
struct Tables {
    by_path: FxHashMap<&'static str, Vec<&'static ModuleType>>,
    /// The path under which a type is saved.
    paths: FxHashMap<TypeId, &'static str>,
}

/// All types of modules, once a file is written or read, or source is.
static TABLES: OnceLock<Tables> = OnceLock::new();

/// All types of modules of the program. A program that does not call this holds only those that it makes.
fn tables() -> &'static Tables {
    TABLES.get_or_init(|| {
        let mut tables = Tables::default();
        for entry in fx_registry::entries::<ModuleType>() {
            let path = (entry.path)();
            let claims = tables.by_path.entry(path).or_default();
            // Several crates may register the same type.
            if claims.iter().all(|other| (other.ty)() != (entry.ty)()) {
                claims.push(entry);
            }
            if entry.current {
                // Of several paths, always choose the same one, whatever the link order.
                let chosen = tables.paths.entry((entry.ty)()).or_insert(path);
                *chosen = (*chosen).min(path);
            }
        }
        tables
    })
}

fn find<'t>(tables: &'t Tables, path: &str) -> Result<&'t ModuleType> {
    match known(&tables.by_path, path).map(Vec::as_slice) {
        Some([entry]) => Ok(entry),
        Some([_, _, ..]) => Err(Error::saved(format_args!(
            "two module types are registered as {}: give one another path with #[trace(path = \"..\")]",
            Excerpt(path)
        ))),
        _ => Err(Error::saved(format_args!(
            "no module type is registered as {}: link its crate in (`use its_crate as _;`); register a generic type, or one that has moved, with `fx_core::register_module!`{REGISTRY_HINT}",
            Excerpt(path)
        ))),
    }
}

/// The path under which a module's type is registered.
pub(crate) fn path_of(module: &dyn Module) -> Option<&'static str> {
    path_in(tables(), module)
}

fn path_in(tables: &Tables, module: &dyn Module) -> Option<&'static str> {
    let any: &dyn Any = module;
    tables.paths.get(&any.type_id()).copied()
}

/// What modules are saved with.
pub(crate) fn saver() -> Saver {
    tables();
    meta::open();
    functions::open();
    Saver::default()
}

/// A component as a module, if it has a `forward`, and its type is not generic or registered.
pub(crate) fn as_module(component: &dyn Component) -> Option<&dyn Module> {
    let any = component.as_any()?;
    (entry_of(component, any)?.as_module)(any)
}

/// Same as [`as_module`], for change in place.
pub(crate) fn as_module_mut(component: &mut dyn Component) -> Option<&mut dyn Module> {
    let entry = entry_of(component, component.as_any()?)?;
    (entry.as_module_mut)(component.as_any_mut()?)
}

/// How a component, which is `any` as its concrete type, is a module.
fn entry_of(component: &dyn Component, any: &dyn Any) -> Option<&'static ModuleOf> {
    static BY_TYPE: LazyLock<FxHashMap<TypeId, &'static ModuleOf>> = LazyLock::new(|| {
        let entries = fx_registry::entries::<ModuleOf>();
        entries.map(|entry| ((entry.ty)(), entry)).collect()
    });
    match component.module_entry() {
        Some(entry) => entry.downcast_ref(),
        None => BY_TYPE.get(&any.type_id()).copied(),
    }
}

/// A module as JSON: the path of its type, and what the type saves of it.
pub(crate) fn save_module(module: &dyn Module, saver: &mut Saver) -> Result<JsonMap> {
    // A module may save modules whether its program writes files or not: who makes a saver opens the table.
    let tables = TABLES.get();
    let path = tables.and_then(|tables| Some((tables, path_in(tables, module)?)));
    let Some((tables, path)) = path else {
        let name = module.type_name();
        return Err(Error::saved(format_args!(
            "the module type `{name}` is not registered, so that a file with it could not be loaded: write `fx_core::register_module!({});`{REGISTRY_HINT}",
            short_type_name(name)
        )));
    };
    find(tables, path)?;
    let config = module
        .to_saved(saver)
        .map_err(|e| e.inside(format_args!(".{CONFIG}")))?;
    let mut fields = JsonMap::new();
    fields.insert(TYPE.into(), Json::from(path));
    fields.insert(CONFIG.into(), config);
    Ok(fields)
}

/// Loads the module saved by [`save_module`].
pub(crate) fn load_module(fields: &JsonMap, loader: &mut Loader<'_>) -> Result<Box<dyn Module>> {
    let entry = json::part(fields, TYPE, |path| find(tables(), json::text(path)?))?;
    json::part(fields, CONFIG, |config| (entry.load)(config, loader))
}

/// Registers a module type that `#[trace]` does not register: a generic type, once for each
/// instantiation that files may contain, or a type that has another name in older files.
///
/// ```
/// use fx_core::prelude::*;
/// #[derive(Module)]
/// struct Residual<M> { inner: M }
/// #[trace(leaf)]
/// impl<M: Module> Residual<M> {
///     fn forward(&self, x: Float) -> Result<Float> { x + self.inner.forward::<Float>(x)? }
/// }
/// # #[derive(Module)]
/// # struct Scale { by: f64 }
/// # #[trace]
/// # impl Scale { fn forward(&self, x: Float) -> Result<Float> { x * self.by } }
/// fx_core::register_module!(Residual<Scale>);
/// // Files that were written when the type was called otherwise load too:
/// fx_core::register_module!(Residual<Scale>, formerly = "my_crate::SkipConnection");
/// # Ok::<(), Error>(())
/// ```
#[macro_export]
macro_rules! register_module {
    ($ty:ty $(,)?) => {
        $crate::register_module!(@entry $ty, $crate::__private::ModuleType::of::<$ty>());
    };
    ($ty:ty, formerly = $path:expr $(,)?) => {
        $crate::register_module!(@entry $ty, $crate::__private::ModuleType::formerly::<$ty>(|| $path));
    };
    (@entry $ty:ty, $entry:expr) => {
        $crate::__private::submit! { ModuleType, $entry }
        $crate::__private::submit! {
            ModuleOf, {
                use $crate::__private::Unsaid as _;
                $crate::__private::Submitted::<$ty>::OF
            }
        }
    };
}
