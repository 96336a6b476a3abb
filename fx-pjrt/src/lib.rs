//! PJRT for fx: graph modules run on CPUs, GPUs and TPUs by XLA's plugins, without Python.
//!
//! A plugin is a shared library; [`plugin`] finds those that packages of Python carry. [`Pjrt`] is
//! the backend: `gm.compile(Compile::new(Pjrt::cpu()?).like(&x))`. [`LoadedProgram`] is for calls
//! whose tensors stay on the devices.
//!
//! The crate calls C, and so it is the one of fx that has `unsafe` code; each block says why it is
//! sound. What a plugin does with memory of its own is the plugin's: load only files that you trust.

mod backend;
mod batch;
mod buffer;
mod cache;
mod client;
mod code;
mod device_tensor;
mod element;
mod error;
mod event;
mod executable;
mod find;
pub mod guide;
mod loaded;
mod options;
mod placement;
mod plugin;
mod shardings;
mod sys;
mod weights;

pub use backend::{PLUGIN_VARIABLE, Pjrt};
pub use cache::Cache;
pub use client::{Client, ClientOptions, Device, MemoryStats};
pub use device_tensor::DeviceTensor;
pub use error::{Code, PjrtError};
pub use find::{KNOWN_PLUGINS, KnownPlugin, plugin, plugins_of};
pub use loaded::LoadedProgram;
pub use plugin::Plugin;

/// The README's example, compiled with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
