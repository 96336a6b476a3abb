//! `Callable`: the model of an annotated function, closure or method, with its parameters'
//! attributes read off.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Expr, FnArg, GenericArgument, Ident, Lifetime, Lit, Pat, PatType, PathArguments,
    Result, ReturnType, Signature, Token, Type, TypeParamBound, UnOp,
};

use crate::attributes;
use crate::check;
use crate::paths::text;
use crate::refusal::{self, Refusals};
use crate::spans::{Ends, call_of_type, respanned};

/// One parameter.
pub struct Parameter {
    pub name: Ident,
    /// What sets the level of a lint.
    pub attrs: Vec<Attribute>,
    /// Written as `mut name`: what the body binds it as.
    pub mutability: Option<Token![mut]>,
    /// The type inside the body: `T` for `impl Into<T>`, `&[T]` for `&[impl Borrow<T>]`.
    pub ty: Type,
    /// What the caller passes.
    pub taken: Taken,
    /// Recorded by name.
    pub keyword: bool,
    pub default: Option<TokenStream>,
}

/// How a parameter is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// By its type.
    AsIs,
    /// As `impl Into<T>`.
    Into,
    /// As `&[impl Borrow<T>]`.
    Borrowed,
}

impl Parameter {
    /// `let x: T = ..;` if the caller passes what converts into the type.
    pub fn conversion(&self) -> Option<TokenStream> {
        let Parameter { name, ty, .. } = self;
        match self.taken {
            Taken::AsIs => None,
            Taken::Into => Some(quote!(let #name: #ty = ::core::convert::Into::into(#name);)),
            Taken::Borrowed => Some(quote! {
                let #name: #ty = &::core::iter::Iterator::collect::<::std::vec::Vec<_>>(
                    ::core::iter::Iterator::map(#name.iter(), |__item| {
                        ::core::clone::Clone::clone(::core::borrow::Borrow::borrow(__item))
                    })
                );
            }),
        }
    }

    /// The name as the body binds it: `x`, or `mut x`.
    pub fn binding(&self) -> TokenStream {
        let Parameter {
            name,
            attrs,
            mutability,
            ..
        } = self;
        quote!(#(#attrs)* #mutability #name)
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
    pub output: Type,
}

impl Callable {
    /// Reads a signature, and removes our attributes from its parameters. `None` if the signature
    /// cannot be traced.
    ///
    /// A refused attribute is left out of the model, which is complete without it.
    pub fn parse(sig: &mut Signature, core: &TokenStream, refusals: &mut Refusals) -> Option<Self> {
        let mut problems = Refusals::default();
        check::signature(sig, &mut problems);
        // A refused function is still written out: rustc need not report the same again.
        sig.constness = None;
        sig.variadic = None;
        let mut params = Vec::new();
        for input in &mut sig.inputs {
            if let FnArg::Typed(arg) = input {
                let attributes = ParameterAttributes::take(&mut arg.attrs, core, refusals);
                let param = parameter(attributes, arg, core);
                params.extend(problems.take(param));
            }
        }
        let output = match &sig.output {
            ReturnType::Type(_, ty) => (**ty).clone(),
            ReturnType::Default => {
                problems.add(refusal::signature::no_result(&sig.ident));
                Type::Verbatim(quote!(()))
            }
        };
        let whole = problems.is_empty();
        refusals.append(problems);
        whole.then_some(Callable { params, output })
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
            // The bound receiver of a method has its own name.
            "__this" => "self",
            name => name,
        };
        let ty_text = text(&param.ty);
        let keyword = param.keyword.then(|| quote!(.keyword()));
        let default = param.default.iter();
        let into = param.taken == Taken::Into;
        let ty = with_lifetimes(&param.ty, "'_");
        let symbolic = call_of_type(&ty, quote!(#core::__private::Param<'_>), "SYMBOLIC", None);
        let param_type = call_of_type(&ty, quote!(#core::__private::Param<'_>), "TYPE", None);
        quote! {
            #core::__private::ParamSpec::positional(#name, #ty_text, #param_type)
                #keyword
                #(.default(#default))*
                .symbolic(#symbolic)
                .takes_into(#into)
        }
    });
    quote!(&[#(#specs),*])
}

/// The content of our attributes on a parameter.
#[derive(Default)]
pub struct ParameterAttributes {
    keyword: bool,
    default: Option<TokenStream>,
}

impl ParameterAttributes {
    /// Removes our attributes from a parameter, also refused ones.
    pub fn take(attrs: &mut Vec<Attribute>, core: &TokenStream, refusals: &mut Refusals) -> Self {
        let mut found = ParameterAttributes::default();
        attrs.retain(|attr| {
            if attr.path().is_ident("kw") {
                match attr.meta.require_path_only() {
                    Ok(_) => found.keyword = true,
                    Err(_) => refusals.add(refusal::signature::keyword_with_a_value(attr)),
                }
                false
            } else if attr.path().is_ident("default") {
                let value = attr.parse_args::<Expr>().and_then(|e| literal(&e, core));
                if found.default.is_some() {
                    refusals.add(refusal::signature::second_default(attr));
                }
                if let Some(literal) = refusals.take(value) {
                    found.default = Some(literal);
                }
                false
            } else {
                true
            }
        });
        attributes::relax_each(attrs);
        found
    }
}

/// Removes our attributes from all parameters of a function that is refused as a whole.
pub fn without_attributes(sig: &mut Signature, core: &TokenStream, refusals: &mut Refusals) {
    for input in &mut sig.inputs {
        if let FnArg::Typed(arg) = input {
            ParameterAttributes::take(&mut arg.attrs, core, refusals);
        }
    }
}

/// Reads one parameter.
pub fn parameter(
    attributes: ParameterAttributes,
    arg: &PatType,
    core: &TokenStream,
) -> Result<Parameter> {
    let PatType { attrs, pat, ty, .. } = arg;
    let ty = &**ty;
    let ParameterAttributes {
        keyword,
        mut default,
    } = attributes;
    let Pat::Ident(name) = &**pat else {
        return Err(refusal::signature::pattern(pat));
    };
    if let Type::Reference(reference) = ty
        && let Some(mutability) = &reference.mutability
    {
        return Err(refusal::signature::mutable_reference(mutability));
    }
    let (ty, taken) = match ty {
        Type::ImplTrait(bounds) => (
            target(bounds, "Into").ok_or_else(|| refusal::signature::impl_trait(bounds))?,
            Taken::Into,
        ),
        ty => match borrowed(ty)? {
            Some(ty) => (ty, Taken::Borrowed),
            None => (ty.clone(), Taken::AsIs),
        },
    };
    if default.is_none() && is_option(&ty) {
        default = Some(quote!(#core::__private::Literal::None));
    }
    Ok(Parameter {
        name: name.ident.clone(),
        attrs: attributes::lints(attrs).cloned().collect(),
        mutability: name.mutability,
        ty,
        taken,
        keyword,
        default,
    })
}

/// `&[T]` of `&[impl Borrow<T>]`.
fn borrowed(ty: &Type) -> Result<Option<Type>> {
    let mut ty = ty.clone();
    let Type::Reference(reference) = &mut ty else {
        return Ok(None);
    };
    let Type::Slice(slice) = &mut *reference.elem else {
        return Ok(None);
    };
    let Type::ImplTrait(bounds) = &*slice.elem else {
        return Ok(None);
    };
    let item = target(bounds, "Borrow").ok_or_else(|| refusal::signature::impl_trait(bounds))?;
    *slice.elem = item;
    Ok(Some(ty))
}

/// `T` of `impl Trait<T>`.
fn target(bounds: &syn::TypeImplTrait, of: &str) -> Option<Type> {
    if let Some(TypeParamBound::Trait(bound)) = bounds.bounds.first()
        && bounds.bounds.len() == 1
        && let Some(segment) = bound.path.segments.last()
        && segment.ident == of
        && let PathArguments::AngleBracketed(args) = &segment.arguments
        && let Some(GenericArgument::Type(ty)) = args.args.first()
    {
        return Some(ty.clone());
    }
    None
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
    Err(refusal::signature::default_that_is_no_literal(expr))
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
