#![doc = include_str!("../README.md")]

mod compare;
mod dtype;
mod export;
pub mod guide;
pub mod load;
mod opaque;
pub mod out;
pub mod proto;
pub mod testing;
mod texts;

pub use compare::max_rel_err;
pub use export::OnnxExt;
pub use load::{
    Import, ImportReport, Limits, Load, ReadOperator, Support, bit_cast, from_bytes, int_of,
    items_of, load, non_max_suppression, operators, roi_align, shape_of, support, tensor,
    text_concat, text_equal, text_ids, text_matches, text_normalize, text_numbers, text_of,
    text_places, text_scores, text_split, text_take, text_tokens, texts,
};
pub use opaque::Opaque;
pub use out::{Cx, Export, ExportReport, Layers, Name, OpCall, Operand, Rule, Val, Weights};
pub use texts::Texts;

// Crates that graph modules are written to name functions of this one.
fx_nn::register_crate!();

/// The names that most programs need: `use fx_onnx::prelude::*;`.
pub mod prelude {
    pub use crate::export::OnnxExt;
    pub use crate::load::Load;
    pub use crate::out::{Export, Layers, Rule, Weights};
}
