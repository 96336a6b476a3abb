//! Tables of `fx-registry` and their entries: the names of sections and symbols.
//!
//! Invariant: no two fx-cores of a program share a section, and no two entries of a program have a symbol.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;

/// An entry of a table, which `#core::__private` names.
pub fn entry(core: &TokenStream, table: &str, entry: &TokenStream) -> TokenStream {
    let (id, section, symbol) = (id(), section(table), symbol(table));
    let table = Ident::new(table, Span::call_site());
    let private = quote!(#core::__private);
    quote!(#private::fx_registry::entry! { #private::#table, #entry, #id, #section, #symbol })
}

/// A function, by its path; a method also by its name alone.
pub fn function(core: &TokenStream, function: &TokenStream, is_method: bool) -> TokenStream {
    let private = quote!(#core::__private);
    let all = entry(
        core,
        "Registration",
        &quote!(#private::Registration(#function)),
    );
    let path = quote!(#private::MethodPath(const { #function.path() }));
    let method = is_method.then(|| entry(core, "MethodPath", &path));
    quote!(#all #method)
}

/// `(core) Table, entry` as the entry.
pub fn entry_of(input: TokenStream) -> TokenStream {
    let mut tokens = input.into_iter();
    match (tokens.next(), tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(core)), Some(TokenTree::Ident(table)), Some(_)) => {
            entry(&core.stream(), &table.to_string(), &tokens.collect())
        }
        _ => quote!(compile_error!("expected `(path of fx-core) Table, entry`");),
    }
}

/// What every program asks about the functions that it calls: the entries of other functions come without their code.
const ASKED_BY_PATH: &str = "ShapeRule";

/// `(core) (type) (function) (entry)` as an entry of a table of functions.
pub fn table_entry(input: TokenStream) -> TokenStream {
    let groups: Vec<TokenStream> = input
        .into_iter()
        .filter_map(|token| match token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        })
        .collect();
    let [core, ty, function, entry] = groups.as_slice() else {
        return quote!(compile_error!("expected `(path of fx-core) (type) (function) (entry)`"););
    };
    let private = quote!(#core::__private);
    let by_path = last_name(ty).is_some_and(|name| name == ASKED_BY_PATH);
    let (table, function) = match by_path {
        true => (
            quote!(PathEntry),
            quote!(path: const { (#function).path() }),
        ),
        false => (quote!(TableEntry), quote!(function: || #function)),
    };
    quote! {
        #private::submit! { #table, #private::#table {
            table: ::std::any::TypeId::of::<#ty>,
            #function,
            entry: || {
                let entry: #ty = #entry;
                ::std::boxed::Box::new(entry)
            },
        } }
    }
}

/// The last name of a path without generic arguments.
fn last_name(ty: &TokenStream) -> Option<Ident> {
    match ty.clone().into_iter().last()? {
        TokenTree::Ident(name) => Some(name),
        TokenTree::Group(group) => last_name(&group.stream()),
        _ => None,
    }
}

/// `(core) Table` as the declaration of a table.
pub fn table(input: TokenStream) -> TokenStream {
    let mut tokens = input.into_iter();
    let (Some(TokenTree::Group(core)), Some(TokenTree::Ident(table))) =
        (tokens.next(), tokens.next())
    else {
        return quote!(compile_error!("expected `(path of fx-core) Table`"););
    };
    let name = table.to_string();
    let (core, id, section, symbol) = (core.stream(), id(), section(&name), symbol(&name));
    let (start, stop) = (format!("__start_{section}"), format!("__stop_{section}"));
    quote!(#core::__private::fx_registry::table! { #table, #id, #section, #start, #stop, #symbol })
}

/// The fx-core that this crate belongs to, of those that a program may hold: by its version, and where its source is.
fn id() -> u64 {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), env!("CARGO_MANIFEST_DIR")).hash(&mut hasher);
    hasher.finish()
}

/// LLD keeps encapsulated sections for those who read them only if their names start with `__libc_`.
fn section(table: &str) -> String {
    format!("__libc_fx_{:016x}_{table}", id())
}

/// A symbol that no other entry of the program has: rustc gets another `metadata` for each crate that it
/// compiles.
fn symbol(table: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = DefaultHasher::new();
    for argument in std::env::args() {
        let metadata = argument.strip_prefix("-C").unwrap_or(&argument);
        if metadata.starts_with("metadata=") {
            metadata.hash(&mut hasher);
        }
    }
    for name in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION", "CARGO_CRATE_NAME"] {
        std::env::var(name).ok().hash(&mut hasher);
    }
    let (of_crate, count) = (hasher.finish(), COUNT.fetch_add(1, Ordering::Relaxed));
    format!("__fx_{table}_{of_crate:016x}_{count}")
}
