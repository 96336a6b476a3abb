//! `--input`: what an argument of the module is.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, SpecSize};

use crate::arrays;

/// How deep structures may be inside of each other.
const DEEPEST: usize = 64;

/// An argument of the module.
#[derive(Debug, Clone)]
pub struct Input {
    /// The name of the argument; without it, it is the next one.
    pub name: Option<String>,
    of: InputOf,
}

#[derive(Debug, Clone)]
enum InputOf {
    Spec(Spec),
    File(PathBuf),
}

impl Input {
    /// What it is, where a shape was given.
    pub fn spec(&self) -> Option<&Spec> {
        match &self.of {
            InputOf::Spec(spec) => Some(spec),
            InputOf::File(_) => None,
        }
    }

    /// The file of its elements.
    pub fn file(&self) -> Option<&Path> {
        match &self.of {
            InputOf::File(path) => Some(path),
            InputOf::Spec(_) => None,
        }
    }
}

impl FromStr for Input {
    type Err = Error;

    /// A tensor: sizes with commas in between, each a number or a name, then `:` and a type, which is `float32` if it is
    /// left out. A tensor without dims has no size: `:int64`.
    ///
    /// After `=`, a number, `true`, `false`, `none`, or what a run decides: `float`, `bool`, or a name, which is that of a
    /// whole number.
    ///
    /// In `(..)`, `[..]` or `{key: ..}`, a tuple, a list or a dict of these, with each tensor in quotes.
    ///
    /// Or a file: of arrays, `.npy` or `.npz`, or of lists of text, `.json`. Before any of these, a name and `=` say which argument it is.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let (name, text) = match text.split_once('=') {
            Some((name, rest)) if !name.is_empty() && !name.contains(['(', '[', '{', '"']) => {
                (Some(name.trim().to_string()), rest.trim())
            }
            _ => (None, text),
        };
        let path = Path::new(text);
        let of = match arrays::is_file(path) || arrays::is_text(path) {
            true => InputOf::File(PathBuf::from(text)),
            false => InputOf::Spec(spec_of(text)?),
        };
        Ok(Input { name, of })
    }
}

/// What an argument is, by a text without its name.
fn spec_of(text: &str) -> Result<Spec> {
    if let Some(plain) = text.strip_prefix('=') {
        return plain_of(plain.trim());
    }
    if !text.starts_with(['(', '[', '{']) {
        return tensor(text);
    }
    let mut structure = Structure { text, at: 0 };
    let spec = structure.item(0)?;
    match structure.peek() {
        None => Ok(spec),
        Some(_) => Err(structure.wrong("the end")),
    }
}

fn tensor(text: &str) -> Result<Spec> {
    let (sizes, dtype) = text.split_once(':').unwrap_or((text, "float32"));
    let dtype = DType::from_name(dtype.trim()).ok_or_else(|| {
        let names: Vec<String> = DType::ALL.iter().map(ToString::to_string).collect();
        Error::msg(format_args!(
            "`{dtype}` is no element type: give one of {}",
            names.join(", ")
        ))
    })?;
    let sizes = sizes
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let sizes = sizes.map(|size| match size.parse::<usize>() {
        Ok(number) => SpecSize::from(number),
        Err(_) => SpecSize::from(size),
    });
    Ok(Spec::tensor(sizes, dtype))
}

/// What is no tensor and no structure.
fn plain_of(text: &str) -> Result<Spec> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    Ok(match text {
        "true" => Spec::of(true),
        "false" => Spec::of(false),
        "none" => Spec::of(Value::None),
        "float" => Spec::float(),
        "bool" => Spec::bool(),
        "" => return Err(Error::msg("there is nothing behind the `=`")),
        text if is_number => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(whole), _) => Spec::of(whole),
            (_, Ok(number)) => Spec::of(number),
            _ => return Err(Error::msg(format_args!("`{text}` is no number"))),
        },
        name => Spec::int(name),
    })
}

/// A structure that is read.
struct Structure<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Structure<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn wrong(&self, expected: &str) -> Error {
        Error::msg(format_args!(
            "`{}`: {expected} is expected at `{}`",
            self.text,
            self.rest()
        ))
    }

    fn take(&mut self, wanted: char) -> Result<()> {
        match self.peek() {
            Some(found) if found == wanted => {
                self.at += wanted.len_utf8();
                Ok(())
            }
            _ => Err(self.wrong(&format!("`{wanted}`"))),
        }
    }

    /// A text in quotes, or up to what ends an item.
    fn word(&mut self) -> Result<(&'t str, bool)> {
        if self.peek() == Some('"') {
            self.at += 1;
            let end = self.rest().find('"');
            let end = end.ok_or_else(|| self.wrong("a closing quote"))?;
            let word = &self.rest()[..end];
            self.at += end + 1;
            return Ok((word, true));
        }
        let rest = self.rest();
        let end = rest.find([',', ':', ')', ']', '}', '(', '[', '{', '"']);
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        match word.trim() {
            "" => Err(self.wrong("an item")),
            word => Ok((word, false)),
        }
    }

    fn item(&mut self, depth: usize) -> Result<Spec> {
        if depth > DEEPEST {
            return Err(Error::msg(format_args!(
                "structures are more than {DEEPEST} deep"
            )));
        }
        match self.peek() {
            Some('(') => Ok(Spec::tuple(self.items(')', depth)?)),
            Some('[') => Ok(Spec::list(self.items(']', depth)?)),
            Some('{') => {
                self.at += 1;
                let mut items = Vec::new();
                while self.peek() != Some('}') {
                    let (key, _) = self.word()?;
                    self.take(':')?;
                    items.push((key, self.item(depth + 1)?));
                    self.separate('}')?;
                }
                self.at += 1;
                Ok(Spec::dict(items))
            }
            _ => match self.word()? {
                (text, true) => tensor(text),
                (text, false) => plain_of(text),
            },
        }
    }

    /// The items up to what closes them.
    fn items(&mut self, close: char, depth: usize) -> Result<Vec<Spec>> {
        self.at += 1;
        let mut items = Vec::new();
        while self.peek() != Some(close) {
            items.push(self.item(depth + 1)?);
            self.separate(close)?;
        }
        self.at += 1;
        Ok(items)
    }

    /// A comma, unless the structure closes.
    fn separate(&mut self, close: char) -> Result<()> {
        match self.peek() {
            Some(found) if found == close => Ok(()),
            Some(',') => self.take(','),
            _ => Err(self.wrong(&format!("`,` or `{close}`"))),
        }
    }
}
