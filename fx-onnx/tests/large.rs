//! A model of 3 GB: its weights go into a file of their own, and no second copy of them is made. Outside of the gate:
//! `cargo test --release -p fx-onnx --test large -- --ignored --nocapture`.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

use fx_nn::prelude::*;
use fx_onnx::{Export, OnnxExt, Weights};
use peak_alloc::PeakAlloc;

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

#[test]
#[ignore = "it takes 3 GB of memory and of the disk"]
fn three_gigabytes_go_out_once() -> Result<()> {
    let mut model = nn::Sequential::new();
    for _ in 0..12 {
        model = model.push(nn::Linear {
            weight: Tensor::zeros((8192, 8192))?,
            bias: None,
        });
    }
    let gm = symbolic_trace(&model)?;
    let folder = std::env::temp_dir().join(format!("fx_onnx_large_{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::other)?;
    let path = folder.join("large.onnx");
    let export = Export::example(&Tensor::zeros((1, 8192))?);
    let inline = gm.to_onnx(&path, &export).map(drop);
    assert!(inline.is_err_and(|error| error.to_string().contains("Weights::External")));
    let weights = PEAK.current_usage();
    PEAK.reset_peak_usage();
    let start = std::time::Instant::now();
    let external = Weights::External {
        file: "large.data".to_string(),
        from_bytes: 1024,
    };
    let report = gm.to_onnx(&path, &export.weights(external))?;
    let (more, seconds) = (PEAK.peak_usage() - weights, start.elapsed().as_secs_f64());
    println!(
        "large: model {} MB, peak {:.1} MB more, {seconds:.1} s",
        report.weight_bytes >> 20,
        more as f64 / (1 << 20) as f64
    );
    assert!(report.weight_bytes >= 3 << 30 && more <= 64 << 20);
    let written = std::fs::metadata(folder.join("large.data")).map_err(Error::other)?;
    std::fs::remove_dir_all(&folder).map_err(Error::other)?;
    assert!(written.len() >= 3 << 30);
    Ok(())
}
