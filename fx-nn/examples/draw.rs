//! Pages of HTML: ResNet-18 and GPT-2 with their costs, what passes change, and graphs of 10,000 and 100,000 nodes.
//!
//! ```text
//! cargo run --release -p fx-nn --example draw -- DIR
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::PathBuf;
use std::time::Instant;

use fx_nn::draw::{Chart, Column, DrawOptions, Page};
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::models::resnet::resnet18;
use fx_nn::passes::{Canonicalize, Cse, DeadCode, FuseBatchNorm, PassManager, memory_plan};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1);
    let folder = folder.ok_or_else(|| Error::msg("usage: draw DIR"))?;
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).map_err(Error::other)?;

    // ResNet-18 with what a run measured.
    let mut model = resnet18(1000)?;
    model.eval();
    let x = Tensor::rand((1, 3, 64, 64))?;
    let mut gm = symbolic_trace(&model)?;
    gm.infer_shapes(&[Spec::of(&x)])?;
    let mut largest = std::collections::HashMap::new();
    gm.forward_observed::<Tensor>(&x, |node, value| {
        if let Ok(tensor) = Tensor::from_value(value.clone()) {
            largest.insert(
                node.id(),
                tensor.abs()?.to_vec()?.into_iter().fold(0.0, f64::max),
            );
        }
        Ok(())
    })?;
    let page = Page::new()
        .title("ResNet-18")
        .column(Column::profile(&gm.profile(3, &x)?))
        .column(Column::memory(&memory_plan(&gm)?))
        .column(
            Column::new("largest activation", |node| {
                largest.get(&node.id()).copied()
            })
            .chart(Chart::Heat),
        )
        .table(fx_nn::summary(&model, &x)?);
    gm.to_html(folder.join("resnet18.html"), &page)?;
    let drawing = gm.draw(&DrawOptions::new().depth(2))?;
    let files = [
        ("svg", drawing.svg()),
        ("dot", drawing.dot()),
        ("mmd", drawing.mermaid()),
    ];
    for (extension, text) in files {
        let path = folder.join("resnet18").with_extension(extension);
        std::fs::write(path, text).map_err(Error::other)?;
    }

    // What passes change.
    let before = gm.clone();
    let passes = PassManager::new()
        .pass(FuseBatchNorm)
        .pass(Cse::new())
        .pass(DeadCode)
        .pass(Canonicalize)
        .record_html(folder.join("passes"));
    passes.run(&mut gm)?;
    let diff = before.diff(&gm);
    diff.to_html(folder.join("diff.html"))?;
    let [new, gone, changed] = diff.counts();
    println!("diff: {new} new, {gone} gone, {changed} changed");

    // GPT-2, whose layers are traced through, and graphs as large as it takes.
    for (name, layers) in [("gpt2", 12), ("large", 263), ("huge", 2630)] {
        let gm = gpt2(layers)?;
        let page = Page::new().title(name);
        let path = folder.join(name).with_extension("html");
        let mut least = f64::INFINITY;
        for _ in 0..if layers < 1000 { 5 } else { 1 } {
            let start = Instant::now();
            gm.to_html(&path, &page)?;
            least = least.min(start.elapsed().as_secs_f64() * 1e3);
        }
        println!("{name}: {} nodes", gm.graph().len());
        match name {
            "large" => println!("write_ms: {least:.1}"),
            _ => println!("{name}_write_ms: {least:.1}"),
        }
    }
    Ok(())
}

/// A GPT-2 of many small layers, with its shapes.
fn gpt2(layers: usize) -> Result<GraphModule> {
    let config = Config {
        n_layer: layers,
        n_head: 2,
        n_embd: 8,
        vocab_size: 32,
        block_size: 16,
        ..Config::default()
    };
    let mut model = Gpt2::new(&config)?;
    model.eval();
    let mut gm = symbolic_trace(&model)?;
    let tokens = Tensor::zeros((1, 16))?.to_dtype(DType::I64)?;
    gm.infer_shapes(&[Spec::of(&tokens)])?;
    Ok(gm)
}
