//! Forms of programs that torch.export wrote, with PyTorch's results, and what it writes, at two sizes (`forms.py --recorded`
//! writes both).

use std::path::PathBuf;

use fx_nn::control::{Cond, Scan, While};
use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_torch::Loader;

use crate::checks::{call_of, run_off};
use crate::support::{arrays, of_kind};

pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/forms")
        .join(name)
}

fn read(name: &str) -> Result<GraphModule> {
    let training = name.contains(".train");
    let path = file(&format!("{name}.pt2"));
    Loader::new().trainable(training).load(path)
}

/// A program as read, compiled, saved and loaded, at both sizes, each from a fresh file.
pub(crate) fn check(name: &str) -> Result<GraphModule> {
    for at in 0..2 {
        let arrays_at = file(&format!("{name}_{at}.npz"));
        let gm = read(name)?;
        let first = arrays(&file(&format!("{name}_0.npz")))?;
        let like = Compile::new(Cpu::new()).like(call_of(&gm, of_kind(&first, "in_"))?);
        let again = GraphModule::from_bytes(&gm.to_bytes()?)?;
        let off = run_off(&again, &gm, &arrays_at)?;
        assert!(off <= 1.0, "{name} saved at {at}: {off:e}\n{}", gm.graph());
        let off = run_off(&gm, &gm, &arrays_at)?;
        assert!(off <= 1.0, "{name} read at {at}: {off:e}\n{}", gm.graph());
        // Its tensors are those of the module that it was made of.
        let gm = read(name)?;
        let off = run_off(&gm.compile(like)?, &gm, &arrays_at)?;
        assert!(
            off <= 1.0,
            "{name} compiled at {at}: {off:e}\n{}",
            gm.graph()
        );
    }
    read(name)
}

#[test]
fn branches_are_regions() -> Result<()> {
    let gm = check("cond_size")?;
    gm.submodule_as::<Cond>("cond_0")?;
    Ok(())
}

#[test]
fn loops_and_scans_are_regions() -> Result<()> {
    check("while_count")?.submodule_as::<While>("while_loop_0")?;
    check("scan_state")?.submodule_as::<Scan>("scan_0")?;
    check("map_outside")?.submodule_as::<Scan>("scan_0")?;
    Ok(())
}

#[test]
fn sizes_of_data_are_those_of_the_run() -> Result<()> {
    let gm = check("data_item")?;
    // The program was checked for 0 to 4.
    let x = Tensor::ones(6)?;
    let error = gm.forward::<Value>((&x, &Tensor::from_vec(vec![5i64], ())?));
    let error = error
        .map(|_| String::new())
        .unwrap_or_else(|e| e.to_string());
    assert!(error.contains("the program is for 0..=4"), "{error}");
    Ok(())
}

/// A run writes the tensors that it is given, as PyTorch's does; a result has what it had before or after, as there.
#[test]
fn inputs_are_written_in_place() -> Result<()> {
    check("input_returned")?;
    check("input_nested")?;
    let gm = read("input_returned")?;
    // Through a view whose elements are not next to each other.
    let whole = Tensor::from_vec(vec![1f32, -2.0, 3.0, 4.0, -5.0, 6.0], (3, 2))?;
    let _: Value = gm.forward(&whole.t()?)?;
    assert_eq!(whole.to_vec()?, [2.0, 0.0, 6.0, 8.0, 0.0, 12.0]);
    // Several elements in one place cannot be written.
    let one = ops::expand(&Tensor::ones((1, 2))?, [3, 2])?;
    let error = gm.forward::<Value>(&one);
    let error = error
        .map(|_| String::new())
        .unwrap_or_else(|e| e.to_string());
    assert!(error.contains("one place in memory"), "{error}");
    Ok(())
}

#[test]
fn buffers_are_written_in_place() -> Result<()> {
    check("buffer_counted")?;
    check("buffer_cache")?;
    check("weight_written.core")?;
    Ok(())
}

/// A clone of a module shares its buffers, and a saved one has them as they were.
#[test]
fn a_saved_program_has_its_buffers_as_they_were() -> Result<()> {
    let gm = read("buffer_counted")?;
    let saved = gm.to_bytes()?;
    let x = Tensor::ones((4, 2))?;
    for _ in 0..3 {
        let _: Value = gm.forward(&x)?;
    }
    let calls = |gm: &GraphModule| {
        let calls = gm.attributes().tensor("calls")?.clone();
        Tensor::from_value(calls)?.item()
    };
    assert_eq!(calls(&gm)?, 3.0);
    assert_eq!(calls(&GraphModule::from_bytes(&saved)?)?, 0.0);
    Ok(())
}

#[test]
fn what_is_written_through_parts_shows_in_the_whole() -> Result<()> {
    check("view_parts")?;
    check("region_gradients")?;
    Ok(())
}

/// Training as it was exported with `trainable`; without, a batch norm uses and keeps its statistics.
#[test]
fn statistics_move_in_training_alone() -> Result<()> {
    check("norm_rows.train")?;
    let gm = fx_torch::load(file("norm_rows.train.pt2"))?;
    let mean = |gm: &GraphModule| {
        let mean = gm.attributes().tensor("bn.running_mean")?.clone();
        Tensor::from_value(mean)?.to_vec()
    };
    let before = mean(&gm)?;
    let _: Value = gm.forward(&Tensor::randn((4, 3))?)?;
    assert_eq!(mean(&gm)?, before);
    Ok(())
}

/// Named tuples are tuples; ordered dicts are dicts.
#[test]
fn classes_of_structures_are_tuples_and_dicts() -> Result<()> {
    check("tree_classes")?;
    Ok(())
}

/// The gradient of a parameter that a run reads through others of its operators.
#[test]
fn parameters_are_trained() -> Result<()> {
    let path = file("weight_written.core.pt2");
    let gm = Loader::new().trainable(true).load(path)?;
    let y: Value = gm.forward(&Tensor::ones((4, 5))?)?;
    let Value::Tuple(items) = &y else {
        return Err(Error::msg("no tuple"));
    };
    let loss = ops::sum(&Tensor::from_value(items[1].clone())?, [0, 1], false)?;
    let gradients = loss.backward()?;
    let weight = Tensor::from_value(gm.attributes().tensor("out.weight")?.clone())?;
    assert!(gradients.get(&weight)?.is_some());
    Ok(())
}
