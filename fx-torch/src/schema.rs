//! The schema of `torch.export.save`: what `models/model.json`, or `serialized_exported_program.json`, says of a program.
//!
//! Invariant: a field that is not known here is refused unless it says nothing.

use fx_nn::value::DType;
use fx_nn::weights::exported_dtype;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::older;

/// The version of the schema that is understood, and the newest of its additions. What the one before says otherwise is in
/// `older`.
pub(crate) const OLDER: u64 = 7;
pub(crate) const MAJOR: u64 = 8;
pub(crate) const MINOR: u64 = 20;

/// What a file says of its schema, whichever that is.
#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    pub schema_version: Version,
    #[serde(default)]
    pub torch_version: String,
}

/// An exported program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    pub graph_module: GraphModule,
    #[serde(rename = "schema_version")]
    _schema_version: IgnoredAny,
    #[serde(default)]
    pub range_constraints: IndexMap<String, Range>,
    #[serde(default, rename = "torch_version")]
    _torch_version: IgnoredAny,
    #[serde(default, rename = "opset_version")]
    _opset_version: IgnoredAny,
    #[serde(default, rename = "verifiers")]
    _verifiers: IgnoredAny,
    /// What the guards say is in the ranges and the shapes too.
    #[serde(default, rename = "guards_code")]
    _guards_code: IgnoredAny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Version {
    pub major: u64,
    pub minor: u64,
}

/// The least and the largest number that a size may be.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    #[serde(default, deserialize_with = "older::end")]
    pub min_val: Option<i64>,
    #[serde(default, deserialize_with = "older::end")]
    pub max_val: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphModule {
    pub graph: Graph,
    pub signature: Signature,
    #[serde(default)]
    pub module_call_graph: Vec<ModuleCall>,
    #[serde(default, rename = "metadata")]
    _metadata: IgnoredAny,
    #[serde(default, rename = "treespec_namedtuple_fields")]
    _namedtuples: IgnoredAny,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Graph {
    pub inputs: Vec<Argument>,
    pub outputs: Vec<Argument>,
    pub nodes: Vec<Node>,
    #[serde(default)]
    pub tensor_values: IndexMap<String, TensorMeta>,
    /// The sizes that nodes give, as expressions.
    #[serde(default)]
    pub sym_int_values: IndexMap<String, Size>,
    #[serde(default, rename = "sym_bool_values")]
    _sym_bool_values: IgnoredAny,
    #[serde(default, rename = "sym_float_values")]
    _sym_float_values: IgnoredAny,
    #[serde(default, rename = "is_single_tensor_return")]
    _is_single: IgnoredAny,
    #[serde(default, rename = "custom_obj_values")]
    _custom_obj_values: IgnoredAny,
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
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    pub target: String,
    pub inputs: Vec<NamedArgument>,
    pub outputs: Vec<Argument>,
    #[serde(default)]
    pub metadata: IndexMap<String, String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default, rename = "is_hop_single_tensor_return")]
    _is_single: IgnoredAny,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedArgument {
    pub name: String,
    pub arg: Argument,
    /// By position or by name: its name says which parameter it is.
    #[serde(default, rename = "kind")]
    _kind: IgnoredAny,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub(crate) struct SubGraph {
    pub graph: Box<Graph>,
    #[serde(default, rename = "name")]
    _name: IgnoredAny,
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
    AsOperator(String),
    AsSymFloat(Sym),
    AsSymFloats(Vec<Sym>),
    AsOptionalTensor(OptionalTensor),
    AsComplex(IgnoredAny),
    AsNestedTensors(Vec<Vec<Named>>),
    AsIntLists(Vec<Vec<i64>>),
    AsFloatLists(Vec<Vec<Number>>),
    AsStringToArgument(IgnoredAny),
}

impl Argument {
    /// The name of an argument or a result that is a tensor.
    pub fn tensor(&self) -> Option<&str> {
        match self {
            Argument::AsTensor(named)
            | Argument::AsOptionalTensor(OptionalTensor::AsTensor(named)) => Some(&named.name),
            _ => None,
        }
    }
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
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub(crate) struct TensorMeta {
    pub dtype: u64,
    pub sizes: Vec<Size>,
    #[serde(default)]
    pub strides: Vec<Size>,
    #[serde(default, rename = "requires_grad")]
    _requires_grad: IgnoredAny,
    #[serde(default, rename = "device")]
    _device: IgnoredAny,
    #[serde(default, rename = "storage_offset")]
    _storage_offset: IgnoredAny,
    #[serde(default, rename = "layout")]
    _layout: IgnoredAny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signature {
    pub input_specs: Vec<InputSpec>,
    pub output_specs: Vec<OutputSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
        #[serde(default, rename = "persistent")]
        _persistent: IgnoredAny,
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
    /// What orders effects, which an order of nodes does already.
    Token {
        arg: Named,
    },
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
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum OutputSpec {
    UserOutput(IgnoredAny),
    BufferMutation {
        buffer_name: String,
        #[serde(default, rename = "arg")]
        _arg: IgnoredAny,
    },
    ParameterMutation {
        parameter_name: String,
        #[serde(default, rename = "arg")]
        _arg: IgnoredAny,
    },
    UserInputMutation {
        user_input_name: String,
        #[serde(default, rename = "arg")]
        _arg: IgnoredAny,
    },
    LossOutput(IgnoredAny),
    GradientToParameter(IgnoredAny),
    GradientToUserInput(IgnoredAny),
    Token(IgnoredAny),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModuleCall {
    pub fqn: String,
    #[serde(default)]
    pub signature: Option<CallSignature>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallSignature {
    pub in_spec: String,
    pub out_spec: String,
    #[serde(default)]
    pub forward_arg_names: Option<Vec<String>>,
    #[serde(default, rename = "inputs")]
    _inputs: IgnoredAny,
    #[serde(default, rename = "outputs")]
    _outputs: IgnoredAny,
}
