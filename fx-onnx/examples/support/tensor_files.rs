//! The files of tensors in a folder of a test: `in_0.pb`, `in_1.pb` and so on, and `out_0.pb`.

use std::path::Path;

/// The bytes of the files of a kind, in order.
pub fn tensor_files(folder: &Path, kind: &str) -> Vec<Vec<u8>> {
    let numbered = (0..).map(|at| std::fs::read(folder.join(format!("{kind}_{at}.pb"))));
    numbered.map_while(Result::ok).collect()
}
