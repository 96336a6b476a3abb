//! Branches and loops that are traced anew, compared, inferred and printed, each by the number of its defect: none may
//! come back.

use std::sync::Arc;

use fx_core::control::{self, Cond, While};
use fx_core::draw::{Column, Page};
use fx_core::ir::{Argument, Function, Graph, ValueMeta};
use fx_core::operator;
use fx_core::passes::memory_plan;
use fx_core::prelude::*;
use fx_core::run::{Interpretation, Interpreter};
use fx_core::shapes::{Spec, spec};
use fx_core::trace::{CallArgs, NoLeaves};

#[derive(Module)]
struct Scale {
    by: f64,
}

#[trace(leaf)]
impl Scale {
    fn forward(&self, x: Float) -> Result<Float> {
        x * self.by
    }
}

fn scale(by: f64) -> Scale {
    Scale { by }
}

/// A branch, a loop with another one inside, and a layer in each.
#[derive(Module)]
struct Net {
    up: Scale,
    down: Scale,
}

#[trace(control_flow)]
impl Net {
    fn forward(&self, x: Float, n: Int) -> Result<Float> {
        let mut x = x;
        if x > 1.0 {
            x = self.down.forward(x)?;
        } else {
            x = (self.up.forward(x)? + 1.0)?;
        }
        for i in 0..n {
            x = (x + i)?;
            let mut left = Int::from(2);
            while x > 8.0 {
                x = self.down.forward(x)?;
                left = (left - 1)?;
                if left == 0 {
                    break;
                }
            }
        }
        Ok(x)
    }
}

fn net() -> Net {
    Net {
        up: scale(3.0),
        down: scale(0.5),
    }
}

const CALLS: [(f64, i64); 5] = [(0.5, 0), (4.0, 3), (-2.0, -3), (40.0, 5), (1.0, 1)];

fn same_everywhere(gm: &GraphModule) -> Result<()> {
    let net = net();
    for (x, n) in CALLS {
        let eager = net.forward(Float::from(x), Int::from(n))?.concrete();
        assert_eq!(
            Some(gm.forward::<f64>((x, n))?),
            eager,
            "{x} {n}\n{}",
            gm.code()
        );
    }
    Ok(())
}

fn layers(gm: &GraphModule) -> usize {
    let mut count = gm.modules_of::<Scale>().count();
    for (_, branch) in gm.modules_of::<Cond>() {
        count += layers(branch.then()) + layers(branch.otherwise());
    }
    count
        + gm.modules_of::<While>()
            .map(|(_, turns)| layers(turns.body()))
            .sum::<usize>()
}

#[test]
fn defect_t3_c7_a_graph_with_branches_and_loops_is_opened() -> Result<()> {
    let gm = symbolic_trace(&net())?;
    same_everywhere(&gm)?;
    assert!(layers(&gm) > 0);
    let opened = gm.opened()?;
    same_everywhere(&opened)?;
    assert_eq!(layers(&opened), 0, "{}", opened.code());
    let again = Trace::new(&gm).tracer(NoLeaves).graph_module()?;
    same_everywhere(&again)?;
    assert_eq!(layers(&again), 0);
    // A branch or a loop alone.
    let paths: Vec<String> = gm
        .modules_of::<While>()
        .map(|(path, _)| path.to_string())
        .collect();
    let turns = gm.submodule_as::<While>(&paths[0])?;
    assert!(
        Trace::new(turns)
            .graph_module()?
            .modules_of::<While>()
            .count()
            > 0
    );
    Ok(())
}

#[test]
fn defect_t3_c7_passes_that_trace_anew_meet_branches_and_loops() -> Result<()> {
    struct Doubled;
    impl Interpreter for Doubled {
        fn call_function(
            &mut self,
            run: &mut Interpretation<'_>,
            function: Function,
            call: CallArgs,
        ) -> Result<Value> {
            run.call_function(function, call)
        }
    }
    let gm = symbolic_trace(&net())?;
    same_everywhere(&gm.transform(&mut Doubled)?)?;
    same_everywhere(&symbolic_trace(&gm)?)?;
    // Inside of another graph.
    let inside = gm.clone();
    let outer = traced!(move |x: Float, n: Int| inside.forward::<Float>((x, n)));
    let outer = Trace::new(outer).tracer(NoLeaves).graph_module()?;
    same_everywhere(&outer)?;
    // A limit stays.
    let endless = traced!(|x: Float| control::while_loop(
        x,
        |x| operator::gt.call_as::<Bool>((*x, 0.0)),
        |x| x + 1.0
    ));
    let mut gm = symbolic_trace(endless)?;
    gm.submodule_as_mut::<While>("while_loop_0")?
        .set_limit(Some(7));
    let error = gm.opened()?.forward::<f64>(1.0);
    let error = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(error.contains("has run 7 turns"), "{error}");
    Ok(())
}

/// Names of nodes with numbers that are given in any order.
#[test]
fn defect_t3_e13_no_two_nodes_have_one_name() -> Result<()> {
    let mut graph = Graph::new();
    let mut seen: Vec<String> = Vec::new();
    for number in [3, 2, 3, 6, 7, 4, 1, 4, 6, 4, 2, 5, 3, 9, 8, 1] {
        let node = graph.placeholder(&format!("k_{number}"))?;
        let name = graph.node(node)?.name().to_string();
        assert!(!seen.contains(&name), "{name} again");
        seen.push(name);
    }
    graph.output(Argument::None)?;
    graph.lint()?;
    Ok(())
}

#[test]
fn defect_t3_e3_numbers_are_any_and_sizes_are_at_least_one() -> Result<()> {
    let meta = |gm: &GraphModule, name: &str| {
        let node = gm.graph().find_name(name)?;
        node.meta::<ValueMeta>().map(ValueMeta::to_string)
    };
    let mut gm = symbolic_trace(traced!(|n: Int| n.gt(0)))?;
    gm.infer_shapes(&[Spec::int("n")])?;
    assert_eq!(meta(&gm, "gt").as_deref(), Some("a boolean"));
    gm.infer_shapes(&[Spec::int("n").constrained("n >= 0")])?;
    assert_eq!(meta(&gm, "gt").as_deref(), Some("a boolean"));
    gm.infer_shapes(&[Spec::int("n").constrained("n >= -2").constrained("n < 1")])?;
    assert_eq!(meta(&gm, "gt").as_deref(), Some("false"));
    assert!(!gm.forward::<bool>(-2)?);
    assert!(gm.forward::<bool>(-3).is_err());
    // The size of a tensor too.
    let mut gm = symbolic_trace(traced!(|_x: Value, n: Int| n.gt(0)))?;
    for specs in [
        [spec!["n"; F32], Spec::int("n")],
        [spec!["2*n"; F32], Spec::int("n")],
    ] {
        gm.infer_shapes(&specs)?;
        assert_eq!(meta(&gm, "gt").as_deref(), Some("true"));
    }
    Ok(())
}

#[test]
fn defect_t3_e3_what_a_side_claims_decides_nothing_outside() -> Result<()> {
    // What a loop carries is not what it began with.
    let before_and_after = traced!(|n: Int| {
        let (first, _) = control::while_loop(
            (Int::from(0), n),
            |(_, left)| operator::gt.call_as::<Bool>((*left, 0)),
            |(sum, left)| Ok(((sum + left)?, (left - 1)?)),
        )?;
        let (second, _) = control::while_loop(
            (first, n),
            |(_, left)| operator::gt.call_as::<Bool>((*left, 0)),
            |(sum, left)| Ok(((sum + 1)?, (left - 1)?)),
        )?;
        operator::eq.call_as::<Bool>((first, second))
    });
    let mut gm = symbolic_trace(before_and_after)?;
    gm.infer_shapes(&[Spec::int("n")])?;
    let eq = gm
        .graph()
        .find_name("eq")
        .and_then(|node| node.meta::<ValueMeta>());
    assert_eq!(eq.map(ValueMeta::to_string).as_deref(), Some("a boolean"));
    assert!(!gm.forward::<bool>(3)? && gm.forward::<bool>(0)?);
    Ok(())
}

#[test]
fn defect_t3_e10_source_says_what_it_cannot_name() -> Result<()> {
    #[derive(Module)]
    enum Either {
        One(Scale),
        #[allow(dead_code, reason = "the other variant")]
        Two {
            first: Scale,
            second: Scale,
        },
    }
    #[trace]
    impl Either {
        fn forward(&self, x: Float) -> Result<Float> {
            match self {
                Either::One(only) => only.forward(x),
                Either::Two { first, second } => second.forward(first.forward(x)?),
            }
        }
    }
    macro_rules! says {
        ($ty:ty, $held:expr, |$this:ident, $x:ident| $forward:expr, $wanted:expr) => {{
            #[derive(Module)]
            struct Held {
                held: $ty,
            }
            #[trace]
            impl Held {
                pub fn forward(&self, x: Float) -> Result<Float> {
                    let ($this, $x) = (self, x);
                    $forward
                }
            }
            let held = Held { held: $held };
            let gm = symbolic_trace(&held)?;
            assert_eq!(
                gm.forward::<f64>(1.0).ok(),
                held.forward(Float::from(1.0))?.concrete()
            );
            let wanted: Option<&str> = $wanted;
            let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
            // A graph that is copied, traced anew or loaded knows it too.
            for gm in [&gm, &gm.clone(), &symbolic_trace(&gm)?, &loaded] {
                let code = gm.code();
                let first = code.lines().next().unwrap_or_default();
                match wanted {
                    Some(wanted) => assert!(
                        first.starts_with("// does not compile as it stands: ")
                            && first.contains(wanted),
                        "{code}"
                    ),
                    None => assert!(first.starts_with("pub fn forward"), "{code}"),
                }
            }
        }};
    }
    let (two, three) = (|| scale(2.0), || scale(3.0));
    says!(
        Option<Scale>,
        Some(two()),
        |this, x| match &this.held {
            Some(layer) => layer.forward(x),
            None => Ok(x),
        },
        Some("`held` is an `Option`")
    );
    says!(
        Option<Vec<Scale>>,
        Some(vec![two()]),
        |this, x| match &this.held {
            Some(layers) => layers[0].forward(x),
            None => Ok(x),
        },
        Some("`held` is an `Option`")
    );
    says!(
        (Scale, Scale),
        (two(), three()),
        |this, x| this.held.1.forward(x),
        Some("`held.1` is a field of a tuple")
    );
    says!(
        Vec<(Scale, Scale)>,
        vec![(two(), three())],
        |this, x| this.held[0].1.forward(x),
        Some("`held.0.1` is a field of a tuple")
    );
    says!(
        Either,
        Either::One(two()),
        |this, x| this.held.forward(x),
        Some("`held.0` is a field of an enum's variant")
    );
    says!(
        Either,
        Either::Two {
            first: two(),
            second: three(),
        },
        |this, x| this.held.forward(x),
        Some("`held.first` is a field of an enum's variant")
    );
    says!(
        IndexMap<String, Scale>,
        IndexMap::from([("a".to_string(), two())]),
        |this, x| this.held["a"].forward(x),
        Some("`held.a` is an entry of a map")
    );
    says!(Scale, two(), |this, x| this.held.forward(x), None);
    says!(
        Box<Scale>,
        Box::new(two()),
        |this, x| this.held.forward(x),
        None
    );
    says!(
        Arc<Scale>,
        Arc::new(two()),
        |this, x| this.held.forward(x),
        None
    );
    says!(
        Vec<Scale>,
        vec![two(), three()],
        |this, x| this.held[1].forward(x),
        None
    );
    says!([Scale; 1], [two()], |this, x| this.held[0].forward(x), None);
    Ok(())
}

#[test]
fn defect_t3_e11_a_difference_names_changed_layers() -> Result<()> {
    let before = symbolic_trace(&net())?;
    assert!(before.diff(&before.clone()).is_empty());
    let loaded = GraphModule::from_bytes(&before.to_bytes()?)?;
    assert!(before.diff(&loaded).is_empty(), "{}", before.diff(&loaded));
    let mut changed = net();
    changed.down.by = 0.25;
    let after = symbolic_trace(&changed)?;
    let diff = before.diff(&after);
    assert!(!diff.is_empty() && diff.counts()[2] > 0);
    let text = diff.to_string();
    assert!(
        text.contains("call_module[down]") && text.contains("with another by"),
        "{text}"
    );
    assert!(!text.contains("call_module[up]"), "{text}");
    Ok(())
}

#[test]
fn defect_t3_e12_live_memory_has_numbers_where_sizes_have_names() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Value, y: Value| Ok((y, x))))?;
    gm.infer_shapes(&[spec!["n", 8; F32], spec!["n"; I64]])?;
    let plan = memory_plan(&gm)?;
    let page = gm.html(&Page::new().column(Column::memory(&plan)))?;
    assert!(page.contains("live memory, n = 64"), "{page}");
    // 64 rows of 8 floats, and 64 whole numbers.
    assert!(page.contains("2048") && page.contains("2560"), "{page}");
    let page = gm.html(&Page::new().column(Column::memory_for(&plan, [("n", 2)])))?;
    assert!(page.contains("live memory, n = 2") && page.contains("80"));
    Ok(())
}
