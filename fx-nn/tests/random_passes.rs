//! Random graphs through random passes in random order: lint stays clean, and the numbers stay bit for bit.
//!
//! A hundred and twenty-eight cases; `FX_RANDOM_PASSES=100000` runs more.

use fx_nn::ir::{Argument, Graph, Op};
use fx_nn::module::Attributes;
use fx_nn::operator;
use fx_nn::passes::{
    AnnotateTypes, Canonicalize, Cse, DeadCode, Decompositions, FoldConstants, MethodsToFunctions,
    NormalizeArguments, Pass, pass_fn,
};
use fx_nn::passes::{RemoveDropout, RemoveIdentity};
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::NodeId;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

/// One step of a random graph: what, of which earlier values, with which literal.
type Step = (u8, usize, usize, u8);

/// A graph module over `[2, 2]` tensors.
fn module(steps: &[Step]) -> Result<GraphModule> {
    let mut attributes = Attributes::default();
    let data = |at: f32| Tensor::from_vec(vec![at, -0.5, 0.25, 2.0 - at], (2, 2));
    let mut graph = Graph::new();
    let mut values = vec![graph.placeholder("x")?, graph.placeholder("y")?];
    let layers: [(&str, Box<dyn fx_nn::module::Module>); 4] = [
        ("layers.0", Box::new(nn::ReLU::new())),
        ("layers.1", Box::new(nn::Linear::new(2, 2)?)),
        ("layers.2", Box::new(nn::Identity::default())),
        ("layers.3", Box::new(nn::Dropout::new(0.5)?)),
    ];
    for (path, module) in layers {
        attributes.modules.insert(path.into(), module);
    }
    for (name, at) in [("a", 0.5), ("b", 1.5)] {
        let kind = fx_nn::module::TensorKind::Parameter;
        let value = data(at)?.into_parameter()?.to_value();
        attributes.tensors.insert(name.into(), (kind, value));
    }
    for (what, a, b, literal) in steps {
        let (a, b) = (values[a % values.len()], values[b % values.len()]);
        let literal: Argument = match literal % 6 {
            0 => 1.into(),
            1 => 1.0.into(),
            2 => true.into(),
            3 => 0.0.into(),
            4 => Argument::Float(-0.0),
            _ => 3.into(),
        };
        let layer = format!("layers.{}", what % 4);
        values.push(match what % 17 {
            0 => graph.call_function(operator::add, (a, b), ())?,
            1 => graph.call_function(operator::mul, (a, b), ())?,
            2 => {
                // Truth values are not subtracted.
                let by = match literal {
                    Argument::Bool(_) => 2.into(),
                    literal => literal,
                };
                graph.call_function(operator::sub, (a, by), ())?
            }
            3 => graph.call_function(operator::add, (a,), [("b", literal)])?,
            4 => graph.call_function(function!(ops::relu), (a,), ())?,
            5 => graph.call_method("relu", (a,), ())?,
            6 => graph.call_method("square", (a,), ())?,
            7 => graph.call_function(function!(ops::sigmoid), (a,), ())?,
            8 => graph.get_attr("a")?,
            9 => graph.get_attr("b")?,
            10 | 11 => graph.call_module(&layer, (a,), ())?,
            12 => graph.call_function(function!(ops::clamp), (a,), [("min", 0.0), ("max", 1.0)])?,
            13 => {
                let kwargs = [("min", 0.0.into()), ("max", Argument::None)];
                graph.call_method("clamp", (a,), kwargs)?
            }
            14 => graph.call_function(function!(ops::matmul), (a, b), ())?,
            15 => {
                let parts = graph.call_function(function!(ops::chunk), (a, 2), [("dim", 1)])?;
                let of = |graph: &mut Graph, at: i64| {
                    graph.call_function(operator::getitem, (parts, at), ())
                };
                let parts = vec![of(&mut graph, 1)?, of(&mut graph, 0)?];
                graph.call_function(function!(ops::cat), (parts,), [("dim", 1)])?
            }
            _ => {
                let shape = vec![Argument::Int(2), Argument::Int(2)];
                let ones = graph.call_function(function!(ops::ones), (shape,), ())?;
                graph.call_function(operator::mul, (a, ones), ())?
            }
        });
    }
    let results: Vec<NodeId> = values.iter().rev().step_by(3).take(3).copied().collect();
    graph.output(results)?;
    let mut gm = GraphModule::new(attributes, graph, "Random")?;
    gm.eval();
    Ok(gm)
}

/// Moves a run of nodes into a module, and back where `back` says so.
fn lift(start: usize, length: usize, back: bool) -> impl Pass + 'static {
    pass_fn("lift", move |gm| {
        let inner = |op: &Op| !matches!(op, Op::Placeholder(_) | Op::Output);
        let all: Vec<NodeId> = gm
            .graph()
            .nodes()
            .filter(|n| inner(n.op()))
            .map(|n| n.id())
            .collect();
        if all.is_empty() {
            return Ok(false);
        }
        let start = start % all.len();
        let part = &all[start..(start + 1 + length).min(all.len())];
        let is_used = |id: &NodeId| {
            let node = gm.graph().node(*id);
            node.is_ok_and(|node| node.users().any(|user| !part.contains(&user.id())))
        };
        if !part.iter().any(is_used) {
            return Ok(false);
        }
        // Inlined parts keep their paths.
        let mut free = (0..).map(|n| format!("lifted_{n}"));
        let is_free = |path: &String| {
            let mut paths = gm
                .attributes()
                .modules
                .keys()
                .chain(gm.attributes().tensors.keys());
            !paths.any(|taken| taken.split('.').next() == Some(path))
        };
        let path = free.find(is_free).unwrap_or_default();
        let call = gm.lift_subgraph(part, &path)?;
        if back {
            gm.inline_module(call)?;
        }
        Ok(true)
    })
}

fn decompositions() -> Decompositions {
    Decompositions::new()
        .rule(function!(ops::square), |call| {
            let x: Tensor = call.arg("x")?;
            &x * &x
        })
        .rule(function!(ops::relu), |call| {
            let x: Tensor = call.arg("x")?;
            x.clamp(0.0, None)
        })
}

fn run(gm: &mut GraphModule, pass: u8, at: usize) -> Result<()> {
    let record = match pass % 13 {
        0 => gm.apply(&DeadCode),
        1 => gm.apply(&Cse::new()),
        2 => gm.apply(&FoldConstants::new()),
        3 => gm.apply(&FoldConstants::new().lazily()),
        4 => gm.apply(&NormalizeArguments::canonical()),
        5 => gm.apply(&NormalizeArguments::by_name()),
        6 => gm.apply(&MethodsToFunctions),
        7 => gm.apply(&Canonicalize),
        8 => gm.apply(&AnnotateTypes),
        9 => gm.apply(&decompositions()),
        10 => gm.apply(&lift(at, at % 7, at.is_multiple_of(2))),
        11 => gm.apply(&RemoveDropout),
        _ => gm.apply(&RemoveIdentity),
    };
    record.map(drop)
}

/// The bits of all results.
fn bits(gm: &GraphModule) -> Result<Vec<u64>> {
    let x = Tensor::from_vec(vec![0.5f32, -1.0, 3.0, 0.0], (2, 2))?;
    let y = Tensor::from_vec(vec![-0.0f32, 1.0, 0.125, -7.0], (2, 2))?;
    let results: Vec<Tensor> = gm.forward((&x, &y))?;
    let mut bits = Vec::new();
    for result in results {
        bits.extend(result.to_vec()?.into_iter().map(f64::to_bits));
    }
    Ok(bits)
}

fn holds(steps: &[Step], passes: &[(u8, usize)]) -> Result<()> {
    let mut gm = module(steps)?;
    let expected = bits(&gm)?;
    for (pass, at) in passes {
        let before = gm.graph().to_string();
        run(&mut gm, *pass, *at)?;
        gm.lint()?;
        if bits(&gm)? != expected {
            let after = gm.graph();
            return Err(Error::msg(format_args!(
                "pass {} changed the numbers of\n{before}\ninto\n{after}",
                pass % 13
            )));
        }
    }
    Ok(())
}

#[test]
fn random_passes_keep_random_graphs_sound_and_their_numbers() {
    let cases = std::env::var("FX_RANDOM_PASSES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(128);
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let steps =
        proptest::collection::vec((any::<u8>(), 0..64usize, 0..64usize, any::<u8>()), 1..24);
    let passes = proptest::collection::vec((any::<u8>(), 0..64usize), 1..8);
    let result = runner.run(&(steps, passes), |(steps, passes)| {
        holds(&steps, &passes).map_err(|error| TestCaseError::fail(error.to_string()))
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
