//! Containers of components: options, lists, boxes, shared owners, maps and tuples.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use indexmap::IndexMap;

use super::module::Module;
use super::walk::Component;
use super::walk::{Walk, WalkMut};

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
}

macro_rules! list_component {
    ($([$($generics:tt)*] $t:ty, |$this:ident| $duplicate:expr;)*) => {$(
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
        }
    )*};
}

list_component! {
    [] Vec<T>, |this| this.iter().map(T::duplicate).collect();
    [const N: usize] [T; N], |this| std::array::from_fn(|i| this[i].duplicate());
}

impl<K: AsRef<str> + Clone + Eq + Hash, T: Component, S: BuildHasher + Clone> Component
    for IndexMap<K, T, S>
{
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        for (name, item) in self {
            walk.child(name.as_ref(), item);
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
}

impl Clone for Box<dyn Module> {
    fn clone(&self) -> Self {
        (**self).duplicate_box()
    }
}

/// Shared modules are changed through a copy of their own, made once a walk, so that they stay shared.
macro_rules! shared_component {
    ($([$($generics:tt)*] $t:ty, |$inner:ident| $copy:expr;)*) => {$(
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
        }
    )*};
}

shared_component! {
    [T: Component + 'static] Arc<T>, |inner| Arc::new(inner.duplicate());
    [] Arc<dyn Module>, |inner| Arc::from(inner.duplicate_box());
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
        }
    };
}
tuple_component! { A 0 }
tuple_component! { A 0, B 1 }
tuple_component! { A 0, B 1, C 2 }
tuple_component! { A 0, B 1, C 2, D 3 }
