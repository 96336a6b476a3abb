//! The registry of library crates: what generated crates may depend on, where it is, and what it is imported by.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// A library whose functions and types generated crates may name; [`register_crate!`](crate::register_crate) makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrateInfo {
    /// The first segment of its paths.
    pub library: &'static str,
    /// The package's name.
    pub package: &'static str,
    /// The package's version.
    pub version: &'static str,
    /// The folder of its `Cargo.toml`, where it was built.
    pub folder: &'static str,
    /// The module whose names generated code uses without a path.
    pub prelude: Option<&'static str>,
}

inventory::collect!(CrateInfo);

/// The library that a path starts with, if it is known.
pub(crate) fn crate_of(path: &str) -> Option<&'static CrateInfo> {
    static TABLE: OnceLock<FxHashMap<&'static str, &'static CrateInfo>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let crates = inventory::iter::<CrateInfo>.into_iter();
        crates.map(|info| (info.library, info)).collect()
    });
    table.get(root_of(path)).copied()
}

/// The first segment of a path.
pub(crate) fn root_of(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// Says that this crate is a library whose functions and module types are public by the paths that they are registered
/// under, so that generated crates can depend on it ([`to_folder`](crate::GraphModule::to_folder)). Written once, in
/// `lib.rs`.
///
/// ```
/// // In the root of a library:
/// fx_core::register_crate!();
/// ```
///
/// With `prelude = "my_crate::prelude"` generated code imports that module.
#[macro_export]
macro_rules! register_crate {
    () => {
        $crate::register_crate!(@ ::core::option::Option::None);
    };
    (prelude = $prelude:literal) => {
        $crate::register_crate!(@ ::core::option::Option::Some($prelude));
    };
    (@ $prelude:expr) => {
        $crate::__private::inventory::submit! {
            $crate::CrateInfo {
                library: ::core::module_path!(),
                package: ::core::env!("CARGO_PKG_NAME"),
                version: ::core::env!("CARGO_PKG_VERSION"),
                folder: ::core::env!("CARGO_MANIFEST_DIR"),
                prelude: $prelude,
            }
        }
    };
}
