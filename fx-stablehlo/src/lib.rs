//! StableHLO for fx: a graph module is written as text that XLA compiles, and sharded over a mesh of devices.

pub mod shard;
