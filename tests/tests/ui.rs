//! What the macros refuse, word for word, and what they must accept.
//!
//! `TRYBUILD=overwrite cargo test -p fx-tests --test ui` writes the words anew: read every change.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/fail/*.rs");
    cases.pass("ui/pass/*.rs");
}
