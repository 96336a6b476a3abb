//! The tests of fx-quant: beside PyTorch's recorded numbers, plans, conversions, and what is refused.

mod behaviour {
    pub mod draw;
    pub mod nets;
    pub mod observers;
}
