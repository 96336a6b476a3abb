//! One test or more for each defect that was found in use, named by its number: `defect_t3_..`.

mod made;
mod programs;
mod trust_contracts;
mod trust_control;
mod trust_files;
mod trust_out;
mod trust_resize;
mod trust_sizes;
