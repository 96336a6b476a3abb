//! One program of tests: programs that torch.export wrote, beside PyTorch's results. Each file here is a module of it.

#[path = "../examples/support/mod.rs"]
mod support;

#[path = "../examples/support/forms.rs"]
mod checks;

mod bad_input;
mod forms;
mod old;
mod programs;
