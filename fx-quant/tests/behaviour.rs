//! The tests of fx-quant: beside PyTorch's recorded numbers, plans, conversions, and what is refused.
#![allow(clippy::print_stdout, reason = "the counts are what a person looks at")]

mod behaviour {
    pub mod digits;
    pub mod draw;
    pub mod integers;
    pub mod nets;
    pub mod observers;
    pub mod plans;
}
