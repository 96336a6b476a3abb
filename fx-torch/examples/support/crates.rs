//! Programs as crates of one workspace, with a program that runs them all beside PyTorch.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fx_nn::graph_module::Folder;
use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_torch::{Hierarchy, Loader};

/// How many programs with open lengths there are besides those of the hash.
const WITH_LENGTHS: usize = 5;

/// How many programs became crates, and those that are refused, with why.
#[derive(Debug, Default)]
pub struct Crates {
    pub written: usize,
    pub refused: Vec<String>,
}

/// FNV-1a: the same on every machine.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether an input has more than one open size.
fn has_lengths(gm: &GraphModule) -> bool {
    gm.graph().placeholders().any(|node| {
        let meta = node.meta::<ValueMeta>().and_then(ValueMeta::tensor);
        let open = meta.map(|meta| {
            let shape = meta.shape.iter();
            shape.filter(|dim| dim.as_known().is_none()).count()
        });
        open.is_some_and(|open| open > 1)
    })
}

/// `vit_b_16` as the name of a type: `ProgramVitB16`.
fn type_name(name: &str) -> String {
    let mut all = "Program".to_string();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut chars = word.chars();
        all.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        all.extend(chars);
    }
    all
}

/// Writes every eighth of some programs by the hash of its name, and five whose lengths are open.
///
/// # Errors
/// Returns an error if a program cannot be read, or a file not be written.
pub fn write(files: &[PathBuf], out: &Path) -> Result<Crates> {
    std::fs::create_dir_all(out.join("run/src")).map_err(Error::other)?;
    let (mut members, mut dependencies, mut calls) = (String::new(), String::new(), String::new());
    let (mut done, mut lengths) = (Crates::default(), 0);
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let is_chosen = hash(&name).is_multiple_of(8);
        if !is_chosen && lengths == WITH_LENGTHS {
            continue;
        }
        let gm = Loader::new().hierarchy(Hierarchy::Modules).load(file)?;
        if !is_chosen {
            if !has_lengths(&gm) {
                continue;
            }
            lengths += 1;
        }
        let ty = type_name(&name);
        let package = format!("crate_{name}").replace('-', "_");
        let path = out.join(&package);
        let _ = std::fs::remove_dir_all(&path);
        let folder = Folder::new(&ty)
            .dependencies_by_path(true)
            .workspace_member(true);
        if let Err(error) = folder.write(&gm, &path) {
            done.refused.push(format!("{name}: {error}"));
            continue;
        }
        done.written += 1;
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).map_err(Error::other)?;
        let library = manifest.lines().find_map(|line| {
            let name = line.strip_prefix("name = \"")?;
            name.strip_suffix('"')
        });
        let library = library.ok_or_else(|| Error::msg("the crate has no name"))?;
        let _ = writeln!(members, "    \"{package}\",");
        let _ = writeln!(dependencies, "{library} = {{ path = \"../{package}\" }}");
        let weights = path.join("weights.safetensors");
        let _ = writeln!(
            calls,
            "    run.one({name:?}, {:?}, {library}::{ty}::load({weights:?}).map(|model| Box::new(model) as Box<dyn Module>));",
            file.with_extension("")
        );
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let nn = here.with_file_name("fx-nn");
    let text = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\n    \"run\",\n{members}]\n\n[profile.release]\nopt-level = 0\n\n[profile.release.package.\"*\"]\nopt-level = 3\n"
    );
    std::fs::write(out.join("Cargo.toml"), text).map_err(Error::other)?;
    let text = format!(
        "[package]\nname = \"run\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nfx-nn = {{ path = {nn:?} }}\nnpyz = {{ version = \"0.9\", features = [\"half\"] }}\nzip = {{ version = \"9.4\", default-features = false }}\n{dependencies}"
    );
    std::fs::write(out.join("run/Cargo.toml"), text).map_err(Error::other)?;
    let support = here.join("examples/support/mod.rs");
    let text = format!(
        "#![allow(warnings)]\n#[path = {support:?}]\nmod support;\n\nuse std::path::PathBuf;\n\nuse fx_nn::module::Module;\nuse fx_nn::prelude::*;\n\n#[derive(Default)]\nstruct Run {{\n    all: usize,\n    equal: usize,\n}}\n\nimpl Run {{\n    fn one(&mut self, name: &str, stem: &str, model: Result<Box<dyn Module>>) {{\n        self.all += 1;\n        let off = |model: &dyn Module, at: usize| support::off(model, &PathBuf::from(format!(\"{{stem}}_{{at}}.npz\")), support::by_position);\n        let both = model.and_then(|model| Ok([off(&*model, 0)?, off(&*model, 1)?]));\n        match both {{\n            Ok(both) => {{\n                let is_equal = both.iter().all(|off| off.is_equal());\n                self.equal += usize::from(is_equal);\n                println!(\"{{name}}: {{:.1e}} {{:.1e}}{{}}\", both[0].most, both[1].most, if is_equal {{ \"\" }} else {{ \" NOT EQUAL\" }});\n            }}\n            Err(error) => println!(\"{{name}}: ERROR {{error}}\"),\n        }}\n    }}\n}}\n\nfn main() {{\n    let mut run = Run::default();\n{calls}    println!(\"crates {{}} crate_equal {{}}\", run.all, run.equal);\n}}\n"
    );
    std::fs::write(out.join("run/src/main.rs"), text).map_err(Error::other)?;
    Ok(done)
}
