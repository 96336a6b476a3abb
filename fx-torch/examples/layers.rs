//! Which modules of `torch.nn` come back as fx's layers: `layers DIR` reads each `NAME.pt2` there and counts, by class, the
//! modules that made nodes and those whose path is called in the graph.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[allow(dead_code, reason = "the judge uses the rest")]
mod support;

use std::collections::BTreeMap;

use fx_nn::ir::Op;
use fx_nn::prelude::*;

/// Modules of a class: how many there are, how many are layers, in which files, and some that are none.
#[derive(Default)]
struct Count {
    all: usize,
    layers: usize,
    files: usize,
    left: Vec<String>,
}

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or_else(|| Error::msg("layers DIR"))?;
    let files = support::programs(&folder, "")?;
    let mut classes: BTreeMap<String, Count> = BTreeMap::new();
    let mut loaded = 0;
    for file in &files {
        let support = fx_torch::support(file)?;
        let Ok(gm) = fx_torch::load(file) else {
            continue;
        };
        loaded += 1;
        let called: Vec<&str> = gm
            .graph()
            .nodes()
            .filter_map(|node| match node.op() {
                Op::CallModule(path) => Some(&**path),
                _ => None,
            })
            .collect();
        for (class, paths) in &support.modules {
            // What has modules inside is no leaf.
            let is_inner = |path: &String| {
                let below = format!("{path}.");
                let mut all = support.modules.values().flatten();
                all.any(|other| other.starts_with(&below))
            };
            let Some(name) = class.strip_prefix("torch.nn.modules.") else {
                continue;
            };
            let leaves: Vec<&String> = paths.iter().filter(|path| !is_inner(path)).collect();
            if leaves.is_empty() {
                continue;
            }
            let count = classes.entry(name.to_string()).or_default();
            count.files += 1;
            for path in leaves {
                count.all += 1;
                match called.contains(&path.as_str()) {
                    true => count.layers += 1,
                    false if count.left.len() < 3 => count.left.push(format!(
                        "{}:{path}",
                        file.file_stem().unwrap_or_default().to_string_lossy()
                    )),
                    false => {}
                }
            }
        }
    }
    let (mut all, mut layers) = (0, 0);
    for (name, count) in &classes {
        all += count.all;
        layers += count.layers;
        let left = count.left.join(" ");
        println!(
            "{name}: files {} modules {} layers {} {left}",
            count.files, count.all, count.layers
        );
    }
    println!("files {loaded} modules {all} layers {layers}");
    Ok(())
}
