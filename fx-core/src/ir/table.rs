//! `FunctionTable`: what is known of functions besides their definition, told by any crate.
//!
//! Invariant: an entry is its function's, never that of another function with the same name.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::function::Function;
use crate::error::{Error, Result};

/// Knowledge about functions: an entry for each function that something is known of, such as what a call costs, what it is
/// made of, or how another format writes it.
///
/// A table is made by hand, or holds what linked crates have registered with
/// [`function_table!`](crate::function_table), beside their functions or for those of others:
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

    /// The table with an entry more; a former one of the function goes.
    #[must_use]
    pub fn with(mut self, function: Function, entry: T) -> Self {
        self.insert(function, entry);
        self
    }

    /// Puts an entry in; gives the function's former one.
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

    /// How many functions have an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All entries, in the order of the functions' paths.
    pub fn iter(&self) -> impl Iterator<Item = (Function, &T)> {
        let mut all: Vec<(Function, &T)> = self.entries.iter().map(|(f, t)| (*f, t)).collect();
        all.sort_unstable_by_key(|(function, _)| function.path());
        all.into_iter()
    }
}

impl<T> Extend<(Function, T)> for FunctionTable<T> {
    /// Entries that come in win.
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
    /// Which table it is in.
    pub table: fn() -> TypeId,
    /// Whose entry it is.
    pub function: fn() -> Function,
    /// The entry.
    pub entry: fn() -> Box<dyn Any + Send + Sync>,
}

inventory::collect!(TableEntry);

/// A table that was put together, or the path of a function that it has two entries of.
type Registered = std::result::Result<&'static (dyn Any + Send + Sync), &'static str>;

static REGISTERED: LazyLock<Mutex<FxHashMap<TypeId, Registered>>> = LazyLock::new(Mutex::default);

impl<T: Any + Send + Sync> FunctionTable<T> {
    /// The entries of this type that linked crates have registered. The table is put together once for the process.
    ///
    /// # Errors
    /// When two entries are registered for one function.
    pub fn registered() -> Result<&'static FunctionTable<T>> {
        let mut tables = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tables
            .entry(TypeId::of::<T>())
            .or_insert_with(Self::put_together);
        let table = known.map_err(|path| {
            Error::ambiguous(
                path,
                format_args!(
                    "two entries of type `{}` are registered for `{path}`: remove one of them",
                    std::any::type_name::<T>()
                ),
            )
        })?;
        let table = table.downcast_ref::<FunctionTable<T>>();
        Ok(table.expect("a table is kept under its entries' type"))
    }

    fn put_together() -> Registered {
        let mut table = FunctionTable::<T>::new();
        for entry in inventory::iter::<TableEntry> {
            if (entry.table)() != TypeId::of::<T>() {
                continue;
            }
            let function = (entry.function)();
            let value = (entry.entry)().downcast::<T>();
            let value = *value.expect("an entry is of its table's type");
            if table.insert(function, value).is_some() {
                return Err(function.path());
            }
        }
        // Once for each type of entries.
        Ok(Box::leak(Box::new(table)))
    }
}

/// Registers entries of a [`FunctionTable`](crate::ir::FunctionTable): the type of the entries, and for each function its entry.
///
/// A function has one entry of a type. The functions may be those of other crates.
#[macro_export]
macro_rules! function_table {
    ($ty:ty { $($function:expr => $entry:expr),* $(,)? }) => {$(
        $crate::__private::inventory::submit! {
            $crate::__private::TableEntry {
                table: ::std::any::TypeId::of::<$ty>,
                function: || $function,
                entry: || {
                    let entry: $ty = $entry;
                    ::std::boxed::Box::new(entry)
                },
            }
        }
    )*};
}
