//! The arguments of our attributes: each known option once; any other is refused at its own token.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, Lit, LitStr, Result, Token};

use crate::refusal::{self, Refusals};

/// Options of `#[trace]`.
#[derive(Default)]
pub struct TraceOptions {
    pub leaf: Option<Span>,
    /// A leaf whose body no tracer goes into.
    pub opaque: Option<Span>,
    /// A module whose own lines say nothing: what it records is at the line of its call.
    pub container: Option<Span>,
    pub impure: Option<(Impure, Span)>,
    /// Another name for the handle, if a module has the function's name.
    pub handle: Option<Ident>,
    /// The public path of a module's type.
    pub path: Option<LitStr>,
    /// Whether traced values may decide `if` and `while`.
    pub control_flow: bool,
}

/// How a module declares that it is impure.
pub enum Impure {
    Always,
    Method(Ident),
}

/// Options of `#[wrap]`.
#[derive(Default)]
pub struct WrapOptions {
    pub method: Option<(MethodOption, Span)>,
    /// The declared constants of `Effects`.
    pub effects: Vec<Ident>,
    /// The boolean parameter without which a call has no effects.
    pub effects_if: Option<Ident>,
    pub always: bool,
    pub commutative: bool,
    pub path: Option<LitStr>,
    /// How a method's call is written in generated source: a function.
    pub written: Option<Expr>,
}

/// The methods that a `#[wrap(method)]` function makes.
#[derive(Clone, Copy, PartialEq)]
pub enum MethodOption {
    /// An inherent method of the first argument's type.
    Inherent,
    /// None: the author writes them over `name::method(..)`.
    Custom,
}

struct Opt {
    name: Ident,
    value: Option<Expr>,
    /// The contents of the brackets after the name.
    list: Option<(Span, Punctuated<Ident, Token![,]>)>,
}

impl Parse for Opt {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let list = if input.peek(syn::token::Paren) {
            let inside;
            let brackets = syn::parenthesized!(inside in input);
            Some((brackets.span.join(), Punctuated::parse_terminated(&inside)?))
        } else {
            None
        };
        let value = if input.parse::<Option<Token![=]>>()?.is_some() {
            Some(input.parse()?)
        } else {
            None
        };
        Ok(Opt { name, value, list })
    }
}

/// The known options, each once; unknown and repeated ones are refused and left out.
fn parse_options(tokens: TokenStream, known: &[&str], refusals: &mut Refusals) -> Vec<Opt> {
    let parsed = Punctuated::<Opt, Token![,]>::parse_terminated.parse2(tokens);
    let mut seen: Vec<String> = Vec::new();
    let mut options = Vec::new();
    for option in refusals.take(parsed).into_iter().flatten() {
        let name = option.name.to_string();
        if !known.contains(&name.as_str()) {
            refusals.add(refusal::options::unknown(&option.name, known));
            continue;
        }
        if seen.contains(&name) {
            refusals.add(refusal::options::twice(&option.name));
            continue;
        }
        if let Some((brackets, _)) = &option.list
            && name != "effects"
        {
            refusals.add(refusal::options::brackets(&option.name, *brackets));
        }
        seen.push(name);
        options.push(option);
    }
    options
}

fn no_value(option: &Opt, refusals: &mut Refusals) {
    if let Some(value) = &option.value {
        refusals.add(refusal::options::value(&option.name, value));
    }
}

fn ident_value(option: &Opt) -> Result<Option<Ident>> {
    match &option.value {
        None => Ok(None),
        Some(Expr::Path(path)) if path.path.get_ident().is_some() => {
            Ok(path.path.get_ident().cloned())
        }
        Some(other) => Err(refusal::options::no_name(other)),
    }
}

fn path_value(option: &Opt, example: &str) -> Result<LitStr> {
    if let Some(Expr::Lit(lit)) = option.value.as_ref().map(without_group)
        && let Lit::Str(path) = &lit.lit
    {
        return Ok(path.clone());
    }
    Err(refusal::options::no_path(&option.name, example))
}

/// A field's name in paths: one segment.
fn segment_value(option: &Opt) -> Result<LitStr> {
    if let Some(Expr::Lit(lit)) = option.value.as_ref().map(without_group)
        && let Lit::Str(name) = &lit.lit
        && !name.value().is_empty()
        && !name.value().contains('.')
    {
        return Ok(name.clone());
    }
    Err(refusal::module::name_that_is_no_segment(&option.name))
}

fn bool_value(option: &Opt) -> Result<bool> {
    match option.value.as_ref().map(without_group) {
        Some(Expr::Lit(lit)) => match &lit.lit {
            Lit::Bool(value) => Ok(value.value),
            _ => Err(refusal::module::no_truth(&option.name)),
        },
        _ => Err(refusal::module::no_truth(&option.name)),
    }
}

/// The constants that `effects(..)` names.
fn effects(option: &Opt, refusals: &mut Refusals) -> Vec<Ident> {
    let known = ["random", "reads", "writes", "io"];
    let given = option.list.as_ref().filter(|(_, list)| !list.is_empty());
    let (Some((_, list)), None) = (given, &option.value) else {
        refusals.add(refusal::wrap::no_effects(&option.name));
        return Vec::new();
    };
    let mut constants = Vec::new();
    for effect in list {
        let name = effect.to_string();
        if known.contains(&name.as_str()) {
            constants.push(Ident::new(&name.to_uppercase(), effect.span()));
        } else {
            refusals.add(refusal::wrap::unknown_effect(effect, &known));
        }
    }
    constants
}

impl TraceOptions {
    /// The options that are understood; the others are refused.
    pub fn parse(tokens: TokenStream, refusals: &mut Refusals) -> Self {
        // Every test of the workspace passes with it (`.ci/control-flow`).
        let all = std::env::var_os("FX_CONTROL_FLOW").is_some_and(|value| value == "all");
        let mut options = TraceOptions {
            control_flow: all,
            ..TraceOptions::default()
        };
        for option in parse_options(
            tokens,
            &[
                "leaf",
                "opaque",
                "container",
                "impure",
                "handle",
                "path",
                "control_flow",
            ],
            refusals,
        ) {
            match option.name.to_string().as_str() {
                "leaf" => {
                    no_value(&option, refusals);
                    options.leaf = Some(option.name.span());
                }
                "opaque" => {
                    no_value(&option, refusals);
                    options.opaque = Some(option.name.span());
                }
                "container" => {
                    no_value(&option, refusals);
                    options.container = Some(option.name.span());
                }
                "control_flow" => {
                    no_value(&option, refusals);
                    options.control_flow = true;
                }
                "impure" => {
                    let impure = match refusals.take(ident_value(&option)).flatten() {
                        Some(method) => Impure::Method(method),
                        None => Impure::Always,
                    };
                    options.impure = Some((impure, option.name.span()));
                }
                "path" => {
                    let path = path_value(&option, "#[trace(path = \"my_crate::Layer\")]");
                    options.path = refusals.take(path);
                }
                _ => {
                    let handle = ident_value(&option).and_then(|name| {
                        name.ok_or_else(|| refusal::trace::handle_without_a_name(&option.name))
                    });
                    options.handle = refusals.take(handle);
                }
            }
        }
        options
    }
}

/// Options of `#[op]`: those of `#[wrap]`, a kind, and facts.
pub struct OpOptions {
    /// What is passed to `#[wrap]`.
    pub wrap: TokenStream,
    pub kind: Option<Ident>,
    pub facts: Vec<(Ident, Option<Expr>)>,
}

/// The kinds of operations.
const KINDS: [&str; 13] = [
    "unary", "binary", "compare", "reduce", "along", "view", "pick", "pool", "conv", "norm",
    "loss", "draw", "create",
];

/// What a record may state.
const FACTS: [&str; 10] = [
    "rule",
    "member",
    "decomposed",
    "composed",
    "cost",
    "cpu",
    "flat",
    "vjp",
    "batch",
    "samples",
];

impl OpOptions {
    /// The options that are understood; the others are refused, here or by `#[wrap]`.
    pub fn parse(tokens: TokenStream, refusals: &mut Refusals) -> Self {
        let mut options = OpOptions {
            wrap: TokenStream::new(),
            kind: None,
            facts: Vec::new(),
        };
        let known: Vec<&str> = [&KINDS[..], &FACTS[..], &WRAP_OPTIONS[..]].concat();
        for option in parse_options(tokens, &known, refusals) {
            let name = option.name.to_string();
            if KINDS.contains(&name.as_str()) {
                no_value(&option, refusals);
                if options.kind.is_some() {
                    refusals.add(refusal::op::two_kinds(&option.name));
                }
                options.kind = Some(option.name);
            } else if FACTS.contains(&name.as_str()) {
                options.facts.push((option.name, option.value));
            } else {
                let Opt { name, value, list } = option;
                let list = list.map(|(_, list)| quote!((#list)));
                let value = value.map(|value| quote!(= #value));
                options.wrap.extend(quote!(#name #list #value,));
            }
        }
        options
    }
}

/// The options of `#[wrap]`.
const WRAP_OPTIONS: [&str; 8] = [
    "method",
    "impure",
    "random",
    "effects",
    "always",
    "commutative",
    "path",
    "written",
];

impl WrapOptions {
    /// The options that are understood; the others are refused.
    pub fn parse(tokens: TokenStream, refusals: &mut Refusals) -> Self {
        let mut options = WrapOptions::default();
        for option in parse_options(tokens, &WRAP_OPTIONS, refusals) {
            match option.name.to_string().as_str() {
                "method" => {
                    let method = match refusals.take(ident_value(&option)).flatten() {
                        None => MethodOption::Inherent,
                        Some(name) if name == "custom" => MethodOption::Custom,
                        Some(name) => {
                            refusals.add(refusal::wrap::method_option(&name));
                            MethodOption::Inherent
                        }
                    };
                    options.method = Some((method, option.name.span()));
                }
                "path" => {
                    let path = path_value(&option, "#[wrap(path = \"my_crate::relu\")]");
                    options.path = refusals.take(path);
                }
                "written" => match option.value {
                    Some(function) => options.written = Some(function),
                    None => refusals.add(refusal::wrap::nothing_written(&option.name)),
                },
                "effects" => options.effects.extend(effects(&option, refusals)),
                name @ ("impure" | "random") => {
                    let all = if name == "impure" { "ALL" } else { "RANDOM" };
                    options.effects.push(Ident::new(all, option.name.span()));
                    let parameter = refusals.take(ident_value(&option)).flatten();
                    options.effects_if = parameter.or(options.effects_if);
                }
                name => {
                    no_value(&option, refusals);
                    match name {
                        "commutative" => options.commutative = true,
                        _ => options.always = true,
                    }
                }
            }
        }
        let is_custom = matches!(options.method, Some((MethodOption::Custom, _)));
        if let Some(written) = options.written.take_if(|_| !is_custom) {
            refusals.add(refusal::wrap::written_by_its_signature(&written));
        }
        options
    }
}

/// The expression for which a `macro_rules` fragment stands.
fn without_group(mut expr: &Expr) -> &Expr {
    while let Expr::Group(group) = expr {
        expr = &group.expr;
    }
    expr
}

/// The kind of a module's field.
#[derive(Clone, Copy, PartialEq, Default)]
pub enum FieldKind {
    #[default]
    Child,
    Buffer {
        persistent: bool,
    },
    Skip,
    Flatten,
    Training,
}

/// The content of `#[module(..)]` for a field.
pub struct FieldOptions {
    pub kind: FieldKind,
    /// Its name in paths, if it differs from Rust's.
    pub name: Option<LitStr>,
}

impl FieldOptions {
    /// Reads `#[module(..)]` off a field.
    pub fn of(field: &syn::Field, refusals: &mut Refusals) -> Self {
        let mut kind = None;
        let mut path_name = None;
        let mut persistent = None;
        for attr in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
            let list = refusals.take(attr.meta.require_list());
            let tokens = list.map(|list| list.tokens.clone()).unwrap_or_default();
            let known = &[
                "buffer",
                "skip",
                "flatten",
                "training",
                "name",
                "persistent",
            ];
            for option in parse_options(tokens, known, refusals) {
                if option.name == "name" {
                    path_name = refusals.take(segment_value(&option));
                    continue;
                }
                if option.name == "persistent" {
                    persistent = refusals
                        .take(bool_value(&option))
                        .map(|is| (option.name, is));
                    continue;
                }
                no_value(&option, refusals);
                let found = match option.name.to_string().as_str() {
                    "buffer" => FieldKind::Buffer { persistent: true },
                    "skip" => FieldKind::Skip,
                    "flatten" => FieldKind::Flatten,
                    _ => FieldKind::Training,
                };
                if kind.replace(found).is_some() {
                    refusals.add(refusal::module::field_of_two_kinds(&option.name));
                }
            }
        }
        match (&mut kind, persistent) {
            (_, None) => {}
            (Some(FieldKind::Buffer { persistent }), Some((_, is))) => *persistent = is,
            (_, Some((name, _))) => refusals.add(refusal::module::persistent_of_no_buffer(&name)),
        }
        let is_flag = || {
            field.ident.as_ref().is_some_and(|name| name == "training")
                && matches!(&field.ty, syn::Type::Path(path) if path.path.is_ident("bool"))
        };
        let kind = kind.unwrap_or(if is_flag() {
            FieldKind::Training
        } else {
            FieldKind::Child
        });
        FieldOptions {
            kind,
            name: path_name,
        }
    }
}
