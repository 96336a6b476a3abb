//! `Outlined`: what an owner holds behind a trait object, so that only this crate compiles the code that drops it.

use std::ops::{Deref, DerefMut};

/// A value behind a `dyn`. The code that drops a value is compiled again in every crate that drops an owner of it; for
/// one with many parts, that is most of what such a crate compiles.
pub(crate) struct Outlined<T>(Box<dyn Holds<T>>);

trait Holds<T>: Send + Sync {
    fn held(&self) -> &T;

    fn held_mut(&mut self) -> &mut T;

    fn into_held(self: Box<Self>) -> T;
}

impl<T: Send + Sync> Holds<T> for T {
    fn held(&self) -> &T {
        self
    }

    fn held_mut(&mut self) -> &mut T {
        self
    }

    fn into_held(self: Box<Self>) -> T {
        *self
    }
}

impl<T: Send + Sync + 'static> Outlined<T> {
    pub fn new(value: T) -> Self {
        Outlined(Box::new(value))
    }

    pub fn into_inner(self) -> T {
        self.0.into_held()
    }
}

impl<T> Deref for Outlined<T> {
    type Target = T;

    fn deref(&self) -> &T {
        (*self.0).held()
    }
}

impl<T> DerefMut for Outlined<T> {
    fn deref_mut(&mut self) -> &mut T {
        (*self.0).held_mut()
    }
}

impl<T: Send + Sync + Default + 'static> Default for Outlined<T> {
    fn default() -> Self {
        Outlined::new(T::default())
    }
}
