//! What expansions ask of a type that they do not see whole: whether it has a `forward`, and whether `#[derive(Module)]`
//! knows it.
//!
//! Invariant: of a constant that a type has itself and by a trait, its own is taken, if its bounds hold.

use std::any::Any;
use std::marker::PhantomData;

use super::module::Module;
use super::registry::ModuleOf;

/// How values of a type are modules: for `Component::module_entry`.
pub struct Entry<T>(PhantomData<T>);

impl<T: Module> Entry<T> {
    /// A `ModuleOf`.
    pub const OF: Option<&'static dyn Any> = Some(&const { ModuleOf::of::<T>() });
}

/// Types without a `forward`.
pub trait NoEntry {
    /// Nothing.
    const OF: Option<&'static dyn Any> = None;
}

impl<T> NoEntry for Entry<T> {}

/// A type whose `Component::module_entry` says how its values are modules.
pub trait HasEntry {}

/// What the registry says of a type.
pub struct Submitted<T>(PhantomData<T>);

impl<T: Module + HasEntry> Submitted<T> {
    /// Nothing.
    pub const OF: ModuleOf = ModuleOf::NOTHING;
}

/// Types that do not say it themselves.
pub trait Unsaid {
    /// How values of the type are modules.
    const OF: ModuleOf;
}

impl<T: Module> Unsaid for Submitted<T> {
    const OF: ModuleOf = ModuleOf::of::<T>();
}
