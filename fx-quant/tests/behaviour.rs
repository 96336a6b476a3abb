//! The tests of fx-quant: beside PyTorch's recorded numbers, plans, conversions, and what is refused.
#![allow(clippy::print_stdout, reason = "the counts are what a person looks at")]

#[path = "../examples/support/quantized_file.rs"]
mod quantized_file;

mod behaviour {
    pub mod digits;
    pub mod draw;
    pub mod dynamic;
    pub mod integers;
    pub mod nets;
    pub mod observers;
    pub mod onnx;
    pub mod plans;
}
