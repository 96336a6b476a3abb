//! The zip file of an exported program: the entry with its graph.
//!
//! Invariant: nothing is unpacked that is larger than the limit, and nothing of it is run.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use fx_nn::Error;
use serde::Deserialize;
use serde_json::Value;
use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config};

use crate::older;
use crate::schema::{Header, MAJOR, MINOR, OLDER, Program};

/// What a file may ask for; each limit can be raised.
///
/// ```
/// let mut limits = fx_torch::Limits::default();
/// limits.graph_bytes = 16 << 20;
/// let refused = fx_torch::Loader::new().limits(limits).load("huge.pt2");
/// # assert!(refused.is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The bytes of the description of the graph, unpacked: 1 GiB, where nothing else is said. Weights have no limit but
    /// the size of the file.
    pub graph_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            graph_bytes: 1 << 30,
        }
    }
}

/// How many times larger than in the file it may be.
const MOST_TIMES: u64 = 200;

/// How many fields that are not known are looked at.
const MOST_FIELDS: usize = 32;

/// The zip file begins where the file does. Samples of inputs are zip files inside of it, which a search would find.
const FROM_ITS_START: Config = Config {
    archive_offset: ArchiveOffset::Known(0),
};

/// The program of a file.
///
/// # Errors
/// Returns an error if it is no zip file with a program, or the program is of a schema that is not understood.
pub(crate) fn program(path: &Path, limits: Limits) -> Result<Program, Error> {
    let about = |problem: String| Error::msg(format_args!("{}: {problem}", path.display()));
    let file = File::open(path).map_err(|e| about(e.to_string()))?;
    let mut archive = ZipArchive::with_config(FROM_ITS_START, BufReader::new(file))
        .map_err(|e| about(format!("no zip file: {e}")))?;
    let name = graph_entry(&mut archive).map_err(about)?;
    let bytes =
        unpacked(&mut archive, &name, limits).map_err(|e| about(format!("`{name}`: {e}")))?;
    let about = |problem: String| about(format!("`{name}`: {problem}"));
    let bytes = match name == older::GRAPH {
        true => older::quoted(&bytes),
        false => Cow::Borrowed(&*bytes),
    };
    let header: Header = serde_json::from_slice(&bytes).map_err(|e| about(e.to_string()))?;
    let version = &header.schema_version;
    if ![OLDER, MAJOR].contains(&version.major) {
        return Err(about(format!(
            "the schema is {}.{} (by torch {}), and {OLDER} and {MAJOR} are understood: export it with torch 2.5 or newer",
            version.major, version.minor, header.torch_version
        )));
    }
    parsed(&bytes).map_err(|problem| {
        let newer = match version.major == MAJOR && version.minor > MINOR {
            true => format!(
                "; the schema is {MAJOR}.{} (by torch {}), and {MAJOR}.{MINOR} is the newest that is understood",
                version.minor, header.torch_version
            ),
            false => String::new(),
        };
        about(format!("{problem}{newer}"))
    })
}

/// The entry with the graph. Of entries of one name, readers of zip files have the last, and so do weights.
fn graph_entry(archive: &mut ZipArchive<BufReader<File>>) -> Result<String, String> {
    let is_graph = |name: &str| name.ends_with("/models/model.json") || name == older::GRAPH;
    let mut found: Vec<String> = Vec::new();
    for at in 0..archive.len() {
        let entry = archive.by_index_raw(at).map_err(|e| e.to_string())?;
        let name = entry.name().map_err(|e| e.to_string())?.into_owned();
        let leaves = name.split(['/', '\\']).any(|part| part == "..");
        if leaves || name.starts_with('/') {
            return Err(format!(
                "the entry `{}` leaves the archive",
                name.escape_debug()
            ));
        }
        if is_graph(&name) {
            found.push(name);
        }
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err("it has no `models/model.json`: write it with `torch.export.save`".to_string()),
        several => Err(format!(
            "it has {} programs: write each to a file of its own",
            several.len()
        )),
    }
}

/// The bytes of an entry.
fn unpacked(
    archive: &mut ZipArchive<BufReader<File>>,
    name: &str,
    limits: Limits,
) -> Result<Vec<u8>, String> {
    let mut entry = archive.by_name(name).map_err(|e| e.to_string())?;
    // The text of a graph is not packed, or to a hundredth at best.
    let honest = entry
        .compressed_size()
        .saturating_mul(MOST_TIMES)
        .saturating_add(1 << 20);
    let most = honest.min(limits.graph_bytes);
    let mut bytes = Vec::new();
    let read = (&mut entry)
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes);
    read.map_err(|e| e.to_string())?;
    match bytes.len() as u64 > most {
        true if most < honest => Err(format!(
            "it has more than {most} bytes: raise `Limits::graph_bytes` if you trust the file"
        )),
        true => Err(format!("it unpacks to more than {most} bytes")),
        false => Ok(bytes),
    }
}

/// The program of a text. A field that is not known is left out where it says nothing, as new ones of a schema do.
fn parsed(bytes: &[u8]) -> Result<Program, String> {
    let first = match serde_json::from_slice::<Program>(bytes) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    let mut error = first.to_string();
    let Some(mut name) = unknown_field(&error) else {
        return Err(error);
    };
    let mut json: Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    for _ in 0..MOST_FIELDS {
        if !without(&mut json, &name) {
            return Err(format!("{error}: it is not at its default"));
        }
        error = match Program::deserialize(&json) {
            Ok(program) => return Ok(program),
            Err(error) => error.to_string(),
        };
        match unknown_field(&error) {
            Some(next) if next != name => name = next,
            _ => break,
        }
    }
    Err(error)
}

/// The name of the field that an error is about, if it is one that is not known.
fn unknown_field(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("unknown field `")?;
    rest.split_once('`').map(|(name, _)| name.to_string())
}

/// Takes a field away wherever it says nothing, and gives whether it does everywhere.
fn without(json: &mut Value, name: &str) -> bool {
    let is_nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
    };
    let mut left = vec![json];
    while let Some(json) = left.pop() {
        match json {
            Value::Object(items) => {
                if let Some(value) = items.get(name) {
                    if !is_nothing(value) {
                        return false;
                    }
                    items.remove(name);
                }
                left.extend(items.values_mut());
            }
            Value::Array(items) => left.extend(items.iter_mut()),
            _ => {}
        }
    }
    true
}
