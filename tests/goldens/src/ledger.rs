//! Which exceptions were passed and which were needed; it owns that using one is always written down.

use std::cell::Cell;

use crate::exception::Exception;

/// The exceptions of one comparison.
pub(crate) struct Ledger<'a> {
    exceptions: &'a [Exception],
    used: Vec<Cell<bool>>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(exceptions: &'a [Exception]) -> Ledger<'a> {
        Ledger {
            exceptions,
            used: vec![Cell::new(false); exceptions.len()],
        }
    }

    /// Takes the first exception that `fits` gives something for, and writes it down as used.
    pub(crate) fn take<T>(&self, fits: impl Fn(&'a Exception) -> Option<T>) -> Option<T> {
        for (exception, used) in self.exceptions.iter().zip(&self.used) {
            if let Some(found) = fits(exception) {
                used.set(true);
                return Some(found);
            }
        }
        None
    }

    /// Whether this very exception was passed; if so it is written down as used.
    pub(crate) fn allows(&self, exception: &Exception) -> bool {
        self.take(|passed| (passed == exception).then_some(()))
            .is_some()
    }

    /// Whether an exception fits, without using it.
    pub(crate) fn any(&self, fits: impl Fn(&Exception) -> bool) -> bool {
        self.exceptions.iter().any(fits)
    }

    /// All that were passed.
    pub(crate) fn all(&self) -> &'a [Exception] {
        self.exceptions
    }

    /// The names of those used, each once, in the order they were passed.
    pub(crate) fn used(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (exception, used) in self.exceptions.iter().zip(&self.used) {
            if used.get() && !names.contains(&exception.name()) {
                names.push(exception.name());
            }
        }
        names
    }

    /// Those that were passed and not used.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &'a Exception> {
        let both = self.exceptions.iter().zip(&self.used);
        both.filter(|(_, used)| !used.get())
            .map(|(exception, _)| exception)
    }
}
