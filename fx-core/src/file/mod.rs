//! Saved files: graphs and plain data as JSON, tensors as safetensors, and how both are loaded.
//!
//! ```
//! use fx_core::prelude::*;
//! let gm = symbolic_trace(traced!(|x: Float| x + 1.0))?;
//! let folder = std::env::temp_dir().join(format!("fx-file-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! gm.save(folder.join("sum.safetensors"))?;
//! let loaded = GraphModule::load(folder.join("sum.safetensors"))?;
//! assert_eq!(loaded.graph().to_string(), gm.graph().to_string());
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod arguments;
pub(crate) mod container;
mod contract;
pub(crate) mod disk;
#[allow(
    clippy::module_inception,
    reason = "the file is named after what it holds"
)]
pub(crate) mod file;
pub(crate) mod graph;
pub(crate) mod json;
mod limits;
pub(crate) mod loader;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod saver;
pub(crate) mod signature;
mod stream;
pub(crate) mod upgrade;
mod value_meta;

pub use self::json::{Json, JsonMap};
pub use self::loader::Loader;
pub use self::meta::SavedMeta;
pub use self::saver::Saver;
#[doc(inline)]
pub use crate::register_meta;
