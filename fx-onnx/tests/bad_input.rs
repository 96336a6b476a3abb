//! Files that are cut, wrong or hostile: an error with the place, and no memory for what is not there.

use fx_nn::prelude::*;
use fx_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue,
    ValueInfoProto,
};
use fx_onnx::{Export, Limits, Load, OnnxExt};
use peak_alloc::PeakAlloc;
use prost::Message;

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

fn value(name: &str) -> ValueInfoProto {
    let tensor = TensorType {
        elem_type: 1,
        shape: Some(TensorShapeProto::default()),
    };
    ValueInfoProto {
        name: name.to_string(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::Tensor(tensor)),
        }),
        ..ValueInfoProto::default()
    }
}

fn node(op: &str, input: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: op.to_string(),
        input: input.iter().map(ToString::to_string).collect(),
        output: vec![output.to_string()],
        ..NodeProto::default()
    }
}

fn model(node: Vec<NodeProto>) -> ModelProto {
    ModelProto {
        ir_version: 10,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 20,
        }],
        graph: Some(GraphProto {
            node,
            name: "g".into(),
            input: vec![value("x")],
            output: vec![value("y")],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

/// The error of a model, which took no more memory than a file may.
fn refused(bytes: Vec<u8>) -> String {
    let size = bytes.len();
    PEAK.reset_peak_usage();
    let before = PEAK.current_usage();
    let error = Load::new()
        .from_bytes(bytes)
        .map(|_| ())
        .expect_err("the file is wrong")
        .to_string();
    let most = PEAK.peak_usage().saturating_sub(before);
    assert!(
        most <= 4 * size + (16 << 20),
        "{most} bytes for a file of {size}: {error}"
    );
    error
}

#[test]
fn wrong_files_are_refused_with_the_place() -> Result<()> {
    let gm = symbolic_trace(
        &nn::Sequential::new()
            .push(nn::Linear::new(64, 64)?)
            .push(nn::ReLU::new()),
    )?;
    let (bytes, _) = gm.to_onnx_bytes(&Export::example(&Tensor::ones((1, 64))?))?;
    for cut in (1..bytes.len()).step_by(7) {
        let error = refused(bytes[..cut].to_vec());
        assert!(!error.is_empty());
    }
    assert!(refused(b"not a model at all, by no means".to_vec()).contains("byte"));
    let circle = model(vec![node("Relu", &["z"], "y"), node("Relu", &["y"], "z")]);
    assert!(refused(circle.encode_to_vec()).contains("circle"));
    let unknown = model(vec![node("Relu", &["nowhere"], "y")]);
    assert!(refused(unknown.encode_to_vec()).contains("nothing gives `nowhere`"));
    let mut wrong = model(vec![node("Add", &["x", "w"], "y")]);
    if let Some(graph) = &mut wrong.graph {
        graph.initializer = vec![TensorProto {
            name: "w".into(),
            dims: vec![1 << 40, 1 << 40],
            data_type: 1,
            raw_data: Some(vec![0; 8].into()),
            ..TensorProto::default()
        }];
    }
    assert!(refused(wrong.encode_to_vec()).contains("`w`"));
    let mut away = model(vec![node("Add", &["x", "w"], "y")]);
    if let Some(graph) = &mut away.graph {
        let entry = StringStringEntryProto {
            key: "location".into(),
            value: "../../etc/passwd".into(),
        };
        graph.initializer = vec![TensorProto {
            name: "w".into(),
            data_type: 1,
            data_location: 1,
            external_data: vec![entry],
            ..TensorProto::default()
        }];
    }
    let path = std::env::temp_dir().join(format!("fx_onnx_away_{}.onnx", std::process::id()));
    std::fs::write(&path, away.encode_to_vec()).map_err(Error::other)?;
    let error = fx_onnx::load(&path)
        .map(|_| ())
        .expect_err("it leads away")
        .to_string();
    assert!(error.contains("leads out of the folder"), "{error}");
    std::fs::remove_file(&path).map_err(Error::other)?;

    // Nodes out of order are put in order.
    let unsorted = model(vec![node("Relu", &["z"], "y"), node("Neg", &["x"], "z")]);
    let read = Load::new().from_bytes(unsorted.encode_to_vec())?.module;
    let y: Tensor = read.forward(&Tensor::full((), -2.0, DType::F32)?)?;
    assert_eq!(y.to_vec()?, [2.0]);
    Ok(())
}

#[test]
fn hostile_files_take_no_memory() {
    // A node of two bytes, a million times.
    let mut bytes = model(Vec::new()).encode_to_vec();
    let many = [0x0a, 0x00].repeat(2_000_000);
    let mut graph = vec![0x3a];
    prost::encoding::encode_varint(many.len() as u64, &mut graph);
    bytes.extend(graph);
    bytes.extend(many);
    assert!(refused(bytes).contains("Limits"));

    // Graphs in graphs.
    let mut deep = GraphProto::default();
    for _ in 0..60 {
        let attribute = AttributeProto {
            name: "then_branch".into(),
            r#type: 5,
            g: Some(deep),
            ..AttributeProto::default()
        };
        let mut inner = node("If", &["c"], "y");
        inner.attribute = vec![attribute];
        deep = GraphProto {
            node: vec![inner],
            ..GraphProto::default()
        };
    }
    let deep = ModelProto {
        graph: Some(deep),
        ..ModelProto::default()
    };
    assert!(refused(deep.encode_to_vec()).contains("deep"));

    // Functions that call each other twice, and so on: a billion nodes.
    let mut bomb = model(vec![node("f0", &["x"], "y")]);
    for level in 0..30 {
        let (inner, domain) = (format!("f{}", level + 1), "bomb".to_string());
        let mut calls = vec![node(&inner, &["a"], "b"), node(&inner, &["b"], "c")];
        for call in &mut calls {
            call.domain.clone_from(&domain);
        }
        if level == 29 {
            calls = vec![node("Relu", &["a"], "b"), node("Relu", &["b"], "c")];
        }
        bomb.functions.push(FunctionProto {
            name: format!("f{level}"),
            domain,
            input: vec!["a".into()],
            output: vec!["c".into()],
            node: calls,
            ..FunctionProto::default()
        });
    }
    if let Some(graph) = &mut bomb.graph {
        graph.node[0].domain = "bomb".to_string();
    }
    let bytes = bomb.encode_to_vec();
    let limits = {
        let mut limits = Limits::default();
        limits.nodes = 2000;
        limits
    };
    let error = Load::new()
        .limits(limits)
        .from_bytes(bytes)
        .map(|_| ())
        .expect_err("too many nodes")
        .to_string();
    assert!(error.contains("nodes"), "{error}");

    // A constant of a terabyte, of a few bytes.
    let mut huge = model(vec![node("ConstantOfShape", &["s"], "y")]);
    if let Some(graph) = &mut huge.graph {
        let sizes: Vec<u8> = [1i64 << 20, 1 << 20]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        graph.initializer = vec![TensorProto {
            name: "s".into(),
            dims: vec![2],
            data_type: 7,
            raw_data: Some(sizes.into()),
            ..TensorProto::default()
        }];
    }
    assert!(refused(huge.encode_to_vec()).contains("Limits::constant_bytes"));
}

/// A file with an operator that fx does not have: it is loaded, another node is rewritten, and it goes out with it.
#[test]
fn unknown_operators_stay_as_they_are() -> Result<()> {
    let mut strange = node("Mystery", &["x"], "m");
    strange.domain = "some.lab".to_string();
    strange.attribute = vec![AttributeProto {
        name: "k".into(),
        r#type: 2,
        i: Some(7),
        ..AttributeProto::default()
    }];
    let mut file = model(vec![strange, node("Relu", &["m"], "y")]);
    file.opset_import.push(OperatorSetIdProto {
        domain: "some.lab".into(),
        version: 3,
    });
    if let Some(graph) = &mut file.graph {
        graph.value_info = vec![value("m")];
    }
    let read = Load::new().from_bytes(file.encode_to_vec())?;
    assert_eq!(read.report.opaque, [("Mystery".to_string(), 1)]);
    let mut gm = read.module;
    let pattern = traced!(|x: &Tensor| ops::relu(x));
    let replacement = traced!(|x: &Tensor| ops::tanh(x));
    assert_eq!(
        fx_nn::pattern::replace_pattern(&mut gm, pattern, replacement)?.len(),
        1
    );
    let (bytes, _) = gm.to_onnx_bytes(&Export::specs([fx_nn::shapes::Spec::tensor(
        [0usize; 0],
        DType::F32,
    )]))?;
    let again = ModelProto::decode(&*bytes).map_err(Error::other)?;
    let nodes = again.graph.unwrap_or_default().node;
    let ops: Vec<&str> = nodes.iter().map(|node| &*node.op_type).collect();
    assert_eq!(ops, ["Mystery", "Tanh"]);
    assert_eq!(
        (nodes[0].domain.as_str(), nodes[0].attribute[0].i),
        ("some.lab", Some(7))
    );
    assert!(
        again
            .opset_import
            .iter()
            .any(|set| set.domain == "some.lab" && set.version == 3)
    );
    let error = gm
        .forward::<Tensor>(&Tensor::ones(())?)
        .unwrap_err()
        .to_string();
    assert!(error.contains("some.lab.Mystery"), "{error}");
    Ok(())
}
