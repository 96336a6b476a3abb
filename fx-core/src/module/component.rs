//! `Component`: anything that can be a field of a module, and how a walk goes through it.

use super::walk::{Walk, WalkMut};

/// A part of a module: a module, a tensor, plain data, or a container of them. `#[derive(Module)]` writes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a module, a parameter, a buffer nor plain data",
    label = "cannot be a field of a module",
    note = "derive `Module` for a layer, or mark a field that is none of these with #[module(skip)]"
)]
pub trait Component {
    /// Tells the walk what is inside.
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        let _ = walk;
    }

    /// As [`visit`](Component::visit), with the means to change it.
    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        let _ = walk;
    }

    /// A copy whose tensors share storage with this one's.
    fn duplicate(&self) -> Self
    where
        Self: Sized;

    /// Whether values of the type never hold a tensor or a module, so that walks pass lists of them by.
    fn is_plain() -> bool
    where
        Self: Sized,
    {
        false
    }
}

macro_rules! plain_components {
    ($($t:ty),* $(,)?) => {$(
        impl Component for $t {
            fn duplicate(&self) -> Self {
                self.clone()
            }

            fn is_plain() -> bool {
                true
            }
        }
    )*};
}

plain_components! {
    (), bool, char, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64,
    String, &'static str, std::path::PathBuf, std::sync::Arc<str>, crate::value::dtype::DType,
}

impl<T> Component for std::marker::PhantomData<T> {
    fn duplicate(&self) -> Self {
        std::marker::PhantomData
    }
}

/// A byte that gives an otherwise empty module an address of its own, so that two of them are told apart.
///
/// ```
/// use fx_core::Tag;
/// #[derive(Default)]
/// struct Activation { tag: Tag }
/// assert!(size_of::<Activation>() > 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tag(u8);

impl Component for Tag {
    fn duplicate(&self) -> Self {
        *self
    }
}
