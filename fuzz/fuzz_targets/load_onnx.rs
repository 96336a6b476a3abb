//! Reading an ONNX file never panics, whatever its bytes; a graph that is read keeps the rules of graphs.
#![no_main]

use fx_onnx::Load;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(import) = Load::new().from_bytes(data.to_vec()) {
        assert!(import.module.lint().is_ok());
    }
});
