//! Small files for tests: models of a few nodes.

use fx_nn::prelude::*;
use fx_onnx::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue,
    ValueInfoProto,
};
use prost::Message;

/// An input of an element type (1 is `float32`, 7 is `int64`); a size is a number or a name.
pub fn input(name: &str, elem_type: i32, sizes: &[&str]) -> ValueInfoProto {
    let dim = sizes.iter().map(|size| Dimension {
        value: Some(match size.parse() {
            Ok(number) => DimensionValue::Value(number),
            Err(_) => DimensionValue::Param((*size).to_string()),
        }),
    });
    ValueInfoProto {
        name: name.to_string(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::Tensor(TensorType {
                elem_type,
                shape: Some(TensorShapeProto { dim: dim.collect() }),
            })),
        }),
        ..ValueInfoProto::default()
    }
}

/// A constant of whole numbers: of one dim, or of none for a single number without dims.
pub fn ints(name: &str, numbers: &[i64], has_dim: bool) -> TensorProto {
    TensorProto {
        name: name.to_string(),
        dims: if has_dim {
            vec![numbers.len() as i64]
        } else {
            Vec::new()
        },
        data_type: 7,
        raw_data: Some(
            numbers
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect::<Vec<u8>>()
                .into(),
        ),
        ..TensorProto::default()
    }
}

/// A constant of floats of a shape.
pub fn floats(name: &str, numbers: &[f32], dims: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_string(),
        dims: dims.to_vec(),
        data_type: 1,
        raw_data: Some(
            numbers
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect::<Vec<u8>>()
                .into(),
        ),
        ..TensorProto::default()
    }
}

/// A whole number as an attribute.
pub fn int(name: &str, number: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        r#type: 2,
        i: Some(number),
        ..AttributeProto::default()
    }
}

/// A text as an attribute.
pub fn text(name: &str, text: &str) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        r#type: 3,
        s: Some(text.as_bytes().to_vec().into()),
        ..AttributeProto::default()
    }
}

/// A node; `_` is an input that is left out.
pub fn node(op: &str, inputs: &str, outputs: &str, attributes: &[AttributeProto]) -> NodeProto {
    let names = |text: &str| -> Vec<String> {
        let names = text.split_whitespace();
        names
            .map(|name| name.trim_matches('_').to_string())
            .collect()
    };
    NodeProto {
        op_type: op.to_string(),
        input: names(inputs),
        output: names(outputs),
        attribute: attributes.to_vec(),
        ..NodeProto::default()
    }
}

/// A model whose results are those of its last node.
pub fn model(
    opset: i64,
    inputs: Vec<ValueInfoProto>,
    constants: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
) -> ModelProto {
    let results = nodes.last().map(|node| node.output.clone());
    let output = results
        .unwrap_or_default()
        .into_iter()
        .map(|name| ValueInfoProto {
            name,
            ..ValueInfoProto::default()
        });
    ModelProto {
        ir_version: 10,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: opset,
        }],
        graph: Some(GraphProto {
            output: output.collect(),
            node: nodes,
            name: "g".to_string(),
            input: inputs,
            initializer: constants,
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

/// The model as a graph module.
pub fn read(model: &ModelProto) -> Result<GraphModule> {
    Ok(fx_onnx::Load::new()
        .from_bytes(model.encode_to_vec())?
        .module)
}

/// The error of reading a model; a text that no error has if it is read.
pub fn refused(model: &ModelProto) -> String {
    read(model).map_or_else(|error| error.to_string(), |_| "it was read".to_string())
}

/// The numbers of a result, which has these sizes.
pub fn numbers(y: &Tensor, dims: &[usize]) -> Result<Vec<f64>> {
    assert_eq!(y.dims()?, dims);
    y.to_vec()
}

/// Numbers in order, from 0 on, in a shape.
pub fn counted(shape: impl Into<fx_nn::Shape>) -> Result<Tensor> {
    let shape: fx_nn::Shape = shape.into();
    let count = shape.0.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|n| n as f32).collect(), shape)
}
