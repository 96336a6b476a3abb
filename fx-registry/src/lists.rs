//! Tables as lists of `inventory`: a program holds every entry.

#[doc(hidden)]
pub use inventory;

/// A type whose entries any crate may add, by [`entry!`](crate::entry); [`table!`](crate::table) implements it.
pub trait Table: inventory::Collect {}

/// The entries of a table, in any order.
pub fn entries<T: Table>() -> impl Iterator<Item = &'static T> {
    inventory::iter::<T>.into_iter()
}

/// Declares that a type is a table.
#[macro_export]
macro_rules! table {
    ($table:ty, $id:literal, $section:literal, $start:literal, $stop:literal, $symbol:literal) => {
        $crate::inventory::collect!($table);
        impl $crate::Table for $table {}
    };
}

/// Adds an entry to a table.
#[macro_export]
macro_rules! entry {
    ($table:ty, $entry:expr, $id:literal, $section:literal, $symbol:literal) => {
        $crate::inventory::submit! { $entry }
    };
}
