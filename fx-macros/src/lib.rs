//! The macros of fx: `#[trace]`, `#[wrap]`, `#[derive(Module)]`, `traced!` and `function!`.
//!
//! Each works in the same way: `parse` reads the item into a model, `check` refuses what cannot be
//! traced, `expand` writes the code. A refused item is still written out, with what its users need
//! of it (`expand::stub`), so that only the actual mistake is reported.

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
/// Inside, comparisons of traced values are recorded (`(x > 0.5)?`), and a traced value as a
/// condition does not compile. Trace the result with `symbolic_trace(&module)`, or
/// `Trace::new(&module).tracer(MyTracer)`.
///
/// Options: `leaf` (tracers record a call of the module instead of tracing through it), `impure` or
/// `impure = method` (running it does more than compute its result).
#[proc_macro_attribute]
pub fn trace(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::trace(options.into(), item.into()).into()
}

/// Makes a function a leaf: a call with a symbolic argument is recorded as one node.
///
/// On a function, or on an `impl` block whose methods all become leaves. Options: `method` (also a
/// method of the first argument's type), `method = custom` (only `name::method(..)`, for methods
/// written by hand), `random`, `effects(random, reads, writes, io)` (what a call does besides
/// computing its result), `impure` (all of these), `always` (recorded whatever its arguments),
/// `commutative` (its first two arguments may be swapped), `path = ".."` (the public path, if the
/// module is private).
///
/// Parameters: `#[kw]` records the argument by name; in a Rust call it is positional like any
/// other. `#[default(..)]` is the value that need not be recorded, and that is filled in where a
/// graph leaves it out; a Rust call still passes it. The body is plain Rust: compare tensors by
/// methods, `x.gt(0.5)?`.
#[proc_macro_attribute]
pub fn wrap(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::wrap(options.into(), item.into()).into()
}

/// Makes a struct or enum a part of modules: its fields are children, parameters, buffers or plain
/// data.
///
/// Field options: `#[module(buffer)]`, `#[module(skip)]`, `#[module(flatten)]`,
/// `#[module(training)]`; a field `training: bool` is the training flag without an option. A buffer
/// that the constructor computes and that is in no weight file is
/// `#[module(buffer, persistent = false)]`.
///
/// A module is identified by its address, which a type of size zero does not have: a struct without
/// data has a field `tag: Tag` (`fx_core::module::Tag`, in the preludes), and does not compile
/// without it.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(item: TokenStream) -> TokenStream {
    expand::module(item.into()).into()
}

/// Makes a struct a structure of values, like lists, tuples and dicts: its fields pass through
/// graphs by name.
///
/// It can be an argument and a result of `#[trace]` and `#[wrap]` functions, and is passed as a
/// dict with its fields' names; a tuple struct is passed as a tuple. The struct is `Clone`.
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
