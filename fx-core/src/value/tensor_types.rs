//! The registry of tensor types, and how tensors are made from data.
//!
//! Invariant: a path names one type, and a type has one path.

use std::any::TypeId;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::data::TensorData;
use super::value::Value;
use crate::error::{Error, Result};
use crate::former::{known, renamed};

/// Builds a tensor from its data.
pub type FromData = fn(&TensorData<'_>) -> Result<Value>;

/// One entry of the registry, submitted by [`register_tensor!`](crate::register_tensor).
#[derive(Debug)]
pub struct TensorType {
    id: TypeId,
    path: &'static str,
    from_data: FromData,
    /// Whether inputs without a type may be of it.
    is_default: bool,
}

impl TensorType {
    /// Creates the entry of a tensor type.
    pub const fn of<T: 'static>(path: &'static str, from_data: FromData) -> Self {
        TensorType {
            id: TypeId::of::<T>(),
            path,
            from_data,
            is_default: true,
        }
    }

    /// Creates the entry of a type that is kept in files as tensors are, and is none: inputs without a type are never
    /// of it.
    pub const fn beside<T: 'static>(path: &'static str, from_data: FromData) -> Self {
        TensorType {
            is_default: false,
            ..TensorType::of::<T>(path, from_data)
        }
    }
}

crate::__private::table! { (crate) TensorType }

/// A registered tensor type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registered {
    id: TypeId,
    path: &'static str,
    name: &'static str,
}

impl Registered {
    /// The id of the type.
    pub fn id(&self) -> TypeId {
        self.id
    }

    /// The path under which it is registered.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Its name in source: the last segment of its path, or the whole path if several types share
    /// that name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The registered tensor types, by path.
pub(crate) fn tensor_types() -> &'static [Registered] {
    static TYPES: OnceLock<Vec<Registered>> = OnceLock::new();
    TYPES.get_or_init(|| named(fx_registry::entries::<TensorType>()))
}

fn named<'e>(entries: impl Iterator<Item = &'e TensorType>) -> Vec<Registered> {
    let mut types: Vec<Registered> = entries
        .filter(|entry| entry.is_default)
        .map(|entry| Registered {
            id: entry.id,
            path: entry.path,
            name: last_name(entry.path),
        })
        .collect();
    types.sort_by_key(|ty| ty.path);
    // A type with several paths uses the first.
    let mut seen: Vec<TypeId> = Vec::new();
    types.retain(|ty| {
        !seen.contains(&ty.id) && {
            seen.push(ty.id);
            true
        }
    });
    let names: Vec<&str> = types.iter().map(|ty| ty.name).collect();
    for ty in &mut types {
        if names.iter().filter(|name| **name == ty.name).count() > 1 {
            ty.name = ty.path;
        }
    }
    types
}

/// The registered tensor type with this id.
pub(crate) fn tensor_type(id: TypeId) -> Option<&'static Registered> {
    tensor_types().iter().find(|ty| ty.id == id)
}

/// The registered tensor type with this path or name.
pub(crate) fn tensor_type_named(text: &str) -> Option<&'static Registered> {
    let types = tensor_types();
    let by_path = |path: &str| types.iter().find(|ty| ty.path == path);
    let by_name = || types.iter().find(|ty| ty.name == text);
    let now = || by_path(&renamed(text)?);
    by_path(text).or_else(by_name).or_else(now)
}

/// The registered tensor type, if there is exactly one: the default type of inputs.
pub(crate) fn only_tensor_type() -> Option<&'static Registered> {
    match tensor_types() {
        [one] => Some(one),
        _ => None,
    }
}

/// The last segment of a path.
fn last_name(path: &'static str) -> &'static str {
    path.rsplit("::").next().unwrap_or(path)
}

/// The function that builds tensors of a type.
///
/// # Errors
/// Returns an error if not exactly one type is registered under the path.
pub(crate) fn from_data_of(path: &str) -> Result<FromData> {
    static TABLE: OnceLock<FxHashMap<&'static str, Vec<FromData>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for entry in fx_registry::entries::<TensorType>() {
            table.entry(entry.path).or_default().push(entry.from_data);
        }
        table
    });
    match known(table, path).map(Vec::as_slice) {
        Some([from_data]) => Ok(*from_data),
        Some([_, _, ..]) => Err(Error::saved(format_args!(
            "two tensor types are registered as `{path}`: give one another path with `register_tensor!`"
        ))),
        _ => Err(Error::saved(format_args!(
            "no tensor type is registered as `{path}`: link its crate in (`use its_crate as _;`), or register it with `fx_core::register_tensor!`"
        ))),
    }
}

/// Registers a tensor type under a unique path, so that saved files with its tensors can be loaded,
/// and generated source can name it.
///
/// ```
/// use fx_core::Result;
/// use fx_core::tensor::{Object, TensorData};
/// use fx_core::value::{DType, Value};
/// #[derive(Debug, Clone)]
/// struct Bytes(Vec<u8>);
/// impl Object for Bytes {
///     fn to_value(&self) -> Value { Value::object(self.clone()) }
///     fn to_data(&self) -> Result<TensorData<'_>> {
///         TensorData::new("my_crate::Bytes", DType::U8, vec![self.0.len()], &self.0[..])
///     }
/// }
/// fx_core::register_tensor!(Bytes, "my_crate::Bytes", |data| {
///     Ok(Value::object(Bytes(data.bytes()?.into_owned())))
/// });
/// ```
///
/// Generated crates name the type by this path. If exactly one tensor type is registered, inputs
/// without a type have it.
///
/// Where Rust has no symbol for an operation, such as an index, generated source contains a plain
/// call to the operator. To write it as the library's users would, pass `source = ..` after the
/// other arguments; [`TensorSource`](crate::tensor::TensorSource) has an example.
///
/// With `beside` before the type, files keep its values as they keep tensors, and it is no tensor type: graphs say it of
/// every input of it.
#[macro_export]
macro_rules! register_tensor {
    (beside $tensor:ty, $path:expr, $from_data:expr $(,)?) => {
        $crate::__private::entry! {
            ($crate) TensorType, $crate::__private::TensorType::beside::<$tensor>($path, $from_data)
        }
    };
    ($tensor:ty, $path:expr, $from_data:expr $(, source = $source:expr)? $(,)?) => {
        $crate::__private::entry! {
            ($crate) TensorType, $crate::__private::TensorType::of::<$tensor>($path, $from_data)
        }
        $(
            $crate::__private::entry! {
            ($crate) TensorSpelling, $crate::__private::TensorSpelling::of::<$tensor>(&$source)
            }
        )?
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_one_name_are_called_by_their_paths() {
        struct A;
        struct B;
        struct C;
        fn none(_: &TensorData<'_>) -> Result<Value> {
            Ok(Value::None)
        }
        let entries = [
            TensorType::of::<A>("one::Tensor", none),
            TensorType::of::<B>("another::Tensor", none),
            TensorType::of::<C>("one::Grid", none),
            // A second path of a type changes nothing.
            TensorType::of::<C>("one::old::Grid", none),
        ];
        let orders: [[usize; 4]; 2] = [[0, 1, 2, 3], [3, 2, 1, 0]];
        for order in orders {
            let types = named(order.iter().map(|at| &entries[*at]));
            let names: Vec<_> = types.iter().map(|ty| (ty.path, ty.name)).collect();
            assert_eq!(
                names,
                [
                    ("another::Tensor", "another::Tensor"),
                    ("one::Grid", "Grid"),
                    ("one::Tensor", "one::Tensor"),
                ]
            );
        }
    }
}
