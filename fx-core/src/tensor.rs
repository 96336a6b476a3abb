//! What a tensor type implements to be traced: fx-core depends on no tensor library.
//!
//! A tensor is an [`Object`]; one that can be symbolic is [`Traced`], and its operations record
//! themselves. The example `foreign_tensor` makes a custom array type traceable, from operators to
//! generated source.
//!
//! ```
//! use fx_core::tensor::TensorData;
//! use fx_core::value::DType;
//! // What a saved file keeps of a tensor.
//! let data = TensorData::new("my_crate::Array", DType::U8, vec![2], &[1, 2])?;
//! assert_eq!((data.shape(), data.dtype()), (&[2][..], DType::U8));
//! # Ok::<(), fx_core::Error>(())
//! ```

pub use crate::emit::tensor_source::{IndexSource, TensorSource};
#[doc(inline)]
pub use crate::tensor_type;
pub use crate::trace::blame::{escape, escape_with};
pub use crate::trace::convert::Param;
pub use crate::trace::dispatch::{CallForm, known_dims, known_shape, record_call, report_shape};
pub use crate::trace::operand::{Operand, binary, unary};
pub use crate::trace::scope::may_record;
pub use crate::value::data::{FromData, TensorData};
pub use crate::value::fake_tensor::FakeTensor;
pub use crate::value::object::{Handle, Object, OperandRef, Traced};
