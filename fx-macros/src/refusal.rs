//! The texts of all refusals of the macros, by macro, and the list of an item's refusals.
//!
//! A refusal is at the user's token and names the fix. Invalid Rust is refused with the text of the
//! parser, and a missing trait with the text at the trait, in fx-core.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Error, Ident, Result};

/// What is refused of one item, in the order found.
#[derive(Default)]
pub struct Refusals(Option<Error>);

impl Refusals {
    pub fn add(&mut self, refusal: Error) {
        match &mut self.0 {
            Some(refusals) => refusals.combine(refusal),
            None => self.0 = Some(refusal),
        }
    }

    pub fn append(&mut self, refusals: Refusals) {
        if let Some(refusal) = refusals.0 {
            self.add(refusal);
        }
    }

    /// The value of a success; an error is added.
    pub fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|refusal| self.add(refusal)).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The errors in a form that the compiler takes: items, or statements.
    pub fn errors(&self) -> Option<TokenStream> {
        self.0.as_ref().map(Error::to_compile_error)
    }
}

fn at(token: impl ToTokens, words: &str) -> Error {
    Error::new_spanned(token, words)
}

/// Options of attributes.
pub mod options {
    use super::*;

    pub fn unknown(name: &Ident, known: &[&str]) -> Error {
        let known = known.join(", ");
        at(
            name,
            &format!("unknown option `{name}`, expected one of: {known}"),
        )
    }

    pub fn twice(name: &Ident) -> Error {
        at(name, &format!("option `{name}` is given twice"))
    }

    pub fn brackets(name: &Ident, brackets: Span) -> Error {
        Error::new(
            brackets,
            format!("option `{name}` takes nothing in brackets"),
        )
    }

    pub fn value(name: &Ident, value: &impl ToTokens) -> Error {
        at(value, &format!("option `{name}` takes no value"))
    }

    pub fn no_name(value: &impl ToTokens) -> Error {
        at(value, "expected a name")
    }

    /// `example` shows the attribute with the correct option.
    pub fn no_path(option: &Ident, example: &str) -> Error {
        at(option, &format!("`path` takes the public path: {example}"))
    }
}

/// Signatures of traced functions, leaves and closures.
pub mod signature {
    use super::*;

    pub fn is_const(token: &impl ToTokens) -> Error {
        at(
            token,
            "a traced function cannot be `const`: it records at run time",
        )
    }

    pub fn is_async(token: &impl ToTokens) -> Error {
        at(
            token,
            "a traced function cannot be `async`: a graph has no suspension points",
        )
    }

    pub fn is_unsafe(token: &impl ToTokens) -> Error {
        at(token, "a traced function cannot be `unsafe`")
    }

    pub fn is_variadic(token: &impl ToTokens) -> Error {
        at(token, "a traced function cannot be variadic: take a list")
    }

    pub fn no_result(function: &Ident) -> Error {
        at(
            function,
            "a traced function returns a `Result`: add `-> Result<..>`",
        )
    }

    /// `what` is the kind of method.
    pub fn type_parameters(param: &impl ToTokens, what: &str) -> Error {
        at(
            param,
            &format!(
                "{what} has no type or const parameters of its own: a graph calls it without knowing them"
            ),
        )
    }

    pub fn pattern(pattern: &impl ToTokens) -> Error {
        at(
            pattern,
            "an argument of a traced function needs a name, not a pattern: it names the graph's input",
        )
    }

    pub fn mutable_reference(mutability: &impl ToTokens) -> Error {
        at(
            mutability,
            "an argument of a traced function cannot be `&mut`: a graph makes new values and changes none",
        )
    }

    pub fn impl_trait(bounds: &impl ToTokens) -> Error {
        at(
            bounds,
            "of `impl Trait` arguments, only `impl Into<T>` and `&[impl Borrow<T>]` can flow through a graph: name the type",
        )
    }

    pub fn keyword_with_a_value(attribute: &impl ToTokens) -> Error {
        at(
            attribute,
            "#[kw] takes no value: a default is #[default(..)]",
        )
    }

    pub fn second_default(attribute: &impl ToTokens) -> Error {
        at(attribute, "an argument has one default")
    }

    pub fn default_that_is_no_literal(value: &impl ToTokens) -> Error {
        at(
            value,
            "a default is a literal: a number, a string, `true`, `false` or `None`",
        )
    }
}

/// `#[trace]`.
pub mod trace {
    use super::*;

    pub fn item(item: &impl ToTokens) -> Error {
        at(
            item,
            "#[trace] goes on a function, or the `impl` block of a `forward`",
        )
    }

    pub fn method(receiver: &impl ToTokens) -> Error {
        at(
            receiver,
            "a method is traced by #[trace] on its whole `impl` block",
        )
    }

    pub fn leaf_function(option: Span) -> Error {
        Error::new(option, "a function becomes a leaf by #[wrap]")
    }

    pub fn container_function(option: Span) -> Error {
        Error::new(option, "`container` is for modules that hold other modules")
    }

    pub fn path_of_a_function(path: &impl ToTokens) -> Error {
        at(
            path,
            "`path` is for modules: a traced function has no node, so that nothing is saved under its name",
        )
    }

    pub fn impure_function(option: Span) -> Error {
        Error::new(
            option,
            "`impure` is for modules: a function is traced into the leaves it calls, and each of them says it",
        )
    }

    pub fn into_argument(argument: &impl ToTokens) -> Error {
        at(
            argument,
            "an argument of a traced function needs a named type, not `impl Trait`",
        )
    }

    pub fn trait_impl(path: &impl ToTokens) -> Error {
        at(
            path,
            "#[trace] goes on the inherent `impl` block that has `forward`",
        )
    }

    pub fn handle_without_a_name(option: &Ident) -> Error {
        at(option, "`handle` takes a name: #[trace(handle = Softmax)]")
    }

    pub fn handle_of_a_module(handle: &Ident) -> Error {
        at(
            handle,
            "`handle` is for functions: a module is traced by a reference to it",
        )
    }

    pub fn path_of_a_generic_type(path: &impl ToTokens) -> Error {
        at(
            path,
            "`path` is one type's: register each instantiation of a generic one with `register_module!`",
        )
    }

    pub fn no_forward(ty: &impl ToTokens) -> Error {
        at(
            ty,
            "#[trace] on an `impl` block makes its `forward` traceable, and this block has none",
        )
    }

    pub fn receiver(receiver: &impl ToTokens) -> Error {
        at(
            receiver,
            "a traced `forward` takes `&self`: what changes, such as a cache, comes in as an argument and goes out as a result; only a leaf module may keep state",
        )
    }

    pub fn no_receiver(forward: &Ident) -> Error {
        at(forward, "a traced `forward` takes `&self`")
    }
}

/// `#[wrap]`.
pub mod op {
    use super::*;

    pub fn item(item: &impl ToTokens) -> Error {
        at(item, "#[op] goes on a function")
    }

    pub fn two_kinds(kind: &Ident) -> Error {
        at(kind, "an operation is of one kind")
    }

    pub fn fact(fact: &Ident, has_value: bool) -> Error {
        let text = match has_value {
            true => format!("`{fact}` takes no value"),
            false => format!("`{fact}` takes a value: #[op({fact} = ..)]"),
        };
        at(fact, &text)
    }
}

pub mod wrap {
    use super::*;

    pub fn item(item: &impl ToTokens) -> Error {
        at(item, "#[wrap] goes on a function or an `impl` block")
    }

    pub fn method(function: &Ident) -> Error {
        at(
            function,
            "a method becomes a leaf by #[wrap] on its whole `impl` block",
        )
    }

    pub fn method_option(value: &Ident) -> Error {
        at(value, "expected `method` or `method = custom`")
    }

    pub fn method_by_value(ty: &impl ToTokens) -> Error {
        at(
            ty,
            "#[wrap(method)] needs `&T` as its first argument: the method's receiver",
        )
    }

    pub fn method_without_arguments(function: &Ident) -> Error {
        at(
            function,
            "#[wrap(method)] needs a first argument: the method's receiver",
        )
    }

    pub fn no_effects(option: &Ident) -> Error {
        at(
            option,
            "`effects` takes what a call does besides giving its result: #[wrap(effects(reads, writes))]",
        )
    }

    pub fn unknown_effect(effect: &Ident, known: &[&str]) -> Error {
        let known = known.join(", ");
        at(
            effect,
            &format!("unknown effect `{effect}`, expected one of: {known}"),
        )
    }

    pub fn no_such_parameter(name: &Ident) -> Error {
        at(
            name,
            "the function has no parameter of this name: `impure = training` and `random = training` name the boolean parameter without which a call has no effects",
        )
    }

    pub fn nothing_written(option: &Ident) -> Error {
        at(
            option,
            "`written` takes a function of the call's arguments: #[wrap(method = custom, written = sum_written)]",
        )
    }

    pub fn written_by_its_signature(written: &impl ToTokens) -> Error {
        at(
            written,
            "`written` goes with `method = custom`: other methods are written as their signature says",
        )
    }

    pub fn trait_impl(path: &impl ToTokens) -> Error {
        at(
            path,
            "#[wrap] goes on an inherent `impl` block: a trait's methods have no type to be found by",
        )
    }

    pub fn path_of_methods(path: &impl ToTokens) -> Error {
        at(path, "methods have no path of their own")
    }

    pub fn method_of_methods(option: Span) -> Error {
        Error::new(
            option,
            "`method` is for functions: the methods of this block are methods already",
        )
    }

    pub fn receiver(receiver: &impl ToTokens) -> Error {
        at(
            receiver,
            "a leaf method takes `&self`: it returns a new value",
        )
    }

    pub fn no_receiver(function: &Ident) -> Error {
        at(
            function,
            "#[wrap] makes every method of the block a leaf, and this one has no `&self`: put it into another `impl` block, or make it a function",
        )
    }
}

/// `#[derive(Module)]`.
pub mod module {
    use super::*;

    pub fn option_of_the_type(attribute: &impl ToTokens) -> Error {
        at(
            attribute,
            "#[module(..)] goes on a field: it says what the field is",
        )
    }

    pub fn union(name: &Ident) -> Error {
        at(
            name,
            "a union cannot be a module: which of its fields is live is not known",
        )
    }

    pub fn borrows(lifetime: &impl ToTokens) -> Error {
        at(
            lifetime,
            "a module owns its fields, since graphs outlive the borrow: take a `Tensor`, whose clones share their data, or an `Arc` of a layer that is shared",
        )
    }

    pub fn object_of_another_trait(object: &impl ToTokens) -> Error {
        at(
            object,
            "layers behind a trait are `Box<dyn Module>`: a module has to reach the parameters of its fields, and finds none behind another trait",
        )
    }

    pub fn no_truth(option: &Ident) -> Error {
        at(
            option,
            &format!("`{option}` takes `true` or `false`: write `{option} = false`"),
        )
    }

    pub fn persistent_of_no_buffer(option: &Ident) -> Error {
        at(
            option,
            "only a buffer is persistent or not: write `#[module(buffer, persistent = false)]`",
        )
    }

    pub fn field_of_two_kinds(option: &Ident) -> Error {
        at(option, "a field is one of: buffer, skip, flatten, training")
    }

    pub fn name_that_is_no_segment(option: &Ident) -> Error {
        at(
            option,
            "`name` takes the field's name in paths, without dots: #[module(name = \"0\")]",
        )
    }

    /// The text of a refusal that the compiler makes, because it alone knows sizes.
    pub fn no_size(name: &Ident) -> String {
        format!(
            "the module `{name}` has no size, so that two of them cannot be distinguished: add a field `tag: Tag` (`fx_core::module::Tag`, `fx_nn::module::Tag`)"
        )
    }
}

/// `#[derive(Tree)]`.
pub mod tree {
    use super::*;

    pub fn is_enum(token: &impl ToTokens) -> Error {
        at(
            token,
            "an enum is not a tree: which fields it has is known only when the program runs; derive `Tree` for structs",
        )
    }

    pub fn is_union(token: &impl ToTokens) -> Error {
        at(
            token,
            "a union is not a tree: which of its fields is live is not known",
        )
    }

    pub fn borrows(lifetime: &impl ToTokens) -> Error {
        at(
            lifetime,
            "a tree owns its values: a struct that borrows cannot be made from a graph's results",
        )
    }

    pub fn no_fields(name: &Ident) -> Error {
        at(
            name,
            "a struct without fields has nothing to carry through a graph",
        )
    }
}

/// `traced!` and `function!`.
pub mod handle {
    use super::*;

    const TRACED: &str = "expected a function marked #[trace], or a closure `|x: &Tensor| ..`";

    pub fn traced_nothing() -> Error {
        Error::new(Span::call_site(), TRACED)
    }

    pub fn traced(expr: &impl ToTokens) -> Error {
        at(expr, TRACED)
    }

    pub fn function(input: &impl ToTokens) -> Error {
        at(input, "expected the name of a function marked #[wrap]")
    }

    pub fn untyped_argument(pattern: &impl ToTokens) -> Error {
        at(
            pattern,
            "an argument of a traced closure needs its type: `|x: &Tensor| ..`",
        )
    }
}
