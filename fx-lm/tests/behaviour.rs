//! The tests of the crate.

mod behaviour {
    pub mod bad_files;
    pub mod cases;
    pub mod engine;
    pub mod files;
    pub mod folders;
    pub mod speed;
    pub mod templates;
    pub mod tokens;
}
