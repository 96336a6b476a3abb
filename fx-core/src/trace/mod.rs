//! Tracing: proxies stand in for inputs, one dispatch point records what is done to them.

pub mod appending;
pub mod ask;
pub mod assertion;
pub mod blame;
pub mod call_args;
pub mod compare;
pub mod concrete;
pub mod context;
pub mod convert;
mod defaults;
pub mod dispatch;
pub mod foreign;
pub mod forward;
pub mod list;
pub mod mode;
pub mod operand;
mod proxy;
pub mod report;
pub mod returns;
pub mod root;
pub mod scalar;
pub mod scope;
mod tensor_type;
pub mod tracer;
