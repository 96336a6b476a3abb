//! Reads the JSON of a saved file; errors state what was expected, what was found, and where.
//!
//! Invariant: nothing is assumed; a wrong kind, or a missing or unknown name, is an error that
//! names its place.

use std::fmt;

use crate::error::{Error, Result};
pub(crate) use crate::text::Excerpt;
use crate::text::has_hidden;

/// JSON of a saved file: serde_json's own type, so that anything serde reads and writes can be part
/// of a file.
pub type Json = serde_json::Value;
/// A JSON object, in insertion order; also serde_json's own type.
pub type JsonMap = serde_json::Map<String, Json>;

/// A description of a JSON value, for messages.
pub(crate) fn describe(json: &Json) -> String {
    match json {
        Json::Null => "null".into(),
        Json::Bool(x) => format!("`{x}`"),
        Json::Number(x) => format!("`{x}`"),
        Json::String(x) => format!("the text {}", Excerpt(x)),
        Json::Array(items) => format!("a list of {}", items.len()),
        Json::Object(fields) => match fields.keys().next() {
            Some(first) if fields.len() == 1 => format!("an object with {}", Excerpt(first)),
            _ => format!("an object of {}", fields.len()),
        },
    }
}

/// The error for a value of the wrong kind.
pub(crate) fn expected(what: impl fmt::Display, found: &Json) -> Error {
    Error::saved(format_args!("expected {what}, found {}", describe(found)))
}

pub(crate) fn object(json: &Json) -> Result<&JsonMap> {
    json.as_object().ok_or_else(|| expected("an object", json))
}

pub(crate) fn array(json: &Json) -> Result<&[Json]> {
    json.as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| expected("a list", json))
}

pub(crate) fn text(json: &Json) -> Result<&str> {
    json.as_str().ok_or_else(|| expected("a text", json))
}

/// A name or path: a single-line string of visible characters.
pub(crate) fn name(json: &Json) -> Result<&str> {
    let name = text(json)?;
    check_name(name).map(|()| name)
}

/// Rejects what [`name`] rejects.
pub(crate) fn check_name(name: &str) -> Result<()> {
    match has_hidden(name) {
        false => Ok(()),
        true => Err(Error::saved(format_args!(
            "{} has characters that names cannot have: breaks of lines, or what cannot be seen",
            Excerpt(name)
        ))),
    }
}

pub(crate) fn boolean(json: &Json) -> Result<bool> {
    json.as_bool()
        .ok_or_else(|| expected("true or false", json))
}

/// An index into a table of the file.
pub(crate) fn index(json: &Json, len: usize) -> Result<usize> {
    json.as_u64()
        .and_then(|n| usize::try_from(n).ok())
        .filter(|n| *n < len)
        .ok_or_else(|| expected(format_args!("an index below {len}"), json))
}

/// Rejects unknown names: a later version wrote them, and their content would be lost.
pub(crate) fn known_names(fields: &JsonMap, known: &[&str]) -> Result<()> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Error::saved(format_args!(
            "{} is not known here (known: {}): the file was written by another version of this code",
            Excerpt(name),
            if known.is_empty() {
                "nothing".to_string()
            } else {
                known.join(", ")
            }
        ))),
    }
}

/// A required field.
pub(crate) fn required<'j>(fields: &'j JsonMap, name: &str) -> Result<&'j Json> {
    fields.get(name).ok_or_else(|| missing(name))
}

/// An error of a field, with its path.
#[cold]
pub(crate) fn in_field(error: Error, name: &str) -> Error {
    error.inside(format_args!(".{name}"))
}

/// An error of an item, with its index.
#[cold]
fn in_item(error: Error, index: usize) -> Error {
    error.inside(format_args!("[{index}]"))
}

/// Reads a required field; errors carry its path (`.name`).
pub(crate) fn part<'j, T>(
    fields: &'j JsonMap,
    name: &str,
    read: impl FnOnce(&'j Json) -> Result<T>,
) -> Result<T> {
    read(required(fields, name)?).map_err(|e| in_field(e, name))
}

/// Reads an optional field; errors carry its path.
pub(crate) fn optional<'j, T>(
    fields: &'j JsonMap,
    name: &str,
    read: impl FnOnce(&'j Json) -> Result<T>,
) -> Result<Option<T>> {
    inside(fields.get(name), name, read)
}

/// Reads a field that was already looked up; errors carry its path.
pub(crate) fn inside<'j, T>(
    found: Option<&'j Json>,
    name: &str,
    read: impl FnOnce(&'j Json) -> Result<T>,
) -> Result<Option<T>> {
    found
        .map(read)
        .transpose()
        .map_err(|e| e.inside(format_args!(".{name}")))
}

/// The fields of an object by known names, looked up in one pass; other names are rejected.
pub(crate) fn parts<'j, const N: usize>(
    fields: &'j JsonMap,
    known: &[&str; N],
) -> Result<[Option<&'j Json>; N]> {
    let mut found = [None; N];
    for (name, part) in fields {
        match known.iter().position(|known| known == name) {
            Some(at) => found[at] = Some(part),
            None => return known_names(fields, known).map(|()| found),
        }
    }
    Ok(found)
}

/// The error for a missing field.
pub(crate) fn missing(name: &str) -> Error {
    Error::saved(format_args!("`{name}` is missing"))
}

/// Reads every item of a list; errors carry the item's index.
pub(crate) fn items<'j, T>(
    json: &'j Json,
    mut read: impl FnMut(&'j Json) -> Result<T>,
) -> Result<Vec<T>> {
    // A loop, since adapters would be compiled for each type of item.
    let saved = array(json)?;
    let mut items = Vec::with_capacity(saved.len());
    for item in saved {
        match read(item) {
            Ok(item) => items.push(item),
            Err(error) => return Err(in_item(error, items.len())),
        }
    }
    Ok(items)
}

/// Reads the only name of an object and the value under it: `{"tuple": [..]}`.
pub(crate) fn tagged(json: &Json) -> Result<(&str, &Json)> {
    match json
        .as_object()
        .map(|fields| (fields.len(), fields.iter().next()))
    {
        Some((1, Some((tag, inner)))) => Ok((tag, inner)),
        _ => Err(expected("an object with one name", json)),
    }
}

/// An object with one name.
pub(crate) fn tag(name: &str, inner: impl Into<Json>) -> Json {
    object_of(name, inner.into())
}

fn object_of(name: &str, inner: Json) -> Json {
    let mut fields = JsonMap::with_capacity(1);
    fields.insert(name.to_string(), inner);
    Json::Object(fields)
}

/// A float: a number, or a name for the values that JSON numbers cannot express.
pub(crate) fn from_float(x: f64) -> Json {
    match serde_json::Number::from_f64(x) {
        Some(number) => Json::Number(number),
        None => Json::from(if x.is_nan() {
            "nan"
        } else if x > 0.0 {
            "inf"
        } else {
            "-inf"
        }),
    }
}

/// The float of [`from_float`].
pub(crate) fn to_float(json: &Json) -> Result<f64> {
    match json {
        Json::String(text) if text == "nan" => Some(f64::NAN),
        Json::String(text) if text == "inf" => Some(f64::INFINITY),
        Json::String(text) if text == "-inf" => Some(f64::NEG_INFINITY),
        json => json.as_f64(),
    }
    .ok_or_else(|| expected("a number, \"nan\", \"inf\" or \"-inf\"", json))
}
