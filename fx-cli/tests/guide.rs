//! The console lines of the guide from PyTorch: each runs, and prints what the page says.

use std::path::{Path, PathBuf};

use fx_nn::prelude::*;

use crate::cli::Folder;

fn torch() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("fx-torch")
}

/// A folder with the guide's files.
fn files(name: &str) -> Result<Folder> {
    let folder = Folder::new(name)?;
    let data = torch().join("tests/data/guide");
    for entry in std::fs::read_dir(data).map_err(Error::other)? {
        let path = entry.map_err(Error::other)?.path();
        let name = path.file_name().unwrap_or_default();
        std::fs::copy(&path, folder.0.join(name)).map_err(Error::other)?;
    }
    Ok(folder)
}

#[test]
fn each_line_of_the_guide_runs() -> Result<()> {
    let folder = files("guide")?;
    let page = std::fs::read_to_string(torch().join("docs/from-pytorch.md"));
    let page = page.map_err(Error::other)?;
    let (mut ran, mut inside, mut printed) = (0, false, String::new());
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            line => match line.strip_prefix("$ fx ") {
                Some(args) => {
                    let args: Vec<&str> = args.split(' ').collect();
                    let (code, out, error) = folder.fx(&args)?;
                    assert_eq!(code, 0, "{line}: {error}");
                    printed = out;
                    ran += 1;
                }
                None => assert!(printed.contains(line), "`{line}` in:\n{printed}"),
            },
        }
    }
    assert!(ran >= 8, "{ran} lines ran");
    assert!(folder.0.join("classifier/src/lib.rs").exists());
    Ok(())
}

/// The script that exported the guide's file is the one that the command prints.
#[test]
fn the_script_is_the_one_that_was_run() -> Result<()> {
    let folder = files("script")?;
    let inputs = ["--input", "ids=batch,length:int64", "--input", "scale=3"];
    let args: Vec<&str> = ["torch-script", "models:make"]
        .into_iter()
        .chain(inputs)
        .collect();
    let (code, script, error) = folder.fx(&args)?;
    assert_eq!(code, 0, "{error}");
    let recorded = std::fs::read_to_string(folder.0.join("export.py")).map_err(Error::other)?;
    assert_eq!(script, recorded);
    for wrong in [
        &["torch-script", "models"][..],
        &["torch-script", "models:make"],
        &["torch-script", "a b:make", "--input", "x=2"],
        &["torch-script", "models:make", "--input", "x=2:int5"],
    ] {
        assert_ne!(folder.fx(wrong)?.0, 0, "{wrong:?}");
    }
    Ok(())
}
