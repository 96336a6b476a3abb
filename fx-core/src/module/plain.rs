//! Plain data as parts of modules: numbers, text, and `Tag`, which gives an empty module an address of its own.

use super::walk::Component;

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
