//! Files that are no programs, are cut, or say something else than programs do: an error, and nothing is run.

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;

use fx_nn::prelude::*;
use serde_json::{Value as Json, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

pub(crate) fn written(name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("fx_torch_{}_{name}.pt2", std::process::id()));
    std::fs::write(&path, bytes).map_err(Error::other)?;
    Ok(path)
}

#[track_caller]
pub(crate) fn refused(name: &str, bytes: &[u8], expected: &str) -> Result<()> {
    let path = written(name, bytes)?;
    let error = fx_torch::load(&path)
        .map(|_| String::new())
        .unwrap_or_else(|e| e.to_string());
    let _ = std::fs::remove_file(&path);
    assert!(error.contains(expected), "{name}: {error}");
    Ok(())
}

/// The entries of a program, by name.
pub(crate) fn entries(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(Error::other)?;
    let mut all = Vec::new();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).map_err(Error::other)?;
        let name = entry.name().map_err(Error::other)?.to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(Error::other)?;
        all.push((name, bytes));
    }
    Ok(all)
}

pub(crate) fn packed(entries: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in entries {
        writer.start_file(&**name, options).map_err(Error::other)?;
        writer.write_all(bytes).map_err(Error::other)?;
    }
    let done = writer.finish().map_err(Error::other)?;
    Ok(done.into_inner())
}

/// A program with another description of its graph.
fn changed(change: impl FnOnce(&mut Json)) -> Result<Vec<u8>> {
    let mut all = entries(include_bytes!("data/named.pt2"))?;
    let graph = all
        .iter_mut()
        .find(|(name, _)| name.ends_with("model.json"))
        .ok_or_else(|| Error::msg("no graph"))?;
    let mut json: Json = serde_json::from_slice(&graph.1).map_err(Error::other)?;
    change(&mut json);
    graph.1 = serde_json::to_vec(&json).map_err(Error::other)?;
    packed(&all)
}

#[track_caller]
fn refused_with(name: &str, expected: &str, change: impl FnOnce(&mut Json)) -> Result<()> {
    refused(name, &changed(change)?, expected)
}

fn graph(json: &mut Json) -> &mut Json {
    &mut json["graph_module"]["graph"]
}

/// The first node of an operator.
fn node<'j>(json: &'j mut Json, target: &str) -> &'j mut Json {
    let nodes = graph(json)["nodes"].as_array_mut().expect("nodes");
    let mut nodes = nodes.iter_mut();
    nodes
        .find(|node| {
            node["target"]
                .as_str()
                .is_some_and(|own| own.contains(target))
        })
        .expect("the operator is there")
}

#[test]
fn what_is_no_zip_file_is_refused() -> Result<()> {
    refused("text", b"not a zip file", "no zip file")?;
    refused("empty", b"", "no zip file")
}

/// A file that is cut anywhere is an error, and so is one with other bytes somewhere.
#[test]
fn damaged_files_are_errors_or_programs() -> Result<()> {
    let whole = include_bytes!("data/written.pt2");
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let path = written("cut", &whole[..at])?;
        assert!(fx_torch::load(&path).is_err(), "cut at {at}");
        let mut other = whole.to_vec();
        other[at] ^= 0x55;
        // What it gives does not matter; it ends without a panic.
        let _ = fx_torch::load(written("cut", &other)?);
        std::fs::remove_file(&path).map_err(Error::other)?;
    }
    Ok(())
}

#[test]
fn hostile_archives_are_refused() -> Result<()> {
    let none = packed(&[("a/other".to_string(), b"x".to_vec())])?;
    refused("none", &none, "it has no `models/model.json`")?;
    let outside = packed(&[("../models/model.json".to_string(), b"{}".to_vec())])?;
    refused("outside", &outside, "leaves the archive")?;
    let mut two = entries(include_bytes!("data/named.pt2"))?;
    two.push(("b/models/model.json".to_string(), b"{}".to_vec()));
    refused("two", &packed(&two)?, "it has 2 programs")?;
    // Packed texts are not unpacked: what torch.export writes is not packed.
    let mut bytes = packed(&[("a/models/model.json".to_string(), b"{}".to_vec())])?;
    let marks = [(&b"PK\x03\x04"[..], 8), (&b"PK\x01\x02"[..], 10)];
    for at in 0..bytes.len() {
        for (mark, offset) in marks {
            if bytes[at..].starts_with(mark) {
                bytes[at + offset] = 8;
            }
        }
    }
    refused("packed", &bytes, "`a/models/model.json`")
}

#[test]
fn texts_that_are_no_programs_are_refused() -> Result<()> {
    let of = |text: String| packed(&[("a/models/model.json".to_string(), text.into_bytes())]);
    refused("not_json", &of("{".to_string())?, "`a/models/model.json`")?;
    refused(
        "other_json",
        &of("[]".to_string())?,
        "`a/models/model.json`",
    )?;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    refused("deep", &of(deep)?, "missing field `schema_version`")?;
    let deep = format!(
        "{{\"schema_version\":{{\"major\":8,\"minor\":20}},\"graph_module\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    refused("deep_graph", &of(deep)?, "`a/models/model.json`")?;
    refused_with("no_nodes", "missing field `nodes`", |json| {
        graph(json)
            .as_object_mut()
            .expect("a graph")
            .remove("nodes");
    })
}

/// A schema with additions is read as long as they say nothing.
#[test]
fn newer_schemas_are_read_as_far_as_they_say_nothing_new() -> Result<()> {
    let newer = |json: &mut Json, value: Json| {
        json["schema_version"]["minor"] = json!(99);
        json["guards"] = json!([]);
        node(json, "conv2d")["when"] = value;
    };
    let path = written("newer", &changed(|json| newer(json, Json::Null))?)?;
    fx_torch::load(&path)?;
    std::fs::remove_file(&path).map_err(Error::other)?;
    refused_with("says", "unknown field `when`", |json| {
        newer(json, json!("never"))
    })?;
    refused_with("says", "the schema is 8.99", |json| newer(json, json!(1)))?;
    refused_with("kind", "unknown variant `as_future`", |json| {
        node(json, "conv2d")["inputs"][0]["arg"] = json!({"as_future": 1});
    })?;
    refused_with("major", "the schema is 9.0 (by torch", |json| {
        json["schema_version"] = json!({"major": 9, "minor": 0});
    })
}

#[test]
fn graphs_that_name_nothing_are_refused() -> Result<()> {
    refused_with(
        "dangling",
        "`nothing` is read, and nothing before gives it",
        |json| {
            node(json, "conv2d")["inputs"][0]["arg"] = json!({"as_tensor": {"name": "nothing"}});
        },
    )?;
    // A node that reads itself.
    refused_with("cycle", "is read, and nothing before gives it", |json| {
        let own = node(json, "softmax")["outputs"][0]["as_tensor"]["name"].clone();
        node(json, "softmax")["inputs"][0]["arg"] = json!({"as_tensor": {"name": own}});
    })?;
    // An operator that writes is no leaf.
    refused_with(
        "unknown",
        "fx has no operator `torch.ops.mine.op_.default`",
        |json| {
            node(json, "conv2d")["target"] = json!("torch.ops.mine.op_.default");
        },
    )?;
    refused_with("unknown", "make.py:", |json| {
        node(json, "conv2d")["target"] = json!("torch.ops.mine.op_.default");
    })?;
    refused_with("argument", "the argument `twice`", |json| {
        let extra = json!({"name": "twice", "arg": {"as_int": 2}, "kind": 1});
        let inputs = node(json, "linear")["inputs"]
            .as_array_mut()
            .expect("inputs");
        inputs.push(extra);
    })?;
    refused_with("outputs", "the signature names", |json| {
        let specs = &mut json["graph_module"]["signature"]["output_specs"];
        specs.as_array_mut().expect("specs").pop();
    })
}

#[test]
fn numbers_that_overflow_are_refused() -> Result<()> {
    let huge = |json: &mut Json, size: Json| {
        let values = graph(json)["tensor_values"]
            .as_object_mut()
            .expect("values");
        for meta in values.values_mut() {
            meta["sizes"] = json!([size, size, size, size]);
        }
    };
    for size in [json!({"as_int": i64::MAX}), json!({"as_int": -1})] {
        let bytes = changed(|json| huge(json, size))?;
        refused(
            "huge",
            &bytes,
            "the tensor `conv.weight` is a tensor of shape [4, 3, 3, 3]",
        )?;
    }
    let inputs = |json: &mut Json, size: Json| {
        graph(json)["tensor_values"]["x"]["sizes"] = json!([size, size, size, size]);
    };
    for size in [i64::MAX, i64::MIN, -1, 1 << 40] {
        refused_with("huge_input", "huge_input", |json| {
            inputs(json, json!({"as_int": size}))
        })?;
    }
    refused_with("expression", "in the size", |json| {
        inputs(
            json,
            json!({"as_expr": {"expr_str": "Pow(Symbol('s0'), 99999999999)", "hint": null}}),
        );
    })?;
    refused_with("deep_size", "too many calls in each other", |json| {
        let deep = format!("{}x{}", "Add(".repeat(1000), ")".repeat(1000));
        inputs(json, json!({"as_expr": {"expr_str": deep, "hint": null}}));
    })
}

#[test]
fn types_that_fx_does_not_have_are_refused_by_name() -> Result<()> {
    let of = |json: &mut Json, code: u64| {
        for meta in graph(json)["tensor_values"]
            .as_object_mut()
            .expect("values")
            .values_mut()
        {
            meta["dtype"] = json!(code);
        }
    };
    refused_with("f8", "floats of 8 bits", |json| of(json, 29))?;
    refused_with("complex", "complex numbers", |json| of(json, 10))
}

#[test]
fn weights_that_are_not_the_graphs_are_refused() -> Result<()> {
    let mut all = entries(include_bytes!("data/named.pt2"))?;
    let weight = |name: &str| name.contains("data/weights/") && !name.ends_with(".json");
    all.retain(|(name, _)| !weight(name));
    refused("no_weights", &packed(&all)?, "")?;
    let path = written("no_weights", &packed(&all)?)?;
    assert!(fx_torch::load(&path).is_err());
    std::fs::remove_file(&path).map_err(Error::other)?;
    refused_with("shape", "the tensor `conv.weight` is", |json| {
        graph(json)["tensor_values"]["p_conv_weight"]["sizes"][0] = json!({"as_int": 5});
    })
}

#[test]
fn a_graph_larger_than_the_limit_is_refused() -> Result<()> {
    let path = crate::programs::file("named.pt2");
    let mut limits = fx_torch::Limits::default();
    assert!(fx_torch::Loader::new().limits(limits).load(&path).is_ok());
    limits.graph_bytes = 1000;
    let refused = fx_torch::Loader::new().limits(limits).load(&path);
    let error = refused.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(
        error.contains("more than 1000 bytes: raise `Limits::graph_bytes`"),
        "{error}"
    );
    Ok(())
}
