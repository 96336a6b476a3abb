//! One test or more for each defect that was found in use, named by its number: `defect_r01_..`.

mod emitting;
mod models;
mod reductions;
mod scalars;
mod sizes;
mod tracing;
mod trust_candle;
mod trust_compiled;
mod trust_compositions;
mod trust_contracts;
mod trust_gradients;
mod trust_lengths;
mod trust_memory;
mod trust_parts;
mod trust_regions;
mod trust_resize;
mod trust_values;
mod trust_weights;
