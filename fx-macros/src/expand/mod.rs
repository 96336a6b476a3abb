//! From models to code, one file for each macro.

mod kernel;
mod module;
mod trace;
mod traced;
mod tree;
mod wrap;

pub use module::module;
pub use trace::trace;
pub use traced::{function, traced};
pub use tree::tree;
pub use wrap::wrap;

use proc_macro2::TokenStream;
use quote::quote;

/// A refused item: the error, and the user's own code without our parameter attributes.
fn refused(error: &syn::Error, item: &TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    quote!(#error #item)
}
