//! Every method of `Tensor` that is an operation, called as a program calls it, by name.

use fx_nn::prelude::*;
use fx_nn::{Bound, Number, Result, Sizes};

use crate::args::Args;
use crate::functions::calls;

/// A reduction's method: the one that keeps dims, or the other.
macro_rules! keeping {
    ($a:ident, $plain:ident, $keeping:ident $(, $more:ident)?) => {{
        let (x, dims) = ($a.next::<&Tensor>()?, $a.next::<Dims>()?);
        $(let $more = $a.next()?;)?
        match $a.next::<bool>()? {
            true => x.$keeping(dims $(, $more)?),
            false => x.$plain(dims $(, $more)?),
        }
    }};
}

macro_rules! x {
    ($a:ident) => {
        $a.next::<&Tensor>()?
    };
}

calls! {
    /// The call of a method, `None` where the name is unknown.
    method, a:
    "amax" => keeping!(a, amax, amax_keepdim),
    "amin" => keeping!(a, amin, amin_keepdim),
    "argmin" => x!(a).argmin(a.next()?, a.next()?),
    "argmax" => x!(a).argmax(a.next()?, a.next()?),
    "chunk" => x!(a).chunk(a.next::<i64>()?, a.next()?),
    "clamp" => x!(a).clamp(a.next::<Bound>()?, a.next::<Bound>()?),
    "contiguous" => x!(a).contiguous(),
    "cos" => x!(a).cos(),
    "cumsum" => x!(a).cumsum(a.next()?),
    "erf" => x!(a).erf(),
    "exp" => x!(a).exp(),
    "expand" => x!(a).expand(a.next::<Sizes>()?),
    "flatten" => x!(a).flatten(a.next()?, a.next()?),
    "gather" => x!(a).gather(a.next()?, a.next()?),
    "index_select" => x!(a).index_select(a.next()?, a.next()?),
    "isfinite" => x!(a).isfinite(),
    "isnan" => x!(a).isnan(),
    "log" => x!(a).log(),
    "log_softmax" => x!(a).log_softmax(a.next()?),
    "masked_fill" => x!(a).masked_fill(a.next()?, a.next::<Number>()?),
    "matmul" => x!(a).matmul(a.next()?),
    "min" => x!(a).min(a.next()?, a.next()?),
    "max" => x!(a).max(a.next()?, a.next()?),
    "maximum" => x!(a).maximum(a.next()?),
    "mean" => keeping!(a, mean, mean_keepdim),
    "minimum" => x!(a).minimum(a.next()?),
    "neg" => x!(a).neg(),
    "permute" => x!(a).permute(a.next::<Dims>()?),
    "reciprocal" => x!(a).reciprocal(),
    "relu" => x!(a).relu(),
    "reshape" => x!(a).reshape(a.next::<Sizes>()?),
    "rsqrt" => x!(a).rsqrt(),
    "sigmoid" => x!(a).sigmoid(),
    "silu" => x!(a).silu(),
    "sin" => x!(a).sin(),
    "softmax" => x!(a).softmax(a.next()?),
    "split" => x!(a).split(a.next::<i64>()?, a.next()?),
    "split_with_sizes" => x!(a).split_with_sizes(a.next()?, a.next()?),
    "sqrt" => x!(a).sqrt(),
    "square" => x!(a).square(),
    "squeeze" => x!(a).squeeze(a.next()?),
    "std" => keeping!(a, std, std_keepdim, unbiased),
    "sum" => keeping!(a, sum, sum_keepdim),
    "t" => x!(a).t(),
    "tanh" => x!(a).tanh(),
    "to_device" => x!(a).to_device(a.next()?),
    "to_dtype" => x!(a).to_dtype(a.next()?),
    "type_as" => x!(a).type_as(a.next()?),
    "topk" => x!(a).topk(a.next::<i64>()?, a.next()?, a.next()?, a.next()?),
    "transpose" => x!(a).transpose(a.next()?, a.next()?),
    "tril" => x!(a).tril(a.next()?),
    "triu" => x!(a).triu(a.next()?),
    "unbind" => x!(a).unbind(a.next()?),
    "unsqueeze" => x!(a).unsqueeze(a.next()?),
    "var" => keeping!(a, var, var_keepdim, unbiased),
    "view" => x!(a).view(a.next::<Sizes>()?),
}
