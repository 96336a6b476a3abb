//! Schema versions: older files are upgraded one version at a time to the current schema.
//!
//! Invariant: `UPGRADES[v - 1]` turns version `v` into version `v + 1`, so that every file stays
//! readable.

use super::json::{self, Json};
use super::meta::SavedMeta;
use super::names::{contract, graph_module as names};
use super::value_meta;
use crate::error::{Error, Result};
use crate::ir::value_meta::ValueMeta;
use crate::shapes::Contract;
use crate::shapes::relied::ReliedOn;

/// The version that is written.
pub(crate) const SCHEMA: u64 = UPGRADES.len() as u64 + 1;

/// Rewrites a file's JSON from one version to the next.
type Upgrade = fn(&mut Json) -> Result<()>;

/// Upgrades from version 1 on. A format change adds an upgrade, and a file of the previous version
/// to the tests. A new optional field, such as a node's `meta`, needs none: a reader that does not
/// know it rejects it by name.
const UPGRADES: &[Upgrade] = &[values_of_entries];

/// From 1 to 2: an entry's values are no longer texts.
fn values_of_entries(saved: &mut Json) -> Result<()> {
    let mut left = vec![saved];
    while let Some(json) = left.pop() {
        match json {
            Json::Array(items) => left.extend(items),
            Json::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    match name.as_str() {
                        ValueMeta::NAME | ReliedOn::NAME => value_meta::upgrade_1(field),
                        Contract::NAME => {
                            let inputs = field.get_mut(contract::INPUTS);
                            let inputs = inputs.and_then(Json::as_array_mut);
                            for input in inputs.into_iter().flatten() {
                                input.get_mut(1).into_iter().for_each(value_meta::upgrade_1);
                            }
                        }
                        _ => left.push(field),
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Upgrades a file's JSON to the current schema.
pub(crate) fn upgrade(saved: &mut Json) -> Result<()> {
    upgrade_by(UPGRADES, saved)
}

fn upgrade_by(upgrades: &[Upgrade], saved: &mut Json) -> Result<()> {
    let newest = upgrades.len() as u64 + 1;
    let schema = json::part(json::object(saved)?, names::SCHEMA, |version| {
        version
            .as_u64()
            .filter(|version| *version > 0)
            .ok_or_else(|| json::expected("a version number", version))
    })?;
    if schema > newest {
        let writer = saved
            .get(names::FX)
            .and_then(Json::as_str)
            .unwrap_or("a later fx");
        return Err(Error::saved(format_args!(
            "this file has schema {schema}, written by fx {}, and this fx reads schemas up to {newest}: load it with that version, or a later one",
            json::Excerpt(writer)
        ))
        .inside(format_args!(".{}", names::SCHEMA)));
    }
    let done = usize::try_from(schema - 1).unwrap_or(upgrades.len());
    for (version, upgrade) in (schema..).zip(&upgrades[done..]) {
        upgrade(saved).map_err(|e| {
            Error::saved(format_args!(
                "cannot be brought from schema {version} to {}: {e}",
                version + 1
            ))
        })?;
        if let Some(fields) = saved.as_object_mut() {
            fields.insert(names::SCHEMA.into(), Json::from(version + 1));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_upgraded_one_after_another() -> Result<()> {
        let upgrades: &[Upgrade] = &[
            |saved| {
                saved["b"] = saved["a"].take();
                Ok(())
            },
            |saved| {
                saved["c"] = Json::from(vec![saved["b"].take()]);
                Ok(())
            },
        ];
        let mut oldest = serde_json::json!({"schema": 1, "a": 7});
        upgrade_by(upgrades, &mut oldest)?;
        assert_eq!(
            (&oldest["schema"], &oldest["c"][0]),
            (&Json::from(3), &Json::from(7))
        );
        let mut newest = serde_json::json!({"schema": 3, "c": [7]});
        upgrade_by(upgrades, &mut newest)?;
        assert_eq!(newest["c"][0], 7);
        let later = upgrade_by(
            upgrades,
            &mut serde_json::json!({"schema": 4, "fx": "9.1.0"}),
        );
        let text = later.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(
            text.starts_with("schema: this file has schema 4, written by fx `9.1.0`"),
            "{text}"
        );
        Ok(())
    }
}
