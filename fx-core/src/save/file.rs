//! The file: safetensors with the JSON in its metadata, from bytes to parts and back, written in one step.
//!
//! Invariants: equal parts give equal bytes; a file under its name is always a whole one.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustc_hash::FxHashMap;
use safetensors::tensor::{SafeTensorError, TensorView};
use safetensors::{Dtype, SafeTensors};

use super::json::{self, Json, JsonMap};
use super::loader::Loader;
use super::saver::Saver;
use super::stream;
use super::upgrade::{SCHEMA, upgrade};
use crate::error::{Error, ErrorKind, Result};
use crate::value::data::TensorData;
use crate::value::dtype::DType;

/// The metadata key that holds the JSON.
const KEY: &str = "fx";

/// How deep the JSON may nest: far beyond what modules and arguments need, far below what the stack holds.
const MAX_DEPTH: usize = 512;

/// The first fields of the JSON: what wrote it.
pub(crate) fn header() -> JsonMap {
    let mut fields = JsonMap::new();
    fields.insert("schema".into(), Json::from(SCHEMA));
    fields.insert("fx".into(), Json::from(env!("CARGO_PKG_VERSION")));
    fields
}

/// The file of a module's JSON and of the tensors that were collected with it.
pub(crate) fn to_bytes(mut fields: JsonMap, saver: &Saver) -> Result<Vec<u8>> {
    let tensors = saver.tensors.iter().map(|(path, data)| {
        let mut about = JsonMap::new();
        about.insert("type".into(), Json::from(data.type_path()));
        if data.is_parameter() {
            about.insert("parameter".into(), Json::from(true));
        }
        (path.clone(), Json::Object(about))
    });
    fields.insert("tensors".into(), Json::Object(tensors.collect()));
    let aliases = saver.aliases.iter();
    let aliases = aliases.map(|(path, first)| (path.clone(), Json::from(first.as_str())));
    fields.insert("aliases".into(), Json::Object(aliases.collect()));
    let text = Json::Object(fields).to_string();
    check_depth(&text)?;
    let views = saver
        .tensors
        .iter()
        .map(|(path, data)| {
            let view = TensorView::new(
                safetensors_dtype(data.dtype()),
                data.shape().to_vec(),
                data.bytes(),
            );
            Ok((path.as_str(), view.map_err(container)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let metadata = HashMap::from([(KEY.to_string(), text)]);
    safetensors::serialize(views, Some(metadata)).map_err(|e| match e {
        SafeTensorError::HeaderTooLarge => Error::saved(
            "the graph is larger than the 100 MB that a file's header may have: split it into modules of their own files",
        ),
        other => container(other),
    })
}

/// Reads a file's bytes: gives `load` the JSON, in today's schema, and its tensors.
pub(crate) fn from_bytes<T>(
    bytes: &[u8],
    load: impl FnOnce(&JsonMap, &mut Loader<'_>) -> Result<T>,
) -> Result<T> {
    let (header, metadata) = SafeTensors::read_metadata(bytes).map_err(container)?;
    let text = metadata.metadata().as_ref().and_then(|m| m.get(KEY));
    let text = text.ok_or_else(|| {
        Error::saved(format_args!(
            "there is no graph in this file: its metadata has no `{KEY}`. If it holds weights only, load them into a module"
        ))
    })?;
    let (saved, graph) = match stream::parse(text) {
        Some((fields, graph)) => (Json::Object(fields), Some(graph)),
        None => {
            check_depth(text)?;
            let mut saved = parse(text)?;
            upgrade(&mut saved)?;
            (saved, None)
        }
    };
    let fields = json::object(&saved)?;

    let data = bytes.get(header + size_of::<u64>()..).unwrap_or_default();
    let infos = metadata.tensors();
    let mut tensors = FxHashMap::default();
    json::part(fields, "tensors", |about| {
        for (path, about) in json::object(about)? {
            let tensor = infos
                .get(path)
                .ok_or_else(|| {
                    Error::saved(
                        "the file has no such tensor: it was cut or edited after it was saved",
                    )
                })
                .and_then(|info| {
                    let (start, end) = info.data_offsets;
                    let bytes = data.get(start..end).unwrap_or_default();
                    tensor_data(about, info.dtype, info.shape.clone(), bytes)
                })
                .map_err(|e| e.inside(format_args!(".{path}")))?;
            tensors.insert(path.as_str(), tensor);
        }
        Ok(())
    })?;
    let aliases = json::part(fields, "aliases", |aliases| {
        json::object(aliases)?
            .iter()
            .map(|(path, first)| {
                let first = json::text(first).map_err(|e| e.inside(format_args!(".{path}")))?;
                Ok((path.as_str(), first))
            })
            .collect::<Result<FxHashMap<_, _>>>()
    })?;
    load(fields, &mut Loader::new(tensors, aliases, graph))
}

fn tensor_data<'f>(
    about: &'f Json,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: &'f [u8],
) -> Result<TensorData<'f>> {
    let fields = json::object(about)?;
    json::known_names(fields, &["type", "parameter"])?;
    let path = json::part(fields, "type", json::text)?;
    let parameter = json::optional(fields, "parameter", json::boolean)?;
    let dtype = fx_dtype(dtype).ok_or_else(|| {
        Error::saved(format_args!(
            "element type {dtype:?} has no counterpart in fx"
        ))
    })?;
    Ok(TensorData::new(path, dtype, shape, bytes)?.with_parameter(parameter.unwrap_or(false)))
}

fn parse(text: &str) -> Result<Json> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // `check_depth` has bounded it.
    deserializer.disable_recursion_limit();
    let mut values = deserializer.into_iter::<Json>();
    match (values.next(), values.next()) {
        (Some(Ok(saved)), None) => Ok(saved),
        (Some(Err(e)), _) | (_, Some(Err(e))) => Err(Error::saved(format_args!(
            "the metadata's `{KEY}` is no JSON: {e}"
        ))),
        _ => Err(Error::saved(format_args!(
            "the metadata's `{KEY}` is not one JSON value"
        ))),
    }
}

/// Refuses JSON that nests deeper than reading it by recursion allows.
fn check_depth(text: &str) -> Result<()> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth > MAX_DEPTH {
            return Err(Error::saved(format_args!(
                "the metadata's `{KEY}` nests deeper than {MAX_DEPTH} levels"
            )));
        }
    }
    Ok(())
}

fn container(error: SafeTensorError) -> Error {
    Error::saved(format_args!("no whole safetensors file: {error}"))
}

fn safetensors_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::U32 => Dtype::U32,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::BF16 => Dtype::BF16,
        DType::F16 => Dtype::F16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

fn fx_dtype(dtype: Dtype) -> Option<DType> {
    DType::ALL
        .into_iter()
        .find(|own| safetensors_dtype(*own) == dtype)
}

/// Puts bytes into a file, as one step: beside it first, then under its name. Links are followed to the file that they
/// lead to; nothing but a file is replaced.
///
/// # Errors
/// When something else is there, or it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let target = followed(path).map_err(|e| in_file(path, e))?;
    let beside = beside(&target).map_err(|e| in_file(path, e))?;
    let written = File::create_new(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, &target));
    written.map_err(|e| {
        // What is left of it is of no use; the error that counts is the first.
        let _ = fs::remove_file(&beside);
        in_file(path, Error::saved(e))
    })
}

/// How many links lead to a file at most.
const MAX_LINKS: usize = 40;

/// The file that links lead to, which need not be there yet.
fn followed(path: &Path) -> Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(found) = fs::symlink_metadata(&at) else {
            return Ok(at);
        };
        if found.is_file() {
            return Ok(at);
        }
        if !found.is_symlink() {
            return Err(Error::saved(
                "is there already, and is no file: nothing but a file is replaced",
            ));
        }
        let next = fs::read_link(&at).map_err(Error::saved)?;
        // A link that is not absolute starts in its own folder.
        at = match at.parent() {
            Some(folder) => folder.join(next),
            None => next,
        };
    }
    Err(Error::saved("is a link that leads in circles"))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| in_file(path, Error::saved(e)))
}

/// A name in the same folder that nobody else uses.
pub(crate) fn beside(path: &Path) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else {
        return Err(Error::saved("is no name of a file"));
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{number}.tmp", std::process::id()));
    Ok(path.with_file_name(hidden))
}

/// The error, told to be about a file.
pub(crate) fn in_file(path: &Path, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Saved { place, problem } => {
            let place = place.trim_start_matches('.');
            let place = match place.is_empty() {
                true => path.display().to_string(),
                false => format!("{}: {place}", path.display()),
            };
            let problem = problem.clone();
            ErrorKind::Saved { place, problem }.into()
        }
        _ => error.inside(path.display()),
    }
}
