//! The locals of a function, and which of them a region can change.
//!
//! Invariant: a name stands for the innermost binding at its place.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat, PatIdent};

use crate::spans::respanned;

/// What is in scope, and the regions under way.
#[derive(Default)]
pub struct Locals {
    /// Per block: whether a name can change.
    scopes: Vec<BTreeMap<String, bool>>,
    /// The number of scopes at its begin, and what is used in it.
    regions: Vec<(usize, Uses)>,
}

/// The locals from outside that a region uses.
#[derive(Default)]
pub struct Uses {
    /// Those that it may change, by name.
    changing: BTreeMap<String, (Ident, How)>,
}

/// How a region uses a local.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// Its methods may change it.
    Mentioned,
    /// It is assigned.
    Assigned,
}

impl Uses {
    /// The names of the locals that it may change.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.changing.keys()
    }

    /// Each of them, and whether it is assigned.
    pub fn each_name(&self) -> impl Iterator<Item = (&String, bool)> {
        let each = self.changing.iter();
        each.map(|(name, (_, how))| (name, *how == How::Assigned))
    }

    /// What the statements for locals that are not assigned need.
    pub fn imports(&self, core: &TokenStream) -> Option<TokenStream> {
        let mut hows = self.changing.values().map(|(_, how)| *how);
        hows.any(|how| how == How::Mentioned).then(|| {
            quote! {
                #[allow(unused_imports)]
                use #core::__private::mentioned::{AsOther as _, Carry as _};
            }
        })
    }

    /// A statement for each local, at its place: what a function of the gate does with it.
    pub fn each(&self, core: &TokenStream, site: &Ident, function: &str) -> TokenStream {
        let mut statements = TokenStream::new();
        for (text, (local, how)) in &self.changing {
            let span = local.span().resolved_at(Span::mixed_site());
            let core = respanned(core.clone(), span);
            let function = match how {
                How::Mentioned if function == "restored" => "turn",
                _ => function,
            };
            let function = Ident::new(function, span);
            let saves = ["keep", "gather", "note"]
                .iter()
                .any(|saves| function == saves);
            let restores = function == "restored";
            statements.extend(match (how, saves) {
                (How::Assigned, _) if restores => quote_spanned! {span=>
                    #local = #core::__private::control::#function(&mut #site)?;
                },
                (How::Assigned, true) => quote_spanned! {span=>
                    #core::__private::control::#function(&mut #site, &#local, #text);
                },
                (How::Assigned, false) => quote_spanned! {span=>
                    #core::__private::control::#function(&mut #site, &mut #local)?;
                },
                (How::Mentioned, true) => quote_spanned! {span=>
                    (&&&&#core::__private::mentioned::mentioned(&#site, &#local)).#function(&mut #site, &#local, #text);
                },
                (How::Mentioned, false) => quote_spanned! {span=>
                    (&&&&#core::__private::mentioned::mentioned(&#site, &#local)).#function(&mut #site, &mut #local, #text)?;
                },
            });
        }
        statements
    }
}

impl Locals {
    pub fn scoped(&mut self) {
        self.scopes.push(BTreeMap::new());
    }

    pub fn unscoped(&mut self) {
        self.scopes.pop();
    }

    /// Binds the names of a pattern; `lends` if they change what they borrow.
    pub fn bind(&mut self, pat: &Pat, lends: bool) {
        struct Names<'a>(&'a mut Locals, bool);
        impl<'ast> Visit<'ast> for Names<'_> {
            fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
                self.0
                    .bind_name(&pat.ident, self.1 || pat.mutability.is_some());
                visit::visit_pat_ident(self, pat);
            }
            fn visit_expr(&mut self, _: &'ast Expr) {}
        }
        Names(self, lends).visit_pat(pat);
    }

    pub fn bind_name(&mut self, name: &Ident, changes: bool) {
        if self.scopes.is_empty() {
            self.scoped();
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), changes);
        }
    }

    pub fn open_region(&mut self) {
        self.regions.push((self.scopes.len(), Uses::default()));
    }

    pub fn close_region(&mut self) -> Uses {
        self.regions.pop().map(|(_, uses)| uses).unwrap_or_default()
    }

    /// How many blocks are around.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// How many blocks are around the local of a name.
    pub fn depth_of(&self, name: &Ident) -> Option<usize> {
        let text = name.to_string();
        self.scopes
            .iter()
            .rposition(|scope| scope.contains_key(&text))
    }

    pub fn open_regions(&self) -> usize {
        self.regions.len()
    }

    /// The names that are bound in a region up to here.
    pub fn bound_in(&self, region: usize) -> BTreeSet<String> {
        let outside = self.regions.get(region).map_or(0, |(outside, _)| *outside);
        let scopes = self.scopes.iter().skip(outside);
        scopes.flat_map(|scope| scope.keys().cloned()).collect()
    }

    pub fn mentioned(&mut self, name: &Ident) {
        self.used(name, How::Mentioned);
    }

    pub fn assigned(&mut self, name: &Ident) {
        self.used(name, How::Assigned);
    }

    fn used(&mut self, name: &Ident, how: How) {
        let text = name.to_string();
        let found = self.scopes.iter().enumerate().rev();
        let mut found = found.filter_map(|(depth, scope)| Some((depth, *scope.get(&text)?)));
        let Some((depth, true)) = found.next() else {
            return;
        };
        for (outside, uses) in &mut self.regions {
            if depth < *outside {
                let entry = uses.changing.entry(text.clone());
                let entry = entry.or_insert_with(|| (name.clone(), how));
                if how == How::Assigned {
                    entry.1 = how;
                }
            }
        }
    }
}

/// The names of what an assignment to a place changes.
pub fn assigned(place: &Expr, each: &mut dyn FnMut(&Ident)) {
    match place {
        Expr::Path(path) => {
            if let Some(name) = path.path.get_ident() {
                each(name);
            }
        }
        Expr::Field(field) => assigned(&field.base, each),
        Expr::Index(index) => assigned(&index.expr, each),
        Expr::Paren(paren) => assigned(&paren.expr, each),
        Expr::Unary(unary) => assigned(&unary.expr, each),
        Expr::Tuple(tuple) => tuple.elems.iter().for_each(|part| assigned(part, each)),
        Expr::Array(array) => array.elems.iter().for_each(|part| assigned(part, each)),
        _ => {}
    }
}

/// Whether an operator changes its left side.
pub fn assigns(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}
