//! Runs onnx's node tests that `tests/node_tests.py` writes: a folder with a folder for each test, which has `model.onnx`,
//! and `in_0.pb`, `out_0.pb` and so on, with a tensor each. One line a test: its name, and what came of it.
#![allow(clippy::print_stdout, reason = "a program prints")]

#[path = "../tests/node/case.rs"]
mod case;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_string()));
    let mut names: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|all| all.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default();
    names.sort();
    std::panic::set_hook(Box::new(|_| {}));
    for path in names {
        let name = path
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            case::Case::read(&path).and_then(|case| case.run())
        }));
        let line = match outcome {
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                format!("panic\t{}", text.unwrap_or_default())
            }
            Ok(Err(error)) => format!("refused\t{error}"),
            Ok(Ok(None)) => "passed\t".to_string(),
            Ok(Ok(Some(difference))) => format!("wrong\t{difference}"),
        };
        println!("{name}\t{}", line.replace('\n', " "));
    }
}
