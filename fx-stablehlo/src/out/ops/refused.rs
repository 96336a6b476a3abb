//! The functions that a program cannot have, each with the reason.

use fx_nn::{function, function_table, ops};

use crate::out::Rule;

/// Reasons, and the functions that have them.
macro_rules! refused {
    ($($reason:literal: $($($function:ident)::+),+;)*) => {$(
        function_table! { Rule { $(function!(ops::$($function)::+) => Rule::refused($reason)),+ } }
    )*};
}

refused! {
    "the size of its result is known by a run alone, and a program's sizes are fixed": argwhere, bincount, masked_scatter,
        masked_select, nonzero, unique, unique_consecutive;
    "StableHLO has no normal distribution, and its error function has no digits far from 0": special::erfcx,
        special::log_ndtr, special::ndtri;
    "the gamma functions of StableHLO have other values at poles": special::digamma, special::lgamma,
        special::polygamma, special::zeta;
    "StableHLO has no incomplete gamma functions": special::gammainc, special::gammaincc;
    "StableHLO has one Bessel function alone, of order 1 and scaled": special::i0, special::i0e, special::i1, special::i1e;
    "StableHLO has no common divisors and multiples": gcd, lcm;
    "StableHLO has no factorizations of matrices but Cholesky's": linalg::cholesky, linalg::det, linalg::eigh,
        linalg::eigvalsh, linalg::inv, linalg::inverse, linalg::lstsq, linalg::matrix_norm, linalg::pinv,
        linalg::pinverse, linalg::qr, linalg::slogdet, linalg::solve, linalg::svd, linalg::svdvals, linalg::cond,
        linalg::householder_product, linalg::lu, linalg::lu_factor, linalg::lu_unpack, linalg::matrix_exp,
        linalg::matrix_rank, linalg::solve_triangular, linalg::tensorinv, linalg::tensorsolve;
    "complex numbers are pairs of floats in fx, and values of their own in StableHLO": fft::fft, fft::fft2, fft::fftn,
        fft::ifft, fft::ifft2, fft::ifftn, fft::irfft, fft::rfft, fft::hfftn, fft::ihfftn,
        fft::irfftn, fft::rfftn, istft, stft;
    "write it by `sort` and `gather`": mode, quantile, nanquantile, nanmedian, randperm, multinomial;
    "write it by comparisons and `sum`": histc;
    "write it by `sort`, or as a loop": cummax, cummin;
    "its paths are a loop over both lengths: compute the loss outside of the program": ctc_loss;
    "an adaptive pool with places needs windows of several sizes": adaptive_max_pool1d_with_indices,
        adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices;
    "write it by `log` and `square`": gaussian_nll_loss;
    "write it by `gather` and `relu`": multi_margin_loss, multilabel_margin_loss;
    "write it by `mean` and `matmul`": cov, corrcoef;
    "write it by differences and `norm`": cdist;
    "write it by `roll` and products": cross;
    "write it by `pow`": vander;
    "write it by `index_select`": combinations;
    "write it by `scatter`": diagonal_scatter;
}
