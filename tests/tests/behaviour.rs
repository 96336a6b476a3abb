//! One program of tests: what a traced body does. Each file here is a module of it.

mod attributes;
mod body_lints;
mod body_plain;
mod body_traced;
mod defects;
mod markdown;
mod moves;
mod profile;

#[allow(clippy::pedantic, reason = "shared with tests of other things")]
#[path = "../ui/support/mod.rs"]
mod support;
