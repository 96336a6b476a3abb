//! Programs that torch 2.5, 2.7, 2.8, 2.9 and 2.12 wrote, beside what PyTorch gives and writes at two sizes (`old.py` writes both).

use fx_nn::control::Cond;
use fx_nn::prelude::*;
use fx_nn::weights::Checkpoint;

use crate::forms::{check, file};

const VERSIONS: [&str; 4] = ["25", "27", "29", "212"];

/// Torch 2.8 has the layout of 2.9, with its weights in files as those of 2.7.
const BETWEEN: &str = "28";

/// Where a program is, beside the forms.
fn place(version: &str, name: &str) -> String {
    format!("../old/torch{version}_{name}")
}

/// Ranges without an end, batch norms, and weights in both layouts; modules of `torch.nn` are layers.
#[test]
fn convolutions_of_older_versions_are_read() -> Result<()> {
    for version in VERSIONS {
        let gm = check(&place(version, "cnn"))?;
        let called = |path: &str| gm.graph().nodes().any(|node| node.target() == path);
        let missing: Vec<&str> = ["conv", "bn", "own", "fc"]
            .into_iter()
            .filter(|path| !called(path))
            .collect();
        assert!(
            missing.is_empty(),
            "torch {version}: {missing:?}\n{}",
            gm.graph()
        );
    }
    Ok(())
}

/// Structures, a keyword, infinities, and one tensor with two names.
#[test]
fn attention_of_older_versions_is_read() -> Result<()> {
    for version in VERSIONS {
        let gm = check(&place(version, "block"))?;
        let inputs: Vec<String> = gm
            .graph()
            .placeholders()
            .map(|node| node.target().to_string())
            .collect();
        assert_eq!(inputs, ["batch", "scale"], "torch {version}");
        let names = gm.named_parameters();
        let tied = ["emb.weight", "out.weight"];
        let tied = tied.into_iter().filter(|name| names.contains_key(*name));
        assert_eq!(tied.count(), 1, "torch {version}: {:?}", names.keys());
    }
    Ok(())
}

/// Buffers that are written, constants, types and strides of weights, sizes that are computed, a branch.
#[test]
fn buffers_and_branches_of_older_versions_are_read() -> Result<()> {
    for version in VERSIONS.into_iter().chain([BETWEEN]) {
        let gm = check(&place(version, "counted"))?;
        gm.submodule_as::<Cond>("cond_0")?;
    }
    Ok(())
}

/// Weights load from each version's file by name.
#[test]
fn programs_of_older_versions_are_checkpoints() -> Result<()> {
    for version in VERSIONS.into_iter().chain([BETWEEN]) {
        let path = file(&format!("{}.pt2", place(version, "counted")));
        let checkpoint = Checkpoint::open(path)?;
        let mut names: Vec<&str> = checkpoint.names().collect();
        names.sort_unstable();
        let expected = ["c", "calls", "short", "table", "total", "weight"];
        assert_eq!(names, expected, "torch {version}");
        let table = checkpoint.tensor("table")?.to_vec()?;
        assert_eq!(table, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "torch {version}");
    }
    Ok(())
}
