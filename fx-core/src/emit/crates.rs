//! The registry of library crates: what generated crates may depend on, where it is, and the
//! prelude they import.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// A library whose functions and types generated crates may name; created by
/// [`register_crate!`](crate::register_crate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrateInfo {
    /// The first segment of its paths.
    pub library: &'static str,
    /// The package's name.
    pub package: &'static str,
    /// The folder of its `Cargo.toml` at build time.
    pub folder: &'static str,
    /// The URL of its git repository.
    pub repository: Option<&'static str>,
    /// The module whose names generated code uses without a path.
    pub prelude: Option<&'static str>,
    /// The path under which it re-exports all of fx-core, so that generated crates need no
    /// dependency on fx-core.
    pub core: Option<&'static str>,
}

impl CrateInfo {
    /// A library with only its location set.
    pub const fn new(library: &'static str, package: &'static str, folder: &'static str) -> Self {
        CrateInfo {
            library,
            package,
            folder,
            repository: None,
            prelude: None,
            core: None,
        }
    }

    /// Sets the URL of its git repository.
    #[must_use]
    pub const fn repository(mut self, address: &'static str) -> Self {
        self.repository = Some(address);
        self
    }

    /// Sets the module whose names generated code uses without a path.
    #[must_use]
    pub const fn prelude(mut self, module: &'static str) -> Self {
        self.prelude = Some(module);
        self
    }

    /// Sets the path under which it re-exports all of fx-core.
    #[must_use]
    pub const fn core(mut self, path: &'static str) -> Self {
        self.core = Some(path);
        self
    }
}

crate::__private::table! { (crate) CrateInfo }

/// The library that a path starts with, if it is registered.
pub(crate) fn crate_of(path: &str) -> Option<&'static CrateInfo> {
    static TABLE: OnceLock<FxHashMap<&'static str, &'static CrateInfo>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let crates = fx_registry::entries::<CrateInfo>();
        crates.map(|info| (info.library, info)).collect()
    });
    table.get(root_of(path)).copied()
}

/// The first library among the named ones that re-exports fx-core, as its path; otherwise
/// `fx_core`.
pub(crate) fn core_of<'p>(paths: impl Iterator<Item = &'p str>) -> &'static str {
    let mut libraries = paths.filter_map(crate_of);
    let found = libraries.find_map(|info| info.core);
    found.unwrap_or("fx_core")
}

/// The first segment of a path.
pub(crate) fn root_of(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// Registers this crate as a library whose functions and module types are public under their
/// registered paths, so that generated crates can depend on it
/// ([`to_folder`](crate::GraphModule::to_folder)). Write it once, in `lib.rs`.
///
/// ```
/// // In the root of a library:
/// fx_core::register_crate!();
/// ```
///
/// It records the crate's folder, which generated crates depend on. Options are given by name, in
/// any order: `repository = ".."`, the URL of the crate's git repository, which they depend on
/// instead; `prelude = "my_crate::prelude"`, the module that generated code imports;
/// `core = "my_crate"`, the path under which the crate re-exports all of fx-core.
///
/// ```
/// # mod my_crate {
/// fx_core::register_crate!(prelude = "my_crate::prelude", repository = "..");
/// # }
/// ```
#[macro_export]
macro_rules! register_crate {
    ($($what:ident = $value:literal),* $(,)?) => {
        $crate::__private::entry! {
            ($crate) CrateInfo, $crate::__private::CrateInfo::new(
                ::core::module_path!(),
                ::core::env!("CARGO_PKG_NAME"),
                ::core::env!("CARGO_MANIFEST_DIR"),
            )
            $(.$what($value))*
        }
    };
}
