//! Zip files inside of a zip file: what exported programs of torch before 2.9 have their tensors in.
//!
//! Invariant: nothing outside of the inner file is read, and its places are those of the whole file.

use std::fs::File;
use std::io::{Read, Result as IoResult, Seek, SeekFrom};

use fx_core::{Error, Result};
use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive};

use super::stored::Files;

/// Whether a file inside of an exported program is a zip file with tensors, in one of the older layouts. Samples of inputs are
/// no such files.
pub(super) fn has_tensors(name: &str) -> bool {
    let is_old = ["serialized_state_dict.pt", "serialized_constants.pt"].contains(&name);
    let folders = ["/data/weights/", "/data/constants/"];
    is_old || (name.ends_with(".pt") && folders.iter().any(|folder| name.contains(folder)))
}

/// Adds the files of a zip file that begins at `start` of a file, each with `prefix` before its name; gives the name of one
/// that is compressed.
///
/// # Errors
/// Returns an error if it is no zip file.
pub(super) fn listed(
    file: &mut File,
    (start, length): (u64, u64),
    prefix: &str,
    files: &mut Files,
) -> Result<Option<String>> {
    // Zip files may lie inside of it, which a search for its start would find.
    let config = Config {
        archive_offset: ArchiveOffset::Known(0),
    };
    let window = std::io::BufReader::new(Window {
        file,
        start,
        length,
        at: 0,
    });
    let mut archive = ZipArchive::with_config(config, window).map_err(Error::msg)?;
    let mut packed = None;
    for at in 0..archive.len() {
        let entry = archive.by_index_raw(at).map_err(Error::msg)?;
        let name = entry.name().map_err(Error::msg)?;
        let name = format!("{prefix}{name}");
        match (entry.compression(), entry.data_start()) {
            (CompressionMethod::Stored, Some(own)) => {
                let there = length.saturating_sub(own);
                let own = own.min(length);
                files.insert(name, (start + own, entry.size().min(there)));
            }
            _ => packed = Some(name),
        }
    }
    Ok(packed)
}

/// A part of a file, as a file.
struct Window<'f> {
    file: &'f mut File,
    start: u64,
    length: u64,
    at: u64,
}

impl Read for Window<'_> {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        let left = self.length.saturating_sub(self.at);
        let count = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.file.seek(SeekFrom::Start(self.start + self.at))?;
        let count = self.file.read(&mut into[..count])?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Window<'_> {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at
            .filter(|at| *at <= i64::MAX as u64 - self.start)
            .ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
