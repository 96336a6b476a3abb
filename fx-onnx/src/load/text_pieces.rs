//! Functions that look into texts, as leaves that run on the host: what cuts them into pieces, and patterns.
//!
//! Invariant: as in `text_leaves`; a pattern takes time that is linear in a text, and a bounded room.

use std::sync::Arc;

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::shapes::ShapeRule;
use fx_nn::{Error, Result};
use regex::Regex;

use super::text_leaves::{of_shape, truths};
use crate::texts::Texts;

/// The most bytes that a pattern takes when it is made ready.
const LARGEST_PATTERN: usize = 1 << 22;

/// The most pieces of all texts, with those that fill them.
const MOST_PIECES: usize = 1 << 26;

/// What stands before and behind the pieces of a text.
const MARKS: [&str; 2] = ["\u{2}", "\u{3}"];

/// The pieces of each text between delimiters along a new last dim, filled with empty texts, and how many each has.
/// ONNX's `StringSplit`.
///
/// An empty delimiter stands for white space, of which any amount is one. An empty text has no pieces. `most` is how often a text is split at most;
/// below 0, at each delimiter.
///
/// ```
/// use fx_onnx::{Texts, text_split};
/// let (pieces, counts) = text_split(&Texts::from(["a b", "c"]), "", -1)?;
/// assert_eq!(pieces, Texts::new(["a", "b", "c", ""], [2, 2])?);
/// assert_eq!(counts.to_vec()?, [2.0, 1.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if there is no room for the pieces.
#[wrap(path = "fx_onnx::text_split")]
pub fn text_split(x: &Texts, delimiter: &str, most: i64) -> Result<(Texts, Tensor)> {
    let most = usize::try_from(most).unwrap_or(usize::MAX - 1);
    let all: Vec<Vec<&str>> = (x.items()?.iter())
        .map(|text| match delimiter {
            "" => words(text, most),
            _ if text.is_empty() => Vec::new(),
            delimiter => text.splitn(most + 1, delimiter).collect(),
        })
        .collect();
    let widest = all.iter().map(Vec::len).max().unwrap_or(0);
    let pieces = padded("text_split", x, &all, widest, "")?;
    let counts: Vec<i64> = all.iter().map(|pieces| pieces.len() as i64).collect();
    let counts = Tensor::from_vec(counts, x.dims()?.to_vec())?;
    Ok((pieces, counts))
}

/// The words of a text, split so often at most: then the last one is the rest.
fn words(text: &str, most: usize) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = match found.len() < most {
            true => rest.find(char::is_whitespace).unwrap_or(rest.len()),
            false => rest.len(),
        };
        found.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    found
}

/// Whether a pattern matches the whole of each text. ONNX's `RegexFullMatch`; the patterns are those of RE2.
///
/// ```
/// use fx_onnx::{Texts, text_matches};
/// let is = text_matches(&Texts::from(["www.site.org", "site.org"]), r"www\.[a-z]+\.\bcom|www.*")?;
/// assert_eq!(is.to_vec()?, [1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the pattern is none, or too large.
#[wrap(path = "fx_onnx::text_matches")]
pub fn text_matches(x: &Texts, pattern: &str) -> Result<Tensor> {
    // Alone first: a parenthesis that closes nothing would end the group around it.
    regex_of("text_matches", pattern)?;
    let whole = regex_of("text_matches", &format!(r"\A(?:{pattern})\z"))?;
    let is: Vec<bool> = x.items()?.iter().map(|text| whole.is_match(text)).collect();
    truths(is)?.reshape(x.dims()?.to_vec())
}

/// The pieces of each text along a new last dim, filled to a common number. ONNX Runtime's `Tokenizer`.
///
/// With a `pattern`, a piece is what it matches; else what is between separators, which are patterns, each applied to the
/// pieces of those before it. One empty separator stands for cuts between all letters. A piece of fewer letters than
/// `least` is left out. With `mark`, each text gets a mark before and behind its pieces.
///
/// ```
/// use fx_onnx::{Texts, text_tokens};
/// let none = Texts::from(Vec::<&str>::new());
/// let words = text_tokens(&Texts::from(["one, two", "three"]), "[a-z]+", &none, "#", false, 1)?;
/// assert_eq!(words, Texts::new(["one", "two", "three", "#"], [2, 2])?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a pattern is none, or there is no room for the pieces.
#[wrap(path = "fx_onnx::text_tokens")]
pub fn text_tokens(
    x: &Texts,
    pattern: &str,
    separators: &Texts,
    fill: &str,
    mark: bool,
    least: usize,
) -> Result<Texts> {
    let name = "text_tokens";
    let separators = separators.items()?;
    let is_by_letter = pattern.is_empty() && matches!(separators, [one] if one.is_empty());
    let token = match pattern {
        "" => None,
        pattern => Some(regex_of(name, pattern)?),
    };
    let by = separators.iter().map(|text| regex_of(name, text));
    let by = by.collect::<Result<Vec<Regex>>>()?;
    let all = x.items()?.iter().map(|text| {
        let pieces: Vec<&str> = match &token {
            Some(token) => token.find_iter(text).map(|found| found.as_str()).collect(),
            None if is_by_letter => {
                let letters = text.char_indices();
                letters
                    .map(|(at, letter)| &text[at..at + letter.len_utf8()])
                    .collect()
            }
            None => by.iter().fold(vec![&**text], |pieces, separator| {
                pieces
                    .into_iter()
                    .flat_map(|piece| separator.split(piece))
                    .collect()
            }),
        };
        let is_long = |piece: &&str| !piece.is_empty() && piece.chars().count() >= least;
        pieces.into_iter().filter(is_long).collect()
    });
    let mut all: Vec<Vec<&str>> = all.collect();
    // Where no text has any, there are no marks either.
    if mark && all.iter().any(|pieces| !pieces.is_empty()) {
        for pieces in &mut all {
            pieces.insert(0, MARKS[0]);
            pieces.push(MARKS[1]);
        }
    }
    let widest = all.iter().map(Vec::len).max().unwrap_or(0);
    padded(name, x, &all, widest, fill)
}

/// Pieces of each text along a new last dim, filled to so many.
fn padded(name: &str, x: &Texts, all: &[Vec<&str>], widest: usize, fill: &str) -> Result<Texts> {
    let room = all
        .len()
        .checked_mul(widest)
        .filter(|room| *room < MOST_PIECES);
    let room = room.ok_or_else(|| {
        Error::msg(format_args!(
            "{name}: no room for {widest} pieces of each of {} texts",
            all.len()
        ))
    })?;
    let fill: Arc<str> = Arc::from(fill);
    let mut items = Vec::with_capacity(room);
    for pieces in all {
        items.extend(pieces.iter().map(|piece| Arc::from(*piece)));
        items.extend((pieces.len()..widest).map(|_| fill.clone()));
    }
    Texts::new(items, [x.dims()?, &[widest]].concat())
}

/// A pattern made ready.
fn regex_of(name: &str, pattern: &str) -> Result<Regex> {
    let mut builder = regex::RegexBuilder::new(pattern);
    let built = builder.size_limit(LARGEST_PATTERN).build();
    built.map_err(|e| Error::msg(format_args!("{name}: {e}")))
}

fx_nn::function_table! { ShapeRule {
    fx_nn::function!(crate::load::text_split) => ShapeRule(|call| {
        let shape = call.tensor("x")?.shape.clone();
        let mut pieces = shape.clone();
        pieces.push(call.env().fresh(0, None)?);
        let counts = of_shape(&shape, Some(DType::I64));
        Ok(ValueMeta::Tuple(vec![of_shape(&pieces, None), counts]))
    }),
    fx_nn::function!(crate::load::text_matches) => ShapeRule(|call| {
        Ok(of_shape(&call.tensor("x")?.shape, Some(DType::Bool)))
    }),
    fx_nn::function!(crate::load::text_tokens) => ShapeRule(|call| {
        let mut shape = call.tensor("x")?.shape.clone();
        shape.push(call.env().fresh(0, None)?);
        Ok(of_shape(&shape, None))
    }),
} }
