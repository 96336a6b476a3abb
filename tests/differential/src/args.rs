//! A call's arguments as the Rust types that the signatures ask for, one after another.

use fx_nn::prelude::*;
use fx_nn::{Bound, Error, Number, Pair, Result, Scales, Sections, Sizes, TensorOrNumber, Triple};

use crate::call::Arg;

/// The arguments that are still to be taken.
pub(crate) struct Args<'a> {
    rest: std::slice::Iter<'a, Arg>,
    tensors: &'a [Tensor],
}

/// What a call's argument can be taken as.
pub(crate) trait Take<'a>: Sized {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self>;
}

impl<'a> Args<'a> {
    /// Of a call, with its tensors, which are symbolic in a trace.
    pub(crate) fn new(args: &'a [Arg], tensors: &'a [Tensor]) -> Self {
        Args {
            rest: args.iter(),
            tensors,
        }
    }

    /// The next one.
    pub(crate) fn next<T: Take<'a>>(&mut self) -> Result<T> {
        let arg = self.rest.next().unwrap_or(&Arg::None);
        T::take(arg, self.tensors).ok_or_else(|| {
            let ty = std::any::type_name::<T>();
            Error::msg(format_args!("the generator gave {arg:?} for a {ty}"))
        })
    }
}

impl<'a> Take<'a> for &'a Arg {
    fn take(arg: &'a Arg, _: &'a [Tensor]) -> Option<Self> {
        Some(arg)
    }
}

impl<'a> Take<'a> for &'a Tensor {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::Tensor(place) => tensors.get(*place),
            _ => None,
        }
    }
}

impl<'a> Take<'a> for Tensor {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        <&Tensor>::take(arg, tensors).cloned()
    }
}

impl<'a, T: Take<'a>> Take<'a> for Option<T> {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::None => Some(None),
            arg => T::take(arg, tensors).map(Some),
        }
    }
}

impl<'a, T: Take<'a>> Take<'a> for Vec<T> {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::List(items) => items.iter().map(|item| T::take(item, tensors)).collect(),
            _ => None,
        }
    }
}

macro_rules! take {
    ($($t:ty: $pattern:pat => $value:expr;)*) => {$(
        impl<'a> Take<'a> for $t {
            fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
                let _ = tensors;
                match arg {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
    )*};
}

take! {
    bool: Arg::Bool(truth) => Some(*truth);
    i64: Arg::Int(n) => Some(*n);
    usize: Arg::Int(n) => usize::try_from(*n).ok();
    &'a str: Arg::Str(text) => Some(text.as_str());
    DType: Arg::DType(dtype) => Some(*dtype);
    Device: Arg::Str(text) => text.parse().ok();
    Int: Arg::Int(n) => Some(Int::from(*n));
}

impl<'a> Take<'a> for Number {
    fn take(arg: &'a Arg, _: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::Bool(truth) => Some(Number::Bool(*truth)),
            Arg::Int(n) => Some(Number::Int(*n)),
            Arg::Float(x) => Some(Number::Float(*x)),
            _ => None,
        }
    }
}

impl<'a> Take<'a> for TensorOrNumber {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::Tensor(_) => <&Tensor>::take(arg, tensors).map(TensorOrNumber::from),
            arg => Number::take(arg, tensors).map(TensorOrNumber::from),
        }
    }
}

impl<'a> Take<'a> for Bound {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        <Option<Number> as Take<'_>>::take(arg, tensors).map(Bound)
    }
}

impl<'a> Take<'a> for f64 {
    fn take(arg: &'a Arg, _: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::Float(x) => Some(*x),
            Arg::Int(n) => Some(*n as f64),
            _ => None,
        }
    }
}

impl<'a> Take<'a> for Dims {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::None => Some(Dims::All),
            Arg::Int(dim) => Some(Dims::One(*dim)),
            arg => Vec::take(arg, tensors).map(Dims::Many),
        }
    }
}

impl<'a> Take<'a> for Sizes {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        Vec::<i64>::take(arg, tensors).map(Sizes::from)
    }
}

impl<'a> Take<'a> for Shape {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        Vec::take(arg, tensors).map(Shape)
    }
}

impl<'a> Take<'a> for Pair {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match Vec::<usize>::take(arg, tensors)?[..] {
            [height, width] => Some(Pair(height, width)),
            _ => None,
        }
    }
}

impl<'a> Take<'a> for Triple {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match Vec::<usize>::take(arg, tensors)?[..] {
            [depth, height, width] => Some(Triple(depth, height, width)),
            _ => None,
        }
    }
}

impl<'a> Take<'a> for Scales {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::None => Some(Scales::None),
            Arg::List(_) => Vec::take(arg, tensors).map(Scales::Each),
            one => f64::take(one, tensors).map(Scales::One),
        }
    }
}

impl<'a> Take<'a> for Sections {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::Int(count) => Some(Sections::Count(*count)),
            arg => Vec::take(arg, tensors).map(Sections::At),
        }
    }
}
