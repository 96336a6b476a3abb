//! A file with an operator that fx does not have.

use fx_onnx::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorShapeProto, TensorType, TypeProto, TypeValue, ValueInfoProto,
};
use prost::Message;

fn value(name: &str) -> ValueInfoProto {
    let sizes = [2i64, 3].map(|size| Dimension {
        value: Some(DimensionValue::Value(size)),
    });
    let tensor = TensorType {
        elem_type: 1,
        shape: Some(TensorShapeProto {
            dim: sizes.to_vec(),
        }),
    };
    ValueInfoProto {
        name: name.to_string(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::Tensor(tensor)),
        }),
        ..ValueInfoProto::default()
    }
}

fn node(domain: &str, op: &str, input: &str, output: &str) -> NodeProto {
    NodeProto {
        domain: domain.to_string(),
        op_type: op.to_string(),
        name: output.to_string(),
        input: vec![input.to_string()],
        output: vec![output.to_string()],
        ..NodeProto::default()
    }
}

/// `y = Relu(my.ops.Fancy(Relu(x)))`.
pub fn file() -> Vec<u8> {
    let mut fancy = node("my.ops", "Fancy", "a", "b");
    fancy.attribute.push(AttributeProto {
        name: "strength".to_string(),
        r#type: 2,
        i: Some(7),
        ..AttributeProto::default()
    });
    let set = |domain: &str, version| OperatorSetIdProto {
        domain: domain.to_string(),
        version,
    };
    let model = ModelProto {
        ir_version: 10,
        opset_import: vec![set("", 20), set("my.ops", 3)],
        graph: Some(GraphProto {
            name: "surgery".to_string(),
            node: vec![
                node("", "Relu", "x", "a"),
                fancy,
                node("", "Relu", "b", "y"),
            ],
            input: vec![value("x")],
            output: vec![value("y")],
            value_info: vec![value("a"), value("b")],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}
