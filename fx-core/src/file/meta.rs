//! Entries of nodes in files: `SavedMeta`, the registry of such types, and the built-in ones.
//!
//! Invariant: entries are written in order of their names, so that equal nodes give equal bytes.

use std::any::{Any, TypeId};
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::arguments::{from_argument, to_argument};
use super::json::{self, Excerpt, Json, JsonMap};
use super::names::returned;
use super::value_meta::{from_value_meta, to_value_meta};
use crate::error::{Error, Result};
use crate::former::known;
use crate::ir::meta::{Entry, Meta};
use crate::ir::method::RecordedMethod;
use crate::ir::registry;
use crate::ir::returned::{Returned, ReturnedPart};
use crate::ir::unnamed::Unnamed;
use crate::ir::value_meta::ValueMeta;
use crate::shapes::relied::ReliedOn;
use crate::submit::REGISTRY_HINT;

/// A type of entries that files keep; register it with [`register_meta!`](crate::register_meta).
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::file::{Json, SavedMeta};
/// use fx_core::ir::{Meta, MetaPolicy};
/// #[derive(Debug, PartialEq)]
/// struct Stage(u64);
/// impl Meta for Stage {
///     const ON_COPY: MetaPolicy = MetaPolicy::Copy;
///     const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
/// }
/// impl SavedMeta for Stage {
///     const NAME: &'static str = "my_crate::Stage";
///     fn to_saved(&self) -> Result<Json> { Ok(self.0.into()) }
///     fn from_saved(saved: &Json) -> Result<Self> {
///         Ok(Stage(saved.as_u64().ok_or_else(|| Error::msg("expected a number"))?))
///     }
/// }
/// fx_core::register_meta!(Stage);
///
/// let mut gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
/// let id = gm.graph().nodes().next().ok_or_else(|| Error::msg("it has nodes"))?.id();
/// gm.graph_mut().node_mut(id)?.set_meta(Stage(2));
/// let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
/// assert_eq!(loaded.graph().nodes().next().and_then(|node| node.meta()), Some(&Stage(2)));
/// # Ok::<(), Error>(())
/// ```
pub trait SavedMeta: Meta + Sized {
    /// Its permanent name in files: the type's first path.
    const NAME: &'static str;

    /// Returns the JSON that a file stores for it.
    ///
    /// # Errors
    /// Returns an error if it cannot be saved.
    fn to_saved(&self) -> Result<Json>;

    /// Restores the entry from [`to_saved`](SavedMeta::to_saved)'s result.
    ///
    /// # Errors
    /// Returns an error if it is not such an entry: a file may contain anything.
    fn from_saved(saved: &Json) -> Result<Self>;
}

/// One type of entries, submitted by [`register_meta!`](crate::register_meta).
#[derive(Debug)]
pub struct MetaType {
    name: &'static str,
    ty: fn() -> TypeId,
    save: fn(&dyn Any) -> Option<Result<Json>>,
    load: fn(&Json) -> Result<Entry>,
}

impl MetaType {
    /// Creates the registration of a type.
    pub const fn of<T: SavedMeta>() -> Self {
        MetaType {
            name: T::NAME,
            ty: TypeId::of::<T>,
            save: |entry| entry.downcast_ref::<T>().map(T::to_saved),
            load: |saved| T::from_saved(saved).map(Entry::of),
        }
    }
}

crate::__private::table! { (crate) MetaType }
crate::__private::submit! { MetaType, MetaType::of::<ValueMeta>() }
crate::__private::submit! { MetaType, MetaType::of::<ReliedOn>() }
crate::__private::submit! { MetaType, MetaType::of::<Returned>() }
crate::__private::submit! { MetaType, MetaType::of::<RecordedMethod>() }
crate::__private::submit! { MetaType, MetaType::of::<Unnamed>() }

#[derive(Default)]
pub(crate) struct Tables {
    by_name: FxHashMap<&'static str, Vec<&'static MetaType>>,
    by_type: FxHashMap<TypeId, &'static MetaType>,
}

/// All types of entries, once a file is written or read.
static TABLES: OnceLock<Tables> = OnceLock::new();

/// All types of entries of the program. A program that writes and reads no files does not hold them.
pub(crate) fn open() -> &'static Tables {
    TABLES.get_or_init(|| {
        let mut tables = Tables::default();
        for entry in fx_registry::entries::<MetaType>() {
            // Several crates may register the same type.
            if tables.by_type.insert((entry.ty)(), entry).is_none() {
                tables.by_name.entry(entry.name).or_default().push(entry);
            }
        }
        tables
    })
}

fn find(tables: &Tables, name: &str) -> Result<&'static MetaType> {
    match known(&tables.by_name, name).map(Vec::as_slice) {
        Some([entry]) => Ok(entry),
        Some([_, _, ..]) => Err(Error::saved(format_args!(
            "two types of entries are registered as {}: give one another `SavedMeta::NAME`",
            Excerpt(name)
        ))),
        _ => Err(Error::saved(format_args!(
            "no type of entries is registered as {}: link its crate in (`use its_crate as _;`), or register it with `fx_core::register_meta!`{REGISTRY_HINT}",
            Excerpt(name)
        ))),
    }
}

/// The entries of a node or a module as JSON, as far as their types are registered.
pub(crate) fn from_entries<'e>(
    entries: impl Iterator<Item = (TypeId, &'e dyn Any)>,
) -> Result<Option<Json>> {
    // A module may save modules whether its program writes files or not: who makes a saver opens the table.
    let Some(tables) = TABLES.get() else {
        return Err(Error::saved(
            "a graph module is saved by `save` or `to_bytes`, as a whole",
        ));
    };
    let mut saved: Vec<(&str, Json)> = Vec::new();
    for (ty, entry) in entries {
        let Some(known) = tables.by_type.get(&ty) else {
            continue;
        };
        let inside = |e: Error| e.inside(format_args!(".{}", known.name));
        find(tables, known.name).map_err(inside)?;
        if let Some(json) = (known.save)(entry) {
            saved.push((known.name, json.map_err(inside)?));
        }
    }
    saved.sort_by_key(|(name, _)| *name);
    let saved = saved.into_iter().map(|(name, json)| (name.into(), json));
    let fields: JsonMap = saved.collect();
    Ok((!fields.is_empty()).then_some(Json::Object(fields)))
}

/// Passes each entry of [`from_entries`] to `put`.
pub(crate) fn to_entries(saved: &Json, mut put: impl FnMut(Entry)) -> Result<()> {
    let tables = open();
    for (name, entry) in json::object(saved)? {
        find(tables, name)
            .and_then(|ty| (ty.load)(entry))
            .map(&mut put)
            .map_err(|e| e.inside(format_args!(".{name}")))?;
    }
    Ok(())
}

impl SavedMeta for ValueMeta {
    const NAME: &'static str = "fx_core::ir::ValueMeta";

    fn to_saved(&self) -> Result<Json> {
        from_value_meta(self, 0)
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        to_value_meta(saved, 0)
    }
}

impl SavedMeta for ReliedOn {
    const NAME: &'static str = "fx_core::shapes::ReliedOn";

    fn to_saved(&self) -> Result<Json> {
        from_value_meta(self.meta(), 0)
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        to_value_meta(saved, 0).map(ReliedOn::new)
    }
}

impl SavedMeta for Unnamed {
    const NAME: &'static str = "fx_core::ir::Unnamed";

    fn to_saved(&self) -> Result<Json> {
        let parts = self.0.iter();
        Ok(parts
            .map(|(path, what)| Json::Array(vec![Json::from(&**path), Json::from(&**what)]))
            .collect())
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let part = |saved: &Json| match json::array(saved)? {
            [path, what] => Ok((json::text(path)?.into(), json::text(what)?.into())),
            _ => Err(json::expected("a path and what is there", saved)),
        };
        json::items(saved, part).map(Unnamed)
    }
}

impl SavedMeta for Returned {
    const NAME: &'static str = "fx_core::Returned";

    fn to_saved(&self) -> Result<Json> {
        let no_node = |_| Err(Error::saved("a structure has no node"));
        let parts = self.0.iter().map(|part| {
            let mut fields = JsonMap::new();
            fields.insert(returned::MODULE.into(), Json::from(&*part.module));
            fields.insert(returned::CALL.into(), Json::from(part.call));
            fields.insert(
                returned::WHOLE.into(),
                from_argument(&part.whole, &no_node)?,
            );
            fields.insert(returned::AT.into(), Json::from(part.at.to_vec()));
            Ok(Json::Object(fields))
        });
        parts.collect()
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let number = |n: &Json| {
            let number = n.as_u64().and_then(|n| u32::try_from(n).ok());
            number.ok_or_else(|| json::expected("a number", n))
        };
        let no_node = |_: &str| Err(Error::saved("a structure has no node"));
        let parts = json::items(saved, |part| {
            let fields = json::object(part)?;
            json::known_names(fields, &returned::ALL)?;
            Ok(ReturnedPart {
                module: json::part(fields, returned::MODULE, json::text)?.into(),
                call: json::part(fields, returned::CALL, number)?,
                whole: json::part(fields, returned::WHOLE, |whole| {
                    to_argument(whole, 0, &no_node)
                })?,
                at: json::part(fields, returned::AT, |at| json::items(at, number))?.into(),
            })
        })?;
        Ok(Returned(parts.into()))
    }
}

impl SavedMeta for RecordedMethod {
    const NAME: &'static str = "fx_core::RecordedMethod";

    fn to_saved(&self) -> Result<Json> {
        Ok(Json::from(self.0.path()))
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let path = json::text(saved)?;
        let function = registry::function(path)?;
        function.map(RecordedMethod).ok_or_else(|| {
            Error::saved(format_args!(
                "no function is registered as {}: link its crate in{REGISTRY_HINT}",
                Excerpt(path)
            ))
        })
    }
}

/// Registers a type of entries, a [`SavedMeta`](crate::file::SavedMeta): files keep the entries
/// that nodes have.
///
/// ```
/// # use fx_core::Result;
/// # use fx_core::file::{Json, SavedMeta};
/// # use fx_core::ir::{Meta, MetaPolicy};
/// #[derive(Debug)]
/// struct Pinned;
/// impl Meta for Pinned {
///     const ON_COPY: MetaPolicy = MetaPolicy::Copy;
///     const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
/// }
/// impl SavedMeta for Pinned {
///     const NAME: &'static str = "my_crate::Pinned";
///     fn to_saved(&self) -> Result<Json> { Ok(Json::Null) }
///     fn from_saved(_: &Json) -> Result<Self> { Ok(Pinned) }
/// }
/// fx_core::file::register_meta!(Pinned);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! register_meta {
    ($ty:ty $(,)?) => {
        $crate::__private::submit! {
            MetaType, $crate::__private::MetaType::of::<$ty>()
        }
    };
}
