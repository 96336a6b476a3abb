//! What is saved of a component that lists its fields: an object with a name per field.

use super::walk::{Component, Field};
use crate::error::Result;
use crate::file::json::{Json, JsonMap};
use crate::file::saver::Saver;

/// The fields of a component as a JSON object.
///
/// # Errors
/// Returns an error if modules nest too deep, or a field cannot be saved; it carries the field's
/// path.
pub fn save(component: &dyn Component, saver: &mut Saver) -> Result<Json> {
    saver.nested(|saver| {
        let mut fields = JsonMap::new();
        let mut saved = Ok(());
        component.fields(&mut |field| {
            if saved.is_ok() {
                saved = save_listed(&field, &mut fields, saver);
            }
        });
        saved?;
        Ok(Json::Object(fields))
    })
}

fn save_listed(field: &Field<'_>, fields: &mut JsonMap, saver: &mut Saver) -> Result<()> {
    match *field {
        Field::Plain(name, part) | Field::Child(name, part) | Field::Buffer(name, _, part) => {
            save_field(part, name, fields, saver)
        }
        // Paths of tensors inside do not contain this field's name.
        Field::Flatten(name, part) => {
            fields.insert(name.to_string(), part.to_saved(saver)?);
            Ok(())
        }
        Field::Training(name, training) => save_field(training, name, fields, saver),
        Field::Repeated => Ok(()),
    }
}

/// Saves a component as the field of a name.
pub(crate) fn save_field(
    component: &dyn Component,
    name: &str,
    fields: &mut JsonMap,
    saver: &mut Saver,
) -> Result<()> {
    let saved = saver.child(name, |saver| component.to_saved(saver))?;
    fields.insert(name.to_string(), saved);
    Ok(())
}

/// The variant of an enum as a JSON object: its name with its fields.
///
/// # Errors
/// Returns the errors of [`save`].
pub fn save_variant(component: &dyn Component, name: &str, saver: &mut Saver) -> Result<Json> {
    let mut variant = JsonMap::new();
    variant.insert(name.to_string(), save(component, saver)?);
    Ok(Json::Object(variant))
}
