//! The arguments of our attributes: each known option once, every other refused at its own token.

use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, Lit, LitStr, Result, Token};

/// Options of `#[trace]`.
#[derive(Default)]
pub struct TraceOptions {
    pub leaf: Option<Span>,
    pub impure: Option<(Impure, Span)>,
    /// Another name for the handle, where a module has the function's.
    pub handle: Option<Ident>,
    /// The public path of a module's type.
    pub path: Option<LitStr>,
}

/// How a module says that it is impure.
pub enum Impure {
    Always,
    Method(Ident),
}

/// Options of `#[wrap]`.
#[derive(Default)]
pub struct WrapOptions {
    pub method: Option<(MethodOption, Span)>,
    /// The constants of `Effects` that are declared.
    pub effects: Vec<Ident>,
    pub always: bool,
    pub commutative: bool,
    pub path: Option<LitStr>,
    /// How a method's call is written in generated source: a function.
    pub written: Option<Expr>,
}

/// Which methods a `#[wrap(method)]` function makes.
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
    /// What stands in brackets behind the name.
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

fn parse_options(tokens: TokenStream, known: &[&str]) -> Result<Vec<Opt>> {
    let options = Punctuated::<Opt, Token![,]>::parse_terminated.parse2(tokens)?;
    let mut seen: Vec<String> = Vec::new();
    for option in &options {
        let name = option.name.to_string();
        if !known.contains(&name.as_str()) {
            return Err(Error::new_spanned(
                &option.name,
                format!(
                    "unknown option `{name}`, expected one of: {}",
                    known.join(", ")
                ),
            ));
        }
        if seen.contains(&name) {
            return Err(Error::new_spanned(
                &option.name,
                format!("option `{name}` is given twice"),
            ));
        }
        if let Some((brackets, _)) = &option.list
            && name != "effects"
        {
            return Err(Error::new(
                *brackets,
                format!("option `{name}` takes nothing in brackets"),
            ));
        }
        seen.push(name);
    }
    Ok(options.into_iter().collect())
}

fn no_value(option: &Opt) -> Result<()> {
    match &option.value {
        None => Ok(()),
        Some(value) => Err(Error::new_spanned(
            value,
            format!("option `{}` takes no value", option.name),
        )),
    }
}

fn ident_value(option: &Opt) -> Result<Option<Ident>> {
    match &option.value {
        None => Ok(None),
        Some(Expr::Path(path)) if path.path.get_ident().is_some() => {
            Ok(path.path.get_ident().cloned())
        }
        Some(other) => Err(Error::new_spanned(other, "expected a name")),
    }
}

fn path_value(option: &Opt, example: &str) -> Result<LitStr> {
    if let Some(Expr::Lit(lit)) = option.value.as_ref().map(without_group)
        && let Lit::Str(path) = &lit.lit
    {
        return Ok(path.clone());
    }
    Err(Error::new_spanned(
        &option.name,
        format!("`path` takes the public path: {example}"),
    ))
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
    Err(Error::new_spanned(
        &option.name,
        "`name` takes the field's name in paths, without dots: #[module(name = \"0\")]",
    ))
}

/// The constants that `effects(..)` names.
fn effects(option: &Opt) -> Result<Vec<Ident>> {
    let known = ["random", "reads", "writes", "io"];
    let given = option.list.as_ref().filter(|(_, list)| !list.is_empty());
    let (Some((_, list)), None) = (given, &option.value) else {
        return Err(Error::new_spanned(
            &option.name,
            "`effects` takes what a call does besides giving its result: #[wrap(effects(reads, writes))]",
        ));
    };
    let constant = |effect: &Ident| {
        if known.contains(&effect.to_string().as_str()) {
            Ok(Ident::new(
                &effect.to_string().to_uppercase(),
                effect.span(),
            ))
        } else {
            Err(Error::new_spanned(
                effect,
                format!(
                    "unknown effect `{effect}`, expected one of: {}",
                    known.join(", ")
                ),
            ))
        }
    };
    list.iter().map(constant).collect()
}

impl TraceOptions {
    pub fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = TraceOptions::default();
        for option in parse_options(tokens, &["leaf", "impure", "handle", "path"])? {
            match option.name.to_string().as_str() {
                "leaf" => {
                    no_value(&option)?;
                    options.leaf = Some(option.name.span());
                }
                "impure" => {
                    let impure = match ident_value(&option)? {
                        Some(method) => Impure::Method(method),
                        None => Impure::Always,
                    };
                    options.impure = Some((impure, option.name.span()));
                }
                "path" => {
                    options.path =
                        Some(path_value(&option, "#[trace(path = \"my_crate::Layer\")]")?);
                }
                _ => {
                    options.handle = ident_value(&option)?;
                    if options.handle.is_none() {
                        return Err(Error::new_spanned(
                            &option.name,
                            "`handle` takes a name: #[trace(handle = Softmax)]",
                        ));
                    }
                }
            }
        }
        Ok(options)
    }
}

impl WrapOptions {
    pub fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = WrapOptions::default();
        for option in parse_options(
            tokens,
            &[
                "method",
                "impure",
                "random",
                "effects",
                "always",
                "commutative",
                "path",
                "written",
            ],
        )? {
            match option.name.to_string().as_str() {
                "method" => {
                    let method = match ident_value(&option)? {
                        None => MethodOption::Inherent,
                        Some(name) if name == "custom" => MethodOption::Custom,
                        Some(name) => {
                            return Err(Error::new_spanned(
                                name,
                                "expected `method` or `method = custom`",
                            ));
                        }
                    };
                    options.method = Some((method, option.name.span()));
                }
                "path" => {
                    options.path = Some(path_value(&option, "#[wrap(path = \"my_crate::relu\")]")?);
                }
                "written" => match option.value {
                    Some(function) => options.written = Some(function),
                    None => {
                        return Err(Error::new_spanned(
                            &option.name,
                            "`written` takes a function of the call's arguments: #[wrap(method = custom, written = sum_written)]",
                        ));
                    }
                },
                "effects" => options.effects.extend(effects(&option)?),
                name => {
                    no_value(&option)?;
                    let span = option.name.span();
                    match name {
                        "impure" => options.effects.push(Ident::new("ALL", span)),
                        "random" => options.effects.push(Ident::new("RANDOM", span)),
                        "commutative" => options.commutative = true,
                        _ => options.always = true,
                    }
                }
            }
        }
        let is_custom = matches!(options.method, Some((MethodOption::Custom, _)));
        match &options.written {
            Some(written) if !is_custom => Err(Error::new_spanned(
                written,
                "`written` goes with `method = custom`: other methods are written as their signature says",
            )),
            _ => Ok(options),
        }
    }
}

/// What a `macro_rules` fragment stands for.
fn without_group(mut expr: &Expr) -> &Expr {
    while let Expr::Group(group) = expr {
        expr = &group.expr;
    }
    expr
}

/// What a field of a module is.
#[derive(Clone, Copy, PartialEq, Default)]
pub enum FieldKind {
    #[default]
    Child,
    Buffer,
    Skip,
    Flatten,
    Training,
}

/// What `#[module(..)]` says of a field.
pub struct FieldOptions {
    pub kind: FieldKind,
    /// Its name in paths, where it is not Rust's.
    pub name: Option<LitStr>,
}

impl FieldOptions {
    /// Reads `#[module(..)]` off a field.
    pub fn of(field: &syn::Field) -> Result<Self> {
        let mut kind = None;
        let mut path_name = None;
        for attr in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
            let tokens = attr.meta.require_list()?.tokens.clone();
            let known = &["buffer", "skip", "flatten", "training", "name"];
            for option in parse_options(tokens, known)? {
                if option.name == "name" {
                    path_name = Some(segment_value(&option)?);
                    continue;
                }
                no_value(&option)?;
                let found = match option.name.to_string().as_str() {
                    "buffer" => FieldKind::Buffer,
                    "skip" => FieldKind::Skip,
                    "flatten" => FieldKind::Flatten,
                    _ => FieldKind::Training,
                };
                if kind.replace(found).is_some() {
                    return Err(Error::new_spanned(
                        &option.name,
                        "a field is one of: buffer, skip, flatten, training",
                    ));
                }
            }
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
        Ok(FieldOptions {
            kind,
            name: path_name,
        })
    }
}
