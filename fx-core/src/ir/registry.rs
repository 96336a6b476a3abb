//! The registry: every linked `#[wrap]` function and method, found by path or by method name.

use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use rustc_hash::FxHashMap;

use super::function::{DynamicKernel, Function, FunctionDef, name_of};
use super::op::Op;
use super::signature::ParamSpec;
use crate::error::{Error, Result};
use crate::former::known;
use crate::value::value::Value;

/// One entry, submitted by `#[wrap]`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Registration(pub Function);

crate::__private::table! { (crate) Registration }

/// The path of a method, submitted by `#[wrap]`. It names no code, so that a program may ask how many types have a method
/// without holding the methods.
#[doc(hidden)]
#[derive(Debug)]
pub struct MethodPath(pub &'static str);

crate::__private::table! { (crate) MethodPath }

struct Tables {
    by_path: FxHashMap<&'static str, Vec<Function>>,
    methods: FxHashMap<&'static str, Vec<Function>>,
}

/// All functions of the program, once something was looked up by its path or by a name that is not of this program.
static ALL: OnceLock<Tables> = OnceLock::new();

/// All functions of the program. A program that never calls this holds only the functions that it calls.
fn all() -> &'static Tables {
    ALL.get_or_init(|| {
        let mut tables = Tables {
            by_path: FxHashMap::default(),
            methods: FxHashMap::default(),
        };
        for Registration(function) in fx_registry::entries::<Registration>() {
            tables
                .by_path
                .entry(function.path())
                .or_default()
                .push(*function);
            if function.def().receiver.is_some() {
                tables
                    .methods
                    .entry(function.name())
                    .or_default()
                    .push(*function);
            }
        }
        // Registrations are in link order, which is arbitrary.
        for methods in tables.methods.values_mut() {
            methods.sort_by_key(|method| method.path());
        }
        tables
    })
}

/// Makes the methods known that an op of a user's own names.
pub(crate) fn open_for(op: &Op) {
    if matches!(op, Op::CallMethod(_)) {
        open();
    }
}

/// Makes all methods of the program known: a user names one.
pub(crate) fn open() {
    all();
}

/// The function registered under a path.
///
/// # Errors
/// Returns an error if two functions claim the path.
///
/// ```
/// let add = fx_core::ir::registry::function("fx_core::operator::add")?;
/// assert_eq!(add.map(|f| f.name()), Some("add"));
/// # Ok::<(), fx_core::Error>(())
/// ```
pub fn function(path: &str) -> Result<Option<Function>> {
    function_in(all(), path)
}

/// Same as [`function`], where every program comes by that has modules: `None` until the functions are known, as they are
/// for one that writes files.
pub(crate) fn function_if_known(path: &str) -> Result<Option<Function>> {
    match ALL.get() {
        Some(all) => function_in(all, path),
        None => Ok(None),
    }
}

fn function_in(all: &Tables, path: &str) -> Result<Option<Function>> {
    match known(&all.by_path, path).map(Vec::as_slice) {
        None | Some([]) => Ok(dynamic().get(path).copied()),
        Some([function]) => Ok(Some(*function)),
        Some(_) => Err(Error::taken(
            path,
            format_args!(
                "two functions are registered as `{path}`: give one another path with #[wrap(path = \"..\")]"
            ),
        )),
    }
}

/// The functions created at run time, by path.
fn dynamic() -> MutexGuard<'static, FxHashMap<&'static str, Function>> {
    static DYNAMIC: LazyLock<Mutex<FxHashMap<&'static str, Function>>> =
        LazyLock::new(Mutex::default);
    DYNAMIC.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Function {
    /// Creates a function at run time from a path, parameters, and a closure that takes one value
    /// per parameter. It is recorded like a `#[wrap]` function, runs, prints, and can have entries
    /// in tables; it is pure, so equal calls may be merged. A graph that calls it can be neither
    /// saved nor written as source.
    ///
    /// A path keeps its function until the process ends.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::args;
    /// use fx_core::ir::{Function, ParamSpec};
    /// let by = 3.0;
    /// let scale = Function::dynamic("plugin::scale", [ParamSpec::of_text("x", "Float")], move |args| {
    ///     Ok(Value::Float(f64::from_value(args[0].clone())? * by))
    /// })?;
    /// let gm = symbolic_trace(traced!(move |x: Float| Float::from_value(scale.call(args![x])?)? + 1.0))?;
    /// assert!(gm.graph().to_string().contains("call_function[target=plugin::scale](args = (%x,)"));
    /// assert_eq!(gm.forward::<f64>(2.0)?, 7.0);
    /// let error = gm.to_bytes().unwrap_err().to_string();
    /// assert!(error.contains("%scale") && error.contains("#[wrap]"), "{error}");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the path already has a function.
    pub fn dynamic(
        path: &str,
        params: impl IntoIterator<Item = ParamSpec>,
        run: impl Fn(&[&Value]) -> Result<Value> + Send + Sync + 'static,
    ) -> Result<Function> {
        let known = all().by_path.contains_key(path);
        let mut dynamic = dynamic();
        if known || dynamic.contains_key(path) {
            return Err(Error::taken(
                path,
                format_args!(
                    "a function `{path}` exists: keep it and call it again, or give this one another path"
                ),
            ));
        }
        let never = |_: &[&Value], _: &mut Value| Err(Error::msg("a closure runs instead"));
        // One per path, kept until the process ends.
        let path: &'static str = Box::leak(path.into());
        let params: &'static [ParamSpec] = Box::leak(params.into_iter().collect());
        let run: &'static DynamicKernel = Box::leak(Box::new(run));
        let def = FunctionDef::new(path, params, never).dynamic(run);
        let function = Function::new(Box::leak(Box::new(def)));
        dynamic.insert(path, function);
        Ok(function)
    }
}

/// The methods with this name, one per type that has it, in the order of their paths: those of the program, and until
/// something is looked up by name, those that graphs call.
pub fn methods(name: &str) -> &'static [Function] {
    match ALL.get() {
        Some(all) if cfg!(feature = "registry") => all.methods.get(name).map_or(&[], Vec::as_slice),
        _ => called().get(name).copied().unwrap_or_default(),
    }
}

/// Whether several types of the program have a method of this name.
pub(crate) fn is_of_several(name: &str) -> bool {
    if !cfg!(feature = "registry") {
        return methods(name).len() > 1;
    }
    static SEVERAL: LazyLock<FxHashMap<&'static str, bool>> = LazyLock::new(|| {
        let mut several = FxHashMap::default();
        for MethodPath(path) in fx_registry::entries::<MethodPath>() {
            let more = several.contains_key(name_of(path));
            several.insert(name_of(path), more);
        }
        several
    });
    SEVERAL.get(name) == Some(&true)
}

/// Makes a method known by its name, because a graph calls it.
pub(crate) fn note_method(method: Function) {
    if methods(method.name()).contains(&method) {
        return;
    }
    let mut called = CALLED.write().unwrap_or_else(PoisonError::into_inner);
    let known = called.entry(method.name()).or_default();
    if !known.contains(&method) {
        let mut all = [*known, &[method]].concat();
        all.sort_by_key(|method| method.path());
        // At most once per method of the program.
        *known = Box::leak(all.into());
    }
}

/// The methods that graphs call, by name.
static CALLED: LazyLock<RwLock<FxHashMap<&'static str, &'static [Function]>>> =
    LazyLock::new(RwLock::default);

fn called() -> RwLockReadGuard<'static, FxHashMap<&'static str, &'static [Function]>> {
    CALLED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Every registered function, in the order of their paths.
pub fn functions() -> Vec<Function> {
    let mut all: Vec<Function> = all().by_path.values().flatten().copied().collect();
    all.sort_by_key(|f| f.path());
    all
}
