//! Edits: what fails leaves no trace, and what is edited costs what it changes.

mod edit {
    mod cost;
    mod failing;
    mod mirror;
    mod modules;
    mod passes;
    mod random;
    mod state;
}
mod support;
