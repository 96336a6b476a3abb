//! The registry: every `#[wrap]` function and method that is linked in, found by path or by method name.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::function::Function;
use crate::error::{Error, Result};

/// One entry, submitted by `#[wrap]`.
#[derive(Debug)]
pub struct Registration(pub Function);

inventory::collect!(Registration);

struct Tables {
    by_path: FxHashMap<&'static str, Vec<Function>>,
    methods: FxHashMap<&'static str, Vec<Function>>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables {
            by_path: FxHashMap::default(),
            methods: FxHashMap::default(),
        };
        for Registration(function) in inventory::iter::<Registration> {
            tables
                .by_path
                .entry(function.path())
                .or_default()
                .push(*function);
            if function.def().receiver.is_some() {
                tables
                    .methods
                    .entry(function.name())
                    .or_default()
                    .push(*function);
            }
        }
        // Registrations come in whatever order the linker chose.
        for methods in tables.methods.values_mut() {
            methods.sort_by_key(|method| method.path());
        }
        tables
    })
}

/// The function registered under a path.
///
/// # Errors
/// When two functions claim the path.
///
/// ```
/// let add = fx_core::registry::function("fx_core::operator::add")?;
/// assert_eq!(add.map(|f| f.name()), Some("add"));
/// # Ok::<(), fx_core::Error>(())
/// ```
pub fn function(path: &str) -> Result<Option<Function>> {
    match tables().by_path.get(path).map(Vec::as_slice) {
        None | Some([]) => Ok(None),
        Some([function]) => Ok(Some(*function)),
        Some(_) => Err(Error::msg(format_args!(
            "two functions are registered as `{path}`: give one another path with #[wrap(path = \"..\")]"
        ))),
    }
}

/// The methods of a name, one for each type that has it, in the order of their paths.
pub fn methods(name: &str) -> &'static [Function] {
    tables().methods.get(name).map_or(&[], Vec::as_slice)
}

/// Every registered function, in the order of their paths.
pub fn functions() -> Vec<Function> {
    let mut all: Vec<Function> = tables().by_path.values().flatten().copied().collect();
    all.sort_by_key(|f| f.path());
    all
}
