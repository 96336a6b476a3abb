//! Files that are no programs, or are cut: an error, and nothing is run.

use std::path::PathBuf;

use fx_nn::prelude::*;

fn written(name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("fx_torch_{}_{name}.pt2", std::process::id()));
    std::fs::write(&path, bytes).map_err(Error::other)?;
    Ok(path)
}

#[track_caller]
fn refused(name: &str, bytes: &[u8], expected: &str) -> Result<()> {
    let path = written(name, bytes)?;
    let error = fx_torch::load(&path)
        .map(|_| String::new())
        .unwrap_or_else(|e| e.to_string());
    let _ = std::fs::remove_file(&path);
    assert!(error.contains(expected), "{name}: {error}");
    Ok(())
}

#[test]
fn what_is_no_zip_file_is_refused() -> Result<()> {
    refused("text", b"not a zip file", "no zip file")?;
    refused("empty", b"", "no zip file")
}

/// A file that is cut anywhere is an error, and so is one with other bytes somewhere.
#[test]
fn damaged_files_are_errors_or_programs() -> Result<()> {
    let whole = include_bytes!("data/written.pt2");
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let path = written("cut", &whole[..at])?;
        assert!(fx_torch::load(&path).is_err(), "cut at {at}");
        let mut other = whole.to_vec();
        other[at] ^= 0x55;
        // What it gives does not matter; it ends without a panic.
        let _ = fx_torch::load(written("cut", &other)?);
        std::fs::remove_file(&path).map_err(Error::other)?;
    }
    Ok(())
}
