//! The memory of saving and loading beyond the weights; alone in its program, because it counts
//! every allocation.

use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::weights;
use peak_alloc::PeakAlloc;

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

/// The peak memory beyond that in use before, over the bytes of the weights.
fn peak<T>(weights: usize, run: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let before = PEAK.current_usage();
    PEAK.reset_peak_usage();
    let result = run()?;
    let most = PEAK.peak_usage().saturating_sub(before);
    Ok((result, most as f64 / weights as f64))
}

/// Linear layers of so many rows and columns.
fn layers(count: usize, width: usize) -> Result<nn::Sequential> {
    let mut layers = nn::Sequential::new();
    for _ in 0..count {
        layers = layers.push(nn::Linear::new(width, width)?);
    }
    Ok(layers)
}

#[test]
fn weights_are_in_memory_once() -> Result<()> {
    let name = format!("fx_memory_{}.safetensors", std::process::id());
    let path = std::env::temp_dir().join(name);
    // Many tensors, and one alone.
    for (count, width) in [(16, 512), (1, 2048)] {
        let model = layers(count, width)?;
        let bytes = count * (width * width + width) * 4;
        let gm = symbolic_trace(&model)?;
        let ((), save) = peak(bytes, || gm.save(&path))?;
        let (loaded, load) = peak(bytes, || GraphModule::load(&path))?;
        assert_eq!(loaded.state_dict().len(), 2 * count);
        drop(loaded);
        let ((), save_weights) = peak(bytes, || weights::save(&model, &path))?;
        let mut other = layers(count, width)?;
        let ((), load_weights) = peak(bytes, || weights::load(&mut other, &path))?;
        let found = [save, load, save_weights, load_weights];
        assert!(
            save < 0.1 && load < 1.1 && save_weights < 0.1 && load_weights < 0.1,
            "{count} layers of {width}: {found:?}"
        );
        assert!(load > 0.99, "the weights were not counted: {found:?}");
    }
    std::fs::remove_file(&path).map_err(Error::other)
}
