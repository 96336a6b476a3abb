//! One program of tests: programs that torch.export wrote, beside PyTorch's results. Each file here is a module of it.

#[allow(dead_code, reason = "examples list the programs of a folder")]
#[path = "../examples/support/mod.rs"]
mod support;

#[path = "../examples/support/forms.rs"]
mod checks;

mod bad_input;
mod bad_older;
mod custom;
mod forms;
mod old;
mod programs;
