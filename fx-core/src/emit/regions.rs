//! Branches and loops of a graph as `if` and `while`.
//!
//! Invariant: a side sees the values around it under the names of its own inputs, and gives what the
//! call of it gives.

use super::input::{Control, Input};
use super::rust::{Hold, Writer};
use super::source::CodeOptions;
use super::tuple::one_or_tuple;
use super::types::branch_types;
use crate::ir::argument::Argument;
use crate::ir::node::NodeRef;
use crate::ir::param_type::ParamType;
use crate::text::{Comment, Escaped};

/// Names for a value that a side sees.
struct Seen {
    /// As it is written outside.
    text: String,
    hold: Hold,
}

impl Writer<'_> {
    /// The expression of a call of a region.
    pub(super) fn region(
        &self,
        region: &Control<'_>,
        node: NodeRef<'_>,
        options: &CodeOptions,
    ) -> String {
        let Some((condition, args)) = node.args().split_first() else {
            self.problem("a branch or loop without arguments");
            return "()".to_string();
        };
        let types: Vec<ParamType> = args.iter().map(|arg| self.type_of(arg)).collect();
        // Where a side is found.
        let place = |name| {
            let path = format!("// {}.{name}", Comment(node.op().target()));
            options.verbose.then_some(path)
        };
        match region {
            Control::Scan(..) => self.scan(region, node),
            Control::Branch(sides) => {
                let seen = || args.iter().map(|arg| self.seen(arg));
                let [then, otherwise] = sides
                    .each_ref()
                    .map(|side| self.side(side, &types, seen(), options));
                let types = branch_types([&then, &otherwise].map(|side| (side.input, &side.types)));
                let given = |side: &Writer<'_>| side.given(&types);
                let then = self.ended(then, place("then"), given);
                let otherwise = self.ended(otherwise, place("otherwise"), given);
                let condition = self.asked(condition);
                format!("if {condition} {{{then}\n}} else {{{otherwise}\n}}")
            }
            Control::Loop(body) => {
                let side = (&**body, place("body"));
                self.turns(side, condition, args, &types, node, options)
            }
        }
    }

    fn scan(&self, region: &Control<'_>, node: NodeRef<'_>) -> String {
        if self.input.own.is_none() {
            let path = Escaped(node.target()).to_string();
            self.problem(format!("`{path}` is a scan, and no field"));
        }
        let types: Vec<ParamType> = node.args().iter().map(|arg| self.type_of(arg)).collect();
        self.typed_call(node, &region.result(&types))
    }

    fn turns(
        &self,
        (body, place): (&Input<'_>, Option<String>),
        condition: &Argument,
        args: &[Argument],
        types: &[ParamType],
        node: NodeRef<'_>,
        options: &CodeOptions,
    ) -> String {
        let carries = body.graph.results().len().saturating_sub(1);
        let free = |name: String| match body.graph.find_name(&name) {
            Some(_) => format!("{name}_"),
            None => name,
        };
        let width = carries.saturating_sub(1).to_string().len();
        let name = node.name();
        let carried = (0..carries).map(|at| free(format!("{name}_{at:0width$}")));
        let carried: Vec<String> = carried.collect();
        let go = free(format!("{name}_go"));
        let seen = args
            .iter()
            .enumerate()
            .map(|(at, arg)| match carried.get(at) {
                Some(name) => Seen {
                    text: name.clone(),
                    hold: match types[at].is_scalar() {
                        true => Hold::Plain,
                        false => Hold::Owned,
                    },
                },
                None => self.seen(arg),
            });
        let side = self.side(body, types, seen, options);
        let results = side.graph.results();
        let next: Vec<String> = results.iter().map(|arg| side.result_type(arg)).collect();
        let first = std::iter::once(condition).chain(args);
        let first: Vec<&Argument> = first.take(carries + 1).collect();
        // A value whose type changes is any value.
        let types =
            first
                .iter()
                .zip(&next)
                .map(|(arg, next)| match self.result_type(arg) == *next {
                    true => next.clone(),
                    false => "Value".to_string(),
                });
        let types: Vec<String> = types.collect();
        let init: Vec<String> = first
            .iter()
            .zip(&types)
            .map(|(arg, ty)| self.kept(arg, ty))
            .collect();
        let names: Vec<String> = std::iter::once(go.clone())
            .chain(carried.iter().cloned())
            .collect();
        let bound: Vec<String> = names.iter().map(|name| format!("mut {name}")).collect();
        let asked = match &*types[0] {
            "Bool" => go,
            _ => format!("{go}.clone()"),
        };
        let given = |side: &Writer<'_>| {
            let next = one_or_tuple(&side.outputs(results, &types));
            format!("{} = {next};", one_or_tuple(&names))
        };
        let body = self.ended(side, place, given);
        let text = format!(
            "\nlet {} = {};\nwhile {asked} {{{body}\n}}\n{}",
            one_or_tuple(&bound),
            one_or_tuple(&init),
            one_or_tuple(&carried)
        );
        format!("{{{}\n}}", text.replace('\n', "\n    "))
    }

    fn type_of(&self, arg: &Argument) -> ParamType {
        let known = self.types.argument(arg);
        known.unwrap_or_else(|| self.types.unknown().clone())
    }

    /// A value under its name.
    fn named(&self, arg: &Argument) -> String {
        match arg {
            Argument::Node(id) => self.name(*id),
            other => self.built(other),
        }
    }

    /// A value as a side sees it.
    fn seen(&self, arg: &Argument) -> Seen {
        Seen {
            text: self.named(arg),
            hold: arg.as_node().map_or(Hold::Plain, |id| self.hold(id)),
        }
    }

    /// A condition that is asked, and may be used later.
    fn asked(&self, condition: &Argument) -> String {
        let text = self.named(condition);
        match condition.as_node().map(|id| self.hold(id)) {
            Some(Hold::Plain) | None => text,
            Some(_) => format!("{text}.clone()"),
        }
    }

    /// A value that a loop begins with.
    fn kept(&self, arg: &Argument, ty: &str) -> String {
        match arg.as_node().map(|id| self.hold(id)) {
            Some(Hold::Owned | Hold::Ref) => {
                let text = format!("{}.clone()", self.named(arg));
                match ty {
                    "Value" => format!("Value::of({text})"),
                    _ => text,
                }
            }
            _ => one_or_tuple(&self.outputs(std::slice::from_ref(arg), &[ty.to_string()])),
        }
    }

    /// The writer of a side after its statements.
    fn side<'s>(
        &self,
        input: &'s Input<'s>,
        types: &[ParamType],
        seen: impl Iterator<Item = Seen>,
        options: &CodeOptions,
    ) -> Writer<'s> {
        let mut side = Writer::new(input, types);
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (node, seen) in input.graph.placeholders().zip(seen) {
            let (hold, by) = match seen.hold {
                Hold::Owned => (Hold::Ref, "&"),
                hold => (hold, ""),
            };
            side.holds[node.index()] = hold;
            let name = node.name().to_string();
            if node.num_users() > 0 && (!by.is_empty() || name != seen.text) {
                names.push(name);
                values.push(format!("{by}{}", seen.text));
            }
        }
        if !names.is_empty() {
            let (names, values) = (one_or_tuple(&names), one_or_tuple(&values));
            side.lines.push(format!("let {names} = {values};").into());
        }
        side.body(options);
        side
    }

    /// What a side gives, by the types of its results.
    fn given(&self, types: &[String]) -> String {
        one_or_tuple(&self.outputs(self.graph.results(), types))
    }

    /// The lines of a side, indented, each behind a line break.
    fn ended(
        &self,
        side: Writer<'_>,
        place: Option<String>,
        last: impl FnOnce(&Writer<'_>) -> String,
    ) -> String {
        let last = last(&side);
        for problem in side.problems.into_inner() {
            self.problem(problem);
        }
        let lines = side.lines.iter().map(|line| &*line.text);
        let lines = place.as_deref().into_iter().chain(lines).chain([&*last]);
        let lines = lines.flat_map(|text| text.split('\n'));
        lines.fold(String::new(), |text, line| match line.is_empty() {
            true => text + "\n",
            false => text + "\n    " + line,
        })
    }
}
