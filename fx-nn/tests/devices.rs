//! Devices: where tensors and layers are created, how they move, and the errors for devices that do
//! not exist.

use std::path::{Path, PathBuf};

use fx_nn::prelude::*;
use fx_nn::with_device;

/// A device that no machine of ours has.
const ABSENT: Device = Device::Cuda(100);

#[test]
fn what_is_not_there_is_named_with_its_feature() -> Result<()> {
    let x = Tensor::ones(2)?;
    let mut layer = nn::Linear::new(2, 2)?;
    let refusals = [
        x.to_device(ABSENT).err(),
        nn::to_device(&mut layer, ABSENT).err(),
        with_device(ABSENT, || ()).err(),
        with_device(Device::Metal(100), || ()).err(),
    ];
    for refusal in refusals {
        let text = refusal.ok_or_else(|| Error::msg("a refusal"))?.to_string();
        assert!(
            text.contains(":100 cannot be used") && text.contains("the feature `"),
            "{text}"
        );
    }
    assert_eq!(layer.weight.device()?, Device::Cpu);
    Ok(())
}

#[test]
fn a_scope_is_left_when_its_body_unwinds() -> Result<()> {
    let unwound = std::panic::catch_unwind(|| with_device(Device::Cpu, || panic!("on purpose")));
    assert!(unwound.is_err());
    assert_eq!(Tensor::ones(2)?.device()?, Device::Cpu);
    Ok(())
}

#[derive(Module)]
struct Tied {
    first: nn::Linear,
    second: nn::Linear,
    #[module(buffer)]
    steps: Tensor,
}

#[test]
fn a_module_that_moves_keeps_what_it_shares_and_trains() -> Result<()> {
    let first = nn::Linear::new(2, 2)?;
    let mut second = nn::Linear::new(2, 2)?;
    second.weight = first.weight.clone();
    let steps = Tensor::from_vec(vec![3i64], 1)?;
    let mut tied = Tied {
        first,
        second,
        steps,
    };
    let before = tied.first.weight.to_vec()?;
    nn::to_device(&mut tied, Device::Cpu)?;
    let ids = |x: &Tensor| x.candle().map(candle_core::Tensor::id);
    assert_eq!(ids(&tied.first.weight)?, ids(&tied.second.weight)?);
    assert!(tied.first.weight.candle()?.is_variable());
    assert!(!tied.steps.candle()?.is_variable());
    assert_eq!(tied.first.weight.to_vec()?, before);
    assert_eq!(tied.steps.dtype()?, DType::I64);
    Ok(())
}

#[test]
fn a_move_is_recorded() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x.to_device(Device::Cpu)? + 1.0))?;
    assert_eq!(gm.forward::<Tensor>(&Tensor::ones(2)?)?.to_vec()?, [2.0; 2]);
    let code = gm.code();
    assert!(code.contains("Device::Cpu"), "{code}");
    let text = gm.graph().to_string();
    assert_eq!(text.parse::<fx_nn::ir::Graph>()?.to_string(), text);
    Ok(())
}

/// All sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => sources(&path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}

#[test]
fn one_module_names_the_processor() -> Result<()> {
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    sources(&root, &mut found).map_err(Error::msg)?;
    let mut naming = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).map_err(Error::msg)?;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let names = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .any(|line| line.contains("Device::Cpu") || line.contains("Opened::Cpu"));
        let own = path.strip_prefix(&root).map_err(Error::msg)?.to_owned();
        if names && own != Path::new("kernels/testing.rs") {
            naming.push(own);
        }
    }
    assert_eq!(naming, [Path::new("device.rs")]);
    Ok(())
}
