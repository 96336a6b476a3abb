//! The messages of ONNX's files (`onnx.proto`, IR version 13), as prost reads and writes them.
//!
//! Invariant: the wire format is proto2's, in which repeated numbers are packed only where the schema says so. Packed
//! numbers of tensors are kept as the bytes of the file, so that reading copies none of them.

use bytes::Bytes;

/// A file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelProto {
    /// The version of the format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The operator sets that the nodes belong to.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// What wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The domain of the model.
    #[prost(string, tag = "4")]
    pub domain: String,
    /// The version of the model.
    #[prost(int64, tag = "5")]
    pub model_version: i64,
    /// What the model is, for people.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// The computation.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Entries by name.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
    /// Functions that nodes call.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
}

/// A computation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphProto {
    /// The nodes, in an order in which they can run.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants by name.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Sparse constants.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
    /// What the graph is, for people.
    #[prost(string, tag = "10")]
    pub doc_string: String,
    /// What it takes.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// What it gives.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Types and shapes of values inside.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfoProto>,
    /// Entries by name.
    #[prost(message, repeated, tag = "16")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A call of an operator or a function.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeProto {
    /// The names of the values that it takes; empty for one that is left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// The names of the values that it gives.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The name of the node.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The operator's domain; empty for ONNX's own.
    #[prost(string, tag = "7")]
    pub domain: String,
    /// Which of several functions of one name.
    #[prost(string, tag = "8")]
    pub overload: String,
    /// What is known when the file is written.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// Where the node comes from, for people.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// Entries by name.
    #[prost(message, repeated, tag = "9")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A value of a node that is known when the file is written.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// In a function: the attribute of the call whose value it is.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
    /// For people.
    #[prost(string, tag = "13")]
    pub doc_string: String,
    /// Which of the fields has the value: `attribute_type`.
    #[prost(int32, tag = "20")]
    pub r#type: i32,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// A whole number.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// Text.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// A graph.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// A sparse tensor.
    #[prost(message, optional, tag = "22")]
    pub sparse_tensor: Option<SparseTensorProto>,
    /// A type.
    #[prost(message, optional, tag = "14")]
    pub tp: Option<TypeProto>,
    /// Numbers.
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    /// Whole numbers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Texts.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Tensors.
    #[prost(message, repeated, tag = "10")]
    pub tensors: Vec<TensorProto>,
    /// Graphs.
    #[prost(message, repeated, tag = "11")]
    pub graphs: Vec<GraphProto>,
}

/// The kinds of attributes.
pub mod attribute_type {
    /// `f`.
    pub const FLOAT: i32 = 1;
    /// `i`.
    pub const INT: i32 = 2;
    /// `s`.
    pub const STRING: i32 = 3;
    /// `t`.
    pub const TENSOR: i32 = 4;
    /// `g`.
    pub const GRAPH: i32 = 5;
    /// `floats`.
    pub const FLOATS: i32 = 6;
    /// `ints`.
    pub const INTS: i32 = 7;
    /// `strings`.
    pub const STRINGS: i32 = 8;
}

/// A name with its type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
    /// For people.
    #[prost(string, tag = "3")]
    pub doc_string: String,
    /// Entries by name.
    #[prost(message, repeated, tag = "4")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A tensor's elements, here or in another file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorProto {
    /// The sizes.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// The element type.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Packed `float`s.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub float_data: Vec<Bytes>,
    /// Packed varints.
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub int32_data: Vec<Bytes>,
    /// Texts.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// Packed varints.
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub int64_data: Vec<Bytes>,
    /// The name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// For people.
    #[prost(string, tag = "12")]
    pub doc_string: String,
    /// The elements as bytes, little-endian.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// Where the elements are: `location`, `offset`, `length`.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 1 if the elements are in another file.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
    /// Packed `double`s.
    #[prost(bytes = "bytes", repeated, tag = "10")]
    pub double_data: Vec<Bytes>,
    /// Packed varints.
    #[prost(bytes = "bytes", repeated, tag = "11")]
    pub uint64_data: Vec<Bytes>,
}

/// A tensor by its elements that are not zero.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseTensorProto {
    /// The elements.
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorProto>,
    /// Their places.
    #[prost(message, optional, tag = "2")]
    pub indices: Option<TensorProto>,
    /// The sizes.
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub dims: Vec<i64>,
}

/// The sizes of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// The sizes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// A size.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dimension {
    /// A number or a name; neither if nothing is known.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// A size, as a number or a name.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DimensionValue {
    /// A number.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// A name.
    #[prost(string, tag = "2")]
    Param(String),
}

/// A type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TypeProto {
    /// Which.
    #[prost(oneof = "TypeValue", tags = "1, 4, 5, 8, 9")]
    pub value: Option<TypeValue>,
}

/// The kinds of types.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TypeValue {
    /// A tensor.
    #[prost(message, tag = "1")]
    Tensor(TensorType),
    /// A sequence of one type.
    #[prost(message, tag = "4")]
    Sequence(Box<ElementType>),
    /// A map.
    #[prost(message, tag = "5")]
    Map(Box<MapType>),
    /// A sparse tensor.
    #[prost(message, tag = "8")]
    SparseTensor(TensorType),
    /// A value that may be missing.
    #[prost(message, tag = "9")]
    Optional(Box<ElementType>),
}

/// The type of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorType {
    /// The element type.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The sizes, if their number is known.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// The type of the items of a sequence, or of what an optional holds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ElementType {
    /// The type.
    #[prost(message, optional, boxed, tag = "1")]
    pub elem_type: Option<Box<TypeProto>>,
}

/// The type of a map.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MapType {
    /// The element type of the keys.
    #[prost(int32, tag = "1")]
    pub key_type: i32,
    /// The type of the values.
    #[prost(message, optional, boxed, tag = "2")]
    pub value_type: Option<Box<TypeProto>>,
}

/// A name with text.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StringStringEntryProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The text.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A version of a domain's operators.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorSetIdProto {
    /// The domain; empty for ONNX's own.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A function that nodes call by its domain and name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The names of what it takes.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// The names of what it gives.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// The names of its attributes without a default.
    #[prost(string, repeated, tag = "6")]
    pub attribute: Vec<String>,
    /// Its attributes with a default.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// The nodes.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// For people.
    #[prost(string, tag = "8")]
    pub doc_string: String,
    /// The operator sets that its nodes belong to.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// The domain.
    #[prost(string, tag = "10")]
    pub domain: String,
    /// Which of several functions of one name.
    #[prost(string, tag = "13")]
    pub overload: String,
    /// Types and shapes of values inside.
    #[prost(message, repeated, tag = "12")]
    pub value_info: Vec<ValueInfoProto>,
    /// Entries by name.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}
