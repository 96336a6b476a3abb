//! Plugins by name.

use std::fs;

use fx_pjrt::{KNOWN_PLUGINS, plugin, plugins_of};

use super::stub::{Stub, folder};

#[test]
fn a_plugin_is_found_beside_its_python() -> fx_nn::Result<()> {
    let venv = folder();
    let python = venv.join("bin/python");
    assert!(plugins_of(&python).is_empty());
    let error = plugin("cuda13", &python)
        .expect_err("there is none")
        .to_string();
    assert!(error.contains("pip install jax-cuda13-pjrt"), "{error}");
    let error = plugin("cuda", &python)
        .expect_err("there is no such name")
        .to_string();
    assert!(error.contains("cpu, cuda12, cuda13"), "{error}");

    let known = KNOWN_PLUGINS
        .iter()
        .find(|known| known.name == "cuda13")
        .expect("it is known");
    let file = venv.join("lib/python3.12/site-packages").join(known.file);
    fs::create_dir_all(file.parent().expect("it has a folder")).expect("it can be made");
    fs::copy(&Stub::new("").path, &file).expect("it can be copied");
    assert_eq!(plugins_of(&python), [(*known, file.clone())]);
    assert_eq!(
        plugin("cuda13", &python)?.path(),
        file.canonicalize().expect("it is there")
    );
    Ok(())
}
