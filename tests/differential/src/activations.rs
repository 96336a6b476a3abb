//! The layers that are functions of elements, made from what a line says of them.

use fx_nn::module::Module;
use fx_nn::prelude::*;

use crate::call::Made;
use crate::layers::{Options, finished, finished_layer};

/// A layer, `None` where the name is unknown.
pub(crate) fn layer(name: &str, made: &Made) -> Option<Result<Box<dyn Module>>> {
    let o = Options(&made.options);
    finished_layer! { name, made,
        "CELU" => nn::CELU { alpha: o.float("alpha")? },
        "ELU" => nn::ELU { alpha: o.float("alpha")? },
        "GLU" => nn::GLU { dim: o.int("dim")? },
        "Hardshrink" => nn::Hardshrink { lambd: o.float("lambd")? },
        "Hardsigmoid" => nn::Hardsigmoid::new(),
        "Hardswish" => nn::Hardswish::new(),
        "Hardtanh" => nn::Hardtanh { min_val: o.float("min_val")?, max_val: o.float("max_val")? },
        "LogSigmoid" => nn::LogSigmoid::new(),
        "LogSoftmax" => nn::LogSoftmax::new(o.int("dim")?),
        "Mish" => nn::Mish::new(),
        "PReLU" => nn::PReLU::with_channels(o.size("num_parameters")?, 0.25)?,
        "RReLU" => nn::RReLU { lower: o.float("lower")?, upper: o.float("upper")?, ..nn::RReLU::default() },
        "SELU" => nn::SELU::new(),
        "Softmax" => nn::Softmax::new(o.int("dim")?),
        "Softmin" => nn::Softmin::new(o.int("dim")?),
        "Softplus" => nn::Softplus { beta: o.float("beta")?, threshold: o.float("threshold")? },
        "Softshrink" => nn::Softshrink { lambd: o.float("lambd")? },
        "Softsign" => nn::Softsign::new(),
        "Tanhshrink" => nn::Tanhshrink::new(),
        "Threshold" => nn::Threshold::new(o.float("threshold")?, o.float("value")?),
    }
}
