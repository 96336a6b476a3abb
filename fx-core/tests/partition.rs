//! Partitions: as many as torch.fx makes, never in a circle, and the graph computes what it did before.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fx_core::ir::{Argument, Graph, NodeRef, Op, TensorMeta, ValueMeta};
use fx_core::module::{Call, Module};
use fx_core::operator;
use fx_core::passes::backend::{
    Around, Backend, Executable, Metas, Minimizer, OperatorSupport, Partitioner, StepReport,
    Support, functions,
};
use fx_core::passes::{Region, SplitOptions};
use fx_core::prelude::*;
use fx_core::trace::{Mode, ModeCall, Next, with_mode};
use fx_core::value::NodeId;
use proptest::prelude::*;

/// A graph of one input: the inputs of each call, `None` for the graph's. The result is a tuple of
/// what no call uses.
fn graph_of(calls: &[Vec<Option<usize>>]) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let mut nodes: Vec<NodeId> = Vec::new();
    for inputs in calls {
        let value = |of: &Option<usize>| of.map_or(x, |at| nodes[at]);
        let node = match inputs.as_slice() {
            [one] => graph.call_function(operator::neg, (value(one),), ())?,
            [a, b, ..] => graph.call_function(operator::add, (value(a), value(b)), ())?,
            [] => return Err(Error::msg("a call has inputs")),
        };
        nodes.push(node);
    }
    let unused = |id: &&NodeId| graph.node(**id).is_ok_and(|node| node.num_users() == 0);
    let results: Vec<Argument> = nodes.iter().filter(unused).map(|id| (*id).into()).collect();
    graph.output(Argument::Tuple(Arc::new(results)))?;
    GraphModule::new(Default::default(), graph, "Random")
}

/// Calls of some numbers, in graph order.
fn among(flags: Vec<bool>, gm: &GraphModule) -> impl OperatorSupport {
    let nodes: Vec<NodeId> = gm.graph().nodes().skip(1).map(|node| node.id()).collect();
    move |call: &Call<'_>, _: &Metas<'_>| {
        let at = nodes.iter().position(|id| *id == call.node().id());
        match at.and_then(|at| flags.get(at)) {
            Some(true) => Support::Yes,
            _ => Support::no("it is not among them"),
        }
    }
}

/// Splits a graph by regions.
fn split(gm: &GraphModule, regions: &[Region]) -> Result<GraphModule> {
    let split = gm.split(&SplitOptions::new(), |node| {
        let at = regions
            .iter()
            .position(|region| region.nodes().contains(&node.id()))?;
        Some(format!("part_{at}"))
    })?;
    split.module.lint()?;
    Ok(split.module)
}

#[test]
fn as_many_partitions_as_torch_fx_makes() -> Result<()> {
    let mut graphs = 0;
    for line in include_str!("partition/partitions.txt").lines() {
        let mut words = line.split(' ');
        let count: usize = words
            .next()
            .unwrap_or_default()
            .parse()
            .map_err(Error::other)?;
        let (mut calls, mut flags) = (Vec::new(), Vec::new());
        for word in words {
            flags.push(word.ends_with('+'));
            let inputs = word.trim_end_matches('+').split(',');
            calls.push(inputs.map(|at| at.parse().ok()).collect());
        }
        let gm = graph_of(&calls)?;
        let regions = Partitioner::new().partition(&gm, &among(flags.clone(), &gm))?;
        assert_eq!(regions.len(), count, "{line}");
        let taken: usize = regions.iter().map(|region| region.nodes().len()).sum();
        assert_eq!(taken, flags.iter().filter(|flag| **flag).count(), "{line}");
        // Parts in a circle are refused.
        split(&gm, &regions)?;
        graphs += 1;
    }
    assert_eq!(graphs, 200);
    Ok(())
}

proptest! {
    #[test]
    fn a_partitioned_graph_computes_the_same(
        choices in prop::collection::vec((any::<u8>(), any::<Option<u8>>(), any::<bool>()), 1..40),
        horizontal in any::<bool>(),
        min_nodes in 1usize..4,
    ) {
        let pick = |choice: u8, at: usize| usize::from(choice).checked_rem(at + 1).and_then(|n| n.checked_sub(1));
        let calls: Vec<Vec<Option<usize>>> = choices.iter().enumerate().map(|(at, (a, b, _))| {
            [Some(*a), *b].into_iter().flatten().map(|choice| pick(choice, at)).collect()
        }).collect();
        let flags: Vec<bool> = choices.iter().map(|(_, _, flag)| *flag).collect();
        let gm = graph_of(&calls)?;
        let partitioner = Partitioner::new().horizontal(horizontal).min_nodes(min_nodes);
        let regions = partitioner.partition(&gm, &among(flags, &gm))?;
        prop_assert!(regions.iter().all(|region| region.nodes().len() >= min_nodes));
        let split = split(&gm, &regions)?;
        prop_assert_eq!(split.forward::<Value>(3.0)?.to_string(), gm.forward::<Value>(3.0)?.to_string());
    }
}

#[test]
fn effects_keep_their_order() -> Result<()> {
    #[wrap(impure)]
    fn draw(x: Float) -> Result<Float> {
        Ok(x)
    }
    #[wrap(impure)]
    fn note(x: Float) -> Result<Float> {
        Ok(x)
    }
    // Without effects, both draws would be one part.
    let gm = symbolic_trace(traced!(|x: Float| Ok((draw(x)?, note(x)?, draw(x)?))))?;
    let regions = Partitioner::new().partition(&gm, &functions([function!(draw)]))?;
    assert_eq!(regions.len(), 2);
    split(&gm, &regions)?;
    Ok(())
}

/// Runs sums of floats; products join them.
struct Sums {
    fails: bool,
}

/// The part, with a mark that shows who ran.
struct Code(GraphModule);

impl Executable for Code {
    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        self.0.run(inputs, out)?;
        if let Value::Float(x) = out {
            *out = Value::Float(*x + 1000.0);
        }
        Ok(())
    }

    fn steps(&self) -> Vec<StepReport> {
        let nodes = self.0.graph().nodes().map(|node| node.name().to_string());
        vec![StepReport::new("all", nodes)]
    }
}

impl Backend for Sums {
    fn name(&self) -> &str {
        "sums"
    }

    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        match call.function() {
            Some(function) if function == operator::add => Support::Yes,
            Some(function) if function == operator::mul => Support::IfFused,
            _ => Support::No(format!("{} inputs", metas.inputs().count()).into()),
        }
    }

    fn compile(
        &self,
        part: &GraphModule,
        inputs: &[Option<ValueMeta>],
    ) -> Result<Arc<dyn Executable>> {
        assert_eq!(inputs.len(), part.graph().placeholders().count());
        match self.fails {
            true => Err(Error::msg("the engine is out of order")),
            false => Ok(Arc::new(Code(part.clone()))),
        }
    }
}

fn net() -> Result<GraphModule> {
    // A product alone between two quotients is no part.
    symbolic_trace(traced!(|x: Float| {
        let y = (((x + 1.0)? * 2.0)? / 4.0)?;
        ((y * 3.0)? / 5.0)? + 0.5
    }))
}

#[test]
fn lowered_parts_run_the_code_and_come_back() -> Result<()> {
    let gm = net()?;
    let mut lowered = gm.clone();
    let report = lowered.lower(&Sums { fails: false })?;
    let paths: Vec<&str> = report.parts.iter().map(|part| &*part.path).collect();
    assert_eq!(paths, ["sums_0", "sums_1"]);
    let left: Vec<String> = report.left.iter().map(ToString::to_string).collect();
    let expected = [
        "%truediv: 1 inputs",
        "%truediv_1: 1 inputs",
        "%mul_1: its part is not worth it",
    ];
    assert_eq!(left, expected);
    assert!(report.left[0].location.is_some());

    // ((x + 1) * 2 + 1000) / 4 * 3 / 5 + 0.5 + 1000
    assert_eq!(lowered.forward::<f64>(1.0)?, 1151.1);
    let part = lowered.submodule_as::<GraphModule>("sums_0")?;
    let compiled = part
        .compiled()
        .ok_or_else(|| Error::msg("the code is there"))?;
    assert_eq!(compiled.backend(), "sums");
    assert_eq!(compiled.steps()[0].nodes, ["x", "add", "mul", "output"]);
    assert!(
        lowered.print_readable().contains("mul = "),
        "the source of the part is printed"
    );

    // A copy has the code, a file has the source.
    assert_eq!(lowered.clone().forward::<f64>(1.0)?, 1151.1);
    let loaded = GraphModule::from_bytes(&lowered.to_bytes()?)?;
    assert_eq!(loaded.forward::<f64>(1.0)?, gm.forward::<f64>(1.0)?);

    // Who looks at each step sees the source.
    let mut seen = 0;
    let watched = lowered.submodule_as::<GraphModule>("sums_0")?;
    let source: f64 = watched.forward_observed(1.0, |_, _| {
        seen += 1;
        Ok(())
    })?;
    assert_eq!((source, seen), (4.0, 2));

    // An edited part runs its graph.
    let mut edited = lowered.clone();
    let part = edited.submodule_as_mut::<GraphModule>("sums_0")?;
    let add = part.graph().find_name("add").map(|node| node.id());
    let add = add.ok_or_else(|| Error::msg("it adds"))?;
    let x = part.graph().placeholders().next().map(|node| node.id());
    let x = x.ok_or_else(|| Error::msg("it has an input"))?;
    part.graph_mut().node_mut(add)?.set_args((x, 2.0))?;
    assert!(part.compiled().is_none());
    assert_eq!(edited.forward::<f64>(1.0)?, 1001.4);

    assert_eq!(lowered.decompile()?, 2);
    assert_eq!(lowered.structural_hash(), gm.structural_hash());
    assert_eq!(lowered.decompile()?, 0);
    Ok(())
}

/// Adds up, with what it multiplies for that: those sums of which something is known.
struct SumsOfProducts;

impl Backend for SumsOfProducts {
    fn name(&self) -> &str {
        "sums"
    }

    fn supports(&self, call: &Call<'_>, _: &Metas<'_>) -> Support {
        match call.function() {
            Some(function) if function == operator::mul => Support::WithReader,
            Some(function) if function == operator::add => match call.node().meta::<ValueMeta>() {
                Some(_) => Support::Yes,
                None => Support::no("nothing is known of it"),
            },
            _ => Support::no("it is no sum"),
        }
    }

    fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Code(part.clone())))
    }
}

#[test]
fn each_part_has_its_own_call_of_what_goes_with_a_reader() -> Result<()> {
    let f = traced!(|x: Float| {
        let (y, z) = ((x * 2.0)?, (x * 7.0)?);
        let a = (y + 1.0)?;
        // Behind a quotient is another part; a product that no part reads stands in the first one.
        (((a / 3.0)? + y)? - z)? / 2.0
    });
    let mut gm = symbolic_trace(f)?;
    let expected: f64 = gm.forward(4.0)?;
    // Products, of which nothing is known, are copied for their readers; what is known of these holds.
    let is_sum = |node: &NodeRef<'_>| node.function() == Some(operator::add);
    let sums: Vec<NodeId> = (gm.graph().nodes().filter(is_sum))
        .map(NodeRef::id)
        .collect();
    for id in sums {
        let meta = ValueMeta::from(TensorMeta::new([0i64; 0]));
        gm.graph_mut().node_mut(id)?.set_meta(meta);
    }
    let report = gm.lower(&SumsOfProducts)?;
    assert_eq!(report.parts.len(), 2);
    for (part, count) in report.parts.iter().zip([2, 1]) {
        let part = gm.submodule_as::<GraphModule>(&part.path)?;
        let names: Vec<String> = (part.graph().nodes())
            .filter(|node| node.function() == Some(operator::mul))
            .map(|node| node.name().to_string())
            .collect();
        assert_eq!(names.len(), count, "{}", part.print_readable());
        assert!(
            part.graph()
                .placeholders()
                .all(|x| !x.name().to_string().starts_with("mul"))
        );
    }
    // The second part adds 1000; the first one gives two numbers.
    let found: f64 = gm.forward(4.0)?;
    assert!((found - (expected + 500.0)).abs() < 1e-9);
    Ok(())
}

/// Adds up, and counts the runs of graphs with several parts.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicUsize>);

impl Around for Counted {
    fn run(&self, graph: &mut (dyn FnMut() + Send)) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(graph);
        });
    }
}

impl Backend for Counted {
    fn name(&self) -> &str {
        "sums"
    }

    fn supports(&self, call: &Call<'_>, _: &Metas<'_>) -> Support {
        match call.function() == Some(operator::add) {
            true => Support::Yes,
            false => Support::no("it is no sum"),
        }
    }

    fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
        struct Part(GraphModule, Counted);
        impl Executable for Part {
            fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
                self.0.run(inputs, out)
            }

            fn around(&self) -> Option<Arc<dyn Around>> {
                Some(Arc::new(self.1.clone()))
            }
        }
        Ok(Arc::new(Part(part.clone(), self.clone())))
    }
}

#[test]
fn a_graph_of_several_parts_runs_in_what_they_ask_for() -> Result<()> {
    struct Sees;
    impl Mode for Sees {
        fn call(&self, call: ModeCall<'_>, next: Next<'_>) -> Result<Value> {
            next.call(call)
        }
    }
    #[wrap(impure)]
    fn note(x: Float) -> Result<Float> {
        Ok(x)
    }
    #[wrap]
    fn positive(x: Float) -> Result<Float> {
        match x.concrete() {
            Some(number) if number < 0.0 => Err(Error::msg("less than nothing")),
            _ => Ok(x),
        }
    }
    let two = symbolic_trace(traced!(|x: Float| ((x + 1.0)? / 2.0)? + 3.0))?;
    let one = symbolic_trace(traced!(|x: Float| ((x + 1.0)? + 3.0)? / 2.0))?;
    let noted = symbolic_trace(traced!(|x: Float| note((x + 1.0)?)? + 3.0))?;
    for (gm, times) in [(&two, 1), (&one, 0), (&noted, 0)] {
        let backend = Counted::default();
        let mut lowered = gm.clone();
        lowered.lower(&backend)?;
        let count = || backend.0.swap(0, Ordering::Relaxed);
        for x in [1.0, 2.0] {
            assert_eq!(lowered.forward::<f64>(x)?, gm.forward::<f64>(x)?);
            assert_eq!(count(), times);
        }
        // A mode sees calls on its thread.
        with_mode(Rc::new(Sees), || lowered.forward::<f64>(1.0))?;
        assert_eq!(count(), 0);
        // After an edit that takes the code away, nothing asks.
        lowered.decompile()?;
        lowered.forward::<f64>(1.0)?;
        assert_eq!(count(), 0);
    }
    // An error comes out as it is.
    let mut checked = symbolic_trace(traced!(|x: Float| positive((x + 1.0)?)? + 3.0))?;
    let expected = checked.forward::<f64>(-5.0).map_err(|e| e.to_string());
    let backend = Counted::default();
    checked.lower(&backend)?;
    assert_eq!(
        checked.forward::<f64>(-5.0).map_err(|e| e.to_string()),
        expected
    );
    assert_eq!(backend.0.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn a_part_that_cannot_be_compiled_stays() -> Result<()> {
    let mut gm = net()?;
    let before = gm.structural_hash();
    let report = gm.lower(&Sums { fails: true })?;
    assert!(report.parts.is_empty());
    assert_eq!(report.failed.len(), 2);
    assert!(
        report
            .to_string()
            .contains("failed: sums_0: the engine is out of order"),
        "{report}"
    );
    assert_eq!(gm.structural_hash(), before);
    Ok(())
}

/// Adds up in its own way, and is wrong for parts that hold all of these nodes.
struct WrongFor(Vec<&'static str>);

impl Backend for WrongFor {
    fn name(&self) -> &str {
        "wrong"
    }

    fn supports(&self, _: &Call<'_>, _: &Metas<'_>) -> Support {
        Support::Yes
    }

    fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
        /// The part as it is.
        struct AsItIs(GraphModule);
        impl Executable for AsItIs {
            fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
                self.0.run(inputs, out)
            }
        }
        let is_call = |node: &NodeRef<'_>| !matches!(node.op(), Op::Placeholder(_));
        let holds = |name: &&str| part.graph().find_name(name).filter(is_call).is_some();
        match self.0.iter().all(holds) {
            true => Ok(Arc::new(Code(part.clone()))),
            false => Ok(Arc::new(AsItIs(part.clone()))),
        }
    }
}

#[test]
fn the_smallest_part_that_is_wrong_is_found() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| {
        let y = (((x + 1.0)? * 2.0)? / 4.0)?;
        ((y - 3.0)? / 5.0)? + 0.5
    }))?;
    for names in [
        vec!["add"],
        vec!["truediv"],
        vec!["add_1"],
        vec!["mul", "truediv"],
        vec!["mul", "sub"],
    ] {
        let backend = WrongFor(names.clone());
        let minimizer = Minimizer::new(&backend);
        let found = minimizer
            .run(&gm, 1.0)?
            .ok_or_else(|| Error::msg("it is wrong"))?;
        // What is between the two is part of it.
        let expected = match names.as_slice() {
            ["mul", "sub"] => vec!["mul", "truediv", "sub"],
            names => names.to_vec(),
        };
        assert_eq!(found.nodes, expected);
        assert!(found.compilations <= 8, "{}", found.compilations);
        let text = found.to_string();
        assert!(
            text.contains("tests/partition.rs:") && text.contains(" is expected"),
            "{text}"
        );
        let path = std::env::temp_dir().join(format!(
            "fx-minimized-{}-{}.fx",
            std::process::id(),
            names.join("-")
        ));
        found.save(&path)?;
        let loaded = GraphModule::load(&path)?;
        std::fs::remove_file(&path).map_err(Error::other)?;
        assert!(minimizer.check(&loaded, ())?.is_some());
        assert!(minimizer.check(&gm, 1.0)?.is_some());
    }
    assert!(
        Minimizer::new(&WrongFor(vec!["nowhere"]))
            .run(&gm, 1.0)?
            .is_none()
    );
    let broken = Minimizer::new(&Sums { fails: true }).run(&gm, 1.0)?;
    let problem = broken.map(|found| found.problem).unwrap_or_default();
    assert_eq!(problem, "the engine is out of order");
    Ok(())
}
