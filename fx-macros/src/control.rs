//! `#[trace(control_flow)]`: `if`, `match`, loops and jumps as regions that a traced value may decide.
//! It runs before the comparisons of the body are rewritten.
//!
//! Invariant: a region names every local of the function that it can change; what it cannot change is
//! not named, so that plain Rust around it compiles as before.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Block, Expr, ExprClosure, ExprIf, ExprLet, ExprReturn, FnArg, Item, Lifetime, Local,
    Macro, Pat, ReturnType, Signature, Stmt, Token, UnOp, parse_quote,
};

use self::forms::{
    has_impl, is_arithmetic, is_err, is_member, is_of_control, is_result, is_rewritten, local_of,
    moves_whole, name, otherwise, takes_receiver,
};
use self::jumps::{Jump, Jumps, jump_of};
use self::locals::{Locals, Uses};
use self::loops::{Head, Loop};
use self::moves::Moves;
use crate::attributes;
use crate::spans::{Ends, parenthesized, respanned};

mod forms;
mod jumps;
mod locals;
mod loops;
mod matches;
mod moves;
mod tails;

/// Rewrites the body of a function that returns a `Result`; any other is left as it is.
pub fn rewrite(signature: &Signature, block: &mut Block, core: &TokenStream) {
    let ReturnType::Type(_, output) = &signature.output else {
        return;
    };
    if !is_result(output) {
        return;
    }
    attributes::relax(block);
    tails::fold(block);
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
        moves: Moves::default(),
        output: match has_impl(output) {
            true => quote!(_),
            false => quote!(#output),
        },
        returns_early: Jumps::of_function(block).returns,
        inside: 0,
        loops: Vec::new(),
        seen: 0,
        declared: None,
    };
    let returns_early = control.returns_early;
    let ty = control.output.clone();
    control.visit_block_mut(block);
    let Control { moves, .. } = control;
    if returns_early {
        let returns = name("__returns");
        if let Some(Stmt::Expr(last, None)) = block.stmts.last_mut() {
            let attrs = attributes::take(last);
            let finished = finished(last, &ty);
            *last = attributes::with(&attrs, finished);
        }
        block.stmts.insert(
            0,
            parse_quote!(let mut #returns: #core::__private::control::EarlyReturns<#ty> = ::core::default::Default::default();),
        );
    }
    if let Err(error) = moves.written(block, core) {
        let error = error.to_compile_error();
        block.stmts.push(Stmt::Expr(parse_quote!({ #error }), None));
    }
}

/// A value of the function, joined with those that it may return early: that may happen in the value.
fn finished(value: &Expr, ty: &TokenStream) -> Expr {
    let (returns, result) = (name("__returns"), name("__result"));
    parse_quote!({
        let #result: #ty = #value;
        #returns.finish(#result)?
    })
}

/// A call of a function of the gate, with a `?`: all of it is where the user wrote `place`, which then
/// is the place of its errors.
fn call_at(
    core: &TokenStream,
    function: &str,
    arguments: &TokenStream,
    place: Span,
) -> TokenStream {
    let core = respanned(core.clone(), place);
    let function = Ident::new(function, place);
    let arguments = parenthesized(arguments.clone(), place);
    quote_spanned!(place=> #core::__private::control::#function #arguments ?)
}

struct Control<'a> {
    core: &'a TokenStream,
    locals: Locals,
    moves: Moves,
    /// The type of the function's result.
    output: TokenStream,
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
                place = Jump::place(block).unwrap_or(place);
                jump.remove_from(block);
            }
        }
        let attrs = std::mem::take(&mut branch.attrs);
        self.visit_expr_mut(&mut branch.cond);
        self.locals.open_region();
        let loops = self.loops.iter().map(|around| around.depth).collect();
        let id = self.moves.begin(self.locals.depth(), loops);
        let begin = self.moves.now();
        self.visit_block_mut(&mut branch.then_branch);
        let between = self.moves.now();
        if let Some((_, other)) = &mut branch.else_branch {
            self.visit_expr_mut(other);
        }
        let end = self.moves.now();
        let uses = self.locals.close_region();
        let leaves = found.as_ref().map(|(_, is_first)| usize::from(!is_first));
        let sides = [begin..between, between..end];
        self.moves.end(id, sides, leaves, uses.each_name());
        let written = match found {
            Some((jump, is_first)) => {
                let leave = self.leave(&jump, place);
                self.leaving(branch, id, is_first, &leave, &uses)
            }
            None => self.branch(branch, id, declared.as_ref(), &uses),
        };
        attributes::with(&attrs, written)
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
    fn begin(&self, id: usize, condition: &TokenStream, uses: &Uses, place: Span) -> TokenStream {
        let fork = name("__fork");
        let kind = self.moves.kind(id);
        let begun = quote_spanned!(place=> .begin()?);
        let imports = uses.imports(self.core);
        let keep = uses.each(self.core, &fork, "keep");
        quote! {
            #imports
            let mut #fork = #condition;
            #kind
            match #fork.is_known() {
                true => {}
                false => {
                    let _ = #fork.token();
                    #fork #begun;
                    #keep
                }
            }
        }
    }

    fn branch(
        &self,
        branch: &ExprIf,
        id: usize,
        declared: Option<&syn::Type>,
        uses: &Uses,
    ) -> Expr {
        let core = self.core;
        // Errors about what the branch gives are at its `if`.
        let place = branch.if_token.span;
        let (fork, value) = (name("__fork"), Ident::new("__value", Span::mixed_site()));
        let begin = self.begin(id, &self.fork(&branch.cond), uses, place);
        let turn = uses.each(core, &fork, "turn");
        let settle = uses.each(core, &fork, "settle");
        // With the type both sides become values of it, as those of a plain `if` do.
        let declared = declared.map(|ty| quote!(: #ty));
        let then = &branch.then_branch;
        let otherwise = otherwise(branch);
        let leave = call_at(core, "leave", &quote!(&mut #fork, #value), place);
        let join = call_at(core, "join", &quote!(&mut #fork, #value), place);
        // The sides stand one after the other, without a jump back: what only one of them moves is
        // moved once. A condition that Rust decides leaves behind the first one.
        let out = Lifetime::new(&format!("'__branch{id}"), Span::mixed_site());
        parse_quote! {{
            #[allow(unreachable_code, unused_braces, unused_parens)]
            #out: {
                #begin
                match #fork.then() {
                    true => {
                        let #value #declared = #then;
                        match #fork.is_known() {
                            true => break #out #value,
                            false => {}
                        }
                        let _ = #fork.token();
                        #turn
                        #leave;
                    }
                    false => {}
                }
                let #value #declared = #otherwise;
                match #fork.is_known() {
                    true => #value,
                    false => {
                        let _ = #fork.token();
                        #turn
                        let #value = #join;
                        #settle
                        #value
                    }
                }
            }
        }}
    }

    /// A branch of which one side ends in a jump: what follows is the other side.
    fn leaving(
        &self,
        branch: &ExprIf,
        id: usize,
        is_first: bool,
        leave: &Leave,
        uses: &Uses,
    ) -> Expr {
        let place = branch.if_token.span;
        let fork = name("__fork");
        let then = &branch.then_branch;
        let then = quote!(#then);
        let (before, after) = match is_first {
            true => (then, otherwise(branch)),
            false => (otherwise(branch), then),
        };
        let condition = self.fork(&branch.cond);
        let begin = match is_first {
            true => self.begin(id, &condition, uses, place),
            false => self.begin(id, &quote!(#condition.negated()), uses, place),
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
            #[allow(unreachable_code, unused_braces, unused_parens, clippy::let_unit_value)]
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
        let depth = self.locals.depth();
        let around = Loop::new(self.seen, given.as_ref(), regions, depth, exits);
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
            let attrs = attributes::take(expr);
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
            let written = around.written(&head, new.as_ref(), &mut block, &uses, self.core, place);
            *expr = attributes::with(&attrs, written);
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
                    self.visit_moved(value);
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
        // A branch around it is a block with a label.
        if around.has_exits() || (label.is_none() && open > around.regions) {
            let value = match expr {
                Expr::Break(jump) => jump.expr.as_ref().map(|value| quote!(#value)),
                _ => None,
            };
            let attrs = attributes::take(expr);
            *expr = attributes::with(&attrs, around.jump(is_break, value.as_ref()));
        }
    }

    /// Visits an expression whose value is taken: a local there is moved.
    fn visit_moved(&mut self, expr: &mut Expr) {
        if self.inside == 0
            && let Some(local) = local_of(expr).cloned()
            && let Some(depth) = self.locals.depth_of(&local)
            && let Some(mark) = self.moves.mark(expr, &local, depth)
        {
            self.mention(&local);
            *expr = mark;
            return;
        }
        self.visit_expr_mut(expr);
    }

    fn visit_all_moved<'a>(&mut self, exprs: impl IntoIterator<Item = &'a mut Expr>) {
        exprs.into_iter().for_each(|expr| self.visit_moved(expr));
    }

    fn assign(&mut self, place: &Expr) {
        let locals = &mut self.locals;
        locals::assigned(place, &mut |name| {
            self.moves.mentioned(&name.to_string(), true);
            locals.assigned(name);
        });
    }

    fn mention(&mut self, name: &Ident) {
        self.moves.mentioned(&name.to_string(), false);
        self.locals.mentioned(name);
    }

    /// The names in the arguments of a macro, also those in the texts of a format.
    fn mentioned_in(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => self.mention(&name),
                TokenTree::Group(group) => self.mentioned_in(group.stream()),
                TokenTree::Literal(text) => {
                    for part in text.to_string().split('{').skip(1) {
                        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
                        self.moves
                            .mentioned(&part[..end.unwrap_or(part.len())], false);
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
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
                    let attrs = attributes::take(expr);
                    *expr = chain;
                    self.visit_expr_mut(expr);
                    *expr = attributes::with(&attrs, std::mem::replace(expr, parse_quote!({})));
                }
            }
            Expr::While(_) | Expr::Loop(_) | Expr::ForLoop(_) => self.visit_loop(expr),
            Expr::Break(_) | Expr::Continue(_) => self.visit_jump(expr),
            Expr::Call(call) if self.inside == 0 && is_of_control(&call.func) => {
                for arg in &mut call.args {
                    match arg {
                        Expr::Closure(closure) => self.visit_side(closure),
                        other => self.visit_moved(other),
                    }
                }
            }
            Expr::Call(call) => {
                self.visit_expr_mut(&mut call.func);
                self.visit_all_moved(&mut call.args);
            }
            Expr::MethodCall(call) => {
                match takes_receiver(&call.method) {
                    true => self.visit_moved(&mut call.receiver),
                    false => self.visit_expr_mut(&mut call.receiver),
                }
                self.visit_all_moved(&mut call.args);
            }
            Expr::Tuple(tuple) => self.visit_all_moved(&mut tuple.elems),
            Expr::Array(array) => self.visit_all_moved(&mut array.elems),
            Expr::Struct(made) => {
                for field in &mut made.fields {
                    self.visit_moved(&mut field.expr);
                    if !matches!(&field.expr, Expr::Path(path) if is_member(&path.path, &field.member))
                    {
                        field.colon_token.get_or_insert_default();
                    }
                }
                if let Some(rest) = &mut made.rest {
                    self.visit_moved(rest);
                }
            }
            Expr::Try(tried) => self.visit_moved(&mut tried.expr),
            Expr::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => {
                self.visit_moved(&mut unary.expr);
            }
            Expr::Paren(inner) => self.visit_expr_mut(&mut inner.expr),
            Expr::If(_) => {
                // The names of an `if let` end with it.
                self.locals.scoped();
                visit_mut::visit_expr_mut(self, expr);
                self.locals.unscoped();
            }
            Expr::Assign(assign) => {
                self.assign(&assign.left);
                // The new value is made before the place is.
                self.visit_moved(&mut assign.right);
                self.visit_expr_mut(&mut assign.left);
            }
            Expr::Binary(binary) if locals::assigns(&binary.op) => {
                self.assign(&binary.left);
                self.visit_expr_mut(&mut binary.left);
                self.visit_moved(&mut binary.right);
            }
            Expr::Binary(binary) if is_arithmetic(&binary.op) => {
                self.visit_moved(&mut binary.left);
                self.visit_moved(&mut binary.right);
            }
            Expr::Path(path) => {
                if let Some(ident) = path.path.get_ident() {
                    self.mention(ident);
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
        let Some(value) = &mut given.expr else {
            return;
        };
        self.visit_moved(value);
        if self.returns_early && self.inside == 0 {
            **value = finished(value, &self.output);
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.locals.scoped();
        for statement in &mut block.stmts {
            match statement {
                Stmt::Expr(last, None) => self.visit_moved(last),
                other => self.visit_stmt_mut(other),
            }
        }
        self.locals.unscoped();
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            if let (Pat::Type(typed), Expr::If(_)) = (&local.pat, &*init.expr) {
                self.declared = Some((*typed.ty).clone());
            }
            match moves_whole(&local.pat) {
                true => self.visit_moved(&mut init.expr),
                false => self.visit_expr_mut(&mut init.expr),
            }
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
        if let Pat::Guard(guarded) = &mut arm.pat {
            self.visit_expr_mut(&mut guarded.guard);
        }
        self.visit_moved(&mut arm.body);
        self.locals.unscoped();
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        let is_list = mac
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "vec");
        let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
        if is_list
            && self.inside == 0
            && self.locals.open_regions() > 0
            && let Ok(mut list) = parse.parse2(mac.tokens.clone())
        {
            self.visit_all_moved(&mut list);
            mac.tokens = list.into_token_stream();
            return;
        }
        self.mentioned_in(mac.tokens.clone());
    }

    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_item_mut(&mut self, _: &mut Item) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
}
