//! The contract of a graph module in files.

use std::sync::Arc;

use super::graph::{from_location, to_location};
use super::json::{self, Json, JsonMap};
use super::meta::{MetaType, SavedMeta};
use super::names::{contract as names, guard as guard_names};
use super::value_meta::{from_value_meta, to_value_meta};
use crate::error::Result;
use crate::ir::value_meta::ValueMeta;
use crate::shapes::claim::Guard;
use crate::shapes::contract::Contract;
use crate::shapes::env::SymbolRange;

crate::__private::submit! { MetaType, MetaType::of::<Contract>() }

impl SavedMeta for Contract {
    const NAME: &'static str = "fx_core::shapes::Contract";

    fn to_saved(&self) -> Result<Json> {
        let inputs = self.inputs().map(|(name, meta)| {
            Ok(Json::Array(vec![
                Json::from(name),
                from_value_meta(meta, 0)?,
            ]))
        });
        let symbols = self.symbols().map(|(name, low, high)| {
            let high = high.map_or(Json::Null, Json::from);
            Json::Array(vec![Json::from(name), Json::from(low), high])
        });
        let guards = self.guards().iter().map(|guard| {
            let mut fields = JsonMap::new();
            fields.insert(
                guard_names::CLAIM.into(),
                Json::from(guard.claim.to_string()),
            );
            if let Some(location) = &guard.location {
                fields.insert(guard_names::LOCATION.into(), from_location(location));
            }
            if !guard.module.is_empty() {
                fields.insert(guard_names::MODULE.into(), Json::from(&*guard.module));
            }
            Json::Object(fields)
        });
        let mut fields = JsonMap::new();
        fields.insert(names::INPUTS.into(), inputs.collect::<Result<_>>()?);
        fields.insert(names::SYMBOLS.into(), symbols.collect());
        fields.insert(names::GUARDS.into(), guards.collect());
        Ok(Json::Object(fields))
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let fields = json::object(saved)?;
        json::known_names(fields, &names::ALL)?;
        let inputs = json::part(fields, names::INPUTS, |inputs| {
            json::items(inputs, to_input)
        })?;
        let symbols = json::part(fields, names::SYMBOLS, |symbols| {
            json::items(symbols, to_symbol)
        })?;
        let guards = json::part(fields, names::GUARDS, |guards| {
            json::items(guards, to_guard)
        })?;
        Ok(Contract::new(inputs, symbols, guards))
    }
}

fn to_input(saved: &Json) -> Result<(Arc<str>, ValueMeta)> {
    match json::array(saved)? {
        [name, meta] => Ok((json::text(name)?.into(), to_value_meta(meta, 0)?)),
        _ => Err(json::expected("a name and what it is", saved)),
    }
}

fn to_symbol(saved: &Json) -> Result<SymbolRange> {
    let number = |json: &Json| {
        let number = json.as_i64();
        number.ok_or_else(|| json::expected("a whole number", json))
    };
    match json::array(saved)? {
        [name, low, Json::Null] => Ok((json::text(name)?.into(), number(low)?, None)),
        [name, low, high] => Ok((json::text(name)?.into(), number(low)?, Some(number(high)?))),
        _ => Err(json::expected(
            "a name with its smallest and largest value",
            saved,
        )),
    }
}

fn to_guard(saved: &Json) -> Result<Guard> {
    let fields = json::object(saved)?;
    json::known_names(fields, &guard_names::ALL)?;
    Ok(Guard {
        claim: json::part(fields, guard_names::CLAIM, |claim| {
            json::text(claim)?.parse()
        })?,
        location: json::optional(fields, guard_names::LOCATION, to_location)?,
        module: json::optional(fields, guard_names::MODULE, |module| {
            json::text(module).map(str::to_string)
        })?
        .unwrap_or_default(),
    })
}
