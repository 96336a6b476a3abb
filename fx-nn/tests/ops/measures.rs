//! The gradients of running products, norms, statistics and losses.

use std::collections::BTreeSet;

use fx_nn::prelude::*;

use crate::gradients::{held, ints};
use crate::support::{check, varied};

pub(crate) fn measures(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "cumprod"(x: [2, 5]) ops::cumprod(x, 1));
    held!(seen: "logcumsumexp"(x: [2, 5]) ops::logcumsumexp(x, 0));
    held!(seen: "cummax"(x: [2, 5]) Ok(ops::cummax(x, 1)?.0));
    held!(seen: "cummin"(x: [2, 5]) Ok(ops::cummin(x, 1)?.0));
    held!(seen: "prod"(x: [2, 5]) ops::prod(x, Some(0), false)? + ops::prod(x, None, false)?);
    held!(seen: "diff"(x: [2, 5]) ops::diff(x, 2, -1, None, None));
    held!(seen: "logsumexp"(x: [2, 5]) ops::logsumexp(x, 1, true));
    held!(seen: "vector_norm"(x: [2, 5]) ops::vector_norm(x, 3.0, 1, false));
    held!(seen: "norm"(x: [2, 5]) ops::norm(x, 2.0, .., false));
    held!(seen: "normalize"(x: [2, 5]) ops::normalize(x, 2.0, 1, 1e-12));
    held!(seen: "nansum"(x: [2, 5]) ops::nansum(x, 1, false));
    held!(seen: "nanmean"(x: [2, 5]) ops::nanmean(x, 1, false));
    held!(seen: "aminmax"(x: [2, 5]) {
        let (least, most) = ops::aminmax(x, Some(1), false)?;
        (least * 2.0)? + most
    });
    held!(seen: "std_mean"(x: [2, 5]) {
        let (std, mean) = ops::std_mean(x, 1, true, false)?;
        std + mean
    });
    held!(seen: "var_mean"(x: [2, 5]) {
        let (var, mean) = ops::var_mean(x, 1, true, false)?;
        var + mean
    });
    held!(seen: "median"(x: [2, 5]) Ok(ops::median(x, 1, false)?.0));
    held!(seen: "nanmedian"(x: [2, 5]) Ok(ops::nanmedian(x, 0, false)?.0));
    held!(seen: "mode"(x: [2, 5]) Ok(ops::mode(x, 1, false)?.0));
    held!(seen: "kthvalue"(x: [2, 5]) Ok(ops::kthvalue(x, 2, 1, false)?.0));
    held!(seen: "quantile"(x: [2, 5]) ops::quantile(x, 0.3, Some(1), false, "linear"));
    held!(seen: "nanquantile"(x: [2, 5]) ops::nanquantile(x, 0.3, None, false, "linear"));
    held!(seen: "cov"(x: [2, 5]) ops::cov(x, 1));
    // Rows of such values differ by a constant: of squares, they are not each other in full.
    held!(seen: "corrcoef"(x: [2, 5]) ops::corrcoef(&(x * x)?));
    Ok(())
}

pub(crate) fn losses(seen: &mut BTreeSet<&'static str>) -> Result<()> {
    held!(seen: "smooth_l1_loss"(x: [2, 3], y: [3]) ops::smooth_l1_loss(x, y, "mean", 0.7));
    held!(seen: "huber_loss"(x: [2, 3], y: [3]) ops::huber_loss(x, y, "none", 0.7));
    held!(seen: "binary_cross_entropy"(x: [2, 3], y: [2, 3]) {
        let (x, y) = (((x * 0.4)? + 0.5)?, ((y * 0.4)? + 0.5)?);
        ops::binary_cross_entropy(&x, &y, None, "mean")
    });
    held!(seen: "binary_cross_entropy_with_logits"(x: [2, 3], y: [2, 3], w: [3]) {
        ops::binary_cross_entropy_with_logits(x, y, None, "sum", Some(w))
    });
    held!(seen: "kl_div"(x: [2, 3], y: [2, 3]) {
        let plain = ops::kl_div(x, &(y + 2.0)?, "batchmean", false)?;
        plain + ops::kl_div(x, y, "mean", true)?
    });
    held!(seen: "poisson_nll_loss"(x: [2, 3], y: [2, 3]) {
        let logs = ops::poisson_nll_loss(x, &(y + 2.5)?, true, true, 1e-8, "mean")?;
        logs + ops::poisson_nll_loss(&(x + 2.0)?, y, false, false, 1e-8, "sum")?
    });
    held!(seen: "gaussian_nll_loss"(x: [2, 3], y: [2, 3], var: [2, 1]) {
        ops::gaussian_nll_loss(x, y, (var + 2.0)?, true, 1e-6, "mean")
    });
    let signs = ops::sign(&varied(&[2, 3], 9)?)?;
    held!(seen: "hinge_embedding_loss"(x: [2, 3]) using signs: ops::hinge_embedding_loss(x, &signs, 0.7, "mean"));
    held!(seen: "margin_ranking_loss"(x: [2, 3], y: [2, 3]) using signs: ops::margin_ranking_loss(x, y, &signs, 0.5, "sum"));
    held!(seen: "soft_margin_loss"(x: [2, 3]) using signs: ops::soft_margin_loss(x, &signs, "mean"));
    let classes = ints(&[2, 0], &[2])?;
    held!(seen: "multi_margin_loss"(x: [2, 3], w: [3]) using classes: {
        ops::multi_margin_loss(x, &classes, 2, 1.0, Some(w), "mean")
    });
    let words = ints(&[1, 1, 2, 0], &[2, 2])?;
    held!(seen: "ctc_loss"(x: [5, 2, 3]) using words: {
        ops::ctc_loss(&ops::log_softmax(x, -1)?, &words, [5, 4], [2, 1], 0, "mean", true)
    });
    let labels = ints(&[0, 2, -1, 1, -1, -1], &[2, 3])?;
    held!(seen: "multilabel_margin_loss"(x: [2, 3]) using labels: ops::multilabel_margin_loss(x, &labels, "mean"));
    held!(seen: "multilabel_soft_margin_loss"(x: [2, 3], y: [2, 3]) {
        ops::multilabel_soft_margin_loss(x, y, None, "mean")
    });
    held!(seen: "pairwise_distance"(x: [2, 3], y: [3]) ops::pairwise_distance(x, y, 2.0, 1e-6, true));
    held!(seen: "triplet_margin_loss"(x: [2, 3], y: [2, 3], z: [2, 3]) {
        ops::triplet_margin_loss(x, y, z, 2.0, 2.0, 1e-6, true, "mean")
    });
    let rows = ints(&[1, -1], &[2])?;
    held!(seen: "cosine_embedding_loss"(x: [2, 3], y: [2, 3]) using rows: {
        ops::cosine_embedding_loss(x, y, &rows, -0.9, "sum")
    });
    Ok(())
}
