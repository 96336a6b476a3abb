//! Generated source, printed graphs and crates.

#[path = "emit/forms.rs"]
mod forms;

use std::path::{Path, PathBuf};

use fx_nn::models::mlp::Mlp;
use fx_nn::models::resnet::resnet18;
use fx_nn::prelude::*;
use fx_nn::{
    Argument, Attributes, CodeGen, CodeOptions, ComponentExt, Folder, FunctionHead, IntoValue, Op,
    ParamType, PlainInterpreter, allclose, operator,
};

fn node(gm: &GraphModule, name: &str) -> Result<NodeId> {
    let found = gm.graph().find_name(name);
    found
        .map(|node| node.id())
        .ok_or_else(|| Error::msg(format_args!("no node {name}")))
}

// ---- what is printed ---------------------------------------------------------------------------

#[test]
fn a_graph_module_prints_its_layers_and_its_source() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::relu(x)))?;
    let text = gm.to_string();
    assert!(
        text.starts_with("GraphModule(") || text.contains("(\n"),
        "{text}"
    );
    assert!(text.contains("fx_nn::ops::relu(x)?"), "{text}");
    Ok(())
}

#[test]
fn targets_print_as_their_paths() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let n = x.shape()?.get(0)?;
        ops::relu(&(x + n)?)
    }))?;
    let text = gm.graph().to_string();
    for target in [
        "fx_core::operator::getattr",
        "fx_core::operator::add",
        "fx_nn::ops::relu",
    ] {
        assert!(text.contains(&format!("target={target}")), "{text}");
    }
    Ok(())
}

/// A type stands once, at its parameter.
#[test]
fn a_readable_source_has_each_type_once() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, n: Int| x * n))?;
    let text = gm.print_readable();
    assert_eq!(text.matches("n: Int").count(), 1, "{text}");
    assert!(text.contains("// ") && text.contains("emit.rs:"), "{text}");
    Ok(())
}

#[test]
fn a_readable_source_shows_inner_graphs() -> Result<()> {
    let mut inner = symbolic_trace(traced!(|x: &Tensor| x * 2))?;
    inner.add_submodule("innermost", symbolic_trace(traced!(|x: &Tensor| x - 3))?)?;
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1))?;
    gm.add_submodule("inner", inner)?;
    let text = gm.print_readable();
    for part in [
        "(x + 1)?",
        "// inner: GraphModule",
        "(x * 2)?",
        "// inner.innermost: GraphModule",
        "(x - 3)?",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    Ok(())
}

#[test]
fn a_type_prints_in_the_graph() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    graph.node_mut(x)?.set_type_expr(Some("Vec<f64>"));
    graph.output(x)?;
    assert!(
        graph.to_string().contains("%x : Vec<f64> [num_users=1]"),
        "{graph}"
    );
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
    let code = gm.code();
    for number in ["f64::INFINITY", "f64::NEG_INFINITY", "f64::NAN"] {
        assert!(code.contains(&format!(" + {number})?")), "{code}");
    }
    let again: Graph = gm.graph().to_string().parse()?;
    assert_eq!(again.to_string(), gm.graph().to_string());
    Ok(())
}

/// The sign of zero is kept; there are no complex numbers.
#[test]
fn the_sign_of_zero_is_written() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x * -0.0))?;
    assert!(gm.code().contains("(x * -0.0)?"), "{}", gm.code());
    Ok(())
}

/// What a node without users gives is not kept.
#[test]
fn what_nobody_uses_is_not_kept() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = x.relu()?;
        let _ = y.exp()?;
        y.neg()
    }))?;
    let code = gm.code();
    assert!(code.contains("\n    relu.exp()?;\n"), "{code}");
    assert!(
        code.contains("let neg = relu.neg()?;  drop(relu);"),
        "{code}"
    );
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
    assert!(
        gm.code().contains(") -> Result<List<Tensor>> {"),
        "{}",
        gm.code()
    );
    let gm = symbolic_trace(traced!(|x: &Tensor| Ok(vec![x.relu()?, x.clone()])))?;
    assert!(
        gm.code().contains(") -> Result<Vec<Tensor>> {"),
        "{}",
        gm.code()
    );
    assert!(
        gm.code().contains("    Ok(vec![relu, x.clone()])\n"),
        "{}",
        gm.code()
    );
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

/// Hands the inputs over as a list, as torch.fx's test does.
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
    assert!(gm.code().starts_with(
        "use std::collections::VecDeque;\n\npub fn forward(&self, args: Vec<Tensor>)"
    ));
    let transformed = gm.transform(&mut PlainInterpreter)?;
    assert_eq!(transformed.code(), gm.code());
    let mut usual = gm.clone();
    usual.reset_codegen();
    assert!(
        usual
            .code()
            .starts_with("pub fn forward(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {\n")
    );
    Ok(())
}

/// The text is a view: an interpreter takes the graph's inputs whatever the text says.
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
        move |mut lines: Vec<fx_nn::CodeLine>| {
            lines.insert(0, mark.into());
            lines
        }
    };
    let first = gm.on_generate_code(marked("// first"));
    let second = gm.on_generate_code(marked("// second"));
    // A later one is given what the earlier ones made.
    assert!(
        gm.code().contains("{\n    // second\n    // first\n"),
        "{}",
        gm.code()
    );
    drop(first);
    assert!(
        gm.code().contains("{\n    // second\n    let"),
        "{}",
        gm.code()
    );
    let copy = gm.clone();
    drop(second);
    assert_eq!((gm.code(), copy.code()), (usual.clone(), usual));
    Ok(())
}

#[test]
fn colours_and_expanded_heads_are_on_request() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| (x + y)?.relu()))?;
    let plain = gm.code();
    assert!(!plain.contains('\x1b'));
    let colored = gm.rust_code(&CodeOptions::new().color(true)).to_string();
    assert!(
        colored.contains("let \x1b[1madd\x1b[0m = (x + y)?;"),
        "{colored}"
    );
    let expanded = gm
        .rust_code(&CodeOptions::new().expanded_head(true))
        .to_string();
    assert!(
        expanded.starts_with(
            "pub fn forward(\n    &self,\n    x: &Tensor,\n    y: &Tensor,\n) -> Result<Tensor> {\n"
        ),
        "{expanded}"
    );
    Ok(())
}

// ---- errors of generated runs ------------------------------------------------------------------

/// Torch.fx prints the generated line that failed; here the error names the node, its source line and what it is.
#[test]
fn an_error_of_a_run_names_the_node_and_the_users_line() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.matmul(x)))?;
    let error = gm.forward::<Tensor>(&Tensor::rand((2, 3))?);
    let text = error.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(
        text.starts_with("while executing %matmul") && text.contains("emit.rs:"),
        "{text}"
    );
    Ok(())
}

#[test]
fn an_error_of_a_layer_names_the_layer() -> Result<()> {
    let module = Mlp::new(4, 8, 2)?;
    let gm = symbolic_trace(&module)?;
    let error = gm.forward::<Tensor>(&Tensor::rand((2, 3))?);
    let text = error.err().map(|e| e.to_string()).unwrap_or_default();
    // The layer is named, and nothing of what is generated.
    assert!(text.contains("%fc1") && text.contains("mlp.rs:"), "{text}");
    assert!(!text.contains("let fc1"), "{text}");
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
    assert!(gm.code().contains("let x_3 = &x[1][1];"), "{}", gm.code());
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
    // Another structure is told.
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

// ---- crates ------------------------------------------------------------------------------------

/// A folder that goes when the test does.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = format!("fx_emit_{name}_{}", std::process::id());
        Scratch(std::env::temp_dir().join(folder))
    }

    fn read(&self, file: &str) -> Result<String> {
        std::fs::read_to_string(self.0.join(file)).map_err(Error::other)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::other)? {
        let name = entry.map_err(Error::other)?.file_name();
        found.push(name.to_string_lossy().into_owned());
    }
    found.sort();
    Ok(found)
}

#[test]
fn a_model_becomes_a_crate() -> Result<()> {
    let mut module = resnet18(10)?;
    module.eval();
    let gm = symbolic_trace(&module)?;
    let scratch = Scratch::new("resnet");
    gm.to_folder(&scratch.0, "ResNet18")?;
    assert_eq!(
        files(&scratch.0)?,
        ["Cargo.toml", "README.md", "src", "weights.safetensors"]
    );
    let manifest = scratch.read("Cargo.toml")?;
    assert!(manifest.contains("name = \"res_net18\"") && manifest.contains("[workspace]"));
    let folder = concat!("fx-nn = { path = \"", env!("CARGO_MANIFEST_DIR"), "\" }\n");
    assert!(manifest.contains(folder), "{manifest}");
    let source = scratch.read("src/lib.rs")?;
    assert!(
        source.contains("pub struct BasicBlock {")
            && source.contains("self.layer2.0.downsample.1.forward(")
    );
    assert_eq!(source, Folder::new("ResNet18").source(&gm)?);

    // The weights are the saved form.
    let loaded = GraphModule::load(scratch.0.join("weights.safetensors"))?;
    let x = Tensor::rand((1, 3, 32, 32))?;
    let (found, expected): (Tensor, Tensor) = (loaded.forward(&x)?, gm.forward(&x)?);
    assert!(allclose(&found, &expected, 0.0, 0.0)?.close);

    // What is there stays as it is.
    let again = gm.to_folder(&scratch.0, "ResNet18");
    assert!(again.is_err_and(|e| e.to_string().contains("is there already")));
    Ok(())
}

/// Names in paths that are none in Rust.
#[test]
fn paths_that_are_no_names_become_fields_with_names() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    gm.add_submodule("0", nn::Linear::new(3, 3)?)?;
    gm.add_submodule("type", nn::Tanh::new())?;
    gm.add_submodule("a-b.self", nn::Tanh::new())?;
    let relu = node(&gm, "relu")?;
    let mut graph = gm.graph_mut();
    let mut last = relu;
    for path in ["0", "type", "a-b.self"] {
        let call = graph
            .inserting_after(last)?
            .call_module(path, (last,), ())?;
        graph
            .node_mut(last)?
            .replace_uses_with_filter(call, |user| user.id() != call)?;
        last = call;
    }
    drop(graph);
    gm.lint()?;
    let source = Folder::new("Odd").source(&gm)?;
    for line in [
        "    #[module(name = \"0\")]",
        "    pub m0: fx_nn::nn::Linear,",
        "    pub r#type: fx_nn::nn::Tanh,",
        "    #[module(name = \"a-b\")]",
        "    #[module(name = \"self\")]",
        "self.a_b.self_.forward(",
    ] {
        assert!(source.contains(line), "{line} in\n{source}");
    }
    Ok(())
}

#[test]
fn a_sequential_becomes_a_tuple_struct() -> Result<()> {
    let module = nn::Sequential::new()
        .push(nn::Linear::new(4, 4)?)
        .push(nn::ReLU::new());
    let gm = symbolic_trace(&module)?;
    let source = Folder::new("Net").source(&gm)?;
    assert!(
        source.contains("pub struct Net(pub fx_nn::nn::Linear, pub fx_nn::nn::ReLU);"),
        "{source}"
    );
    assert!(source.contains("self.1.forward("), "{source}");
    Ok(())
}

#[wrap]
fn of_this_test(x: &Tensor) -> Result<Tensor> {
    x * 2
}

#[test]
fn what_cannot_be_named_from_outside_is_refused_before_anything_is_written() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| of_this_test(x)?.relu()))?;
    let scratch = Scratch::new("refused");
    let text = gm
        .to_folder(&scratch.0, "Net")
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert!(
        text.contains("%of_this_test") && text.contains("emit.rs:"),
        "{text}"
    );
    assert!(
        text.contains("`emit::of_this_test`") && text.contains("register_crate!"),
        "{text}"
    );
    assert!(!scratch.0.exists());
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    assert!(gm.to_folder(&scratch.0, "not a name").is_err());
    assert!(!scratch.0.exists());
    Ok(())
}

#[test]
fn a_module_is_taken_out_as_its_own_type() -> Result<()> {
    let mut gm = symbolic_trace(&Mlp::new(4, 8, 2)?)?;
    let wrong = gm.take_submodule::<nn::Tanh>("fc1");
    assert!(wrong.is_err_and(|e| e.to_string().contains("`fc1` is a `Linear`, not a `Tanh`")));
    gm.take_submodule::<nn::Linear>("fc1")?;
    assert!(gm.submodule("fc1").is_err());
    assert!(gm.lint().is_err());
    Ok(())
}

/// A chain longer than any stack, in little time.
#[test]
fn a_long_chain_is_written() -> Result<()> {
    let mut graph = Graph::new();
    let mut at = graph.placeholder("x")?;
    for _ in 0..20_000 {
        at = graph.call_function(operator::neg, (at,), ())?;
    }
    graph.output(at)?;
    let gm = GraphModule::new(Attributes::default(), graph, "Chain")?;
    assert_eq!(gm.code().lines().count(), 20_003);
    Ok(())
}

/// What the graph module inside of the module below does.
#[trace]
fn both(x: &Tensor, by: Float) -> Result<(Tensor, Tensor)> {
    Ok((x.relu()?, (x * by)?))
}

/// A graph module that calls two others as they are.
fn of_graph_modules() -> Result<GraphModule> {
    let mut attributes = Attributes::default();
    let tanh = symbolic_trace(&nn::Sequential::new().push(nn::Tanh::new()))?;
    attributes
        .modules
        .insert("parts.act".into(), Box::new(tanh));
    let both = symbolic_trace(traced!(both))?;
    attributes
        .modules
        .insert("parts.both".into(), Box::new(both));
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let act = graph.call_module("parts.act", (x,), ())?;
    let pair = graph.call_module("parts.both", (act, 2.0), ())?;
    let kept = graph.call_module("parts.both", (act,), [("by", 3.0)])?;
    let first = graph.call_function(operator::getitem, (pair, 0), ())?;
    let second = graph.call_function(operator::getitem, (kept, 1), ())?;
    let sum = graph.call_function(operator::add, (first, second), ())?;
    graph.output(sum)?;
    GraphModule::new(attributes, graph, "Outer")
}

#[allow(dead_code, clippy::all, reason = "as it is generated")]
#[rustfmt::skip]
#[path = "emit/graph_modules.rs"]
mod graph_modules;

/// Graph modules are fields, called with their results' types: the source compiles, runs and traces.
#[test]
fn graph_modules_in_a_crate_are_called() -> Result<()> {
    let gm = of_graph_modules()?;
    let source = Folder::new("Outer").source(&gm)?;
    assert_eq!(source, include_str!("emit/graph_modules.rs"), "{source}");
    let module = graph_modules::Outer::take(&mut gm.clone())?;
    let x = Tensor::rand((2, 3))?;
    let expected: Tensor = gm.forward(&x)?;
    let again: Tensor = symbolic_trace(&module)?.forward(&x)?;
    assert!(allclose(&module.forward(&x)?, &expected, 0.0, 0.0)?.close);
    assert!(allclose(&again, &expected, 0.0, 0.0)?.close);
    Ok(())
}

#[test]
fn what_cannot_be_named_inside_of_a_graph_module_is_refused_too() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    gm.add_submodule(
        "inner",
        symbolic_trace(traced!(|x: &Tensor| of_this_test(x)))?,
    )?;
    let told = Folder::new("Net")
        .source(&gm)
        .unwrap_or_else(|e| e.to_string());
    assert!(
        told.contains("%of_this_test of the graph module `inner`")
            && told.contains("`emit::of_this_test`"),
        "{told}"
    );
    Ok(())
}

#[derive(Module)]
struct Weighted {
    w: Tensor,
}

#[trace]
impl Weighted {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * (&self.w + 1.0)?
    }
}

/// Constants that are computed when they are first asked for are in no source; folded at once, they are tensors.
#[test]
fn constants_that_are_folded_lazily_are_refused() -> Result<()> {
    let gm = symbolic_trace(&Weighted {
        w: Tensor::ones(4)?,
    })?;
    let (mut lazy, mut eager) = (gm.clone(), gm);
    lazy.apply(&fx_nn::FoldConstants::new().lazily())?;
    eager.apply(&fx_nn::FoldConstants::new())?;
    let error = Folder::new("Lazy").source(&lazy).err();
    let error = error.map(|e| e.to_string()).unwrap_or_default();
    for part in [
        "while writing a crate",
        "`_folded`",
        "`FoldConstants::new()`, at once",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(Folder::new("Eager").source(&eager).is_ok());
    Ok(())
}

/// What macros say of a type and what its text is read as are one: files and graphs by hand know as much as a trace.
#[test]
fn types_as_data_and_as_text_are_one() -> Result<()> {
    let mut read = 0;
    for function in fx_nn::registry::functions() {
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
