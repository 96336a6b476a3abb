//! The tests in `sample.bin`: numbers, and pieces after their lengths.

use super::case::Case;

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

/// All of them, by name.
pub fn cases() -> Vec<(String, Case)> {
    let mut sample = Sample(include_bytes!("sample.bin"));
    let mut all = Vec::new();
    while !sample.0.is_empty() {
        let name = String::from_utf8(sample.piece()).expect("a name is text");
        let mut case = Case {
            model: sample.piece(),
            ..Case::default()
        };
        (case.rtol, case.atol) = (sample.float(), sample.float());
        case.inputs = sample.pieces();
        case.outputs = sample.pieces();
        all.push((name, case));
    }
    all
}
