//! `Dim`: the size of a tensor dim, which is a number or becomes known only when a graph runs.

use std::fmt;

/// A tensor size: a known number, or a symbol. Only known sizes exist so far; code that calls
/// [`as_known`](Dim::as_known) is ready for symbolic ones.
///
/// ```
/// use fx_core::value::Dim;
/// let rows = Dim::from(3);
/// assert_eq!(rows.as_known(), Some(3));
/// assert_eq!((rows, format!("{:?}", [Dim::known(2)])), (Dim::known(3), "[2]".to_string()));
/// assert!(Dim::known(3) == 3);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Size);

/// The content of a dim; private, so that symbolic ones can be added.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Size {
    Known(usize),
}

impl Dim {
    /// A known size.
    pub const fn known(size: usize) -> Self {
        Dim(Size::Known(size))
    }

    /// The number, unless it is symbolic.
    pub fn as_known(&self) -> Option<usize> {
        match self.0 {
            Size::Known(size) => Some(size),
        }
    }

    /// The numbers, unless one is symbolic.
    pub fn all_known(dims: &[Dim]) -> Option<Vec<usize>> {
        dims.iter().map(Dim::as_known).collect()
    }
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Dim::known(size)
    }
}

impl PartialEq<usize> for Dim {
    fn eq(&self, size: &usize) -> bool {
        self.as_known() == Some(*size)
    }
}

impl PartialEq<Dim> for usize {
    fn eq(&self, dim: &Dim) -> bool {
        dim == self
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Size::Known(size) => fmt::Display::fmt(size, f),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
