//! What fuzz targets and tests share.

pub mod emit;
