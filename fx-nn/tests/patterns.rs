//! Patterns on tensors: matches, replacements, and nodes by their source.

use fx_nn::allclose;
use fx_nn::ir::{Argument, Graph, Op};
use fx_nn::pattern::{
    Match, Rule, Source, SubgraphMatcher, are_connected, replace_pattern, sequential_partitions,
    source_partitions,
};
use fx_nn::prelude::*;

/// The targets that a graph calls, in order.
fn calls(gm: &GraphModule) -> Vec<String> {
    let nodes = gm.graph().nodes();
    let calls = nodes.filter(|n| !matches!(n.op(), Op::Placeholder(_) | Op::Output));
    calls
        .map(|n| {
            n.target()
                .rsplit("::")
                .next()
                .unwrap_or_default()
                .to_string()
        })
        .collect()
}

/// The graph module runs as the function does, bit for bit.
fn runs_as(gm: &GraphModule, x: &Tensor, expected: &Tensor) -> Result<()> {
    gm.lint()?;
    let found: Tensor = gm.forward(x)?;
    let closeness = allclose(&found, expected, 0.0, 0.0)?;
    assert!(closeness.close, "{closeness}\n{}", gm.code());
    Ok(())
}

#[test]
fn a_pattern_replaced_by_itself_changes_nothing() -> Result<()> {
    let f = |x: &Tensor| -> Result<Tensor> { (x.neg()?.relu()? + x)?.sigmoid() };
    let mut gm = symbolic_trace(traced!(move |x: &Tensor| f(x)))?;
    let before = gm.graph().to_string();
    let pattern = || traced!(|x: &Tensor| x.neg()?.relu());
    assert_eq!(replace_pattern(&mut gm, pattern(), pattern())?.len(), 1);
    // Names are new, the computation is not.
    assert_eq!(gm.graph().len(), before.lines().count() - 1);
    let x = Tensor::randn((2, 3))?;
    runs_as(&gm, &x, &f(&x)?)
}

#[test]
fn one_operation_is_replaced_by_another() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let val = x.neg()?;
        &val + &val
    }))?;
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.neg()),
        traced!(|x: &Tensor| x.relu()),
    )?;
    assert_eq!(calls(&gm), ["relu", "add"]);
    let x = Tensor::randn(4)?;
    runs_as(&gm, &x, &(x.relu()? + x.relu()?)?)
}

#[test]
fn a_replacement_may_be_the_input() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.neg()?.relu()?.sigmoid()))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.neg()?.relu()),
        traced!(|x: &Tensor| Ok(x.clone())),
    )?;
    assert!(matches[0].replacements().is_empty());
    assert_eq!(calls(&gm), ["sigmoid"]);
    let x = Tensor::randn(3)?;
    runs_as(&gm, &x, &x.sigmoid()?)
}

#[test]
fn each_match_is_replaced() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = (x.neg()? + 1.0)?;
        let b = (x.relu()?.neg()? + 1.0)?;
        a * b
    }))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.neg()? + 1.0),
        traced!(|x: &Tensor| x.sigmoid()),
    )?;
    assert_eq!(matches.len(), 2);
    let x = Tensor::randn((2, 2))?;
    runs_as(&gm, &x, &(x.sigmoid()? * x.relu()?.sigmoid()?)?)
}

#[test]
fn the_order_of_operands_is_kept() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x.matmul(y)))?;
    let pattern = || traced!(|x: &Tensor, y: &Tensor| x.matmul(y));
    replace_pattern(&mut gm, pattern(), pattern())?;
    let (x, y) = (Tensor::randn((2, 3))?, Tensor::randn((3, 4))?);
    let found: Tensor = gm.forward((&x, &y))?;
    assert!(allclose(&found, &x.matmul(&y)?, 0.0, 0.0)?.close);
    Ok(())
}

#[test]
fn an_input_of_the_pattern_is_no_operation() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| y.neg()? + x.relu()?))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| x.neg()),
    )?;
    assert_eq!(matches.len(), 1);
    assert_eq!(calls(&gm), ["neg", "neg", "add"]);
    Ok(())
}

#[test]
fn graph_modules_and_graphs_are_patterns() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| (x.neg()? + 1.0)?.relu()))?;
    let pattern = symbolic_trace(traced!(|x: &Tensor| x.neg()? + 1.0))?;
    let replacement = symbolic_trace(traced!(|x: &Tensor| x.sigmoid()))?;
    assert_eq!(
        replace_pattern(&mut gm, &pattern, replacement.graph())?.len(),
        1
    );
    assert_eq!(calls(&gm), ["sigmoid", "relu"]);
    Ok(())
}

#[test]
fn a_whole_graph_is_replaced() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.neg()? + x.relu()?))?;
    let pattern = gm.graph().clone();
    let matches = replace_pattern(&mut gm, pattern, traced!(|x: &Tensor| x.sigmoid()))?;
    assert_eq!(
        (matches.len(), calls(&gm)),
        (1, vec!["sigmoid".to_string()])
    );
    Ok(())
}

#[test]
fn what_is_used_outside_is_no_match() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor, w: &Tensor| {
        let m0 = x.matmul(w)?.relu()?;
        let m1 = x.neg()?;
        let m2 = m1.relu()?;
        (m0 + m1)? * m2
    }))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.neg()?.relu()),
        traced!(|x: &Tensor| x.sigmoid()),
    )?;
    assert!(matches.is_empty());
    Ok(())
}

#[test]
fn an_input_of_the_pattern_stands_for_any_value() -> Result<()> {
    // The input of the pattern stands for a value of two inputs.
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let sum = (x + 3.0)?;
        sum.sigmoid()?.relu()
    }))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.sigmoid()?.relu()),
        traced!(|x: &Tensor| x.neg()),
    )?;
    assert_eq!(matches.len(), 1);
    let x = Tensor::randn(3)?;
    runs_as(&gm, &x, &(&x + 3.0)?.neg()?)
}

#[derive(Module, Clone, Debug)]
struct SigmoidLinear {
    sigmoid: nn::Sigmoid,
    linear: nn::Linear,
}

#[trace]
impl SigmoidLinear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.linear.forward(&self.sigmoid.forward(x)?)
    }
}

#[test]
fn modules_of_a_replacement_come_along_and_unused_ones_go() -> Result<()> {
    let model = SigmoidLinear {
        sigmoid: nn::Sigmoid::new(),
        linear: nn::Linear::new(3, 3)?,
    };
    let sample = model.clone();
    let mut gm = symbolic_trace(&model)?;
    let tanh = nn::Tanh::new();
    let matches = replace_pattern(
        &mut gm,
        traced!(move |x: &Tensor| sample.sigmoid.forward(x)),
        traced!(move |x: &Tensor| tanh.forward(x)),
    )?;
    assert_eq!(matches.len(), 1);
    // The new module was added, the one that is no longer called was removed.
    assert!(gm.submodule("sigmoid").is_err() && gm.submodule("linear").is_ok());
    assert_eq!(gm.attributes().modules.len(), 2);
    let x = Tensor::randn((2, 3))?;
    runs_as(&gm, &x, &model.linear.forward(&x.tanh()?)?)
}

#[test]
fn consecutive_matches_are_all_replaced() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.sigmoid()?.sigmoid()?.sigmoid()))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.sigmoid()),
        traced!(|x: &Tensor| x.exp()),
    )?;
    assert_eq!((matches.len(), calls(&gm)), (3, vec!["exp".to_string(); 3]));
    let x = Tensor::randn(2)?;
    runs_as(&gm, &x, &x.exp()?.exp()?.exp()?)
}

#[test]
fn overlapping_matches_are_left_out_unless_they_are_wanted() -> Result<()> {
    let four = || {
        symbolic_trace(traced!(|x: &Tensor| x
            .sigmoid()?
            .sigmoid()?
            .sigmoid()?
            .sigmoid()))
    };
    let mut gm = four()?;
    let pattern = || traced!(|x: &Tensor| x.sigmoid()?.sigmoid());
    let matches = replace_pattern(&mut gm, pattern(), traced!(|x: &Tensor| x.neg()))?;
    assert_eq!((matches.len(), calls(&gm)), (2, vec!["neg".to_string(); 2]));
    let all = SubgraphMatcher::new(pattern())?.remove_overlapping_matches(false);
    assert_eq!(all.find(&four()?)?.len(), 3);
    Ok(())
}

#[test]
fn several_outputs_are_replaced() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, b) = (x.neg()?, x.relu()?);
        (a + 1.0)? * (b - 1.0)?
    }))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| Ok((x.neg()?, x.relu()?))),
        traced!(|x: &Tensor| Ok((x.exp()?, x.sigmoid()?))),
    )?;
    assert_eq!((matches.len(), matches[0].replacements().len()), (1, 2));
    let x = Tensor::randn(3)?;
    runs_as(&gm, &x, &((x.exp()? + 1.0)? * (x.sigmoid()? - 1.0)?)?)
}

#[test]
fn a_replacement_may_give_one_value_twice() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let (a, b) = (x.neg()?, x.relu()?);
        (a + 1.0)? * (b - 1.0)?
    }))?;
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| Ok((x.neg()?, x.relu()?))),
        traced!(|x: &Tensor| {
            let one = x.exp()?;
            Ok((one.clone(), one))
        }),
    )?;
    let x = Tensor::randn(3)?;
    runs_as(&gm, &x, &((x.exp()? + 1.0)? * (x.exp()? - 1.0)?)?)
}

#[test]
fn method_calls_are_replaced() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.sigmoid()?.relu()))?;
    assert!(matches!(
        gm.graph().nodes().nth(1).map(|n| n.op()),
        Some(Op::CallMethod(_))
    ));
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.sigmoid()),
        traced!(|x: &Tensor| x.neg()),
    )?;
    assert_eq!(
        (matches.len(), calls(&gm)),
        (1, vec!["neg".to_string(), "relu".into()])
    );
    Ok(())
}

#[test]
fn what_a_failed_way_has_bound_is_free_again() -> Result<()> {
    // A failed attempt releases its bindings: the sum's first operand nearly fits the pattern's
    // second.
    let mut gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| {
        let a = x.neg()?.relu()?;
        let b = y.neg()?.relu()?.sigmoid()?;
        a + b
    }))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|a: &Tensor, b: &Tensor| a.neg()?.relu()?.sigmoid()? + b.neg()?.relu()?),
        traced!(|a: &Tensor, b: &Tensor| a - b),
    )?;
    assert_eq!((matches.len(), calls(&gm)), (1, vec!["sub".to_string()]));
    assert!(gm.code().contains("(y - x)?"), "{}", gm.code());
    Ok(())
}

#[test]
fn a_filter_chooses_among_matches() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let a = (x + 3.0)?.relu()?;
        let b = (a + x)?.relu()?;
        b.neg()
    }))?;
    let second_is_literal = |gm: &GraphModule, found: &Match| {
        let add = found.node("add").and_then(|id| gm.graph().node(id).ok());
        add.is_some_and(|add| add.args()[1].as_node().is_none())
    };
    let rule = Rule::new(
        traced!(|x: &Tensor, y: &Tensor| (x + y)?.relu()),
        traced!(|x: &Tensor, y: &Tensor| (x * y)?.sigmoid()),
    )?;
    let matches = rule.filter(second_is_literal).apply(&mut gm)?;
    assert_eq!(matches.len(), 1);
    assert_eq!(calls(&gm), ["mul", "sigmoid", "add", "relu", "neg"]);
    Ok(())
}

#[test]
fn an_input_of_the_pattern_stands_for_a_list() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x.permute([1, 0])?.relu()))?;
    let mut pattern = Graph::new();
    let x = pattern.placeholder("x")?;
    let dims = pattern.placeholder("dims")?;
    let permuted = pattern.call_method("permute", (x, dims), ())?;
    let relu = pattern.call_method("relu", (permuted,), ())?;
    pattern.output(relu)?;
    let matches = SubgraphMatcher::new(pattern)?.find(&gm)?;
    assert_eq!(matches.len(), 1);
    assert_eq!(
        matches[0].argument("dims"),
        Some(&Argument::from(vec![1i64, 0]))
    );
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Shifted {
    by: Tensor,
}

#[trace]
impl Shifted {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + &self.by
    }
}

#[test]
fn tensors_of_a_replacement_come_under_names_of_their_own() -> Result<()> {
    let shifted = |by: f32| -> Result<Shifted> {
        Ok(Shifted {
            by: Tensor::from_vec(vec![by], 1)?.into_parameter()?,
        })
    };
    let (own, other) = (shifted(1.0)?, shifted(2.0)?);
    let mut gm = symbolic_trace(&own)?;
    // The pattern's parameter stands for any; the replacement's is added under a name of its own.
    let pattern = symbolic_trace(&shifted(9.0)?)?;
    assert_eq!(
        replace_pattern(&mut gm, &pattern, &symbolic_trace(&other)?)?.len(),
        1
    );
    let x = Tensor::randn(1)?;
    runs_as(&gm, &x, &other.forward(&x)?)?;
    assert!(gm.parameter("by_1").is_ok());
    Ok(())
}

#[test]
fn defaults_are_filled_in_before_calls_are_compared() -> Result<()> {
    // Defaults are written out on one side and left out on the other.
    let gm = symbolic_trace(traced!(
        |x: &Tensor| ops::cat(&[x.clone(), x.neg()?], 0)?.flatten(0, -1)
    ))?;
    let matcher = SubgraphMatcher::new(traced!(|x: &Tensor, y: &Tensor| {
        ops::cat(&[x.clone(), y.clone()], 0)?.flatten(0, -1)
    }))?;
    assert_eq!(matcher.find(&gm)?.len(), 1);
    Ok(())
}

#[test]
fn replacements_are_listed_in_order() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.sigmoid()?.relu()?.sigmoid()))?;
    let matches = replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.sigmoid()),
        traced!(|x: &Tensor| x.neg()?.exp()),
    )?;
    let names = |found: &Match| -> Result<Vec<String>> {
        let nodes = found.replacements().iter().map(|id| gm.graph().node(*id));
        nodes.map(|n| Ok(n?.name().to_string())).collect()
    };
    assert_eq!(names(&matches[0])?, ["neg", "exp"]);
    assert_eq!(names(&matches[1])?, ["neg_1", "exp_1"]);
    Ok(())
}

#[test]
fn a_replacement_is_computed_for_each_match() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| ((x + 2.0)? + 3.0)?.relu()))?;
    let pattern = SubgraphMatcher::new(traced!(|x: &Tensor| x + 0.0))?.any_literal("add", "b")?;
    let rule = Rule::computed(pattern, |gm, found| {
        let add = found
            .node("add")
            .ok_or_else(|| Error::msg("it was found"))?;
        let by = match &gm.graph().node(add)?.args()[1] {
            Argument::Float(by) => *by,
            other => return Err(Error::msg(format!("{other:?} is not a float"))),
        };
        symbolic_trace(traced!(move |x: &Tensor| x * by))
    })?;
    assert_eq!(rule.apply(&mut gm)?.len(), 2);
    let x = Tensor::randn(3)?;
    runs_as(&gm, &x, &((&x * 2.0)? * 3.0)?.relu()?)
}

#[test]
fn methods_are_their_functions() -> Result<()> {
    let method = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let function = symbolic_trace(traced!(|x: &Tensor| ops::relu(x)))?;
    for (pattern, gm) in [(&method, &function), (&function, &method)] {
        assert_eq!(SubgraphMatcher::new(pattern)?.find(gm)?.len(), 1);
    }
    Ok(())
}

// ---- the matcher -------------------------------------------------------------------------------

#[test]
fn a_parameter_of_the_pattern_stands_for_any() -> Result<()> {
    let gm = symbolic_trace(&Shifted {
        by: Tensor::rand(5)?.into_parameter()?,
    })?;
    let pattern = symbolic_trace(&Shifted {
        by: Tensor::rand((2, 2))?.into_parameter()?,
    })?;
    assert_eq!(SubgraphMatcher::new(&pattern)?.find(&gm)?.len(), 1);
    Ok(())
}

#[test]
fn lists_are_compared_item_by_item() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| ops::cat(
        &[x.clone(), y.clone()],
        0
    )?
    .relu()))?;
    let of = |n: usize| {
        SubgraphMatcher::new(traced!(move |a: &Tensor, b: &Tensor| {
            let mut list = vec![a.clone(), b.clone()];
            list.truncate(n);
            list.resize(n.max(2), b.clone());
            ops::cat(&list, 0)
        }))
    };
    assert_eq!(of(2)?.find(&gm)?.len(), 1);
    // A list of another length is another list.
    assert_eq!(of(3)?.find(&gm)?.len(), 0);
    Ok(())
}

#[test]
fn a_dict_at_the_end_of_the_result_names_nodes() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| (x.relu()?.neg()? * 2.0)?.exp()))?;
    let mut pattern = Graph::new();
    let x = pattern.placeholder("x")?;
    let relu = pattern.call_method("relu", (x,), ())?;
    let neg = pattern.call_method("neg", (relu,), ())?;
    let names = Argument::Dict(std::sync::Arc::new(vec![(
        "activation".into(),
        relu.into(),
    )]));
    pattern.output(Argument::Tuple(std::sync::Arc::new(vec![
        neg.into(),
        names,
    ])))?;
    let matches = SubgraphMatcher::new(pattern)?.find(&gm)?;
    let named = matches[0].node("activation").map(|id| gm.graph().node(id));
    assert_eq!(
        named.transpose()?.map(|n| n.name().to_string()).as_deref(),
        Some("relu")
    );
    assert_eq!(matches[0].anchors().count(), 1);
    Ok(())
}

// ---- source partitions -------------------------------------------------------------------------

#[derive(Module, Clone, Debug)]
struct LinearReluLinear {
    linear1: nn::Linear,
    relu: nn::ReLU,
    linear2: nn::Linear,
}

#[trace]
impl LinearReluLinear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.linear2
            .forward(&self.relu.forward(&self.linear1.forward(x)?)?)
    }
}

#[test]
fn nodes_are_grouped_by_type_of_module() -> Result<()> {
    let model = LinearReluLinear {
        linear1: nn::Linear::new(3, 3)?,
        relu: nn::ReLU::new(),
        linear2: nn::Linear::new(3, 5)?,
    };
    // Whole layers, and layers that were traced through.
    for gm in [
        symbolic_trace(&model)?,
        Trace::new(&model)
            .tracer(fx_core::trace::NoLeaves)
            .graph_module()?,
    ] {
        let linears = source_partitions(&gm, &[Source::module::<nn::Linear>()], |_| true)?;
        let relus = source_partitions(&gm, &[Source::module::<nn::ReLU>()], |_| true)?;
        let paths: Vec<&str> = linears.iter().map(|p| p.path.as_str()).collect();
        assert_eq!((paths, relus.len()), (vec!["linear1", "linear2"], 1));
        assert!(!are_connected(&linears[0], &linears[1]));
        assert!(are_connected(&linears[0], &relus[0]) && are_connected(&relus[0], &linears[1]));
        assert!(!are_connected(&linears[1], &relus[0]));
        assert_eq!(linears[0].source.name(), "Linear");
    }
    let gm = Trace::new(&model)
        .tracer(fx_core::trace::NoLeaves)
        .graph_module()?;
    let linears = source_partitions(&gm, &[Source::module::<nn::Linear>()], |_| true)?;
    assert_eq!(
        (linears[0].params.len(), linears[0].input_nodes.len()),
        (2, 1)
    );
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct ConvReluPool {
    conv1: nn::Conv2d,
    conv2: nn::Conv2d,
    relu: nn::ReLU,
    maxpool: nn::MaxPool2d,
}

#[trace]
impl ConvReluPool {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.conv2.forward(&self.conv1.forward(x)?)?;
        self.maxpool.forward(&self.relu.forward(&(y + 1.0)?)?)
    }
}

#[test]
fn groups_with_weights_know_what_they_connect_to() -> Result<()> {
    let conv = |c: usize| nn::Conv2d::new(c, 4, 3);
    let model = ConvReluPool {
        conv1: conv(3)?,
        conv2: conv(4)?,
        relu: nn::ReLU::new(),
        maxpool: nn::MaxPool2d::new(2),
    };
    let gm = Trace::new(&model)
        .tracer(fx_core::trace::NoLeaves)
        .graph_module()?;
    let of = |source: Source| source_partitions(&gm, &[source], |_| true);
    let convs = of(Source::module::<nn::Conv2d>())?;
    let (relus, pools) = (
        of(Source::module::<nn::ReLU>())?,
        of(Source::module::<nn::MaxPool2d>())?,
    );
    assert_eq!((convs.len(), relus.len(), pools.len()), (2, 1, 1));
    assert!(are_connected(&convs[0], &convs[1]));
    // The addition of a constant is between.
    assert!(!are_connected(&convs[1], &relus[0]));
    assert!(are_connected(&relus[0], &pools[0]));
    Ok(())
}

#[test]
fn nodes_are_grouped_by_function_and_connected_in_order() -> Result<()> {
    let weight = || Tensor::rand((3, 3, 1, 1));
    let (a, b) = (weight()?, weight()?);
    let gm = symbolic_trace(traced!(move |x: &Tensor| {
        let y = ops::conv2d(x, &a, None, 1, 0, 1, 1)?.relu()?;
        ops::conv2d(&y, &b, None, 1, 0, 1, 1)
    }))?;
    let convs = source_partitions(&gm, &[Source::Function(function!(ops::conv2d))], |_| true)?;
    let relus = source_partitions(&gm, &[Source::Function(function!(ops::relu))], |_| true)?;
    assert_eq!((convs.len(), relus.len()), (2, 1));
    assert!(are_connected(&convs[0], &relus[0]) && are_connected(&relus[0], &convs[1]));
    assert!(!are_connected(&convs[0], &convs[1]));
    Ok(())
}

#[test]
fn calls_of_one_function_are_groups_of_their_own() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, w: &Tensor| {
        let y = ops::linear(x, w, None)?;
        let y = ops::linear(&y, w, None)?.relu()?;
        ops::linear(&y, w, None)?.relu()
    }))?;
    let linears = source_partitions(&gm, &[Source::Function(function!(ops::linear))], |_| true)?;
    let relus = source_partitions(&gm, &[Source::Function(function!(ops::relu))], |_| true)?;
    assert_eq!((linears.len(), relus.len()), (3, 2));
    // A filter leaves nodes out.
    let named = source_partitions(&gm, &[Source::Function(function!(ops::linear))], |n| {
        n.name() == "linear_1"
    })?;
    assert_eq!(named.len(), 1);
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct ConvBnRelu {
    conv: nn::Conv2d,
    bn: nn::BatchNorm2d,
    conv2: nn::Conv2d,
    relu: nn::ReLU,
}

#[trace]
impl ConvBnRelu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.bn.forward(&self.conv.forward(x)?)?;
        self.relu.forward(&self.conv2.forward(&x)?)
    }
}

fn conv_bn_conv_relu() -> Result<GraphModule> {
    let conv = || nn::Conv2d::new(3, 3, 3);
    symbolic_trace(&ConvBnRelu {
        conv: conv()?,
        bn: nn::BatchNorm2d::new(3)?,
        conv2: conv()?,
        relu: nn::ReLU::new(),
    })
}

#[test]
fn sequences_of_modules_are_counted() -> Result<()> {
    let gm = conv_bn_conv_relu()?;
    let conv = Source::module::<nn::Conv2d>();
    let (bn, relu) = (
        Source::module::<nn::BatchNorm2d>(),
        Source::module::<nn::ReLU>(),
    );
    let rows =
        |steps: &[&[Source]]| Ok::<_, Error>(sequential_partitions(&gm, steps, |_| true)?.len());
    assert_eq!(rows(&[&[conv], &[bn]])?, 1);
    assert_eq!(rows(&[&[conv], &[relu]])?, 1);
    assert_eq!(rows(&[&[conv], &[bn], &[conv], &[relu]])?, 1);
    assert_eq!(rows(&[&[conv], &[bn, relu]])?, 2);
    Ok(())
}

#[test]
fn the_order_of_a_sequence_matters() -> Result<()> {
    let gm = conv_bn_conv_relu()?;
    let conv = Source::module::<nn::Conv2d>();
    let (bn, relu) = (
        Source::module::<nn::BatchNorm2d>(),
        Source::module::<nn::ReLU>(),
    );
    let rows =
        |steps: &[&[Source]]| Ok::<_, Error>(sequential_partitions(&gm, steps, |_| true)?.len());
    // The order matters.
    assert_eq!(rows(&[&[bn], &[conv]])?, 1);
    assert_eq!(rows(&[&[relu], &[conv]])?, 0);
    assert_eq!(rows(&[&[conv], &[bn], &[relu]])?, 0);
    Ok(())
}

#[test]
fn a_step_of_a_sequence_may_be_one_of_several() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()?.sigmoid()?.exp()))?;
    let activation = [
        Source::Function(function!(ops::relu)),
        Source::Function(function!(ops::sigmoid)),
    ];
    let rows = sequential_partitions(
        &gm,
        &[&activation, &[Source::Function(function!(ops::exp))]],
        |_| true,
    )?;
    assert_eq!(rows.len(), 2);
    Ok(())
}
