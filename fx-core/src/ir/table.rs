//! `FunctionTable`: what is known about functions besides their definition, provided by any crate.
//!
//! Invariant: an entry belongs to one function, never to another function with the same name.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::function::Function;
use super::registry;
use crate::error::{Error, Result};

/// Knowledge about functions: one entry for each function about which something is known, such as
/// the cost of a call, its decomposition, or its form in another format.
///
/// A table is built by hand, or holds the entries that linked crates registered with
/// [`function_table!`](crate::function_table), for their own functions or for others':
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::{function_table, operator};
/// use fx_core::ir::FunctionTable;
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
///
/// /// What a call costs.
/// struct Cost(u32);
/// function_table! { Cost {
///     function!(double) => Cost(2),
///     operator::add => Cost(1),
/// } }
///
/// let costs = FunctionTable::<Cost>::registered()?;
/// let gm = symbolic_trace(traced!(|x: Float| double(x)? + 1.0))?;
/// let called = gm.graph().nodes().filter_map(|node| gm.call(node).ok()?.function());
/// assert_eq!(called.filter_map(|function| costs.get(function)).map(|cost| cost.0).sum::<u32>(), 3);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct FunctionTable<T> {
    entries: FxHashMap<Function, T>,
}

impl<T> Default for FunctionTable<T> {
    fn default() -> Self {
        FunctionTable {
            entries: FxHashMap::default(),
        }
    }
}

impl<T> FunctionTable<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the table with an entry added; it replaces a former entry of the function.
    #[must_use]
    pub fn with(mut self, function: Function, entry: T) -> Self {
        self.insert(function, entry);
        self
    }

    /// Adds an entry; returns the function's former one.
    pub fn insert(&mut self, function: Function, entry: T) -> Option<T> {
        self.entries.insert(function, entry)
    }

    /// The entry of a function.
    pub fn get(&self, function: Function) -> Option<&T> {
        self.entries.get(&function)
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of functions with an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All entries, in the order of the function paths.
    pub fn iter(&self) -> impl Iterator<Item = (Function, &T)> {
        let mut all: Vec<(Function, &T)> = self.entries.iter().map(|(f, t)| (*f, t)).collect();
        all.sort_unstable_by_key(|(function, _)| function.path());
        all.into_iter()
    }
}

impl<T> Extend<(Function, T)> for FunctionTable<T> {
    /// New entries replace existing ones.
    fn extend<I: IntoIterator<Item = (Function, T)>>(&mut self, entries: I) {
        self.entries.extend(entries);
    }
}

impl<T: fmt::Debug> fmt::Debug for FunctionTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self
            .iter()
            .map(|(function, entry)| (function.path(), entry));
        f.debug_map().entries(entries).finish()
    }
}

/// An entry of a table, submitted by [`function_table!`](crate::function_table).
pub struct TableEntry {
    /// The type of the table's entries.
    pub table: fn() -> TypeId,
    /// The function it is for.
    pub function: fn() -> Function,
    /// The entry.
    pub entry: fn() -> Box<dyn Any + Send + Sync>,
}

/// Same as [`TableEntry`], for tables that every program asks about the functions that it calls: it names no function's
/// code, so that the program holds no other functions for it.
pub struct PathEntry {
    /// The type of the table's entries.
    pub table: fn() -> TypeId,
    /// The path of the function that it is for.
    pub path: &'static str,
    /// The entry.
    pub entry: fn() -> Box<dyn Any + Send + Sync>,
}

crate::__private::table! { (crate) TableEntry }
crate::__private::table! { (crate) PathEntry }

/// A complete table, or the path of a function with two entries.
type Registered = std::result::Result<&'static (dyn Any + Send + Sync), &'static str>;

/// Complete tables, by their own types.
static REGISTERED: LazyLock<Mutex<FxHashMap<TypeId, Registered>>> = LazyLock::new(Mutex::default);

/// A table of entries of type `T`, put together once in a process.
fn registered<T: 'static, Table: Any + Send + Sync>(
    put_together: fn() -> std::result::Result<Table, &'static str>,
) -> Result<&'static Table> {
    let mut tables = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let table = tables.entry(TypeId::of::<Table>()).or_insert_with(|| {
        // Once per type of table.
        put_together().map(|table| Box::leak(Box::new(table)) as _)
    });
    let table = table.map_err(|path| {
        Error::ambiguous(
            path,
            format_args!(
                "two entries of type `{}` are registered for `{path}`: remove one of them",
                std::any::type_name::<T>()
            ),
        )
    })?;
    Ok(table
        .downcast_ref()
        .expect("a table is kept under its own type"))
}

fn entry<T: Any>(entry: fn() -> Box<dyn Any + Send + Sync>) -> T {
    let entry = entry().downcast::<T>();
    *entry.expect("an entry is of its table's type")
}

/// Entries by the paths of functions.
pub(crate) type ByPath<T> = FxHashMap<&'static str, T>;

/// The entries of a type of which a program holds no functions.
///
/// # Errors
/// Returns an error if two entries are registered for one function.
pub(crate) fn by_path<T: Any + Send + Sync>() -> Result<&'static ByPath<T>> {
    registered::<T, ByPath<T>>(|| {
        let mut table = ByPath::<T>::default();
        let all = fx_registry::entries::<PathEntry>();
        for one in all.filter(|one| (one.table)() == TypeId::of::<T>()) {
            if table.insert(one.path, entry(one.entry)).is_some() {
                return Err(one.path);
            }
        }
        Ok(table)
    })
}

impl<T: Any + Send + Sync> FunctionTable<T> {
    /// The entries of this type that linked crates have registered. The table is built once per
    /// process.
    ///
    /// # Errors
    /// Returns an error if two entries are registered for one function.
    pub fn registered() -> Result<&'static FunctionTable<T>> {
        registered::<T, FunctionTable<T>>(FunctionTable::put_together)
    }

    fn put_together() -> std::result::Result<FunctionTable<T>, &'static str> {
        let mut table = FunctionTable::<T>::new();
        let all = fx_registry::entries::<TableEntry>();
        for one in all.filter(|one| (one.table)() == TypeId::of::<T>()) {
            let function = (one.function)();
            if table.insert(function, entry(one.entry)).is_some() {
                return Err(function.path());
            }
        }
        let all = fx_registry::entries::<PathEntry>();
        for one in all.filter(|one| (one.table)() == TypeId::of::<T>()) {
            // A function that has no path of its own, since it is generic, is in no table of all functions.
            let Ok(Some(function)) = registry::function(one.path) else {
                continue;
            };
            if table.insert(function, entry(one.entry)).is_some() {
                return Err(function.path());
            }
        }
        Ok(table)
    }
}

/// Registers entries of a [`FunctionTable`](crate::ir::FunctionTable): the type of the entries, and
/// an entry for each function.
///
/// A function has one entry per type. The functions may belong to other crates.
#[macro_export]
macro_rules! function_table {
    ($ty:ty { $($function:expr => $entry:expr),* $(,)? }) => {$(
        $crate::__private::table_entry! { ($crate) ($ty) ($function) ($entry) }
    )*};
}
