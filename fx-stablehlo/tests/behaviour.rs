//! One program of tests: what is written and sharded. Each file here is a module of it.

mod defects;
mod evaluate;
mod operations;
mod parse;
mod shard;
mod shard_reference;
mod text;
