//! A model's folder: the fields of its `config.json`, and the module with the weights of its checkpoint.
//!
//! Invariant: one error reports every problem of a file.

use std::collections::HashSet;
use std::path::Path;

use fx_core::__private::opened;
use fx_core::module::{Component, ComponentExt};
use fx_core::value::DType;
use fx_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value};

use crate::nn;
use crate::weights::Checkpoint;

/// The fields of a configuration, and the problems of those that were read.
pub(crate) struct Fields {
    fields: Map<String, Value>,
    problems: Vec<String>,
}

impl Fields {
    /// # Errors
    /// Returns an error if the text is not a JSON object.
    pub fn parse(text: &str) -> Result<Self> {
        match serde_json::from_str(text).map_err(config)? {
            Value::Object(fields) => Ok(Fields {
                fields,
                problems: Vec::new(),
            }),
            _ => Err(config("it is not a JSON object")),
        }
    }

    /// The configuration in a folder's `config.json`, read by `read`.
    ///
    /// # Errors
    /// Returns an error if there is no such file, and the errors of `read`.
    pub fn of_folder<T>(folder: &Path, read: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        let path = folder.join("config.json");
        let in_file = |e: &dyn std::fmt::Display| config(format!("{}: {e}", path.display()));
        let text = opened(&path).and_then(std::io::read_to_string);
        let text = text.map_err(|e| in_file(&e))?;
        read(&text).map_err(|e| in_file(&e))
    }

    /// A field that is present and not `null`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Whether a field is present, `null` included.
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn read<T: Clone>(
        &mut self,
        name: &str,
        default: Option<T>,
        wanted: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.get(name) else {
            if default.is_none() {
                self.problems.push(format!("`{name}` is missing: {wanted}"));
            }
            return default;
        };
        let found = read(value);
        if found.is_none() {
            let problem = format!("`{name}` is {value}, and no {wanted}");
            self.problems.push(problem);
        }
        found.or(default)
    }

    /// A size, of at least 1.
    pub fn size(&mut self, name: &str) -> usize {
        self.size_or(name, None)
    }

    /// A size, of at least 1, with a default.
    pub fn size_or(&mut self, name: &str, default: impl Into<Option<usize>>) -> usize {
        let size = |value: &Value| usize::try_from(value.as_u64()?).ok().filter(|n| *n > 0);
        let found = self.read(name, default.into(), "whole number above 0", size);
        found.unwrap_or(1)
    }

    /// An index, of at least 0, with a default.
    pub fn index_or(&mut self, name: &str, default: usize) -> usize {
        let index = |value: &Value| usize::try_from(value.as_u64()?).ok();
        let found = self.read(name, Some(default), "whole number", index);
        found.unwrap_or(default)
    }

    /// The number of layers. One above that of all models is refused before anything is made for each.
    pub fn layers(&mut self) -> usize {
        const MOST: usize = 10_000;
        let layers = self.size("num_hidden_layers");
        if layers > MOST {
            self.problem(format!(
                "`num_hidden_layers` is {layers}, and no model has more than {MOST}"
            ));
        }
        layers.min(MOST)
    }

    /// A number above 0, with a default.
    pub fn number_or(&mut self, name: &str, default: f64) -> f64 {
        let number = |value: &Value| value.as_f64().filter(|x| *x > 0.0 && x.is_finite());
        let found = self.read(name, Some(default), "number above 0", number);
        found.unwrap_or(default)
    }

    /// A truth value, with a default.
    pub fn flag_or(&mut self, name: &str, default: bool) -> bool {
        let found = self.read(name, Some(default), "truth value", Value::as_bool);
        found.unwrap_or(default)
    }

    /// A text, with a default.
    pub fn text_or(&mut self, name: &str, default: impl Into<Option<&'static str>>) -> String {
        let text = |value: &Value| value.as_str().map(str::to_string);
        let default = default.into().map(str::to_string);
        self.read(name, default, "text", text).unwrap_or_default()
    }

    /// A height and a width, both of at least 1: a list of two, or a number for both.
    pub fn pair_or(&mut self, name: &str, default: impl Into<Option<usize>>) -> [usize; 2] {
        let size = |value: &Value| usize::try_from(value.as_u64()?).ok().filter(|n| *n > 0);
        let pair = |value: &Value| match value.as_array().map(Vec::as_slice) {
            Some([height, width]) => Some([size(height)?, size(width)?]),
            _ => size(value).map(|side| [side, side]),
        };
        let default = default.into().map(|side| [side, side]);
        let found = self.read(name, default, "size, or list of two sizes, above 0", pair);
        found.unwrap_or([1, 1])
    }

    /// A text of which one value is supported, which is the default.
    pub fn only(&mut self, name: &str, value: &'static str) {
        let found = self.text_or(name, value);
        if found != value {
            self.problem(format!("`{name}` is `{found}`: supported is {value}"));
        }
    }

    /// A truth value of which `false` is supported, which is the default.
    pub fn only_false(&mut self, name: &str) {
        if self.flag_or(name, false) {
            self.problem(format!("`{name}` is true: supported is false"));
        }
    }

    /// Reads the fields of an object inside this one; a missing object is read as an empty one.
    pub fn inside<T>(&mut self, name: &str, read: impl FnOnce(&mut Fields) -> T) -> T {
        let object = |value: &Value| value.as_object().cloned();
        let fields = self.read(name, Some(Map::new()), "object", object);
        let mut inner = Fields {
            fields: fields.unwrap_or_default(),
            problems: Vec::new(),
        };
        let found = read(&mut inner);
        let problems = inner.problems.into_iter();
        self.problems
            .extend(problems.map(|problem| format!("`{name}`: {problem}")));
        found
    }

    /// The type that the weights are saved in, `float32` where none is named.
    pub fn dtype(&mut self) -> DType {
        let name = self.get("dtype").map_or("torch_dtype", |_| "dtype");
        match self.text_or(name, "float32").as_str() {
            "float32" => DType::F32,
            "bfloat16" => DType::BF16,
            "float16" => DType::F16,
            other => {
                self.problem(format!(
                    "`{name}` is `{other}`: supported are float32, bfloat16 and float16"
                ));
                DType::F32
            }
        }
    }

    /// Records a problem.
    pub fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// # Errors
    /// Returns an error if a field that was read has a problem, with a line for each.
    pub fn finish(mut self) -> Result<()> {
        // A field that was read twice has one problem.
        let mut told = HashSet::new();
        self.problems.retain(|problem| told.insert(problem.clone()));
        match self.problems.is_empty() {
            true => Ok(()),
            false => Err(config(self.problems.join("\n"))),
        }
    }
}

/// The module that `new` makes, in a type, with the weights of a checkpoint, frozen for inference.
///
/// # Errors
/// Returns all problems of the weights.
pub(crate) fn loaded<M: Component>(
    new: impl FnOnce() -> Result<M>,
    dtype: DType,
    checkpoint: &Checkpoint,
) -> Result<M> {
    let mut model = nn::skip_init(new)?;
    nn::set_requires_grad(&mut model, false)?;
    model.eval();
    if dtype != DType::F32 {
        nn::to_dtype(&mut model, dtype)?;
    }
    checkpoint.load(&mut model)?;
    Ok(model)
}

fn config(problem: impl std::fmt::Display) -> Error {
    ErrorKind::Weights(problem.to_string()).into()
}
