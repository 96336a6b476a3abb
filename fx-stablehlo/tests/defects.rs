//! One test or more for each defect that was found in use, named by its number: `defect_t3_e1_..`.

mod evaluate;
mod parse;
#[path = "../../fx-onnx/tests/defects/programs.rs"]
mod programs;

mod defects {
    mod halves;
    mod trust_control;
    mod trust_indices;
}
