//! Files that go out: rules for every function, sizes as arithmetic, files that come back.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

#[path = "../examples/support/mod.rs"]
mod support;

use std::collections::{HashMap, HashSet};

use fx_nn::ir::{Argument, FunctionTable, NodeRef, Op, ValueMeta, registry};
use fx_nn::lowering::Rules;
use fx_nn::module::ComponentExt;
use fx_nn::passes::CoreSet;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::CallArgs;
use fx_nn::value::NodeId;
use fx_nn::{Bound, control};
use fx_onnx::proto::ModelProto;
use fx_onnx::{Cx, Export, Layers, Load, OnnxExt, Weights};
use prost::Message;
use support::rten;

fn list(all: &[Tensor]) -> Value {
    Value::List(all.iter().cloned().map(Value::object).collect())
}

/// The largest difference between a graph module and rten on its file.
fn beside_rten(gm: &GraphModule, export: &Export, calls: &[Vec<Tensor>]) -> Result<f64> {
    let (bytes, _) = gm.to_onnx_bytes(export)?;
    let model = rten::load(bytes)?;
    let mut most = 0f64;
    for inputs in calls {
        let args = inputs.iter().cloned().map(Value::object).collect();
        let own: Value = gm.forward(CallArgs {
            args,
            kwargs: Vec::new(),
        })?;
        most = most.max(fx_onnx::max_rel_err(
            &list(&rten::run(&model, inputs)?),
            &own,
        )?);
    }
    Ok(most)
}

/// Every operation has nodes, is written by other functions, or has a reason.
#[test]
fn every_function_has_a_rule_or_a_reason() -> Result<()> {
    let (rules, core) = (
        Rules::<Cx>::default(),
        FunctionTable::<CoreSet>::registered()?,
    );
    let mut without = Vec::new();
    for (function, _) in core.iter() {
        let is_ours = function.path().starts_with("fx_nn::ops::")
            || function.path().starts_with("fx_core::operator");
        if is_ours && rules.form(function)?.is_none() {
            without.push(function.path());
        }
    }
    assert!(without.is_empty(), "no rule: {without:?}");
    let _ = registry::methods("relu");
    Ok(())
}

/// Padding and sizes that are computed from the size of the input: what a back end that is captured sees are the numbers
/// of one run; what is recorded is the arithmetic.
#[test]
fn sizes_that_were_meant_are_right_at_other_sizes() -> Result<()> {
    let padded = traced!(|x: &Tensor| {
        let (height, width) = (x.size(2)?, x.size(3)?);
        // Up to a multiple of 16, half of it on each side.
        let extra = |size: Int| -> Result<Int> { (16 - (size - (size.floordiv(16)? * 16)?)?)? - 0 };
        let (rows, columns) = (extra(height)?, extra(width)?);
        let (top, left) = (rows.floordiv(2)?, columns.floordiv(2)?);
        let x = ops::pad(
            x,
            vec![left, (columns - left)?, top, (rows - top)?],
            "constant",
            Bound::from(0.0),
        )?;
        let x = ops::avg_pool2d(&x, 4, 4, 0, false, true)?;
        let patches = x.view((x.size(0)?, x.size(1)?, -1))?;
        ops::transpose(&patches, 1, 2)? / height
    });
    let gm = symbolic_trace(padded)?;
    let image = |n: usize, h: usize, w: usize| -> Result<Vec<Tensor>> {
        Ok(vec![Tensor::randn((n, 3, h, w))?])
    };
    let example = image(2, 30, 41)?;
    let export = Export::example(&example[0])
        .dynamic("batch", [("x", 0)])
        .dynamic("height", [("x", 2)])
        .dynamic("width", [("x", 3)]);
    let calls = [
        image(1, 16, 16)?,
        image(2, 33, 17)?,
        image(3, 47, 20)?,
        image(1, 64, 31)?,
        image(5, 18, 90)?,
    ];
    assert!(beside_rten(&gm, &export, &calls)? < 1e-5);
    Ok(())
}

/// A branch and a loop go out, run in rten, and come back.
#[test]
fn branches_and_loops_go_out_and_come_back() -> Result<()> {
    let halved = traced!(|x: &Tensor| {
        let positive = x.sum(..)?.gt(0.0)?;
        let x = control::cond(positive, || x * 2.0, || -x)?;
        control::while_loop(x, |x: &Tensor| x.amax(..)?.gt(1.0), |x: Tensor| &x / 2.0)
    });
    let gm = symbolic_trace(halved)?;
    let x = Tensor::from_vec(vec![3f32, 8.0, -1.0], 3)?;
    let y = Tensor::from_vec(vec![-3f32, -8.0, 1.0], 3)?;
    let export = Export::example(&x);
    assert!(beside_rten(&gm, &export, &[vec![x.clone()], vec![y.clone()]])? < 1e-6);
    let (bytes, _) = gm.to_onnx_bytes(&export)?;
    let back = Load::new().from_bytes(bytes)?.module;
    for x in [&x, &y] {
        let (own, again): (Tensor, Tensor) = (gm.forward(x)?, back.forward(x)?);
        assert_eq!(own.to_vec()?, again.to_vec()?);
    }
    Ok(())
}

/// A scan goes out with its results stacked.
#[test]
fn scans_go_out_and_come_back() -> Result<()> {
    let sums = traced!(|xs: &Tensor| {
        let (last, all) =
            control::scan(Tensor::zeros(2)?, xs.clone(), |sum: Tensor, x: Tensor| {
                let sum = (sum + x)?;
                Ok((sum.clone(), sum))
            })?;
        Ok((last, all))
    });
    let gm = symbolic_trace(sums)?;
    let xs = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0], (3, 2))?;
    let (bytes, _) = gm.to_onnx_bytes(&Export::example(&xs))?;
    let back = Load::new().from_bytes(bytes)?.module;
    let (own, again): (Value, Value) = (gm.forward(&xs)?, back.forward(&xs)?);
    assert_eq!(fx_onnx::max_rel_err(&own, &again)?, 0.0);
    Ok(())
}

/// What comes back computes what went out, for every model.
#[test]
fn models_come_back() -> Result<()> {
    for case in support::models::all()? {
        if ["alexnet", "vgg11_bn", "resnet50", "vit_b_16"].contains(&case.name) {
            continue;
        }
        let inputs = (case.inputs)(2)?;
        let args: Vec<Value> = inputs.iter().cloned().map(Value::object).collect();
        let axes = case.axes();
        let export = Export::example(CallArgs {
            args,
            kwargs: Vec::new(),
        })
        .dynamic("batch", axes.iter().map(|(input, dim)| (&**input, *dim)))
        .checked();
        let (_, report) = case.gm.to_onnx_bytes(&export)?;
        let error = report.max_rel_err.unwrap_or(1.0);
        assert!(error < 1e-5, "{}: {error}", case.name);

        // With modules as functions, every node still has a name of its own.
        let (bytes, _) = case.gm.to_onnx_bytes(&export.layers(Layers::Functions))?;
        let file = ModelProto::decode(&*bytes).map_err(Error::other)?;
        let mut names = HashSet::new();
        for node in file.graph.unwrap_or_default().node {
            assert!(
                names.insert(node.name.clone()),
                "{}: {}",
                case.name,
                node.name
            );
        }
    }
    Ok(())
}

/// A size that was written with a name is read with it, and what was read runs at other sizes.
#[test]
fn named_sizes_come_back() -> Result<()> {
    let (mut exported, mut read_back, mut equal) = (0, 0, 0);
    for case in support::models::all()? {
        let axes = case.axes();
        if axes.is_empty() {
            continue;
        }
        let [written, first, second] = case.batches;
        let args = |batch| -> Result<CallArgs> {
            let inputs = (case.inputs)(batch)?.into_iter();
            Ok(CallArgs {
                args: inputs.map(Value::object).collect(),
                kwargs: Vec::new(),
            })
        };
        let export = Export::example(args(written)?)
            .dynamic("batch", axes.iter().map(|(input, dim)| (&**input, *dim)));
        let (bytes, _) = case.gm.to_onnx_bytes(&export)?;
        exported += 1;
        let back = Load::new().from_bytes(bytes)?.module;
        let names: Vec<&str> = back
            .contract()
            .into_iter()
            .flat_map(|contract| contract.symbols().map(|(name, ..)| name))
            .collect();
        assert_eq!(names, ["batch"], "{}", case.name);
        read_back += 1;
        for batch in [first, second] {
            let call = args(batch)?;
            let (own, again): (Value, Value) =
                (case.gm.forward(call.clone())?, back.forward(call)?);
            let error = fx_onnx::max_rel_err(&again, &own)?;
            assert!(error < 1e-5, "{} at {batch}: {error}", case.name);
        }
        equal += 1;
    }
    println!("exported {exported} read_back {read_back} equal {equal}");
    assert!(exported >= 18 && exported == equal);
    Ok(())
}

/// The same graph goes out again: what comes back is written as it was.
#[test]
fn a_graph_that_comes_back_goes_out_as_it_was() -> Result<()> {
    let mut model = fx_nn::models::resnet::resnet18(10)?;
    model.eval();
    let x = Tensor::randn((2, 3, 64, 64))?;
    let export = Export::example(&x).dynamic("batch", [("x", 0)]);
    let (bytes, first) = symbolic_trace(&model)?.to_onnx_bytes(&export)?;
    let back = Load::new().from_bytes(bytes)?.module;
    let (again, second) = back.to_onnx_bytes(&export)?;
    assert_eq!(first.nodes, second.nodes);
    let third = Load::new().from_bytes(again)?.module;
    assert_eq!(back.graph().to_string(), third.graph().to_string());
    Ok(())
}

/// Modules as functions, weights beside the file or nowhere, half precision.
#[test]
fn options_are_kept() -> Result<()> {
    let gm = symbolic_trace(&fx_nn::models::mlp::Mlp::new(16, 32, 4)?)?;
    let x = Tensor::randn((2, 16))?;
    let folder = std::env::temp_dir().join(format!("fx_onnx_options_{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::other)?;
    let mut gm = gm;
    gm.eval();
    let path = folder.join("mlp.onnx");
    let external = Weights::External {
        file: "mlp.data".to_string(),
        from_bytes: 128,
    };
    gm.to_onnx(&path, &Export::example(&x).weights(external))?;
    let back = fx_onnx::load(&path)?.module;
    let (own, again): (Tensor, Tensor) = (gm.forward(&x)?, back.forward(&x)?);
    assert!(fx_onnx::max_rel_err(&Value::object(own.clone()), &Value::object(again))? < 1e-6);
    // Without the weights the file says what is missing.
    std::fs::remove_file(folder.join("mlp.data")).map_err(Error::other)?;
    assert!(fx_onnx::load(&path).is_err_and(|e| e.to_string().contains("mlp.data")));
    let (omitted, _) = gm.to_onnx_bytes(&Export::example(&x).weights(Weights::Omitted))?;
    assert!(omitted.len() < 6000, "{}", omitted.len());
    let half = Export::example(&x).half();
    let (bytes, _) = gm.to_onnx_bytes(&half)?;
    let back = Load::new().from_bytes(bytes)?.module;
    let half: Tensor = back.forward(&x.to_dtype(DType::F16)?)?;
    assert_eq!(half.dtype()?, DType::F16);
    assert!(fx_onnx::max_rel_err(&Value::object(own), &Value::object(half))? < 1e-2);
    let nested = symbolic_trace(&fx_nn::models::nested::Nested::new(8)?)?;
    let functions = Export::example(&Tensor::randn((2, 8))?).layers(Layers::Functions);
    let (bytes, report) = nested.to_onnx_bytes(&functions)?;
    assert!(report.functions > 0);
    let x = Tensor::randn((2, 8))?;
    let back = Load::new().from_bytes(bytes)?.module;
    let (own, again): (Value, Value) = (nested.forward(&x)?, back.forward(&x)?);
    assert!(fx_onnx::max_rel_err(&own, &again)? < 1e-6);
    std::fs::remove_dir_all(&folder).map_err(Error::other)
}

/// A model in training: batch norms take the statistics of the batch, and dropout drops.
#[test]
fn models_in_training_go_out() -> Result<()> {
    let model = nn::Sequential::new()
        .push(nn::Conv2d::new(3, 4, 3)?)
        .push(nn::BatchNorm2d::new(4)?)
        .push(nn::ReLU::new())
        .push(nn::Dropout::new(0.5)?);
    let gm = symbolic_trace(&model)?;
    let x = Tensor::randn((5, 3, 8, 8))?;
    let (bytes, report) = gm.to_onnx_bytes(&Export::example(&x))?;
    let file = ModelProto::decode(&*bytes).map_err(Error::other)?;
    let nodes = file.graph.unwrap_or_default().node;
    let node = |op: &str| {
        let mut found = nodes.iter().filter(|node| node.op_type == op);
        found.next().ok_or_else(|| Error::msg(format!("no {op}")))
    };
    // The statistics of a batch are written out: some engines keep the running ones in the memory of the weights.
    assert!(node("BatchNormalization").is_err() && node("ReduceMean").is_ok());
    assert_eq!(node("Dropout")?.input.len(), 3);
    assert_eq!(report.warnings.len(), 2, "{report}");

    // Without chance, the numbers are those of the batch.
    let mut model = nn::Sequential::new().push(nn::BatchNorm2d::new(3)?);
    let export = Export::example(&x).checked();
    let (_, report) = symbolic_trace(&model)?.to_onnx_bytes(&export)?;
    assert!(report.max_rel_err.is_some_and(|error| error < 1e-6));
    let trained: Tensor = symbolic_trace(&model)?.forward(&x)?;
    model.eval();
    let other: Tensor = symbolic_trace(&model)?.forward(&x)?;
    assert!((trained - other)?.abs()?.amax(..)?.item()? > 1e-3);
    Ok(())
}

/// What ONNX cannot have is listed, all at once, with line and reason.
#[test]
fn what_cannot_be_written_is_listed() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::erfinv(&ops::linalg::inv(x)?)))?;
    let error = gm
        .to_onnx_bytes(&Export::example(&Tensor::ones((2, 2))?))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("2 calls")
            && error.contains("no inverse error function")
            && error.contains("out.rs:"),
        "{error}"
    );
    Ok(())
}

/// What only an assertion reads is not in the file.
#[test]
fn nodes_that_nothing_reads_are_left_out() -> Result<()> {
    let gm = symbolic_trace(&fx_nn::models::vit::vit_b_16(32, 3)?)?;
    let (bytes, _) = gm.to_onnx_bytes(&Export::specs([fx_nn::shapes::Spec::tensor(
        [1, 3, 32, 32],
        DType::F32,
    )]))?;
    let model = fx_onnx::proto::ModelProto::decode(&*bytes).map_err(Error::other)?;
    let graph = model.graph.ok_or_else(|| Error::msg("a graph"))?;
    let mut read: Vec<&String> = graph.node.iter().flat_map(|node| &node.input).collect();
    read.extend(graph.output.iter().map(|info| &info.name));
    for node in &graph.node {
        assert!(
            node.output.iter().any(|name| read.contains(&name)),
            "{node:?}"
        );
    }
    Ok(())
}

/// A graph in words that do not depend on names and on the order of independent nodes: layers opened, and each way to say
/// a thing as one. Sizes are left out: in a file they are numbers.
fn in_words(gm: &GraphModule, inputs: &[Tensor]) -> Result<String> {
    struct Opened;
    impl fx_nn::trace::Tracer for Opened {
        fn is_leaf_module(&self, _: &fx_nn::trace::TraceContext, _: &dyn Module, _: &str) -> bool {
            false
        }
    }
    let opened = Trace::new(gm).tracer(Opened).graph_module()?;
    let mut gm = GraphModule::new(opened.attributes().clone(), opened.graph().clone(), "G")?;
    gm.apply(&fx_nn::passes::MethodsToFunctions)?;
    gm.apply(&fx_nn::passes::RemoveIdentity)?;
    gm.eliminate_dead_code()?;
    let specs = inputs.iter().map(|x| Spec::of(Value::object(x.clone())));
    gm.infer_shapes(&specs.collect::<Vec<Spec>>())?;
    let is_tensor = |node: &NodeRef<'_>| {
        node.meta()
            .is_some_and(|meta: &ValueMeta| meta.tensor().is_some())
    };
    let mut words: HashMap<NodeId, usize> = HashMap::new();
    let mut text = String::new();
    let Some(output) = gm.graph().output_node() else {
        return Ok(text);
    };
    let mut left = vec![(output, false)];
    while let Some((node, is_open)) = left.pop() {
        if words.contains_key(&node.id()) {
            continue;
        }
        let read: Vec<NodeRef<'_>> = node.all_input_nodes().filter(is_tensor).collect();
        if !is_open {
            left.push((node, true));
            left.extend(read.into_iter().rev().map(|node| (node, false)));
            continue;
        }
        let target = match node.op() {
            Op::GetAttr(_) => "weight",
            Op::Output => "output",
            _ => node.target(),
        };
        let target = match target.rsplit("::").next().unwrap_or(target) {
            "view" | "flatten" | "unflatten" => "reshape",
            "transpose" | "t" => "permute",
            "relu6" | "hardtanh" => "clamp",
            "pow" if node.args().get(1) == Some(&Argument::Int(2)) => "mul",
            other => other,
        };
        let args: Vec<String> = read
            .iter()
            .map(|node| words[&node.id()].to_string())
            .collect();
        let meta = node.meta::<ValueMeta>().and_then(ValueMeta::tensor);
        // A pool to the size that is there, and what only training does.
        let is_nothing = target.starts_with("adaptive") || target == "stochastic_depth";
        if let (true, [x]) = (is_nothing, &*read)
            && x.meta::<ValueMeta>()
                .and_then(ValueMeta::tensor)
                .map(|m| &m.shape)
                == meta.map(|m| &m.shape)
        {
            words.insert(node.id(), words[&x.id()]);
            continue;
        }
        let shape = meta.map_or(String::new(), |meta| format!("{:?}", meta.known_shape()));
        let number = text.lines().count();
        text.push_str(&format!(
            "{number} = {target}({}) {shape}\n",
            args.join(", ")
        ));
        words.insert(node.id(), number);
    }
    Ok(text)
}

/// What comes back is the graph that went out, but for names and for how its sizes are said.
#[test]
fn graphs_that_come_back_are_the_same() -> Result<()> {
    let mut same = Vec::new();
    for case in support::models::all()? {
        let inputs = (case.inputs)(1)?;
        let args: Vec<Value> = inputs.iter().cloned().map(Value::object).collect();
        let export = Export::example(CallArgs {
            args,
            kwargs: Vec::new(),
        });
        let (bytes, _) = case.gm.to_onnx_bytes(&export)?;
        let back = Load::new().from_bytes(bytes)?.module;
        let (before, after) = (in_words(&case.gm, &inputs)?, in_words(&back, &inputs)?);
        let apart = before.lines().zip(after.lines()).find(|(a, b)| a != b);
        println!("{}: {apart:?}", case.name);
        if before == after {
            same.push(case.name);
        }
    }
    assert!(same.len() >= 11, "{same:?}");
    Ok(())
}
