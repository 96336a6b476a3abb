//! Feature extractors, the names of nodes beside torchvision's, and calls with other parameters.

#[path = "features/names.rs"]
mod names;
