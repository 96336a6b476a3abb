//! What templates call beyond the library's own: functions, filters and tests as transformers and Python have them.
//!
//! Invariant: none reads more than its arguments and the clock.

use std::fmt;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::python::{self, Json};

/// What a template raised.
#[derive(Debug)]
pub(super) struct Raised(pub String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = python::text(message)?;
    Err(invalid("the template raised").with_source(Raised(message)))
}

fn strftime_now(format: &str) -> Result<String, Error> {
    let now = jiff::ZonedDateTime::now();
    jiff::fmt::strtime::format(format, &now).map_err(|error| invalid(error.to_string()))
}

/// `json.dumps`, with the defaults of transformers.
fn tojson(value: &Value, indent: Option<Value>, args: Kwargs) -> Result<String, Error> {
    let indent = match indent {
        None => args.get::<Option<Value>>("indent")?,
        indent => indent,
    };
    let indent = match indent.filter(|indent| !indent.is_none()) {
        None => None,
        Some(indent) => Some(match (indent.as_str(), indent.as_usize()) {
            (Some(text), _) => text.to_string(),
            (None, Some(count)) if count <= 64 => " ".repeat(count),
            _ => return Err(invalid(format!("`indent` is {indent}"))),
        }),
    };
    let mut json = Json {
        comma: if indent.is_some() { "," } else { ", " }.to_string(),
        colon: ": ".to_string(),
        indent,
        ensure_ascii: args.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: args.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    if let Some(separators) = args.get::<Option<Vec<String>>>("separators")? {
        let [comma, colon] = <[String; 2]>::try_from(separators)
            .map_err(|_| invalid("`separators` are two texts"))?;
        (json.comma, json.colon) = (comma, colon);
    }
    args.assert_all_used()?;
    python::json(value, &json)
}

fn is_sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Map | ValueKind::String
    )
}

fn is_iterable(value: &Value) -> bool {
    is_sequence(value) || matches!(value.kind(), ValueKind::Iterable | ValueKind::Undefined)
}

fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}

/// Python's methods of texts, lists and dicts.
pub(super) fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        let argument = args.first().and_then(Value::as_str);
        match (name, argument) {
            ("removeprefix", Some(part)) => {
                return Ok(text.strip_prefix(part).unwrap_or(text).into());
            }
            ("removesuffix", Some(part)) => {
                return Ok(text.strip_suffix(part).unwrap_or(text).into());
            }
            ("partition" | "rpartition", Some(part)) if !part.is_empty() => {
                let parts = match name {
                    "partition" => text.split_once(part),
                    _ => text.rsplit_once(part),
                };
                let parts = match parts {
                    Some((before, after)) => vec![before, part, after],
                    None if name == "partition" => vec![text, "", ""],
                    None => vec!["", "", text],
                };
                return Ok(parts.into_iter().map(Value::from).collect());
            }
            _ => {}
        }
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

/// Makes all of them known.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", tojson);
    environment.add_filter("string", |value: &Value, _: Rest<Value>| {
        python::text(value)
    });
    environment.add_test("sequence", is_sequence);
    environment.add_test("iterable", is_iterable);
    environment.add_test("number", is_number);
    environment.set_formatter(|out, _, value| match value.as_str() {
        Some(text) => out.write_str(text).map_err(Error::from),
        None => out.write_str(&python::text(value)?).map_err(Error::from),
    });
}
