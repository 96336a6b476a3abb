//! `#[trace(control_flow)]`: `if`, `while` and early `return` as regions that a traced value may
//! decide. It runs before the comparisons of the body are rewritten.
//!
//! Invariant: a region names every local of the function that it can change; what it cannot change is
//! not named, so that plain Rust around it compiles as before.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Block, Expr, ExprBreak, ExprClosure, ExprContinue, ExprIf, ExprLet, ExprReturn, ExprWhile,
    FnArg, Item, Label, Lifetime, Local, Macro, Pat, ReturnType, Signature, Stmt, parse_quote,
};

use self::locals::{Locals, Uses};
use crate::body::needs_no_check;
use crate::spans::{Ends, parenthesized, respanned};

mod locals;

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
        returns_early: ReturnsEarly::found(block),
        inside: 0,
        loops: Vec::new(),
        labels: 0,
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

/// Whether a block of an `if` ends in a `return`.
struct ReturnsEarly(bool);

impl ReturnsEarly {
    fn found(block: &mut Block) -> bool {
        let mut search = ReturnsEarly(false);
        search.visit_block_mut(block);
        search.0
    }
}

impl VisitMut for ReturnsEarly {
    fn visit_expr_if_mut(&mut self, branch: &mut ExprIf) {
        self.0 |= ends_in_return(&branch.then_branch);
        visit_mut::visit_expr_if_mut(self, branch);
    }

    fn visit_expr_closure_mut(&mut self, _: &mut ExprClosure) {}
    fn visit_expr_async_mut(&mut self, _: &mut syn::ExprAsync) {}
    fn visit_item_mut(&mut self, _: &mut Item) {}
}

fn ends_in_return(block: &Block) -> bool {
    matches!(block.stmts.last(), Some(Stmt::Expr(Expr::Return(_), _)))
}

struct Control<'a> {
    core: &'a TokenStream,
    locals: Locals,
    /// Whether a `return` gives its value to the sides that are under way.
    returns_early: bool,
    /// How many closures, `async` and `unsafe` blocks are around: nothing is rewritten there.
    inside: usize,
    loops: Vec<Loop>,
    labels: usize,
}

/// A loop of the user's.
struct Loop {
    label: Lifetime,
    /// How many regions were open at its head.
    regions: usize,
    is_used: bool,
}

impl Control<'_> {
    fn decides(&self, condition: &Expr) -> bool {
        self.inside == 0 && !needs_no_check(condition) && !is_field_of_self(condition)
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

    fn branch(&self, branch: &ExprIf, uses: &Uses) -> Expr {
        let core = self.core;
        // Errors about what the branch gives are at its `if`.
        let place = branch.if_token.span.resolved_at(Span::mixed_site());
        let control = respanned(quote!(#core::__private::control), place);
        let (fork, value) = (name("__fork"), Ident::new("__value", place));
        let condition = self.fork(&branch.cond);
        let keep = uses.each(core, &fork, "keep");
        let turn = uses.each(core, &fork, "turn");
        let settle = uses.each(core, &fork, "settle");
        let then = &branch.then_branch;
        let otherwise = match &branch.else_branch {
            Some((_, other)) => quote!({ #other }),
            None => quote!({}),
        };
        let imports = uses.imports(core);
        let begin = quote! {
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
        };
        if self.returns_early && self.inside == 0 && ends_in_return(then) {
            let Some((Stmt::Expr(Expr::Return(last), _), before)) = then.stmts.split_last() else {
                return Expr::If(branch.clone());
            };
            let returns = name("__returns");
            // Written by `visit_expr_return_mut`: `return __returns.finish(given)?`.
            let given = last.expr.as_deref().and_then(finished);
            let leave = match given.as_ref().is_some_and(is_err) {
                true => quote!(refuse),
                false => quote!(leave),
            };
            return parse_quote! {{
                #[allow(unreachable_code, unused_braces)]
                {
                    #begin
                    match #fork.then() {
                        true => {
                            #(#before)*
                            let #value = #given;
                            match #fork.is_known() {
                                true => return #returns.finish(#value)?,
                                false => {}
                            }
                            let _ = #fork.token();
                            #turn
                            #returns.#leave(#fork, #value)?;
                        }
                        false => {}
                    }
                }
                #otherwise
            }};
        }
        let leave = quote_spanned!(place=> #control::leave(&mut #fork, #value)?);
        parse_quote! {{
            #[allow(unreachable_code, unused_braces, clippy::never_loop)]
            {
                #begin
                loop {
                    let #value = match #fork.then() {
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

    fn repeat(&self, repeat: &ExprWhile, uses: &Uses) -> Expr {
        let core = self.core;
        let control = quote!(#core::__private::control);
        let (fork, turns, body) = (name("__fork"), name("__turns"), name("__body"));
        let condition = self.fork(&repeat.cond);
        let gather = uses.each(core, &turns, "gather");
        let put = uses.each(core, &turns, "put");
        let imports = uses.imports(core);
        let (label, block) = (&repeat.label, &repeat.body);
        parse_quote! {{
            #[allow(unreachable_code, unused_braces)]
            {
                #imports
                let mut #turns = #control::Turns::default();
                #label loop {
                    let mut #fork = #condition;
                    match #turns.is_known(&#fork) {
                        true => match #fork.then() {
                            true => {}
                            false => break,
                        },
                        false => {
                            let _ = #fork.token();
                            #gather
                            let #body = #turns.turn(&mut #fork)?;
                            #put
                            match #body {
                                true => {}
                                false => break,
                            }
                        }
                    }
                    #block
                }
            }
        }}
    }

    /// Visits a loop of the user's, which gets a label if a jump in it needs one.
    fn in_loop(&mut self, label: &mut Option<Label>, visit: impl FnOnce(&mut Self)) {
        self.labels += 1;
        let own = || Lifetime::new(&format!("'__fx{}", self.labels), Span::mixed_site());
        let given = label.as_ref().map_or_else(own, |label| label.name.clone());
        self.loops.push(Loop {
            label: given.clone(),
            regions: self.locals.open_regions(),
            is_used: false,
        });
        visit(self);
        if self.loops.pop().is_some_and(|done| done.is_used) && label.is_none() {
            *label = Some(parse_quote!(#given:));
        }
    }

    /// Names the loop that a jump is of, if a region is between the two.
    fn jump(&mut self, label: &mut Option<Lifetime>) {
        let open = self.locals.open_regions();
        if let (None, Some(inner)) = (&label, self.loops.last_mut())
            && open > inner.regions
        {
            inner.is_used = true;
            *label = Some(inner.label.clone());
        }
    }
}

/// The value of `__returns.finish(value)?`.
fn finished(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Try(tried) => match &*tried.expr {
            Expr::MethodCall(call) if call.method == "finish" => call.args.first().cloned(),
            _ => None,
        },
        _ => None,
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
                self.visit_expr_mut(&mut branch.cond);
                self.locals.open_region();
                self.visit_block_mut(&mut branch.then_branch);
                if let Some((_, other)) = &mut branch.else_branch {
                    self.visit_expr_mut(other);
                }
                let uses = self.locals.close_region();
                *expr = self.branch(branch, &uses);
            }
            Expr::While(repeat) if self.decides(&repeat.cond) => {
                self.locals.open_region();
                let mut label = repeat.label.take();
                self.in_loop(&mut label, |this| {
                    this.visit_expr_mut(&mut repeat.cond);
                    this.visit_block_mut(&mut repeat.body);
                });
                repeat.label = label;
                let uses = self.locals.close_region();
                *expr = self.repeat(repeat, &uses);
            }
            Expr::While(repeat) => {
                let mut label = repeat.label.take();
                self.in_loop(&mut label, |this| {
                    this.locals.scoped();
                    this.visit_expr_mut(&mut repeat.cond);
                    this.visit_block_mut(&mut repeat.body);
                    this.locals.unscoped();
                });
                repeat.label = label;
            }
            Expr::Loop(repeat) => {
                let mut label = repeat.label.take();
                self.in_loop(&mut label, |this| this.visit_block_mut(&mut repeat.body));
                repeat.label = label;
            }
            Expr::ForLoop(repeat) => {
                self.visit_expr_mut(&mut repeat.expr);
                let mut label = repeat.label.take();
                self.in_loop(&mut label, |this| {
                    this.locals.scoped();
                    this.locals.bind(&repeat.pat, false);
                    this.visit_block_mut(&mut repeat.body);
                    this.locals.unscoped();
                });
                repeat.label = label;
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

    fn visit_expr_break_mut(&mut self, jump: &mut ExprBreak) {
        self.jump(&mut jump.label);
        visit_mut::visit_expr_break_mut(self, jump);
    }

    fn visit_expr_continue_mut(&mut self, jump: &mut ExprContinue) {
        self.jump(&mut jump.label);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.locals.scoped();
        visit_mut::visit_block_mut(self, block);
        self.locals.unscoped();
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            self.visit_expr_mut(&mut init.expr);
            if let Some((_, diverge)) = &mut init.diverge {
                self.visit_expr_mut(diverge);
            }
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
