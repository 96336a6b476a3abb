//! A node test: a model, values in, values out: tensors of numbers and of text, lists of them, and none.

#[path = "../../examples/support/tensor_files.rs"]
mod tensor_files;

use std::path::Path;

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::CallArgs;
use fx_onnx::proto::{ModelProto, TensorProto};
use fx_onnx::{Load, Texts};
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

/// A value of a test.
#[derive(Debug, Clone)]
enum Given {
    Missing,
    Tensor(Tensor),
    Texts(Texts),
    List(Vec<Given>),
}

impl Given {
    /// A value as `node_tests.py` writes it: nothing, a tensor, or a list of them after `[`.
    fn read(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Given::Missing);
        }
        if bytes[0] != b'[' {
            let proto = TensorProto::decode(bytes).map_err(io)?;
            return match proto.data_type {
                8 => fx_onnx::texts(&proto).map(Given::Texts),
                _ => fx_onnx::tensor(&proto).map(Given::Tensor),
            };
        }
        let (mut rest, mut items) = (&bytes[1..], Vec::new());
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (item, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            items.push(Given::read(item)?);
            rest = behind;
        }
        Ok(Given::List(items))
    }

    fn value(&self) -> Value {
        match self {
            Given::Missing => Value::None,
            Given::Tensor(tensor) => Value::object(tensor.clone()),
            Given::Texts(texts) => Value::object(texts.clone()),
            Given::List(items) => Value::List(items.iter().map(Given::value).collect()),
        }
    }

    /// What it is, for one that has items.
    fn spec(&self) -> Option<Spec> {
        let is_list = matches!(self, Given::List(_));
        is_list.then(|| Spec::of(self.value()))
    }

    fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Given::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The tensors in it, one by one.
    fn flat(self) -> Vec<Given> {
        match self {
            Given::List(items) => items.into_iter().flat_map(Given::flat).collect(),
            one => vec![one],
        }
    }
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
            return Err(Error::msg("the test has fewer inputs than the model"));
        }
        let mut given = Vec::new();
        for (info, bytes) in graph.input.iter().zip(&self.inputs) {
            given.push((info.name.clone(), Given::read(bytes)?));
        }
        let expected = self.outputs.iter().map(|bytes| Given::read(bytes));
        let expected: Vec<Given> = expected.collect::<Result<Vec<_>>>()?;
        let expected: Vec<Given> = expected.into_iter().flat_map(Given::flat).collect();
        let first = self.traced(&given, &[]);
        let found = match first {
            Ok(found) => found,
            Err(error) => {
                // Sizes and numbers that decide shapes are constants in models, and inputs in these tests.
                let small: Vec<usize> = (0..given.len())
                    .filter(|at| {
                        let Some(x) = given[*at].1.as_tensor() else {
                            return false;
                        };
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
        // A value that may be missing is none of the results that are there.
        let expected: Vec<Given> = match found.len() < expected.len() {
            true => (expected.into_iter())
                .filter(|given| !matches!(given, Given::Missing))
                .collect(),
            false => expected,
        };
        if found.len() < expected.len() {
            return Err(Error::msg(format_args!(
                "{} results for {}",
                found.len(),
                expected.len()
            )));
        }
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let difference = match (found, expected) {
                (_, Given::Missing) => None,
                (Given::Tensor(found), Given::Tensor(expected)) => {
                    self.difference(found, expected)?
                }
                (Given::Texts(found), Given::Texts(expected)) if found == expected => None,
                (found, expected) => {
                    Some(format!("it is {found:?}, and {expected:?} was expected"))
                }
            };
            if let Some(difference) = difference {
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

    fn traced(&self, given: &[(String, Given)], fixed: &[usize]) -> Result<Vec<Given>> {
        let mut load = Load::new();
        let mut args = Vec::new();
        for (at, (name, value)) in given.iter().enumerate() {
            match (value, fixed.contains(&at)) {
                (Given::Missing, _) => load = load.absent(name),
                (Given::Tensor(tensor), true) => load = load.constant(name, tensor.clone()),
                (value, _) => {
                    if let Some(spec) = value.spec() {
                        load = load.input(name, spec);
                    }
                    args.push(value.value());
                }
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
                Value::Int(n) => all.push(Given::Tensor(Tensor::from_vec(vec![*n], ())?)),
                Value::None => {}
                other => all.push(match other.downcast_ref::<Texts>() {
                    Some(texts) => Given::Texts(texts.clone()),
                    None => Given::Tensor(Tensor::from_value(other.clone())?),
                }),
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
