//! Quantized files that ONNX Runtime's quantizer made, beside its values: `tests/onnx`, which `tests/onnx_files.py --record`
//! writes.

use std::path::{Path, PathBuf};

use fx_kernels::Level;
use fx_nn::prelude::*;
use fx_onnx::{Export, Load, OnnxExt};
use fx_quant::Integers;

use crate::quantized_file::{Judged, judged};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it is read").path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "quantized"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 18);
    files
}

#[test]
fn files_of_onnx_runtimes_quantizer_run_in_integers() -> Result<()> {
    let mut counts = String::new();
    for path in files() {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let file = judged(&path)?;
        let Judged {
            in_integers,
            in_reference,
            as_read,
            own,
            ..
        } = file;
        println!(
            "{name}: integers {in_integers:.2} reference {in_reference:.2} read {as_read:.2} onnxruntime {own:.2} sqnr_db {:.2?}",
            file.sqnr
        );
        let (calls, parts, left) = (file.calls, file.parts, file.left.len());
        counts.push_str(&format!(
            "{name}: integer {calls} parts {parts} left {left}\n"
        ));
        assert!(file.is_right(), "{name}");
        assert!(in_reference <= (2.0 * own).max(2.0) + 1e-3, "{name}");
        assert_eq!(file.failed, [""; 0], "{name}");

        // The same bits on each level of instructions.
        let y = file.integers.forward::<Tensor>(&file.x)?.to_vec()?;
        for level in Level::available() {
            let mut other = file.reference.clone();
            other.lower(&Integers::new().level(level))?;
            assert_eq!(
                other.forward::<Tensor>(&file.x)?.to_vec()?,
                y,
                "{name} {level:?}"
            );
        }
    }
    // All of the networks but a transformer's softmax, norms and products of values; nothing of 16 bits.
    insta::assert_snapshot!("onnx", counts);
    Ok(())
}

#[test]
fn what_was_read_is_written_and_read_again() -> Result<()> {
    for path in files() {
        let read = Load::new().reference_form().load(&path)?.module;
        let file = judged(&path)?;
        let (bytes, _) = read.to_onnx_bytes(&Export::example(&file.x))?;
        let again = Load::new().reference_form().from_bytes(bytes)?.module;
        let (y, z): (Tensor, Tensor) = (read.forward(&file.x)?, again.forward(&file.x)?);
        let far = (y - &z)?.abs()?.amax(..)?.item()?;
        assert!(far <= 1e-5, "{}: {far}", path.display());
        // Weights are written as integers: what ran in integers does so again.
        let mut fast = again.clone();
        let report = fast.lower(&Integers::new())?;
        let name = path.to_string_lossy();
        // Integers of 16 bits are written as sums and products before operator set 21.
        let is_qdq = name.contains("qdq") && !name.contains("wide");
        assert!(
            !is_qdq || report.left.len() <= file.left.len(),
            "{}: {report}",
            path.display()
        );
    }
    Ok(())
}
