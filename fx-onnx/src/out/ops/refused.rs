//! The functions that ONNX cannot have, each with the reason.

use fx_nn::{function, function_table, ops};

use crate::out::Rule;

/// Reasons, and the functions that have them.
macro_rules! refused {
    ($($reason:literal: $($($function:ident)::+),+;)*) => {$(
        function_table! { Rule { $(function!(ops::$($function)::+) => Rule::refused($reason)),+ } }
    )*};
}

refused! {
    "ONNX has no inverse error function": erfinv;
    "ONNX has no gamma function": special::digamma, special::gammainc, special::gammaincc, special::lgamma,
        special::polygamma, special::zeta;
    "ONNX has no normal distribution, and its error function has no digits far from 0": special::erfcx,
        special::log_ndtr, special::ndtri;
    "ONNX has no Bessel functions": special::i0, special::i0e, special::i1, special::i1e;
    "ONNX has no common divisors and multiples": gcd, lcm;
    "ONNX has running sums, and no other running results, up to opset 23": cummax, cummin, cumprod, logcumsumexp;
    "ONNX has no factorizations of matrices": linalg::cholesky, linalg::eigh, linalg::eigvalsh, linalg::inv,
        linalg::inverse, linalg::lstsq, linalg::matrix_norm, linalg::pinv, linalg::pinverse, linalg::qr,
        linalg::slogdet, linalg::solve, linalg::svd, linalg::svdvals, linalg::cond, linalg::householder_product,
        linalg::lu, linalg::lu_factor, linalg::lu_unpack, linalg::matrix_exp, linalg::matrix_rank,
        linalg::solve_triangular, linalg::tensorinv, linalg::tensorsolve;
    "ONNX's transform takes other layouts of complex numbers in each version": fft::fft, fft::fft2, fft::fftn,
        fft::ifft, fft::ifft2, fft::ifftn, fft::irfft, fft::rfft, fft::hfftn, fft::ihfftn,
        fft::irfftn, fft::rfftn, istft, stft;
    "ONNX has no counts of values": bincount, histc, mode, unique_consecutive;
    "ONNX has no quantiles": quantile, nanquantile, nanmedian;
    "ONNX has no CTC loss": ctc_loss;
    "the number of results depends on the values of a mask and a source at once": masked_scatter;
    "ONNX's unpooling takes places through the whole tensor": max_unpool1d, max_unpool2d, max_unpool3d;
    "an adaptive pool with places needs windows of several sizes": adaptive_max_pool1d_with_indices,
        adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices;
    "ONNX draws no permutations": randperm;
    "ONNX draws with replacement alone, and from other numbers": multinomial;
}

// What the user writes by other functions.
refused! {
    "write it by `unsqueeze` and `cat`": column_stack;
    "write it by `unsqueeze` and `expand`": meshgrid;
    "write it by `expand` and `stack`": cartesian_prod;
    "its number of rows is that of pairs: write them by `gather`": combinations;
    "write it by `pad` and `cat`": block_diag;
    "write it by `einsum` and `reshape`": kron;
    "write it by `einsum`": tensordot, tensordot_dims;
    "write it by `pow`": vander;
    "write it by `roll` and products": cross;
    "write it by differences and `norm`": cdist;
    "write it by `mean` and `matmul`": cov, corrcoef;
    "write it by `gather`, or a product with `eye`": diag;
    "write it by a product with `eye`": diag_embed;
    "write it by `gather`": diagonal, take_along_dim;
    "write it by `scatter`": diagonal_scatter;
    "write it by `index_copy`": select_scatter, slice_scatter;
    "write it by comparisons and `sum`, or `bucketize` for one row": searchsorted;
    "write it by `flip` and `transpose`": rot90;
    "write it by `reshape` and `permute`": pixel_unshuffle;
    "write it as a convolution with `eye`": unfold;
    "write it by `arange`": linspace, logspace;
    "write it by `log` and `square`": gaussian_nll_loss;
    "write it by `gather` and `relu`": multi_margin_loss;
    "the number of its labels depends on their values": multilabel_margin_loss;
    "write it by `matmul`": linalg::matrix_power;
    "write it by `roll`": fft::fftshift, fft::ifftshift;
}
