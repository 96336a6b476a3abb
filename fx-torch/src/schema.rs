//! The schema of `torch.export.save`: what `models/model.json` says of a program.
//!
//! Invariant: a field that is not known here is refused unless it says nothing.

use fx_nn::value::DType;
use fx_nn::weights::exported_dtype;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The newest version of the schema that is understood.
pub(crate) const MAJOR: u64 = 8;

/// An exported program.
#[derive(Debug, Deserialize)]
pub(crate) struct Program {
    pub graph_module: GraphModule,
    pub schema_version: Version,
    #[serde(default)]
    pub range_constraints: IndexMap<String, Range>,
    #[serde(default)]
    pub torch_version: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Version {
    pub major: u64,
    pub minor: u64,
}

/// The least and the largest number that a size may be.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Range {
    #[serde(default)]
    pub min_val: Option<i64>,
    #[serde(default)]
    pub max_val: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct GraphModule {
    pub graph: Graph,
    pub signature: Signature,
    #[serde(default)]
    pub module_call_graph: Vec<ModuleCall>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Graph {
    pub inputs: Vec<Argument>,
    pub outputs: Vec<Argument>,
    pub nodes: Vec<Node>,
    #[serde(default)]
    pub tensor_values: IndexMap<String, TensorMeta>,
    /// The sizes that nodes give, as expressions.
    #[serde(default)]
    pub sym_int_values: IndexMap<String, Size>,
}

impl Graph {
    /// The element type of an argument that is a tensor, or of the first one of a list, if it is known.
    pub fn dtype(&self, argument: &Argument) -> Option<DType> {
        let named = match argument {
            Argument::AsTensor(named) => named,
            Argument::AsTensors(all) => all.first()?,
            Argument::AsOptionalTensors(all) => all.iter().find_map(|tensor| match tensor {
                OptionalTensor::AsTensor(named) => Some(named),
                OptionalTensor::AsNone(_) => None,
            })?,
            _ => return None,
        };
        let meta = self.tensor_values.get(&named.name)?;
        exported_dtype(meta.dtype).ok()
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Node {
    pub target: String,
    pub inputs: Vec<NamedArgument>,
    pub outputs: Vec<Argument>,
    #[serde(default)]
    pub metadata: IndexMap<String, String>,
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NamedArgument {
    pub name: String,
    pub arg: Argument,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Named {
    pub name: String,
}

/// A size or another number: known, or what a node gives.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the schema")]
pub(crate) enum Sym {
    AsName(String),
    AsInt(i64),
    AsFloat(Number),
    AsBool(bool),
}

/// A float: JSON has no infinities, so that these are text.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Plain(f64),
    Text(String),
}

impl Number {
    pub fn value(&self) -> Option<f64> {
        match self {
            Number::Plain(number) => Some(*number),
            Number::Text(text) => match text.as_str() {
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                "NaN" => Some(f64::NAN),
                _ => None,
            },
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the schema")]
pub(crate) enum OptionalTensor {
    AsTensor(Named),
    AsNone(IgnoredAny),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SubGraph {
    pub graph: Box<Graph>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the schema")]
pub(crate) enum Argument {
    AsNone(IgnoredAny),
    AsTensor(Named),
    AsTensors(Vec<Named>),
    AsInt(i64),
    AsInts(Vec<i64>),
    AsFloat(Number),
    AsFloats(Vec<Number>),
    AsString(String),
    AsStrings(Vec<String>),
    AsSymInt(Sym),
    AsSymInts(Vec<Sym>),
    AsScalarType(u64),
    AsMemoryFormat(IgnoredAny),
    AsLayout(IgnoredAny),
    AsDevice(IgnoredAny),
    AsBool(bool),
    AsBools(Vec<bool>),
    AsSymBool(Sym),
    AsSymBools(Vec<Sym>),
    AsGraph(SubGraph),
    AsOptionalTensors(Vec<OptionalTensor>),
    AsCustomObj(IgnoredAny),
    AsOperator(IgnoredAny),
    AsSymFloat(Sym),
    AsSymFloats(Vec<Sym>),
    AsOptionalTensor(OptionalTensor),
    AsComplex(IgnoredAny),
    AsNestedTensors(Vec<Vec<Named>>),
    AsIntLists(Vec<Vec<i64>>),
    AsFloatLists(Vec<Vec<Number>>),
    AsStringToArgument(IgnoredAny),
}

/// A size of a tensor: a number, or an expression of sizes as sympy writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the schema")]
pub(crate) enum Size {
    AsExpr(Expression),
    AsInt(i64),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Expression {
    pub expr_str: String,
    /// What it was of the example.
    #[serde(default)]
    pub hint: Option<Hint>,
}

/// A number of the example that a program was exported with.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the schema")]
pub(crate) enum Hint {
    AsInt(i64),
    AsBool(IgnoredAny),
    AsFloat(IgnoredAny),
    AsNone(IgnoredAny),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TensorMeta {
    pub dtype: u64,
    pub sizes: Vec<Size>,
    #[serde(default)]
    pub strides: Vec<Size>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Signature {
    pub input_specs: Vec<InputSpec>,
    pub output_specs: Vec<OutputSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputSpec {
    UserInput {
        arg: Argument,
    },
    Parameter {
        arg: Named,
        parameter_name: String,
    },
    Buffer {
        arg: Named,
        buffer_name: String,
    },
    TensorConstant {
        arg: Named,
        tensor_constant_name: String,
    },
    ConstantInput {
        name: String,
        value: Constant,
    },
    CustomObj(IgnoredAny),
    Token(IgnoredAny),
}

/// What an input was when the program was exported, and is in each of its runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the schema")]
pub(crate) enum Constant {
    AsNone(IgnoredAny),
    AsInt(i64),
    AsFloat(Number),
    AsString(String),
    AsBool(bool),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputSpec {
    UserOutput(IgnoredAny),
    BufferMutation { buffer_name: String },
    ParameterMutation { parameter_name: String },
    UserInputMutation { user_input_name: String },
    LossOutput(IgnoredAny),
    GradientToParameter(IgnoredAny),
    GradientToUserInput(IgnoredAny),
    Token(IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(crate) struct ModuleCall {
    pub fqn: String,
    #[serde(default)]
    pub signature: Option<CallSignature>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CallSignature {
    pub in_spec: String,
    pub out_spec: String,
    #[serde(default)]
    pub forward_arg_names: Option<Vec<String>>,
}
