//! Graphs as pictures: SVG, DOT and Mermaid, one page in HTML, and differences between graphs.
//!
//! ```
//! use fx_core::prelude::*;
//! use fx_core::draw::DrawOptions;
//! let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
//! assert!(gm.draw(&DrawOptions::new())?.svg().ends_with("</svg>\n"));
//! # Ok::<(), Error>(())
//! ```

mod color;
mod column;
mod diff;
mod drawing;
mod geometry;
mod layout;
mod page;
mod recording;
mod scene;
mod slots;
mod state;
mod svg;

pub use self::color::ColorBy;
pub use self::column::{Chart, Column};
pub use self::diff::GraphDiff;
pub use self::drawing::{DrawOptions, Drawing};
pub use self::page::Page;
