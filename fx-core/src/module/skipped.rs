//! What `#[derive(Module)]` needs to load a type: its fields by name, its variants, and `Default`
//! for skipped fields.
//!
//! Invariant: a skipped field without `Default` compiles; only saving or loading its module is an
//! error.

use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::file::json::{self, Excerpt, Json, JsonMap};
use crate::value::object::short_type_name;

/// A skipped field of a type. Method lookup finds [`WithDefault`] first, and [`WithoutDefault`],
/// which needs one more reference, if the type has no `Default`.
#[derive(Debug)]
pub struct Skipped<T>(PhantomData<fn() -> T>);

impl<T> Skipped<T> {
    /// The marker for the field's type.
    #[allow(clippy::new_without_default, reason = "expansions call it by name")]
    pub const fn new() -> Self {
        Skipped(PhantomData)
    }
}

/// The field can be recreated.
pub trait WithDefault<T> {
    /// Returns the function that creates it.
    fn maker(&self, field: &str) -> Result<fn() -> T>;
}

impl<T: Default> WithDefault<T> for Skipped<T> {
    fn maker(&self, _: &str) -> Result<fn() -> T> {
        Ok(T::default)
    }
}

/// The field cannot be recreated.
pub trait WithoutDefault<T> {
    /// Returns an error that says so.
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

/// The fields of a saved type, all of whose names must be known.
///
/// # Errors
/// Returns an error if it is not an object, or has other names.
pub fn known_fields<'j>(saved: &'j Json, names: &[&str]) -> Result<&'j JsonMap> {
    let fields = json::object(saved)?;
    json::known_names(fields, names)?;
    Ok(fields)
}

/// The variant of a saved enum, and its fields.
///
/// # Errors
/// Returns an error if it is not an object with one name.
pub fn variant(saved: &Json) -> Result<(&str, &Json)> {
    json::tagged(saved)
}

/// The error for a variant that the enum does not have.
pub fn no_variant(name: &str, known: &[&str]) -> Error {
    Error::saved(format_args!(
        "{} is not a variant here: expected {}",
        Excerpt(name),
        known.join(", ")
    ))
}
