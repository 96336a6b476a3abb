//! Feature extractors, the names of nodes beside torchvision's, and calls with other parameters.

#[path = "features/extract.rs"]
mod extract;
#[path = "features/functional.rs"]
mod functional;
#[path = "features/names.rs"]
mod names;
