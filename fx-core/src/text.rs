//! Text helpers: counted words, free names, and external text made safe for display: shortened if
//! long, escaped if it would hide or end its surroundings.
//!
//! Invariant: displayed text stays on its line and inside its comment, and is visible.

use std::fmt::{self, Write as _};

/// The most characters of a text that a message shows.
const EXCERPT: usize = 60;

/// Whether a text has a character for which [`is_hidden`] holds.
pub(crate) fn has_hidden(text: &str) -> bool {
    // Most names are printable ASCII.
    !text.bytes().all(|b| matches!(b, b' '..=b'~')) && text.contains(is_hidden)
}

/// Whether a character breaks lines, changes text direction or is invisible: controls, line
/// separators, direction marks and zero-width characters.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A count with its noun: `1 node`, `2 nodes`.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// How many were given: `1 was given`, `2 were given`.
pub(crate) fn given(n: usize) -> String {
    format!("{n} {} given", if n == 1 { "was" } else { "were" })
}

/// The first few names, then `..` if there are more.
pub(crate) fn first_names(names: impl IntoIterator<Item = String>, most: usize) -> String {
    let mut names = names.into_iter();
    let shown: Vec<String> = names.by_ref().take(most).collect();
    let more = if names.next().is_some() { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Asks whether one of the names was meant by a mistyped one: the nearest first, by few edits or the
/// same last step of a path; `None` if none is like it.
pub(crate) fn did_you_mean<'n>(
    name: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    const SHOWN: usize = 3;
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_string();
    let step = last(name);
    let allowed = (name.chars().count() / 3).max(2);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for other in names {
        let distance = edits_between(name, other);
        if distance <= allowed {
            near.push((distance, other));
        } else if last(other) == step {
            near.push((distance.max(allowed + 1), other));
        }
    }
    // Names of one distance keep their order.
    near.sort_by_key(|(distance, _)| *distance);
    let shown = near.iter().take(SHOWN).map(|(_, name)| format!("`{name}`"));
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| format!("did you mean {}?", shown.join(", ")))
}

/// How many characters must be put in, left out or replaced to make one text of another.
fn edits_between(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// A name if it is free, otherwise the first free one of `name_1`, `name_2`, ..
pub(crate) fn free_name(name: &str, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let mut free = name.to_string();
    let mut number = 0usize;
    while is_taken(&free) {
        number += 1;
        free = format!("{name}_{number}");
    }
    free
}

/// Text on one line, with hidden characters escaped as in Rust.
pub(crate) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(self.0, f, |_, _| false)
    }
}

/// Text inside a comment of any kind: it neither ends the comment nor opens another.
pub(crate) struct Comment<'a>(pub &'a str);

impl fmt::Display for Comment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(self.0, f, ends_comment)
    }
}

fn ends_comment(before: char, c: char) -> bool {
    matches!((before, c), ('*', '/') | ('/', '*'))
}

/// Text in backticks inside a doc comment: it cannot end them or start a code block.
pub(crate) struct Doc<'a>(pub &'a str);

impl fmt::Display for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(self.0, f, |before, c| c == '`' || ends_comment(before, c))
    }
}

fn escape(
    text: &str,
    f: &mut fmt::Formatter<'_>,
    also: impl Fn(char, char) -> bool,
) -> fmt::Result {
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if is_hidden(c) || also(before, c) => write!(f, "{}", c.escape_unicode())?,
            c => f.write_char(c)?,
        }
        before = c;
    }
    Ok(())
}

/// Text in a message: in backticks, escaped, shortened if long.
pub(crate) struct Excerpt<'a>(pub &'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(EXCERPT) {
            None => write!(f, "`{}`", Escaped(self.0)),
            Some((end, _)) => write!(f, "`{}..`", Escaped(&self.0[..end])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_holds_any_text() {
        for text in [
            "a*/b",
            "/*",
            "*/*",
            "**//",
            "/*/",
            "a\nb",
            "\u{202e}x",
            "\u{2028}",
            "``",
            "\r",
        ] {
            for shown in [Comment(text).to_string(), Doc(text).to_string()] {
                assert!(!shown.contains("*/") && !shown.contains("/*"), "{shown}");
                assert!(!shown.contains(is_hidden), "{shown}");
            }
            assert!(!Doc(text).to_string().contains('`'));
        }
        assert_eq!(
            Comment("layers.0 (a / b * c)").to_string(),
            "layers.0 (a / b * c)"
        );
        assert_eq!(Excerpt("a\nb").to_string(), "`a\\nb`");
    }
}
