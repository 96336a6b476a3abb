//! Linear algebra and Fourier transforms, called by their Rust signatures: beside the tables of `functions` and
//! `methods`. What the signs of vectors leave free is compared by products of them.

use fx_nn::ops::{fft, linalg};
use fx_nn::prelude::*;
use fx_nn::{NormOrder, Result, Sizes};

use crate::args::{Args, Take};
use crate::call::Arg;
use crate::functions::calls;

impl<'a> Take<'a> for NormOrder {
    fn take(arg: &'a Arg, tensors: &'a [Tensor]) -> Option<Self> {
        match arg {
            Arg::Str(name) => Some(NormOrder::Named(name.clone())),
            arg => f64::take(arg, tensors).map(NormOrder::Number),
        }
    }
}

fn turned(x: &Tensor) -> Result<Tensor> {
    x.transpose(-2, -1)
}

/// The singular values, the product of all parts, and the products of the vectors.
fn svd(x: &Tensor, full: bool) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let (u, s, vh) = linalg::svd(x, full)?;
    let k = s.size(-1)?;
    let left = u.narrow(-1, 0, k)? * s.unsqueeze(-2)?;
    let again = left?.matmul(&vh.narrow(-2, 0, k)?)?;
    let (of_u, of_v) = (turned(&u)?.matmul(&u)?, vh.matmul(&turned(&vh)?)?);
    Ok((s, again, of_u, of_v))
}

/// The eigenvalues, the product of all parts, and the product of the vectors.
fn eigh(x: &Tensor, uplo: &str) -> Result<(Tensor, Tensor, Tensor)> {
    let (values, vectors) = linalg::eigh(x, uplo)?;
    let again = (&vectors * values.unsqueeze(-2)?)?.matmul(&turned(&vectors)?)?;
    let square = turned(&vectors)?.matmul(&vectors)?;
    Ok((values, again, square))
}

calls! {
    /// The call of a function, `None` where the name is unknown.
    function, a:
    "cholesky" => linalg::cholesky(a.next()?, a.next()?),
    "det" => linalg::det(a.next()?),
    "eigh" => eigh(a.next()?, a.next()?),
    "eigvalsh" => linalg::eigvalsh(a.next()?, a.next()?),
    "fft" => fft::fft(a.next()?, a.next()?, a.next()?, a.next()?),
    "fft2" => fft::fft2(a.next()?, a.next::<Option<Sizes>>()?, a.next::<Dims>()?, a.next()?),
    "fftn" => fft::fftn(a.next()?, a.next::<Option<Sizes>>()?, a.next::<Dims>()?, a.next()?),
    "fftshift" => fft::fftshift(a.next()?, a.next::<Dims>()?),
    "ifft" => fft::ifft(a.next()?, a.next()?, a.next()?, a.next()?),
    "ifft2" => fft::ifft2(a.next()?, a.next::<Option<Sizes>>()?, a.next::<Dims>()?, a.next()?),
    "ifftn" => fft::ifftn(a.next()?, a.next::<Option<Sizes>>()?, a.next::<Dims>()?, a.next()?),
    "ifftshift" => fft::ifftshift(a.next()?, a.next::<Dims>()?),
    "inv" => linalg::inv(a.next()?),
    "inverse" => linalg::inverse(a.next()?),
    "irfft" => fft::irfft(a.next()?, a.next()?, a.next()?, a.next()?),
    "lstsq" => linalg::lstsq(a.next()?, a.next()?, a.next()?, a.next()?),
    "matrix_norm" => linalg::matrix_norm(a.next()?, a.next::<NormOrder>()?, a.next::<Dims>()?, a.next()?, a.next()?),
    "matrix_power" => linalg::matrix_power(a.next()?, a.next()?),
    "pinv" => linalg::pinv(a.next()?, a.next()?, a.next()?, a.next()?),
    "pinverse" => linalg::pinverse(a.next()?, a.next()?),
    "qr" => linalg::qr(a.next()?, a.next()?),
    "rfft" => fft::rfft(a.next()?, a.next()?, a.next()?, a.next()?),
    "slogdet" => linalg::slogdet(a.next()?),
    "solve" => linalg::solve(a.next()?, a.next()?, a.next()?),
    "svd" => svd(a.next()?, a.next()?),
    "svdvals" => linalg::svdvals(a.next()?),
}

calls! {
    /// The call of a method, `None` where the name is unknown.
    method, a:
    "det" => a.next::<&Tensor>()?.det(),
    "inverse" => a.next::<&Tensor>()?.inverse(),
    "matrix_power" => a.next::<&Tensor>()?.matrix_power(a.next()?),
    "pinverse" => a.next::<&Tensor>()?.pinverse(a.next()?),
    "slogdet" => a.next::<&Tensor>()?.slogdet(),
}
