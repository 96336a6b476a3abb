//! What `#[derive(Module)]` needs to load a type: its fields by name, its variants, and skipped fields by `Default`.
//!
//! Invariant: a skipped field without `Default` compiles; it is saving or loading its module that is refused.

use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::file::json::{self, Excerpt, Json, JsonMap};
use crate::value::object::short_type_name;

/// A skipped field of a type. Method lookup finds [`WithDefault`] first, and [`WithoutDefault`], which needs one
/// more reference, where the type has none.
#[derive(Debug)]
pub struct Skipped<T>(PhantomData<fn() -> T>);

impl<T> Skipped<T> {
    /// Of the field's type.
    #[allow(clippy::new_without_default, reason = "expansions call it by name")]
    pub const fn new() -> Self {
        Skipped(PhantomData)
    }
}

/// The field can be made anew.
pub trait WithDefault<T> {
    /// How.
    fn maker(&self, field: &str) -> Result<fn() -> T>;
}

impl<T: Default> WithDefault<T> for Skipped<T> {
    fn maker(&self, _: &str) -> Result<fn() -> T> {
        Ok(T::default)
    }
}

/// The field cannot be made anew.
pub trait WithoutDefault<T> {
    /// The error that says so.
    fn maker(&self, field: &str) -> Result<fn() -> T>;
}

impl<T> WithoutDefault<T> for &Skipped<T> {
    fn maker(&self, field: &str) -> Result<fn() -> T> {
        Err(Error::saved(format_args!(
            "the field is skipped, and its type `{}` has no `Default` to load it by: implement it, or do not skip the field",
            short_type_name(std::any::type_name::<T>())
        ))
        .inside(format_args!(".{field}")))
    }
}

/// The fields of a saved type, of which all names must be known.
///
/// # Errors
/// When it is no object, or has other names.
pub fn known_fields<'j>(saved: &'j Json, names: &[&str]) -> Result<&'j JsonMap> {
    let fields = json::object(saved)?;
    json::known_names(fields, names)?;
    Ok(fields)
}

/// The variant of a saved enum, and its fields.
///
/// # Errors
/// When it is no object with one name.
pub fn variant(saved: &Json) -> Result<(&str, &Json)> {
    json::tagged(saved)
}

/// The error of a variant that the enum does not have.
pub fn no_variant(name: &str, known: &[&str]) -> Error {
    Error::saved(format_args!(
        "{} is no variant here: expected {}",
        Excerpt(name),
        known.join(", ")
    ))
}
