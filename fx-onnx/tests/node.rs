//! The recorded sample of onnx's node tests, which `node_tests.py` writes, without Python.

#[path = "node/case.rs"]
mod case;

use case::Case;
use fx_nn::prelude::*;

/// Reads numbers and pieces from the sample.
struct Sample<'s>(&'s [u8]);

impl<'s> Sample<'s> {
    fn take(&mut self, count: usize) -> &'s [u8] {
        let (piece, rest) = self.0.split_at(count);
        self.0 = rest;
        piece
    }

    fn count(&mut self) -> usize {
        self.take(4)
            .iter()
            .rev()
            .fold(0, |n, byte| n << 8 | usize::from(*byte))
    }

    fn piece(&mut self) -> Vec<u8> {
        let count = self.count();
        self.take(count).to_vec()
    }

    fn float(&mut self) -> f64 {
        f64::from_bits(
            self.take(8)
                .iter()
                .rev()
                .fold(0, |n, byte| n << 8 | u64::from(*byte)),
        )
    }

    fn pieces(&mut self) -> Vec<Vec<u8>> {
        (0..self.count()).map(|_| self.piece()).collect()
    }
}

/// Every test of the sample gives onnx's numbers.
#[test]
fn the_sample_of_node_tests_passes() -> Result<()> {
    let mut sample = Sample(include_bytes!("node/sample.bin"));
    let mut passed = 0;
    while !sample.0.is_empty() {
        let name = String::from_utf8(sample.piece()).unwrap();
        let mut case = Case {
            model: sample.piece(),
            ..Case::default()
        };
        (case.rtol, case.atol) = (sample.float(), sample.float());
        case.inputs = sample.pieces();
        case.outputs = sample.pieces();
        let found = case
            .run()
            .map_err(|e| Error::msg(format_args!("{name}: {e}")))?;
        assert_eq!(found, None, "{name}");
        passed += 1;
    }
    assert!(passed >= 500, "{passed} tests");
    Ok(())
}
