//! Reading an exported program of PyTorch never panics, whatever its bytes; a graph that is read keeps the rules of graphs. The
//! bytes are a file, or, where they are none, the text of its graph.
#![no_main]

use std::io::{Cursor, Write};

use libfuzzer_sys::fuzz_target;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn packed(text: &[u8]) -> Option<Vec<u8>> {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a/models/model.json", options).ok()?;
    writer.write_all(text).ok()?;
    Some(writer.finish().ok()?.into_inner())
}

fuzz_target!(|data: &[u8]| {
    let bytes = match data.starts_with(b"{") {
        true => packed(data),
        false => Some(data.to_vec()),
    };
    let Some(bytes) = bytes else {
        return;
    };
    let path = std::env::temp_dir().join(format!("fx_load_pt2_{}", std::process::id()));
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    if let Ok(module) = fx_torch::load(&path) {
        assert!(module.lint().is_ok());
    }
    let _ = fx_torch::support(&path);
});
