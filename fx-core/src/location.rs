//! A place in the user's source: the file, line and column of the expression that created a node.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// File, line and column of an expression in the user's source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceLocation {
    /// The file, as rustc reports it.
    pub file: Cow<'static, str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl SourceLocation {
    /// A line and a column of a file, both from 1.
    pub fn new(file: impl Into<Cow<'static, str>>, line: u32, column: u32) -> Self {
        SourceLocation {
            file: file.into(),
            line,
            column,
        }
    }
}

/// The `lib.rs` of a library whose own lines tell its users nothing: fx-core, and tensor libraries on
/// it. Where an eager call fails inside it, the error names the line that called the library.
pub struct LibrarySource(pub &'static str);

crate::__private::table! { (crate) LibrarySource }

/// Whether a file is a source of such a library.
pub(crate) fn is_in_a_library(file: &str) -> bool {
    fx_registry::entries::<LibrarySource>()
        .filter_map(|library| library.0.strip_suffix("lib.rs"))
        .any(|sources| file.starts_with(sources))
}

impl From<&'static Location<'static>> for SourceLocation {
    fn from(location: &'static Location<'static>) -> Self {
        SourceLocation {
            file: Cow::Borrowed(location.file()),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
