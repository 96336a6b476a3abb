//! Files of older versions of torch that are cut, do not fit, or have pickles of something else: an error, and nothing is run.

use fx_nn::prelude::*;

use crate::bad_input::{entries, packed, refused, written};

/// A program of torch 2.5 with other bytes of a file inside of it.
fn older(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>> {
    let mut all = entries(include_bytes!("data/old/torch25_counted.pt2"))?;
    match all.iter_mut().find(|(own, _)| own == name) {
        Some((_, bytes)) => change(bytes),
        None => {
            let mut bytes = Vec::new();
            change(&mut bytes);
            all.push((name.to_string(), bytes));
        }
    }
    packed(&all)
}

/// A program of torch 2.5 with other bytes of a file inside of its weights.
fn with_weights(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>> {
    let mut failed = None;
    let bytes = older("serialized_state_dict.pt", |weights| {
        let made = entries(weights).and_then(|mut all| {
            let own = all.iter_mut().find(|(own, _)| own == name);
            change(&mut own.ok_or_else(|| Error::msg("no such file"))?.1);
            packed(&all)
        });
        match made {
            Ok(made) => *weights = made,
            Err(error) => failed = Some(error),
        }
    })?;
    failed.map_or(Ok(bytes), Err)
}

#[test]
fn pickles_of_older_versions_are_not_run() -> Result<()> {
    let pickle = "archive/data.pkl";
    for share in [0, 1, 2, 3] {
        let cut = with_weights(pickle, |bytes| bytes.truncate(bytes.len() * share / 4))?;
        refused("cut", &cut, "`serialized_state_dict.pt/archive/data.pkl`")?;
        refused("cut", &cut, "the pickle ends too early")?;
    }
    for (name, shown) in [
        ("os\nsystem", "its pickle names `os.system`"),
        ("torch\nload", "its pickle names `torch.load`"),
    ] {
        let calling = with_weights(pickle, |bytes| {
            let known = b"torch._utils\n_rebuild_tensor_v2";
            let at = bytes.windows(known.len()).position(|part| part == known);
            let at = at.expect("a tensor is made");
            bytes.splice(at..at + known.len(), name.bytes());
        })?;
        refused("calling", &calling, shown)?;
        refused(
            "calling",
            &calling,
            "`serialized_state_dict.pt/archive/data.pkl`",
        )?;
    }
    Ok(())
}

#[test]
fn weights_of_older_versions_that_do_not_fit_are_refused() -> Result<()> {
    let short = with_weights("archive/data/0", |bytes| bytes.truncate(20))?;
    refused(
        "short",
        &short,
        "past the end of `serialized_state_dict.pt/archive/data/0`",
    )?;
    let big = with_weights("archive/byteorder", |bytes| *bytes = b"big".to_vec())?;
    refused("big", &big, "large digits first")?;
    let none = older("serialized_state_dict.pt", |bytes| {
        *bytes = b"no zip file".to_vec();
    })?;
    refused("none", &none, "`serialized_state_dict.pt`")?;
    let mut all = entries(include_bytes!("data/old/torch25_counted.pt2"))?;
    all.retain(|(name, _)| name != "serialized_state_dict.pt");
    refused("without", &packed(&all)?, "no tensor `weight`")
}

/// Samples of inputs, and what a user has put there, are not looked at.
#[test]
fn other_files_of_older_versions_are_left_alone() -> Result<()> {
    for name in [
        "serialized_example_inputs.pt",
        "extra_files/data.pkl",
        "extra_files/serialized_state_dict.pt",
    ] {
        let path = written(
            "left",
            &older(name, |bytes| *bytes = b"cos\nsystem\n".to_vec())?,
        )?;
        fx_torch::load(&path)?;
        std::fs::remove_file(&path).map_err(Error::other)?;
    }
    Ok(())
}

#[test]
fn texts_of_older_versions_are_checked() -> Result<()> {
    let graph = |from: &str, to: &str| {
        older("serialized_exported_program.json", |bytes| {
            let text = String::from_utf8_lossy(bytes).replace(from, to);
            *bytes = text.into_bytes();
        })
    };
    let old = graph("\"major\": 7", "\"major\": 6")?;
    refused("old", &old, "and 7 and 8 are understood")?;
    let end = graph("\"max_val\": 64", "\"max_val\": \"many\"")?;
    refused("end", &end, "`many` is no end of a range")?;
    let cut = older("serialized_exported_program.json", |bytes| {
        bytes.truncate(bytes.len() / 2);
    })?;
    refused("cut_text", &cut, "`serialized_exported_program.json`")
}

/// A file that is cut anywhere is an error, and so is one with other bytes somewhere.
#[test]
fn damaged_files_of_older_versions_are_errors_or_programs() -> Result<()> {
    let whole = include_bytes!("data/old/torch25_counted.pt2");
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        let path = written("cut_older", &whole[..at])?;
        assert!(fx_torch::load(&path).is_err(), "cut at {at}");
        let mut other = whole.to_vec();
        other[at] ^= 0x55;
        let _ = fx_torch::load(written("cut_older", &other)?);
        std::fs::remove_file(&path).map_err(Error::other)?;
    }
    Ok(())
}
