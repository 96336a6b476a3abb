//! `#[trace(control_flow)]`: `if`, `match`, loops and jumps as regions that a traced value may decide.
//! It runs before the comparisons of the body are rewritten.
//!
//! Invariant: a region names every local of the function that it can change; what it cannot change is
//! not named, so that plain Rust around it compiles as before.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Block, Expr, ExprClosure, ExprIf, ExprLet, ExprReturn, FnArg, Item, Lifetime, Local,
    Macro, Pat, ReturnType, Signature, Stmt, parse_quote,
};

use self::jumps::{Jump, Jumps, jump_of};
use self::locals::{Locals, Uses};
use self::loops::{Head, Loop};
use crate::body::needs_no_check;
use crate::spans::{Ends, parenthesized, respanned};

mod jumps;
mod locals;
mod loops;
mod matches;

/// Rewrites the body of a function that returns a `Result`; any other is left as it is.
pub fn rewrite(signature: &Signature, block: &mut Block, core: &TokenStream) {
    let ReturnType::Type(_, output) = &signature.output else {
        return;
    };
    if !is_result(output) {
        return;
    }
    let mut locals = Locals::default();
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) if receiver.mutability.is_some() => {
                locals.bind_name(&Ident::new("self", receiver.self_token.span), true);
            }
            FnArg::Receiver(_) => {}
            FnArg::Typed(typed) => {
                let lends = matches!(&*typed.ty, syn::Type::Reference(r) if r.mutability.is_some());
                locals.bind(&typed.pat, lends);
            }
        }
    }
    let mut control = Control {
        core,
        locals,
        returns_early: Jumps::of_function(block).returns,
        inside: 0,
        loops: Vec::new(),
        seen: 0,
        declared: None,
    };
    let returns_early = control.returns_early;
    control.visit_block_mut(block);
    if returns_early {
        let returns = name("__returns");
        if let Some(Stmt::Expr(last, None)) = block.stmts.last_mut() {
            *last = parse_quote!(#returns.finish(#last)?);
        }
        let ty = match has_impl(output) {
            true => quote!(_),
            false => quote!(#output),
        };
        block.stmts.insert(
            0,
            parse_quote!(let mut #returns: #core::__private::control::EarlyReturns<#ty> = ::core::default::Default::default();),
        );
    }
}

/// A name that the user's code does not see.
fn name(text: &str) -> Ident {
    Ident::new(text, Span::mixed_site())
}

fn is_result(ty: &syn::Type) -> bool {
    let syn::Type::Path(path) = ty else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|segment| segment.ident == "Result")
}

fn has_impl(ty: &syn::Type) -> bool {
    let mut tokens = ty.to_token_stream().into_iter().collect::<Vec<_>>();
    while let Some(token) = tokens.pop() {
        match token {
            proc_macro2::TokenTree::Ident(ident) if ident == "impl" => return true,
            proc_macro2::TokenTree::Group(group) => tokens.extend(group.stream()),
            _ => {}
        }
    }
    false
}

struct Control<'a> {
    core: &'a TokenStream,
    locals: Locals,
    /// Whether a `return` gives its value to the sides that are under way.
    returns_early: bool,
    /// How many closures, `async` and `unsafe` blocks are around: nothing is rewritten there.
    inside: usize,
    /// The loops around, outermost first.
    loops: Vec<Loop>,
    /// How many loops there were.
    seen: usize,
    /// The type that is declared for the value of the branch that is visited next.
    declared: Option<syn::Type>,
}

/// A side that ends in a jump.
struct Leave {
    /// What the type of the condition says to the loop.
    kind: TokenStream,
    /// The jump, where the condition is known.
    known: Expr,
    /// Where it is not: before and after the locals are as they were.
    before: TokenStream,
    after: TokenStream,
}

impl Control<'_> {
    fn decides(&self, condition: &Expr) -> bool {
        self.inside == 0 && is_rewritten(condition)
    }

    fn plain(&mut self, visit: impl FnOnce(&mut Self)) {
        self.inside += 1;
        visit(self);
        self.inside -= 1;
    }

    /// `fork(condition)?` at the place of the condition.
    fn fork(&self, condition: &Expr) -> TokenStream {
        let ends = Ends::of(condition);
        let core = respanned(self.core.clone(), ends.first);
        let function = Ident::new("fork", ends.first);
        let condition = parenthesized(quote!(#condition), ends.last);
        quote_spanned!(ends.last=> #core::__private::control::#function #condition ?)
    }

    /// Visits an `if` and writes its region.
    fn visit_branch(&mut self, branch: &mut ExprIf) -> Expr {
        let declared = self.declared.take();
        let mut place = branch.if_token.span;
        let found = jump_of(branch);
        let found = found.filter(|(jump, _)| match jump {
            Jump::Return(_) => self.returns_early,
            Jump::Break(label, _) | Jump::Continue(label) => self.loop_of(label.as_ref()).is_some(),
        });
        if let Some((jump, is_first)) = &found {
            let block = match (is_first, &mut branch.else_branch) {
                (true, _) => Some(&mut branch.then_branch),
                (false, Some((_, other))) => match &mut **other {
                    Expr::Block(block) => Some(&mut block.block),
                    _ => None,
                },
                (false, None) => None,
            };
            if let Some(block) = block {
                place = block
                    .stmts
                    .last()
                    .map_or(place, |jump| Ends::of(jump).first);
                jump.remove_from(block);
            }
        }
        self.visit_expr_mut(&mut branch.cond);
        self.locals.open_region();
        self.visit_block_mut(&mut branch.then_branch);
        if let Some((_, other)) = &mut branch.else_branch {
            self.visit_expr_mut(other);
        }
        let uses = self.locals.close_region();
        match found {
            Some((jump, is_first)) => {
                let leave = self.leave(&jump, place.resolved_at(Span::mixed_site()));
                self.leaving(branch, is_first, &leave, &uses)
            }
            None => self.branch(branch, declared.as_ref(), &uses),
        }
    }

    /// Visits a closure that runs in place: its jumps and returns are its own.
    fn visit_side(&mut self, closure: &mut ExprClosure) {
        let loops = std::mem::take(&mut self.loops);
        let returns_early = std::mem::replace(&mut self.returns_early, false);
        self.locals.scoped();
        for input in &closure.inputs {
            self.locals.bind(input, false);
        }
        self.visit_expr_mut(&mut closure.body);
        self.locals.unscoped();
        self.returns_early = returns_early;
        self.loops = loops;
    }

    /// What begins a region: its condition is asked, and the locals are kept.
    fn begin(&self, condition: &TokenStream, uses: &Uses) -> TokenStream {
        let fork = name("__fork");
        let imports = uses.imports(self.core);
        let keep = uses.each(self.core, &fork, "keep");
        quote! {
            #imports
            let mut #fork = #condition;
            match #fork.is_known() {
                true => {}
                false => {
                    let _ = #fork.token();
                    #fork.begin()?;
                    #keep
                }
            }
        }
    }

    fn branch(&self, branch: &ExprIf, declared: Option<&syn::Type>, uses: &Uses) -> Expr {
        let core = self.core;
        // Errors about what the branch gives are at its `if`.
        let place = branch.if_token.span.resolved_at(Span::mixed_site());
        let control = respanned(quote!(#core::__private::control), place);
        let (fork, value) = (name("__fork"), Ident::new("__value", place));
        let begin = self.begin(&self.fork(&branch.cond), uses);
        let turn = uses.each(core, &fork, "turn");
        let settle = uses.each(core, &fork, "settle");
        // With the type both sides become values of it, as those of a plain `if` do.
        let declared = declared.map(|ty| quote!(: #ty));
        let then = &branch.then_branch;
        let otherwise = otherwise(branch);
        let leave = quote_spanned!(place=> #control::leave(&mut #fork, #value)?);
        parse_quote! {{
            #[allow(unreachable_code, unused_braces, clippy::never_loop)]
            {
                #begin
                loop {
                    let #value #declared = match #fork.then() {
                        true => #then,
                        false => #otherwise,
                    };
                    match #fork.is_known() {
                        true => break #value,
                        false => {}
                    }
                    let _ = #fork.token();
                    #turn
                    match #leave {
                        ::core::option::Option::Some(#value) => {
                            #settle
                            break #value;
                        }
                        ::core::option::Option::None => {}
                    }
                }
            }
        }}
    }

    /// A branch of which one side ends in a jump: what follows is the other side.
    fn leaving(&self, branch: &ExprIf, is_first: bool, leave: &Leave, uses: &Uses) -> Expr {
        let fork = name("__fork");
        let then = &branch.then_branch;
        let then = quote!(#then);
        let (before, after) = match is_first {
            true => (then, otherwise(branch)),
            false => (otherwise(branch), then),
        };
        let condition = self.fork(&branch.cond);
        let begin = match is_first {
            true => self.begin(&condition, uses),
            false => self.begin(&quote!(#condition.negated()), uses),
        };
        let restored = uses.each(self.core, &fork, "restored");
        let value = name("__value");
        let Leave {
            kind,
            known,
            before: noted,
            after: left,
        } = leave;
        parse_quote! {{
            #[allow(unreachable_code, unused_braces, clippy::let_unit_value)]
            {
                #begin
                #kind
                match #fork.then() {
                    true => {
                        let #value = #before;
                        match #fork.is_known() {
                            true => #known,
                            false => {}
                        }
                        let _ = #fork.token();
                        #noted
                        #restored
                        #left
                    }
                    false => {}
                }
            }
            #after
        }}
    }

    /// What a jump becomes.
    fn leave(&mut self, jump: &Jump, place: Span) -> Leave {
        let (fork, value) = (name("__fork"), name("__value"));
        let core = self.core;
        let control = quote!(#core::__private::control);
        let (label, is_break) = match jump {
            Jump::Return(given) => {
                let returns = name("__returns");
                let leave = match given.as_deref().is_some_and(is_err) {
                    true => quote!(refuse),
                    false => quote!(leave),
                };
                return Leave {
                    kind: quote!(),
                    known: parse_quote!(return #returns.finish(#value)?),
                    before: quote!(),
                    after: quote!(#returns.#leave(#fork, #value)?;),
                };
            }
            Jump::Break(label, _) => (label, true),
            Jump::Continue(label) => (label, false),
        };
        let at = self.loop_of(label.as_ref()).unwrap_or_default();
        let bound = self.locals.bound_in(self.loops[at].regions);
        let around = &mut self.loops[at];
        let gives = matches!(jump, Jump::Break(_, Some(_))).then(|| quote!(#value));
        let known = around.jump(is_break, gives.as_ref());
        let (kind, before, after) = around.exit(is_break, bound, place).unwrap_or_else(|| {
            let control = respanned(control, place);
            let fork = Ident::new("__fork", place);
            (
                quote!(),
                quote_spanned!(place=> #control::gives_value(&#fork);),
                quote!(),
            )
        });
        Leave {
            kind,
            known,
            before,
            after,
        }
    }

    /// Where the loop of a jump is among those around.
    fn loop_of(&self, label: Option<&Lifetime>) -> Option<usize> {
        match label {
            Some(label) => self.loops.iter().rposition(|around| around.is(label)),
            None => self.loops.len().checked_sub(1),
        }
    }

    /// Visits a loop, and writes it anew if a traced value may decide about it.
    fn visit_loop(&mut self, expr: &mut Expr) {
        self.seen += 1;
        let (label, block) = match expr {
            Expr::While(repeat) => (&mut repeat.label, &mut repeat.body),
            Expr::ForLoop(repeat) => (&mut repeat.label, &mut repeat.body),
            Expr::Loop(repeat) => (&mut repeat.label, &mut repeat.body),
            _ => return,
        };
        let (given, mut block) = (label.take(), std::mem::replace(block, parse_quote!({})));
        let jumps = Jumps::of_loop(&block, given.as_ref());
        let is_range = matches!(&*expr, Expr::ForLoop(repeat) if loops::steps(&repeat.expr, self.core).is_some());
        let is_while = matches!(&*expr, Expr::While(repeat) if is_rewritten(&repeat.cond));
        let can_be = self.inside == 0 && !jumps.gives;
        let exits = can_be
            && match is_range || is_while {
                true => jumps.leaves,
                false => jumps.exits,
            };
        let is_region = exits || (self.inside == 0 && (is_range || is_while));
        if let Expr::ForLoop(repeat) = expr {
            self.visit_expr_mut(&mut repeat.expr);
        }
        let regions = self.locals.open_regions();
        if is_region {
            self.locals.open_region();
        }
        let around = Loop::new(self.seen, given.as_ref(), regions, exits);
        self.loops.push(around);
        self.locals.scoped();
        match expr {
            Expr::While(repeat) => self.visit_expr_mut(&mut repeat.cond),
            Expr::ForLoop(repeat) => self.locals.bind(&repeat.pat, false),
            _ => {}
        }
        self.visit_block_mut(&mut block);
        self.locals.unscoped();
        let Some(around) = self.loops.pop() else {
            return;
        };
        let new = around.label(given);
        if is_region {
            let uses = self.locals.close_region();
            let (head, place) = match expr {
                Expr::While(repeat) if is_while => (
                    Head::While(self.fork(&repeat.cond)),
                    repeat.while_token.span,
                ),
                Expr::While(repeat) => {
                    let condition = &repeat.cond;
                    (
                        Head::Plain(quote!(while #condition)),
                        repeat.while_token.span,
                    )
                }
                Expr::ForLoop(repeat) => {
                    let (pat, items) = (&*repeat.pat, &repeat.expr);
                    let head = match loops::steps(items, self.core) {
                        Some(steps) => Head::Range(pat, steps),
                        None => Head::Plain(quote!(for #pat in #items)),
                    };
                    (head, repeat.for_token.span)
                }
                Expr::Loop(repeat) => (Head::Loop, repeat.loop_token.span),
                _ => return,
            };
            *expr = around.written(&head, new.as_ref(), &mut block, &uses, self.core, place);
            return;
        }
        let (label, place) = match expr {
            Expr::While(repeat) => (&mut repeat.label, &mut repeat.body),
            Expr::ForLoop(repeat) => (&mut repeat.label, &mut repeat.body),
            Expr::Loop(repeat) => (&mut repeat.label, &mut repeat.body),
            _ => return,
        };
        (*label, *place) = (new, block);
    }

    /// Visits a `break` or a `continue` that Rust decides.
    fn visit_jump(&mut self, expr: &mut Expr) {
        let (label, is_break) = match expr {
            Expr::Break(jump) => {
                if let Some(value) = &mut jump.expr {
                    self.visit_expr_mut(value);
                }
                (jump.label.clone(), true)
            }
            Expr::Continue(jump) => (jump.label.clone(), false),
            _ => return,
        };
        let Some(at) = self.loop_of(label.as_ref()) else {
            return;
        };
        let open = self.locals.open_regions();
        let around = &mut self.loops[at];
        if around.has_exits() || (label.is_none() && open > around.regions) {
            let value = match expr {
                Expr::Break(jump) => jump.expr.as_ref().map(|value| quote!(#value)),
                _ => None,
            };
            *expr = around.jump(is_break, value.as_ref());
        }
    }
}

/// `control::cond` and its like, whose closures run in place.
fn is_of_control(function: &Expr) -> bool {
    const FUNCTIONS: [&str; 4] = ["cond", "while_loop", "scan", "map"];
    let Expr::Path(path) = function else {
        return false;
    };
    let mut segments = path.path.segments.iter().rev();
    let last = segments.next();
    let of = segments.next();
    of.is_some_and(|of| of.ident == "control")
        && last.is_some_and(|last| FUNCTIONS.iter().any(|known| last.ident == known))
}

/// Whether a condition may be a traced value: plain Rust decides about any other.
fn is_rewritten(condition: &Expr) -> bool {
    !needs_no_check(condition) && !is_field_of_self(condition)
}

/// The block of an `else`.
fn otherwise(branch: &ExprIf) -> TokenStream {
    match &branch.else_branch {
        Some((_, other)) => quote!({ #other }),
        None => quote!({}),
    }
}

fn is_err(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else {
        return false;
    };
    matches!(&*call.func, Expr::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Err"))
}

/// `self.a.b`, which is a plain `bool` if it is a condition.
fn is_field_of_self(expr: &Expr) -> bool {
    match expr {
        Expr::Field(field) => match &*field.base {
            Expr::Path(path) => path.path.is_ident("self"),
            base => is_field_of_self(base),
        },
        Expr::Paren(paren) => is_field_of_self(&paren.expr),
        Expr::Unary(unary) => is_field_of_self(&unary.expr),
        _ => false,
    }
}

impl VisitMut for Control<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::If(branch) if self.decides(&branch.cond) => {
                *expr = self.visit_branch(branch);
            }
            Expr::Match(choice) if self.inside == 0 && matches::is_of_literals(choice) => {
                if let Some(chain) = matches::as_branches(choice, self.core) {
                    *expr = chain;
                    self.visit_expr_mut(expr);
                }
            }
            Expr::While(_) | Expr::Loop(_) | Expr::ForLoop(_) => self.visit_loop(expr),
            Expr::Break(_) | Expr::Continue(_) => self.visit_jump(expr),
            Expr::Call(call) if self.inside == 0 && is_of_control(&call.func) => {
                for arg in &mut call.args {
                    match arg {
                        Expr::Closure(closure) => self.visit_side(closure),
                        other => self.visit_expr_mut(other),
                    }
                }
            }
            Expr::If(_) => {
                // The names of an `if let` end with it.
                self.locals.scoped();
                visit_mut::visit_expr_mut(self, expr);
                self.locals.unscoped();
            }
            Expr::Assign(assign) => {
                self.locals.assigned(&assign.left);
                visit_mut::visit_expr_mut(self, expr);
            }
            Expr::Binary(binary) => {
                if locals::assigns(&binary.op) {
                    self.locals.assigned(&binary.left);
                }
                visit_mut::visit_expr_mut(self, expr);
            }
            Expr::Path(path) => {
                if let Some(ident) = path.path.get_ident() {
                    self.locals.mentioned(ident);
                }
            }
            Expr::Async(_) | Expr::Unsafe(_) => {
                self.plain(|this| visit_mut::visit_expr_mut(this, expr));
            }
            Expr::Const(_) => {}
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut ExprClosure) {
        self.locals.scoped();
        for input in &closure.inputs {
            self.locals.bind(input, false);
        }
        self.plain(|this| this.visit_expr_mut(&mut closure.body));
        self.locals.unscoped();
    }

    fn visit_expr_return_mut(&mut self, given: &mut ExprReturn) {
        visit_mut::visit_expr_return_mut(self, given);
        if let Some(value) = &mut given.expr
            && self.returns_early
            && self.inside == 0
        {
            let returns = name("__returns");
            **value = parse_quote!(#returns.finish(#value)?);
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.locals.scoped();
        visit_mut::visit_block_mut(self, block);
        self.locals.unscoped();
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            if let (Pat::Type(typed), Expr::If(_)) = (&local.pat, &*init.expr) {
                self.declared = Some((*typed.ty).clone());
            }
            self.visit_expr_mut(&mut init.expr);
            if let Some((_, diverge)) = &mut init.diverge {
                self.visit_expr_mut(diverge);
            }
            self.declared = None;
        }
        let lends = local.init.as_ref().is_some_and(
            |init| matches!(&*init.expr, Expr::Reference(r) if r.mutability.is_some()),
        );
        self.locals.bind(&local.pat, lends);
    }

    fn visit_expr_let_mut(&mut self, condition: &mut ExprLet) {
        self.visit_expr_mut(&mut condition.expr);
        self.locals.bind(&condition.pat, false);
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        self.locals.scoped();
        self.locals.bind(&arm.pat, false);
        visit_mut::visit_arm_mut(self, arm);
        self.locals.unscoped();
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        self.locals.mentioned_in(mac.tokens.clone());
    }

    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_item_mut(&mut self, _: &mut Item) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
}
