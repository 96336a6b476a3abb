//! Containers of components: options, lists, boxes, shared owners, maps and tuples.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use indexmap::IndexMap;

use super::module::Module;
use super::plain::interned;
use super::registry::{load_module, save_module};
use super::walk::Component;
use super::walk::{Walk, WalkMut};
use crate::error::{Error, Result};
use crate::save::json::{self, Json, JsonMap};
use crate::save::loader::Loader;
use crate::save::names::module::{CONFIG, TYPE};
use crate::save::saver::Saver;

impl<T: Component> Component for Option<T> {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        if let Some(inner) = self {
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

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let Some(inner) = self else {
            return Ok(Json::Null);
        };
        // What would be read as nothing, or as this tag, is told from it by the tag.
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

macro_rules! list_component {
    ($([$($generics:tt)*] $t:ty, |$this:ident| $duplicate:expr, |$items:ident| $load:expr;)*) => {$(
        impl<T: Component, $($generics)*> Component for $t {
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

            fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
                let items = self.iter().enumerate();
                items.map(|(i, item)| saver.item(i, |saver| item.to_saved(saver))).collect()
            }

            fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
                let $items = loader.items(saved, T::from_saved)?;
                $load
            }
        }
    )*};
}

list_component! {
    [] Vec<T>, |this| this.iter().map(T::duplicate).collect(), |items| Ok(items);
    [const N: usize] [T; N], |this| std::array::from_fn(|i| this[i].duplicate()),
        |items| items.try_into().map_err(|items: Vec<T>| {
            Error::saved(format_args!("expected {N} items, found {}", items.len()))
        });
}

/// What a map of components has as keys: text that a file can give back.
#[diagnostic::on_unimplemented(
    message = "a map with `{Self}` as keys cannot be a field of a module",
    label = "is not text",
    note = "the names of children are `String`, `Arc<str>`, `Box<str>`, `&'static str`, or a type that implements `fx_core::MapKey`"
)]
pub trait MapKey: AsRef<str> + Clone + Eq + Hash {
    /// The key of a text.
    ///
    /// # Errors
    /// When there is none.
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

    fn to_saved(&self, saver: &mut Saver) -> Result<Json> {
        let mut fields = JsonMap::new();
        for (name, item) in self {
            let name = name.as_ref();
            let saved = saver.child(name, |saver| item.to_saved(saver))?;
            fields.insert(name.to_string(), saved);
        }
        Ok(Json::Object(fields))
    }

    fn from_saved(saved: &Json, loader: &mut Loader<'_>) -> Result<Self> {
        let fields = json::object(saved)?;
        let mut map = IndexMap::with_capacity_and_hasher(fields.len(), S::default());
        for name in fields.keys() {
            let item = loader.field(fields, name, T::from_saved)?;
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

/// Shared modules are changed through a copy of their own, made once a walk, so that they stay shared.
macro_rules! shared_component {
    ($([$($generics:tt)*] $t:ty, $owned:ty, |$inner:ident| $copy:expr, $save:expr;)*) => {$(
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
        |this, saver| (**this).to_saved(saver);
    [] Arc<dyn Module>, Box<dyn Module>, |inner| Arc::from(inner.duplicate_box()),
        |this, saver| save_module(&**this, saver).map(Json::Object);
}

macro_rules! tuple_component {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Component),+> Component for ($($name,)+) {
            fn visit(&self, walk: &mut Walk<'_, '_>) {
                $(walk.item($index, &self.$index);)+
            }

            fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
                $(walk.item($index, &mut self.$index);)+
            }

            fn duplicate(&self) -> Self {
                ($(self.$index.duplicate(),)+)
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
