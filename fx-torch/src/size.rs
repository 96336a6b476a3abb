//! Sizes as sympy writes them, `Add(Symbol('s0', positive=True), Integer(1))`, as fx's text: `(s0 + 1)`. Python's text, of torch
//! 2.5, is that.
//!
//! Invariant: what is not understood is refused.

use fx_nn::value::Dim;
use fx_nn::{Error, Result};

/// How deep calls may stand in each other.
const DEEPEST: usize = 64;

/// The text of an expression.
///
/// # Errors
/// Returns an error for a function that sizes do not have here.
pub(crate) fn text(expression: &str) -> Result<String> {
    let wrong = |what: &str| {
        Error::msg(format_args!(
            "{what} in the size `{}`",
            expression.chars().take(200).collect::<String>()
        ))
    };
    if expression.parse::<Dim>().is_ok() {
        return Ok(expression.trim().to_string());
    }
    // The calls that are open: the name, and the arguments so far.
    let mut open: Vec<(&str, Vec<String>)> = Vec::new();
    let mut rest = expression.trim();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        let end = rest.find(['(', ')', ',']).unwrap_or(rest.len());
        let word = rest[..end].trim();
        let done = match rest[end..].chars().next() {
            Some('(') => {
                if open.len() >= DEEPEST {
                    return Err(wrong("too many calls in each other"));
                }
                open.push((word, Vec::new()));
                rest = &rest[end + 1..];
                continue;
            }
            Some(')') => {
                let Some((name, mut arguments)) = open.pop() else {
                    return Err(wrong("a `)` without its `(`"));
                };
                push(&mut arguments, word);
                rest = &rest[end + 1..];
                called(name, arguments).ok_or_else(|| wrong(&format!("`{name}`")))?
            }
            _ => {
                rest = &rest[end..];
                match open.last_mut() {
                    Some((_, arguments)) => push(arguments, word),
                    // A name or a number alone.
                    None if rest.is_empty() && !word.is_empty() => return Ok(word.to_string()),
                    None => return Err(wrong("something else")),
                }
                if rest.is_empty() {
                    return Err(wrong("a `(` without its `)`"));
                }
                continue;
            }
        };
        match open.last_mut() {
            Some((_, arguments)) => arguments.push(done),
            None if rest.trim().is_empty() => return Ok(done),
            None => return Err(wrong("something behind its end")),
        }
    }
}

/// Adds an argument; what is said of a symbol (`positive=True`) is left out.
fn push(arguments: &mut Vec<String>, word: &str) {
    if !word.is_empty() && !word.contains('=') {
        arguments.push(word.trim_matches(['\'', '"']).to_string());
    }
}

fn called(name: &str, arguments: Vec<String>) -> Option<String> {
    let joined = |sign: &str| Some(format!("({})", arguments.join(sign)));
    match (name, arguments.as_slice()) {
        ("Symbol" | "Integer", [one]) => Some(one.clone()),
        ("Add", [_, _, ..]) => joined(" + "),
        ("Mul", [_, _, ..]) => joined(" * "),
        ("FloorDiv" | "CleanDiv", [_, _]) => joined(" // "),
        _ => None,
    }
}
