//! The goldens read, the formula gives their numbers, and the comparator sees every kind of difference.
#![allow(clippy::unwrap_used)]

use fx_goldens::compare::{
    Exception, GraphComparison, NodeView, ParamView, compare_graphs, compare_node_numbers,
    compare_numbers,
};
use fx_goldens::formula::{self, Rule, fill_f32, fill_first_f32, fill_i64, input_name, rule_for};
use fx_goldens::golden::{GraphGolden, Literal, NumGolden, graph_names, num_names};

fn graph(name: &str) -> GraphGolden {
    GraphGolden::load(name).unwrap()
}

fn views(golden: &GraphGolden) -> Vec<NodeView> {
    golden.nodes.iter().map(NodeView::from).collect()
}

fn node<'a>(nodes: &'a mut [NodeView], name: &str) -> &'a mut NodeView {
    nodes.iter_mut().find(|node| node.name == name).unwrap()
}

fn text(value: &str) -> Literal {
    Literal::Node(value.to_owned())
}

fn param(name: &str, keyword_only: bool, default: Option<Literal>) -> ParamView {
    ParamView {
        name: name.to_owned(),
        keyword_only,
        default,
    }
}

/// The comparison has one difference, and it says all of `words`.
#[track_caller]
fn one_difference(comparison: &GraphComparison, words: &[&str]) {
    assert!(!comparison.equal);
    assert_eq!(comparison.differences.len(), 1, "{comparison}");
    for word in words {
        assert!(
            comparison.differences[0].contains(word),
            "{word}: {comparison}"
        );
    }
    assert!(comparison.to_string().contains(words[0]));
}

#[track_caller]
fn same(comparison: &GraphComparison, used: &[&str]) {
    assert!(comparison.equal, "{comparison}");
    assert_eq!(comparison.used, used);
}

// ---- the formula

#[test]
fn the_worked_values() {
    for (name, i, bits, value) in [
        ("conv1.weight", 0, 417_061, 0.024_858_772_754_669_19),
        ("input:x", 5, 12_294_092, 0.732_784_986_495_971_7),
        (
            "layer1.0.bn1.running_var",
            63,
            13_892_763,
            0.828_073_203_563_690_2,
        ),
    ] {
        assert_eq!(formula::unit(name, i), value, "{name}");
        assert_eq!(formula::unit(name, i), f64::from(bits) / f64::from(1 << 24));
    }
    assert_eq!(formula::hash(""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(formula::hash("a"), 0xaf63_dc4c_8601_ec8c);
}

/// Equal as far as nine significant digits can say.
#[track_caller]
fn to_nine_digits(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        // Nine digits give back a float32 exactly.
        assert_eq!(*found, *expected as f32, "{what}, element {i}");
    }
}

#[test]
fn the_first_elements_of_every_weight() {
    let mut tensors = 0;
    for name in num_names().unwrap() {
        let golden = NumGolden::load(&name).unwrap();
        for weight in &golden.weights {
            let what = format!("{name}: {}", weight.name);
            let count = weight.first.len();
            let found =
                fill_first_f32(&weight.name, &weight.shape, weight.rule, golden.gain, count);
            to_nine_digits(&found.unwrap(), &weight.first, &what);
            tensors += 1;
        }
    }
    assert_eq!(tensors, 366);
}

/// Fills a whole model from what its graph golden says of it and compares the sum; how many elements that were.
fn sum_of_all_weights(name: &str, limit: usize) -> Option<usize> {
    let golden = NumGolden::load(name).unwrap();
    // A fused model is filled before it is fused: under the names and classes it had then.
    let graph = graph(match golden.graph.as_str() {
        "resnet18_fused" => "resnet18",
        "unet_fused" => "unet_small",
        untouched => untouched,
    });
    let parameters = graph.params.iter().map(|tensor| (tensor, false));
    let buffers = graph.buffers.iter().map(|tensor| (tensor, true));
    let filled: Vec<_> = parameters
        .chain(buffers)
        .filter_map(|(tensor, is_buffer)| {
            let (owner, _) = tensor.name.rsplit_once('.').unwrap_or(("", &tensor.name));
            // Modules that the graph does not call are plain here: no norm, no embedding.
            let module = graph.modules.iter().find(|module| module.path == owner);
            let class = module.map_or("", |module| &module.class);
            match rule_for(&tensor.name, class, tensor.shape.len(), is_buffer) {
                Rule::Keep => None,
                rule => Some((tensor, rule)),
            }
        })
        .collect();
    // Other transforms, too, may leave a graph that does not know all that was filled.
    if filled.len() != golden.n_assigned || golden.n_elements > limit {
        return None;
    }
    let (mut elements, mut sum, mut size) = (0, 0.0, 0.0);
    for (tensor, rule) in filled {
        let data = fill_f32(&tensor.name, &tensor.shape, rule, golden.gain).unwrap();
        elements += data.len();
        for value in data {
            sum += f64::from(value);
            size += f64::from(value.abs());
        }
    }
    assert_eq!(elements, golden.n_elements, "{name}");
    assert!(
        (sum - golden.weights_sum).abs() <= 1e-10 * size,
        "{name}: {sum}, not {}",
        golden.weights_sum
    );
    Some(elements)
}

#[test]
fn the_sum_of_all_weights() {
    let names = num_names().unwrap();
    let checked = names
        .iter()
        .filter_map(|name| sum_of_all_weights(name, 200_000));
    assert!(checked.count() >= 40);
}

#[test]
#[ignore = "fills 300 million elements: run it with --release"]
fn the_sum_of_all_weights_of_large_models() {
    let names = num_names().unwrap();
    let checked = names
        .iter()
        .filter_map(|name| sum_of_all_weights(name, usize::MAX));
    assert!(checked.sum::<usize>() > 250_000_000);
}

#[test]
fn every_input() {
    for name in num_names().unwrap() {
        let golden = NumGolden::load(&name).unwrap();
        for input in &golden.inputs {
            let what = format!("{name}: {}", input.name);
            let seed = input_name(&input.name);
            let data = fill_f32(&seed, &input.shape, input.rule, 1.0).unwrap();
            to_nine_digits(&data[..input.first.len()], &input.first, &what);
            let size: f64 = data.iter().map(|value| f64::from(value.abs())).sum();
            let sum: f64 = data.iter().map(|value| f64::from(*value)).sum();
            assert!((sum - input.sum).abs() <= 1e-10 * size, "{what}: {sum}");
            if let Some(whole) = fill_i64(&seed, &input.shape, input.rule) {
                assert_eq!(whole.iter().sum::<i64>() as f64, input.sum, "{what}");
            }
        }
    }
}

#[test]
fn the_rule_of_every_weight() {
    let mut checked = 0;
    for name in num_names().unwrap() {
        let golden = NumGolden::load(&name).unwrap();
        let graph = graph(&golden.graph);
        for weight in &golden.weights {
            let (owner, _) = weight.name.rsplit_once('.').unwrap_or(("", &weight.name));
            let is_buffer = graph
                .buffers
                .iter()
                .any(|buffer| buffer.name == weight.name);
            // The graph knows the classes of the modules it calls only.
            let Some(module) = graph.modules.iter().find(|module| module.path == owner) else {
                continue;
            };
            let rule = rule_for(&weight.name, &module.class, weight.shape.len(), is_buffer);
            assert_eq!(rule, weight.rule, "{name}: {}", weight.name);
            checked += 1;
        }
    }
    assert!(checked > 300, "{checked}");
}

#[test]
fn rules_and_their_edges() {
    assert_eq!(
        rule_for("a.weight", "fx_nn::nn::LayerNorm", 1, false),
        Rule::NormWeight
    );
    assert_eq!(rule_for("weight", "LayerNorm", 2, false), Rule::Weight);
    assert_eq!(
        rule_for("weight", "torch.nn.modules.Normal.Linear", 1, false),
        Rule::Bias
    );
    assert_eq!(rule_for("weight", "Embedding", 2, false), Rule::Embedding);
    assert_eq!(rule_for("bias", "BatchNorm2d", 1, false), Rule::Bias);
    assert_eq!(
        rule_for("bn.running_mean", "BatchNorm2d", 1, true),
        Rule::RunningMean
    );
    assert_eq!(
        rule_for("bn.running_var", "BatchNorm2d", 1, true),
        Rule::RunningVar
    );
    assert_eq!(
        rule_for("bn.num_batches_tracked", "BatchNorm2d", 0, true),
        Rule::Keep
    );
    assert_eq!(fill_f32("x", &[2], Rule::Keep, 1.0), None);
    assert_eq!(fill_f32("x", &[0, 4], Rule::Weight, 1.0), Some(vec![]));
    assert_eq!(fill_f32("x", &[], Rule::Bias, 1.0).unwrap().len(), 1);
    let mask = fill_i64("input:m", &[2, 3], Rule::Mask { zeros: 2 }).unwrap();
    assert_eq!(mask, [1, 1, 1, 1, 0, 0]);
    assert_eq!(fill_i64("input:x", &[2], Rule::Input), None);
    let wide = formula::fill_f64("w", &[3, 2], Rule::Weight, 1.5).unwrap();
    let narrow = fill_f32("w", &[3, 2], Rule::Weight, 1.5).unwrap();
    assert_eq!(
        wide,
        narrow
            .iter()
            .map(|&value| f64::from(value))
            .collect::<Vec<_>>()
    );
}

// ---- the files

#[test]
fn every_graph_reads_and_is_equal_to_itself() {
    let names = graph_names().unwrap();
    assert_eq!(names.len(), 78);
    let mut refused = 0;
    for name in names {
        let golden = graph(&name);
        assert_eq!(golden.name, name);
        let nodes = views(&golden);
        let comparison = compare_graphs(&golden, &nodes, &[]);
        if golden.refusal.is_some() {
            refused += 1;
            one_difference(&comparison, &["PyTorch refused to trace this"]);
            continue;
        }
        same(&comparison, &[]);
        let counted: usize = golden.count.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, nodes.len(), "{name}");
        for node in &golden.nodes {
            assert_eq!(node.users.len(), node.num_users, "{name}: {}", node.name);
        }
        // Names of ours other than the goldens' make no difference.
        let renamed = rename_all(nodes);
        same(&compare_graphs(&golden, &renamed, &[]), &[]);
    }
    assert_eq!(refused, 5);
}

fn rename_all(mut nodes: Vec<NodeView>) -> Vec<NodeView> {
    fn rename(value: &mut Literal) {
        match value {
            Literal::Node(name) => name.push_str("_of_ours"),
            Literal::List(items) | Literal::Tuple(items) | Literal::Size(items) => {
                items.iter_mut().for_each(rename);
            }
            Literal::Dict(entries) => entries.iter_mut().for_each(|(_, value)| rename(value)),
            Literal::Slice(parts) => parts.iter_mut().for_each(rename),
            _ => {}
        }
    }
    for node in &mut nodes {
        node.name.push_str("_of_ours");
        node.args.iter_mut().for_each(rename);
        node.kwargs.iter_mut().for_each(|(_, value)| rename(value));
    }
    nodes
}

#[test]
fn every_numbers_file_reads_and_passes_against_itself() {
    let names = num_names().unwrap();
    assert_eq!(names.len(), 54);
    for name in names {
        let golden = NumGolden::load(&name).unwrap();
        assert_eq!(golden.name, name);
        for output in &golden.outputs {
            if output.stride == 1 {
                let comparison = compare_numbers(output, &output.f64.data, &output.shape);
                // The data has nine digits.
                assert!(comparison.passed(1e-8), "{name}: {comparison}");
                let comparison = compare_numbers(output, &output.f32.data, &output.shape);
                assert!(comparison.passed(1e-5), "{name}: {comparison}");
            }
        }
        for node in &golden.nodes {
            let golden_node = graph(&golden.graph);
            assert!(
                golden_node.node(&node.name).is_some(),
                "{name}: {}",
                node.name
            );
        }
    }
}

#[test]
fn literals_keep_their_types() {
    let slicing = graph("feat_slicing");
    let parts = |start, stop, step| Literal::Slice(Box::new([start, stop, step]));
    let (none, int) = (Literal::None, Literal::Int);
    let index = Literal::Tuple(vec![
        parts(none.clone(), none.clone(), none.clone()),
        parts(int(1), int(3), none.clone()),
        none,
        Literal::Ellipsis,
    ]);
    assert_eq!(slicing.node("getitem").unwrap().args[1], index);
    let masked = graph("gpt2_small");
    let masked = &masked.node("masked_fill").unwrap().args[2];
    assert_eq!(*masked, Literal::Float(f64::NEG_INFINITY));
    let divided = graph("bert_small");
    let divided = &divided.node("truediv").unwrap().args[1];
    assert_eq!(*divided, Literal::Float(12f64.sqrt()));
    assert_ne!(Literal::Int(1), Literal::Float(1.0));
    assert_ne!(Literal::Int(1), Literal::Bool(true));
    assert_ne!(Literal::List(vec![]), Literal::Tuple(vec![]));
    assert_ne!(Literal::Float(0.0), Literal::Float(-0.0));
    assert_eq!(Literal::Float(f64::NAN), Literal::Float(f64::NAN));
}

#[test]
fn a_missing_file_is_named() {
    let error = GraphGolden::load("no_such_golden").unwrap_err();
    assert!(error.to_string().contains("no_such_golden.json"), "{error}");
}

// ---- the comparator: one thing changed

#[test]
fn an_opcode() {
    let golden = graph("mlp");
    let mut nodes = views(&golden);
    node(&mut nodes, "relu").op = "call_method".to_owned();
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the opcode differs", "node 2"],
    );
}

#[test]
fn a_target() {
    let golden = graph("mlp");
    let mut nodes = views(&golden);
    node(&mut nodes, "fc2").target = "fc3".to_owned();
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the path differs", "fc2", "fc3"],
    );

    let mut nodes = views(&golden);
    node(&mut nodes, "relu").target = "fx_nn::ops::relu".to_owned();
    same(&compare_graphs(&golden, &nodes, &[]), &[]);
    node(&mut nodes, "relu").target = "fx_nn::ops::relu6".to_owned();
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the function differs", "relu6"],
    );

    let mut nodes = views(&golden);
    nodes[0].target = "y".to_owned();
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the argument's name differs"],
    );

    let golden = graph("doc_mymodule");
    let mut nodes = views(&golden);
    node(&mut nodes, "clamp").target = "clip".to_owned();
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the method differs", "clip"],
    );
    let mut nodes = views(&golden);
    node(&mut nodes, "param").target = "parameter".to_owned();
    one_difference(&compare_graphs(&golden, &nodes, &[]), &["the path differs"]);
}

#[test]
fn an_edge() {
    let golden = graph("resnet18");
    let mut nodes = views(&golden);
    node(&mut nodes, "add").args[1] = text("relu");
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the edge differs", "argument 1", "%maxpool", "%relu"],
    );
    node(&mut nodes, "add").args[1] = text("gone");
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["our graph does not have"],
    );
    node(&mut nodes, "add").args[1] = Literal::Int(3);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the node %maxpool, ours the int 3"],
    );
}

#[test]
fn swapped_operands_and_swapped_nodes() {
    let golden = graph("feat_operators");
    let mut nodes = views(&golden);
    node(&mut nodes, "sub").args.swap(0, 1);
    let comparison = compare_graphs(&golden, &nodes, &[]);
    assert_eq!(comparison.differences.len(), 2, "{comparison}");

    let mut nodes = views(&golden);
    let at = nodes.iter().position(|node| node.name == "sub").unwrap();
    nodes.swap(at, at + 1);
    assert!(!compare_graphs(&golden, &nodes, &[]).equal);

    // Two calls of one function, in the other order.
    let golden = graph("siamese");
    let mut nodes = views(&golden);
    let first = |node: &&NodeView| node.op == "call_module";
    let first = nodes.iter().find(first).unwrap().target.clone();
    let calls: Vec<usize> = (0..nodes.len())
        .filter(|&i| nodes[i].op == "call_module" && nodes[i].target == first)
        .collect();
    assert!(calls.len() > 1);
    let first = nodes[calls[0]].args.clone();
    nodes[calls[0]].args = nodes[calls[1]].args.clone();
    nodes[calls[1]].args = first;
    assert!(!compare_graphs(&golden, &nodes, &[]).equal);
}

#[test]
fn a_literal() {
    let golden = graph("feat_operators");
    let mut nodes = views(&golden);
    node(&mut nodes, "add").args[1] = Literal::Float(1.0);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["argument 1", "the int 1", "the float 1.0"],
    );
    same(
        &compare_graphs(&golden, &nodes, &[Exception::IntLiteralForFloatParameter]),
        &["IntLiteralForFloatParameter"],
    );
    node(&mut nodes, "add").args[1] = Literal::Float(2.0);
    assert!(!compare_graphs(&golden, &nodes, &[Exception::IntLiteralForFloatParameter]).equal);
    node(&mut nodes, "add").args[1] = Literal::Int(2);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["PyTorch has 1, ours 2"],
    );

    // A float of ours never stands for a bool, and a float of PyTorch never for an int of ours.
    let mut nodes = views(&golden);
    node(&mut nodes, "truediv").args[0] = Literal::Int(1);
    let comparison = compare_graphs(&golden, &nodes, &[Exception::IntLiteralForFloatParameter]);
    assert_eq!(comparison.differences.len(), 2, "{comparison}");

    let golden = graph("feat_slicing");
    let mut nodes = views(&golden);
    node(&mut nodes, "getitem_3").args[1] =
        Literal::Slice(Box::new([Literal::None, Literal::None, Literal::Int(3)]));
    one_difference(&compare_graphs(&golden, &nodes, &[]), &["argument 1.step"]);
}

#[test]
fn lists_tuples_and_dicts() {
    let golden = graph("tuple_out");
    let mut nodes = views(&golden);
    let output = nodes.last_mut().unwrap();
    let Literal::Tuple(items) = output.args[0].clone() else {
        panic!("{:?}", output.args);
    };
    output.args[0] = Literal::List(items);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["the tuple", "the list"],
    );
    same(
        &compare_graphs(&golden, &nodes, &[Exception::ListForTuple]),
        &["ListForTuple"],
    );

    let golden = graph("dict_out");
    let mut nodes = views(&golden);
    let Literal::Dict(entries) = &mut nodes.last_mut().unwrap().args[0] else {
        panic!("no dict");
    };
    entries.swap(0, 1);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["keys are \"a\", \"b\", \"n\""],
    );
}

#[test]
fn a_node_that_is_missing_or_new() {
    let golden = graph("feat_deep_names");
    let mut nodes = views(&golden);
    let end = nodes.len() - 1;
    nodes.remove(end - 1);
    nodes[end - 1].args[0] = text("relu_10");
    let comparison = compare_graphs(&golden, &nodes, &[]);
    assert_eq!(comparison.differences.len(), 2, "{comparison}");
    assert!(
        comparison.differences[0].contains("of PyTorch is missing here"),
        "{comparison}"
    );

    let golden = graph("mlp");
    let mut nodes = views(&golden);
    let at = nodes.iter().position(|node| node.name == "tanh").unwrap();
    let mut extra = nodes[at].clone();
    extra.name = "extra".to_owned();
    nodes.insert(at + 1, extra);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["is not in PyTorch's graph", "call_function"],
    );
    let only = |node| Exception::OnlyInRust {
        node,
        why: "a test",
    };
    same(
        &compare_graphs(&golden, &nodes, &[only("extra")]),
        &["OnlyInRust"],
    );
    assert!(!compare_graphs(&golden, &nodes, &[only("fc1")]).equal);

    let empty = compare_graphs(&golden, &[], &[]);
    assert_eq!(empty.differences.len(), golden.nodes.len());
}

#[test]
fn nodes_that_only_pytorch_has() {
    let golden = graph("doc_concrete_args_flag_true");
    let mut nodes = views(&golden);
    nodes.retain(|node| node.name != "eq" && node.name != "_assert");
    assert_eq!(compare_graphs(&golden, &nodes, &[]).differences.len(), 2);
    let only = |node| Exception::OnlyInTorch {
        node,
        why: "a test",
    };
    let exceptions = [only("eq"), only("_assert"), Exception::PythonReservedName];
    node(&mut nodes, "flag_1").target = "flag".to_owned();
    same(
        &compare_graphs(&golden, &nodes, &exceptions),
        &["OnlyInTorch", "PythonReservedName"],
    );

    // What is left out cannot be used.
    let golden = graph("mlp");
    let mut nodes = views(&golden);
    nodes.retain(|node| node.name != "drop");
    node(&mut nodes, "fc3").args[0] = text("tanh");
    one_difference(
        &compare_graphs(&golden, &nodes, &[only("drop")]),
        &["which has no counterpart here"],
    );
}

#[test]
fn a_repeated_node() {
    let golden = graph("gpt2_small");
    let mut nodes = views(&golden);
    let repeated = |node, first| Exception::RepeatedInTorch {
        node,
        first,
        why: "a test",
    };
    // The two size nodes have other arguments: the exception does not hold for them.
    let wrong = compare_graphs(&golden, &nodes, &[repeated("size_1", "size")]);
    one_difference(
        &wrong,
        &["RepeatedInTorch (%size_1 is %size)", "not needed"],
    );
    nodes.retain(|node| node.name != "floordiv_1");
    let used = nodes.iter_mut().find(|node| node.name == "view_1").unwrap();
    used.args[4] = text("floordiv");
    assert!(!compare_graphs(&golden, &nodes, &[]).equal);
    same(
        &compare_graphs(&golden, &nodes, &[repeated("floordiv_1", "floordiv")]),
        &["RepeatedInTorch"],
    );
}

#[test]
fn an_extra_keyword() {
    let golden = graph("mlp");
    let mut nodes = views(&golden);
    let relu = node(&mut nodes, "relu");
    relu.kwargs.push(("alpha".to_owned(), Literal::Float(1.0)));
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["argument alpha", "ours passes 1.0"],
    );
}

#[test]
fn an_exception_that_was_not_needed() {
    let golden = graph("mlp");
    let nodes = views(&golden);
    for exception in [
        Exception::NoneDtype,
        Exception::PythonInplaceFlag,
        Exception::VariadicAsOneSequence,
        Exception::FunctionRenamed {
            theirs: "add",
            ours: "plus",
            why: "a test",
        },
    ] {
        let comparison = compare_graphs(&golden, &nodes, std::slice::from_ref(&exception));
        one_difference(&comparison, &["not needed", &exception.to_string()]);
        assert!(comparison.used.is_empty());
        assert!(!exception.reason().is_empty());
    }
}

#[test]
fn names_used_twice() {
    let golden = graph("mlp");
    let mut nodes = views(&golden);
    nodes[2].name = "fc1".to_owned();
    let comparison = compare_graphs(&golden, &nodes, &[]);
    assert!(
        comparison.differences[0].contains("both named %fc1"),
        "{comparison}"
    );
}

// ---- the comparator: arguments by signature

/// mlp as Rust has it: `relu(x)` and `log_softmax(x, dim)`.
fn rust_mlp(golden: &GraphGolden) -> Vec<NodeView> {
    let mut nodes = views(golden);
    let relu = node(&mut nodes, "relu");
    relu.kwargs.clear();
    relu.params = Some(vec![param("x", false, None)]);
    let softmax = node(&mut nodes, "log_softmax");
    softmax.kwargs.clear();
    softmax.args.push(Literal::Int(-1));
    softmax.params = Some(vec![param("x", false, None), param("dim", false, None)]);
    nodes
}

#[test]
fn keywords_meet_positions_under_the_parameters_name() {
    let golden = graph("mlp");
    let nodes = rust_mlp(&golden);
    let all = [
        Exception::PythonInplaceFlag,
        Exception::PythonStacklevel,
        Exception::NoneDtype,
    ];
    same(
        &compare_graphs(&golden, &nodes, &all),
        &["PythonInplaceFlag", "PythonStacklevel", "NoneDtype"],
    );
    one_difference(
        &compare_graphs(&golden, &nodes, &all[..2]),
        &["the keyword dtype=None", "no such parameter"],
    );

    // A parameter with that default needs no exception.
    let mut with_dtype = nodes.clone();
    let params = node(&mut with_dtype, "log_softmax")
        .params
        .as_mut()
        .unwrap();
    params.push(param("dtype", true, Some(Literal::None)));
    same(
        &compare_graphs(&golden, &with_dtype, &all[..2]),
        &["PythonInplaceFlag", "PythonStacklevel"],
    );

    let mut wrong = nodes.clone();
    node(&mut wrong, "log_softmax").args[1] = Literal::Int(1);
    one_difference(
        &compare_graphs(&golden, &wrong, &all),
        &["argument dim", "PyTorch has -1, ours 1"],
    );

    let mut renamed = nodes.clone();
    node(&mut renamed, "log_softmax").params.as_mut().unwrap()[1].name = "axis".to_owned();
    assert!(!compare_graphs(&golden, &renamed, &all).equal);
    let mut more = all.to_vec();
    more.push(Exception::ArgumentRenamed {
        callee: "log_softmax",
        theirs: "dim",
        ours: "axis",
        why: "a test",
    });
    assert!(compare_graphs(&golden, &renamed, &more).equal);

    let mut one = vec![Exception::PythonOnlyArgument {
        callee: "relu",
        name: "inplace",
        value: Literal::Bool(false),
        why: "a test",
    }];
    one.extend_from_slice(&all[1..]);
    assert!(compare_graphs(&golden, &nodes, &one).equal);
    if let Exception::PythonOnlyArgument { value, .. } = &mut one[0] {
        *value = Literal::Bool(true);
    }
    assert!(!compare_graphs(&golden, &nodes, &one).equal);
}

#[test]
fn defaults_are_dropped() {
    let golden = graph("doc_mymodule");
    let mut nodes = views(&golden);
    let none = || Some(Literal::None);
    let clamp = node(&mut nodes, "clamp");
    clamp.params = Some(vec![
        param("self", false, None),
        param("min", true, none()),
        param("max", true, none()),
    ]);
    same(&compare_graphs(&golden, &nodes, &[]), &[]);

    // Ours leaves out what is its default; PyTorch passes it.
    let clamp = node(&mut nodes, "clamp");
    clamp.params.as_mut().unwrap()[1].default = Some(Literal::Float(0.0));
    clamp.kwargs.retain(|(name, _)| name != "min");
    same(&compare_graphs(&golden, &nodes, &[]), &[]);
    let clamp = node(&mut nodes, "clamp");
    clamp.params.as_mut().unwrap()[1].default = none();
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &[
            "argument min: PyTorch passes",
            "ours leaves it out",
            "default is None None",
        ],
    );

    // Ours passes what PyTorch leaves out.
    let golden = graph("resnet18");
    let mut nodes = views(&golden);
    let flatten = node(&mut nodes, "flatten");
    flatten.args.push(Literal::Int(-1));
    flatten.params = Some(vec![
        param("x", false, None),
        param("start_dim", false, Some(Literal::Int(0))),
        param("end_dim", false, Some(Literal::Int(-1))),
    ]);
    same(&compare_graphs(&golden, &nodes, &[]), &[]);
    node(&mut nodes, "flatten").args[2] = Literal::Int(2);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["argument end_dim: ours passes 2"],
    );
    node(&mut nodes, "flatten").args.truncate(1);
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["argument start_dim: PyTorch passes int 1"],
    );
}

#[test]
fn ours_keeps_its_own_signature() {
    let golden = graph("resnet18");
    let mut nodes = views(&golden);
    let flatten = node(&mut nodes, "flatten");
    flatten.params = Some(vec![param("x", false, None)]);
    let comparison = compare_graphs(&golden, &nodes, &[]);
    assert_eq!(comparison.differences.len(), 2, "{comparison}");
    let flatten = node(&mut nodes, "flatten");
    flatten.params = Some(vec![
        param("x", false, None),
        param("start_dim", true, None),
    ]);
    one_difference(&compare_graphs(&golden, &nodes, &[]), &["by keyword only"]);
    let flatten = node(&mut nodes, "flatten");
    let start = flatten.args.remove(1);
    flatten.kwargs.push(("start_dim".to_owned(), start));
    same(&compare_graphs(&golden, &nodes, &[]), &[]);
    let flatten = node(&mut nodes, "flatten");
    flatten.kwargs.push(("shape".to_owned(), Literal::None));
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["its own signature has no such"],
    );
}

#[test]
fn variadic_arguments() {
    let golden = graph("gpt2_small");
    let mut nodes = views(&golden);
    let mut changed = 0;
    for node in &mut nodes {
        if node.op == "call_method" && node.target == "view" {
            let sizes = node.args.split_off(1);
            node.args.push(Literal::List(sizes));
            node.params = Some(vec![
                param("self", false, None),
                param("shape", false, None),
            ]);
            changed += 1;
        }
    }
    assert!(changed > 4);
    assert!(!compare_graphs(&golden, &nodes, &[]).equal);
    same(
        &compare_graphs(&golden, &nodes, &[Exception::VariadicAsOneSequence]),
        &["VariadicAsOneSequence"],
    );
    let view = nodes.iter_mut().find(|node| node.target == "view").unwrap();
    let Literal::List(sizes) = &mut view.args[1] else {
        panic!("no list");
    };
    sizes[2] = Literal::Int(5);
    one_difference(
        &compare_graphs(&golden, &nodes, &[Exception::VariadicAsOneSequence]),
        &["argument shape[2]", "PyTorch has 4, ours 5"],
    );

    // An index is not a variadic argument.
    let golden = graph("feat_slicing");
    let mut nodes = views(&golden);
    node(&mut nodes, "getitem_1").args[1] = Literal::Tuple(vec![Literal::Int(0)]);
    assert!(!compare_graphs(&golden, &nodes, &[Exception::VariadicAsOneSequence]).equal);
}

#[test]
fn renamed_callees() {
    let golden = graph("feat_operators");
    let mut nodes = views(&golden);
    node(&mut nodes, "and_").target = "fx_core::operator::and".to_owned();
    let abs = node(&mut nodes, "abs_1");
    abs.op = "call_method".to_owned();
    abs.target = "absolute".to_owned();
    let t = node(&mut nodes, "t");
    t.op = "call_function".to_owned();
    t.target = "fx_nn::ops::transpose".to_owned();
    let why = "a test";
    let exceptions = [
        Exception::FunctionRenamed {
            theirs: "and_",
            ours: "and",
            why,
        },
        Exception::MethodForFunction {
            theirs: "abs",
            ours: "absolute",
            why,
        },
        Exception::FunctionForMethod {
            theirs: "t",
            ours: "transpose",
            why,
        },
    ];
    same(
        &compare_graphs(&golden, &nodes, &exceptions),
        &["FunctionRenamed", "MethodForFunction", "FunctionForMethod"],
    );
    assert_eq!(compare_graphs(&golden, &nodes, &[]).differences.len(), 3);
}

#[test]
fn a_default_that_rust_cannot_have() {
    let golden = graph("feat_annotated");
    let mut nodes = views(&golden);
    node(&mut nodes, "n").args.clear();
    one_difference(
        &compare_graphs(&golden, &nodes, &[]),
        &["PyTorch passes 1, ours does not"],
    );
    same(
        &compare_graphs(&golden, &nodes, &[Exception::PythonDefaultValue]),
        &["PythonDefaultValue"],
    );
}

// ---- numbers

#[test]
fn numbers_within_and_beyond_the_bar() {
    let golden = NumGolden::load("mlp").unwrap();
    let output = &golden.outputs[0];
    let absmax = output.f64.absmax;
    let mut data = output.f64.data.clone();
    data[3] += 2e-5 * absmax;
    let comparison = compare_numbers(output, &data, &[4, 4]);
    assert!((comparison.max_rel_err - 2e-5).abs() < 1e-9, "{comparison}");
    assert!((comparison.max_abs_err - 2e-5 * absmax).abs() < 1e-9);
    assert!(comparison.worst.contains("element 3"), "{comparison}");
    assert!(!comparison.passed(1e-5));
    assert!(comparison.passed(3e-5));
    assert!(!comparison.passed(f64::NAN));

    for wrong in [&[16][..], &[2, 8], &[]] {
        assert!(!compare_numbers(output, &output.f64.data, wrong).passed(f64::INFINITY));
    }
    assert!(!compare_numbers(output, &output.f64.data[1..], &[4, 4]).passed(1.0));

    for poison in [f64::NAN, f64::INFINITY] {
        let mut data = output.f64.data.clone();
        data[7] = poison;
        assert!(!compare_numbers(output, &data, &[4, 4]).passed(1e30));
    }
}

#[test]
fn numbers_by_stride() {
    let golden = NumGolden::load("mlp").unwrap();
    let mut output = golden.outputs[0].clone();
    let data = output.f64.data.clone();
    output.stride = 3;
    output.f64.data = data.iter().copied().step_by(3).collect();
    assert!(compare_numbers(&output, &data, &[4, 4]).passed(1e-9));
    let mut wrong = data.clone();
    wrong[3] += 0.5;
    assert!(!compare_numbers(&output, &wrong, &[4, 4]).passed(1e-2));
    // An element that the golden does not list shows in the mean.
    let mut wrong = data;
    wrong[4] += 0.5;
    assert!(!compare_numbers(&output, &wrong, &[4, 4]).passed(1e-2));
    output.f64.data.pop();
    let comparison = compare_numbers(&output, &wrong, &[4, 4]);
    assert!(comparison.problem.unwrap().contains("the golden is broken"));
}

#[test]
fn numbers_inside_the_graph() {
    let golden = NumGolden::load("doc_negsigm_before").unwrap();
    for node in &golden.nodes {
        let count: usize = node.shape.iter().product();
        if count != node.f64.data.len() {
            continue;
        }
        assert!(compare_node_numbers(node, &node.f32.data, &node.shape).passed(1e-5));
        let mut wrong = node.f64.data.clone();
        wrong[0] += 1.0;
        assert!(!compare_node_numbers(node, &wrong, &node.shape).passed(1e-5));
    }
}
