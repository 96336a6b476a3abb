//! The file of a graph module: its JSON in the metadata of a container, its tensors beside it.
//!
//! Invariant: equal parts give equal bytes.

use std::io::{Read, Seek};

use rustc_hash::FxHashMap;

use super::container::{Container, Prepared};
use super::json::{self, Json, JsonMap};
use super::limits::{MAX_JSON_DEPTH, too_deep};
use super::loader::Loader;
use super::names::{graph_module, tensor};
use super::saver::Saver;
use super::stream;
use super::upgrade::{SCHEMA, upgrade};
use crate::error::{Error, Result};
use crate::ir::graph::Graph;

/// The metadata key that holds the JSON.
const KEY: &str = "fx";

/// The first fields of the JSON: schema and fx version.
pub(crate) fn header() -> JsonMap {
    let mut fields = JsonMap::new();
    fields.insert(graph_module::SCHEMA.into(), Json::from(SCHEMA));
    fields.insert(
        graph_module::FX.into(),
        Json::from(env!("CARGO_PKG_VERSION")),
    );
    fields
}

/// The file of a module's JSON and the tensors that were collected with it: the fields before the
/// list of nodes, the list as text, and the fields after it.
pub(crate) fn prepare(
    before: JsonMap,
    nodes: &str,
    mut after: JsonMap,
    saver: Saver,
) -> Result<Prepared> {
    let tensors = saver.tensors.iter().map(|(path, outgoing)| {
        let mut about = JsonMap::new();
        about.insert(tensor::TYPE.into(), Json::from(&*outgoing.type_path));
        if outgoing.parameter {
            about.insert(tensor::PARAMETER.into(), Json::from(true));
        }
        (path.clone(), Json::Object(about))
    });
    let tensors = Json::Object(tensors.collect());
    after.insert(graph_module::TENSORS.into(), tensors);
    let aliases = saver.aliases.into_iter();
    let aliases = aliases.map(|(path, first)| (path, Json::from(first)));
    after.insert(
        graph_module::ALIASES.into(),
        Json::Object(aliases.collect()),
    );
    // Two objects with fields: the nodes stand between what is left without their inner braces.
    let (before, after) = (Json::Object(before), Json::Object(after));
    let (before, after) = (before.to_string(), after.to_string());
    let (before, after) = (&before[..before.len() - 1], &after[1..]);
    let text = format!("{before},\"{}\":{nodes},{after}", graph_module::NODES);
    check_depth(&text)?;
    Prepared::new(saver.tensors, Some((KEY, text)))
}

/// Reads a file. Passes `load` the JSON in the current schema, the graph if it was read with the
/// text, and the loader of the tensors.
pub(crate) fn read<T>(
    input: impl Read + Seek,
    load: impl FnOnce(&JsonMap, Option<Graph>, &mut Loader<'_>) -> Result<T>,
) -> Result<T> {
    let mut container = Container::open(input)?;
    let text = container.take_metadata(KEY).ok_or_else(|| {
        Error::saved(format_args!(
            "there is no graph in this file: its metadata has no `{KEY}`. If it holds weights only, load them into a module"
        ))
    })?;
    let (saved, graph) = match stream::parse(&text) {
        Some((fields, graph)) => (Json::Object(fields), Some(graph)),
        None => {
            check_depth(&text)?;
            let mut saved = parse(&text)?;
            upgrade(&mut saved)?;
            (saved, None)
        }
    };
    drop(text);
    let fields = json::object(&saved)?;

    let mut tensors = FxHashMap::default();
    json::part(fields, graph_module::TENSORS, |about| {
        for (path, about) in json::object(about)? {
            let read = || {
                let fields = json::object(about)?;
                json::known_names(fields, &tensor::ALL)?;
                let type_path = json::part(fields, tensor::TYPE, json::text)?;
                let parameter = json::optional(fields, tensor::PARAMETER, json::boolean)?;
                let data = container.tensor(path, type_path)?;
                Ok(data.with_parameter(parameter.unwrap_or(false)))
            };
            let data = read().map_err(|e: Error| e.inside(format_args!(".{path}")))?;
            tensors.insert(path.as_str(), data);
        }
        Ok(())
    })?;
    let aliases = json::part(fields, graph_module::ALIASES, |aliases| {
        json::object(aliases)?
            .iter()
            .map(|(path, first)| {
                let first = json::text(first).map_err(|e| e.inside(format_args!(".{path}")))?;
                Ok((path.as_str(), first))
            })
            .collect::<Result<FxHashMap<_, _>>>()
    })?;
    load(fields, graph, &mut Loader::new(tensors, aliases))
}

fn parse(text: &str) -> Result<Json> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // `check_depth` has bounded the depth.
    deserializer.disable_recursion_limit();
    let mut values = deserializer.into_iter::<Json>();
    match (values.next(), values.next()) {
        (Some(Ok(saved)), None) => Ok(saved),
        (Some(Err(e)), _) | (_, Some(Err(e))) => Err(Error::saved(format_args!(
            "the metadata's `{KEY}` is not JSON: {e}"
        ))),
        _ => Err(Error::saved(format_args!(
            "the metadata's `{KEY}` is not one JSON value"
        ))),
    }
}

/// Rejects JSON that nests too deep for recursive reading.
fn check_depth(text: &str) -> Result<()> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth > MAX_JSON_DEPTH {
            let what = format_args!("the metadata's `{KEY}` nests");
            return Err(too_deep(what, MAX_JSON_DEPTH));
        }
    }
    Ok(())
}
