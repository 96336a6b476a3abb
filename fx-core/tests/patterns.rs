//! Patterns: what torch.fx's rewriter gets wrong done right, and properties of random graphs.

use crate::support::text;

use fx_core::ir::{Argument, Function, Graph, Meta, MetaPolicy, NodeRef, Op};
use fx_core::module::Attributes;
use fx_core::operator;
use fx_core::pattern::{Match, Rewriter, Rule, SubgraphMatcher, replace_pattern};
use fx_core::prelude::*;
use fx_core::value::NodeId;
use insta::assert_snapshot;
use proptest::prelude::*;
use text::without_lines;

#[wrap]
fn half(
    x: &Value,
    #[kw]
    #[default(2.0)]
    by: f64,
) -> Result<Value> {
    f64::from_value(x.clone()).map(|x| Value::Float(x / by))
}

fn anchors(gm: &GraphModule, matches: &[Match]) -> Vec<String> {
    let ids = matches.iter().flat_map(Match::anchors);
    ids.filter_map(|id| Some(gm.graph().node(id).ok()?.name().to_string()))
        .collect()
}

// ---- torch.fx's weaknesses ---------------------------------------------------------------------

#[test]
fn commutative_operands_may_change_places() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float, y: Float| y + x.abs()?))?;
    let matcher = SubgraphMatcher::new(traced!(|x: Float, y: Float| x.abs()? + y))?;
    assert_eq!(anchors(&gm, &matcher.find(&gm)?), ["add"]);
    // Operands of an operation that does not commute keep their places.
    let gm = symbolic_trace(traced!(|x: Float, y: Float| y - x.abs()?))?;
    let matcher = SubgraphMatcher::new(traced!(|x: Float, y: Float| x.abs()? - y))?;
    assert!(matcher.find(&gm)?.is_empty());
    Ok(())
}

#[test]
fn keywords_positions_and_defaults_are_one_call() -> Result<()> {
    let one = |args: Vec<Argument>, kwargs: Vec<(&str, f64)>| -> Result<Graph> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x")?;
        let args: Vec<Argument> = std::iter::once(x.into()).chain(args).collect();
        let kwargs: Vec<_> = kwargs
            .into_iter()
            .map(|(k, v)| (k.into(), v.into()))
            .collect();
        let y = graph.create_node(Op::CallFunction(function!(half)), args, kwargs)?;
        graph.output(y)?;
        Ok(graph)
    };
    let ways = [
        one(vec![], vec![])?,
        one(vec![2.0.into()], vec![])?,
        one(vec![], vec![("by", 2.0)])?,
    ];
    for pattern in &ways {
        for graph in &ways {
            let matches = SubgraphMatcher::new(pattern)?.find_in(graph, &Attributes::default())?;
            assert_eq!(matches.len(), 1, "{pattern}\n{graph}");
        }
        let other = one(vec![4.0.into()], vec![])?;
        assert!(
            SubgraphMatcher::new(pattern)?
                .find_in(&other, &Attributes::default())?
                .is_empty()
        );
    }
    Ok(())
}

#[test]
fn an_absent_output_is_no_match() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| x.abs()? + 1.0))?;
    let pattern = traced!(|x: Float| Ok((x.abs()?, (-x)?)));
    let matches = replace_pattern(
        &mut gm,
        pattern,
        traced!(|x: Float| Ok(((x * 2.0)?, (x * 3.0)?))),
    )?;
    assert!(matches.is_empty());
    Ok(())
}

/// The error with which a pattern or a rule is refused.
fn refused<T>(result: Result<T>) -> String {
    result
        .err()
        .map_or_else(|| "accepted".to_string(), |error| error.to_string())
}

#[test]
fn wrong_rules_are_told_when_they_are_made() -> Result<()> {
    let unused = SubgraphMatcher::new(traced!(|a: Float, _b: Float| -a));
    assert_eq!(
        refused(unused),
        "the pattern: its input `_b` is not used: leave it out"
    );
    let identity = SubgraphMatcher::new(traced!(|a: Float| Ok(a)));
    assert_eq!(
        refused(identity),
        "the pattern: it returns its input `a` as it is, which every value would match"
    );
    let mut literal = Graph::new();
    literal.output(1)?;
    let literal = refused(SubgraphMatcher::new(literal));
    assert!(
        literal.starts_with("the pattern: it returns Int(1), a literal"),
        "{literal}"
    );
    let mut dead = Graph::new();
    let a = dead.placeholder("a")?;
    let b = dead.call_function(operator::neg, (a,), ())?;
    dead.call_function(operator::abs, (a,), ())?;
    dead.output(b)?;
    assert_eq!(
        refused(SubgraphMatcher::new(dead)),
        "the pattern: %abs is dead code: nothing that it returns needs it"
    );
    let apart = SubgraphMatcher::new(traced!(|a: Float, b: Float| Ok(((-a)?, b.abs()?))));
    assert!(refused(apart).contains("shares no value with the rest"));
    assert_eq!(
        refused(SubgraphMatcher::new(Graph::new())),
        "the pattern: it is empty"
    );
    let arity = Rule::new(traced!(|a: Float, b: Float| a + b), traced!(|a: Float| -a));
    assert_eq!(
        refused(arity),
        "the replacement: it has 1 input, and the pattern has 2 (a, b): take those it does not need too"
    );
    let values = Rule::new(traced!(|a: Float| -a), traced!(|a: Float| Ok((a, a))));
    assert_eq!(
        refused(values),
        "the replacement: it returns 2 values, and the pattern 1"
    );
    let node = SubgraphMatcher::new(traced!(|a: Float| -a))?.optional("abs");
    assert_eq!(
        refused(node),
        "the pattern: no call is named `abs`; it has a, neg"
    );
    Ok(())
}

#[test]
fn a_literal_takes_a_matchs_place() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float, y: Float| (x - x)? + y))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: Float| x - x),
        traced!(|_x: Float| Ok(Float::from(0.0))),
    )?;
    assert_eq!(matches.len(), 1);
    assert_eq!(gm.graph().len(), 4);
    assert_eq!(gm.forward::<f64>((2.0, 3.0))?, 3.0);
    Ok(())
}

#[test]
fn a_pattern_may_be_deep() -> Result<()> {
    let mut graph = Graph::new();
    let mut at = graph.placeholder("x")?;
    for i in 0..20_000 {
        let op = if i % 2 == 0 {
            operator::neg
        } else {
            operator::abs
        };
        at = graph.call_function(op, (at,), ())?;
    }
    graph.output(at)?;
    let mut gm = GraphModule::new(Attributes::default(), graph.clone(), "Deep")?;
    assert_eq!(
        replace_pattern(&mut gm, graph, traced!(|x: Float| x + 1.0))?.len(),
        1
    );
    assert_eq!(gm.graph().len(), 3);
    Ok(())
}

#[test]
fn a_replacement_knows_where_it_came_from() -> Result<()> {
    #[derive(Debug, Clone, PartialEq)]
    struct Stage(u32);
    impl Meta for Stage {
        const ON_COPY: MetaPolicy = MetaPolicy::Copy;
        const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
    }
    let mut gm = symbolic_trace(traced!(|x: Float| x.abs()? + 1.0))?;
    let abs = gm
        .graph()
        .find_name("abs")
        .map(|n| n.id())
        .expect("it is there");
    gm.graph_mut().node_mut(abs)?.set_meta(Stage(3));
    let rule =
        Rule::new(traced!(|x: Float| x.abs()), traced!(|x: Float| x * 2.0))?.named("doubled");
    let matches = rule.apply(&mut gm)?;
    let made = gm.graph().node(matches[0].replacements()[0])?;
    assert_eq!(made.meta::<Stage>(), Some(&Stage(3)));
    assert!(
        made.location()
            .is_some_and(|l| l.file.ends_with("patterns.rs"))
    );
    let story = gm.graph().explain(made.id())?;
    assert_snapshot!(without_lines(story), @"
    %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%x, 2.0), kwargs = {})
      written at fx-core/tests/patterns.rs:_
      made by pass `doubled`
      stands for %abs since pass `doubled`
    ");
    Ok(())
}

#[test]
fn first_found_wins_also_with_filters() -> Result<()> {
    // Of three in a row the first two are one match; refused, they leave the last two free.
    let gm = symbolic_trace(traced!(|x: Float| x.abs()?.abs()?.abs()))?;
    let rule = || Rule::new(traced!(|x: Float| x.abs()?.abs()), traced!(|x: Float| -x));
    let mut all = gm.clone();
    assert_eq!(rule()?.apply(&mut all)?.len(), 1);
    assert!(all.graph().find_name("abs_2").is_some() && all.graph().find_name("abs_1").is_none());
    let mut last = gm.clone();
    let not_first =
        |gm: &GraphModule, found: &Match| anchors(gm, std::slice::from_ref(found)) != ["abs_1"];
    assert_eq!(rule()?.filter(not_first).apply(&mut last)?.len(), 1);
    assert!(last.graph().find_name("abs").is_some() && last.graph().find_name("abs_2").is_none());
    Ok(())
}

// ---- the rest of the language ------------------------------------------------------------------

#[test]
fn alternatives_and_optional_nodes() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float, y: Float| {
        let a = (-x)?.abs()? + 1.0;
        let b = (!(y.gt(0.0)?))?;
        let c = y.abs()? + 1.0;
        Ok((a?, b, c?))
    }))?;
    let pattern = || SubgraphMatcher::new(traced!(|x: Float| (-x)?.abs()? + 1.0));
    assert_eq!(pattern()?.find(&gm)?.len(), 1);
    let optional = pattern()?.optional("neg")?;
    assert_eq!(optional.find(&gm)?.len(), 2);
    assert_eq!(optional.find(&gm)?[1].node("neg"), None);
    let either = SubgraphMatcher::new(traced!(|x: Float| -x))?
        .one_of("neg", [operator::abs, operator::invert])?;
    assert_eq!(either.find(&gm)?.len(), 4);
    Ok(())
}

#[test]
fn literals_are_tested_or_ignored() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| ((x + 1.0)? + 2.0)? + 3.0))?;
    let pattern = || SubgraphMatcher::new(traced!(|x: Float| x + 1.0));
    assert_eq!(anchors(&gm, &pattern()?.find(&gm)?), ["add"]);
    let large = |arg: &Argument| matches!(arg, Argument::Float(x) if *x > 1.5);
    let large = pattern()?.literal_where("add", "b", large)?;
    assert_eq!(anchors(&gm, &large.find(&gm)?), ["add_1", "add_2"]);
    assert_eq!(pattern()?.ignore_literals(true).find(&gm)?.len(), 3);
    // An integer does not match a float.
    let mut ints = Graph::new();
    let x = ints.placeholder("x")?;
    let y = ints.call_function(operator::add, (x, 1), ())?;
    ints.output(y)?;
    assert!(SubgraphMatcher::new(ints)?.find(&gm)?.is_empty());
    Ok(())
}

#[test]
fn outputs_and_inputs_can_be_asked_for() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| x.abs()?.abs()))?;
    let pattern = || SubgraphMatcher::new(traced!(|x: Float| x.abs()));
    assert_eq!(
        anchors(&gm, &pattern()?.match_output(true).find(&gm)?),
        ["abs_1"]
    );
    assert_eq!(
        anchors(&gm, &pattern()?.match_placeholder(true).find(&gm)?),
        ["abs"]
    );
    Ok(())
}

#[test]
fn a_match_whose_input_needs_its_output_stays() -> Result<()> {
    // The second value of the pattern uses what depends on the first one.
    let f = |x: Float, y: Float| -> Result<(Float, Float)> {
        let first = (x * y)?;
        let between = first.abs()?;
        Ok(((x + between)?, first))
    };
    let mut gm = symbolic_trace(traced!(move |x: Float, y: Float| f(x, y)))?;
    let before = gm.graph().to_string();
    let pattern = || traced!(|x: Float, y: Float, z: Float| Ok(((x * y)?, (x + z)?)));
    let matches = replace_pattern(&mut gm, pattern(), pattern())?;
    assert!(matches.is_empty());
    assert_eq!(gm.graph().to_string(), before);
    Ok(())
}

#[test]
fn what_lies_between_moves_out_of_the_way() -> Result<()> {
    // The user of the first value comes before the second value's input, and does not feed it.
    let mut gm = symbolic_trace(traced!(|x: Float, y: Float| {
        let first = (x * y)?;
        let user = first.abs()?;
        let late = (-y)?;
        let second = (x + late)?;
        Ok((user, second))
    }))?;
    let pattern = traced!(|x: Float, y: Float, z: Float| Ok(((x * y)?, (x + z)?)));
    let swapped = traced!(|x: Float, y: Float, z: Float| Ok(((y * x)?, (z + x)?)));
    assert_eq!(replace_pattern(&mut gm, pattern, swapped)?.len(), 1);
    gm.lint()?;
    assert_eq!(gm.forward::<(f64, f64)>((2.0, -3.0))?, (6.0, 5.0));
    Ok(())
}

#[test]
fn an_order_of_operands_brings_other_outputs() -> Result<()> {
    // Which operand of the product the second input is decides which value's negative is meant.
    let gm = symbolic_trace(traced!(|x: Float, y: Float| Ok(((y * x)?, (-x)?, (-y)?))))?;
    let pattern = SubgraphMatcher::new(traced!(|a: Float, b: Float| Ok(((a * b)?, (-b)?))))?;
    let all = pattern.remove_overlapping_matches(false).find(&gm)?;
    assert_eq!(anchors(&gm, &all), ["mul", "neg", "mul", "neg_1"]);
    Ok(())
}

#[test]
fn endless_rules_are_stopped_and_named() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| x.abs()? + 1.0))?;
    let before = gm.graph().to_string();
    let rules = Rewriter::new().rule(
        Rule::new(traced!(|x: Float| x.abs()), traced!(|x: Float| (-x)?.abs()))?.named("grow"),
    );
    let error = refused(rules.run(&mut gm));
    assert_snapshot!(error, @"more than 1000 replacements: the rules grow make new matches without end; have one of them not make what it looks for, or raise the limit");
    assert_eq!(gm.graph().to_string(), before);
    Ok(())
}

#[test]
fn reports_say_what_nearly_matched() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| {
        let inner = (-x)?;
        inner.abs()? + inner
    }))?;
    let rule = Rule::new(traced!(|x: Float| (-x)?.abs()), traced!(|x: Float| x.abs()))?
        .named("abs of neg");
    let report = Rewriter::new().rule(rule).run(&mut gm)?;
    assert!(report.rewritten.is_empty());
    let near = &report.near[0];
    assert_eq!(
        (near.anchor.as_str(), near.why.as_str()),
        ("abs", "%neg is used outside of the match too")
    );
    assert_snapshot!(without_lines(report), @"
    0 replacements in 1 round
      nearly: abs of neg at %abs (fx-core/tests/patterns.rs:_): %neg is used outside of the match too
    ");
    Ok(())
}

#[test]
fn after_an_error_the_graph_is_as_it_was() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| x.abs()?.abs()))?;
    let before = gm.graph().to_string();
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let rule = Rule::computed(traced!(|x: Float| x.abs()), move |_, _| {
        match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => symbolic_trace(traced!(|x: Float| -x)),
            _ => Err(Error::msg("enough")),
        }
    })?;
    let error = refused(rule.apply(&mut gm));
    assert_snapshot!(without_lines(error), @"while replacing %abs_1 (fx-core/tests/patterns.rs:_): enough");
    assert_eq!(gm.graph().to_string(), before);
    assert_eq!(gm.forward::<f64>(-2.0)?, 2.0);
    Ok(())
}

// ---- properties --------------------------------------------------------------------------------

const UNARY: [Function; 2] = [operator::neg, operator::abs];
const BINARY: [Function; 3] = [operator::add, operator::sub, operator::mul];

/// A step of a random program: an operation, and where its operands come from.
type Step = (u8, u16, u16);

/// A graph of floats with two inputs; its last values are returned.
fn graph_of(steps: &[Step]) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut values: Vec<Argument> = vec![
        graph.placeholder("x")?.into(),
        graph.placeholder("y")?.into(),
    ];
    for (op, a, b) in steps {
        let a = values[usize::from(*a) % values.len()].clone();
        let b = match b % 7 {
            0 => Argument::Float(2.0),
            _ => values[usize::from(*b) % values.len()].clone(),
        };
        let op = usize::from(*op);
        let node = match op % 5 {
            i @ 0..2 => graph.call_function(UNARY[i], vec![a], ())?,
            i => graph.call_function(BINARY[i - 2], vec![a, b], ())?,
        };
        values.push(node.into());
    }
    let last = values.split_off(values.len().saturating_sub(3));
    graph.output(Argument::Tuple(std::sync::Arc::new(last)))?;
    Ok(graph)
}

/// A pattern cut out of a graph: a node, some of what only it needs, and calls beside it; it
/// returns what is used outside. The node's name is returned with it.
fn cut(graph: &Graph, at: usize, depth: usize, beside: &[u16]) -> Result<Option<(Graph, String)>> {
    let calls: Vec<_> = graph
        .nodes()
        .filter(|n| matches!(n.op(), Op::CallFunction(_)))
        .collect();
    let Some(anchor) = calls.get(at % calls.len().max(1)) else {
        return Ok(None);
    };
    let mut inside = vec![anchor.id()];
    // In reverse order, so that a node's users are decided before it.
    for node in calls.iter().rev() {
        let all_inside = node.users().all(|user| inside.contains(&user.id()));
        if inside.len() < depth && node.id() != anchor.id() && node.num_users() > 0 && all_inside {
            inside.push(node.id());
        }
    }
    for at in beside {
        let id = calls[usize::from(*at) % calls.len()].id();
        if !inside.contains(&id) {
            inside.push(id);
        }
    }
    let mut pattern = Graph::new();
    let mut map: Vec<(NodeId, NodeId)> = Vec::new();
    for node in graph.nodes().filter(|n| inside.contains(&n.id())) {
        for input in node.all_input_nodes() {
            if !inside.contains(&input.id()) && !map.iter().any(|(id, _)| *id == input.id()) {
                map.push((input.id(), pattern.placeholder(&format!("p{}", map.len()))?));
            }
        }
    }
    let mut returned = Vec::new();
    for node in graph.nodes().filter(|n| inside.contains(&n.id())) {
        let find = |id| {
            map.iter()
                .find(|(old, _)| *old == id)
                .map(|(_, new)| Argument::Node(*new))
        };
        let copy = pattern.node_copy(node, |id| find(id).unwrap_or(Argument::None))?;
        map.push((node.id(), copy));
        let is_used = node.users().any(|user| !inside.contains(&user.id()));
        if is_used || node.num_users() == 0 || node.id() == anchor.id() {
            returned.push(Argument::Node(copy));
        }
    }
    pattern.output(Argument::Tuple(std::sync::Arc::new(returned)))?;
    Ok(Some((pattern, anchor.name().to_string())))
}

/// The nodes that a pattern returns.
fn returned(pattern: &Graph) -> Vec<NodeId> {
    let output = pattern.output_node().expect("a pattern has an output");
    output.all_input_nodes().map(|node| node.id()).collect()
}

/// Whether a node is one of others, or depends on one.
fn depends_on(graph: &Graph, node: NodeId, others: &[NodeId]) -> Result<bool> {
    let mut pending = vec![node];
    while let Some(id) = pending.pop() {
        if others.contains(&id) {
            return Ok(true);
        }
        pending.extend(graph.node(id)?.all_input_nodes().map(|input| input.id()));
    }
    Ok(false)
}

/// Whether an assignment of the pattern's calls to the graph's is a match; by definition, not by
/// search.
fn is_match(pattern: &Graph, graph: &Graph, assigned: &[(NodeId, NodeId)]) -> Result<bool> {
    let returned = returned(pattern);
    let image = |id: NodeId| assigned.iter().find(|(p, _)| *p == id).map(|(_, g)| *g);
    for (p, g) in assigned {
        let leaks = graph
            .node(*g)?
            .users()
            .any(|u| assigned.iter().all(|(_, g)| *g != u.id()));
        if !returned.contains(p) && leaks {
            return Ok(false);
        }
    }
    let outputs: Vec<NodeId> = returned.iter().filter_map(|id| image(*id)).collect();
    // Each commutative call in both orders.
    'orders: for orders in 0..1u32 << assigned.len() {
        let mut bound: Vec<(NodeId, Argument)> = Vec::new();
        for (at, (p, g)) in assigned.iter().enumerate() {
            let (p, g) = (pattern.node(*p)?, graph.node(*g)?);
            let mut theirs = g.args().to_vec();
            if orders & (1 << at) != 0 {
                let commutes = matches!(g.op(), Op::CallFunction(f) if f.def().commutative);
                if !commutes {
                    continue 'orders;
                }
                theirs.reverse();
            }
            if p.op() != g.op() || p.args().len() != theirs.len() {
                return Ok(false);
            }
            for (ours, theirs) in p.args().iter().zip(theirs) {
                let fits = match ours {
                    Argument::Node(id) if matches!(pattern.node(*id)?.op(), Op::Placeholder(_)) => {
                        match bound.iter().find(|(known, _)| known == id) {
                            Some((_, known)) => *known == theirs,
                            None => {
                                let is_own = theirs.as_node().is_none_or(|node| {
                                    bound.iter().all(|(_, other)| other.as_node() != Some(node))
                                        && assigned.iter().all(|(_, g)| *g != node)
                                });
                                bound.push((*id, theirs));
                                is_own
                            }
                        }
                    }
                    Argument::Node(id) => theirs.as_node() == image(*id),
                    literal => *literal == theirs,
                };
                if !fits {
                    continue 'orders;
                }
            }
        }
        for (_, input) in &bound {
            if let Some(input) = input.as_node()
                && depends_on(graph, input, &outputs)?
            {
                continue 'orders;
            }
        }
        // Calls that share nothing but a number are unconnected.
        let shares = |a: NodeId, b: NodeId| -> Result<bool> {
            let (a, b) = (pattern.node(a)?, pattern.node(b)?);
            let uses = |a: NodeRef<'_>, b: NodeId| a.all_input_nodes().any(|input| input.id() == b);
            let is_number = |id: NodeId| {
                let known = bound.iter().find(|(known, _)| *known == id);
                known.is_some_and(|(_, value)| value.as_node().is_none())
            };
            let mut inputs = a.all_input_nodes().map(|input| input.id());
            let common = inputs.any(|input| uses(b, input) && !is_number(input));
            Ok(common || uses(a, b.id()) || uses(b, a.id()))
        };
        let mut together = vec![assigned[0].0];
        let mut at = 0;
        while at < together.len() {
            for (other, _) in assigned {
                if !together.contains(other) && shares(together[at], *other)? {
                    together.push(*other);
                }
            }
            at += 1;
        }
        if together.len() == assigned.len() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// All matches, as what stands for each of the pattern's calls, by trying every assignment.
fn brute_force(pattern: &Graph, graph: &Graph) -> Result<Vec<Vec<NodeId>>> {
    let (ours, theirs) = (calls(pattern), calls(graph));
    let mut found = Vec::new();
    let mut pending: Vec<Vec<NodeId>> = vec![Vec::new()];
    while let Some(chosen) = pending.pop() {
        if chosen.len() == ours.len() {
            let assigned: Vec<_> = ours.iter().copied().zip(chosen.iter().copied()).collect();
            if is_match(pattern, graph, &assigned)? {
                found.push(chosen);
            }
            continue;
        }
        for node in &theirs {
            if !chosen.contains(node) {
                let mut longer = chosen.clone();
                longer.push(*node);
                pending.push(longer);
            }
        }
    }
    Ok(found)
}

fn calls(graph: &Graph) -> Vec<NodeId> {
    let calls = graph
        .nodes()
        .filter(|n| matches!(n.op(), Op::CallFunction(_)));
    calls.map(|n| n.id()).collect()
}

/// What distinguishes matches: what stands for the nodes that the pattern returns and does not use,
/// by name.
fn combinations(pattern: &Graph, graph: &Graph, found: &[Vec<NodeId>]) -> Result<Vec<Vec<String>>> {
    let calls = calls(pattern);
    let mut is_anchor = Vec::new();
    for id in &calls {
        let mut users = pattern.node(*id)?.users();
        is_anchor.push(users.all(|user| *user.op() == Op::Output));
    }
    let mut all = Vec::new();
    for chosen in found {
        let anchors = chosen.iter().zip(&is_anchor).filter(|(_, yes)| **yes);
        let names = anchors.map(|(id, _)| Ok(graph.node(*id)?.name().to_string()));
        all.push(names.collect::<Result<Vec<_>>>()?);
    }
    all.sort();
    Ok(all)
}

/// What stands for each of the pattern's calls.
fn assignment(pattern: &Graph, found: &Match) -> Result<Vec<NodeId>> {
    let standing = calls(pattern).into_iter().map(|id| {
        let name = pattern.node(id)?.name().to_string();
        let node = found.node(&name);
        node.ok_or_else(|| Error::msg("a match has all calls"))
    });
    standing.collect()
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(any::<Step>(), 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_pattern_cut_out_is_found(steps in steps(40), at in any::<usize>(), depth in 1usize..12) {
        let graph = graph_of(&steps)?;
        if let Some((pattern, anchor)) = cut(&graph, at, depth, &[])? {
            let gm = GraphModule::new(Attributes::default(), graph, "Random")?;
            let matcher = SubgraphMatcher::new(&pattern)?.remove_overlapping_matches(false);
            let found = anchors(&gm, &matcher.find(&gm)?);
            prop_assert!(found.contains(&anchor), "{anchor} is not among {found:?}:\n{pattern}\n{}", gm.graph());
        }
    }

    #[test]
    fn an_equal_program_leaves_results_equal(steps in steps(40), at in any::<usize>(), depth in 1usize..8, x in -4.0f64..4.0, y in -4.0f64..4.0) {
        let graph = graph_of(&steps)?;
        let gm = GraphModule::new(Attributes::default(), graph.clone(), "Random")?;
        let expected: Value = gm.forward((x, y))?;
        let mut rules = vec![
            // x - y is x + -y, and 2x is x + x, to the last bit.
            Rule::new(traced!(|a: Float, b: Float| a - b), traced!(|a: Float, b: Float| a + (-b)?))?,
            Rule::new(traced!(|a: Float| a * 2.0), traced!(|a: Float| a + a))?,
            Rule::new(traced!(|a: Float| (-a)?.abs()), traced!(|a: Float| a.abs()))?,
            Rule::new(
                traced!(|a: Float| Ok(((-a)?, a.abs()?))),
                traced!(|a: Float| Ok(((a * -1.0)?, a.abs()?))),
            )?,
        ];
        if let Some((pattern, _)) = cut(&graph, at, depth, &[])? {
            rules.push(Rule::new(&pattern, &pattern)?);
        }
        for rule in rules {
            let mut gm = gm.clone();
            rule.apply(&mut gm)?;
            gm.lint()?;
            let found: Value = gm.forward((x, y))?;
            // A zero's sign may differ: -1 · 0 is -0 as -0 is; NaN is NaN.
            prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{:?}\n{}", rule, gm.graph());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn brute_force_agrees(
        steps in steps(7),
        at in any::<usize>(),
        depth in 1usize..4,
        beside in proptest::collection::vec(any::<u16>(), 0..3),
        other in steps(7),
    ) {
        let (graph, other) = (graph_of(&steps)?, graph_of(&other)?);
        let gm = GraphModule::new(Attributes::default(), graph.clone(), "Random")?;
        // Patterns of the graph itself, and of another one.
        for source in [&graph, &other] {
            let Some((pattern, _)) = cut(source, at, depth, &beside)? else { continue };
            // Parts that share no value are not pattern.
            let Ok(matcher) = SubgraphMatcher::new(&pattern) else { continue };
            let all = brute_force(&pattern, &graph)?;
            let mut expected = combinations(&pattern, &graph, &all)?;
            expected.dedup();
            let found = matcher.clone().remove_overlapping_matches(false).find(&gm)?;
            let found = found.iter().map(|one| assignment(&pattern, one)).collect::<Result<Vec<_>>>()?;
            prop_assert!(found.iter().all(|one| all.contains(one)), "{found:?}\n{pattern}\n{graph}");
            prop_assert_eq!(combinations(&pattern, &graph, &found)?, expected, "{}\n{}", pattern, graph);
            // Without overlaps: matches that share no nodes, and none that could be added.
            let apart = matcher.find(&gm)?;
            let apart = apart.iter().map(|one| assignment(&pattern, one)).collect::<Result<Vec<_>>>()?;
            prop_assert!(apart.iter().all(|one| all.contains(one)), "{apart:?}\n{pattern}\n{graph}");
            let mut taken = apart.concat();
            taken.sort();
            taken.dedup();
            prop_assert_eq!(taken.len(), apart.iter().map(Vec::len).sum::<usize>());
            let left_out = all.iter().find(|one| one.iter().all(|id| !taken.contains(id)));
            prop_assert!(left_out.is_none(), "{left_out:?}\n{pattern}\n{graph}");
        }
    }
}
