//! Tables as sections of an ELF program: the linker puts the entries of a section side by side, with a symbol on either side.
//!
//! Invariant: what is in a section of a table is entries of that table, by the names that `fx-macros` writes.

/// An entry of a section.
#[doc(hidden)]
#[derive(Debug)]
#[repr(transparent)]
pub struct Entry<T: 'static>(pub Option<&'static T>);

/// A type whose entries any crate may add, by [`entry!`](crate::entry); [`table!`](crate::table) implements it.
pub trait Table: Sync + Sized + 'static {
    /// Whose table it is.
    #[doc(hidden)]
    const ID: u64;

    /// The section.
    #[doc(hidden)]
    fn section() -> &'static [Entry<Self>];
}

/// The entries of a table, in any order. A program that calls it for a table holds the table.
pub fn entries<T: Table>() -> impl Iterator<Item = &'static T> {
    T::section().iter().filter_map(|entry| entry.0)
}

/// What lies between the symbols of a section.
///
/// # Safety
/// From `start` on there are entries up to `stop`, side by side, as long as the program runs.
#[doc(hidden)]
pub unsafe fn between<T>(start: *const Entry<T>, stop: *const Entry<T>) -> &'static [Entry<T>] {
    let bytes = stop.addr() - start.addr();
    // SAFETY: as promised.
    unsafe { std::slice::from_raw_parts(start, bytes / size_of::<Entry<T>>()) }
}

/// Declares that a type is a table: a number for whose it is, which the names of sections have in them, then the names of its
/// section, of the symbols before and behind it, and of a symbol in it.
#[macro_export]
macro_rules! table {
    ($table:ty, $id:literal, $section:literal, $start:literal, $stop:literal, $symbol:literal) => {
        impl $crate::Table for $table {
            const ID: u64 = $id;

            fn section() -> &'static [$crate::Entry<Self>] {
                // SAFETY: the linker defines both, since the section has an entry; they are read as addresses only.
                unsafe extern "C" {
                    #[link_name = $start]
                    static START: u8;
                    #[link_name = $stop]
                    static STOP: u8;
                }
                // A section without entries has no symbols.
                // SAFETY: no other static has the name.
                #[unsafe(link_section = $section)]
                #[unsafe(export_name = $symbol)]
                static FIRST: $crate::Entry<$table> = $crate::Entry(None);
                // SAFETY: only `entry!` puts statics into the section, which are pointers, one behind the other.
                unsafe { $crate::between((&raw const START).cast(), (&raw const STOP).cast()) }
            }
        }
    };
}

/// Adds an entry to a table: the entry, whose table it is, the name of the table's section, and a symbol that no other entry
/// of the program has.
#[macro_export]
macro_rules! entry {
    ($table:ty, $entry:expr, $id:literal, $section:literal, $symbol:literal) => {
        const _: () = {
            ::core::assert!(
                <$table as $crate::Table>::ID == $id,
                "the macros are of another source than the crate with the table: take them from that crate"
            );
            static VALUE: $table = $entry;
            // An exported name makes rustc link it, and the linker may drop it. (SAFETY: no other static has the name.)
            #[unsafe(link_section = $section)]
            #[unsafe(export_name = $symbol)]
            static ENTRY: $crate::Entry<$table> =
                $crate::Entry(::core::option::Option::Some(&VALUE));
        };
    };
}
