//! `run`, `bench` and `check`, with arrays in files.

use fx_nn::prelude::*;

use crate::cli::Folder;

/// A file of an array, which the command draws and writes itself.
fn drawn(folder: &Folder, name: &str, shape: &str) -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x * 1.0))?;
    gm.save(folder.0.join("same.fx"))?;
    let (code, _, told) = folder.fx(&[
        "run", "same.fx", "--input", shape, "--random", "3", "-o", name,
    ])?;
    assert_eq!(code, 0, "{told}");
    Ok(())
}

#[test]
fn a_module_runs_on_files_and_is_checked_against_them() -> Result<()> {
    let folder = Folder::new("run")?;
    folder.save("mlp.fx", |_| Ok(()))?;
    drawn(&folder, "in.npz", "2,4")?;
    let (code, told, _) = folder.fx(&["run", "mlp.fx", "--input", "x=in.npz", "-o", "out.npz"])?;
    assert_eq!(code, 0);
    assert!(told.starts_with("0: float32[2, 2] ["), "{told}");
    let check = |reference: &str, how: &[&str]| {
        let check = [
            "check",
            "mlp.fx",
            "--input",
            "x=in.npz",
            "--reference",
            reference,
        ];
        folder.fx(&[&check[..], how].concat())
    };
    for how in [&[][..], &["--as-is"]] {
        let (code, told, _) = check("out.npz", how)?;
        assert_eq!((code, told.as_str()), (0, "0: right\n"));
    }
    drawn(&folder, "other.npz", "2,2")?;
    let (code, told, _) = check("other.npz", &[])?;
    assert_eq!(code, 1);
    assert!(told.contains("it is off by"), "{told}");
    let (code, told, _) = check("in.npz", &[])?;
    assert_eq!(code, 1);
    assert!(
        told.contains("it is float32[2, 2], and float32[2, 4] is expected"),
        "{told}"
    );
    Ok(())
}

#[test]
fn every_element_type_goes_into_a_file_and_comes_back() -> Result<()> {
    let folder = Folder::new("types")?;
    let gm = symbolic_trace(traced!(|x: &Tensor| -> Result<Vec<Tensor>> {
        let types = [
            DType::Bool,
            DType::U8,
            DType::I8,
            DType::U16,
            DType::I16,
            DType::U32,
            DType::I32,
            DType::U64,
            DType::I64,
            DType::F16,
            DType::F32,
            DType::F64,
        ];
        types.iter().map(|dtype| x.to_dtype(*dtype)).collect()
    }))?;
    gm.save(folder.0.join("types.fx"))?;
    drawn(&folder, "in.npz", "3,2")?;
    let given = ["--input", "x=in.npz", "--as-is"];
    let (code, told, _) =
        folder.fx(&[&["run", "types.fx", "-o", "out.npz"], &given[..]].concat())?;
    assert_eq!(code, 0);
    assert!(told.contains("7: uint64[3, 2]"), "{told}");
    let check = [
        "check",
        "types.fx",
        "--reference",
        "out.npz",
        "--tolerance",
        "0",
    ];
    let (code, told, _) = folder.fx(&[&check[..], &given].concat())?;
    assert_eq!(code, 0, "{told}");
    assert_eq!(
        told.lines()
            .filter(|line| line.ends_with(": right"))
            .count(),
        12
    );
    Ok(())
}

#[test]
fn onnx_files_take_inputs_constants_and_limits_while_they_are_read() -> Result<()> {
    use fx_onnx::{Export, OnnxExt};
    let folder = Folder::new("onnx_run")?;
    let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x + y))?;
    let export =
        Export::example((&Tensor::ones((1, 4))?, &Tensor::ones(4)?)).dynamic("n", [("x", 0)]);
    gm.to_onnx(folder.0.join("sum.onnx"), &export)?;
    let (code, told, _) = folder.fx(&["run", "sum.onnx", "--input", "x=3,4", "--random"])?;
    assert_eq!(code, 0);
    assert!(told.contains(": float32[3, 4]"), "{told}");
    let (code, told, _) = folder.fx(&["run", "sum.onnx", "--size", "n=5", "--random"])?;
    assert_eq!(code, 0);
    assert!(told.contains(": float32[5, 4]"), "{told}");
    let (code, _, told) = folder.fx(&["run", "sum.onnx", "--random"])?;
    assert_eq!(code, 2);
    assert!(told.contains("give it with --size n=NUMBER"), "{told}");
    let (code, told, _) = folder.fx(&["show", "sum.onnx", "--constant", "y=2"])?;
    assert_eq!(code, 0);
    assert!(!told.contains("%y"), "{told}");
    let (code, _, told) = folder.fx(&["show", "sum.onnx", "--constant", "z=2"])?;
    assert_eq!(code, 2);
    assert!(
        told.contains("the file has no input `z`: its inputs are `x`, `y`"),
        "{told}"
    );
    let (code, _, told) = folder.fx(&["show", "sum.onnx", "--limit", "nodes=0"])?;
    assert_eq!(code, 2);
    assert!(told.contains("nodes"), "{told}");
    let (code, _, told) = folder.fx(&["show", "sum.onnx", "--limit", "bytes=1GiB"])?;
    assert_eq!(code, 2);
    assert!(told.contains("there is no limit `bytes`"), "{told}");
    Ok(())
}

#[test]
fn bench_prints_each_step_and_the_whole() -> Result<()> {
    let folder = Folder::new("bench")?;
    folder.save("mlp.fx", |_| Ok(()))?;
    let (code, told, _) = folder.fx(&[
        "bench", "mlp.fx", "--input", "8,4", "--random", "--runs", "2",
    ])?;
    assert_eq!(code, 0);
    assert!(
        told.contains("GFLOP/s") || told.contains("time/call us"),
        "{told}"
    );
    assert!(told.contains("median"), "{told}");
    let (_, json, _) = folder.fx(&[
        "bench", "mlp.fx", "--input", "8,4", "--random", "--runs", "2", "--json",
    ])?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(Error::other)?;
    assert!(
        json["least_ms"].is_f64() && json["steps"].as_array().is_some_and(|all| !all.is_empty())
    );
    Ok(())
}

#[test]
fn what_is_missing_is_named_with_what_to_write() -> Result<()> {
    let folder = Folder::new("missing")?;
    folder.save("mlp.fx", |_| Ok(()))?;
    for (args, expected) in [
        (
            &["run", "mlp.fx"][..],
            "give a file with --input x=FILE.npy, or --random",
        ),
        (
            &["run", "mlp.fx", "--random"],
            "give it with --input x=SHAPE",
        ),
        (
            &["run", "mlp.fx", "--input", "x=none.npy"],
            "none.npy cannot be read",
        ),
        (
            &["run", "mlp.fx", "--input", "4", "--limit", "nodes=5"],
            "are of ONNX files",
        ),
    ] {
        let (code, _, told) = folder.fx(args)?;
        assert_eq!(code, 2);
        assert!(told.contains(expected), "{told}");
    }
    Ok(())
}

/// Text goes in as lists of JSON, and comes out on a line or as JSON.
#[test]
fn text_goes_in_and_out() -> Result<()> {
    use fx_onnx::{Export, OnnxExt as _, Texts, text_concat};
    let folder = Folder::new("text")?;
    let gm = symbolic_trace(traced!(|x: &Texts| text_concat(x, x)))?;
    let export = Export::example(Texts::from(["a"])).dynamic("n", [("x", 0)]);
    gm.to_onnx(folder.0.join("twice.onnx"), &export.outputs(["y"]))?;
    std::fs::write(folder.0.join("words.json"), r#"["a", "bc"]"#).map_err(Error::other)?;
    let run = ["run", "twice.onnx", "--input", "x=words.json"];
    let (code, told, wrong) = folder.fx(&run)?;
    assert_eq!(
        (code, told.as_str()),
        (0, "y: text[2] [\"aa\", \"bcbc\"]\n"),
        "{wrong}"
    );
    let (code, told, _) = folder.fx(&[&run[..], &["--json"]].concat())?;
    assert!(code == 0 && told.contains("\"bcbc\""), "{told}");
    let (code, _, wrong) = folder.fx(&[&run[..], &["-o", "out.npz"]].concat())?;
    assert!(code != 0 && wrong.contains("`y` is no tensor"), "{wrong}");
    std::fs::write(folder.0.join("words.json"), "[1]").map_err(Error::other)?;
    let (code, _, wrong) = folder.fx(&run)?;
    assert!(code != 0 && wrong.contains("words.json"), "{wrong}");
    Ok(())
}

/// A program of torch.export is taken wherever an ONNX file is.
#[test]
fn programs_of_torch_export_run() -> Result<()> {
    let folder = Folder::new("pt2")?;
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../fx-torch/tests/data/written.pt2"
    );
    let (code, told, _) = folder.fx(&["support", file])?;
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("nothing is missing"), "{told}");
    let (code, told, _) = folder.fx(&["show", file])?;
    assert!(
        code == 0 && told.contains("placeholder[target=x]"),
        "{told}"
    );
    let (code, told, error) = folder.fx(&["run", file, "--input", "x=3,6", "--random", "1"])?;
    assert_eq!(code, 0, "{error}");
    assert!(told.starts_with("0: float32[3, 6] least "), "{told}");
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../fx-torch/tests/data/tied.pt2"
    );
    let (code, _, error) = folder.fx(&["convert", file, "out.onnx"])?;
    assert_eq!(code, 0, "{error}");
    Ok(())
}
