//! `fx devices`: the plugins of PJRT that there are, and with `--load` their devices.
//!
//! Invariant: no plugin is loaded unless it is asked for.

use std::path::{Path, PathBuf};

use fx_nn::prelude::*;
use fx_pjrt::{Client, ClientOptions, PLUGIN_VARIABLE, Plugin, plugins_of};
use serde_json::{Value as Json, json};

use crate::print;

/// A plugin's file, and who named it.
struct Found {
    name: String,
    path: PathBuf,
}

/// Prints the plugins; `load` runs their code to ask for devices.
///
/// # Errors
/// Returns an error if there is no plugin.
pub fn devices(python: &Path, load: bool, as_json: bool) -> Result<()> {
    let named = std::env::var_os(PLUGIN_VARIABLE).filter(|path| !path.is_empty());
    let named = named.map(|path| Found {
        name: PLUGIN_VARIABLE.to_string(),
        path: path.into(),
    });
    let known = plugins_of(python).into_iter().map(|(known, path)| Found {
        name: known.name.to_string(),
        path,
    });
    let all: Vec<Found> = named.into_iter().chain(known).collect();
    if all.is_empty() {
        return Err(Error::msg(format_args!(
            "no plugin: {PLUGIN_VARIABLE} is not set, and the packages of {} have none. `pip install lammps-jax-pjrt-cpu` brings one for CPUs; `--python PATH` names another Python",
            python.display()
        )));
    }
    if as_json {
        let described: Vec<Json> = all.iter().map(|found| describe(found, load)).collect();
        return print::json(&Json::Array(described));
    }
    // Each as soon as it is known: some plugins look for their devices for minutes.
    for found in &all {
        let of = describe(found, load);
        print::line(format_args!("{}: {}", found.name, found.path.display()))?;
        if let Some(error) = of["error"].as_str() {
            print::line(format_args!("  {error}"))?;
        }
        if let (Some(version), Some(platform)) = (of["api"].as_str(), of["platform"].as_str()) {
            print::line(format_args!("  API {version}, {platform}"))?;
        }
        for device in of["devices"].as_array().into_iter().flatten() {
            print::line(format_args!("  {}", device.as_str().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// What is known of a plugin; with `load`, of its devices too.
fn describe(found: &Found, load: bool) -> Json {
    let mut of = json!({ "name": found.name, "path": found.path.display().to_string() });
    if !load {
        return of;
    }
    let client =
        Plugin::load(&found.path).and_then(|plugin| Client::new(plugin, &ClientOptions::new()));
    match client {
        Ok(client) => {
            let (major, minor) = client.plugin().api_version();
            let devices = client.devices().iter().map(ToString::to_string);
            of["api"] = json!(format!("{major}.{minor}"));
            of["platform"] = json!(client.platform());
            of["devices"] = json!(devices.collect::<Vec<_>>());
        }
        Err(error) => of["error"] = json!(error.to_string()),
    }
    of
}
