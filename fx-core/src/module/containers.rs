//! Containers of components: options, lists, boxes, shared owners, maps and tuples.

use std::any::Any;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use indexmap::{Equivalent, IndexMap};

use super::module::Module;
use super::parts::{below, first_item, here_or_below, here_or_below_mut};
use super::plain::interned;
use super::registry::{load_module, save_module};
use super::saved_fields::save_field;
use super::walk::{Component, Walk, WalkMut};
use crate::error::{Error, Result};
use crate::file::json::{self, Json, JsonMap};
use crate::file::loader::Loader;
use crate::file::names::module::{CONFIG, TYPE};
use crate::file::saver::Saver;

impl<T: Component> Component for Option<T> {
    fn is_plain() -> bool {
        T::is_plain()
    }

    fn visit(&self, walk: &mut Walk<'_, '_>) {
        if let Some(inner) = self {
            if !T::is_plain() {
                walk.unnamed("an `Option`");
            }
            inner.visit(walk);
        }
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        if let Some(inner) = self {
            inner.visit_mut(walk);
        }
    }

    fn duplicate(&self) -> Self {
        self.as_ref().map(T::duplicate)
    }

    fn part(&self, path: &str) -> Option<&dyn Component> {
        self.as_ref()?.part(path)
    }

    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        self.as_mut()?.part_mut(path)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.as_ref()?.as_any()
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        self.as_mut()?.as_any_mut()
    }

    fn module_entry(&self) -> Option<&'static dyn Any> {
        self.as_ref()?.module_entry()
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let Some(inner) = self else {
            return Ok(Json::Null);
        };
        // The tag distinguishes values that would be read as `None`, or as this tag.
        Ok(match inner.to_saved(saver)? {
            Json::Null => json::tag("some", Json::Null),
            saved if matches!(json::tagged(&saved), Ok(("some", _))) => json::tag("some", saved),
            saved => saved,
        })
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        match (saved, json::tagged(saved)) {
            (Json::Null, _) => Ok(None),
            (_, Ok(("some", inner))) => T::from_saved(inner, loader).map(Some),
            _ => T::from_saved(saved, loader).map(Some),
        }
    }
}

/// A copy of each item. A loop, since adapters would be compiled for each type of module.
fn copies<T: Component>(items: &[T]) -> Vec<T> {
    let mut copies = Vec::with_capacity(items.len());
    for item in items {
        copies.push(item.duplicate());
    }
    copies
}

/// Saves a component as the next item of a list.
fn save_item(item: &dyn Component, items: &mut Vec<Json>, saver: &mut Saver) -> Result<()> {
    let saved = saver.item(items.len(), |saver| item.to_saved(saver))?;
    items.push(saved);
    Ok(())
}

macro_rules! list_component {
    ($([$($generics:tt)*] $t:ty, |$this:ident| $duplicate:expr, |$items:ident| $load:expr;)*) => {$(
        impl<T: Component, $($generics)*> Component for $t {
            fn is_plain() -> bool {
                T::is_plain()
            }

            fn visit(&self, walk: &mut Walk<'_, '_>) {
                if T::is_plain() {
                    return;
                }
                for (i, item) in self.iter().enumerate() {
                    walk.item(i, item);
                }
            }

            fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
                if T::is_plain() {
                    return;
                }
                for (i, item) in self.iter_mut().enumerate() {
                    walk.item(i, item);
                }
            }

            fn duplicate(&self) -> Self {
                let $this = self;
                $duplicate
            }

            fn part(&self, path: &str) -> Option<&dyn Component> {
                let (index, rest) = first_item(path)?;
                here_or_below(self.get(index)?, rest)
            }

            fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
                let (index, rest) = first_item(path)?;
                here_or_below_mut(self.get_mut(index)?, rest)
            }

            fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
                let mut items = Vec::with_capacity(self.len());
                for item in self {
                    save_item(item, &mut items, saver)?;
                }
                Ok(Json::Array(items))
            }

            fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
                let $items = loader.items(saved, T::from_saved)?;
                $load
            }
        }
    )*};
}

list_component! {
    [] Vec<T>, |this| copies(this), |items| Ok(items);
    [const N: usize] [T; N], |this| std::array::from_fn(|i| this[i].duplicate()),
        |items| items.try_into().map_err(|items: Vec<T>| {
            Error::saved(format_args!("expected {N} items, found {}", items.len()))
        });
}

/// The keys of a map of components: text that can be restored from a file.
#[diagnostic::on_unimplemented(
    message = "a map with `{Self}` as keys cannot be a field of a module",
    label = "is not text",
    note = "the names of children are `String`, `Arc<str>`, `Box<str>`, `&'static str`, or a type that implements `fx_core::module::MapKey`"
)]
pub trait MapKey: AsRef<str> + Clone + Eq + Hash {
    /// Creates the key from its text.
    ///
    /// # Errors
    /// Returns an error if the text is not a key.
    fn from_text(text: &str) -> Result<Self>;
}

macro_rules! map_keys {
    ($($t:ty),*) => {$(
        impl MapKey for $t {
            fn from_text(text: &str) -> Result<Self> {
                Ok(text.into())
            }
        }
    )*};
}
map_keys! { String, Arc<str>, Box<str> }

impl MapKey for &'static str {
    fn from_text(text: &str) -> Result<Self> {
        interned(text)
    }
}

/// A name to look up among keys that hash like their text.
struct Named<'n>(&'n str);

impl Hash for Named<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<K: MapKey> Equivalent<K> for Named<'_> {
    fn equivalent(&self, key: &K) -> bool {
        key.as_ref() == self.0
    }
}

/// The position of the item that a path leads into, and the rest of the path.
fn map_item<'p, K: MapKey, T, S: BuildHasher>(
    map: &IndexMap<K, T, S>,
    path: &'p str,
) -> Option<(usize, &'p str)> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    if let Some(at) = map.get_index_of(&Named(name)) {
        return Some((at, rest));
    }
    // A key may hash differently from its text, or contain a dot.
    let mut keys = map.keys().enumerate();
    keys.find_map(|(at, key)| Some((at, below(path, key.as_ref())?)))
}

impl<K: MapKey, T: Component, S: BuildHasher + Clone + Default> Component for IndexMap<K, T, S> {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        for (name, item) in self {
            walk.entry(name.as_ref(), item);
        }
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        for (name, item) in self {
            walk.child(name.as_ref(), item);
        }
    }

    fn duplicate(&self) -> Self {
        let mut copy = IndexMap::with_capacity_and_hasher(self.len(), self.hasher().clone());
        copy.extend(self.iter().map(|(k, v)| (k.clone(), v.duplicate())));
        copy
    }

    fn part(&self, path: &str) -> Option<&dyn Component> {
        let (at, rest) = map_item(self, path)?;
        here_or_below(self.get_index(at)?.1, rest)
    }

    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        let (at, rest) = map_item(self, path)?;
        here_or_below_mut(self.get_index_mut(at)?.1, rest)
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let mut fields = JsonMap::new();
        for (name, item) in self {
            save_field(item, name.as_ref(), &mut fields, saver)?;
        }
        Ok(Json::Object(fields))
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        if saved.is_array() {
            // A list that became a map keeps its names.
            let items = loader.items(saved, T::from_saved)?.into_iter().enumerate();
            return items
                .map(|(i, item)| Ok((K::from_text(&i.to_string())?, item)))
                .collect();
        }
        let fields = json::object(saved)?;
        let mut map = IndexMap::with_capacity_and_hasher(fields.len(), S::default());
        for name in fields.keys() {
            let item = T::from_field(name, fields, loader)?;
            map.insert(K::from_text(name)?, item);
        }
        Ok(map)
    }
}

impl<T: Component> Component for Box<T> {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        (**self).visit(walk);
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        (**self).visit_mut(walk);
    }

    fn duplicate(&self) -> Self {
        Box::new((**self).duplicate())
    }

    fn part(&self, path: &str) -> Option<&dyn Component> {
        (**self).part(path)
    }

    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        (**self).part_mut(path)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        (**self).as_any()
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        (**self).as_any_mut()
    }

    fn module_entry(&self) -> Option<&'static dyn Any> {
        (**self).module_entry()
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        (**self).to_saved(saver)
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        T::from_saved(saved, loader).map(Box::new)
    }
}

impl Component for Box<dyn Module> {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        (**self).visit(walk);
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        (**self).visit_mut(walk);
    }

    fn duplicate(&self) -> Self {
        (**self).duplicate_box()
    }

    fn part(&self, path: &str) -> Option<&dyn Component> {
        (**self).part(path)
    }

    fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
        (**self).part_mut(path)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(&**self)
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(&mut **self)
    }

    fn module_entry(&self) -> Option<&'static dyn Any> {
        (**self).module_entry()
    }

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        save_module(&**self, saver).map(Json::Object)
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        let fields = json::object(saved)?;
        json::known_names(fields, &[TYPE, CONFIG])?;
        load_module(fields, loader)
    }
}

impl Clone for Box<dyn Module> {
    fn clone(&self) -> Self {
        (**self).duplicate_box()
    }
}

/// Mutable access to the contents of a shared owner, copied first if it is shared.
trait OwnMut {
    type Target: ?Sized;

    fn own_mut(&mut self) -> Option<&mut Self::Target>;
}

/// Shared modules are changed through a private copy, made once per walk, so that they stay shared.
macro_rules! shared_component {
    ($([$($generics:tt)*] $t:ty, $owned:ty, |$inner:ident| $copy:expr, $any:expr, $any_mut:expr, $save:expr;)*) => {$(
        impl<$($generics)*> OwnMut for $t {
            type Target = <$t as std::ops::Deref>::Target;

            fn own_mut(&mut self) -> Option<&mut Self::Target> {
                if Arc::get_mut(self).is_none() {
                    *self = {
                        let $inner = &**self;
                        $copy
                    };
                }
                Arc::get_mut(self)
            }
        }

        impl<$($generics)*> Component for $t {
            fn visit(&self, walk: &mut Walk<'_, '_>) {
                (**self).visit(walk);
            }

            fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
                if let Some(unshared) = Arc::get_mut(self) {
                    return unshared.visit_mut(walk);
                }
                let address = Arc::as_ptr(self).cast::<u8>() as usize;
                if let Some(copy) = walk.shared_copy::<Self>(address) {
                    *self = copy;
                    return;
                }
                let mut copy: Self = {
                    let $inner = &**self;
                    $copy
                };
                if let Some(inner) = Arc::get_mut(&mut copy) {
                    inner.visit_mut(walk);
                }
                let original = std::mem::replace(self, copy.clone());
                walk.remember_copy(address, original, copy);
            }

            fn duplicate(&self) -> Self {
                Arc::clone(self)
            }

            fn part(&self, path: &str) -> Option<&dyn Component> {
                (**self).part(path)
            }

            fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
                self.own_mut()?.part_mut(path)
            }

            fn as_any(&self) -> Option<&dyn Any> {
                let $inner = &**self;
                $any
            }

            fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
                let $inner = self.own_mut()?;
                $any_mut
            }

            fn module_entry(&self) -> Option<&'static dyn Any> {
                (**self).module_entry()
            }

            fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
                let save: fn(&Self, &mut Saver) -> Result<Json> = $save;
                save(self, saver)
            }

            fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
                <$owned as Component>::from_saved(saved, loader).map(Arc::from)
            }
        }
    )*};
}

shared_component! {
    [T: Component + 'static] Arc<T>, T, |inner| Arc::new(inner.duplicate()),
        inner.as_any(), inner.as_any_mut(), |this, saver| (**this).to_saved(saver);
    [] Arc<dyn Module>, Box<dyn Module>, |inner| Arc::from(inner.duplicate_box()),
        Some(inner as &dyn Any), Some(inner as &mut dyn Any), |this, saver| save_module(&**this, saver).map(Json::Object);
}

macro_rules! tuple_component {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Component),+> Component for ($($name,)+) {
            fn is_plain() -> bool {
                true $(&& $name::is_plain())+
            }

            fn visit(&self, walk: &mut Walk<'_, '_>) {
                $(
                    walk.unnamed_at(stringify!($index), "a field of a tuple");
                    walk.item($index, &self.$index);
                )+
            }

            fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
                $(walk.item($index, &mut self.$index);)+
            }

            fn duplicate(&self) -> Self {
                ($(self.$index.duplicate(),)+)
            }

            fn part(&self, path: &str) -> Option<&dyn Component> {
                match first_item(path)? {
                    $(($index, rest) => here_or_below(&self.$index, rest),)+
                    _ => None,
                }
            }

            fn part_mut(&mut self, path: &str) -> Option<&mut dyn Component> {
                match first_item(path)? {
                    $(($index, rest) => here_or_below_mut(&mut self.$index, rest),)+
                    _ => None,
                }
            }

            fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
                Ok(Json::Array(vec![
                    $(saver.item($index, |saver| self.$index.to_saved(saver))?,)+
                ]))
            }

            fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
                const COUNT: usize = [$($index),+].len();
                let items = json::array(saved)?;
                if items.len() != COUNT {
                    return Err(json::expected(format_args!("a list of {COUNT}"), saved));
                }
                Ok(($(
                    $name::from_saved(&items[$index], loader)
                        .map_err(|e| e.inside(format_args!("[{}]", $index)))?,
                )+))
            }
        }
    };
}
tuple_component! { A 0 }
tuple_component! { A 0, B 1 }
tuple_component! { A 0, B 1, C 2 }
tuple_component! { A 0, B 1, C 2, D 3 }
