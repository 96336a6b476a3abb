//! Generated source, printed graphs and crates.

#[path = "emit/crates.rs"]
mod crates;
#[path = "emit/forms.rs"]
mod forms;
#[path = "../../fx-core/tests/support/text.rs"]
mod text;

use insta::assert_snapshot;
use text::without_lines;

use fx_nn::emit::{CodeGen, CodeOptions, FunctionHead};
use fx_nn::graph_module::Folder;
use fx_nn::ir::{Argument, Graph, Op, ParamType};
use fx_nn::models::mlp::Mlp;
use fx_nn::models::resnet::resnet18;
use fx_nn::module::{Attributes, ComponentExt};
use fx_nn::prelude::*;
use fx_nn::run::PlainInterpreter;
use fx_nn::value::{IntoValue, NodeId};
use fx_nn::{allclose, operator};

fn node(gm: &GraphModule, name: &str) -> Result<NodeId> {
    let found = gm.graph().find_name(name);
    found
        .map(|node| node.id())
        .ok_or_else(|| Error::msg(format_args!("no node {name}")))
}

// ---- printed text ------------------------------------------------------------------------------

#[test]
fn a_graph_module_prints_its_layers_and_its_source() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::relu(x)))?;
    assert_snapshot!(gm, @"
    closure(
    )

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let relu = fx_nn::ops::relu(x)?;
        Ok(relu)
    }
    ");
    let net = symbolic_trace(&Mlp::new(4, 8, 2)?)?;
    assert_snapshot!(net, @"
    Mlp(
      (fc1): Linear
      (fc2): Linear
      (drop): Dropout
      (fc3): Linear
    )

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let fc1 = self.fc1.forward(x)?;
        let relu = fx_nn::ops::relu(&fc1)?;  core::mem::drop(fc1);
        let fc2 = self.fc2.forward(&relu)?;  core::mem::drop(relu);
        let tanh = fx_nn::ops::tanh(&fc2)?;  core::mem::drop(fc2);
        let drop = self.drop.forward(&tanh)?;  core::mem::drop(tanh);
        let fc3 = self.fc3.forward(&drop)?;  core::mem::drop(drop);
        let log_softmax = fx_nn::ops::log_softmax(&fc3, -1)?;  core::mem::drop(fc3);
        Ok(log_softmax)
    }
    ");
    Ok(())
}

#[test]
fn targets_print_as_their_paths() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let n = x.shape()?.get(0)?;
        ops::relu(&(x + n)?)
    }))?;
    assert_snapshot!(gm.graph(), @r#"
    graph():
        %x : [num_users=2] = placeholder[target=x]
        %getattr : [num_users=1] = call_function[target=fx_core::operator::getattr](args = (%x, "shape"), kwargs = {})
        %getitem : [num_users=1] = call_function[target=fx_core::operator::getitem](args = (%getattr, 0), kwargs = {})
        %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%x, %getitem), kwargs = {})
        %relu : [num_users=1] = call_function[target=fx_nn::ops::relu](args = (%add,), kwargs = {})
        return %relu
    "#);
    Ok(())
}

/// A type is printed once, at its parameter.
#[test]
fn a_readable_source_has_each_type_once() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, n: Int| x * n))?;
    assert_snapshot!(without_lines(gm.print_readable()), @"
    impl closure {
        pub fn forward(&self, x: &Tensor, n: Int) -> Result<Tensor> {
            // fx-nn/tests/emit.rs:_
            let mul = (x * n)?;
            Ok(mul)
        }
    }
    ");
    Ok(())
}

#[test]
fn a_readable_source_shows_inner_graphs() -> Result<()> {
    let mut inner = symbolic_trace(traced!(|x: &Tensor| x * 2))?;
    inner.add_submodule("innermost", symbolic_trace(traced!(|x: &Tensor| x - 3))?)?;
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1))?;
    gm.add_submodule("inner", inner)?;
    let text = gm.print_readable();
    assert_snapshot!(without_lines(&text), @"
    impl closure {
        pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
            // fx-nn/tests/emit.rs:_
            let add = (x + 1)?;
            Ok(add)
        }
    }

    // inner: GraphModule
    impl closure {
        pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
            // fx-nn/tests/emit.rs:_
            let mul = (x * 2)?;
            Ok(mul)
        }
    }

    // inner.innermost: GraphModule
    impl closure {
        pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
            // fx-nn/tests/emit.rs:_
            let sub = (x - 3)?;
            Ok(sub)
        }
    }
    ");
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    Ok(())
}

#[test]
fn a_type_prints_in_the_graph() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    graph.node_mut(x)?.set_type_expr(Some("Vec<f64>"));
    graph.output(x)?;
    assert_snapshot!(graph, @"
    graph():
        %x : Vec<f64> [num_users=1] = placeholder[target=x]
        return %x
    ");
    Ok(())
}

#[derive(Module)]
struct CamelCase {
    #[module(name = "PascalCase")]
    pascal_case: nn::ReLU,
    #[module(name = "ALL_CAPS")]
    all_caps: nn::ReLU,
}

#[trace]
impl CamelCase {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.all_caps.forward(&self.pascal_case.forward(x)?)
    }
}

#[test]
fn names_of_nodes_are_in_snake_case() -> Result<()> {
    let module = CamelCase {
        pascal_case: nn::ReLU::new(),
        all_caps: nn::ReLU::new(),
    };
    let gm = symbolic_trace(&module)?;
    let called: Vec<(String, String)> = gm
        .graph()
        .nodes()
        .filter(|node| matches!(node.op(), Op::CallModule(_)))
        .map(|node| (node.target().to_string(), node.name().to_string()))
        .collect();
    let pair = |target: &str, name: &str| (target.to_string(), name.to_string());
    assert_eq!(
        called,
        [
            pair("PascalCase", "pascal_case"),
            pair("ALL_CAPS", "all_caps")
        ]
    );
    Ok(())
}

#[test]
fn infinities_and_nan_are_written_and_read_back() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = (x + f64::INFINITY)?;
        let y = (y + f64::NEG_INFINITY)?;
        y + f64::NAN
    }))?;
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let add = (x + f64::INFINITY)?;
        let add_1 = (&add + f64::NEG_INFINITY)?;  drop(add);
        let add_2 = (&add_1 + f64::NAN)?;  drop(add_1);
        Ok(add_2)
    }
    ");
    let again: Graph = gm.graph().to_string().parse()?;
    assert_eq!(again.to_string(), gm.graph().to_string());
    Ok(())
}

/// The sign of zero is kept; there are no complex numbers.
#[test]
fn the_sign_of_zero_is_written() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x * -0.0))?;
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mul = (x * -0.0)?;
        Ok(mul)
    }
    ");
    Ok(())
}

/// The result of a node without users is not kept.
#[test]
fn what_nobody_uses_is_not_kept() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = x.relu()?;
        let _ = y.exp()?;
        y.neg()
    }))?;
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let relu = x.relu()?;
        relu.exp()?;
        let neg = relu.neg()?;  drop(relu);
        Ok(neg)
    }
    ");
    Ok(())
}

#[test]
fn an_empty_graph_returns_none() -> Result<()> {
    let mut graph = Graph::new();
    graph.output(Argument::None)?;
    let gm = GraphModule::new(Attributes::default(), graph, "Empty")?;
    assert_eq!(
        gm.code(),
        "pub fn forward(&self) -> Result<Option<Tensor>> {\n    Ok(None)\n}\n"
    );
    assert!(gm.forward::<Option<Tensor>>(())?.is_none());
    Ok(())
}

#[test]
fn the_result_has_its_type() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x.chunk(2, 0)))?;
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor) -> Result<List<Tensor>> {
        let chunk = x.chunk(2, 0)?;
        Ok(chunk)
    }
    ");
    let gm = symbolic_trace(traced!(|x: &Tensor| Ok(vec![x.relu()?, x.clone()])))?;
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor) -> Result<Vec<Tensor>> {
        let relu = x.relu()?;
        Ok(vec![relu, x.clone()])
    }
    ");
    Ok(())
}

// ---- hooks -------------------------------------------------------------------------------------

#[test]
fn lines_know_their_nodes_also_after_a_transform_of_the_text() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.neg()))?;
    let (relu, neg) = (node(&gm, "relu")?, node(&gm, "neg")?);
    let code = gm.rust_code(&CodeOptions::new());
    assert_eq!((code.node_at(2), code.node_at(3)), (Some(relu), Some(neg)));
    assert_eq!(
        (code.node_at(0), code.node_at(1), code.node_at(99)),
        (None, None, None)
    );

    // A transform shifts lines; the map follows them.
    gm.on_generate_code(|mut lines| {
        lines.insert(0, "let start = std::time::Instant::now();".into());
        lines
    })
    .keep();
    let code = gm.rust_code(&CodeOptions::new());
    assert_eq!((code.line_of(relu), code.line_of(neg)), (Some(3), Some(4)));
    let verbose = gm.rust_code(&CodeOptions::new().verbose(true));
    let line = verbose.line_of(neg).unwrap_or_default();
    let text = verbose.source().lines().nth(line - 1).unwrap_or_default();
    assert!(text.contains("relu.neg()?"), "{text}");
    Ok(())
}

/// Passes the inputs as a list, as torch.fx's test does.
struct Listed;

impl CodeGen for Listed {
    fn head(&self, head: &FunctionHead) -> String {
        format!(
            "pub fn forward(&self, args: Vec<Tensor>) -> Result<{}>",
            head.result
        )
    }

    fn output(&self, value: &str) -> String {
        format!("Ok(vec![{value}])")
    }

    fn items(&self) -> Vec<String> {
        vec!["use std::collections::VecDeque;".to_string()]
    }
}

fn listed() -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor| a + b))?;
    gm.set_codegen(Listed);
    Ok(gm)
}

#[test]
fn a_transform_keeps_the_code_generator() -> Result<()> {
    let gm = listed()?;
    assert_snapshot!(gm.code(), @"
    use std::collections::VecDeque;

    pub fn forward(&self, args: Vec<Tensor>) -> Result<Tensor> {
        let add = (a + b)?;
        Ok(vec![add])
    }
    ");
    let transformed = gm.transform(&mut PlainInterpreter)?;
    assert_eq!(transformed.code(), gm.code());
    let mut usual = gm.clone();
    usual.reset_codegen();
    assert_snapshot!(usual.code(), @"
    pub fn forward(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let add = (a + b)?;
        Ok(add)
    }
    ");
    Ok(())
}

/// The text is only a view: an interpreter takes the graph's inputs whatever it says.
#[test]
fn a_code_generator_does_not_change_what_runs() -> Result<()> {
    let gm = listed()?;
    let (a, b) = (Tensor::rand(3)?, Tensor::rand(3)?);
    let sum: Tensor = gm.interpret(&mut PlainInterpreter, (&a, &b))?;
    assert!(allclose(&sum, &(&a + &b)?, 0.0, 0.0)?.close);
    Ok(())
}

#[test]
fn hooks_chain_and_end_with_their_guards() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let usual = gm.code();
    let marked = |mark: &'static str| {
        move |mut lines: Vec<fx_nn::emit::CodeLine>| {
            lines.insert(0, mark.into());
            lines
        }
    };
    let first = gm.on_generate_code(marked("// first"));
    let second = gm.on_generate_code(marked("// second"));
    // A later hook gets the lines of the earlier ones.
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // second
        // first
        let relu = x.relu()?;
        Ok(relu)
    }
    ");
    drop(first);
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // second
        let relu = x.relu()?;
        Ok(relu)
    }
    ");
    let copy = gm.clone();
    drop(second);
    assert_eq!((gm.code(), copy.code()), (usual.clone(), usual));
    Ok(())
}

#[test]
fn colours_and_expanded_heads_are_on_request() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| (x + y)?.relu()))?;
    assert!(!gm.code().contains('\x1b'));
    let colored = gm.rust_code(&CodeOptions::new().color(true)).to_string();
    assert_snapshot!(colored.replace('\x1b', "ESC"), @"
    pub fn forward(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let ESC[1maddESC[0m = (x + y)?;
        let ESC[1mreluESC[0m = add.relu()?;  ESC[2mdrop(add);ESC[0m
        Ok(relu)
    }
    ");
    let expanded = gm.rust_code(&CodeOptions::new().expanded_head(true));
    assert_snapshot!(expanded, @"
    pub fn forward(
        &self,
        x: &Tensor,
        y: &Tensor,
    ) -> Result<Tensor> {
        let add = (x + y)?;
        let relu = add.relu()?;  drop(add);
        Ok(relu)
    }
    ");
    Ok(())
}

// ---- errors of generated runs ------------------------------------------------------------------

/// Torch.fx prints the generated line that failed; here the error names the node, its source line
/// and the problem.
#[test]
fn an_error_of_a_run_names_the_node_and_the_users_line() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.matmul(x)))?;
    let error = gm.forward::<Tensor>(&Tensor::rand((2, 3))?);
    let text = error.err().map(|e| e.to_string()).unwrap_or_default();
    assert_snapshot!(without_lines(text), @"while executing %matmul (fx-nn/tests/emit.rs:_): matmul: the shapes [2, 3] and [2, 3] do not fit: 3 and 2 differ");
    Ok(())
}

#[test]
fn an_error_of_a_layer_names_the_layer() -> Result<()> {
    let module = Mlp::new(4, 8, 2)?;
    let gm = symbolic_trace(&module)?;
    let error = gm.forward::<Tensor>(&Tensor::rand((2, 3))?);
    let text = error.err().map(|e| e.to_string()).unwrap_or_default();
    // The error names the layer, and nothing of the generated source.
    assert_snapshot!(without_lines(text), @"while executing %fc1 (fx-nn/src/models/mlp.rs:_): linear: the input [2, 3] does not fit the weight [8, 4]: 3 and 4 differ");
    Ok(())
}

// ---- structures --------------------------------------------------------------------------------

fn saved_again(gm: &GraphModule) -> Result<GraphModule> {
    GraphModule::from_bytes(&gm.to_bytes()?)
}

#[trace]
fn nested_lists(x: Vec<Vec<Tensor>>) -> Result<Tensor> {
    (&x[0][0] + &x[1][0])? + &x[1][1]
}

#[trace]
fn tuples(x: (Tensor, (Tensor, Tensor))) -> Result<(Tensor, Vec<Tensor>)> {
    let (a, (b, c)) = x;
    Ok(((&a + &b)?, vec![c, a]))
}

#[trace]
fn dicts(x: IndexMap<String, Vec<Tensor>>) -> Result<IndexMap<String, Tensor>> {
    let (a, b) = (&x["a"], &x["b"]);
    Ok(IndexMap::from([
        ("sum".to_string(), (&a[0] + &b[0])?),
        ("first".to_string(), a[1].clone()),
    ]))
}

#[test]
fn structures_go_through_source_files_and_transforms() -> Result<()> {
    let t = || Tensor::rand((2, 3));
    // Structure, how many inputs it is taken apart into, and the same call eager.
    let gm = Trace::new(traced!(nested_lists))
        .concrete("x", tree!([[PH], [PH, PH]]))
        .graph_module()?;
    let lists = vec![vec![t()?], vec![t()?, t()?]];
    assert_eq!(gm.graph().placeholders().count(), 3);
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: Vec<Vec<Tensor>>) -> Result<Tensor> {
        let x_1 = &x[0][0];
        let x_2 = &x[1][0];
        let x_3 = &x[1][1];
        let add = (x_1 + x_2)?;
        let add_1 = (&add + x_3)?;  drop(add);
        Ok(add_1)
    }
    ");
    let expected = nested_lists(lists.clone())?;
    for gm in [
        &gm,
        &saved_again(&gm)?,
        &gm.transform(&mut PlainInterpreter)?,
    ] {
        let found: Tensor = gm.forward((lists.clone(),))?;
        assert!(allclose(&found, &expected, 0.0, 0.0)?.close);
        assert_eq!(gm.process_inputs((lists.clone(),))?.len(), 3);
    }

    let gm = Trace::new(traced!(tuples))
        .concrete("x", tree!((PH, (PH, PH))))
        .graph_module()?;
    let x = (t()?, (t()?, t()?));
    let expected = tuples(x.clone())?;
    for gm in [&gm, &saved_again(&gm)?] {
        let found: (Tensor, Vec<Tensor>) = gm.forward((x.clone(),))?;
        assert!(allclose(&found.0, &expected.0, 0.0, 0.0)?.close);
        assert!(allclose(&found.1[0], &expected.1[0], 0.0, 0.0)?.close);
    }

    let gm = Trace::new(traced!(dicts))
        .concrete("x", tree!({"a": [PH, PH], "b": [PH]}))
        .graph_module()?;
    let x = IndexMap::from([
        ("a".to_string(), vec![t()?, t()?]),
        ("b".to_string(), vec![t()?]),
    ]);
    let expected = dicts(x.clone())?;
    for gm in [&gm, &saved_again(&gm)?] {
        let found: IndexMap<String, Tensor> = gm.forward((x.clone(),))?;
        assert!(allclose(&found["sum"], &expected["sum"], 0.0, 0.0)?.close);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["sum", "first"]);
    }
    // Another structure is an error.
    let wrong = gm.forward::<Value>((IndexMap::from([("a".to_string(), vec![t()?])]),));
    assert!(wrong.is_err());
    Ok(())
}

#[trace]
fn partly_fixed(x: IndexMap<String, Tensor>, scale: f64) -> Result<Tensor> {
    (&x["a"] - &x["b"])? * scale
}

#[test]
fn a_structure_may_be_partly_fixed() -> Result<()> {
    let fixed = Tensor::ones(3)?;
    let b = fixed.clone();
    let gm = Trace::new(traced!(partly_fixed))
        .concrete("x", tree!({"a": PH, "b": b}))
        .concrete("scale", 2.0)
        .graph_module()?;
    let x = IndexMap::from([
        ("a".to_string(), Tensor::rand(3)?),
        ("b".to_string(), fixed),
    ]);
    let found: Tensor = gm.forward((x.clone(), 2.0))?;
    assert!(allclose(&found, &partly_fixed(x, 2.0)?, 0.0, 0.0)?.close);
    Ok(())
}

/// The types that macros declare and those parsed from text are equal: files and hand-built graphs
/// know as much as a trace.
#[test]
fn types_as_data_and_as_text_are_one() -> Result<()> {
    let mut read = 0;
    for function in fx_nn::ir::registry::functions() {
        let def = function.def();
        let params = def
            .params
            .iter()
            .map(|param| (&*param.ty, Some(&param.param_type)));
        for (text, data) in params.chain([(def.returns, def.result)]) {
            let Some(data) = data else {
                assert!(text.is_empty() && def.operator.is_some(), "{function}");
                continue;
            };
            assert_eq!(text.parse::<ParamType>()?, *data, "`{text}` of {function}");
            read += 1;
        }
    }
    assert!(read > 300, "{read} types");
    Ok(())
}
