//! Loading never panics: neither whatever bytes, nor whatever JSON in a well-formed file; what loads is saved as the
//! same bytes twice.
#![no_main]

use fx_core::GraphModule;
use libfuzzer_sys::fuzz_target;
use safetensors::tensor::TensorView;

fuzz_target!(|data: &[u8]| {
    check(data);
    if let Ok(json) = std::str::from_utf8(data) {
        let metadata = [("fx".to_string(), json.to_string())].into_iter().collect();
        let none: [(&str, TensorView<'_>); 0] = [];
        if let Ok(file) = safetensors::serialize(none, Some(metadata)) {
            check(&file);
        }
    }
});

fn check(file: &[u8]) {
    let Ok(module) = GraphModule::from_bytes(file) else {
        return;
    };
    match module.to_bytes() {
        Ok(bytes) => match GraphModule::from_bytes(&bytes).and_then(|again| again.to_bytes()) {
            Ok(again) => assert_eq!(again, bytes),
            Err(error) => panic!("what was saved does not load: {error}"),
        },
        Err(error) => panic!("what was loaded is not saved: {error}"),
    }
}
