//! `cfg` and `cfg_attr` inside of what a macro is given: rustc hands them over as they are written.
//!
//! Invariant: what the other files of this crate see has neither, so that what is configured out is
//! not there.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, FnArg, ImplItem, Item, Meta, Pat, Stmt, Token};

use crate::attributes;

/// An item with its conditions decided, or in two forms, each behind what rustc decides: `macro_call`
/// is what each is given to again.
pub fn item(item: TokenStream, macro_call: &TokenStream) -> Result<TokenStream, TokenStream> {
    decided(
        item,
        |tokens| syn::parse2::<Item>(tokens).ok(),
        |strip, item| match item {
            Item::Fn(function) => {
                let stays = strip.keeps(&mut function.attrs);
                strip.visit_item_fn_mut(function);
                stays
            }
            Item::Impl(block) => {
                let stays = strip.keeps(&mut block.attrs);
                strip.visit_item_impl_mut(block);
                stays
            }
            _ => true,
        },
        |condition, item| quote!(#[cfg(#condition)] #[#macro_call] #item),
    )
}

/// The same of an expression, which `macro_path` is given again.
pub fn expression(expr: TokenStream, macro_path: &TokenStream) -> Result<TokenStream, TokenStream> {
    let forms = decided(
        expr,
        |tokens| syn::parse2::<Expr>(tokens).ok(),
        |strip, expr| {
            strip.visit_expr_mut(expr);
            true
        },
        |condition, expr| quote!(#[cfg(#condition)] { #macro_path!(#expr) }),
    );
    forms.map_err(|forms| quote!({ #forms }))
}

fn decided<T: Clone + ToTokens>(
    tokens: TokenStream,
    parse: impl Fn(TokenStream) -> Option<T>,
    strip: impl Fn(&mut Strip, &mut T) -> bool,
    form: impl Fn(TokenStream, TokenStream) -> TokenStream,
) -> Result<TokenStream, TokenStream> {
    if !has_conditions(&tokens) {
        return Ok(tokens);
    }
    let Some(mut given) = parse(tokens.clone()) else {
        return Ok(tokens);
    };
    let mut first = Strip::default();
    if !strip(&mut first, &mut given) {
        return Err(TokenStream::new());
    }
    let Some(open) = first.open else {
        return Ok(given.to_token_stream());
    };
    let forms = [true, false].into_iter().filter_map(|truth| {
        let mut given = given.clone();
        let mut known = Strip {
            known: Some((open.to_string(), truth)),
            open: None,
        };
        let stays = strip(&mut known, &mut given);
        let condition = match truth {
            true => open.clone(),
            false => quote!(not(#open)),
        };
        stays.then(|| form(condition, given.to_token_stream()))
    });
    Err(forms.collect())
}

fn has_conditions(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == "cfg" || name == "cfg_attr",
        TokenTree::Group(group) => has_conditions(&group.stream()),
        _ => false,
    })
}

/// Removes what is known to be configured out, and the conditions that are known.
#[derive(Default)]
struct Strip {
    /// One option of the compiler, and whether it is set.
    known: Option<(String, bool)>,
    /// The first option that is not known.
    open: Option<TokenStream>,
}

impl Strip {
    /// Whether what has these attributes stays.
    fn keeps(&mut self, attrs: &mut Vec<Attribute>) -> bool {
        self.visit_attributes_mut(attrs);
        let mut stays = true;
        attrs.retain(|attr| match &attr.meta {
            Meta::List(list) if list.path.is_ident("cfg") => {
                match self.holds(list.tokens.clone()) {
                    Some(holds) => {
                        stays &= holds;
                        false
                    }
                    None => true,
                }
            }
            _ => true,
        });
        stays
    }

    /// Whether a condition holds, if that is known.
    fn holds(&mut self, condition: TokenStream) -> Option<bool> {
        let tokens: Vec<TokenTree> = condition.clone().into_iter().collect();
        let (name, parts) = match &tokens[..] {
            [TokenTree::Ident(name)] => (name.to_string(), None),
            [TokenTree::Ident(name), TokenTree::Group(group)]
                if group.delimiter() == Delimiter::Parenthesis =>
            {
                (name.to_string(), Some(split(group.stream())))
            }
            _ => (String::new(), None),
        };
        match (&*name, parts) {
            ("true", None) => Some(true),
            ("false", None) => Some(false),
            ("not", Some(parts)) => match <[TokenStream; 1]>::try_from(parts) {
                Ok([part]) => self.holds(part).map(|holds| !holds),
                Err(_) => self.asks(condition),
            },
            ("all", Some(parts)) => self.joined(parts, false),
            ("any", Some(parts)) => self.joined(parts, true),
            _ => self.asks(condition),
        }
    }

    /// Of several conditions: `decides` if one is that, and else the other, if all are known.
    fn joined(&mut self, parts: Vec<TokenStream>, decides: bool) -> Option<bool> {
        let before = self.open.clone();
        let mut all = Some(!decides);
        for part in parts {
            match self.holds(part) {
                Some(holds) if holds == decides => {
                    self.open = before;
                    return Some(decides);
                }
                Some(_) => {}
                None => all = None,
            }
        }
        all
    }

    fn asks(&mut self, option: TokenStream) -> Option<bool> {
        if let Some((known, truth)) = &self.known
            && *known == option.to_string()
        {
            return Some(*truth);
        }
        self.open.get_or_insert(option);
        None
    }

    /// The attributes that a `cfg_attr` stands for, if its condition is known.
    fn attributes(&mut self, attr: &Attribute) -> Option<Vec<Attribute>> {
        let Meta::List(list) = &attr.meta else {
            return None;
        };
        if !list.path.is_ident("cfg_attr") {
            return None;
        }
        let mut parts = split(list.tokens.clone()).into_iter();
        if !self.holds(parts.next()?)? {
            return Some(Vec::new());
        }
        let parsed = parts.map(|part| Attribute::parse_outer.parse2(quote!(#[#part])).ok());
        let mut parsed: Vec<Attribute> = parsed.collect::<Option<Vec<_>>>()?.concat();
        for parsed in &mut parsed {
            parsed.style = attr.style;
        }
        Some(parsed)
    }

    fn keeps_of(&mut self, attrs: Option<&mut Vec<Attribute>>) -> bool {
        attrs.is_none_or(|attrs| self.keeps(attrs))
    }

    fn list<T>(
        &mut self,
        list: &mut Punctuated<T, Token![,]>,
        attrs: impl Fn(&mut T) -> Option<&mut Vec<Attribute>>,
    ) {
        let kept: Vec<bool> = list
            .iter_mut()
            .map(|part| self.keeps_of(attrs(part)))
            .collect();
        if kept.contains(&false) {
            let parts = std::mem::take(list).into_iter().zip(kept);
            *list = parts
                .filter_map(|(part, kept)| kept.then_some(part))
                .collect();
        }
    }
}

impl VisitMut for Strip {
    fn visit_attributes_mut(&mut self, attrs: &mut Vec<Attribute>) {
        let mut at = 0;
        while let Some(attr) = attrs.get(at) {
            match self.attributes(attr) {
                Some(others) => drop(attrs.splice(at..=at, others)),
                None => at += 1,
            }
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        block.stmts.retain_mut(|statement| match statement {
            Stmt::Local(local) => self.keeps(&mut local.attrs),
            Stmt::Macro(mac) => self.keeps(&mut mac.attrs),
            Stmt::Expr(expr, _) => self.keeps_of(attributes::of(expr)),
            Stmt::Item(_) => true,
        });
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Match(choice) => choice.arms.retain_mut(|arm| self.keeps(&mut arm.attrs)),
            Expr::Struct(made) => self.list(&mut made.fields, |field| Some(&mut field.attrs)),
            Expr::Call(call) => self.list(&mut call.args, attributes::of),
            Expr::MethodCall(call) => self.list(&mut call.args, attributes::of),
            Expr::Array(array) => self.list(&mut array.elems, attributes::of),
            Expr::Tuple(tuple) => self.list(&mut tuple.elems, attributes::of),
            Expr::Closure(closure) => self.list(&mut closure.inputs, |input| match input {
                Pat::Type(typed) => Some(&mut typed.attrs),
                Pat::Ident(name) => Some(&mut name.attrs),
                Pat::Wild(wild) => Some(&mut wild.attrs),
                _ => None,
            }),
            _ => {}
        }
        visit_mut::visit_expr_mut(self, expr);
    }

    fn visit_pat_struct_mut(&mut self, pat: &mut syn::PatStruct) {
        self.list(&mut pat.fields, |field| Some(&mut field.attrs));
        visit_mut::visit_pat_struct_mut(self, pat);
    }

    fn visit_signature_mut(&mut self, sig: &mut syn::Signature) {
        self.list(&mut sig.inputs, |input| match input {
            FnArg::Receiver(receiver) => Some(&mut receiver.attrs),
            FnArg::Typed(typed) => Some(&mut typed.attrs),
        });
        visit_mut::visit_signature_mut(self, sig);
    }

    fn visit_generics_mut(&mut self, generics: &mut syn::Generics) {
        self.list(&mut generics.params, |param| {
            Some(match param {
                syn::GenericParam::Lifetime(param) => &mut param.attrs,
                syn::GenericParam::Type(param) => &mut param.attrs,
                syn::GenericParam::Const(param) => &mut param.attrs,
            })
        });
        visit_mut::visit_generics_mut(self, generics);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain_mut(|item| match item {
            ImplItem::Const(item) => self.keeps(&mut item.attrs),
            ImplItem::Fn(item) => self.keeps(&mut item.attrs),
            ImplItem::Type(item) => self.keeps(&mut item.attrs),
            ImplItem::Macro(item) => self.keeps(&mut item.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// The parts between commas.
fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in tokens {
        match (&token, parts.last_mut()) {
            (TokenTree::Punct(comma), _) if comma.as_char() == ',' => {
                parts.push(TokenStream::new())
            }
            (_, Some(part)) => part.extend([token]),
            (_, None) => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
