//! Shared by the benchmarks: which figures are wanted.

/// Whether a group of figures is named on the command line, or no group is.
pub fn wanted(what: &str) -> bool {
    let mut named = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .peekable();
    named.peek().is_none() || named.any(|name| name == what)
}
