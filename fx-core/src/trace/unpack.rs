//! The parts of a symbolic value, each recorded as an item of it.
//!
//! Invariant: the parts are recorded in their order, by the trace of the value.

use super::scope;
use crate::error::Result;
use crate::value::handle::Proxy;
use crate::value::value::Value;

/// Records `value[0]` to `value[count - 1]` of a symbolic value: the results of a call that has
/// several.
pub(super) fn unpack(proxy: Proxy, count: usize) -> Result<Vec<Value>> {
    let active = scope::of_proxy(proxy)?;
    let parts = active.tracer.create_items(&active.context, proxy, count)?;
    active.context.remember_parts(proxy, &parts);
    parts
        .into_iter()
        .map(|part| active.context.folded(part))
        .collect()
}

/// Records `value[key]` for each key of a symbolic value: the fields of a result that is a struct.
pub(super) fn unpack_fields(proxy: Proxy, keys: &[&str]) -> Result<Vec<Value>> {
    let active = scope::of_proxy(proxy)?;
    keys.iter()
        .map(|key| {
            let index = Value::Str((*key).into());
            let item = active.tracer.create_item(&active.context, proxy, index)?;
            Ok(Value::Proxy(item))
        })
        .collect()
}
