//! Problems found by porting models: checkpoints in half precision, computed tables, missing
//! options, awkward calls.

use std::collections::HashMap;
use std::path::PathBuf;

use candle_core::{DType as CandleDType, Device as CandleDevice, Tensor as CandleTensor};
use fx_nn::prelude::*;
use fx_nn::weights::{self, Save};

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!(
        "fx_defect_{name}_{}.safetensors",
        std::process::id()
    ))
}

#[test]
fn defect_n01_half_precision_checkpoints_load_and_save() -> Result<()> {
    for dtype in [CandleDType::BF16, CandleDType::F16] {
        let path = scratch("n01");
        let ones = |shape: &[usize]| CandleTensor::ones(shape, dtype, &CandleDevice::Cpu);
        let tensors = HashMap::from([
            ("weight", ones(&[4, 4]).map_err(Error::other)?),
            ("bias", ones(&[4]).map_err(Error::other)?),
        ]);
        candle_core::safetensors::save(&tensors, &path).map_err(Error::other)?;
        // Into single precision, and into the type of the file.
        let mut wide = nn::Linear::new(4, 4)?;
        weights::load(&mut wide, &path)?;
        assert_eq!(wide.weight.dtype()?, DType::F32);
        let mut half = nn::Linear::new(4, 4)?;
        nn::to_dtype(&mut half, DType::BF16)?;
        weights::load(&mut half, &path)?;
        assert_eq!(half.weight.dtype()?, DType::BF16);
        let x = Tensor::ones((1, 4))?;
        assert_eq!(wide.forward(&x)?.to_vec()?, [5.0; 4]);
        Save::new().dtype(DType::F16).write(&half, &path)?;
        weights::load(&mut wide, &path)?;
        assert_eq!(wide.forward(&x)?.to_vec()?, [5.0; 4]);
        std::fs::remove_file(&path).map_err(Error::other)?;
    }
    Ok(())
}

/// A layer with a table that it computes.
#[derive(Module)]
struct Rotary {
    proj: nn::Linear,
    #[module(buffer, persistent = false)]
    table: Tensor,
}

#[trace]
impl Rotary {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.proj.forward(x)? * &self.table
    }
}

#[test]
fn defect_n07_computed_tables_stay_out_of_files_and_follow_the_type() -> Result<()> {
    let rotary = |by: f32| -> Result<Rotary> {
        let table = Tensor::from_vec(vec![by, by], 2)?;
        let proj = nn::Linear::new(2, 2)?;
        Ok(Rotary { proj, table })
    };
    let path = scratch("n07");
    weights::save(&rotary(2.0)?, &path)?;
    let mut loaded = rotary(3.0)?;
    weights::load(&mut loaded, &path)?;
    assert_eq!(loaded.table.to_vec()?, [3.0, 3.0]);
    std::fs::remove_file(&path).map_err(Error::other)?;
    nn::to_dtype(&mut loaded, DType::BF16)?;
    assert_eq!(loaded.table.dtype()?, DType::BF16);
    let x = Tensor::ones((1, 2))?.to_dtype(DType::BF16)?;
    let gm = symbolic_trace(&loaded)?;
    assert_eq!(gm.forward::<Tensor>(&x)?.dtype()?, DType::BF16);
    Ok(())
}

#[test]
fn defect_m04_a_sequential_has_names_and_takes_boxes() -> Result<()> {
    let mut stem = nn::Sequential::new().add_module("conv0", nn::Conv2d::new(1, 2, 3)?);
    let blocks: Vec<Box<dyn Module>> =
        vec![Box::new(nn::ReLU::new()), Box::new(nn::Flatten::default())];
    for block in blocks {
        stem = stem.push(block);
    }
    assert_eq!(stem.layers.keys().collect::<Vec<_>>(), ["conv0", "1", "2"]);
    let gm = symbolic_trace(&stem)?;
    assert!(gm.graph().nodes().any(|node| node.name() == "conv0"));
    let x = Tensor::rand((1, 1, 4, 4))?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert_eq!(
        loaded.forward::<Tensor>(&x)?.to_vec()?,
        stem.forward(&x)?.to_vec()?
    );
    Ok(())
}

#[test]
fn defect_m04_all_modules_of_a_type_are_changed_and_shared_ones_stay_shared() -> Result<()> {
    #[derive(Module)]
    struct Net {
        first: std::sync::Arc<nn::Conv2d>,
        second: std::sync::Arc<nn::Conv2d>,
        head: nn::Linear,
    }
    let shared = std::sync::Arc::new(nn::Conv2d::new(1, 1, 1)?);
    let mut net = Net {
        first: shared.clone(),
        second: shared,
        head: nn::Linear::new(2, 2)?,
    };
    let before = net.head.weight.to_vec()?;
    let (mut paths, mut problem) = (Vec::new(), Ok(()));
    net.modules_mut::<nn::Conv2d>(|path, conv| {
        paths.push(path.to_string());
        if problem.is_ok() {
            problem = nn::init::constant(&mut conv.weight, 3.0);
        }
    });
    problem?;
    assert_eq!(paths, ["first"]);
    assert!(std::sync::Arc::ptr_eq(&net.first, &net.second));
    assert_eq!(net.second.weight.to_vec()?, [3.0]);
    assert_eq!(net.head.weight.to_vec()?, before);
    Ok(())
}

#[test]
fn defect_m04_gradients_and_what_mobilenets_need_are_here() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let x = Tensor::from_vec(vec![1.0f32, 2.0], (1, 2))?;
    let gradients = layer.forward(&x)?.sum(..)?.backward()?;
    let gradient = gradients.get(&layer.weight)?.expect("the layer is trained");
    assert_eq!(gradient.to_vec()?, [1.0, 2.0]);
    let x = Tensor::from_vec(vec![-4.0f32, 0.0, 3.0], 3)?;
    assert_eq!(nn::Hardswish::new().forward(&x)?.to_vec()?, [0.0, 0.0, 3.0]);
    assert_eq!(
        nn::Hardsigmoid::new().forward(&x)?.to_vec()?,
        [0.0, 0.5, 1.0]
    );
    let dropped = ops::stochastic_depth(&x, 1.0, "batch", true)?;
    assert_eq!(dropped.abs()?.sum(..)?.item()?, 0.0);
    Ok(())
}

#[test]
fn defect_m05_options_take_plain_numbers() -> Result<()> {
    let conv = nn::Conv2d::new(3, 64, 3)?
        .stride(2)
        .padding((1, 0))
        .bias(false);
    assert_eq!(
        (conv.stride.0, conv.padding.1, conv.bias.is_none()),
        (2, 0, true)
    );
    let pool = nn::MaxPool2d::new(3).stride(2).ceil_mode(true);
    assert_eq!((pool.stride.1, pool.ceil_mode), (2, true));
    let norm = nn::BatchNorm2d::new(4)?
        .eps(1e-3)
        .momentum(0.01)
        .affine(false);
    assert_eq!(
        (norm.eps, norm.momentum, norm.weight.is_none()),
        (1e-3, 0.01, true)
    );
    let lstm = nn::LSTM::new(2, 3)?
        .num_layers(2)?
        .bidirectional(true)?
        .bias(false);
    assert_eq!(lstm.weights.len(), 8);
    assert!(lstm.dropout(2.0).is_err());
    // Lists of references, and numbers where a tensor may stand.
    let (a, b) = (Tensor::ones(2)?, Tensor::zeros(1)?);
    let joined = ops::cat(&[&a, &b, &a], 0)?;
    assert_eq!(
        ops::r#where(&joined.gt(0.0)?, 2.0, -1.0)?.to_vec()?,
        [2.0, 2.0, -1.0, 2.0, 2.0]
    );
    Ok(())
}

#[test]
fn defect_m05_sizes_of_a_traced_tensor_are_counts() -> Result<()> {
    let halves = traced!(|x: &Tensor| {
        let n = x.size(0)?;
        let [a, b] = x.split(n.floordiv(2)?, 0)?.unpack()?;
        let (top, _) = (a - b)?.topk(n.floordiv(2)?, 0, true, true)?;
        Ok(top)
    });
    let gm = symbolic_trace(halves)?;
    for n in [4usize, 6] {
        let x = Tensor::arange(0, n as i64)?;
        assert_eq!(gm.forward::<Tensor>(&x)?.dims()?, [n / 2]);
    }
    Ok(())
}
