//! What examples and tests share: the models of fx-nn with calls, rten, and arrays that NumPy reads.
#![allow(dead_code, reason = "each program uses a part of it")]

pub mod families;
pub mod greedy;
pub mod models;
pub mod npy;
pub mod rten;
pub mod unknown;
