//! Every operation and every layer: its gradient, and its row in `docs/ops.md`.

#[path = "ops/elementwise.rs"]
mod elementwise;
#[path = "ops/gradients.rs"]
mod gradients;
#[path = "ops/layers.rs"]
mod layers;
#[path = "ops/measures.rs"]
mod measures;
#[path = "ops/page.rs"]
mod page;
#[path = "ops/spectral.rs"]
mod spectral;
#[path = "ops/structure.rs"]
mod structure;
#[path = "ops/support.rs"]
mod support;
