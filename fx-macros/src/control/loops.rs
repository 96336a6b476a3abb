//! Loops: what stands around a turn, and what a jump out of it becomes.
//!
//! Invariant: every jump that a traced value decides notes all locals that its loop may change.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Label, Lifetime, Pat, Stmt, parse_quote};

use super::forms::name;
use super::locals::Uses;
use crate::spans::respanned;

/// A loop that is visited.
pub struct Loop {
    id: usize,
    label: Lifetime,
    /// How many regions were open at its head.
    pub regions: usize,
    /// How many blocks are around it.
    pub depth: usize,
    is_used: bool,
    /// Per jump that a traced value may decide: the names that are bound between the loop and it, and
    /// where it is. `None` if there can be no such jump.
    exits: Option<Vec<(BTreeSet<String>, Span)>>,
}

/// What decides whether there is another turn.
pub enum Head<'a> {
    /// A condition that may be traced: the region of it.
    While(TokenStream),
    /// The steps of a range.
    Range(&'a Pat, TokenStream),
    /// Rust: an iterator, or a plain condition.
    Plain(TokenStream),
    /// Only its exits.
    Loop,
}

impl Loop {
    /// A loop; whether traced values may decide its jumps.
    pub fn new(
        id: usize,
        label: Option<&Label>,
        regions: usize,
        depth: usize,
        has_exits: bool,
    ) -> Self {
        let own = || Lifetime::new(&format!("'__fx{id}"), Span::mixed_site());
        Loop {
            id,
            label: label.map_or_else(own, |label| label.name.clone()),
            regions,
            depth,
            is_used: has_exits,
            exits: has_exits.then(Vec::new),
        }
    }

    pub fn is(&self, label: &Lifetime) -> bool {
        self.label == *label
    }

    pub fn has_exits(&self) -> bool {
        self.exits.is_some()
    }

    /// The label that it needs.
    pub fn label(&self, given: Option<Label>) -> Option<Label> {
        let label = &self.label;
        given.or_else(|| self.is_used.then(|| parse_quote!(#label:)))
    }

    fn turn(&self) -> Lifetime {
        Lifetime::new(&format!("'__turn{}", self.id), Span::mixed_site())
    }

    fn of(&self, what: &str) -> Ident {
        name(&format!("__{what}{}", self.id))
    }

    fn kind(&self, exit: usize) -> Ident {
        name(&format!("__kind{}_{exit}", self.id))
    }

    fn marker(&self, exit: usize) -> Ident {
        name(&format!("__exit{}_{exit}", self.id))
    }

    /// A jump that Rust decides.
    pub fn jump(&mut self, is_break: bool, value: Option<&TokenStream>) -> Expr {
        let label = &self.label;
        match &self.exits {
            None => {
                self.is_used = true;
                match is_break {
                    true => parse_quote!(break #label #value),
                    false => parse_quote!(continue #label),
                }
            }
            Some(_) => {
                let (turn, site, joins) = (self.turn(), self.of("exits"), self.of("joins"));
                match is_break {
                    false => parse_quote!(break #turn),
                    true => parse_quote! {
                        match #site.breaks_for_some() {
                            true => {
                                let _ = #joins.token();
                                #site.stop();
                                break #turn
                            }
                            false => break #label,
                        }
                    },
                }
            }
        }
    }

    /// A jump that a traced value may decide: what says its kind, what notes the locals, and what
    /// ends its side.
    pub fn exit(
        &mut self,
        is_break: bool,
        bound: BTreeSet<String>,
        place: Span,
    ) -> Option<(TokenStream, TokenStream, TokenStream)> {
        let exits = self.exits.as_mut()?;
        let exit = exits.len();
        exits.push((bound, place));
        let (kind, marker) = (self.kind(exit), self.marker(exit));
        let (site, fork) = (self.of("exits"), name("__fork"));
        let goes_on = !is_break;
        Some((
            quote!(#kind.is_of_branch(&#fork);),
            quote!(#marker;),
            quote!(#site.leave(#fork, #goes_on)?;),
        ))
    }

    /// Writes the loop, whose body was visited.
    pub fn written(
        &self,
        head: &Head<'_>,
        label: Option<&Label>,
        block: &mut Block,
        uses: &Uses,
        core: &TokenStream,
        place: Span,
    ) -> Expr {
        self.note(block, uses, core);
        let control = &respanned(quote!(#core::__private::control), place);
        let (site, joins, turns) = (self.of("exits"), self.of("joins"), self.of("turns"));
        let imports = uses.imports(core);
        let gather = uses.each(core, &joins, "gather");
        let put = uses.each(core, &joins, "put");
        let (mut begin, mut settle, mut join) = (quote!(), quote!(), quote!());
        let mut body = quote!(#block);
        let mut kinds = match head {
            Head::While(_) | Head::Range(..) => quote!(#turns.kind()),
            Head::Plain(_) | Head::Loop => quote!(#control::KindOf::<#control::Plain>::default()),
        };
        if let Some(exits) = &self.exits {
            let each: Vec<Ident> = (0..exits.len()).map(|exit| self.kind(exit)).collect();
            for kind in &each {
                kinds = quote!(#kinds.either(&#kind));
            }
            begin = quote! {
                let mut #site = #control::Exits::default();
                let mut #joins = #control::LoopState::joining();
                #(let #each = #control::KindOf::default();)*
            };
            let joined = |asked: &str, after: TokenStream| {
                let asked = Ident::new(asked, Span::mixed_site());
                quote! {
                    match #site.#asked() {
                        true => {
                            let _ = #joins.token();
                            #gather
                            #after
                        }
                        false => {}
                    }
                }
            };
            let joined_here = quote_spanned!(place=> #joins.join(&mut #site)?;);
            let end = quote!(#joined_here #put);
            settle = joined("is_pending", end.clone());
            let after = match head {
                Head::Loop => {
                    let body = name("__body");
                    let again = quote_spanned!(place=> #joins.repeat(&mut #site)?);
                    quote! {
                        let #body = #again;
                        #put
                        match #body {
                            true => {}
                            false => break,
                        }
                    }
                }
                _ => end,
            };
            let after = joined("is_needed", after);
            join = quote!(#kinds.is_of_loop(&#joins); #after);
            let turn = self.turn();
            body = quote!(#turn: #block);
        }
        let (before, around) = match head {
            Head::While(condition) => {
                let fork = self.tested(condition.clone(), &turns, control, place);
                let head = self.head(&fork, &turns, None, uses, core, place);
                (
                    quote!(let mut #turns = #control::LoopState::default();),
                    quote!(loop { #head #body #join }),
                )
            }
            Head::Range(pat, steps) => {
                let range = self.of("steps");
                let fork = self.tested(
                    quote_spanned!(place=> #control::Steps::fork(&mut #range)?),
                    &turns,
                    control,
                    place,
                );
                let head = self.head(&fork, &turns, Some(&range), uses, core, place);
                let before = quote! {
                    let mut #range = #steps;
                    let mut #turns = #control::LoopState::default();
                };
                let step = quote! {
                    let #pat = match #control::Steps::step(&mut #range)? {
                        ::core::option::Option::Some(step) => step,
                        ::core::option::Option::None => break,
                    };
                };
                (before, quote!(loop { #head #step #body #join }))
            }
            Head::Plain(head) => {
                let again = quote_spanned!(place=> #site.again()?;);
                (quote!(), quote!(#head { #again #body #join }))
            }
            Head::Loop => (quote!(), quote!(loop { #body #join })),
        };
        parse_quote! {{
            #[allow(unreachable_code, unused_braces, unused_labels, clippy::never_loop)]
            {
                #imports
                #before
                #begin
                #label #around
                #settle
            }
        }}
    }

    /// The fork of a head, which a loop without exits asks at once.
    fn tested(
        &self,
        fork: TokenStream,
        turns: &Ident,
        control: &TokenStream,
        place: Span,
    ) -> TokenStream {
        match &self.exits {
            None => fork,
            Some(_) => {
                let site = self.of("exits");
                let test = quote_spanned!(place=> #site.test(#turns.kind())?);
                let fork = quote! {
                    match #test {
                        true => #fork,
                        false => #control::Fork::Known(false),
                    }
                };
                let asked = name("__asked");
                let tested = quote_spanned!(place=> #site.tested(#asked)?);
                quote!({
                    let #asked = #fork;
                    #tested
                })
            }
        }
    }

    /// Whether there is another turn, and the locals as it finds them.
    fn head(
        &self,
        fork: &TokenStream,
        turns: &Ident,
        range: Option<&Ident>,
        uses: &Uses,
        core: &TokenStream,
        place: Span,
    ) -> TokenStream {
        let (site, body) = (name("__fork"), name("__body"));
        let control = quote!(#core::__private::control);
        let gather = uses.each(core, turns, "gather");
        let put = uses.each(core, turns, "put");
        let (mut gather_step, mut put_step) = (quote!(), quote!());
        if let Some(range) = range {
            let counter = quote!(#control::Steps::counter(&mut #range));
            gather_step = quote!(#control::gather(&mut #turns, &*#counter, "the counter"););
            put_step = quote!(#control::put(&mut #turns, #counter)?;);
        }
        let turn = quote_spanned!(place=> #turns.turn(&mut #site)?);
        let records = self.exits.is_some().then(|| {
            let exits = self.of("exits");
            quote!(#exits.records(#turns.is_open());)
        });
        quote! {
            let mut #site = #fork;
            match #turns.is_known(&#site) {
                true => match #site.then() {
                    true => {}
                    false => break,
                },
                false => {
                    let _ = #site.token();
                    #gather_step
                    #gather
                    let #body = #turn;
                    #put_step
                    #put
                    match #body {
                        true => {}
                        false => break,
                    }
                }
            }
            #records
        }
    }

    /// Puts what notes the locals where the markers are.
    fn note(&self, block: &mut Block, uses: &Uses, core: &TokenStream) {
        let Some(exits) = &self.exits else {
            return;
        };
        let fork = name("__fork");
        let notes = uses.each(core, &fork, "note");
        let notes = exits.iter().enumerate().map(|(exit, (bound, place))| {
            let statements = match uses.names().any(|name| bound.contains(name)) {
                true => {
                    let place = *place;
                    let core = respanned(core.clone(), place);
                    quote_spanned!(place=> #core::__private::control::hides(&#fork);)
                }
                false => notes.clone(),
            };
            (self.marker(exit), parse_quote!({ #statements }))
        });
        Notes(notes.collect()).visit_block_mut(block);
    }
}

struct Notes(Vec<(Ident, Expr)>);

impl VisitMut for Notes {
    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        if let Stmt::Expr(Expr::Path(path), _) = statement
            && let Some((_, notes)) = self.0.iter().find(|(marker, _)| path.path.is_ident(marker))
        {
            *statement = Stmt::Expr(notes.clone(), None);
            return;
        }
        visit_mut::visit_stmt_mut(self, statement);
    }
}

/// What gives the steps of a range, if a traced value may count it.
pub fn steps(range: &Expr, core: &TokenStream) -> Option<TokenStream> {
    let range = match range {
        Expr::Paren(inner) => return steps(&inner.expr, core),
        Expr::Range(range) => range,
        _ => return None,
    };
    let (from, to) = (range.start.as_deref()?, range.end.as_deref()?);
    let is_literal = |bound: &Expr| matches!(bound, Expr::Lit(_));
    let control = quote!(#core::__private::control);
    let bounds = match (is_literal(from), is_literal(to)) {
        (true, true) => return None,
        (true, false) => quote!(#control::bounds_from(#from, #to)),
        (false, true) => quote!(#control::bounds_to(#from, #to)),
        (false, false) => quote!(#control::bounds(#from, #to)?),
    };
    let (low, high) = (format_ident!("__from"), format_ident!("__to"));
    let limits = &range.limits;
    Some(quote!({
        let (#low, #high) = #bounds;
        #control::steps(#low #limits #high)?
    }))
}
