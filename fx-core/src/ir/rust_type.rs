//! Rust types as text, parsed by a grammar: the type names in parameters, nodes and saved files.
//!
//! Invariant: printing a parsed type yields a type, and nothing else.

use std::fmt;

use super::names::{is_identifier, is_reserved};
use crate::error::{Error, Result};
use crate::text::Excerpt;

/// The deepest nesting of types, so that walks over them may recurse.
const MAX_DEPTH: usize = 32;

/// A Rust type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RustType {
    /// `&'a mut T`
    Reference {
        lifetime: Option<String>,
        mutable: bool,
        inner: Box<RustType>,
    },
    /// `(A, B)`
    Tuple(Vec<RustType>),
    /// `[T]`
    Slice(Box<RustType>),
    /// `[T; 3]`, with a number or a name as the length
    Array(Box<RustType>, String),
    /// `a::B<C>`
    Path(TypePath),
    /// `impl A + B` or `dyn A + B`
    Bounds(&'static str, Vec<Bound>),
    /// `fn(A) -> B`
    Function(Call),
}

/// A path of names, each with its bracketed arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TypePath {
    /// Whether it starts with `::`.
    global: bool,
    pub segments: Vec<Segment>,
}

/// One name of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Segment {
    pub name: String,
    pub arguments: Arguments,
}

/// The arguments after a name in a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Arguments {
    None,
    /// `<A, B>`
    Generic(Vec<GenericArgument>),
    /// `(A) -> B`
    Call(Call),
}

/// An argument in `<..>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum GenericArgument {
    Lifetime(String),
    Number(String),
    Type(RustType),
    /// `Item = T`
    Binding(String, RustType),
}

/// The types of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    takes: Vec<RustType>,
    gives: Option<Box<RustType>>,
}

/// A bound of an `impl` or `dyn` type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Bound {
    Lifetime(String),
    Trait(TypePath),
}

impl RustType {
    /// Parses a type.
    ///
    /// # Errors
    /// Returns an error if the text is not a type, or nests deeper than 32 levels.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let ty = reader.ty(0).and_then(|ty| match reader.next() {
            Token::End => Ok(ty),
            _ => Err(reader.unexpected("the end")),
        });
        ty.map_err(|problem| {
            Error::msg(format_args!(
                "{} is not a Rust type: {problem}",
                Excerpt(text)
            ))
        })
    }

    /// The type with this name, without arguments.
    pub fn named(name: &str) -> Self {
        RustType::Path(TypePath {
            global: false,
            segments: vec![Segment {
                name: name.to_string(),
                arguments: Arguments::None,
            }],
        })
    }

    /// The target of a reference, through any number of references; otherwise the type itself.
    pub fn referred(&self) -> &RustType {
        let mut ty = self;
        while let RustType::Reference { inner, .. } = ty {
            ty = inner;
        }
        ty
    }

    /// The last name of a path, and its type arguments.
    pub fn last(&self) -> Option<(&str, Vec<&RustType>)> {
        let RustType::Path(path) = self else {
            return None;
        };
        let last = path.segments.last()?;
        let arguments = match &last.arguments {
            Arguments::Generic(arguments) => arguments.as_slice(),
            _ => &[],
        };
        let types = arguments.iter().filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        });
        Some((&last.name, types.collect()))
    }

    /// The inner type of an option.
    pub fn optional(&self) -> Option<&RustType> {
        match (self.last()?, self) {
            (("Option", inner), RustType::Path(path)) if path.segments.len() == 1 => {
                inner.first().copied()
            }
            _ => None,
        }
    }

    /// Visits every path in the type, including those in brackets.
    pub fn for_each_path<'t>(&'t self, see: &mut dyn FnMut(&'t TypePath)) {
        match self {
            RustType::Reference { inner, .. } | RustType::Slice(inner) => inner.for_each_path(see),
            RustType::Array(inner, _) => inner.for_each_path(see),
            RustType::Tuple(parts) => parts.iter().for_each(|part| part.for_each_path(see)),
            RustType::Path(path) => path.for_each(see),
            RustType::Bounds(_, bounds) => {
                for bound in bounds {
                    if let Bound::Trait(path) = bound {
                        path.for_each(see);
                    }
                }
            }
            RustType::Function(call) => call.for_each(see),
        }
    }
}

impl TypePath {
    /// The path without its bracketed arguments.
    pub fn plain(&self) -> String {
        let names: Vec<&str> = self.segments.iter().map(|s| s.name.as_str()).collect();
        names.join("::")
    }

    fn for_each<'t>(&'t self, see: &mut dyn FnMut(&'t TypePath)) {
        see(self);
        for segment in &self.segments {
            match &segment.arguments {
                Arguments::None => {}
                Arguments::Call(call) => call.for_each(see),
                Arguments::Generic(arguments) => {
                    for argument in arguments {
                        if let GenericArgument::Type(ty) | GenericArgument::Binding(_, ty) =
                            argument
                        {
                            ty.for_each_path(see);
                        }
                    }
                }
            }
        }
    }
}

impl Call {
    fn for_each<'t>(&'t self, see: &mut dyn FnMut(&'t TypePath)) {
        self.takes.iter().for_each(|ty| ty.for_each_path(see));
        if let Some(ty) = &self.gives {
            ty.for_each_path(see);
        }
    }
}

/// A token of a type's text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'t> {
    Name(&'t str),
    Lifetime(&'t str),
    Number(&'t str),
    Sign(&'static str),
    Unknown,
    End,
}

const SIGNS: [&str; 14] = [
    "::", "->", "&", "(", ")", "[", "]", "<", ">", ",", ";", "=", "+", "?",
];

type Parsed<T> = std::result::Result<T, String>;

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// The next token, and where it ends.
    fn look(&self) -> (Token<'t>, usize) {
        let rest = self.text[self.at..].trim_start();
        let start = self.text.len() - rest.len();
        let word = |rest: &'t str| {
            let end = rest.find(|c: char| !(c == '_' || c.is_alphanumeric()));
            &rest[..end.unwrap_or(rest.len())]
        };
        let Some(first) = rest.chars().next() else {
            return (Token::End, start);
        };
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            return (Token::Sign(sign), start + sign.len());
        }
        if let Some(name) = rest.strip_prefix('\'') {
            let name = word(name);
            return match is_identifier(name) {
                true => (Token::Lifetime(name), start + 1 + name.len()),
                false => (Token::Unknown, start),
            };
        }
        if first.is_ascii_digit() {
            let number = word(rest);
            return match number.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
                true => (Token::Number(number), start + number.len()),
                false => (Token::Unknown, start),
            };
        }
        let raw = rest.strip_prefix("r#");
        let name = word(raw.unwrap_or(rest));
        let length = name.len() + if raw.is_some() { 2 } else { 0 };
        let written = &rest[..length];
        let fits = is_identifier(name)
            && (raw.is_none() || !matches!(name, "self" | "Self" | "super" | "crate"));
        match fits {
            true => (Token::Name(written), start + length),
            false => (Token::Unknown, start),
        }
    }

    fn next(&mut self) -> Token<'t> {
        let (token, end) = self.look();
        self.at = end;
        token
    }

    fn accept(&mut self, wanted: Token<'_>) -> bool {
        let (token, end) = self.look();
        let found = token == wanted;
        if found {
            self.at = end;
        }
        found
    }

    fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        match self.accept(Token::Sign(sign)) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{sign}`"))),
        }
    }

    fn unexpected(&self, wanted: &str) -> String {
        let rest = self.text[self.at..].trim_start();
        match rest.is_empty() {
            true => format!("expected {wanted}, found its end"),
            false => format!("expected {wanted}, found {}", Excerpt(rest)),
        }
    }

    fn ty(&mut self, depth: usize) -> Parsed<RustType> {
        if depth > MAX_DEPTH {
            return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
        }
        match self.look().0 {
            Token::Sign("&") => {
                self.next();
                let lifetime = self.lifetime();
                let mutable = self.accept(Token::Name("mut"));
                let inner = Box::new(self.ty(depth + 1)?);
                Ok(RustType::Reference {
                    lifetime,
                    mutable,
                    inner,
                })
            }
            Token::Sign("(") => {
                self.next();
                let (mut parts, comma) = self.types(")", depth)?;
                // A type in parentheses is the type itself.
                Ok(match (parts.len(), comma) {
                    (1, false) => parts.remove(0),
                    _ => RustType::Tuple(parts),
                })
            }
            Token::Sign("[") => {
                self.next();
                let item = Box::new(self.ty(depth + 1)?);
                if !self.accept(Token::Sign(";")) {
                    self.expect("]")?;
                    return Ok(RustType::Slice(item));
                }
                let length = match self.look().0 {
                    Token::Number(number) => number,
                    Token::Name(name) if !is_reserved(name) => name,
                    _ => return Err(self.unexpected("a length")),
                };
                self.next();
                self.expect("]")?;
                Ok(RustType::Array(item, length.to_string()))
            }
            Token::Name("impl") => self.bounds("impl", depth),
            Token::Name("dyn") => self.bounds("dyn", depth),
            Token::Name("fn") => {
                self.next();
                self.expect("(")?;
                Ok(RustType::Function(self.call(depth)?))
            }
            _ => Ok(RustType::Path(self.path(depth)?)),
        }
    }

    fn lifetime(&mut self) -> Option<String> {
        let Token::Lifetime(name) = self.look().0 else {
            return None;
        };
        self.next();
        Some(name.to_string())
    }

    /// Types up to the closing token, and whether there was a trailing comma.
    fn types(&mut self, close: &'static str, depth: usize) -> Parsed<(Vec<RustType>, bool)> {
        let mut types = Vec::new();
        let mut comma = false;
        while !self.accept(Token::Sign(close)) {
            if !types.is_empty() && !comma {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
            types.push(self.ty(depth + 1)?);
            comma = self.accept(Token::Sign(","));
        }
        Ok((types, comma))
    }

    /// `A) -> B`
    fn call(&mut self, depth: usize) -> Parsed<Call> {
        let (takes, _) = self.types(")", depth)?;
        let gives = match self.accept(Token::Sign("->")) {
            true => Some(Box::new(self.ty(depth + 1)?)),
            false => None,
        };
        Ok(Call { takes, gives })
    }

    fn bounds(&mut self, keyword: &'static str, depth: usize) -> Parsed<RustType> {
        self.next();
        let mut bounds = Vec::new();
        loop {
            bounds.push(match self.lifetime() {
                Some(lifetime) => Bound::Lifetime(lifetime),
                None => Bound::Trait(self.path(depth)?),
            });
            if !self.accept(Token::Sign("+")) {
                return Ok(RustType::Bounds(keyword, bounds));
            }
        }
    }

    fn path(&mut self, depth: usize) -> Parsed<TypePath> {
        let global = self.accept(Token::Sign("::"));
        let mut segments: Vec<Segment> = Vec::new();
        loop {
            let Token::Name(name) = self.look().0 else {
                return Err(self.unexpected("a type"));
            };
            let first = segments.is_empty() && !global;
            let leads = matches!(name, "self" | "super" | "crate" | "Self");
            if (leads || is_reserved(name)) && !(first && leads) {
                return Err(self.unexpected("a type"));
            }
            self.next();
            let arguments = match self.look().0 {
                Token::Sign("<") => {
                    self.next();
                    Arguments::Generic(self.generic(depth)?)
                }
                Token::Sign("(") => {
                    self.next();
                    Arguments::Call(self.call(depth)?)
                }
                _ => Arguments::None,
            };
            segments.push(Segment {
                name: name.to_string(),
                arguments,
            });
            if !self.accept(Token::Sign("::")) {
                return Ok(TypePath { global, segments });
            }
        }
    }

    fn generic(&mut self, depth: usize) -> Parsed<Vec<GenericArgument>> {
        let mut arguments = Vec::new();
        let mut comma = true;
        while !self.accept(Token::Sign(">")) {
            if !comma {
                return Err(self.unexpected("`,` or `>`"));
            }
            arguments.push(match self.look().0 {
                Token::Lifetime(name) => {
                    self.next();
                    GenericArgument::Lifetime(name.to_string())
                }
                Token::Number(number) => {
                    self.next();
                    GenericArgument::Number(number.to_string())
                }
                _ => {
                    let ty = self.ty(depth + 1)?;
                    match (&ty, self.accept(Token::Sign("="))) {
                        (_, false) => GenericArgument::Type(ty),
                        (RustType::Path(path), true) if path.segments.len() == 1 => {
                            let name = path.plain();
                            GenericArgument::Binding(name, self.ty(depth + 1)?)
                        }
                        _ => return Err(self.unexpected("`,` or `>`")),
                    }
                }
            });
            comma = self.accept(Token::Sign(","));
        }
        Ok(arguments)
    }
}

fn separated(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = impl fmt::Display>,
    by: &str,
) -> fmt::Result {
    for (at, item) in items.into_iter().enumerate() {
        write!(f, "{}{item}", if at > 0 { by } else { "" })?;
    }
    Ok(())
}

impl fmt::Display for RustType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RustType::Reference {
                lifetime,
                mutable,
                inner,
            } => {
                f.write_str("&")?;
                if let Some(name) = lifetime {
                    write!(f, "'{name} ")?;
                }
                write!(f, "{}{inner}", if *mutable { "mut " } else { "" })
            }
            RustType::Tuple(parts) => {
                f.write_str("(")?;
                separated(f, parts, ", ")?;
                f.write_str(if parts.len() == 1 { ",)" } else { ")" })
            }
            RustType::Slice(item) => write!(f, "[{item}]"),
            RustType::Array(item, length) => write!(f, "[{item}; {length}]"),
            RustType::Path(path) => path.fmt(f),
            RustType::Bounds(keyword, bounds) => {
                write!(f, "{keyword} ")?;
                separated(f, bounds, " + ")
            }
            RustType::Function(call) => write!(f, "fn{call}"),
        }
    }
}

impl fmt::Display for TypePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.global { "::" } else { "" })?;
        separated(f, &self.segments, "::")
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.arguments {
            Arguments::None => Ok(()),
            Arguments::Call(call) => call.fmt(f),
            Arguments::Generic(arguments) => {
                f.write_str("<")?;
                separated(f, arguments, ", ")?;
                f.write_str(">")
            }
        }
    }
}

impl fmt::Display for GenericArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GenericArgument::Lifetime(name) => write!(f, "'{name}"),
            GenericArgument::Number(number) => f.write_str(number),
            GenericArgument::Type(ty) => ty.fmt(f),
            GenericArgument::Binding(name, ty) => write!(f, "{name} = {ty}"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        separated(f, &self.takes, ", ")?;
        f.write_str(")")?;
        match &self.gives {
            Some(ty) => write!(f, " -> {ty}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Lifetime(name) => write!(f, "'{name}"),
            Bound::Trait(path) => path.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_written() -> Result<()> {
        for text in [
            "Array",
            "&Array",
            "&'a mut [Array]",
            "()",
            "(Array,)",
            "(Int, (Float, Option<&Array>))",
            "[i64; 3]",
            "[f64; LEN]",
            "&dyn Fn(&Array, i64) -> Result<Array> + Send + 'static",
            "impl IntoIterator<Item = Array>",
            "std::collections::HashMap<String, Vec<(Array, Array)>>",
            "::my::r#type<'a, 3, crate::T>",
            "fn(Array) -> Array",
            "Größe",
            "Self",
        ] {
            assert_eq!(RustType::parse(text)?.to_string(), text);
        }
        assert_eq!(
            RustType::parse(" ( Vec < Int > ) ")?.to_string(),
            "Vec<Int>"
        );
        assert_eq!(
            RustType::parse("Vec<Vec<Int>>")?.to_string(),
            "Vec<Vec<Int>>"
        );
        Ok(())
    }

    #[test]
    fn what_is_no_type_is_refused() {
        for text in [
            "",
            "&Array) -> Result<Array> { todo!() } pub fn other(&self, x: &Array",
            "Array {",
            "Array /* */",
            "[u8; { evil() }]",
            "[u8; 1 + 1]",
            "[u8; 3u8]",
            "fn",
            "a b",
            "a::",
            "Vec<",
            "Vec<Int",
            "Vec<Int>>",
            "Vec<Int Int>",
            "(Int Int)",
            "'a",
            "x!()",
            "let",
            "a::self",
            "r#self",
            "\"text\"",
            "T\u{202e}",
            "T\0",
            "#[a] T",
        ] {
            assert!(RustType::parse(text).is_err(), "{text}");
        }
        for deep in ["(", "[", "&", "Vec<", "a::", "dyn A(", "impl A<"] {
            assert!(RustType::parse(&deep.repeat(100_000)).is_err(), "{deep}");
        }
        let wide = format!("({})", "Int, ".repeat(1000));
        assert!(RustType::parse(&wide).is_ok());
    }
}
