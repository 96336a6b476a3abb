//! Files on disk: written in one step, opened for reading, named in errors.
//!
//! Invariant: a file under its final name is always complete.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// The size of the write buffer, in bytes.
const BUFFER: usize = 1 << 18;

/// Writes a file in one step: first to a temporary file beside it, which is then renamed. Links are
/// followed to their target; only a file is replaced.
///
/// # Errors
/// Returns an error if the path is not a file, the file cannot be written, or `write` fails; errors
/// name the file.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let whole = || -> Result<()> {
        let target = followed(path)?;
        let beside = beside(&target)?;
        let written = create(&beside, write)
            .and_then(|()| fs::rename(&beside, &target).map_err(Error::saved));
        if written.is_err() {
            // The partial file is useless; only the first error matters.
            let _ = fs::remove_file(&beside);
        }
        written
    };
    whole().map_err(|e| in_file(path, e))
}

/// Writes a file that does not exist yet, and syncs it to disk.
pub(crate) fn create(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = File::create_new(path).map_err(Error::saved)?;
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(Error::saved)?;
    file.sync_all().map_err(Error::saved)
}

/// The longest chain of links that is followed.
const MAX_LINKS: usize = 40;

/// The file that a chain of links leads to; it need not exist.
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
                "exists and is not a file: only a file is replaced",
            ));
        }
        let next = fs::read_link(&at).map_err(Error::saved)?;
        // A relative link starts in its own folder.
        at = match at.parent() {
            Some(folder) => folder.join(next),
            None => next,
        };
    }
    Err(Error::saved("is a circular link"))
}

/// An unused name in the same folder.
pub(crate) fn beside(path: &Path) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else {
        return Err(Error::saved("is not a name of a file"));
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    // A program in WebAssembly is no process, and asking for its number panics.
    let process = match cfg!(target_family = "wasm") {
        true => 0,
        false => std::process::id(),
    };
    hidden.push(format!(".{process}-{number}.tmp"));
    Ok(path.with_file_name(hidden))
}

/// Opens a regular file for reading: a device may never end, and a pipe may never begin.
///
/// # Errors
/// Returns an error if there is no such file, or it is a folder, a device or a pipe.
pub fn opened(path: &Path) -> std::io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(std::io::Error::other(
            "it is a folder, a device or a pipe, and no file",
        )),
    }
}

/// Reads a file; errors of `read` name it.
pub(crate) fn open<T>(path: &Path, read: impl FnOnce(File) -> Result<T>) -> Result<T> {
    let file = opened(path).map_err(Error::saved);
    file.and_then(read).map_err(|e| in_file(path, e))
}

/// Adds the name of the file to an error.
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
