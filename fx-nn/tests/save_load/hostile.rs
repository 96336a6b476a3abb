//! Files that are not what they should be: an error that names the place, no panic.

use fx_nn::file::Json;
use fx_nn::models::mlp;
use fx_nn::prelude::*;

use super::support::{Scratch, json_of, with_json};

fn valid() -> Result<Vec<u8>> {
    let mut model = mlp::Mlp::new(4, 8, 2)?;
    model.eval();
    symbolic_trace(&model)?.to_bytes()
}

fn problem(bytes: &[u8]) -> String {
    match GraphModule::from_bytes(bytes) {
        Ok(_) => "loaded".to_string(),
        Err(error) => error.to_string(),
    }
}

/// The error of loading after one change of the JSON.
fn changed(change: impl FnOnce(&mut Json)) -> Result<String> {
    let bytes = valid()?;
    let mut json = json_of(&bytes)?;
    change(&mut json);
    Ok(problem(&with_json(&bytes, &json.to_string())?))
}

#[track_caller]
fn told(problem: Result<String>, expected: &str) {
    let problem = problem.unwrap_or_else(|error| error.to_string());
    assert!(
        problem.starts_with(expected),
        "{problem}\n  instead of\n{expected}"
    );
}

#[test]
fn the_place_in_the_file_is_named() {
    told(
        changed(|j| j["schema"] = 99.into()),
        "schema: this file has schema 99, written by fx",
    );
    told(
        changed(|j| j["schema"] = "1".into()),
        "schema: expected a version number, found the text `1`",
    );
    told(
        changed(|j| j["nodes"] = 5.into()),
        "nodes: expected a list, found `5`",
    );
    told(
        changed(|j| j["nodes"][1] = Json::Null),
        "nodes[1]: expected an object, found null",
    );
    told(
        changed(|j| j["nodes"][1]["op"] = "call".into()),
        "nodes[1].op: expected one of placeholder, get_attr",
    );
    told(
        changed(|j| j["nodes"][1]["extra"] = 1.into()),
        "nodes[1]: `extra` is not known here",
    );
    told(
        changed(|j| j["nodes"][1]["name"] = "x".into()),
        "nodes[1].name: two nodes are named `x`",
    );
    told(
        changed(|j| j["nodes"][1]["name"] = "type".into()),
        "nodes[1].name: `type` is not a name of a node",
    );
    told(
        changed(|j| j["nodes"][1]["args"][0] = "%y".into()),
        "nodes[1].args[0]: `%y` is not an earlier node",
    );
    told(
        changed(|j| j["nodes"][1]["args"][0] = "x".into()),
        "nodes[1].args[0]: expected a node",
    );
    told(
        changed(|j| j["nodes"][1]["at"] = 99999.into()),
        "nodes[1].at: expected an index below",
    );
    told(
        changed(|j| j["nodes"][1]["in"] = (-1).into()),
        "nodes[1].in: expected an index below",
    );
    told(
        changed(|j| j["scopes"][0]["in"] = 0.into()),
        "scopes[0].in: expected an index below 0",
    );
    told(
        changed(|j| j["locations"][0] = 1.into()),
        "locations[0]: expected a list",
    );
    told(
        changed(|j| j["nodes"][2]["target"] = "no::such".into()),
        "nodes[2].target: no function is registered as `no::such`: link its crate in",
    );
    told(
        changed(|j| j["modules"][0]["type"] = "no::Such".into()),
        "modules[0].type: no module type is registered as `no::Such`: link its crate in",
    );
    told(
        changed(|j| j["modules"][0]["config"] = 1.into()),
        "modules[0].config: expected an object",
    );
    told(
        changed(|j| j["modules"][0]["config"] = Json::Object(Default::default())),
        "modules[0].config: `weight` is missing",
    );
    told(
        changed(|j| j["modules"][0]["config"]["weight"] = 1.into()),
        "modules[0].config.weight: expected a tensor, `{\"tensor\": path}`, found `1`",
    );
    told(
        changed(|j| j["modules"][0]["config"]["weight"]["tensor"] = "none".into()),
        "modules[0].config.weight: the file has no tensor `none`",
    );
    told(
        changed(|j| {
            let same = j["modules"][0].clone();
            j["modules"][1] = same;
        }),
        "modules[1].path: something else is at the path `fc1`",
    );
    told(
        changed(|j| j["tensors"]["fc1.weight"]["type"] = "no::Tensor".into()),
        "modules[0].config.weight: tensor `fc1.weight`: no tensor type is registered as `no::Tensor`",
    );
    told(
        changed(|j| j["tensors"]["gone"] = j["tensors"]["fc1.weight"].clone()),
        "tensors.gone: the file has no such tensor",
    );
    told(
        changed(|j| j["params"] = Json::Array(vec![])),
        "params: 0 parameters, 0 values when taken apart",
    );
    told(
        changed(|j| j["inputs"] = Json::Array(vec!["*".into(); 2])),
        "params: 1 parameter, 2 values when taken apart",
    );
    told(
        changed(|j| j["aliases"] = 1.into()),
        "aliases: expected an object",
    );
    told(changed(|j| j["modules"] = Json::Array(vec![])), "while ");
    told(
        changed(|j| {
            if let Some(nodes) = j["nodes"].as_array_mut() {
                nodes.pop();
            }
        }),
        "a graph has exactly one output, this one has 0",
    );
    told(
        changed(|j| j["nodes"][2]["kwargs"]["dim"] = serde_json_object("what", 1)),
        "nodes[2].kwargs.dim.what: `what` is not a kind of argument",
    );
    told(
        changed(|j| j["nodes"][2]["kwargs"]["dim"] = u64::MAX.into()),
        "nodes[2].kwargs.dim: expected an integer of 64 bits",
    );
}

fn serde_json_object(name: &str, value: i64) -> Json {
    Json::Object(
        [(name.to_string(), Json::from(value))]
            .into_iter()
            .collect(),
    )
}

#[test]
fn deep_nesting_is_refused() -> Result<()> {
    let bytes = valid()?;
    let deep = |levels: usize| -> Result<String> {
        let mut json = json_of(&bytes)?;
        let mut arg = Json::Null;
        for _ in 0..levels {
            arg = Json::Array(vec![arg]);
        }
        json["nodes"][2]["args"][0] = arg;
        Ok(problem(&with_json(&bytes, &json.to_string())?))
    };
    told(deep(65), "nodes[2].args[0][0][0][0]");
    assert!(deep(65)?.ends_with("nests deeper than 64 levels"));
    told(
        deep(600),
        "the metadata's `fx` nests deeper than 512 levels",
    );
    let brackets = "[".repeat(1_000_000);
    told(
        Ok(problem(&with_json(&bytes, &brackets)?)),
        "the metadata's `fx` nests deeper than 512 levels",
    );
    Ok(())
}

#[test]
fn what_is_no_such_file_is_told() -> Result<()> {
    let bytes = valid()?;
    told(Ok(problem(&[])), "not a complete safetensors file: ");
    told(
        Ok(problem(b"hello world, no tensors here")),
        "not a complete safetensors file: ",
    );
    told(
        Ok(problem(&[0xff; 64])),
        "not a complete safetensors file: ",
    );
    told(
        Ok(problem(&with_json(&bytes, "{")?)),
        "the metadata's `fx` is not JSON",
    );
    told(
        Ok(problem(&with_json(&bytes, "{} {}")?)),
        "the metadata's `fx` is no",
    );
    told(
        Ok(problem(&with_json(&bytes, "[]")?)),
        "expected an object, found a list of 0",
    );
    told(
        Ok(problem(&with_json(&bytes, "{}")?)),
        "`schema` is missing",
    );

    let weights = Scratch::new("weights_only");
    fx_nn::weights::save(&nn::Linear::new(2, 2)?, weights.path())?;
    let text = GraphModule::load(weights.path())
        .err()
        .map(|e| e.to_string());
    let text = text.unwrap_or_default();
    assert!(
        text.starts_with(&weights.path().display().to_string()),
        "{text}"
    );
    assert!(text.contains(": there is no graph in this file"), "{text}");

    let missing = GraphModule::load("no/such/file.safetensors")
        .err()
        .map(|e| e.to_string());
    assert!(missing.is_some_and(|e| e.starts_with("no/such/file.safetensors: ")));
    let gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    assert!(gm.save("no/such/folder/file.safetensors").is_err());
    assert!(gm.save("/").is_err());
    Ok(())
}

#[test]
fn every_cut_of_a_file_is_an_error() -> Result<()> {
    let bytes = valid()?;
    for end in (0..bytes.len()).step_by(97) {
        assert!(GraphModule::from_bytes(&bytes[..end]).is_err());
    }
    Ok(())
}

/// Every value of the JSON, one at a time, replaced by something else: an error or a module, never
/// a panic.
#[test]
fn every_change_of_one_value_is_answered() -> Result<()> {
    let bytes = valid()?;
    let json = json_of(&bytes)?;
    let mut pointers = Vec::new();
    let mut pending = vec![(String::new(), &json)];
    while let Some((pointer, value)) = pending.pop() {
        match value {
            Json::Array(items) => {
                let items = items.iter().enumerate();
                pending.extend(items.map(|(i, item)| (format!("{pointer}/{i}"), item)));
            }
            Json::Object(fields) => {
                let fields = fields.iter();
                pending.extend(fields.map(|(name, item)| (format!("{pointer}/{name}"), item)));
            }
            _ => {}
        }
        pointers.push(pointer);
    }
    let others = [
        Json::Null,
        true.into(),
        (-1).into(),
        u64::MAX.into(),
        0.5.into(),
        "".into(),
        "%x".into(),
        Json::Array(vec![]),
        Json::Array(vec![Json::Null; 3]),
        Json::Object(Default::default()),
        serde_json_object("tensor", 1),
    ];
    for pointer in &pointers {
        for other in &others {
            let mut json = json.clone();
            if let Some(value) = json.pointer_mut(pointer) {
                *value = other.clone();
            }
            problem(&with_json(&bytes, &json.to_string())?);
        }
    }
    assert!(pointers.len() > 100);
    Ok(())
}

#[test]
fn every_changed_byte_is_answered() -> Result<()> {
    let bytes = valid()?;
    let header = bytes.len().min(6000);
    for at in (0..header).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x15;
        problem(&bytes);
    }
    Ok(())
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() -> Result<()> {
    let file = Scratch::new("replaced");
    let gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    gm.save(file.path())?;
    let before = std::fs::read(file.path()).map_err(Error::other)?;
    let mut broken = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    broken.graph_mut().get_attr("nowhere")?;
    assert!(broken.save(file.path()).is_err());
    assert!(std::fs::read(file.path()).map_err(Error::other)? == before);
    let name = file
        .path()
        .file_name()
        .map(|n| n.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    for entry in std::fs::read_dir(std::env::temp_dir()).map_err(Error::other)? {
        let found = entry.map_err(Error::other)?.file_name();
        let found = found.to_string_lossy();
        assert!(
            found == name || !found.contains(&name),
            "left behind: {found}"
        );
    }
    Ok(())
}
