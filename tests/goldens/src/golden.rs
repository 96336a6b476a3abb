//! The goldens, read; it owns the file formats: what cannot be read is an error naming file, place and problem.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use serde_json::{Map, Value};

use crate::formula::Rule;

mod literal;

pub use literal::Literal;

/// A golden file that is missing or is not what `tests/goldens/README.md` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenError {
    /// The file (or folder).
    pub file: PathBuf,
    /// Where in the file, as in `nodes[3].args[0]`; empty where it is the file as a whole.
    pub place: String,
    /// What was wrong there.
    pub problem: String,
}

impl fmt::Display for GoldenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for GoldenError {}

/// One node of a golden graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GoldenNode {
    /// The opcode.
    pub op: String,
    /// The node's name.
    pub name: String,
    /// What it names: an argument, a path, a method, a function's qualified name.
    pub target: String,
    /// The positional arguments.
    pub args: Vec<Literal>,
    /// The keyword arguments, in order.
    pub kwargs: Vec<(String, Literal)>,
    /// How many nodes use it.
    pub num_users: usize,
    /// Their names, in order of first use.
    pub users: Vec<String>,
    /// The type annotation, where there is one.
    pub annotation: Option<String>,
}

/// Why PyTorch refused to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The exception's class.
    pub class: String,
    /// Its message.
    pub message: String,
}

/// A module that a golden graph calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenModule {
    /// Its path in the root.
    pub path: String,
    /// Its qualified class name.
    pub class: String,
    /// How Python prints it.
    pub repr: String,
}

/// A tensor that a golden names: a parameter, a buffer, a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenTensor {
    /// Its dotted name.
    pub name: String,
    /// `parameter`, `buffer` or another word of the file.
    pub kind: String,
    /// Its dtype's name.
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// `tests/goldens/graph/NAME.json`: a graph that PyTorch traced, or its refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphGolden {
    /// The file's name without its ending.
    pub name: String,
    /// How the trace was made, in Python.
    pub how: String,
    /// The Python text of what was traced; empty for torchvision's models.
    pub source: String,
    /// Why there is no graph; `None` where there is one.
    pub refusal: Option<Refusal>,
    /// The nodes in order.
    pub nodes: Vec<GoldenNode>,
    /// How many nodes of each opcode, in the file's order.
    pub count: Vec<(String, usize)>,
    /// Every module that is called.
    pub modules: Vec<GoldenModule>,
    /// Every target of a `get_attr`.
    pub attrs: Vec<GoldenTensor>,
    /// The root's parameters in order.
    pub params: Vec<GoldenTensor>,
    /// The root's buffers in order.
    pub buffers: Vec<GoldenTensor>,
    /// How PyTorch prints the graph.
    pub graph_str: String,
    /// The Python that PyTorch generates.
    pub code: String,
    /// PyTorch's table of the graph, where the file has it.
    pub tabular: Option<String>,
}

impl GraphGolden {
    /// Reads `tests/goldens/graph/NAME.json`.
    ///
    /// # Errors
    /// The file is missing or not of the documented form.
    pub fn load(name: &str) -> Result<GraphGolden, GoldenError> {
        let (file, value) = read("graph", name)?;
        let at = At::root(&file, &value);
        let refusal = if at.field("ok")?.bool()? {
            None
        } else {
            let error = at.field("error")?;
            Some(Refusal {
                class: error.field("type")?.string()?,
                message: error.field("message")?.string()?,
            })
        };
        let mut golden = GraphGolden {
            name: at.field("name")?.string()?,
            how: at.field("how")?.string()?,
            source: at.field("source")?.string()?,
            refusal,
            nodes: Vec::new(),
            count: Vec::new(),
            modules: Vec::new(),
            attrs: Vec::new(),
            params: Vec::new(),
            buffers: Vec::new(),
            graph_str: String::new(),
            code: String::new(),
            tabular: None,
        };
        if golden.refusal.is_some() {
            return Ok(golden);
        }
        golden.nodes = at.field("nodes")?.each(golden_node)?;
        golden.count = at
            .field("count")?
            .entries(|key, at| Ok((key.to_owned(), at.usize()?)))?;
        golden.modules = at.field("modules")?.entries(|key, at| {
            Ok(GoldenModule {
                path: key.to_owned(),
                class: at.index(0)?.string()?,
                repr: at.index(1)?.string()?,
            })
        })?;
        golden.attrs = at.field("attrs")?.entries(|key, at| {
            Ok(GoldenTensor {
                name: key.to_owned(),
                kind: at.index(0)?.string()?,
                dtype: at.index(1)?.string()?,
                shape: at.index(2)?.shape()?,
            })
        })?;
        for (field, kind) in [("params", "parameter"), ("buffers", "buffer")] {
            let tensors = at.field(field)?.each(|at| {
                Ok(GoldenTensor {
                    name: at.index(0)?.string()?,
                    kind: kind.to_owned(),
                    dtype: at.index(2)?.string()?,
                    shape: at.index(1)?.shape()?,
                })
            })?;
            match kind {
                "parameter" => golden.params = tensors,
                _ => golden.buffers = tensors,
            }
        }
        golden.graph_str = at.field("graph_str")?.string()?;
        golden.code = at.field("code")?.string()?;
        golden.tabular = match at.optional("tabular") {
            Some(at) => Some(at.string()?),
            None => None,
        };
        Ok(golden)
    }

    /// The node of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&GoldenNode> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

fn golden_node(at: At<'_>) -> Result<GoldenNode, GoldenError> {
    Ok(GoldenNode {
        op: at.field("op")?.string()?,
        name: at.field("name")?.string()?,
        target: at.field("target")?.string()?,
        args: at.field("args")?.each(|at| at.literal())?,
        kwargs: at
            .field("kwargs")?
            .entries(|key, at| Ok((key.to_owned(), at.literal()?)))?,
        num_users: at.field("num_users")?.usize()?,
        users: at.field("users")?.each(|at| at.string())?,
        annotation: match at.optional("type") {
            Some(at) => Some(at.string()?),
            None => None,
        },
    })
}

/// One input of a numbers golden.
#[derive(Clone, Debug, PartialEq)]
pub struct NumInput {
    /// The argument's name; its elements come from `input:NAME`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How it is filled.
    pub rule: Rule,
    /// Its first elements.
    pub first: Vec<f64>,
    /// The sum of all its elements.
    pub sum: f64,
}

/// One filled parameter or buffer of a numbers golden.
#[derive(Clone, Debug, PartialEq)]
pub struct NumWeight {
    /// Its dotted name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How it is filled.
    pub rule: Rule,
    /// Its first elements.
    pub first: Vec<f64>,
}

/// What is known of one tensor in one precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// The sum of all elements (outputs have it, inner nodes do not).
    pub sum: Option<f64>,
    /// The mean of all elements.
    pub mean: f64,
    /// The standard deviation of all elements.
    pub std: f64,
    /// The largest absolute value of all elements.
    pub absmax: f64,
    /// Of an output every `stride`-th element, of an inner node the first ones; truth values are 0 and 1.
    pub data: Vec<f64>,
}

/// One tensor of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct NumOutput {
    /// Where in the result it is: `out`, an index, a key.
    pub path: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its dtype's name.
    pub dtype: String,
    /// Which elements of the flattened tensor `data` has: 0, stride, twice the stride ...
    pub stride: usize,
    /// From PyTorch's float32 run.
    pub f32: Numbers,
    /// From PyTorch's float64 run: what counts.
    pub f64: Numbers,
}

/// One tensor inside the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct NumNode {
    /// The golden node's name.
    pub name: String,
    /// Its opcode.
    pub op: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its dtype's name.
    pub dtype: String,
    /// From PyTorch's float32 run.
    pub f32: Numbers,
    /// From PyTorch's float64 run: what counts.
    pub f64: Numbers,
}

/// `tests/goldens/num/NAME.json`: what a model gives in evaluation mode, filled by the formula.
#[derive(Clone, Debug, PartialEq)]
pub struct NumGolden {
    /// The file's name without its ending.
    pub name: String,
    /// The graph golden it belongs to.
    pub graph: String,
    /// How the trace was made, in Python.
    pub how: String,
    /// The gain of [`Rule::Weight`].
    pub gain: f64,
    /// The inputs, in the order of the arguments.
    pub inputs: Vec<NumInput>,
    /// How many tensors were filled.
    pub n_assigned: usize,
    /// How many elements they have together.
    pub n_elements: usize,
    /// The sum of all filled elements.
    pub weights_sum: f64,
    /// At most 24 of the filled tensors.
    pub weights: Vec<NumWeight>,
    /// The tensors of the result.
    pub outputs: Vec<NumOutput>,
    /// Up to twelve tensors inside the graph.
    pub nodes: Vec<NumNode>,
    /// How far PyTorch's own float32 is from its float64, over abs-max, where the file says.
    pub f32_vs_f64: Option<f64>,
    /// How much the output moves when the input is replaced.
    pub input_sensitivity: f64,
}

impl NumGolden {
    /// Reads `tests/goldens/num/NAME.json`.
    ///
    /// # Errors
    /// The file is missing or not of the documented form.
    pub fn load(name: &str) -> Result<NumGolden, GoldenError> {
        let (file, value) = read("num", name)?;
        let at = At::root(&file, &value);
        Ok(NumGolden {
            name: at.field("name")?.string()?,
            graph: at.field("graph")?.string()?,
            how: at.field("how")?.string()?,
            gain: at.field("gain")?.number()?,
            inputs: at.field("inputs")?.each(num_input)?,
            n_assigned: at.field("n_assigned")?.usize()?,
            n_elements: at.field("n_elements")?.usize()?,
            weights_sum: at.field("weights_sum")?.number()?,
            weights: at.field("weights")?.each(num_weight)?,
            outputs: at.field("outputs")?.each(|at| {
                Ok(NumOutput {
                    path: at.field("path")?.string()?,
                    shape: at.field("shape")?.shape()?,
                    dtype: at.field("dtype")?.string()?,
                    stride: match at.field("stride")?.usize()? {
                        0 => return Err(at.field("stride")?.error("a stride of 0")),
                        stride => stride,
                    },
                    f32: numbers(&at.field("f32")?, "data")?,
                    f64: numbers(&at.field("f64")?, "data")?,
                })
            })?,
            nodes: at.field("nodes")?.each(|at| {
                Ok(NumNode {
                    name: at.field("name")?.string()?,
                    op: at.field("op")?.string()?,
                    shape: at.field("shape")?.shape()?,
                    dtype: at.field("dtype")?.string()?,
                    f32: numbers(&at.field("f32")?, "first")?,
                    f64: numbers(&at.field("f64")?, "first")?,
                })
            })?,
            f32_vs_f64: match at.field("f32_vs_f64")?.optional("max_abs_over_absmax") {
                Some(at) => Some(at.number()?),
                None => None,
            },
            input_sensitivity: at.field("input_sensitivity")?.number()?,
        })
    }
}

fn num_input(at: At<'_>) -> Result<NumInput, GoldenError> {
    let vocab = at.field("vocab")?.usize()?;
    let kind = at.field("kind")?;
    let rule = match kind.string()?.as_str() {
        "float" => Rule::Input,
        "int" => Rule::IntInput {
            vocab: vocab as u64,
        },
        "mask" => Rule::Mask { zeros: vocab },
        other => return Err(kind.error(format!("an unknown kind of input: {other}"))),
    };
    Ok(NumInput {
        name: at.field("name")?.string()?,
        shape: at.field("shape")?.shape()?,
        rule,
        first: at.field("first")?.each(|at| at.number())?,
        sum: at.field("sum")?.number()?,
    })
}

fn num_weight(at: At<'_>) -> Result<NumWeight, GoldenError> {
    let rule = at.index(2)?;
    let word = rule.string()?;
    Ok(NumWeight {
        name: at.index(0)?.string()?,
        shape: at.index(1)?.shape()?,
        rule: Rule::from_word(&word)
            .ok_or_else(|| rule.error(format!("an unknown rule: {word}")))?,
        first: at.index(3)?.each(|at| at.number())?,
    })
}

fn numbers(at: &At<'_>, data: &str) -> Result<Numbers, GoldenError> {
    Ok(Numbers {
        sum: match at.optional("sum") {
            Some(at) => Some(at.number()?),
            None => None,
        },
        mean: at.field("mean")?.number()?,
        std: at.field("std")?.number()?,
        absmax: at.field("absmax")?.number()?,
        data: at.field(data)?.each(|at| at.number())?,
    })
}

/// The names of all graph goldens, sorted.
///
/// # Errors
/// The folder cannot be read.
pub fn graph_names() -> Result<Vec<String>, GoldenError> {
    names("graph")
}

/// The names of all numbers goldens, sorted.
///
/// # Errors
/// The folder cannot be read.
pub fn num_names() -> Result<Vec<String>, GoldenError> {
    names("num")
}

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(kind)
}

fn names(kind: &str) -> Result<Vec<String>, GoldenError> {
    let folder = folder(kind);
    let whole = |error: std::io::Error| GoldenError {
        file: folder.clone(),
        place: String::new(),
        problem: error.to_string(),
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(whole)? {
        let path = entry.map_err(whole)?.path();
        if path.extension().is_some_and(|ending| ending == "json")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn read(kind: &str, name: &str) -> Result<(PathBuf, Value), GoldenError> {
    let file = folder(kind).join(format!("{name}.json"));
    let whole = |problem: String| GoldenError {
        file: file.clone(),
        place: String::new(),
        problem,
    };
    let text = fs::read_to_string(&file).map_err(|error| whole(error.to_string()))?;
    let value = serde_json::from_str(&text).map_err(|error| whole(error.to_string()))?;
    Ok((file, value))
}

/// A value in a file, with where it is, so that every error can say so.
struct At<'a> {
    file: &'a Path,
    place: String,
    value: &'a Value,
}

impl<'a> At<'a> {
    fn root(file: &'a Path, value: &'a Value) -> At<'a> {
        At {
            file,
            place: String::new(),
            value,
        }
    }

    fn child(&self, place: String, value: &'a Value) -> At<'a> {
        At {
            file: self.file,
            place,
            value,
        }
    }

    fn error(&self, problem: impl Into<String>) -> GoldenError {
        GoldenError {
            file: self.file.to_owned(),
            place: self.place.clone(),
            problem: problem.into(),
        }
    }

    fn expected(&self, what: &str) -> GoldenError {
        let mut found = self.value.to_string();
        if let Some((cut, _)) = found.char_indices().nth(60) {
            found.truncate(cut);
            found.push_str(" ...");
        }
        self.error(format!("expected {what}, found {found}"))
    }

    fn object(&self) -> Result<&'a Map<String, Value>, GoldenError> {
        self.value
            .as_object()
            .ok_or_else(|| self.expected("an object"))
    }

    fn array(&self) -> Result<&'a Vec<Value>, GoldenError> {
        self.value
            .as_array()
            .ok_or_else(|| self.expected("an array"))
    }

    fn optional(&self, key: &str) -> Option<At<'a>> {
        let value = self.value.as_object()?.get(key)?;
        let dot = if self.place.is_empty() { "" } else { "." };
        Some(self.child(format!("{}{dot}{key}", self.place), value))
    }

    fn field(&self, key: &str) -> Result<At<'a>, GoldenError> {
        self.object()?;
        self.optional(key)
            .ok_or_else(|| self.error(format!("has no field `{key}`")))
    }

    fn index(&self, i: usize) -> Result<At<'a>, GoldenError> {
        let value = self
            .array()?
            .get(i)
            .ok_or_else(|| self.error(format!("has no element {i}")))?;
        Ok(self.child(format!("{}[{i}]", self.place), value))
    }

    fn each<T>(
        &self,
        parse: impl Fn(At<'a>) -> Result<T, GoldenError>,
    ) -> Result<Vec<T>, GoldenError> {
        let items = self.array()?.iter().enumerate();
        items
            .map(|(i, value)| parse(self.child(format!("{}[{i}]", self.place), value)))
            .collect()
    }

    fn entries<T>(
        &self,
        parse: impl Fn(&str, At<'a>) -> Result<T, GoldenError>,
    ) -> Result<Vec<T>, GoldenError> {
        let entries = self.object()?.iter();
        entries
            .map(|(key, value)| parse(key, self.child(format!("{}.{key}", self.place), value)))
            .collect()
    }

    fn bool(&self) -> Result<bool, GoldenError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.expected("true or false"))
    }

    fn string(&self) -> Result<String, GoldenError> {
        let text = self
            .value
            .as_str()
            .ok_or_else(|| self.expected("a string"))?;
        Ok(text.to_owned())
    }

    fn usize(&self) -> Result<usize, GoldenError> {
        self.value
            .as_u64()
            .and_then(|value| usize::try_from(value).ok())
            .ok_or_else(|| self.expected("a whole number"))
    }

    fn shape(&self) -> Result<Vec<usize>, GoldenError> {
        self.each(|at| at.usize())
    }

    fn number(&self) -> Result<f64, GoldenError> {
        match self.value {
            Value::Bool(value) => Ok(f64::from(u8::from(*value))),
            Value::Number(number) => number.as_f64().ok_or_else(|| self.expected("a number")),
            _ => match self.literal()? {
                Literal::Float(value) => Ok(value),
                _ => Err(self.expected("a number")),
            },
        }
    }

    fn literal(&self) -> Result<Literal, GoldenError> {
        match self.value {
            Value::Null => Ok(Literal::None),
            Value::Bool(value) => Ok(Literal::Bool(*value)),
            Value::Number(number) if number.is_f64() => Ok(Literal::Float(self.number()?)),
            Value::Number(number) => match number.as_i64() {
                Some(value) => Ok(Literal::Int(value)),
                None => Err(self.expected("an integer of 64 bits")),
            },
            Value::String(text) => Ok(Literal::Str(text.clone())),
            Value::Array(_) => Ok(Literal::List(self.literals()?)),
            Value::Object(fields) => {
                let mut keys = fields.keys();
                match (keys.next(), keys.next()) {
                    (Some(tag), None) => self.field(tag)?.tagged(tag),
                    _ => Err(self.expected("an object of one field")),
                }
            }
        }
    }

    fn literals(&self) -> Result<Vec<Literal>, GoldenError> {
        self.each(|at| at.literal())
    }

    fn tagged(&self, tag: &str) -> Result<Literal, GoldenError> {
        match tag {
            "node" => Ok(Literal::Node(self.string()?)),
            "tuple" => Ok(Literal::Tuple(self.literals()?)),
            "size" => Ok(Literal::Size(self.literals()?)),
            "dtype" => Ok(Literal::DType(self.string()?)),
            "function" => Ok(Literal::Function(self.string()?)),
            "ellipsis" if self.bool()? => Ok(Literal::Ellipsis),
            "dict" => {
                let entry = |at: At<'a>| Ok((at.index(0)?.literal()?, at.index(1)?.literal()?));
                Ok(Literal::Dict(self.each(entry)?))
            }
            "slice" => match <[Literal; 3]>::try_from(self.literals()?) {
                Ok(parts) => Ok(Literal::Slice(Box::new(parts))),
                Err(_) => Err(self.expected("start, stop and step")),
            },
            "float" => match self.string()?.as_str() {
                "inf" => Ok(Literal::Float(f64::INFINITY)),
                "-inf" => Ok(Literal::Float(f64::NEG_INFINITY)),
                "nan" => Ok(Literal::Float(f64::NAN)),
                _ => Err(self.expected("inf, -inf or nan")),
            },
            other => Err(self.error(format!("an unknown tag: {other}"))),
        }
    }
}
