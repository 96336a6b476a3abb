//! x
use proc_macro::TokenStream;
#[proc_macro_attribute]
/// x
pub fn trace(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}
#[proc_macro_attribute]
/// x
pub fn wrap(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}
#[proc_macro]
/// x
pub fn traced(item: TokenStream) -> TokenStream {
    item
}
#[proc_macro]
/// x
pub fn function(item: TokenStream) -> TokenStream {
    item
}
#[proc_macro_derive(Module)]
/// x
pub fn module(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
