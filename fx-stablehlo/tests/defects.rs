//! One test or more for each defect that was found in use, named by its number: `defect_t3_e1_..`.

#[path = "../../fx-onnx/tests/defects/programs.rs"]
mod programs;

mod halves;
mod trust_control;
mod trust_indices;
