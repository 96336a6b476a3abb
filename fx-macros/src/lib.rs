//! The macros of fx: `#[trace]`, `#[wrap]`, `#[derive(Module)]`, `traced!` and `function!`.
//!
//! Each goes the same way: `parse` reads the item into a model, `check` refuses what cannot be traced,
//! `expand` writes the code. A refused item is still written out, with what its users need of it (`expand::stub`), so that
//! only the real mistake shows.

mod body;
mod check;
mod expand;
mod options;
mod parse;
mod paths;
mod refusal;
mod spans;

use proc_macro::TokenStream;

/// Makes a `forward` traceable: on an `impl` block that has one, or on a function.
///
/// Inside, comparisons of traced values are recorded (`(x > 0.5)?`), and a traced value as a condition does
/// not compile. Trace the result with `symbolic_trace(&module)`, or `Trace::new(&module).tracer(MyTracer)`.
///
/// Options: `leaf` (tracers record a call of the module instead of going inside), `impure` or
/// `impure = method` (running it does more than computing its result).
#[proc_macro_attribute]
pub fn trace(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::trace(options.into(), item.into()).into()
}

/// Makes a function a leaf: a call with a symbolic argument is recorded as one node.
///
/// On a function, or on an `impl` block whose methods all become leaves. Options: `method` (also a
/// method of the first argument's type), `method = custom` (only `name::method(..)`, for methods
/// written by hand), `random`, `effects(random, reads, writes, io)` (what a call does besides giving its result),
/// `impure` (all of these), `always` (recorded whatever its arguments),
/// `commutative` (its first two arguments may change places), `path = ".."`
/// (the public path, where the module is private).
///
/// Parameters: `#[kw]` says that the argument is recorded by name; in a Rust call it stands in its place as
/// any other. `#[default(..)]` says which value need not be recorded, and fills it in where a graph leaves it
/// out; a Rust call gives it all the same. The body is plain Rust: compare tensors by methods, `x.gt(0.5)?`.
#[proc_macro_attribute]
pub fn wrap(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::wrap(options.into(), item.into()).into()
}

/// Makes a struct or enum a part of modules: its fields are children, parameters, buffers or plain data.
///
/// Field options: `#[module(buffer)]`, `#[module(skip)]`, `#[module(flatten)]`, `#[module(training)]`;
/// a field `training: bool` is the training flag without saying so. A buffer that the constructor computes and that no weight
/// file has is `#[module(buffer, persistent = false)]`.
///
/// A module is known by its address, which a type without a size does not have: a struct without data has a field
/// `tag: Tag` (`fx_core::module::Tag`, in the preludes), and does not compile without it.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(item: TokenStream) -> TokenStream {
    expand::module(item.into()).into()
}

/// Makes a struct a structure of values, as lists, tuples and dicts are: its fields go through graphs by name.
///
/// It can be an argument and a result of `#[trace]` and `#[wrap]` functions, and flows as a dict with its
/// fields' names; a tuple struct flows as a tuple. The struct is `Clone`.
#[proc_macro_derive(Tree)]
pub fn derive_tree(item: TokenStream) -> TokenStream {
    expand::tree(item.into()).into()
}

/// A function marked `#[trace]`, or a closure, as the root of a trace.
#[proc_macro]
pub fn traced(input: TokenStream) -> TokenStream {
    expand::traced(input.into()).into()
}

/// The `fx_core::ir::Function` of a `#[wrap]` function, as graphs call it.
#[proc_macro]
pub fn function(input: TokenStream) -> TokenStream {
    expand::function(input.into()).into()
}
