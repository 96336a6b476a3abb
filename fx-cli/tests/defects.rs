//! One test or more for each defect that was found in use, named by its number: `defect_t3_p2_..`.
#![cfg(unix)]

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use fx_nn::control;
use fx_nn::models::mlp::Mlp;
use fx_nn::prelude::*;

/// A folder of its own, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("fx_cli_t3_{name}_{}", std::process::id()));
        fs::create_dir_all(&path).map_err(Error::other)?;
        let own = Folder(path);
        symbolic_trace(&Mlp::new(4, 8, 2)?)?.save(own.0.join("mlp.fx"))?;
        Ok(own)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fx"));
        command.current_dir(&self.0).args(args);
        command
    }

    /// Runs the command: its exit code, and both outputs.
    fn fx(&self, args: &[&str]) -> Result<(i32, String, String)> {
        let output = self.command(args).output().map_err(Error::other)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Ok((code, text(&output.stdout), text(&output.stderr)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A call of each subcommand that prints something.
const PRINTING: [&[&str]; 16] = [
    &["show", "mlp.fx"],
    &["show", "mlp.fx", "--json"],
    &["summary", "mlp.fx"],
    &["summary", "mlp.fx", "--input", "2,4"],
    &["summary", "mlp.fx", "--input", "2,4", "--json"],
    &["code", "mlp.fx"],
    &["code", "mlp.fx", "--json"],
    &["html", "mlp.fx", "--output", "page.html"],
    &["diff", "mlp.fx", "other.fx"],
    &["diff", "mlp.fx", "other.fx", "--color"],
    &["convert", "mlp.fx", "again.fx"],
    &["convert", "mlp.fx", "mlp.onnx", "--input", "2,4"],
    &["support", "model.onnx"],
    &["lint", "cut.fx"],
    &["lint", "cut.fx", "--json"],
    &["--help"],
];

fn files(name: &str) -> Result<Folder> {
    let folder = Folder::new(name)?;
    symbolic_trace(traced!(|x: &Tensor| x.relu()))?.save(folder.0.join("other.fx"))?;
    let bytes = fs::read(folder.0.join("mlp.fx")).map_err(Error::other)?;
    fs::write(folder.0.join("cut.fx"), &bytes[..bytes.len() / 2]).map_err(Error::other)?;
    let made = folder.fx(&["convert", "mlp.fx", "model.onnx", "--input", "2,4"])?;
    assert_eq!(made.0, 0, "{}", made.2);
    Ok(folder)
}

#[test]
fn defect_t3_p2_a_full_disk_is_an_error() -> Result<()> {
    let folder = files("full")?;
    for args in PRINTING {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .map_err(Error::other)?;
        let output = folder
            .command(args)
            .stdout(full)
            .output()
            .map_err(Error::other)?;
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {problem}");
        let is_named = problem.starts_with("error: the output cannot be written: ");
        assert!(is_named, "{args:?}: {problem}");
    }
    // Where the error itself cannot be printed, its code is left.
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .map_err(Error::other)?;
    let status = folder
        .command(&["show", "nothing.fx"])
        .stderr(full)
        .status();
    assert_eq!(status.map_err(Error::other)?.code(), Some(2));
    Ok(())
}

#[test]
fn defect_t3_p2_a_pipe_that_nobody_reads_is_an_error() -> Result<()> {
    let folder = files("pipe")?;
    for args in PRINTING {
        // Its reader is gone before the command starts.
        let (reader, writer) = std::io::pipe().map_err(Error::other)?;
        drop(reader);
        let output = folder
            .command(args)
            .stdout(writer)
            .output()
            .map_err(Error::other)?;
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {problem}");
        assert!(!problem.contains("panicked"), "{args:?}: {problem}");
    }
    Ok(())
}

#[test]
fn defect_t3_p2_what_never_ends_is_no_file() -> Result<()> {
    let folder = files("endless")?;
    let link = folder.0.join("zero.onnx");
    std::os::unix::fs::symlink("/dev/zero", &link).map_err(Error::other)?;
    let fifo = Command::new("mkfifo")
        .arg(folder.0.join("pipe.onnx"))
        .status();
    assert!(fifo.map_err(Error::other)?.success());
    for args in [
        ["support", "/dev/zero"].as_slice(),
        &["support", "zero.onnx"],
        &["support", "pipe.onnx"],
        &["show", "/dev/zero"],
        &["show", "zero.onnx"],
        &["show", "pipe.onnx"],
        &["summary", "/dev/zero"],
        &["code", "zero.onnx"],
        &["html", "pipe.onnx"],
        &["diff", "mlp.fx", "/dev/zero"],
        &["convert", "zero.onnx", "out.fx"],
        &["lint", "/dev/zero"],
        &["lint", "pipe.onnx"],
        &["show", "."],
    ] {
        let (code, _, problem) = folder.fx(args)?;
        assert_eq!(code, 2, "{args:?}: {problem}");
        assert!(problem.contains("and no file"), "{args:?}: {problem}");
    }
    Ok(())
}

#[test]
fn defect_t3_e14_lint_goes_on_past_a_missing_file() -> Result<()> {
    let folder = files("lint")?;
    let (code, faults, problem) =
        folder.fx(&["lint", "missing.fx", "mlp.fx", "cut.fx", "gone.fx"])?;
    assert_eq!(code, 2, "{problem}");
    assert!(faults.starts_with("cut.fx: "), "{faults}");
    for name in ["missing.fx", "gone.fx"] {
        assert!(problem.contains(&format!("error: {name}: ")), "{problem}");
    }
    let (code, faults, problem) = folder.fx(&["lint", "missing.fx", "mlp.fx"])?;
    assert_eq!((code, faults.as_str()), (2, ""), "{problem}");
    let (_, json, _) = folder.fx(&["lint", "missing.fx", "cut.fx", "--json"])?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(Error::other)?;
    assert_eq!(json["faults"][0]["file"], "cut.fx");
    assert_eq!(json["unread"].as_array().map(Vec::len), Some(1));
    Ok(())
}

/// A step with a cache, a factor and a choice.
#[derive(Module, Clone, Debug)]
struct Step {
    linear: nn::Linear,
}

#[derive(Tree, Clone, Debug)]
struct Cache {
    k: Tensor,
    v: Tensor,
}

#[trace]
impl Step {
    fn forward(
        &self,
        x: &Tensor,
        cache: Cache,
        scale: Float,
        pair: (Tensor, Tensor),
    ) -> Result<Tensor> {
        let h = (self.linear.forward(x)? * scale)?;
        ((h + &cache.k)? + (&cache.v * &pair.0)?)? + &pair.1
    }
}

#[test]
fn defect_t3_w3_inputs_may_be_numbers_and_structures() -> Result<()> {
    let folder = files("inputs")?;
    let step = Step {
        linear: nn::Linear::new(4, 4)?,
    };
    symbolic_trace(&step)?.save(folder.0.join("step.fx"))?;
    let inputs = |command: &'static str, scale: &'static str| {
        [
            command,
            "step.fx",
            "--input",
            "n,4",
            "--input",
            "{k: \"n,4\", v: \"n,4\"}",
            "--input",
            scale,
            "--input",
            "(\"n,4\", \"n,4:float32\")",
        ]
    };
    for scale in ["=0.5", "=float"] {
        let (code, shown, problem) = folder.fx(&inputs("show", scale))?;
        assert_eq!(code, 0, "{scale}: {problem}");
        assert!(shown.contains("float32[n, 4]"), "{shown}");
        let (code, summary, problem) = folder.fx(&inputs("summary", scale))?;
        assert_eq!(code, 0, "{scale}: {problem}");
        assert!(
            summary.contains("linear: Linear") && summary.contains("[n, 4]"),
            "{summary}"
        );
        let (code, _, problem) = folder.fx(&inputs("html", scale))?;
        assert_eq!(code, 0, "{scale}: {problem}");
    }
    let chosen = traced!(|x: &Tensor, twice: bool, n: Int| {
        let y = if twice { (x * 2.0)? } else { x.clone() };
        y.narrow(0, 0, n)
    });
    let gm = Trace::new(chosen).concrete("twice", true).graph_module()?;
    gm.save(folder.0.join("chosen.fx"))?;
    let (code, shown, problem) = folder.fx(&[
        "show",
        "chosen.fx",
        "--input",
        "8",
        "--input",
        "=true",
        "--input",
        "=3",
    ])?;
    assert_eq!(code, 0, "{problem}");
    assert!(shown.contains("float32[3]"), "{shown}");
    for (wrong, word) in [
        ("=1.2.3", "is no number"),
        ("=", "nothing behind"),
        ("{k: \"1\"", "`}`"),
        ("(1,", "an item"),
        ("[\"1:float7\"]", "`float7` is no element type"),
    ] {
        let (code, _, problem) = folder.fx(&["show", "mlp.fx", "--input", wrong])?;
        assert_eq!(code, 2, "{wrong}: {problem}");
        assert!(problem.contains(word), "{wrong}: {problem}");
    }
    Ok(())
}

#[test]
fn defect_t3_w3_convert_takes_its_output_as_an_option() -> Result<()> {
    let folder = files("convert")?;
    let (code, written, problem) = folder.fx(&["convert", "mlp.fx", "-o", "again.fx"])?;
    assert_eq!((code, written.trim()), (0, "again.fx"), "{problem}");
    let (code, _, problem) =
        folder.fx(&["convert", "mlp.fx", "--output", "m.onnx", "--input", "2,4"])?;
    assert_eq!(code, 0, "{problem}");
    assert_eq!(folder.fx(&["convert", "mlp.fx", "third.fx"])?.0, 0);
    assert_eq!(folder.fx(&["convert", "mlp.fx"])?.0, 2);
    assert_eq!(
        folder.fx(&["convert", "mlp.fx", "a.fx", "-o", "b.fx"])?.0,
        2
    );
    Ok(())
}

/// A sum of rows, one after another.
#[derive(Module, Clone, Debug)]
struct Rows {
    linear: nn::Linear,
}

#[trace]
impl Rows {
    fn forward(&self, start: &Tensor, rows: &Tensor) -> Result<Tensor> {
        let step = |h: Tensor, row: Tensor| {
            let h = ops::tanh(&(self.linear.forward(&h)? + row)?)?;
            Ok((h.clone(), h))
        };
        let (_, all): (Tensor, Tensor) = control::scan(start.clone(), rows.clone(), step)?;
        Ok(all)
    }
}

#[test]
fn defect_t3_w3_a_scan_of_named_length_is_summarised() -> Result<()> {
    let folder = files("scan")?;
    let rows = Rows {
        linear: nn::Linear::new(4, 4)?,
    };
    symbolic_trace(&rows)?.save(folder.0.join("rows.fx"))?;
    let call = ["rows.fx", "--input", "4", "--input", "time,4"];
    let (code, shown, problem) = folder.fx(&[&["show"], &call[..]].concat())?;
    assert_eq!(code, 0, "{problem}");
    assert!(shown.contains("float32[time, 4]"), "{shown}");
    let (code, summary, problem) = folder.fx(&[&["summary"], &call[..]].concat())?;
    assert_eq!(code, 0, "{problem}");
    assert!(summary.contains("[time, 4]"), "{summary}");
    Ok(())
}
