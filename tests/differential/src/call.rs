//! One call as a JSON line says it: the name, the arguments, and what PyTorch gave. A line that is not well formed is
//! an error of the generator, never a difference.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};
use serde_json::{Map, Value as Json};

use crate::tensor::{self, Expected};

/// What kind of name is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A function of `fx_nn::ops`.
    Function,
    /// The same as a method of `Tensor`.
    Method,
    /// A function of `fx_core::operator`, by its sign in Rust.
    Operator,
    /// The `forward` of a layer of `fx_nn::nn`.
    Layer,
}

/// An argument of a call.
#[derive(Debug, Clone)]
pub enum Arg {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Text.
    Str(String),
    /// An element type.
    DType(DType),
    /// The tensor at this place of the call's tensors.
    Tensor(usize),
    /// `...` of an index.
    Ellipsis,
    /// Start, stop and step of a slice of an index.
    Slice([Option<i64>; 3]),
    /// Several arguments.
    List(Vec<Arg>),
}

impl Arg {
    /// The argument as a value, with the tensors of its call; several become a list or a tuple.
    ///
    /// # Errors
    /// When there is no such tensor.
    pub(crate) fn value(
        &self,
        tensors: &[Tensor],
        several: fn(Box<[Value]>) -> Value,
    ) -> Result<Value> {
        let end = |end: &Option<i64>| end.map_or(Value::None, Value::Int);
        Ok(match self {
            Arg::None => Value::None,
            Arg::Bool(boolean) => Value::Bool(*boolean),
            Arg::Int(n) => Value::Int(*n),
            Arg::Float(x) => Value::Float(*x),
            Arg::Str(text) => Value::Str(text.as_str().into()),
            Arg::DType(dtype) => Value::DType(*dtype),
            Arg::Ellipsis => Value::Ellipsis,
            Arg::Slice(parts) => Value::Slice(Box::new(parts.each_ref().map(end))),
            Arg::List(items) => {
                let items = items.iter().map(|item| item.value(tensors, several));
                several(items.collect::<Result<_>>()?)
            }
            Arg::Tensor(at) => tensors
                .get(*at)
                .map(|tensor| Value::object(tensor.clone()))
                .ok_or_else(|| Error::msg("no such tensor"))?,
        })
    }
}

/// How a layer is made.
#[derive(Debug, Clone)]
pub struct Made {
    /// What its constructor is given, by name.
    pub options: Map<String, Json>,
    /// Its parameters and buffers, by path.
    pub state: Vec<(String, Tensor)>,
    /// The element type of its parameters.
    pub dtype: DType,
    /// Whether it is in training mode.
    pub training: bool,
    /// The paths of the parameters whose gradients are judged.
    pub learning: Vec<String>,
}

/// What PyTorch gave.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// This value.
    Value(Expected),
    /// An error.
    Refused,
    /// Random numbers like these: the shape, the element type, the least and the largest that may come, and, where a
    /// source is given, what they stand for (a dropout's elements are 0 or the source's, scaled).
    Random {
        /// The sizes.
        shape: Vec<usize>,
        /// The element type.
        dtype: DType,
        /// The least number.
        least: f64,
        /// The largest number.
        largest: f64,
    },
    /// These gradients of the tensors that the arguments name, then of a layer's parameters; nothing of what does not
    /// learn.
    Gradients(Vec<Expected>),
}

/// A call and what PyTorch gave.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its number in the run.
    pub id: u64,
    /// What kind of name is called.
    pub kind: Kind,
    /// The name, as `docs/ops.md` has it.
    pub name: String,
    /// The arguments, in the signature's order.
    pub args: Vec<Arg>,
    /// The tensors that the arguments name, as the line holds them.
    stored: Vec<Json>,
    /// How the layer is made, of a layer.
    pub made: Option<Made>,
    /// What PyTorch gave.
    pub outcome: Outcome,
}

fn wrong(what: &str, json: &Json) -> Error {
    let mut text = json.to_string();
    text.truncate(text.floor_char_boundary(200));
    Error::msg(format_args!("a call has no {what}: {text}"))
}

fn field<'j>(json: &'j Json, name: &str) -> Result<&'j Json> {
    json.get(name).ok_or_else(|| wrong(name, json))
}

fn list<'j>(json: &'j Json, what: &str) -> Result<&'j [Json]> {
    json.as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| wrong(what, json))
}

/// A float, which is text where JSON has no such number.
pub(crate) fn float(json: &Json) -> Result<f64> {
    match json {
        Json::String(text) => text.parse().map_err(Error::other),
        other => other.as_f64().ok_or_else(|| wrong("float", other)),
    }
}

/// An element type by fx's name.
pub(crate) fn dtype(json: &Json) -> Result<DType> {
    let name = json.as_str().ok_or_else(|| wrong("dtype", json))?;
    DType::from_name(name).ok_or_else(|| wrong("known dtype", json))
}

/// Sizes.
pub(crate) fn sizes(json: &Json) -> Result<Vec<usize>> {
    list(json, "sizes")?
        .iter()
        .map(|n| {
            let n = n.as_u64().ok_or_else(|| wrong("size", n))?;
            usize::try_from(n).map_err(Error::other)
        })
        .collect()
}

impl Arg {
    fn parse(json: &Json) -> Result<Arg> {
        Ok(match json {
            Json::Null => Arg::None,
            Json::Bool(truth) => Arg::Bool(*truth),
            Json::Number(number) => match number.as_i64() {
                Some(n) => Arg::Int(n),
                None => Arg::Float(float(json)?),
            },
            Json::String(text) => Arg::Str(text.clone()),
            Json::Array(items) => Arg::List(items.iter().map(Arg::parse).collect::<Result<_>>()?),
            Json::Object(_) => Arg::tagged(json)?,
        })
    }

    fn tagged(json: &Json) -> Result<Arg> {
        if let Some(number) = json.get("float") {
            return Ok(Arg::Float(float(number)?));
        }
        if let Some(name) = json.get("dtype") {
            return Ok(Arg::DType(dtype(name)?));
        }
        if let Some(place) = json.get("tensor") {
            let place = place.as_u64().ok_or_else(|| wrong("tensor", json))?;
            return Ok(Arg::Tensor(usize::try_from(place).map_err(Error::other)?));
        }
        if let Some(parts) = json.get("slice") {
            let [start, stop, step] = list(parts, "slice")? else {
                return Err(wrong("slice of three parts", json));
            };
            return Ok(Arg::Slice([start.as_i64(), stop.as_i64(), step.as_i64()]));
        }
        match json.get("ellipsis") {
            Some(_) => Ok(Arg::Ellipsis),
            None => Err(wrong("known argument", json)),
        }
    }
}

impl Made {
    fn parse(json: &Json) -> Result<Made> {
        let options = field(json, "options")?;
        let options = options.as_object().ok_or_else(|| wrong("options", json))?;
        let state = field(json, "state")?;
        let state = state.as_object().ok_or_else(|| wrong("state", json))?;
        Ok(Made {
            options: options.clone(),
            state: state
                .iter()
                .map(|(path, tensor)| Ok((path.clone(), tensor::parse(tensor)?)))
                .collect::<Result<_>>()?,
            dtype: dtype(field(json, "dtype")?)?,
            training: field(json, "training")?.as_bool().unwrap_or_default(),
            learning: match json.get("learning") {
                Some(paths) => list(paths, "paths")?
                    .iter()
                    .filter_map(|path| path.as_str().map(str::to_string))
                    .collect(),
                None => Vec::new(),
            },
        })
    }
}

impl Outcome {
    fn parse(json: &Json) -> Result<Outcome> {
        if json.get("refused").is_some() {
            return Ok(Outcome::Refused);
        }
        if let Some(random) = json.get("random") {
            return Ok(Outcome::Random {
                shape: sizes(field(random, "shape")?)?,
                dtype: dtype(field(random, "dtype")?)?,
                least: float(field(random, "least")?)?,
                largest: float(field(random, "largest")?)?,
            });
        }
        if let Some(gradients) = json.get("gradients") {
            let each = list(gradients, "gradients")?.iter();
            return Ok(Outcome::Gradients(
                each.map(Expected::parse).collect::<Result<_>>()?,
            ));
        }
        Ok(Outcome::Value(Expected::parse(field(json, "value")?)?))
    }
}

/// The lines of the calls that are recorded for the tests.
///
/// # Errors
/// When the file cannot be read.
pub fn recorded() -> Result<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/recorded.jsonl");
    std::fs::read_to_string(path).map_err(Error::other)
}

/// The lines of the calls whose gradients are recorded.
///
/// # Errors
/// When the file cannot be read.
pub fn recorded_gradients() -> Result<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/gradients.jsonl");
    std::fs::read_to_string(path).map_err(Error::other)
}

impl Call {
    /// Reads a line.
    ///
    /// # Errors
    /// When the line is not JSON, or not a call.
    pub fn parse(line: &str) -> Result<Call> {
        let json: Json = serde_json::from_str(line).map_err(Error::other)?;
        let json = &json;
        let kind = match field(json, "kind")?.as_str() {
            Some("function") => Kind::Function,
            Some("method") => Kind::Method,
            Some("operator") => Kind::Operator,
            Some("layer") => Kind::Layer,
            _ => return Err(wrong("kind", json)),
        };
        let name = field(json, "name")?.as_str();
        let all = |name: &str| list(field(json, name)?, name);
        Ok(Call {
            id: field(json, "id")?
                .as_u64()
                .ok_or_else(|| wrong("id", json))?,
            kind,
            name: name.ok_or_else(|| wrong("name", json))?.to_string(),
            args: all("args")?.iter().map(Arg::parse).collect::<Result<_>>()?,
            stored: all("tensors")?.to_vec(),
            made: json.get("made").map(Made::parse).transpose()?,
            outcome: Outcome::parse(field(json, "outcome")?)?,
        })
    }

    /// The tensors that the arguments name.
    ///
    /// # Errors
    /// When the line's tensors are not well formed, or a view of them is refused.
    pub fn tensors(&self) -> Result<Vec<Tensor>> {
        self.stored.iter().map(tensor::parse).collect()
    }

    /// Whether what it gives is drawn.
    pub fn is_random(&self) -> bool {
        matches!(self.outcome, Outcome::Random { .. })
    }

    /// The tensors that the arguments name: what each is a view of, a parameter where it learns, and the view.
    ///
    /// # Errors
    /// Returns the errors of [`tensors`](Call::tensors).
    pub(crate) fn leaves(
        &self,
        learns: impl Fn(usize) -> bool,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let mut views = Vec::new();
        let mut leaves = Vec::new();
        for (at, json) in self.stored.iter().enumerate() {
            let stored = tensor::stored(json)?;
            let leaf = match learns(at) {
                true => stored.into_parameter()?,
                false => stored,
            };
            views.push(tensor::view(&leaf, json)?);
            leaves.push(leaf);
        }
        Ok((leaves, views))
    }

    /// How many tensors the arguments name.
    pub fn count(&self) -> usize {
        self.stored.len()
    }

    /// Whether one of the tensors has the element type.
    pub fn has(&self, dtype: DType) -> bool {
        let is = |json: &Json| json["dtype"].as_str() == Some(dtype.name());
        self.stored.iter().any(is)
    }

    /// Whether one of the tensors is a view.
    pub fn has_views(&self) -> bool {
        self.stored.iter().any(|json| json.get("views").is_some())
    }

    /// Whether one of the tensors has no elements.
    pub fn has_no_elements(&self) -> bool {
        self.tensors()
            .is_ok_and(|all| all.iter().any(|x| x.dims().is_ok_and(|d| d.contains(&0))))
    }

    /// Whether all elements of all tensors are finite.
    pub fn is_finite(&self) -> bool {
        let finite = |x: &Tensor| {
            x.to_vec()
                .is_ok_and(|all| all.iter().all(|n| n.is_finite()))
        };
        self.tensors().is_ok_and(|all| all.iter().all(finite))
    }

    /// The largest magnitude of all finite elements.
    pub fn largest(&self) -> f64 {
        let tensors = self.tensors().unwrap_or_default();
        let elements = tensors.iter().filter_map(|x| x.to_vec().ok()).flatten();
        let finite = elements.filter(|n| n.is_finite());
        finite.fold(0.0, |most, n| most.max(n.abs()))
    }

    /// All elements of all tensors, those of a layer's parameters too.
    fn all(&self) -> Vec<Vec<f64>> {
        let own = self.tensors().unwrap_or_default();
        let state = self.made.iter().flat_map(|made| &made.state);
        let all = own.iter().chain(state.map(|(_, tensor)| tensor));
        all.filter_map(|x| x.to_vec().ok()).collect()
    }

    /// Whether an element is infinite or NaN, or so large that an exponential of it overflows.
    pub fn is_far(&self) -> bool {
        self.all()
            .iter()
            .flatten()
            .any(|n| n.is_nan() || n.abs() >= 500.0)
    }

    /// Whether an element is 0.
    pub fn has_zeros(&self) -> bool {
        self.all().iter().flatten().any(|n| *n == 0.0)
    }

    /// Whether it resizes an image by a factor that leaves a size as it is, or doubles one, without being 1 or 2.
    pub fn resizes_by_a_part(&self) -> bool {
        let of_layer = self
            .made
            .as_ref()
            .and_then(|made| made.options.get("scale_factor"));
        let factors: Vec<f64> = match (of_layer, self.args.get(2)) {
            (Some(Json::Array(all)), _) => all.iter().filter_map(Json::as_f64).collect(),
            (Some(one), _) => one.as_f64().into_iter().collect(),
            (None, Some(Arg::Float(one))) => vec![*one],
            (None, Some(Arg::List(all))) => {
                let number = |arg: &Arg| match arg {
                    Arg::Float(x) => Some(*x),
                    _ => None,
                };
                all.iter().filter_map(number).collect()
            }
            _ => Vec::new(),
        };
        let tensors = self.tensors().unwrap_or_default();
        let sizes = tensors.first().and_then(|x| x.dims().ok());
        let sizes = sizes.and_then(|dims| dims.get(2..)).unwrap_or_default();
        let factors = factors.iter().cycle();
        sizes.iter().zip(factors).any(|(size, factor)| {
            let size = *size as f64;
            let result = (size * factor).floor();
            (result == size || result == 2.0 * size) && result != size * factor
        })
    }

    /// The number of elements of one of the tensors that the arguments name.
    pub fn count_of(&self, tensor: usize) -> usize {
        let tensors = self.tensors().unwrap_or_default();
        let dims = tensors.get(tensor).and_then(|x| x.dims().ok());
        dims.map_or(0, |dims| dims.iter().product())
    }

    /// The size of its largest element of a common size: at least 1, and at most 1000.
    pub fn scale(&self) -> f64 {
        let sizes = self.all().into_iter().flatten().map(f64::abs);
        sizes.filter(|size| *size <= 1e3).fold(1.0, f64::max)
    }

    /// Whether an element is so near to 0 that its square is 0.
    pub fn is_tiny(&self) -> bool {
        let all = self.all();
        all.iter().flatten().any(|n| *n != 0.0 && n.abs() < 1e-150)
    }

    /// Whether a tensor holds integers.
    pub fn has_integers(&self) -> bool {
        [DType::I64, DType::I32, DType::I16, DType::U8]
            .into_iter()
            .any(|dtype| self.has(dtype))
    }

    /// Whether a tensor has equal elements, or NaN.
    pub fn has_ties(&self) -> bool {
        self.all().into_iter().any(|mut all| {
            all.sort_by(f64::total_cmp);
            all.iter().any(|n| n.is_nan()) || all.windows(2).any(|pair| pair[0] == pair[1])
        })
    }

    /// Whether a matrix is singular, or two of its singular values are equal.
    pub fn has_degenerate_matrices(&self) -> bool {
        let matrices = self.tensors().unwrap_or_default();
        matrices.iter().any(|x| {
            let Ok(&[.., rows, columns]) = x.dims() else {
                return false;
            };
            let Ok(values) = ops::linalg::svdvals(x).and_then(|values| values.to_vec()) else {
                return true;
            };
            values.chunks(rows.min(columns).max(1)).any(|all| {
                let least = 1e-9 * all.first().copied().unwrap_or(0.0);
                all.last().is_none_or(|last| *last <= least)
                    || all.windows(2).any(|pair| pair[0] - pair[1] <= least)
            })
        })
    }
}
