//! Values as Python writes them: `str`, `repr` and `json.dumps`.
//!
//! Invariant: no value is written deeper or longer than a bound, however its parts are shared.

use std::fmt::Write;
use std::sync::LazyLock;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use regex::Regex;

/// The longest text that a value may have.
const LONGEST: usize = 64 << 20;
/// How deep values may be.
const DEEPEST: usize = 512;

/// The options of `json.dumps`.
pub(super) struct Json {
    pub indent: Option<String>,
    pub comma: String,
    pub colon: String,
    pub ensure_ascii: bool,
    pub sort_keys: bool,
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

/// `str(value)`; nothing for what is undefined.
pub(super) fn text(value: &Value) -> Result<String, Error> {
    match (value.kind(), value.as_str()) {
        (ValueKind::Undefined, _) => Ok(String::new()),
        (_, Some(text)) => Ok(text.to_string()),
        _ => written(value, None),
    }
}

/// `json.dumps(value, ..)`.
pub(super) fn json(value: &Value, json: &Json) -> Result<String, Error> {
    written(value, Some(json))
}

/// A list or a dict of which some items are written.
struct Open {
    items: std::vec::IntoIter<(Option<Value>, Value)>,
    is_first: bool,
    close: &'static str,
}

/// The items of a list or a dict, and the signs around them.
#[allow(clippy::type_complexity)]
fn items(
    value: &Value,
    json: Option<&Json>,
) -> Result<Option<(Vec<(Option<Value>, Value)>, &'static str, &'static str)>, Error> {
    Ok(match value.kind() {
        ValueKind::Map => {
            let mut items = Vec::new();
            for key in value.try_iter()? {
                items.push((Some(key.clone()), value.get_item(&key)?));
            }
            if json.is_some_and(|json| json.sort_keys) {
                items.sort_by(|(one, _), (other, _)| one.cmp(other));
            }
            Some((items, "{", "}"))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.map(|item| (None, item)).collect();
            match json.is_none() && value.is_tuple() {
                true => Some((items, "(", ")")),
                false => Some((items, "[", "]")),
            }
        }
        _ => None,
    })
}

fn written(value: &Value, json: Option<&Json>) -> Result<String, Error> {
    let mut out = String::new();
    let mut open: Vec<Open> = Vec::new();
    let mut next = Some(value.clone());
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = json.and_then(|json| json.indent.as_ref()) {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    };
    loop {
        if out.len() > LONGEST {
            return Err(invalid("a value is too long to be written"));
        }
        if let Some(value) = next.take() {
            match items(&value, json)? {
                Some((items, start, close)) => {
                    out.push_str(start);
                    if open.len() >= DEEPEST {
                        return Err(invalid("a value is too deep to be written"));
                    }
                    open.push(Open {
                        items: items.into_iter(),
                        is_first: true,
                        close,
                    });
                }
                None => match json {
                    Some(json) => json.scalar(&value, &mut out)?,
                    None => repr(&value, &mut out),
                },
            }
        }
        let depth = open.len();
        let Some(last) = open.last_mut() else {
            return Ok(out);
        };
        let Some((key, value)) = last.items.next() else {
            if !last.is_first {
                line(&mut out, depth - 1);
            }
            out.push_str(last.close);
            open.pop();
            continue;
        };
        if !last.is_first {
            out.push_str(json.map_or(", ", |json| &json.comma));
        }
        last.is_first = false;
        line(&mut out, depth);
        if let Some(key) = key {
            match json {
                Some(json) => {
                    let text = match key.as_str() {
                        Some(text) => text.to_string(),
                        None => {
                            let mut text = String::new();
                            json.scalar(&key, &mut text)?;
                            text
                        }
                    };
                    json.string(&text, &mut out);
                    out.push_str(&json.colon);
                }
                None => {
                    repr(&key, &mut out);
                    out.push_str(": ");
                }
            }
        }
        next = Some(value);
    }
}

impl Json {
    fn scalar(&self, value: &Value, out: &mut String) -> Result<(), Error> {
        match (value.kind(), value.as_str()) {
            (_, Some(text)) => self.string(text, out),
            (ValueKind::None, _) => out.push_str("null"),
            (ValueKind::Bool, _) => out.push_str(if value.is_true() { "true" } else { "false" }),
            (ValueKind::Number, _) => number(value, ["NaN", "Infinity"], out),
            (kind, _) => return Err(invalid(format!("an {kind} is no JSON"))),
        }
        Ok(())
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\x08' => out.push_str("\\b"),
                '\x0c' => out.push_str("\\f"),
                letter
                    if letter < ' '
                        || (self.ensure_ascii && !letter.is_ascii())
                        || (self.ensure_ascii && letter == '\x7f') =>
                {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                letter => out.push(letter),
            }
        }
        out.push('"');
    }
}

/// A number as Python writes it.
fn number(value: &Value, [nan, infinity]: [&str; 2], out: &mut String) {
    let float = match value.is_integer() {
        true => None,
        false => f64::try_from(value.clone()).ok(),
    };
    let Some(float) = float else {
        let _ = write!(out, "{value}");
        return;
    };
    if float.is_nan() {
        out.push_str(nan);
    } else if float.is_infinite() {
        out.push_str(if float < 0.0 { "-" } else { "" });
        out.push_str(infinity);
    } else if float != 0.0 && !(1e-4..1e16).contains(&float.abs()) {
        // Python has a sign and two digits in the exponent.
        let short = format!("{float:e}");
        let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        let _ = write!(out, "{float:?}");
    }
}

/// Whether Python writes a character by its number: controls, formats, unassigned ones, and spaces but for the one.
fn is_hidden(letter: char) -> bool {
    static HIDDEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}--\ ]").ok());
    !letter.is_ascii_graphic()
        && HIDDEN
            .as_ref()
            .is_some_and(|hidden| hidden.is_match(letter.encode_utf8(&mut [0; 4])))
}

/// `repr` of what is no list and no dict.
fn repr(value: &Value, out: &mut String) {
    match (value.kind(), value.as_str()) {
        (_, Some(text)) => {
            let quote = if text.contains('\'') && !text.contains('"') {
                '"'
            } else {
                '\''
            };
            out.push(quote);
            for letter in text.chars() {
                match letter {
                    '\\' => out.push_str("\\\\"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    letter if letter == quote => {
                        out.push('\\');
                        out.push(letter);
                    }
                    letter if is_hidden(letter) => {
                        let _ = match letter as u32 {
                            code @ ..0x100 => write!(out, "\\x{code:02x}"),
                            code @ ..0x10000 => write!(out, "\\u{code:04x}"),
                            code => write!(out, "\\U{code:08x}"),
                        };
                    }
                    letter => out.push(letter),
                }
            }
            out.push(quote);
        }
        (ValueKind::None, _) => out.push_str("None"),
        (ValueKind::Bool, _) => out.push_str(if value.is_true() { "True" } else { "False" }),
        (ValueKind::Number, _) => number(value, ["nan", "inf"], out),
        (ValueKind::Undefined, _) => out.push_str("Undefined"),
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}
