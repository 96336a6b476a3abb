//! Running products, norms, statistics and losses, called by their Rust signatures, by name; and the layers of losses.

use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::{Result, Sizes, TensorOrNumber};

use crate::args::Args;
use crate::call::Made;
use crate::functions::calls;
use crate::layers::{Options, finished, finished_layer};

calls! {
    /// The call of a function, `None` where the name is unknown.
    function, a:
    "all" => ops::all(a.next()?, a.next::<Dims>()?, a.next()?),
    "aminmax" => ops::aminmax(a.next()?, a.next()?, a.next()?),
    "any" => ops::any(a.next()?, a.next::<Dims>()?, a.next()?),
    "binary_cross_entropy" => ops::binary_cross_entropy(a.next()?, a.next()?, a.next()?, a.next()?),
    "binary_cross_entropy_with_logits" => ops::binary_cross_entropy_with_logits(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "corrcoef" => ops::corrcoef(a.next()?),
    "cosine_embedding_loss" => ops::cosine_embedding_loss(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "count_nonzero" => ops::count_nonzero(a.next()?, a.next::<Dims>()?),
    "cov" => ops::cov(a.next()?, a.next()?),
    "cummax" => ops::cummax(a.next()?, a.next()?),
    "cummin" => ops::cummin(a.next()?, a.next()?),
    "cumprod" => ops::cumprod(a.next()?, a.next()?),
    "diff" => ops::diff(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "gaussian_nll_loss" => ops::gaussian_nll_loss(a.next()?, a.next()?, a.next::<TensorOrNumber>()?, a.next()?, a.next()?, a.next()?),
    "hinge_embedding_loss" => ops::hinge_embedding_loss(a.next()?, a.next()?, a.next()?, a.next()?),
    "histc" => ops::histc(a.next()?, a.next()?, a.next()?, a.next()?),
    "huber_loss" => ops::huber_loss(a.next()?, a.next()?, a.next()?, a.next()?),
    "kl_div" => ops::kl_div(a.next()?, a.next()?, a.next()?, a.next()?),
    "kthvalue" => ops::kthvalue(a.next()?, a.next()?, a.next()?, a.next()?),
    "logcumsumexp" => ops::logcumsumexp(a.next()?, a.next()?),
    "logsumexp" => ops::logsumexp(a.next()?, a.next::<Dims>()?, a.next()?),
    "margin_ranking_loss" => ops::margin_ranking_loss(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "median" => ops::median(a.next()?, a.next()?, a.next()?),
    "mode" => ops::mode(a.next()?, a.next()?, a.next()?),
    "ctc_loss" => ops::ctc_loss(a.next()?, a.next()?, a.next::<Sizes>()?, a.next::<Sizes>()?, a.next()?, a.next()?, a.next()?),
    "multi_margin_loss" => ops::multi_margin_loss(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "multilabel_margin_loss" => ops::multilabel_margin_loss(a.next()?, a.next()?, a.next()?),
    "multilabel_soft_margin_loss" => ops::multilabel_soft_margin_loss(a.next()?, a.next()?, a.next()?, a.next()?),
    "nanmean" => ops::nanmean(a.next()?, a.next::<Dims>()?, a.next()?),
    "nanmedian" => ops::nanmedian(a.next()?, a.next()?, a.next()?),
    "nanquantile" => ops::nanquantile(a.next()?, a.next::<TensorOrNumber>()?, a.next()?, a.next()?, a.next()?),
    "nansum" => ops::nansum(a.next()?, a.next::<Dims>()?, a.next()?),
    "norm" => ops::norm(a.next()?, a.next()?, a.next::<Dims>()?, a.next()?),
    "normalize" => ops::normalize(a.next()?, a.next()?, a.next::<Dims>()?, a.next()?),
    "pairwise_distance" => ops::pairwise_distance(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "poisson_nll_loss" => ops::poisson_nll_loss(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "prod" => ops::prod(a.next()?, a.next()?, a.next()?),
    "quantile" => ops::quantile(a.next()?, a.next::<TensorOrNumber>()?, a.next()?, a.next()?, a.next()?),
    "smooth_l1_loss" => ops::smooth_l1_loss(a.next()?, a.next()?, a.next()?, a.next()?),
    "soft_margin_loss" => ops::soft_margin_loss(a.next()?, a.next()?, a.next()?),
    "std_mean" => ops::std_mean(a.next()?, a.next::<Dims>()?, a.next()?, a.next()?),
    "triplet_margin_loss" => ops::triplet_margin_loss(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "var_mean" => ops::var_mean(a.next()?, a.next::<Dims>()?, a.next()?, a.next()?),
    "vector_norm" => ops::vector_norm(a.next()?, a.next()?, a.next::<Dims>()?, a.next()?),
}

calls! {
    /// The call of a method, `None` where the name is unknown.
    method, a:
    "all" => a.next::<&Tensor>()?.all(a.next::<Dims>()?, a.next()?),
    "aminmax" => a.next::<&Tensor>()?.aminmax(a.next()?, a.next()?),
    "any" => a.next::<&Tensor>()?.any(a.next::<Dims>()?, a.next()?),
    "corrcoef" => a.next::<&Tensor>()?.corrcoef(),
    "count_nonzero" => a.next::<&Tensor>()?.count_nonzero(a.next::<Dims>()?),
    "cov" => a.next::<&Tensor>()?.cov(a.next()?),
    "cummax" => a.next::<&Tensor>()?.cummax(a.next()?),
    "cummin" => a.next::<&Tensor>()?.cummin(a.next()?),
    "cumprod" => a.next::<&Tensor>()?.cumprod(a.next()?),
    "diff" => a.next::<&Tensor>()?.diff(a.next()?, a.next()?, a.next()?, a.next()?),
    "histc" => a.next::<&Tensor>()?.histc(a.next()?, a.next()?, a.next()?),
    "kthvalue" => a.next::<&Tensor>()?.kthvalue(a.next()?, a.next()?, a.next()?),
    "logcumsumexp" => a.next::<&Tensor>()?.logcumsumexp(a.next()?),
    "logsumexp" => a.next::<&Tensor>()?.logsumexp(a.next::<Dims>()?, a.next()?),
    "median" => a.next::<&Tensor>()?.median(a.next()?, a.next()?),
    "mode" => a.next::<&Tensor>()?.mode(a.next()?, a.next()?),
    "nanmean" => a.next::<&Tensor>()?.nanmean(a.next::<Dims>()?, a.next()?),
    "nanmedian" => a.next::<&Tensor>()?.nanmedian(a.next()?, a.next()?),
    "nanquantile" => a.next::<&Tensor>()?.nanquantile(a.next::<TensorOrNumber>()?, a.next()?, a.next()?, a.next()?),
    "nansum" => a.next::<&Tensor>()?.nansum(a.next::<Dims>()?, a.next()?),
    "norm" => a.next::<&Tensor>()?.norm(a.next()?, a.next::<Dims>()?, a.next()?),
    "prod" => a.next::<&Tensor>()?.prod(a.next()?, a.next()?),
    "quantile" => a.next::<&Tensor>()?.quantile(a.next::<TensorOrNumber>()?, a.next()?, a.next()?, a.next()?),
}

/// A layer of a loss, `None` where the name is unknown.
pub(crate) fn layer(name: &str, made: &Made) -> Option<Result<Box<dyn Module>>> {
    let o = Options(&made.options);
    finished_layer! { name, made,
        "BCELoss" => nn::BCELoss { reduction: o.text("reduction"), ..nn::BCELoss::default() },
        "BCEWithLogitsLoss" => nn::BCEWithLogitsLoss { reduction: o.text("reduction"), ..nn::BCEWithLogitsLoss::default() },
        "CTCLoss" => nn::CTCLoss { blank: o.int("blank")?, reduction: o.text("reduction"), zero_infinity: o.flag("zero_infinity") },
        "CosineEmbeddingLoss" => nn::CosineEmbeddingLoss { margin: o.float("margin")?, reduction: o.text("reduction") },
        "GaussianNLLLoss" => nn::GaussianNLLLoss { full: o.flag("full"), eps: o.float("eps")?, reduction: o.text("reduction") },
        "HingeEmbeddingLoss" => nn::HingeEmbeddingLoss { margin: o.float("margin")?, reduction: o.text("reduction") },
        "HuberLoss" => nn::HuberLoss { reduction: o.text("reduction"), delta: o.float("delta")? },
        "KLDivLoss" => nn::KLDivLoss { reduction: o.text("reduction"), log_target: o.flag("log_target") },
        "L1Loss" => nn::L1Loss { reduction: o.text("reduction") },
        "MarginRankingLoss" => nn::MarginRankingLoss { margin: o.float("margin")?, reduction: o.text("reduction") },
        "MultiLabelMarginLoss" => nn::MultiLabelMarginLoss { reduction: o.text("reduction") },
        "MultiLabelSoftMarginLoss" => nn::MultiLabelSoftMarginLoss { reduction: o.text("reduction"), ..nn::MultiLabelSoftMarginLoss::default() },
        "MultiMarginLoss" => nn::MultiMarginLoss { p: o.int("p")?, margin: o.float("margin")?, reduction: o.text("reduction"), ..nn::MultiMarginLoss::default() },
        "NLLLoss" => nn::NLLLoss { ignore_index: o.int("ignore_index")?, reduction: o.text("reduction"), ..nn::NLLLoss::default() },
        "PoissonNLLLoss" => nn::PoissonNLLLoss { log_input: o.flag("log_input"), full: o.flag("full"), eps: o.float("eps")?, reduction: o.text("reduction") },
        "SmoothL1Loss" => nn::SmoothL1Loss { reduction: o.text("reduction"), beta: o.float("beta")? },
        "SoftMarginLoss" => nn::SoftMarginLoss { reduction: o.text("reduction") },
        "TripletMarginLoss" => nn::TripletMarginLoss { margin: o.float("margin")?, p: o.float("p")?, eps: o.float("eps")?, swap: o.flag("swap"), reduction: o.text("reduction") },
    }
}
