//! A node test: a model, tensors in, tensors out.

#[path = "../../examples/support/tensor_files.rs"]
mod tensor_files;

use std::path::Path;

use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_onnx::Load;
use fx_onnx::proto::{ModelProto, TensorProto};
use prost::Message;
use tensor_files::tensor_files;

/// A test.
#[derive(Debug, Default, Clone)]
pub struct Case {
    pub model: Vec<u8>,
    pub inputs: Vec<Vec<u8>>,
    pub outputs: Vec<Vec<u8>>,
    pub rtol: f64,
    pub atol: f64,
}

fn io(error: impl std::fmt::Display) -> Error {
    Error::msg(error)
}

/// A tensor of a file, as a model reads it.
fn tensor(bytes: &[u8]) -> Result<Option<Tensor>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let proto = TensorProto::decode(bytes).map_err(io)?;
    fx_onnx::tensor(&proto).map(Some)
}

/// Whether a model draws random numbers.
fn draws(model: &[u8]) -> Result<bool> {
    let graph = ModelProto::decode(model)
        .map_err(io)?
        .graph
        .unwrap_or_default();
    let is_random = |op: &str| op.starts_with("Random") || op == "Bernoulli" || op == "Dropout";
    Ok(graph.node.iter().any(|node| is_random(&node.op_type)))
}

impl Case {
    /// The test in a folder.
    #[allow(dead_code, reason = "the example reads folders")]
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path.join("tolerance")).unwrap_or_default();
        let mut numbers = text
            .split_whitespace()
            .filter_map(|n| n.parse::<f64>().ok());
        Ok(Case {
            model: std::fs::read(path.join("model.onnx")).map_err(io)?,
            inputs: tensor_files(path, "in"),
            outputs: tensor_files(path, "out"),
            rtol: numbers.next().unwrap_or(1e-3),
            atol: numbers.next().unwrap_or(1e-7),
        })
    }

    /// Runs it; what differs, if anything does.
    pub fn run(&self) -> Result<Option<String>> {
        let model = ModelProto::decode(&*self.model).map_err(io)?;
        let graph = model.graph.unwrap_or_default();
        if self.inputs.len() < graph.input.len() {
            return Err(Error::msg("the test has inputs that are no tensors"));
        }
        if self
            .outputs
            .iter()
            .any(|bytes| bytes.first() == Some(&b'!'))
            || self.inputs.iter().any(|bytes| bytes.first() == Some(&b'!'))
        {
            return Err(Error::msg("the test has values that are no tensors"));
        }
        let mut given = Vec::new();
        for (info, bytes) in graph.input.iter().zip(&self.inputs) {
            let Some(tensor) = tensor(bytes)? else {
                return Err(Error::msg("an input that may be missing"));
            };
            given.push((info.name.clone(), tensor));
        }
        let expected = self
            .outputs
            .iter()
            .map(|bytes| tensor(bytes))
            .collect::<Result<Vec<_>>>()?;
        let first = self.traced(&given, &[]);
        let found = match first {
            Ok(found) => found,
            Err(error) => {
                // Sizes and numbers that decide shapes are constants in models, and inputs in these tests.
                let small: Vec<usize> = (0..given.len())
                    .filter(|at| {
                        let x = &given[*at].1;
                        let dims = x.dims().map_or(9, <[usize]>::len);
                        dims <= 1
                            && (*at > 0
                                || given.len() == 1
                                || x.dtype().is_ok_and(|d| !d.is_floating_point())
                                || dims == 0)
                    })
                    .collect();
                if small.is_empty() {
                    return Err(error);
                }
                self.traced(&given, &small).map_err(|_| error)?
            }
        };
        if found.len() < expected.len() {
            return Err(Error::msg(format_args!(
                "{} results for {}",
                found.len(),
                expected.len()
            )));
        }
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let Some(expected) = expected else { continue };
            if let Some(difference) = self.difference(found, expected)? {
                if difference.starts_with("element") && draws(&self.model)? {
                    return Err(Error::msg(
                        "it draws random numbers, and these are other ones; types and shapes are right",
                    ));
                }
                return Ok(Some(format!("result {at}: {difference}")));
            }
        }
        Ok(None)
    }

    fn traced(&self, given: &[(String, Tensor)], fixed: &[usize]) -> Result<Vec<Tensor>> {
        let mut load = Load::new();
        let mut args = Vec::new();
        for (at, (name, tensor)) in given.iter().enumerate() {
            match fixed.contains(&at) {
                true => load = load.constant(name, tensor.clone()),
                false => args.push(Value::object(tensor.clone())),
            }
        }
        let module = load.from_bytes(self.model.clone())?.module;
        let result: Value = module.forward(CallArgs {
            args,
            kwargs: Vec::new(),
        })?;
        let mut all = Vec::new();
        let mut left = vec![&result];
        while let Some(value) = left.pop() {
            match value {
                Value::List(items) | Value::Tuple(items) => left.extend(items.iter().rev()),
                Value::Int(n) => all.push(Tensor::from_vec(vec![*n], ())?),
                Value::None => {}
                other => all.push(Tensor::from_value(other.clone())?),
            }
        }
        Ok(all)
    }

    fn difference(&self, found: &Tensor, expected: &Tensor) -> Result<Option<String>> {
        let (a, b) = (found.dims()?, expected.dims()?);
        if a != b {
            return Ok(Some(format!("the shape is {a:?}, and {b:?} was expected")));
        }
        let (a, b) = (found.dtype()?, expected.dtype()?);
        if a != b {
            return Ok(Some(format!("the type is {a}, and {b} was expected")));
        }
        let exact = !b.is_floating_point();
        // Who computes in half precision rounds where it does: two results may be two units in the last place apart.
        let unit = match b {
            DType::BF16 => 2f64.powi(-6),
            DType::F16 => 2f64.powi(-9),
            _ => 0.0,
        };
        for (at, (x, y)) in found.to_vec()?.iter().zip(expected.to_vec()?).enumerate() {
            let same = *x == y || (x.is_nan() && y.is_nan());
            let close = !exact && (x - y).abs() <= self.atol + self.rtol.max(unit) * y.abs();
            if !same && !close {
                return Ok(Some(format!("element {at} is {x}, and {y} was expected")));
            }
        }
        Ok(None)
    }
}
