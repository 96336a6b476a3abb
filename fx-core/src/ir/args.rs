//! `Args`: a node's positional arguments; short lists need no allocation.

use std::fmt;
use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

use super::argument::Argument;

/// A node's positional arguments, built from arguments in order, and read and changed as a slice.
///
/// ```
/// use fx_core::ir::{Args, Argument};
/// let mut args = Args::from_iter([Argument::Int(1), Argument::None]);
/// args.push(Argument::Bool(true));
/// args[1] = Argument::Int(2);
/// assert_eq!(args, Args::from(vec![1.into(), 2.into(), true.into()]));
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Args(SmallVec<[Argument; 2]>);

impl Args {
    /// No arguments.
    pub fn new() -> Self {
        Args::default()
    }

    /// Removes all arguments, and frees what a long list took.
    pub(super) fn clear(&mut self) {
        match self.0.spilled() {
            true => self.0 = SmallVec::new(),
            false => self.0.clear(),
        }
    }

    /// Appends an argument.
    pub fn push(&mut self, argument: Argument) {
        self.0.push(argument);
    }
}

impl Deref for Args {
    type Target = [Argument];

    #[inline]
    fn deref(&self) -> &[Argument] {
        &self.0
    }
}

impl DerefMut for Args {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Argument] {
        &mut self.0
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<Vec<Argument>> for Args {
    fn from(args: Vec<Argument>) -> Self {
        Args(SmallVec::from_vec(args))
    }
}

impl From<Args> for Vec<Argument> {
    fn from(args: Args) -> Self {
        args.0.into_vec()
    }
}

impl FromIterator<Argument> for Args {
    fn from_iter<I: IntoIterator<Item = Argument>>(args: I) -> Self {
        Args(args.into_iter().collect())
    }
}

impl Extend<Argument> for Args {
    fn extend<I: IntoIterator<Item = Argument>>(&mut self, args: I) {
        self.0.extend(args);
    }
}

/// An iterator over the arguments taken out of [`Args`].
#[derive(Debug)]
pub struct ArgsIntoIter(smallvec::IntoIter<[Argument; 2]>);

impl Iterator for ArgsIntoIter {
    type Item = Argument;

    fn next(&mut self) -> Option<Argument> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for ArgsIntoIter {}

impl IntoIterator for Args {
    type Item = Argument;
    type IntoIter = ArgsIntoIter;

    fn into_iter(self) -> ArgsIntoIter {
        ArgsIntoIter(self.0.into_iter())
    }
}

impl<'a> IntoIterator for &'a Args {
    type Item = &'a Argument;
    type IntoIter = std::slice::Iter<'a, Argument>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
