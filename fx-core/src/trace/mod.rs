//! Tracing: proxies stand in for inputs, one dispatch point records what is done to them.

pub mod compare;
pub mod context;
pub mod convert;
pub mod dispatch;
pub mod forward;
pub mod operand;
pub mod returns;
pub mod root;
pub mod scope;
mod tensor_type;
pub mod tracer;
