//! One program of tests: the command `fx`. Each file here is a module of it.

mod cli;
mod defects;
mod guide;
mod runs;
