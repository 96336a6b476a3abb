//! Locals that a side moves and that are needed after it: while a graph is recorded both sides run,
//! so that such a side moves a copy.
//!
//! Invariant: where a plain `bool` decides, and for what cannot be copied, the local itself is moved,
//! as plain Rust has it.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Block, Expr};

use super::forms::name;
use crate::spans::{Ends, parenthesized, respanned};

/// The places of a function that move a local, and its branches.
#[derive(Default)]
pub struct Moves {
    /// Every local as it is mentioned, in order; whether it is assigned.
    seen: Vec<(String, bool)>,
    marks: Vec<Mark>,
    branches: Vec<Branch>,
    /// The branches whose sides are visited.
    open: Vec<usize>,
}

/// A place that may move a local.
struct Mark {
    place: TokenStream,
    local: String,
    /// How many blocks were around the local.
    depth: usize,
    at: usize,
    branches: Vec<usize>,
}

struct Branch {
    /// How many blocks are around it.
    depth: usize,
    /// How many blocks are around each loop that it is in.
    loops: Vec<usize>,
    /// What each side mentions.
    sides: [Range<usize>; 2],
    /// Of the two, the side that leaves.
    leaves: Option<usize>,
    /// Locals that are read after each side.
    touched: BTreeSet<String>,
    assigned: BTreeSet<String>,
}

impl Moves {
    pub fn mentioned(&mut self, local: &str, is_assigned: bool) {
        self.seen.push((local.to_string(), is_assigned));
    }

    /// Where the next mention is.
    pub fn now(&self) -> usize {
        self.seen.len()
    }

    /// Begins a branch, in so many blocks, in these loops.
    pub fn begin(&mut self, depth: usize, loops: Vec<usize>) -> usize {
        let id = self.branches.len();
        self.open.push(id);
        self.branches.push(Branch {
            depth,
            loops,
            sides: [0..0, 0..0],
            leaves: None,
            touched: BTreeSet::new(),
            assigned: BTreeSet::new(),
        });
        id
    }

    /// Ends a branch, with what `each` of its locals is: assigned, or only mentioned.
    pub fn end<'a>(
        &mut self,
        branch: usize,
        sides: [Range<usize>; 2],
        leaves: Option<usize>,
        each: impl Iterator<Item = (&'a String, bool)>,
    ) {
        self.open.pop();
        let branch = &mut self.branches[branch];
        (branch.sides, branch.leaves) = (sides, leaves);
        for (local, is_assigned) in each {
            match is_assigned {
                true => branch.assigned.insert(local.clone()),
                false => branch.touched.insert(local.clone()),
            };
        }
    }

    /// A place that may move a local which is bound in so many blocks, if it is in a branch: what
    /// stands for it until all is known.
    pub fn mark(&mut self, place: &Expr, local: &Ident, depth: usize) -> Option<Expr> {
        let around = self.open.iter().copied();
        let branches: Vec<usize> = around
            .filter(|branch| depth < self.branches[*branch].depth)
            .collect();
        if branches.is_empty() {
            return None;
        }
        let mark = name(&format!("__fx_moved_{}", self.marks.len()));
        self.marks.push(Mark {
            place: place.to_token_stream(),
            local: local.to_string(),
            depth,
            at: self.seen.len(),
            branches,
        });
        Some(syn::parse_quote!(#mark))
    }

    /// Stands behind the condition of a branch that has marks.
    pub fn kind(&self, branch: usize) -> Option<TokenStream> {
        let has_marks = self
            .marks
            .iter()
            .any(|mark| mark.branches.contains(&branch));
        let kind = name(&format!("__fx_branch_{branch}"));
        has_marks.then(|| quote!(#kind;))
    }

    /// Writes what the marks of a function stand for.
    pub fn written(&self, block: &mut Block, core: &TokenStream) -> syn::Result<()> {
        if self.marks.is_empty() {
            return Ok(());
        }
        let needed: Vec<Vec<usize>> = self.marks.iter().map(|mark| self.needed(mark)).collect();
        *block = syn::parse2(self.replaced(block.to_token_stream(), &needed, core))?;
        Ok(())
    }

    /// The branches for which a place has to leave its local as it is.
    fn needed(&self, mark: &Mark) -> Vec<usize> {
        let is_needed = |id: &usize| {
            let branch = &self.branches[*id];
            let Some(side) = branch.sides.iter().position(|side| side.contains(&mark.at)) else {
                return false;
            };
            let mentions =
                |range: &[(String, bool)]| range.iter().any(|(name, _)| *name == mark.local);
            let own = &self.seen[branch.sides[side].clone()];
            let is_touched = branch.touched.contains(&mark.local);
            let other = mentions(&self.seen[branch.sides[1 - side].clone()]);
            match branch.leaves {
                Some(leaves) if leaves != side => false,
                Some(_) => {
                    let end = branch
                        .sides
                        .iter()
                        .map(|side| side.end)
                        .max()
                        .unwrap_or_default();
                    let repeats = branch.loops.iter().any(|around| mark.depth < *around);
                    !branch.assigned.contains(&mark.local)
                        && (other || repeats || is_touched || mentions(&self.seen[end..]))
                }
                None => {
                    let is_new = own
                        .iter()
                        .any(|(name, assigned)| *assigned && *name == mark.local);
                    !is_new && (is_touched || (side == 0 && other))
                }
            }
        };
        mark.branches.iter().copied().filter(is_needed).collect()
    }

    fn replaced(
        &self,
        tokens: TokenStream,
        needed: &[Vec<usize>],
        core: &TokenStream,
    ) -> TokenStream {
        let mut replaced = TokenStream::new();
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let inner = self.replaced(group.stream(), needed, core);
                    let mut new = Group::new(group.delimiter(), inner);
                    new.set_span(group.span());
                    replaced.extend([TokenTree::Group(new)]);
                }
                TokenTree::Ident(ident) => {
                    let text = ident.to_string();
                    let number = |prefix: &str| text.strip_prefix(prefix)?.parse::<usize>().ok();
                    if let Some(mark) = number("__fx_moved_") {
                        replaced.extend(self.moved(mark, needed, core));
                    } else if let Some(branch) = number("__fx_branch_") {
                        let is_used = needed.iter().any(|branches| branches.contains(&branch));
                        let fork = name("__fork");
                        replaced.extend(match is_used {
                            true => quote!(let #ident = #fork.kind()),
                            false => quote!(()),
                        });
                    } else {
                        replaced.extend([TokenTree::Ident(ident)]);
                    }
                }
                other => replaced.extend([other]),
            }
        }
        replaced
    }

    /// The local, or a copy of it where one of the branches is traced.
    fn moved(&self, mark: usize, needed: &[Vec<usize>], core: &TokenStream) -> TokenStream {
        let place = &self.marks[mark].place;
        let mut kinds = needed[mark]
            .iter()
            .map(|branch| name(&format!("__fx_branch_{branch}")));
        let Some(first) = kinds.next() else {
            return place.clone();
        };
        let kinds = kinds.fold(quote!(#first), |kinds, kind| quote!(#kinds.either(&#kind)));
        let ends = Ends::of(place);
        let span = ends.first.resolved_at(Span::mixed_site());
        let core = respanned(core.clone(), span);
        let moved = Ident::new("__moved", span);
        let inner = quote_spanned! {span=>
            #[allow(unused_imports)]
            use #core::__private::mentioned::{MovesCopy as _, MovesIt as _, MovesPlain as _};
            let #moved = (&&&#core::__private::mentioned::mentioned(&#kinds, &#place)).moved(&#place);
            match #moved.is_copy() {
                true => #moved.copy(),
                false => {
                    let _ = #moved.token();
                    #place
                }
            }
        };
        let mut block = Group::new(Delimiter::Brace, inner);
        block.set_span(ends.first);
        // What the local is part of keeps its place in the source.
        parenthesized(TokenTree::Group(block).into(), ends.last)
    }
}
