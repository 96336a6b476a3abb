//! The zip file of an exported program: the entry with its graph.
//!
//! Invariant: nothing is unpacked that is larger than the limit, and nothing of it is run.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use fx_nn::{Error, Result};
use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config};

use crate::schema::{MAJOR, Program};

/// The largest description of a graph that is read, in bytes.
const MOST: u64 = 1 << 30;

/// The zip file begins where the file does. Samples of inputs are zip files inside of it, which a search would find.
const FROM_ITS_START: Config = Config {
    archive_offset: ArchiveOffset::Known(0),
};

/// The program of a file.
///
/// # Errors
/// Returns an error if it is no zip file with a program, or the program is of a schema that is not understood.
pub(crate) fn program(path: &Path) -> Result<Program> {
    let about = |problem: String| Error::msg(format_args!("{}: {problem}", path.display()));
    let file = File::open(path).map_err(|e| about(e.to_string()))?;
    let mut archive = ZipArchive::with_config(FROM_ITS_START, BufReader::new(file))
        .map_err(|e| about(format!("no zip file: {e}")))?;
    let is_graph = |name: &str| {
        name.ends_with("/models/model.json") || name == "serialized_exported_program.json"
    };
    let name = (0..archive.len()).find_map(|at| {
        let entry = archive.by_index_raw(at).ok()?;
        let name = entry.name().ok()?.into_owned();
        is_graph(&name).then_some(name)
    });
    let name = name.ok_or_else(|| {
        about("it has no `models/model.json`: write it with `torch.export.save`".to_string())
    })?;
    let mut entry = archive.by_name(&name).map_err(|e| about(e.to_string()))?;
    let mut bytes = Vec::new();
    (&mut entry)
        .take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| about(format!("`{name}`: {e}")))?;
    if bytes.len() as u64 > MOST {
        return Err(about(format!("`{name}` has more than {MOST} bytes")));
    }
    let program: Program =
        serde_json::from_slice(&bytes).map_err(|e| about(format!("`{name}`: {e}")))?;
    if program.schema_version.major != MAJOR {
        return Err(about(format!(
            "the schema is {}.{} (by torch {}), and {MAJOR} is understood: export it with torch 2.6 or newer",
            program.schema_version.major, program.schema_version.minor, program.torch_version
        )));
    }
    Ok(program)
}
