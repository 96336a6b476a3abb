//! Defects once met in patterns, each by its number: what broke must stay whole.

use std::sync::Arc;

use fx_core::prelude::*;
use fx_core::{Argument, Attributes, Function, Match, Rewriter, Rule, SubgraphMatcher, operator, replace_pattern};

fn module(graph: Graph) -> Result<GraphModule> {
    GraphModule::new(Attributes::default(), graph, "Test")
}

fn tuple(items: Vec<NodeId>) -> Argument {
    Argument::Tuple(Arc::new(items.into_iter().map(Argument::Node).collect()))
}

/// What a call is refused with.
fn refused<T>(result: Result<T>) -> String {
    result
        .err()
        .map_or_else(|| "accepted".to_string(), |error| error.to_string())
}

/// The nodes that a match's anchors are, by name.
fn anchors(gm: &GraphModule, found: &Match) -> Vec<String> {
    let nodes = found.anchors().map(|id| gm.graph().node(id));
    nodes.map(|node| node.map_or_else(|_| "gone".to_string(), |node| node.name().to_string())).collect()
}

// ---- r02: commutative operations ---------------------------------------------------------------

/// A balanced tree of sums over `leaves` inputs, each through what `op` says.
fn sums(leaves: usize, op: impl Fn(usize) -> Function) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut level = (0..leaves)
        .map(|i| graph.placeholder(&format!("x{i}")))
        .collect::<Result<Vec<_>>>()?;
    for (i, node) in level.iter_mut().enumerate() {
        *node = graph.call_function(op(i), (*node,), ())?;
    }
    sum_up(&mut graph, level)?;
    Ok(graph)
}

/// Returns the sum of values, as a balanced tree.
fn sum_up(graph: &mut Graph, mut level: Vec<NodeId>) -> Result<()> {
    while level.len() > 1 {
        let pairs = level.chunks(2);
        level = pairs
            .map(|pair| graph.call_function(operator::add, (pair[0], pair[1]), ()))
            .collect::<Result<_>>()?;
    }
    graph.output(level[0]).map(drop)
}

fn first_rest_last(first: Function, rest: Function, last: Function, leaves: usize) -> impl Fn(usize) -> Function {
    move |i| match i {
        0 => first,
        i if i + 1 == leaves => last,
        _ => rest,
    }
}

#[test]
fn defect_r02_a_tree_of_commutative_operations_has_an_answer() -> Result<()> {
    use operator::{abs, invert, neg};
    for leaves in [16, 32, 256] {
        let pattern = sums(leaves, first_rest_last(neg, neg, abs, leaves))?;
        let matcher = SubgraphMatcher::new(&pattern)?;
        let nearly = module(sums(leaves, first_rest_last(invert, neg, neg, leaves))?)?;
        assert!(matcher.find(&nearly)?.is_empty());
        // The odd leaf may be at any other end.
        let turned = module(sums(leaves, first_rest_last(abs, neg, neg, leaves))?)?;
        assert_eq!(matcher.find(&turned)?.len(), 1);
    }
    Ok(())
}

#[test]
fn defect_r02_inputs_that_are_one_value_are_no_match_soon() -> Result<()> {
    let pattern = sums(32, |_| operator::neg)?;
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let leaves = (0..32).map(|_| graph.call_function(operator::neg, (x,), ()));
    let leaves = leaves.collect::<Result<Vec<_>>>()?;
    sum_up(&mut graph, leaves)?;
    assert!(SubgraphMatcher::new(&pattern)?.find(&module(graph)?)?.is_empty());
    Ok(())
}

/// `(x + y)`, 40 steps, and an end; a step doubles what is before it.
fn doubled(input: Option<Function>, step: impl Fn(&mut Graph, NodeId) -> Result<NodeId>) -> Result<Graph> {
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x")?, graph.placeholder("y")?);
    let mut at = graph.call_function(operator::add, (x, y), ())?;
    if let Some(op) = input {
        // A sum is looked for where there is something else.
        let sub = graph.call_function(operator::sub, (x, y), ())?;
        graph.node_mut(at)?.replace_all_uses_with(sub)?;
        graph.erase_node(at)?;
        at = graph.call_function(op, (sub,), ())?;
    }
    for _ in 0..40 {
        at = step(&mut graph, at)?;
    }
    let end = graph.call_function(operator::abs, (at,), ())?;
    graph.output(end)?;
    Ok(graph)
}

#[test]
fn defect_r02_equal_operands_cost_nothing() -> Result<()> {
    let square = |graph: &mut Graph, at: NodeId| graph.call_function(operator::mul, (at, at), ());
    let pattern = doubled(None, square)?;
    let matcher = SubgraphMatcher::new(&pattern)?.budget(0);
    assert_eq!(matcher.find(&module(pattern)?)?.len(), 1);
    assert!(matcher.find(&module(doubled(Some(operator::neg), square)?)?)?.is_empty());
    // Two values of one: each order leads to the same.
    let twice = |graph: &mut Graph, at: NodeId| {
        let a = graph.call_function(operator::neg, (at,), ())?;
        let b = graph.call_function(operator::neg, (at,), ())?;
        graph.call_function(operator::mul, (a, b), ())
    };
    let matcher = SubgraphMatcher::new(doubled(None, twice)?)?;
    assert_eq!(matcher.find(&module(doubled(None, twice)?)?)?.len(), 1);
    assert!(matcher.find(&module(doubled(Some(operator::neg), twice)?)?)?.is_empty());
    Ok(())
}

/// A balanced tree of sums of 64 products of two of 64 inputs, each used twice, as a seed has it.
fn products(seed: u64) -> Result<Graph> {
    let mut state = seed;
    let mut shuffled = || {
        let mut items: Vec<usize> = (0..64).collect();
        for i in (1..64).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            items.swap(i, (state >> 33) as usize % (i + 1));
        }
        items
    };
    let mut graph = Graph::new();
    let inputs = (0..64).map(|i| graph.placeholder(&format!("x{i}")));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let pairs: Vec<_> = shuffled().into_iter().zip(shuffled()).collect();
    let products = pairs
        .into_iter()
        .map(|(a, b)| graph.call_function(operator::mul, (inputs[a], inputs[b]), ()));
    let products = products.collect::<Result<Vec<_>>>()?;
    sum_up(&mut graph, products)?;
    Ok(graph)
}

#[test]
fn defect_r02_what_is_too_much_is_an_error() -> Result<()> {
    // Which inputs are multiplied is a graph of its own: whether it is another one takes exponential time.
    let matcher = SubgraphMatcher::new(products(1)?)?.budget(1_000);
    let mut gm = module(products(2)?)?;
    let error = refused(matcher.find(&gm));
    assert!(
        error.contains("budget of 1000 comparisons is spent") && error.contains("while matching %"),
        "{error}"
    );
    // A rule tells it too, and changes nothing.
    let before = gm.graph().to_string();
    let rule = Rule::new(matcher, products(3)?)?;
    assert!(refused(rule.apply(&mut gm)).contains("comparisons is spent"));
    assert_eq!(gm.graph().to_string(), before);
    Ok(())
}

// ---- r07, b03, b04: several outputs ------------------------------------------------------------

/// One value with `n` users, of these operations in turns.
fn hub(n: usize, ops: &[Function]) -> Result<Graph> {
    let mut graph = Graph::with_capacity(n + 2);
    let x = graph.placeholder("x")?;
    let users = (0..n).map(|i| graph.call_function(ops[i % ops.len()], (x,), ()));
    let users = users.collect::<Result<Vec<_>>>()?;
    graph.output(tuple(users))?;
    Ok(graph)
}

#[test]
fn defect_r07_several_outputs_over_one_hub_are_soon_found() -> Result<()> {
    use operator::{abs, invert, neg};
    let pattern = hub(3, &[neg, abs, invert])?;
    let matcher = SubgraphMatcher::new(&pattern)?.budget(50_000);
    assert!(matcher.find(&module(hub(10_000, &[neg, abs])?)?)?.is_empty());
    // Each output has its own node, whichever comes first, and no node has two.
    assert_eq!(matcher.find(&module(hub(9_999, &[abs, neg, invert])?)?)?.len(), 3_333);
    let same = SubgraphMatcher::new(hub(5, &[neg])?)?.budget(200_000);
    assert_eq!(same.find(&module(hub(9_999, &[neg])?)?)?.len(), 1_999);
    // Fewer users than outputs are none.
    let many = SubgraphMatcher::new(hub(12, &[neg])?)?.budget(50_000);
    assert!(many.find(&module(hub(11, &[neg])?)?)?.is_empty());
    Ok(())
}

#[test]
fn defect_r07_users_that_differ_in_a_literal_are_looked_at_once() -> Result<()> {
    let numbers = |n: i64, first: i64| -> Result<Graph> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x")?;
        let mut users = vec![];
        for i in 0..n {
            users.push(graph.call_function(operator::add, (x, 1), ())?);
            users.push(graph.call_function(operator::mul, (x, first + i), ())?);
        }
        graph.output(tuple(users))?;
        Ok(graph)
    };
    let matcher = SubgraphMatcher::new(numbers(1, 5_000)?)?.budget(50_000);
    assert!(matcher.find(&module(numbers(5_000, 0)?)?)?.is_empty());
    assert_eq!(matcher.find(&module(numbers(5_000, 1_000)?)?)?.len(), 1);
    Ok(())
}

#[test]
fn defect_b03_all_combinations_are_found() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| Ok((x.abs()?, x.abs()?, (-x)?, (-x)?, (-x)?))))?;
    let pattern = || SubgraphMatcher::new(traced!(|x: Float| Ok((x.abs()?, (-x)?))));
    let all = pattern()?.remove_overlapping_matches(false).find(&gm)?;
    let all: Vec<String> = all.iter().map(|found| anchors(&gm, found).join(" ")).collect();
    assert_eq!(
        all,
        ["abs neg", "abs neg_1", "abs neg_2", "abs_1 neg", "abs_1 neg_1", "abs_1 neg_2"]
    );
    let apart = pattern()?.find(&gm)?;
    let apart: Vec<_> = apart.iter().map(|found| anchors(&gm, found).join(" ")).collect();
    assert_eq!(apart, ["abs neg", "abs_1 neg_1"]);
    // Two of one kind are two matches, one for each order in which they are returned.
    let same = SubgraphMatcher::new(traced!(|x: Float| Ok((x.abs()?, x.abs()?))))?;
    assert_eq!(same.remove_overlapping_matches(false).find(&gm)?.len(), 2);
    Ok(())
}

#[test]
fn defect_b03_more_combinations_than_memory_are_an_error() -> Result<()> {
    let ops = [operator::neg, operator::abs, operator::invert];
    let matcher = SubgraphMatcher::new(hub(3, &ops)?)?.remove_overlapping_matches(false);
    let gm = module(hub(3_000, &ops)?)?;
    assert!(refused(matcher.budget(100_000).find(&gm)).contains("comparisons is spent"));
    Ok(())
}

#[test]
fn defect_b03_a_filter_is_shown_all_combinations() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| Ok((x.abs()?, (-x)?, (-x)?))))?;
    let rule = Rule::new(
        traced!(|x: Float| Ok((x.abs()?, (-x)?))),
        traced!(|x: Float| Ok(((x + 1.0)?, (x + 2.0)?))),
    )?;
    let rule = rule.filter(|gm, found| anchors(gm, found) == ["abs", "neg_1"]);
    assert_eq!(rule.apply(&mut gm)?.len(), 1);
    assert_eq!(gm.forward::<(f64, f64, f64)>(5.0)?, (6.0, -5.0, 7.0));
    Ok(())
}

#[test]
fn defect_b04_what_cannot_be_replaced_is_no_match() -> Result<()> {
    let f = |x: Float, y: Float| -> Result<(Float, Float)> {
        let first = (x * y)?;
        let second = (first * first.abs()?)?;
        Ok((first, second))
    };
    let mut gm = symbolic_trace(traced!(move |x: Float, y: Float| f(x, y)))?;
    let pattern = || {
        traced!(|a: Float, b: Float, c: Float| {
            let first = (a * b)?;
            Ok((first, (first * c)?))
        })
    };
    assert!(SubgraphMatcher::new(pattern())?.find(&gm)?.is_empty());
    let before = gm.graph().to_string();
    let rules = Rewriter::new().rule(Rule::new(pattern(), pattern())?.named("scaled"));
    let report = rules.run(&mut gm)?;
    assert!(report.rewritten.is_empty());
    let near: Vec<&str> = report.near.iter().map(|near| near.why.as_str()).collect();
    let why = "what stands for `c` depends on %mul, so that nothing can stand for both";
    assert!(near.contains(&why), "{report}");
    assert_eq!(gm.graph().to_string(), before);
    // Another user of the first value can be the second.
    let g = move |x: Float, y: Float| -> Result<(Float, Float, Float)> {
        let (first, second) = f(x, y)?;
        Ok((first, second, (first * y.abs()?)?))
    };
    let mut gm = symbolic_trace(traced!(move |x: Float, y: Float| g(x, y)))?;
    let expected: (f64, f64, f64) = gm.forward((2.0, -3.0))?;
    assert_eq!(replace_pattern(&mut gm, pattern(), pattern())?.len(), 1);
    gm.lint()?;
    assert_eq!(gm.forward::<(f64, f64, f64)>((2.0, -3.0))?, expected);
    Ok(())
}
