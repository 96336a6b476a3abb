//! The recorded sample of onnx's node tests, which `node_tests.py` writes, without Python.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

#[path = "node/case.rs"]
mod case;
#[path = "node/sample.rs"]
mod sample;

use fx_nn::prelude::*;
use fx_onnx::proto::ModelProto;
use prost::Message;

/// Every test of the sample gives onnx's numbers.
#[test]
fn the_sample_of_node_tests_passes() -> Result<()> {
    let cases = sample::cases();
    for (name, case) in &cases {
        let found = case
            .run()
            .map_err(|e| Error::msg(format_args!("{name}: {e}")))?;
        assert_eq!(found, None, "{name}");
    }
    assert!(cases.len() >= 500, "{} tests", cases.len());
    Ok(())
}

/// The messages are those of onnx: what its own protobuf wrote is read whole, and written as the same bytes, but for
/// texts that are there and empty.
#[test]
fn messages_are_written_as_onnx_writes_them() -> Result<()> {
    let cases = sample::cases();
    let mut equal = 0;
    for (name, case) in &cases {
        let model = ModelProto::decode(&*case.model).map_err(Error::other)?;
        let bytes = model.encode_to_vec();
        // The standard's domain, which is empty, is there in an operator set.
        let mut theirs = case.model.clone();
        let set = [0x42, 4, 0x0a, 0, 0x10];
        if let Some(at) = theirs.windows(5).position(|window| *window == set) {
            theirs.splice(at..at + 5, [0x42, 2, 0x10]);
        }
        equal += usize::from(bytes == theirs);
        let again = ModelProto::decode(&*bytes).map_err(Error::other)?;
        assert!(again == model && bytes.len() <= case.model.len(), "{name}");
    }
    println!("equal bytes: {equal} of {}", cases.len());
    assert!(equal * 2 > cases.len(), "{equal} of {}", cases.len());
    Ok(())
}
