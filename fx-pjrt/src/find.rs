//! Where plugins are: the files that packages of Python carry, by name.
//!
//! Invariant: nothing is loaded and no Python runs; what is found is a path.

use std::path::{Path, PathBuf};

use fx_nn::{Error, Result};

use crate::plugin::Plugin;

/// A plugin that a package carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownPlugin {
    /// The name that [`plugin`] takes.
    pub name: &'static str,
    /// The package, as `pip install` takes it.
    pub package: &'static str,
    /// Its file in `site-packages`.
    pub file: &'static str,
}

/// The plugins whose packages are known.
pub const KNOWN_PLUGINS: [KnownPlugin; 6] = [
    KnownPlugin {
        name: "cpu",
        package: "lammps-jax-pjrt-cpu",
        file: "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
    },
    KnownPlugin {
        name: "cuda12",
        package: "jax-cuda12-pjrt",
        file: "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
    },
    KnownPlugin {
        name: "cuda13",
        package: "jax-cuda13-pjrt",
        file: "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
    },
    KnownPlugin {
        name: "rocm7",
        package: "jax-rocm7-pjrt",
        file: "jax_plugins/xla_rocm7/xla_rocm_plugin.so",
    },
    KnownPlugin {
        name: "oneapi",
        package: "jax-oneapi-pjrt",
        file: "jax_plugins/xla_oneapi/xla_oneapi_plugin.so",
    },
    KnownPlugin {
        name: "tpu",
        package: "libtpu",
        file: "libtpu/libtpu.so",
    },
];

/// Loads the plugin of a name, such as `cuda13`, from the packages of a Python: the path of an
/// interpreter, such as `/home/me/venv/bin/python`. The interpreter does not run.
///
/// ```no_run
/// let plugin = fx_pjrt::plugin("cuda13", "/home/me/venv/bin/python")?;
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the name is not known, the packages have no such plugin, or as
/// [`Plugin::load`].
pub fn plugin(name: &str, python: impl AsRef<Path>) -> Result<Plugin> {
    let python = python.as_ref();
    let known = KNOWN_PLUGINS.iter().find(|known| known.name == name);
    let known = known.ok_or_else(|| {
        let names: Vec<&str> = KNOWN_PLUGINS.iter().map(|known| known.name).collect();
        Error::msg(format_args!(
            "no plugin has the name `{name}`: there are {}. `Plugin::load` takes the path of any other",
            names.join(", ")
        ))
    })?;
    let found = plugins_of(python).into_iter().find(|(of, _)| of == known);
    match found {
        Some((_, path)) => Plugin::load(path),
        None => Err(Error::msg(format_args!(
            "the packages of {} have no plugin `{name}`: `{} -m pip install {}` brings it",
            python.display(),
            python.display(),
            known.package
        ))),
    }
}

/// The files of known plugins that the packages of a Python have. None is loaded.
///
/// ```
/// for (known, path) in fx_pjrt::plugins_of("/usr/bin/python3") {
///     println!("{}: {}", known.name, path.display());
/// }
/// ```
pub fn plugins_of(python: impl AsRef<Path>) -> Vec<(KnownPlugin, PathBuf)> {
    let folders = packages(python.as_ref());
    let mut found: Vec<(KnownPlugin, PathBuf)> = Vec::new();
    let mut seen = Vec::new();
    for known in &KNOWN_PLUGINS {
        for file in folders.iter().map(|folder| folder.join(known.file)) {
            // A folder may be there by two names, as `lib64` is `lib`.
            if let Ok(real) = file.canonicalize()
                && real.is_file()
                && !seen.contains(&real)
            {
                seen.push(real);
                found.push((*known, file));
            }
        }
    }
    found
}

/// The folders with the packages of a Python: those beside its interpreter.
fn packages(python: &Path) -> Vec<PathBuf> {
    // A name without a folder is looked up as a shell does.
    let python = match python.components().count() {
        1 => std::env::var_os("PATH")
            .into_iter()
            .flat_map(|all| std::env::split_paths(&all).collect::<Vec<_>>())
            .map(|folder| folder.join(python))
            .find(|file| file.is_file())
            .unwrap_or_else(|| python.to_path_buf()),
        _ => python.to_path_buf(),
    };
    let Some(prefix) = python.parent().and_then(Path::parent) else {
        return Vec::new();
    };
    let mut folders = Vec::new();
    for lib in ["lib", "lib64", "local/lib"] {
        let Ok(inside) = prefix.join(lib).read_dir() else {
            continue;
        };
        let versions = inside.flatten().map(|entry| entry.path());
        let is_python = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("python3"))
        };
        let mut versions: Vec<PathBuf> = versions.filter(is_python).collect();
        versions.sort();
        for version in versions {
            for packages in ["site-packages", "dist-packages"] {
                let folder = version.join(packages);
                if folder.is_dir() {
                    folders.push(folder);
                }
            }
        }
    }
    folders
}
