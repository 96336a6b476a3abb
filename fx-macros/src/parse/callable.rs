//! `Callable`: the model of an annotated function, closure or method, with its parameters' attributes read off.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, Ident, Lifetime, Lit, Pat, PathArguments,
    Result, ReturnType, Signature, Token, Type, TypeParamBound, UnOp,
};

use crate::check;
use crate::paths::text;
use crate::spans::{Ends, call_of_type, respanned};

/// One parameter.
pub struct Parameter {
    pub name: Ident,
    /// Written as `mut name`: what the body binds it as.
    pub mutability: Option<Token![mut]>,
    /// The type inside the body: `T` for `impl Into<T>`.
    pub ty: Type,
    /// Written as `impl Into<T>`.
    pub into: bool,
    /// Recorded by name.
    pub keyword: bool,
    pub default: Option<TokenStream>,
}

impl Parameter {
    /// The name as the body binds it: `x`, or `mut x`.
    pub fn binding(&self) -> TokenStream {
        let Parameter {
            name, mutability, ..
        } = self;
        quote!(#mutability #name)
    }

    /// `Param::function(&operand)` for the parameter's type.
    pub fn call(&self, core: &TokenStream, function: &str, operand: &impl ToTokens) -> TokenStream {
        let reference = respanned(quote!(&), Ends::of(&self.ty).first);
        self.call_on(core, function, quote!(#reference #operand))
    }

    /// `Param::function(operand)` for the parameter's type.
    pub fn call_on(&self, core: &TokenStream, function: &str, operand: TokenStream) -> TokenStream {
        let ty = with_lifetimes(&self.ty, "'_");
        call_of_type(
            &ty,
            quote!(#core::__private::Param<'_>),
            function,
            Some(operand),
        )
    }
}

/// A function's parameters and result.
pub struct Callable {
    pub params: Vec<Parameter>,
    pub has_receiver: bool,
    pub output: Type,
}

impl Callable {
    /// Reads a signature; our attributes on parameters are taken off it.
    pub fn parse(sig: &mut Signature, core: &TokenStream) -> Result<Self> {
        let mut problems = check::signature(sig);
        // A refused function is still written out: rustc need not say the same again.
        sig.constness = None;
        let mut params = Vec::new();
        let mut has_receiver = false;
        for input in &mut sig.inputs {
            match input {
                FnArg::Receiver(_) => has_receiver = true,
                FnArg::Typed(arg) => match parameter(&mut arg.attrs, &arg.pat, &arg.ty, core) {
                    Ok(param) => params.push(param),
                    Err(error) => check::add(&mut problems, error),
                },
            }
        }
        let output = match &sig.output {
            ReturnType::Type(_, ty) => (**ty).clone(),
            ReturnType::Default => {
                check::add(
                    &mut problems,
                    Error::new_spanned(
                        &sig.ident,
                        "a traced function returns a `Result`: add `-> Result<..>`",
                    ),
                );
                Type::Verbatim(quote!(()))
            }
        };
        match problems {
            Some(problem) => Err(problem),
            None => Ok(Callable {
                params,
                has_receiver,
                output,
            }),
        }
    }

    /// The `ParamSpec`s.
    pub fn specs(&self, core: &TokenStream) -> TokenStream {
        specs(&self.params, core)
    }

    /// The parameters as the body binds them; the signature that callers see loses its `mut`s.
    pub fn take_bindings(&self, sig: &mut Signature) -> Vec<TokenStream> {
        for input in &mut sig.inputs {
            if let FnArg::Typed(arg) = input
                && let Pat::Ident(name) = &mut *arg.pat
            {
                name.mutability = None;
            }
        }
        self.params.iter().map(Parameter::binding).collect()
    }

    pub fn names(&self) -> Vec<&Ident> {
        self.params.iter().map(|p| &p.name).collect()
    }
}

pub fn specs(params: &[Parameter], core: &TokenStream) -> TokenStream {
    let specs = params.iter().map(|param| {
        let name = text(&param.name);
        let name = match name.trim_start_matches("r#") {
            // A method's receiver has a name of its own where it is bound.
            "__this" => "self",
            name => name,
        };
        let ty_text = text(&param.ty);
        let kind = if param.keyword {
            quote!(Keyword)
        } else {
            quote!(Positional)
        };
        let default = match &param.default {
            Some(default) => quote!(::core::option::Option::Some(#default)),
            None => quote!(::core::option::Option::None),
        };
        let into = param.into;
        let ty = with_lifetimes(&param.ty, "'_");
        let symbolic = call_of_type(&ty, quote!(#core::__private::Param<'_>), "SYMBOLIC", None);
        let param_type = call_of_type(&ty, quote!(#core::__private::Param<'_>), "TYPE", None);
        quote! {
            #core::__private::ParamSpec {
                name: #core::__private::Cow::Borrowed(#name),
                ty: #core::__private::Cow::Borrowed(#ty_text),
                param_type: #param_type,
                kind: #core::__private::ParamKind::#kind,
                default: #default,
                symbolic: #symbolic,
                into: #into,
            }
        }
    });
    quote!(&[#(#specs),*])
}

/// Reads one parameter and takes our attributes off it.
pub fn parameter(
    attrs: &mut Vec<Attribute>,
    pat: &Pat,
    ty: &Type,
    core: &TokenStream,
) -> Result<Parameter> {
    let mut keyword = false;
    let mut default = None;
    let mut problem = None;
    attrs.retain(|attr| {
        if attr.path().is_ident("kw") {
            match attr.meta.require_path_only() {
                Ok(_) => keyword = true,
                Err(_) => {
                    problem = Some(Error::new_spanned(
                        attr,
                        "#[kw] takes no value: a default is #[default(..)]",
                    ));
                }
            }
            false
        } else if attr.path().is_ident("default") {
            if default.is_some() {
                problem = Some(Error::new_spanned(attr, "an argument has one default"));
            }
            match attr.parse_args::<Expr>().and_then(|e| literal(&e, core)) {
                Ok(literal) => default = Some(literal),
                Err(error) => problem = Some(error),
            }
            false
        } else {
            true
        }
    });
    if let Some(problem) = problem {
        return Err(problem);
    }
    let Pat::Ident(name) = pat else {
        return Err(Error::new_spanned(
            pat,
            "an argument of a traced function needs a name, not a pattern: it names the graph's input",
        ));
    };
    if let Type::Reference(reference) = ty
        && let Some(mutability) = &reference.mutability
    {
        return Err(Error::new_spanned(
            mutability,
            "an argument of a traced function cannot be `&mut`: a graph makes new values and changes none",
        ));
    }
    let (ty, into) = match ty {
        Type::ImplTrait(bounds) => (into_target(bounds)?, true),
        ty => (ty.clone(), false),
    };
    if default.is_none() && is_option(&ty) {
        default = Some(quote!(#core::__private::Literal::None));
    }
    Ok(Parameter {
        name: name.ident.clone(),
        mutability: name.mutability,
        ty,
        into,
        keyword,
        default,
    })
}

/// `T` of `impl Into<T>`.
fn into_target(bounds: &syn::TypeImplTrait) -> Result<Type> {
    if let Some(TypeParamBound::Trait(bound)) = bounds.bounds.first()
        && bounds.bounds.len() == 1
        && let Some(segment) = bound.path.segments.last()
        && segment.ident == "Into"
        && let PathArguments::AngleBracketed(args) = &segment.arguments
        && let Some(GenericArgument::Type(ty)) = args.args.first()
    {
        return Ok(ty.clone());
    }
    Err(Error::new_spanned(
        bounds,
        "of `impl Trait` arguments, only `impl Into<T>` can flow through a graph: name the type",
    ))
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "Option"))
}

/// A default as a `Literal`.
fn literal(expr: &Expr, core: &TokenStream) -> Result<TokenStream> {
    let (negative, inner) = match expr {
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => (true, &*unary.expr),
        other => (false, other),
    };
    let sign = if negative { quote!(-) } else { quote!() };
    match inner {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Bool(x) if !negative => return Ok(quote!(#core::__private::Literal::Bool(#x))),
            Lit::Int(x) => return Ok(quote!(#core::__private::Literal::Int(#sign #x))),
            Lit::Float(x) => return Ok(quote!(#core::__private::Literal::Float(#sign #x))),
            Lit::Str(x) if !negative => {
                return Ok(
                    quote!(#core::__private::Literal::Str(#core::__private::Cow::Borrowed(#x))),
                );
            }
            _ => {}
        },
        Expr::Path(path) if path.path.is_ident("None") => {
            return Ok(quote!(#core::__private::Literal::None));
        }
        _ => {}
    }
    Err(Error::new_spanned(
        expr,
        "a default is a literal: a number, a string, `true`, `false` or `None`",
    ))
}

/// The type with every lifetime, written or elided, replaced.
pub fn with_lifetimes(ty: &Type, lifetime: &str) -> Type {
    struct Replace(Lifetime);
    impl VisitMut for Replace {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            *lifetime = self.0.clone();
        }
        fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
            reference.lifetime = Some(self.0.clone());
            syn::visit_mut::visit_type_reference_mut(self, reference);
        }
    }
    let mut ty = ty.clone();
    Replace(Lifetime::new(lifetime, ty.span())).visit_type_mut(&mut ty);
    ty
}
