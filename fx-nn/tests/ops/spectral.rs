//! Gradients of linear algebra and Fourier transforms.

use std::collections::BTreeSet;

use fx_nn::ops::{fft, linalg};
use fx_nn::prelude::*;

use crate::gradients::held;
use crate::support::{check, varied};

fn symmetric(x: &Tensor) -> Result<Tensor> {
    x + x.transpose(-2, -1)?
}

/// A matrix that is far from a singular one.
fn regular(x: &Tensor) -> Result<Tensor> {
    x + (ops::eye(x.size(-1)?, None, Some(DType::F64))? * 3.0)?
}

fn positive(x: &Tensor) -> Result<Tensor> {
    x.matmul(&x.transpose(-2, -1)?)? + ops::eye(2, None, Some(DType::F64))?
}

pub(crate) fn linalg(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "inv"(x: [2, 3, 3]) linalg::inv(&regular(x)?));
    held!(seen: "inverse"(x: [2, 2]) regular(x)?.inverse());
    held!(seen: "det"(x: [2, 3, 3]) linalg::det(&regular(x)?));
    held!(seen: "slogdet"(x: [2, 2, 2]) Ok(linalg::slogdet(&regular(x)?)?.1));
    held!(seen: "solve"(a: [2, 2, 2], b: [2, 3], c: [2]) {
        let a = &regular(a)?;
        let y = linalg::solve(a, b, true)?.sum(-1)? * linalg::solve(a, c, true)?;
        y? * linalg::solve(a, &b.t()?, false)?.sum(-2)?
    });
    held!(seen: "cholesky"(x: [2, 2, 2]) {
        let lower = linalg::cholesky(&positive(x)?, false)?;
        lower * linalg::cholesky(&positive(x)?, true)?.sum(-1)?
    });
    held!(seen: "qr"(x: [3, 2], y: [2, 3]) {
        let (q, r) = linalg::qr(x, "reduced")?;
        let (p, s) = linalg::qr(y, "complete")?;
        (q.matmul(&r.square()?)? + s.t()?)? + p.square()?.sum(..)?
    });
    held!(seen: "svd"(x: [2, 3]) {
        let (u, s, vh) = linalg::svd(x, true)?;
        (u.square()? * s)?.matmul(&vh.narrow(0, 0, 2)?.square()?)
    });
    held!(seen: "svdvals"(x: [2, 3, 2]) linalg::svdvals(x));
    held!(seen: "eigh"(x: [3, 3]) {
        let (values, vectors) = linalg::eigh(&symmetric(x)?, "L")?;
        vectors.square()? * values
    });
    held!(seen: "eigvalsh"(x: [2, 3, 3]) linalg::eigvalsh(&symmetric(x)?, "U"));
    held!(seen: "lstsq"(a: [3, 2], b: [3, 2]) Ok(linalg::lstsq(a, b, None, None)?.0));
    held!(seen: "pinv"(x: [3, 2], y: [2, 2]) {
        linalg::pinv(x, None, None, false)? + linalg::pinv(&symmetric(y)?, None, None, true)?.sum(..)?
    });
    held!(seen: "pinverse"(x: [2, 3]) x.pinverse(1e-15));
    held!(seen: "matrix_power"(x: [2, 2, 2]) x.matrix_power(3)? + regular(x)?.matrix_power(-2)?);
    held!(seen: "matrix_norm"(x: [2, 3, 2]) {
        let y = linalg::matrix_norm(x, "fro", (0, 2), false, None)? + linalg::matrix_norm(x, "nuc", (2, 0), false, None)?;
        let y = y? + linalg::matrix_norm(x, 1, (0, 2), false, None)?;
        let y = y? + linalg::matrix_norm(x, f64::NEG_INFINITY, (0, 2), false, None)?;
        y? + linalg::matrix_norm(x, -2, (0, 2), false, None)?
    });
    Ok(())
}

pub(crate) fn fft(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "fft"(x: [3, 2]) fft::fft(x, Some(4.into()), -1, None));
    held!(seen: "ifft"(x: [2, 3, 2]) fft::ifft(x, Some(2.into()), 1, Some("ortho")));
    held!(seen: "rfft"(x: [2, 5]) fft::rfft(x, None, -1, Some("forward")));
    held!(seen: "irfft"(x: [2, 3, 2]) fft::irfft(x, Some(5.into()), -1, None));
    held!(seen: "fft2"(x: [2, 3, 2]) fft::fft2(x, None, None, None));
    held!(seen: "ifft2"(x: [2, 3, 2]) fft::ifft2(x, Some([3, -1].into()), None, None));
    held!(seen: "fftn"(x: [2, 3, 2]) fft::fftn(x, None, 0, None));
    held!(seen: "ifftn"(x: [2, 3, 2]) fft::ifftn(x, None, .., None));
    held!(seen: "fftshift"(x: [2, 3, 2]) fft::fftshift(x, ..));
    held!(seen: "ifftshift"(x: [2, 3, 2]) fft::ifftshift(x, 1));
    Ok(())
}
