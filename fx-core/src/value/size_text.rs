//! Sizes as text, and back: `(h + 15) // 16`, `2*t`, `min(n, 8)`.
//!
//! Invariant: what is printed is parsed as an equal size.

use std::fmt;
use std::str::FromStr;

use super::dim::Dim;
use super::size_expr::{Atom, Remainder, SizeExpr};
use crate::error::{Error, Result};
use crate::text::Excerpt;

/// How many parentheses are inside each other at most.
const MAX_DEPTH: usize = 64;

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_number() {
            Some(number) => fmt::Display::fmt(&number, f),
            None => f.write_str(&sum(&self.expr())),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A term of a sum as it is written.
struct Written {
    text: String,
    is_negative: bool,
    degree: usize,
}

fn sum(expr: &SizeExpr) -> String {
    let mut text = String::new();
    for (at, term) in written(expr).into_iter().enumerate() {
        match (at, term.is_negative) {
            (0, false) => text.push_str(&term.text),
            // The sign of a first factor is its own.
            (0, true) if term.text.contains(' ') => text.push_str(&format!("-({})", term.text)),
            (0, true) => text.push_str(&format!("-{}", term.text)),
            (_, false) => text.push_str(&format!(" + {}", term.text)),
            (_, true) => text.push_str(&format!(" - {}", term.text)),
        }
    }
    match text.is_empty() {
        true => "0".to_string(),
        false => text,
    }
}

/// The terms: the highest degree first, the number last, and a positive one before negative ones.
fn written(expr: &SizeExpr) -> Vec<Written> {
    let (remainders, rest) = expr.remainders();
    let remainders = remainders.into_iter().map(|Remainder { times, of, by }| {
        let text = format!("{} % {by}", operand(of));
        Written {
            is_negative: times < 0,
            degree: 1,
            text: match times.unsigned_abs() {
                1 => text,
                amount => format!("{amount}*({text})"),
            },
        }
    });
    let mut written: Vec<Written> = remainders.collect();
    for (product, count) in rest.terms() {
        let amount = count.unsigned_abs();
        let mut factors: Vec<String> = product.iter().map(factor).collect();
        factors.sort();
        let text = match (&**product, amount) {
            ([Atom::Quotient(of, by)], 1) => format!("{} // {}", operand(of), operand(by)),
            ([], amount) => amount.to_string(),
            (_, 1) => factors.join("*"),
            (_, amount) => format!("{amount}*{}", factors.join("*")),
        };
        written.push(Written {
            is_negative: *count < 0,
            degree: product.len(),
            text,
        });
    }
    written.sort_by(|a, b| (b.degree, &a.text).cmp(&(a.degree, &b.text)));
    if let Some(at) = written.iter().position(|term| !term.is_negative) {
        let first = written.remove(at);
        written.insert(0, first);
    }
    written
}

fn factor(atom: &Atom) -> String {
    let several = |of: &[SizeExpr]| of.iter().map(sum).collect::<Vec<_>>().join(", ");
    match atom {
        Atom::Symbol(name) => name.to_string(),
        Atom::Quotient(of, by) => format!("({} // {})", operand(of), operand(by)),
        Atom::Min(of) => format!("min({})", several(of)),
        Atom::Max(of) => format!("max({})", several(of)),
    }
}

/// What stands beside `//` and `%`.
fn operand(expr: &SizeExpr) -> String {
    match expr.as_atom() {
        Some(atom) => factor(atom),
        None if expr.as_number().is_some_and(|number| number >= 0) => sum(expr),
        None => format!("({})", sum(expr)),
    }
}

impl FromStr for Dim {
    type Err = Error;

    /// Reads a size as it is printed: numbers, names, `+`, `-`, `*`, `//`, `%`, `min`, `max` and
    /// parentheses.
    fn from_str(text: &str) -> Result<Dim> {
        let mut reader = Reader { text, at: 0 };
        let dim = reader.sum(0)?;
        match reader.peek() {
            None => Ok(dim),
            Some(_) => Err(reader.unexpected("an operator")),
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn peek(&mut self) -> Option<char> {
        self.rest().chars().next()
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn unexpected(&mut self, wanted: &str) -> Error {
        let found = match self.rest() {
            "" => "the end".to_string(),
            rest => Excerpt(rest).to_string(),
        };
        Error::expected(
            format_args!("{wanted} in the size {}", Excerpt(self.text)),
            found,
        )
    }

    fn sum(&mut self, depth: usize) -> Result<Dim> {
        let mut sum = self.product(depth)?;
        loop {
            if self.takes("+") {
                sum = (sum + self.product(depth)?)?;
            } else if self.takes("-") {
                sum = (sum - self.product(depth)?)?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Result<Dim> {
        let mut product = self.factor(depth)?;
        loop {
            if self.takes("*") {
                product = (product * self.factor(depth)?)?;
            } else if self.takes("//") {
                product = product.div(self.factor(depth)?)?;
            } else if self.takes("%") {
                product = product.rem(self.factor(depth)?)?;
            } else {
                return Ok(product);
            }
        }
    }

    fn factor(&mut self, depth: usize) -> Result<Dim> {
        if depth > MAX_DEPTH {
            return Err(Error::limit(
                MAX_DEPTH,
                format_args!("a size has more than {MAX_DEPTH} parentheses inside each other"),
            ));
        }
        if self.takes("-") {
            return self.factor(depth + 1)? * -1;
        }
        if self.takes("(") {
            let inner = self.sum(depth + 1)?;
            return match self.takes(")") {
                true => Ok(inner),
                false => Err(self.unexpected("`)`")),
            };
        }
        let rest = self.rest();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (word, _) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        if word.is_empty() {
            return Err(self.unexpected("a number or a name"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse::<i64>();
            let number = number.map_err(|_| self.unexpected("a number"))?;
            self.at += word.len();
            return Ok(number.into());
        }
        self.at += word.len();
        if matches!(word, "min" | "max") {
            return self.extreme(word == "max", depth);
        }
        Dim::symbol(word)
    }

    fn extreme(&mut self, largest: bool, depth: usize) -> Result<Dim> {
        if !self.takes("(") {
            return Err(self.unexpected("`(`"));
        }
        let mut extreme = self.sum(depth + 1)?;
        while self.takes(",") {
            let other = self.sum(depth + 1)?;
            extreme = match largest {
                true => extreme.max(other)?,
                false => extreme.min(other)?,
            };
        }
        match self.takes(")") {
            true => Ok(extreme),
            false => Err(self.unexpected("`,` or `)`")),
        }
    }
}
