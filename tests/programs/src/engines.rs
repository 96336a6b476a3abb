//! Programs of other formats, run by the script `programs.py` in a process of its own: ONNX Runtime and XLA.
//!
//! A request is a line of JSON and the bytes that it counts; so is an answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result};
use serde_json::{Value as Json, json};

use crate::compare::Given;

/// The process.
pub struct Engines {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Engines {
    /// Starts the script with a Python.
    ///
    /// # Errors
    /// Returns an error if it does not start.
    pub fn start(python: &str, script: &Path) -> Result<Self> {
        let child = Command::new(python)
            .arg(script)
            .arg("--engines")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(Error::other)?;
        let closed = || Error::msg("the script has no pipes");
        let input = child.stdin.take().ok_or_else(closed)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(closed)?);
        Ok(Engines {
            child,
            input,
            output,
        })
    }

    /// Runs a file on inputs by name: its results, or why the engine refuses it.
    ///
    /// # Errors
    /// Returns an error if the engine refuses the file, or the process has ended.
    pub fn run(&mut self, engine: &str, file: &[u8], inputs: &[(String, Value)]) -> Result<Given> {
        Ok(Given::of(&self.values(engine, file, inputs)?)?.flat())
    }

    /// Runs a file on inputs by name: its results, one after another.
    ///
    /// # Errors
    /// Returns an error if the engine refuses the file, or the process has ended.
    pub fn values(
        &mut self,
        engine: &str,
        file: &[u8],
        inputs: &[(String, Value)],
    ) -> Result<Value> {
        let mut bytes = file.to_vec();
        let mut described = Vec::new();
        for (name, value) in inputs {
            let tensor = match (value, value.downcast_ref::<Tensor>()) {
                (_, Some(x)) => x.clone(),
                (Value::Int(n), _) => Tensor::from_vec(vec![*n], ())?,
                _ => return Err(Error::msg("an input is a tensor or a whole number")),
            };
            let data = Object::to_data(&tensor)?;
            let own = data.bytes()?;
            described.push(json!({"name": name, "dtype": data.dtype().name(), "shape": data.shape(), "bytes": own.len()}));
            bytes.extend_from_slice(&own);
        }
        let head = json!({"engine": engine, "file": file.len(), "inputs": described});
        writeln!(self.input, "{head}").map_err(Error::other)?;
        self.input.write_all(&bytes).map_err(Error::other)?;
        self.input.flush().map_err(Error::other)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(Error::other)?;
        let head: Json =
            serde_json::from_str(&line).map_err(|_| Error::msg("the engine has ended"))?;
        if let Some(error) = head["error"].as_str() {
            return Err(Error::msg(format_args!("engine: {error}")));
        }
        let mut values = Vec::new();
        for output in head["outputs"].as_array().into_iter().flatten() {
            let size = output["bytes"]
                .as_u64()
                .and_then(|n| usize::try_from(n).ok());
            let mut bytes = vec![0; size.unwrap_or(0)];
            self.output.read_exact(&mut bytes).map_err(Error::other)?;
            values.push(fx_differential::dense_tensor(output, &bytes)?.into_value());
        }
        Ok(Value::Tuple(values.into()))
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        // It has nothing left to do; whether it had ended before does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
