//! What a tensor type implements to be traced: fx-core depends on no tensor library.
//!
//! A tensor type implements three traits and invokes a macro:
//!
//! - [`Object`] is what a graph needs of a value: how it is cloned, its identity, and the node that
//!   it stands for while tracing. Its `operator` runs `+`, `*` and the others in graphs.
//! - [`Traced`] makes a symbolic value, and computes operators eagerly.
//! - [`Component`](crate::module::Component) makes it a field of a module: a parameter or a buffer.
//! - [`tensor_type!`] writes Rust's operators, and its conversions as argument and result.
//!
//! ```
//! use std::sync::Arc;
//!
//! use fx_core::module::{Component, Walk, WalkMut};
//! use fx_core::prelude::*;
//! use fx_core::tensor::{Object, OperandRef, Traced, escape, tensor_type};
//! use fx_core::value::{Operator, Proxy};
//!
//! #[derive(Clone, Debug)]
//! enum Array {
//!     Data(Arc<Vec<f32>>),
//!     Symbolic(Proxy),
//! }
//!
//! impl Array {
//!     fn new(data: impl Into<Vec<f32>>) -> Self {
//!         Array::Data(Arc::new(data.into()))
//!     }
//!
//!     fn data(&self) -> Result<&Arc<Vec<f32>>> {
//!         match self {
//!             Array::Data(data) => Ok(data),
//!             Array::Symbolic(proxy) => Err(escape("data", *proxy)), // an error at the user's line
//!         }
//!     }
//! }
//!
//! impl Object for Array {
//!     fn to_value(&self) -> Value {
//!         Value::object(self.clone())
//!     }
//!
//!     fn object_id(&self) -> Option<u64> {
//!         self.data().ok().map(|data| Arc::as_ptr(data) as u64) // equal for two that share memory
//!     }
//!
//!     fn proxy(&self) -> Option<Proxy> {
//!         match self {
//!             Array::Data(_) => None,
//!             Array::Symbolic(proxy) => Some(*proxy),
//!         }
//!     }
//!
//!     fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
//!         let operands: Option<Vec<_>> = args.iter().map(|arg| OperandRef::of(arg)).collect();
//!         let operands = operands.ok_or_else(|| Error::msg("an array takes arrays and numbers"))?;
//!         *out = Array::apply(op, &operands)?.to_value();
//!         Ok(())
//!     }
//! }
//!
//! impl Traced for Array {
//!     fn from_proxy(proxy: Proxy) -> Self {
//!         Array::Symbolic(proxy)
//!     }
//!
//!     fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Self> {
//!         let [a, b] = operands else { return Err(Error::msg(format_args!("an array has no {op}"))) };
//!         let element = |operand: &OperandRef<'_>, at: usize| match *operand {
//!             OperandRef::Float(x) => Some(x as f32),
//!             OperandRef::Int(x) => Some(x as f32),
//!             _ => operand.downcast_ref::<Array>()?.data().ok()?.get(at).copied(),
//!         };
//!         let f = match op {
//!             Operator::Add => |a: f32, b: f32| a + b,
//!             Operator::Mul => |a: f32, b: f32| a * b,
//!             op => return Err(Error::msg(format_args!("an array has no {op}"))),
//!         };
//!         let pairs = (0..).map_while(|at| Some(f(element(a, at)?, element(b, at)?)));
//!         Ok(Array::new(pairs.collect::<Vec<f32>>()))
//!     }
//! }
//!
//! impl Component for Array {
//!     fn visit(&self, walk: &mut Walk<'_, '_>) {
//!         walk.tensor(self);
//!     }
//!
//!     fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
//!         walk.tensor(self);
//!     }
//!
//!     fn duplicate(&self) -> Self {
//!         self.clone()
//!     }
//! }
//!
//! tensor_type!(Array);
//!
//! #[wrap(method)]
//! fn relu(x: &Array) -> Result<Array> {
//!     Ok(Array::new(x.data()?.iter().map(|x| x.max(0.0)).collect::<Vec<f32>>()))
//! }
//!
//! #[derive(Module)]
//! struct Affine {
//!     weight: Array,
//! }
//!
//! #[trace]
//! impl Affine {
//!     fn forward(&self, x: &Array) -> Result<Array> {
//!         ((x * &self.weight)? + 1.0)?.relu()
//!     }
//! }
//!
//! let affine = Affine { weight: Array::new([2.0, -3.0]) };
//! let gm = symbolic_trace(&affine)?;
//! assert_eq!(gm.named_parameters().keys().collect::<Vec<_>>(), ["weight"]);
//! let y: Array = gm.forward(&Array::new([1.0, 1.0]))?;
//! assert_eq!(**y.data()?, [3.0, 0.0]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Files need bytes, which `Object::to_data` gives and [`register_tensor!`](crate::register_tensor)
//! reads; generated source needs the names of operations. The example `foreign_tensor` has both.

pub use crate::emit::tensor_source::{IndexSource, TensorSource};
#[doc(inline)]
pub use crate::tensor_type;
pub use crate::trace::blame::{escape, escape_with};
pub use crate::trace::call_args::CallForm;
pub use crate::trace::convert::Param;
pub use crate::trace::dispatch::{known_dims, known_shape, record_call, report_shape};
pub use crate::trace::operand::{Operand, binary, unary};
pub use crate::trace::scope::may_record;
pub use crate::value::data::TensorData;
pub use crate::value::fake_tensor::FakeTensor;
pub use crate::value::object::{Handle, Object, OperandRef, Traced};
pub use crate::value::tensor_types::FromData;
