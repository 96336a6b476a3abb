//! Reads printed text token by token: a cursor in a line, and errors that state the position.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

const BLANKS: [char; 2] = [' ', '\t'];

/// The text and the current position.
pub(super) struct Text<'t> {
    text: &'t str,
    /// The next byte to read, on a character boundary.
    at: usize,
    /// Where the line ends, without its `\r\n` or `\n`.
    end: usize,
    /// Where the next line starts.
    next: usize,
    /// The number of the line, from 1.
    line: u32,
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The start of a text, for a message.
pub(super) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown = String::from("`");
    for (i, c) in text.chars().enumerate() {
        if i == SHOWN {
            shown.push_str("...");
            break;
        }
        match c {
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown.push('`');
    shown
}

impl<'t> Text<'t> {
    pub fn new(text: &'t str) -> Self {
        Text {
            text,
            at: 0,
            end: 0,
            next: 0,
            line: 0,
        }
    }

    /// The current position.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Skips bytes of the line, up to a character boundary.
    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Line and column of a position in the current line.
    pub fn position(&self, at: usize) -> (u32, u32) {
        (
            self.line,
            u32::try_from(self.column(at)).unwrap_or(u32::MAX),
        )
    }

    /// The column of a position, in characters from 1.
    fn column(&self, at: usize) -> usize {
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        1 + before[start..].chars().count()
    }

    // ---- errors --------------------------------------------------------------------------------

    pub fn error(&self, at: usize, problem: impl fmt::Display) -> Error {
        let breaks = self.text[..at].bytes().filter(|b| *b == b'\n').count();
        let (line, column) = (breaks + 1, self.column(at));
        let problem = problem.to_string();
        ErrorKind::Syntax {
            line,
            column,
            problem,
        }
        .into()
    }

    pub fn wrong(&self, at: usize, expected: impl fmt::Display, found: impl fmt::Display) -> Error {
        self.error(at, format_args!("expected {expected}, found {found}"))
    }

    /// The error for unexpected text at the current position.
    pub fn expected(&self, what: impl fmt::Display) -> Error {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('%'));
        let length = sign + self.word_at(self.at + sign).len();
        let found = match rest.chars().next() {
            None if self.end == self.text.len() => "the end of the text".to_string(),
            None => "the end of the line".to_string(),
            Some(c) => excerpt(&rest[..length.max(c.len_utf8())]),
        };
        self.wrong(self.at, what, found)
    }

    // ---- tokens --------------------------------------------------------------------------------

    /// Moves to the next line that is not blank, if there is one.
    pub fn next_line(&mut self) -> bool {
        while self.next < self.text.len() {
            let rest = &self.text[self.next..];
            let line = rest.split('\n').next().unwrap_or(rest);
            self.at = self.next;
            self.next = (self.at + line.len() + 1).min(self.text.len());
            self.line = self.line.saturating_add(1);
            let line = line.strip_suffix('\r').unwrap_or(line);
            self.end = self.at + line.len();
            if !line.trim_matches(BLANKS).is_empty() {
                return true;
            }
        }
        (self.at, self.end) = (self.text.len(), self.text.len());
        false
    }

    /// The rest of the line.
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..self.end]
    }

    pub fn blanks(&mut self) {
        self.at = self.end - self.rest().trim_start_matches(BLANKS).len();
    }

    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub fn expect(&mut self, token: &str) -> Result<()> {
        self.blanks();
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.expected(format_args!("`{token}`"))),
        }
    }

    pub fn word_at(&self, at: usize) -> &'t str {
        let rest = &self.text[at..self.end];
        &rest[..rest.len() - rest.trim_start_matches(is_word).len()]
    }

    pub fn word(&mut self, what: &str) -> Result<&'t str> {
        let word = self.word_at(self.at);
        if word.is_empty() {
            return Err(self.expected(what));
        }
        self.at += word.len();
        Ok(word)
    }

    pub fn line_end(&mut self) -> Result<()> {
        self.blanks();
        match self.rest().is_empty() {
            true => Ok(()),
            false => Err(self.expected("the end of the line")),
        }
    }

    /// Quoted text, with Rust's escapes.
    pub fn string(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(i) = rest.find(['"', '\\']) else {
                self.at = self.end;
                return Err(self.expected("`\"`"));
            };
            text.push_str(&rest[..i]);
            self.at += i;
            if self.eat("\"") {
                return Ok(text);
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char> {
        const PLAIN: [(&str, char); 7] = [
            ("\\n", '\n'),
            ("\\r", '\r'),
            ("\\t", '\t'),
            ("\\0", '\0'),
            ("\\\\", '\\'),
            ("\\\"", '"'),
            ("\\'", '\''),
        ];
        if let Some((_, c)) = PLAIN.iter().find(|(escape, _)| self.eat(escape)) {
            return Ok(*c);
        }
        let start = self.at;
        let rest = self.rest();
        if let Some(digits) = rest.strip_prefix("\\u{")
            && let Some(length) = digits.find('}').filter(|n| (1..=6).contains(n))
            && digits[..length].bytes().all(|b| b.is_ascii_hexdigit())
            && let Some(c) = u32::from_str_radix(&digits[..length], 16)
                .ok()
                .and_then(char::from_u32)
        {
            self.at += length + 4;
            return Ok(c);
        }
        let length = match rest.strip_prefix("\\u{") {
            Some(digits) => digits.find(['}', '"']).map_or(digits.len(), |i| i + 1) + 3,
            None => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
        };
        let found = excerpt(&rest[..length]);
        Err(self.wrong(start, "an escape such as `\\n` or `\\u{e9}`", found))
    }
}
