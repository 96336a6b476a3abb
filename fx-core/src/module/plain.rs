//! Plain data as parts of modules: numbers, text, and `Tag`, which gives an empty module a unique
//! address.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::walk::Component;
use crate::error::{Error, Result};
use crate::file::arguments::{to_device, to_dtype};
use crate::file::json::{self, Json};
use crate::file::loader::Loader;
use crate::file::saver::Saver;
use crate::value::device::Device;
use crate::value::dtype::DType;

/// Plain types: how each is saved as JSON and loaded.
macro_rules! plain_components {
    ($($($t:ty)+, $this:ident => $save:expr, $saved:ident => $load:expr;)*) => {$($(
        impl Component for $t {
            fn duplicate(&self) -> Self {
                self.clone()
            }

            fn is_plain() -> bool {
                true
            }

            fn to_saved(&self, _: &mut Saver) -> Result<Json> {
                let $this = self;
                Ok($save)
            }

            fn from_saved($saved: &Json, _: &mut Loader<'_>) -> Result<Self> {
                $load
            }
        }
    )+)*};
}

plain_components! {
    (), _this => Json::Null, saved => null(saved);
    bool, this => Json::from(*this), saved => json::boolean(saved);
    i8 i16 i32 i64 isize, this => Json::from(*this), saved => signed(saved);
    u8 u16 u32 u64 usize, this => Json::from(*this), saved => unsigned(saved);
    f64, this => json::from_float(*this), saved => json::to_float(saved);
    f32, this => json::from_float((*this).into()), saved => json::to_float(saved).map(|x| x as f32);
    char, this => Json::from(this.to_string()), saved => character(saved);
    String std::sync::Arc<str>, this => Json::from(&**this), saved => Ok(json::text(saved)?.into());
    &'static str, this => Json::from(*this), saved => interned(json::text(saved)?);
    PathBuf, this => path_text(this)?, saved => Ok(json::text(saved)?.into());
    DType, this => Json::from(this.name()), saved => to_dtype(saved);
    Device, this => Json::from(this.to_string()), saved => to_device(saved);
}

fn null(saved: &Json) -> Result<()> {
    match saved {
        Json::Null => Ok(()),
        other => Err(json::expected("null", other)),
    }
}

fn signed<T: TryFrom<i64>>(saved: &Json) -> Result<T> {
    let number = saved.as_i64().and_then(|n| T::try_from(n).ok());
    number.ok_or_else(|| number_of::<T>(saved))
}

fn unsigned<T: TryFrom<u64>>(saved: &Json) -> Result<T> {
    let number = saved.as_u64().and_then(|n| T::try_from(n).ok());
    number.ok_or_else(|| number_of::<T>(saved))
}

fn number_of<T>(saved: &Json) -> Error {
    json::expected(
        format_args!("an integer that `{}` holds", std::any::type_name::<T>()),
        saved,
    )
}

fn character(saved: &Json) -> Result<char> {
    let mut chars = json::text(saved)?.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(json::expected("one character", saved)),
    }
}

fn path_text(path: &Path) -> Result<Json> {
    let text = path.to_str().map(Json::from);
    text.ok_or_else(|| {
        Error::saved(format_args!(
            "{path:?} is not UTF-8, as text in a file has to be"
        ))
    })
}

/// The longest text that is kept until the program ends.
const MAX_INTERNED: usize = 1 << 16;

/// Text that lives until the program ends, stored once per distinct text: loading a file again
/// takes no more memory.
pub(super) fn interned(text: &str) -> Result<&'static str> {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if text.len() > MAX_INTERNED {
        return Err(Error::saved(format_args!(
            "a `&'static str` of {} bytes is never freed: make the field a `String`",
            text.len()
        )));
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(text) {
        return Ok(known);
    }
    let text: &'static str = Box::leak(text.into());
    kept.insert(text);
    Ok(text)
}

impl<T> Component for std::marker::PhantomData<T> {
    fn is_plain() -> bool {
        true
    }

    fn duplicate(&self) -> Self {
        std::marker::PhantomData
    }

    fn to_saved(&self, _: &mut Saver) -> Result<Json> {
        Ok(Json::Null)
    }

    fn from_saved(saved: &Json, _: &mut Loader<'_>) -> Result<Self> {
        null(saved).map(|()| std::marker::PhantomData)
    }
}

/// A byte that gives an otherwise empty module a unique address, so that two of them can be
/// distinguished.
///
/// ```
/// use fx_core::module::Tag;
/// #[derive(Default)]
/// struct Activation { tag: Tag }
/// assert!(size_of::<Activation>() > 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tag(u8);

impl Component for Tag {
    fn is_plain() -> bool {
        true
    }

    fn duplicate(&self) -> Self {
        *self
    }

    fn to_saved(&self, _: &mut Saver) -> Result<Json> {
        Ok(Json::Null)
    }

    fn from_saved(saved: &Json, _: &mut Loader<'_>) -> Result<Self> {
        null(saved).map(|()| Tag::default())
    }
}
