//! Every layer's gradient, and the page of operations and layers, `docs/ops.md`. The gradients of operations are compared
//! by `every_op` (`tests/tests`).

#[path = "ops/layers.rs"]
mod layers;
#[path = "ops/page.rs"]
mod page;
#[path = "ops/support.rs"]
mod support;
