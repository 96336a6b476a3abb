//! The layers of losses, made from what a line says of them.

use fx_nn::module::Module;
use fx_nn::prelude::*;

use crate::call::Made;
use crate::layers::{Options, finished, finished_layer};

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
