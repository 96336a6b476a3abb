//! Regression tests for defects in tracing, each named by its number.

use fx_core::ir::{Graph, NewNode, Op, ValueMeta};
use fx_core::module::Attributes;
use fx_core::operator;
use fx_core::passes::{Cse, Decompositions, FoldConstants, pass_fn};
use fx_core::pattern::replace_pattern;
use fx_core::prelude::*;
use fx_core::trace::Frozen;
use fx_core::value::NodeId;

#[wrap]
fn silu(x: Float) -> Result<Float> {
    x * 0.5
}

#[wrap]
fn sigmoid(x: Float) -> Result<Float> {
    x + 1.0
}

#[wrap]
fn tanh(x: Float) -> Result<Float> {
    x - 1.0
}

#[trace]
fn scaled(x: Float, by: Option<Float>) -> Result<Float> {
    match by {
        Some(by) => x * by,
        None => Ok(x),
    }
}

#[trace]
fn branching(x: Float, by: Option<Float>) -> Result<Float> {
    if by.is_some() { x * 2.0 } else { Ok(x) }
}

fn known(gm: &GraphModule) -> Vec<String> {
    let nodes = gm.graph().nodes();
    let known = nodes.filter(|node| node.meta::<ValueMeta>().is_some());
    known.map(|node| node.name().to_string()).collect()
}

fn id(gm: &GraphModule, name: &str) -> Result<NodeId> {
    let node = gm.graph().find_name(name);
    node.map(|node| node.id())
        .ok_or_else(|| Error::msg(format_args!("no %{name}")))
}

/// x -> mul -> add -> sub -> output, with everything known.
fn chain() -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|x: Float| ((x * 2.0)? + 1.0)? - 3.0))?;
    gm.propagate_shapes(1.5)?;
    assert_eq!(known(&gm), ["x", "mul", "add", "sub", "output"]);
    Ok(gm)
}

#[test]
fn defect_b01_an_open_option_is_traced_as_absent() -> Result<()> {
    let gm = symbolic_trace(traced!(branching))?;
    assert_eq!(gm.forward::<f64>(1.5)?, 1.5);
    let report = Trace::new(traced!(branching)).report()?;
    assert_eq!(report.to_string(), "argument `by` = None (guarded)\n");
    for given in [
        gm.forward::<f64>((1.5, 3.0)),
        gm.forward::<f64>(args![1.5, by = 3.0]),
    ] {
        let error = given.unwrap_err().to_string();
        assert!(error.contains(".concrete(\"by\", PH)"), "{error}");
    }
    // Without guards the argument has the value that it was specialised to.
    let open = Trace::new(traced!(branching)).unguarded().graph_module()?;
    assert_eq!(open.forward::<f64>((1.5, 3.0))?, 1.5);
    // The generated source refuses what the program refuses.
    let code = gm.code();
    assert!(code.contains("by.is_some()"), "{code}");
    Ok(())
}

#[test]
fn defect_b01_an_option_bound_as_there_is_needed() -> Result<()> {
    for f in [traced!(branching), traced!(scaled)] {
        let trace = || Trace::new(f.clone()).concrete("by", PH);
        assert_eq!(
            trace().report()?.to_string(),
            "argument `by` is there (guarded)\n"
        );
        let gm = trace().graph_module()?;
        assert_eq!(gm.forward::<f64>((1.5, 2.0))?, 3.0);
        assert_eq!(gm.forward::<f64>(args![1.5, by = 2.0])?, 3.0);
        let missing = gm.forward::<f64>(1.5).unwrap_err().to_string();
        assert!(missing.contains("missing its argument `by`"), "{missing}");
        for none in [
            gm.forward::<f64>((1.5, None::<f64>)),
            gm.interpret::<f64>(&mut fx_core::run::PlainInterpreter, (1.5, None::<f64>)),
        ] {
            let error = none.unwrap_err().to_string();
            assert!(
                error.contains("which was there when this was traced"),
                "{error}"
            );
        }
        let code = gm.code();
        assert!(code.contains("`by` is missing: it was there"), "{code}");
        // Traced again, it is needed again, and also when loaded from a file.
        let again = symbolic_trace(&gm)?;
        assert_eq!(again.forward::<f64>((1.5, 2.0))?, 3.0);
        assert!(again.forward::<f64>(1.5).is_err());
        let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
        assert!(loaded.forward::<f64>((1.5, None::<f64>)).is_err());
    }
    Ok(())
}

#[test]
fn defect_b01_other_defaults_stay() -> Result<()> {
    #[trace]
    fn shifted(x: Float, #[default(2.0)] by: Float) -> Result<Float> {
        x + by
    }
    let gm = symbolic_trace(traced!(shifted))?;
    assert_eq!(gm.forward::<f64>(1.5)?, 3.5);
    assert_eq!(gm.forward::<f64>((1.5, 1.0))?, 2.5);
    assert!(Trace::new(traced!(shifted)).report()?.is_empty());
    let tree = Trace::new(traced!(scaled)).concrete("by", None::<f64>);
    assert_eq!(tree.graph_module()?.forward::<f64>(1.5)?, 1.5);
    Ok(())
}

#[test]
fn defect_b02_edits_of_a_node_reach_what_depends_on_it() -> Result<()> {
    type Edit = fn(&mut GraphModule) -> Result<()>;
    let edits: [(&str, Edit); 9] = [
        ("set_op", |gm| {
            let mul = id(gm, "mul")?;
            gm.graph_mut()
                .node_mut(mul)?
                .set_op(Op::CallFunction(operator::add))
        }),
        ("set_args", |gm| {
            let (mul, x) = (id(gm, "mul")?, id(gm, "x")?);
            gm.graph_mut().node_mut(mul)?.set_args((x, 5.0))
        }),
        ("update_arg", |gm| {
            let mul = id(gm, "mul")?;
            gm.graph_mut().node_mut(mul)?.update_arg(1, 5.0)
        }),
        ("update_kwarg", |gm| {
            let (mul, x) = (id(gm, "mul")?, id(gm, "x")?);
            gm.graph_mut().node_mut(mul)?.set_args((x,))?;
            gm.graph_mut().node_mut(mul)?.update_kwarg("b", 5.0)
        }),
        ("retarget", |gm| {
            gm.retarget(
                &Op::CallFunction(operator::mul),
                Op::CallFunction(operator::add),
            )
            .map(drop)
        }),
        ("replace_pattern", |gm| {
            replace_pattern(gm, traced!(|x: Float| x * 2.0), traced!(|x: Float| x * 3.0)).map(drop)
        }),
        ("replace_pattern by a literal", |gm| {
            replace_pattern(
                gm,
                traced!(|x: Float| x * 2.0),
                traced!(|_x: Float| Ok(Float::from(4.0))),
            )
            .map(drop)
        }),
        ("append_before", |gm| {
            let mul = id(gm, "mul")?;
            gm.append_before(mul, |cx| {
                let x = cx.graph()?.node(mul)?.args()[0].as_node();
                let x: Float = cx.proxy(x.ok_or_else(|| Error::msg("a node"))?).to()?;
                x + 1.0
            })
            .map(drop)
        }),
        ("decompositions", |gm| {
            let table = Decompositions::new().rule(operator::mul, |call| {
                let x: Float = call.arg("a")?;
                x + 7.0
            });
            gm.apply(&table).map(drop)
        }),
    ];
    for (what, edit) in edits {
        let mut gm = chain()?;
        edit(&mut gm)?;
        let left = known(&gm);
        assert!(left.contains(&"x".to_string()), "{what}");
        let entries = |gm: &GraphModule| -> Vec<Option<String>> {
            let of = |name: &String| {
                gm.graph()
                    .find_name(name)?
                    .meta::<ValueMeta>()
                    .map(ValueMeta::to_string)
            };
            left.iter().map(of).collect()
        };
        // What is known is true: after propagation it is the same, and everything is known again.
        let before = entries(&gm);
        gm.propagate_shapes(1.5)?;
        assert_eq!(before, entries(&gm), "{what}: {left:?}");
        assert_eq!(known(&gm).len(), gm.graph().len(), "{what}");
    }
    Ok(())
}

#[test]
fn defect_b02_edits_of_uses_reach_what_depends_on_them() -> Result<()> {
    type Edit = fn(&mut Graph, NodeId, NodeId, NodeId) -> Result<()>;
    let edits: [(&str, Edit); 3] = [
        ("replace_all_uses_with", |graph, mul, new, _| {
            graph.node_mut(mul)?.replace_all_uses_with(new).map(drop)
        }),
        ("replace_uses_with_filter", |graph, mul, new, _| {
            graph
                .node_mut(mul)?
                .replace_uses_with_filter(new, |_| true)
                .map(drop)
        }),
        ("replace_input_with", |graph, mul, new, add| {
            graph.node_mut(add)?.replace_input_with(mul, new)
        }),
    ];
    for (what, edit) in edits {
        for tells in [None, Some(3.0), Some(4.0)] {
            let mut gm = chain()?;
            let (x, mul, add) = (id(&gm, "x")?, id(&gm, "mul")?, id(&gm, "add")?);
            let mut graph = gm.graph_mut();
            let new = graph
                .inserting_after(mul)?
                .call_function(operator::add, (x, x), ())?;
            if let Some(number) = tells {
                graph
                    .node_mut(new)?
                    .set_meta(ValueMeta::Float(Some(number)));
            }
            edit(&mut graph, mul, new, add)?;
            drop(graph);
            // A node with the same value keeps what is known after it.
            let stays = tells == Some(3.0);
            for name in ["add", "sub", "output"] {
                assert_eq!(
                    known(&gm).iter().any(|known| known == name),
                    stays,
                    "{what}, {tells:?}, %{name}"
                );
            }
        }
    }
    Ok(())
}

#[derive(Module, Clone)]
struct Scale {
    by: f64,
}

#[trace(leaf)]
impl Scale {
    fn forward(&self, x: Float) -> Result<Float> {
        x * self.by
    }
}

#[derive(Module, Clone)]
struct Net {
    first: Scale,
    second: Scale,
}

#[trace]
impl Net {
    fn forward(&self, x: Float) -> Result<(Float, Float)> {
        let first = self.first.forward(x)?;
        Ok((self.second.forward((first + 1.0)?)?, (x * 2.0)?))
    }
}

fn net() -> Result<GraphModule> {
    let (first, second) = (Scale { by: 2.0 }, Scale { by: 3.0 });
    let mut gm = symbolic_trace(&Net { first, second })?;
    gm.propagate_shapes(1.5)?;
    assert_eq!(known(&gm), ["x", "first", "add", "second", "mul", "output"]);
    Ok(gm)
}

#[test]
fn defect_b02_a_module_in_anothers_place_is_an_edit() -> Result<()> {
    let mut gm = net()?;
    gm.set_submodule("second", Scale { by: 5.0 })?;
    assert_eq!(known(&gm), ["x", "first", "add", "mul"]);
    let mut gm = net()?;
    gm.set_submodule_of_same_shapes("second", Scale { by: 5.0 })?;
    assert_eq!(known(&gm).len(), 6);
    let mut gm = net()?;
    gm.add_submodule("first", Scale { by: 5.0 })?;
    assert_eq!(known(&gm), ["x", "mul"]);
    let mut gm = net()?;
    let surgery = gm.replace_modules("first", |_, old: &Scale| Ok(old.clone()))?;
    assert_eq!(known(&gm), ["x", "mul"]);
    gm.propagate_shapes(1.5)?;
    surgery.undo(&mut gm)?;
    assert_eq!(known(&gm), ["x", "mul"]);
    Ok(())
}

#[test]
fn defect_b02_passes_that_keep_results_keep_what_is_known() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| {
        let (a, b) = ((x + 1.0)?, (x + 1.0)?);
        ((a * b)? - a)? / b
    }))?;
    gm.propagate_shapes(1.5)?;
    let all = |gm: &GraphModule, what: &str| {
        assert_eq!(known(gm).len(), gm.graph().len(), "{what}: {:?}", known(gm));
    };
    gm.apply(&Cse::new())?;
    all(&gm, "Cse");
    gm.apply(&fx_core::passes::NormalizeArguments::by_name())?;
    all(&gm, "by name");
    gm.apply(&fx_core::passes::NormalizeArguments::canonical())?;
    all(&gm, "canonical");
    gm.apply(&fx_core::passes::Canonicalize)?;
    all(&gm, "Canonicalize");
    let parts = [id(&gm, "add")?, id(&gm, "mul")?];
    let call = gm.lift_subgraph(&parts, "part")?;
    all(&gm, "lift_subgraph");
    let inner = gm.submodule_as::<GraphModule>("part")?;
    // The output is made by the lift.
    assert_eq!(known(inner).len() + 1, inner.graph().len());
    gm.inline_module(call)?;
    all(&gm, "inline_module");
    let again = gm.transform(&mut fx_core::run::PlainInterpreter)?;
    assert_eq!(known(&again).len() + 1, again.graph().len());
    let compact = gm.graph().compact()?;
    assert!(
        compact
            .nodes()
            .all(|node| node.meta::<ValueMeta>().is_some())
    );
    Ok(())
}

#[test]
fn defect_b02_a_transform_that_changes_a_step_forgets_what_follows() -> Result<()> {
    struct Subtracting;
    impl fx_core::run::Interpreter for Subtracting {
        fn call_function(
            &mut self,
            run: &mut fx_core::run::Interpretation<'_>,
            function: fx_core::ir::Function,
            call: fx_core::trace::CallArgs,
        ) -> Result<Value> {
            let is_add = function == operator::add;
            run.call_function(if is_add { operator::sub } else { function }, call)
        }
    }
    let gm = chain()?;
    let new = gm.transform(&mut Subtracting)?;
    assert_eq!(known(&new), ["x", "mul"]);
    Ok(())
}

#[test]
fn defect_b02_a_copy_for_another_input_knows_nothing_of_its_own() -> Result<()> {
    let gm = chain()?;
    for (told, expected) in [(1.5, true), (2.5, false)] {
        let mut graph = Graph::new();
        let y = graph.placeholder("y")?;
        graph.node_mut(y)?.set_meta(ValueMeta::Float(Some(told)));
        let mut map = fx_core::ir::ValueMap::default();
        map.insert(id(&gm, "x")?, y.into());
        let copied = graph.graph_copy(gm.graph(), &mut map)?;
        let copied = copied.and_then(|copied| copied.as_node());
        let copied = copied.ok_or_else(|| Error::msg("a node"))?;
        assert_eq!(graph.node(copied)?.meta::<ValueMeta>().is_some(), expected);
        let mul = gm.graph().node(id(&gm, "mul")?)?;
        let one = graph.node_copy(mul, |_| y.into())?;
        assert_eq!(graph.node(one)?.meta::<ValueMeta>().is_some(), expected);
    }
    Ok(())
}

/// Edits in a loop pay for each node once: forgetting again from the front of a long graph walks
/// nothing.
#[test]
fn defect_b02_edits_in_a_loop_stay_linear() -> Result<()> {
    const NODES: usize = 100_000;
    let mut graph = Graph::with_capacity(NODES);
    let x = graph.placeholder("x")?;
    let mut last = x;
    let mut nodes = Vec::with_capacity(NODES);
    for _ in 0..NODES {
        last = graph.call_function(operator::add, (last, 1.0), ())?;
        nodes.push(last);
    }
    graph.output(last)?;
    for node in &nodes {
        graph.node_mut(*node)?.set_meta(ValueMeta::Int(1.into()));
    }
    let start = std::time::Instant::now();
    for node in &nodes {
        graph.node_mut(*node)?.update_arg(1, 2.0)?;
    }
    for node in &nodes {
        graph.node_mut(*node)?.set_meta(ValueMeta::Int(1.into()));
    }
    for (at, node) in nodes.iter().enumerate().rev() {
        graph.node_mut(*node)?.update_arg(1, 3.0)?;
        if at % 2 == 0 {
            graph.node_mut(*node)?.set_meta(ValueMeta::Int(1.into()));
        }
    }
    let time = start.elapsed();
    assert!(
        graph
            .nodes()
            .filter(|n| n.meta::<ValueMeta>().is_some())
            .count()
            <= 1
    );
    // A walk for each edit would be 5 * 10^9 steps.
    assert!(time.as_secs() < 10, "{time:?}");
    Ok(())
}

#[test]
fn defect_b05_provenance_goes_through_what_passes_made() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| silu(x)? + 1.0))?;
    let table = Decompositions::new().rule(function!(silu), |call| {
        let x: Float = call.arg("x")?;
        x * sigmoid(x)?
    });
    gm.apply(&table)?;
    let old = id(&gm, "sigmoid")?;
    assert_eq!(gm.graph().node(old)?.sources()[0].from, ["silu"]);
    gm.apply(&pass_fn("to tanh", move |gm| {
        let mut graph = gm.graph_mut();
        let x = graph.node(old)?.args()[0].clone();
        let op = Op::CallFunction(function!(tanh));
        let new = graph
            .inserting_before(old)?
            .add(NewNode::new(op).args((x,)))?;
        graph.node_mut(old)?.replace_all_uses_with(new)?;
        graph.erase_node(old)?;
        Ok(true)
    }))?;
    let story = gm.graph().explain(id(&gm, "tanh")?)?;
    for part in [
        "made by pass `Decompositions` from %silu",
        "made by pass `to tanh`",
        "stands for %sigmoid since pass `to tanh`",
        "tracing.rs",
    ] {
        assert!(story.contains(part), "{part} is not in {story}");
    }
    Ok(())
}

#[test]
fn defect_b05_a_replacement_tells_what_it_was_made_from() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| silu(x)? + 1.0))?;
    let rule = fx_core::pattern::Rule::new(
        traced!(|x: Float| silu(x)),
        traced!(|x: Float| x * sigmoid(x)?),
    )?;
    let rules = fx_core::pattern::Rewriter::new().rule(rule);
    gm.apply(&rules)?;
    let story = gm.graph().explain(id(&gm, "sigmoid")?)?;
    assert!(story.contains("from %silu"), "{story}");
    Ok(())
}

#[test]
fn defect_b07_the_stack_of_a_call_has_the_called_module() -> Result<()> {
    #[derive(Module)]
    struct Block {
        scale: Scale,
    }
    #[trace]
    impl Block {
        fn forward(&self, x: Float) -> Result<Float> {
            self.scale.forward((x + 1.0)?)
        }
    }
    #[derive(Module)]
    struct Twice {
        block: Block,
    }
    #[trace]
    impl Twice {
        fn forward(&self, x: Float) -> Result<Float> {
            self.block.forward(self.block.forward(x)?)
        }
    }
    let model = Twice {
        block: Block {
            scale: Scale { by: 2.0 },
        },
    };
    let gm = symbolic_trace(&model)?;
    let stack = |gm: &GraphModule, name: &str| -> Result<Vec<String>> {
        let node = gm.graph().node(id(gm, name)?)?;
        let scopes = node.module_stack();
        Ok(scopes.map(|s| format!("{}@{}", s.path, s.call)).collect())
    };
    let loaded = { gm.transform(&mut fx_core::run::PlainInterpreter)? };
    for gm in [&gm, &loaded] {
        assert_eq!(stack(gm, "add")?, ["block@0", "@0"]);
        assert_eq!(
            stack(gm, "block_scale")?,
            ["block.scale@0", "block@0", "@0"]
        );
        assert_eq!(stack(gm, "add_1")?, ["block@1", "@0"]);
        assert_eq!(
            stack(gm, "block_scale_1")?,
            ["block.scale@1", "block@1", "@0"]
        );
    }
    let scale = gm.graph().node(id(&gm, "block_scale")?)?;
    let called = scale.module_stack().next();
    assert!(called.is_some_and(|scope| scope.type_name.ends_with("Scale")));
    Ok(())
}

#[test]
fn defect_b09_what_is_folded_keeps_its_shape() -> Result<()> {
    // Plain values here; tensors in the tests of fx-nn.
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let two = graph.call_function(operator::add, (1, 1), ())?;
    let y = graph.call_function(operator::mul, (x, two), ())?;
    graph.output(y)?;
    for lazy in [false, true] {
        let mut gm = GraphModule::new(Attributes::default(), graph.clone(), "Doubled")?;
        gm.propagate_shapes(3)?;
        let pass = FoldConstants::new();
        gm.apply(&if lazy { pass.lazily() } else { pass })?;
        assert_eq!(known(&gm).len(), gm.graph().len());
    }
    Ok(())
}

#[test]
fn defect_n06_questions_that_are_answered_are_reported() -> Result<()> {
    let told = |report: fx_core::trace::Report| -> Vec<(&'static str, String, String)> {
        let entries = report.entries().iter();
        let answers = entries.filter_map(|entry| match &entry.what {
            Frozen::Answer {
                question,
                of,
                answer,
            } => {
                let location = entry.location.as_ref();
                assert!(location.is_some_and(|l| l.file.ends_with("tracing.rs")));
                Some((*question, of.clone(), answer.clone()))
            }
            _ => None,
        });
        answers.collect()
    };
    let answer = |q: &'static str, of: &str, a: &str| (q, of.to_string(), a.to_string());
    let f = traced!(|n: Int| if n.concrete() == Some(1) {
        n + 10
    } else {
        n * 2
    });
    assert_eq!(
        told(Trace::new(f).report()?),
        [answer("concrete", "%n", "None")]
    );
    let f = traced!(|n: Bool| Ok(Float::from(if n.concrete().unwrap_or(true) {
        1.0
    } else {
        2.0
    })));
    assert_eq!(
        told(Trace::new(f).report()?),
        [answer("concrete", "%n", "None")]
    );
    let f = traced!(|n: List<Int>| n.get(n.known_len().unwrap_or(0) + n.known().len()));
    assert_eq!(
        told(Trace::new(f).report()?),
        [
            answer("known_len", "%n", "None"),
            answer("known", "%n", "[]")
        ]
    );
    let f = traced!(|x: Float| if fx_core::trace::is_tracing() {
        x + 1.0
    } else {
        Ok(x)
    });
    assert_eq!(
        told(Trace::new(f).report()?),
        [answer("is_tracing", "the program", "true")]
    );
    Ok(())
}

/// Modules without data are distinguished by their tags.
#[test]
fn defect_m01_modules_without_fields_are_told_apart() -> Result<()> {
    #[derive(Module, Clone, Default)]
    struct Double {
        tag: Tag,
    }
    #[trace(leaf)]
    impl Double {
        fn forward(&self, x: Float) -> Result<Float> {
            x * 2.0
        }
    }
    // A custom wrapper type has the address of what is inside it.
    #[derive(Module, Clone, Default)]
    struct Wrapped {
        inner: Double,
        marker: std::marker::PhantomData<f64>,
        nothing: (),
    }
    #[trace]
    impl Wrapped {
        fn forward(&self, x: Float) -> Result<Float> {
            self.inner.forward(x)
        }
    }
    #[derive(Module, Clone, Default)]
    struct Holder {
        a: Vec<Double>,
        b: [Double; 2],
        c: (Wrapped, Wrapped),
        none: [Double; 0],
    }
    #[trace]
    impl Holder {
        fn forward(&self, mut x: Float) -> Result<Float> {
            for layer in self.a.iter().chain(&self.b) {
                x = layer.forward(x)?;
            }
            self.c.1.forward(self.c.0.forward(x)?)
        }
    }
    let holder = Holder {
        a: vec![Double::default(); 2],
        ..Holder::default()
    };
    let called = ["a.0", "a.1", "b.0", "b.1", "c.0.inner", "c.1.inner"];
    let mut gm = symbolic_trace(&holder)?;
    let targets = |gm: &GraphModule| -> Vec<String> {
        let nodes = gm.graph().find_opcode(fx_core::ir::Opcode::CallModule);
        nodes.iter().map(|node| node.target().to_string()).collect()
    };
    assert_eq!(targets(&gm), called);
    let listed = holder.named_modules();
    assert!(called.iter().all(|path| listed.contains_key(*path)));
    gm.set_submodule("b.1", Scale { by: 0.5 })?;
    assert_eq!(gm.forward::<f64>(1.0)?, 16.0);
    Ok(())
}

type Parts = IndexMap<String, Box<dyn Module>>;

#[derive(Module)]
struct Named {
    #[module(flatten)]
    parts: Parts,
}

impl Named {
    fn of(parts: impl IntoIterator<Item = (&'static str, Box<dyn Module>)>) -> Self {
        let parts = parts.into_iter();
        Named {
            parts: parts.map(|(key, part)| (key.to_string(), part)).collect(),
        }
    }
}

#[trace]
impl Named {
    fn forward(&self, mut x: Float) -> Result<Float> {
        for part in self.parts.values() {
            x = part.forward(x)?;
        }
        Ok(x)
    }
}

fn scale(by: f64) -> Box<dyn Module> {
    Box::new(Scale { by })
}

#[test]
fn defect_m02_keys_that_are_no_names_are_refused() {
    let inner = Named::of([("b", scale(2.0))]);
    let dotted = Named::of([
        ("a", Box::new(inner) as Box<dyn Module>),
        ("a.b", scale(3.0)),
    ]);
    let empty = Named::of([("", scale(2.0))]);
    for (net, part) in [(dotted, "the key `a.b`"), (empty, "an empty key")] {
        for error in [
            net.check_paths().unwrap_err().to_string(),
            symbolic_trace(&net).unwrap_err().to_string(),
        ] {
            assert!(error.contains(part), "{error}");
        }
        // Lists keep what they find.
        assert!(!net.named_modules().is_empty());
    }
}

#[test]
fn defect_m02_two_parts_at_one_path_are_refused() -> Result<()> {
    #[derive(Module)]
    struct Beside {
        a: Scale,
        #[module(flatten)]
        more: Parts,
    }
    #[trace]
    impl Beside {
        fn forward(&self, x: Float) -> Result<Float> {
            let mut x = self.a.forward(x)?;
            for part in self.more.values() {
                x = part.forward(x)?;
            }
            Ok(x)
        }
    }
    #[derive(Module)]
    struct Two {
        #[module(flatten)]
        a: Scale,
        #[module(flatten)]
        b: Scale,
    }
    #[trace]
    impl Two {
        fn forward(&self, x: Float) -> Result<Float> {
            self.b.forward(self.a.forward(x)?)
        }
    }
    let beside = |key: &str| Beside {
        a: Scale { by: 2.0 },
        more: Parts::from_iter([(key.to_string(), scale(5.0))]),
    };
    let net = beside("a");
    let two = Two {
        a: Scale { by: 2.0 },
        b: Scale { by: 5.0 },
    };
    for (error, place) in [
        (net.check_paths(), "at `a`"),
        (symbolic_trace(&net).map(drop), "at `a`"),
        (two.check_paths(), "at the root"),
        (symbolic_trace(&two).map(drop), "at the root"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
        assert!(error.contains("a `Scale` and a `Scale`"), "{error}");
    }
    // One layer flattened into another type is at its path, and a shared one is at several.
    #[derive(Module)]
    struct Subclass(#[module(flatten)] Scale);
    #[trace]
    impl Subclass {
        fn forward(&self, x: Float) -> Result<Float> {
            self.0.forward(x)
        }
    }
    #[derive(Module)]
    struct Good {
        first: Subclass,
        shared: std::sync::Arc<Scale>,
        again: std::sync::Arc<Scale>,
    }
    #[trace]
    impl Good {
        fn forward(&self, x: Float) -> Result<Float> {
            self.again
                .forward(self.shared.forward(self.first.forward(x)?)?)
        }
    }
    let shared = std::sync::Arc::new(Scale { by: 3.0 });
    let good = Good {
        first: Subclass(Scale { by: 2.0 }),
        again: shared.clone(),
        shared,
    };
    good.check_paths()?;
    assert_eq!(symbolic_trace(&good)?.forward::<f64>(1.0)?, 18.0);
    assert_eq!(symbolic_trace(&beside("b"))?.forward::<f64>(1.0)?, 10.0);
    Ok(())
}

#[test]
fn defect_m02_layers_of_a_graph_module_are_checked_too() -> Result<()> {
    #[derive(Module, Clone)]
    struct Leaf {
        parts: IndexMap<String, Scale>,
    }
    #[trace(leaf, path = "defects::Leaf")]
    impl Leaf {
        fn forward(&self, x: Float) -> Result<Float> {
            x * self.parts[0].by
        }
    }
    let leaf = |key: &str| Leaf {
        parts: IndexMap::from_iter([(key.to_string(), Scale { by: 2.0 })]),
    };
    // A layer that is made elsewhere.
    let made = leaf("a.b");
    let error = symbolic_trace(traced!(move |x: Float| made.forward(x))).unwrap_err();
    assert!(error.to_string().contains("the key `a.b`"), "{error}");
    // A layer that was put into the module afterwards.
    let good = leaf("a");
    let mut gm = symbolic_trace(traced!(move |x: Float| good.forward(x)))?;
    assert!(gm.to_bytes().is_ok());
    gm.set_submodule("_leaf_0", leaf("a.b"))?;
    let error = gm.to_bytes().unwrap_err().to_string();
    assert!(error.contains("the key `a.b`"), "{error}");
    let error = gm.parameter("_leaf_0.a").unwrap_err().to_string();
    assert!(error.contains("the key `a.b`"), "{error}");
    Ok(())
}

#[test]
fn defect_b07_a_filter_is_asked_about_every_user() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let first = graph.call_function(operator::neg, (x,), ())?;
    let new = graph.call_function(operator::abs, (x,), ())?;
    let sum = graph.call_function(operator::add, (first, x), ())?;
    graph.output(sum)?;
    let mut asked = Vec::new();
    let changed = graph.node_mut(x)?.replace_uses_with_filter(new, |user| {
        asked.push(user.name().to_string());
        user.name() != "neg"
    })?;
    assert_eq!(asked, ["neg", "abs", "add"]);
    assert_eq!(changed, [sum]);
    assert_eq!(graph.node(new)?.args()[0].as_node(), Some(x));
    Ok(())
}

#[test]
fn defect_b07_inline_takes_keywords_and_defaults() -> Result<()> {
    let mut inner = Graph::new();
    let a = inner.placeholder("a")?;
    let b = inner.placeholder_with_default("b", &fx_core::ir::Literal::Int(3))?;
    let difference = inner.call_function(operator::sub, (a, b), ())?;
    inner.output(difference)?;
    type Given = (Vec<i64>, Vec<(&'static str, i64)>);
    let inlined = |(args, named): Given| -> Result<f64> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x")?;
        let args: Vec<fx_core::ir::Argument> = args.into_iter().map(Into::into).collect();
        let call = NewNode::new(Op::CallFunction(operator::add));
        let call = graph.add(call.args((x,)))?;
        graph.node_mut(call)?.set_args(args)?;
        for (name, value) in named {
            graph.node_mut(call)?.update_kwarg(name, value)?;
        }
        graph.output(call)?;
        let before = graph.to_string();
        if let Err(error) = graph.inline(call, &inner) {
            assert_eq!(graph.to_string(), before, "{error}");
            return Err(error);
        }
        GraphModule::new(Attributes::default(), graph, "Inlined")?.forward(1.0)
    };
    assert_eq!(inlined((vec![10, 4], vec![]))?, 6.0);
    assert_eq!(inlined((vec![10], vec![]))?, 7.0);
    assert_eq!(inlined((vec![10], vec![("b", 4)]))?, 6.0);
    assert_eq!(inlined((vec![], vec![("b", 4), ("a", 10)]))?, 6.0);
    for (wrong, part) in [
        ((vec![1, 2, 3], vec![]), "has 3 arguments"),
        ((vec![], vec![("b", 4)]), "gives no `a`"),
        ((vec![10], vec![("a", 4)]), "gives `a` twice"),
        ((vec![10], vec![("c", 4)]), "gives `c`"),
    ] {
        let error = inlined(wrong).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    Ok(())
}
