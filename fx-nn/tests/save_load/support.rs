//! Helpers of the tests of saved files: comparing modules whole, and looking into files.

use std::path::{Path, PathBuf};

use fx_nn::file::Json;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::trace::CallArgs;

/// A file that is removed when the test ends.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let file = format!("fx_save_{name}_{}.safetensors", std::process::id());
        Scratch(std::env::temp_dir().join(file))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn run(gm: &GraphModule, args: Vec<Value>) -> Result<Value> {
    let kwargs = Vec::new();
    gm.forward(CallArgs { args, kwargs })
}

/// The elements of all tensors in a value, bit by bit, with their types and shapes; the rest as text.
pub fn bits(value: &Value) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut problem = Ok(());
    value.for_each(&mut |inner| match inner.as_object().map(Object::to_data) {
        Some(Ok(data)) => match data.bytes() {
            Ok(bytes) => found.push((
                format!("{:?} {}", data.shape(), data.dtype()),
                bytes.into_owned(),
            )),
            Err(error) => problem = Err(error),
        },
        Some(Err(error)) => problem = Err(error),
        None => found.push((inner.to_string(), Vec::new())),
    });
    problem.map(|()| found)
}

/// Saves and loads a module: results, state, graph, code and file are the same.
pub fn loads_the_same(name: &str, gm: &GraphModule, inputs: Vec<Value>) -> Result<()> {
    let bytes = gm.to_bytes()?;
    assert!(
        gm.to_bytes()? == bytes,
        "{name}: other bytes the second time"
    );
    let loaded = GraphModule::from_bytes(&bytes)?;
    assert!(
        loaded.to_bytes()? == bytes,
        "{name}: other bytes after loading"
    );
    assert_eq!(loaded.graph().to_string(), gm.graph().to_string(), "{name}");
    assert_eq!(loaded.code(), gm.code(), "{name}");
    assert_eq!(loaded.to_string(), gm.to_string(), "{name}");
    let (state, other) = (gm.state_dict(), loaded.state_dict());
    assert!(state.keys().eq(other.keys()), "{name}: other paths");
    for (path, value) in &state {
        assert!(bits(value)? == bits(&other[path])?, "{name}: {path}");
    }
    assert!(
        gm.named_parameters()
            .keys()
            .eq(loaded.named_parameters().keys())
    );
    let (a, b) = (run(gm, inputs.clone())?, run(&loaded, inputs)?);
    assert!(
        !bits(&a)?.is_empty() && bits(&a)? == bits(&b)?,
        "{name}: other results"
    );
    Ok(())
}

/// The JSON in a file's metadata.
pub fn json_of(bytes: &[u8]) -> Result<Json> {
    let (_, metadata) = safetensors::SafeTensors::read_metadata(bytes).map_err(Error::other)?;
    let text = metadata
        .metadata()
        .as_ref()
        .and_then(|m| m.get("fx").cloned());
    text.unwrap_or_default().parse().map_err(Error::other)
}

/// The file with other JSON in its metadata.
pub fn with_json(bytes: &[u8], json: &str) -> Result<Vec<u8>> {
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(Error::other)?;
    let metadata = [("fx".to_string(), json.to_string())].into_iter().collect();
    safetensors::serialize(file.iter(), Some(metadata)).map_err(Error::other)
}
