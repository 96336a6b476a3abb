#![doc = include_str!("../README.md")]
//!
//! The names are literals here; `fx-macros` writes them in expansions.
//!
//! ```
//! /// What a crate has to say.
//! struct Greeting(&'static str);
//! fx_registry::table! {
//!     Greeting, 1, "__libc_example", "__start___libc_example", "__stop___libc_example", "example_first"
//! }
//! fx_registry::entry! { Greeting, Greeting("hello"), 1, "__libc_example", "example_hello" }
//! fx_registry::entry! { Greeting, Greeting("goodbye"), 1, "__libc_example", "example_goodbye" }
//!
//! let mut said: Vec<&str> = fx_registry::entries::<Greeting>().map(|entry| entry.0).collect();
//! said.sort();
//! assert_eq!(said, ["goodbye", "hello"]);
//! ```
//!
//! An entry has the number of its table, so that none gets into a section of another table that is called the same:
//!
//! ```compile_fail,E0080
//! # struct Greeting(&'static str);
//! # fx_registry::table! { Greeting, 1, "__libc_one", "__start___libc_one", "__stop___libc_one", "one_first" }
//! fx_registry::entry! { Greeting, Greeting("hello"), 2, "__libc_one", "one_hello" }
//! ```

#[cfg_attr(
    any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    ),
    path = "sections.rs"
)]
#[cfg_attr(
    not(any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    )),
    path = "lists.rs"
)]
mod tables;

pub use tables::*;
