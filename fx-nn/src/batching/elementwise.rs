//! Operators, and functions whose kind says too little, for many examples at once.

use fx_core::value::Value;
use fx_core::{Error, Result, operator};

use super::batching;
use crate::func::kinds::{along, each, pointwise, reduce};
use crate::func::{BatchCall, Batching, known};
use crate::ops;

macro_rules! operators {
    ($($name:ident)*) => {
        fx_core::function_table! { Batching {
            $(operator::$name => Batching(pointwise),)*
        } }
    };
}

operators! { add sub mul truediv floordiv r#mod pow neg abs invert eq ne lt le gt ge and_ or_ xor lshift rshift }

batching! {
    ops::nan_to_num => |call| call.with(&[]);
    ops::special::polygamma => |call| call.with(&[]);
    ops::size => |call| {
        let rank = call.rank("x")?;
        let dim = call.dim(call.arg("dim")?, rank)?;
        call.with(&[("dim", Value::Int(dim))])
    };
    ops::quantile => |call| quantile(call);
    ops::nanquantile => |call| quantile(call);
    ops::equal => |_call| Err::<Value, _>(one_truth("equal"));
    ops::allclose => |_call| Err::<Value, _>(one_truth("allclose"));
    ops::tril => |call| call.with(&[]);
    ops::triu => |call| call.with(&[]);
    ops::softmax => |call| along(call);
    ops::softmin => |call| along(call);
    ops::log_softmax => |call| along(call);
}

fn one_truth(name: &str) -> Error {
    Error::msg(format_args!(
        "{name}: it gives one truth for all elements, which examples do not share: compare them, and use `all`"
    ))
}

/// Several ranks have a dim in front.
fn quantile(call: &BatchCall<'_>) -> Result<Value> {
    if call.is_batched("q") {
        return call.one_by_one();
    }
    let several = match call.arg::<crate::TensorOrNumber>("q")? {
        crate::TensorOrNumber::Tensor(q) => known::rank(&q)? == 1,
        crate::TensorOrNumber::Number(_) => false,
    };
    if several && call.rank("x")? == 0 {
        return call.one_by_one();
    }
    let found = reduce(call)?;
    match several {
        true => each(found, |y| ops::movedim(y, 1, 0)),
        false => Ok(found),
    }
}
