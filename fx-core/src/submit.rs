//! `submit!`: adds an entry to a registry. Without the feature `registry` the entry is checked, and
//! left out of the program with all that it names.

/// What an error adds about a name that is not found, if the feature `registry` is off.
pub(crate) const REGISTRY_HINT: &str = match cfg!(feature = "registry") {
    true => "",
    false => " (the feature `registry` is off: only what this program calls is known)",
};

/// Adds an entry to the registry of its type.
#[cfg(feature = "registry")]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($table:ident, $entry:expr) => {
        $crate::__private::entry! { ($crate) $table, $entry }
    };
}

/// Uses an entry, and keeps nothing of it.
#[cfg(not(feature = "registry"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($table:ident, $entry:expr) => {
        const _: fn() = || {
            let _ = $entry;
        };
    };
}
