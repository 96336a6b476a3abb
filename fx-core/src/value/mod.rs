//! Values that flow through graphs: numbers, structures, tensors as
//! [`Object`](crate::tensor::Object)s, and handles of recorded things.
//!
//! ```
//! use fx_core::value::{IntoValue, Value};
//! let value = vec![1.5, 2.5].into_value();
//! assert!(matches!(&value, Value::List(items) if items.len() == 2));
//! ```

pub(crate) mod data;
pub(crate) mod device;
pub(crate) mod dim;
pub(crate) mod dtype;
pub(crate) mod fake_number;
pub(crate) mod fake_tensor;
pub(crate) mod handle;
pub(crate) mod nested;
pub(crate) mod object;
pub(crate) mod operator;
mod size_expr;
mod size_text;
pub(crate) mod symbol;
pub(crate) mod tensor_types;
pub(crate) mod tree;
#[allow(
    clippy::module_inception,
    reason = "the file is named after the type it holds"
)]
pub(crate) mod value;

pub use self::device::Device;
pub use self::dim::{Dim, DimStep};
pub use self::dtype::DType;
pub use self::handle::{NodeId, Proxy, TraceId};
pub use self::object::short_type_name;
pub use self::operator::Operator;
pub use self::symbol::{Bool, Float, Int, Sym};
pub use self::tree::Tree;
pub use self::value::{Arg, IntoValue, Value};
