//! The command as a shell runs it: what it prints, what it writes, and its exit codes.

use std::path::PathBuf;
use std::process::{Command, Output};

use fx_nn::models::mlp::Mlp;
use fx_nn::operator;
use fx_nn::prelude::*;

/// A folder of its own, which is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("fx_cli_{name}_{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(Error::other)?;
        Ok(Folder(path))
    }

    /// Saves a multilayer perceptron, changed.
    pub(crate) fn save(
        &self,
        name: &str,
        change: impl FnOnce(&mut GraphModule) -> Result<()>,
    ) -> Result<()> {
        let mut gm = symbolic_trace(&Mlp::new(4, 8, 2)?)?;
        change(&mut gm)?;
        gm.save(self.0.join(name))
    }

    /// Runs the command in the folder.
    pub(crate) fn fx(&self, args: &[&str]) -> Result<(i32, String, String)> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fx"));
        let Output {
            status,
            stdout,
            stderr,
        } = command
            .current_dir(&self.0)
            .args(args)
            .output()
            .map_err(Error::other)?;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(Error::other);
        Ok((status.code().unwrap_or(-1), text(stdout)?, text(stderr)?))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn show_summary_and_code_print_what_the_file_has() -> Result<()> {
    let folder = Folder::new("show")?;
    folder.save("mlp.fx", |_| Ok(()))?;
    let (code, shown, _) = folder.fx(&["show", "mlp.fx", "--input", "batch,4"])?;
    assert_eq!(code, 0);
    assert!(shown.contains("float32[batch, 2]"), "{shown}");

    let (_, json, _) = folder.fx(&["show", "mlp.fx", "--json"])?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(Error::other)?;
    assert_eq!(json["name"], "Mlp");
    assert_eq!(json["nodes"][0]["op"], "placeholder");

    let (_, summary, _) = folder.fx(&["summary", "mlp.fx", "--input", "3,4"])?;
    assert!(summary.contains("[3, 2]"), "{summary}");
    let (_, plain, _) = folder.fx(&["summary", "mlp.fx"])?;
    assert!(plain.starts_with("Mlp: "), "{plain}");
    let (_, json, _) = folder.fx(&["summary", "mlp.fx", "--json", "--input", "batch,4"])?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(Error::other)?;
    assert!(
        json["modules"][0]["multiply_adds"]
            .as_str()
            .is_some_and(|t| t.ends_with("*batch"))
    );

    let (code, rust, _) = folder.fx(&["code", "mlp.fx"])?;
    assert_eq!(code, 0);
    assert!(
        rust.starts_with("pub fn forward(&self, x: &Tensor)"),
        "{rust}"
    );
    Ok(())
}

#[test]
fn diff_exits_with_one_if_there_are_differences() -> Result<()> {
    let folder = Folder::new("diff")?;
    folder.save("a.fx", |_| Ok(()))?;
    folder.save("b.fx", |gm| {
        let output = gm.graph().output_node().map(|node| node.id());
        let output = output.ok_or_else(|| Error::msg("it has an output"))?;
        let mut graph = gm.graph_mut();
        let result = graph.node(output)?.args()[0].as_node();
        let result = result.ok_or_else(|| Error::msg("it returns a node"))?;
        let neg = graph
            .inserting_before(output)?
            .call_function(operator::neg, (result,), ())?;
        graph.node_mut(output)?.replace_input_with(result, neg)
    })?;
    let (code, same, _) = folder.fx(&["diff", "a.fx", "a.fx"])?;
    assert_eq!((code, same.as_str()), (0, ""));
    let (code, found, _) = folder.fx(&["diff", "a.fx", "b.fx", "--html", "d.html"])?;
    assert_eq!(code, 1);
    assert!(found.contains("+ %neg = call_function"), "{found}");
    assert!(folder.0.join("d.html").is_file());
    let (code, json, _) = folder.fx(&["--json", "diff", "a.fx", "b.fx"])?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(Error::other)?;
    assert_eq!((code, json["new"].as_u64()), (1, Some(1)));
    Ok(())
}

#[test]
fn html_and_lint_and_errors() -> Result<()> {
    let folder = Folder::new("html")?;
    folder.save("mlp.fx", |_| Ok(()))?;
    let (code, path, _) = folder.fx(&["html", "mlp.fx", "--input", "2,4"])?;
    assert_eq!((code, path.trim()), (0, "mlp.html"));
    let page = std::fs::read_to_string(folder.0.join("mlp.html")).map_err(Error::other)?;
    assert!(page.contains("live memory") && page.starts_with("<!doctype html>"));

    let (code, none, _) = folder.fx(&["lint", "mlp.fx"])?;
    assert_eq!((code, none.as_str()), (0, ""));
    // Cut off in the middle: a fault of the file, which can be read.
    let bytes = std::fs::read(folder.0.join("mlp.fx")).map_err(Error::other)?;
    let half = &bytes[..bytes.len() / 2];
    std::fs::write(folder.0.join("cut.fx"), half).map_err(Error::other)?;
    let (code, fault, _) = folder.fx(&["lint", "mlp.fx", "cut.fx"])?;
    assert_eq!(code, 1);
    assert!(fault.starts_with("cut.fx: "), "{fault}");
    assert_eq!(folder.fx(&["lint", "nothing.fx"])?.0, 2);

    let (code, _, error) = folder.fx(&["show", "nothing.fx"])?;
    assert_eq!(code, 2);
    assert!(error.starts_with("error: "), "{error}");
    let (code, _, error) = folder.fx(&["show", "mlp.fx", "--input", "2,4:float7"])?;
    assert_eq!(code, 2);
    assert!(error.contains("`float7` is no element type"), "{error}");
    Ok(())
}

#[test]
fn onnx_files_are_shown_converted_and_compared() -> Result<()> {
    let folder = Folder::new("onnx")?;
    folder.save("mlp.fx", |_| Ok(()))?;
    let (code, _, error) = folder.fx(&["convert", "mlp.fx", "mlp.onnx"])?;
    assert!(code == 2 && error.contains("--input"), "{error}");
    let (code, report, _) = folder.fx(&["convert", "mlp.fx", "mlp.onnx", "--input", "batch,4"])?;
    assert_eq!(code, 0);
    assert!(report.contains("kept dynamic: batch"), "{report}");

    // The file says what its inputs are, and which layers it has.
    let (_, shown, _) = folder.fx(&["show", "mlp.onnx"])?;
    assert!(
        shown.contains("float32[batch, 2]") && shown.contains("call_module"),
        "{shown}"
    );
    let (_, summary, _) = folder.fx(&["summary", "mlp.onnx"])?;
    assert!(
        summary.contains("Linear") && summary.contains("[batch, 2]"),
        "{summary}"
    );
    assert_eq!(folder.fx(&["html", "mlp.onnx"])?.0, 0);
    assert_eq!(folder.fx(&["lint", "mlp.onnx"])?.0, 0);
    let (code, operators, _) = folder.fx(&["support", "mlp.onnx"])?;
    assert!(code == 0 && operators.contains("3 Gemm"), "{operators}");

    // Back again, and as ONNX of another version.
    assert_eq!(folder.fx(&["convert", "mlp.onnx", "again.fx"])?.0, 0);
    let (code, same, _) = folder.fx(&["diff", "mlp.onnx", "again.fx"])?;
    assert_eq!((code, same.as_str()), (0, ""));
    let (code, json, _) =
        folder.fx(&["--json", "convert", "mlp.onnx", "old.onnx", "--opset", "18"])?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(Error::other)?;
    assert_eq!((code, json["dynamic"][0].as_str()), (0, Some("batch")));
    assert_eq!(folder.fx(&["diff", "mlp.onnx", "old.onnx"])?.0, 0);

    std::fs::write(folder.0.join("cut.onnx"), b"\x3a\xff\x01").map_err(Error::other)?;
    let (code, fault, _) = folder.fx(&["lint", "cut.onnx"])?;
    assert_eq!(code, 1);
    assert!(fault.starts_with("cut.onnx: byte 0 of the file"), "{fault}");
    Ok(())
}

#[test]
fn devices_are_listed_without_loading_them() -> Result<()> {
    let folder = Folder::new("devices")?;
    let (code, _, error) = folder.fx(&["devices", "--python", "venv/bin/python"])?;
    assert_eq!(code, 2);
    assert!(error.contains("pip install lammps-jax-pjrt-cpu"), "{error}");
    // No library, but a file at the place of one.
    let file = folder
        .0
        .join("venv/lib/python3.12/site-packages/libtpu/libtpu.so");
    std::fs::create_dir_all(file.parent().ok_or_else(|| Error::msg("no folder"))?)
        .and_then(|()| std::fs::write(&file, "no library"))
        .map_err(Error::other)?;
    let (code, text, _) = folder.fx(&["devices", "--python", "venv/bin/python"])?;
    assert_eq!((code, text.lines().count()), (0, 1), "{text}");
    assert!(
        text.starts_with("tpu: ") && text.contains("libtpu.so"),
        "{text}"
    );
    let arguments = ["devices", "--python", "venv/bin/python", "--load", "--json"];
    let (code, text, _) = folder.fx(&arguments)?;
    assert_eq!(code, 0);
    assert!(text.contains("cannot be loaded as a PJRT plugin"), "{text}");
    Ok(())
}
