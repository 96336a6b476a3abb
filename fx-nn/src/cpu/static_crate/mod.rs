//! Crates for microcontrollers: a graph module with fixed sizes as Rust without `std` and without an allocator.
//!
//! A draft, as the compiler for the CPU makes it, becomes a plan (`plan`) of kernels of `fx-static`: `items` has a step or a
//! view for each item (`products` those of convolutions, products, attention and networks over sequences; `points`
//! functions of elements; `host` calls that no item is for), `floats` says where floats are, `weights` has those that are the
//! same in every run, `arena` says where buffers lie, and `source` writes the crate.
//!
//! Invariant: a crate computes what its plan computes here, by the same kernels.

mod arena;
mod floats;
mod host;
mod items;
mod plan;
mod points;
mod products;
mod ready;
mod source;
mod viewing;
mod weights;

use std::fmt;
use std::path::Path;

use fx_core::trace::IntoArgs;
use fx_core::{Error, GraphModule, Result};

use self::items::Planner;
use self::plan::Plan;
use crate::Tensor;

/// What a crate is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// Any machine that Rust compiles for: `#![no_std]`, no allocator, one thread, `f32`, fixed sizes.
    Static,
}

/// Graph modules as crates.
pub trait ToCrate {
    /// The graph module as a crate for arguments of the sizes that these have.
    ///
    /// ```
    /// use fx_nn::cpu::{Target, ToCrate};
    /// use fx_nn::prelude::*;
    ///
    /// let mut model = nn::Sequential::new().push(nn::Linear::new(4, 8)?).push(nn::ReLU::new()).push(nn::Linear::new(8, 2)?);
    /// model.eval();
    /// let gm = symbolic_trace(&model)?;
    /// let x = Tensor::randn((1, 4))?;
    /// let made = gm.to_crate(Target::Static, &x)?;
    /// assert!(made.source().contains("pub fn run<'a>(inputs: &Inputs<'_>, arena: &'a mut Arena) -> Outputs<'a> {"));
    /// // 4 * 8 + 8 and 8 * 2 + 2 floats of weights; 8 and 2 floats between and behind the layers.
    /// assert_eq!((made.weight_bytes(), made.arena_bytes()), (4 * 58, 4 * 10));
    /// // What the crate will compute, here.
    /// let expected: Tensor = gm.forward(&x)?;
    /// assert!(fx_nn::allclose(&made.run(&[&x])?[0], &expected, 1e-5, 1e-6)?.close);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error that lists, with node and source line, every call that such a crate cannot have: branches and
    /// loops, functions without a kernel, sizes that a run decides, elements that are no `f32`.
    fn to_crate(&self, target: Target, args: impl IntoArgs) -> Result<StaticCrate>;
}

impl ToCrate for GraphModule {
    fn to_crate(&self, target: Target, args: impl IntoArgs) -> Result<StaticCrate> {
        let Target::Static = target;
        let (ready, mut draft) = ready::ready(self, args.into_args())?;
        let mut plan = Planner::new(&ready).plan(&mut draft)?;
        arena::place(&mut plan);
        let source = source::library(&plan, self.class_name())?;
        Ok(StaticCrate { plan, source })
    }
}

/// A graph module as a crate without `std` and without an allocator.
///
/// Its `run` takes `Inputs`, references of arrays by the names of the graph's inputs, and an `Arena`, in which the
/// `Outputs` lie. It depends on `fx-static` alone; weights are a file that the compiler puts into the program.
pub struct StaticCrate {
    plan: Plan,
    source: String,
}

impl StaticCrate {
    /// The text of its `src/lib.rs`.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The bytes of its weights, which lie in the program: in flash on a microcontroller.
    pub fn weight_bytes(&self) -> usize {
        4 * self.plan.weights.floats().len()
    }

    /// The bytes of its arena, which a run writes: in RAM.
    pub fn arena_bytes(&self) -> usize {
        4 * self.plan.arena
    }

    /// How many steps it runs.
    pub fn steps(&self) -> usize {
        self.plan.steps.len()
    }

    /// What the crate computes, computed here by its kernels.
    ///
    /// # Errors
    /// Returns an error if inputs have other sizes or elements, or an index is not among the rows of its table.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if inputs.len() != self.plan.inputs.len() {
            return Err(Error::msg(format_args!(
                "the crate takes {} inputs, and {} are given",
                self.plan.inputs.len(),
                inputs.len()
            )));
        }
        let mut floats = Vec::with_capacity(inputs.len());
        let mut indices = Vec::with_capacity(inputs.len());
        for (tensor, input) in inputs.iter().zip(&self.plan.inputs) {
            if tensor.dims()? != input.dims {
                return Err(Error::msg(format_args!(
                    "`{}` has the sizes {:?}, and the crate is for {:?}",
                    input.name,
                    tensor.dims()?,
                    input.dims
                )));
            }
            let flat = tensor.reshape(-1)?;
            let (of_floats, of_indices) = match input.is_indices {
                true => (None, Some(flat.to_vec1::<i64>()?)),
                false => (Some(flat.to_vec1::<f32>()?), None),
            };
            floats.push(of_floats);
            indices.push(of_indices);
        }
        let arena = self.plan.run(&floats, &indices)?;
        let outputs = self.plan.outputs.iter().map(|output| {
            let range = self.plan.result(output);
            Tensor::from_vec(arena[range].to_vec(), &output.floats.dims[..])
        });
        outputs.collect()
    }

    /// Writes the crate as a package of this name into a new folder: `Cargo.toml`, `src/lib.rs` and `src/weights.bin`.
    ///
    /// ```
    /// # use fx_nn::cpu::{Target, ToCrate};
    /// # use fx_nn::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    /// let folder = std::env::temp_dir().join(format!("fx_static_doc_{}", std::process::id()));
    /// gm.to_crate(Target::Static, &Tensor::ones(3)?)?.write(&folder, "relu")?;
    /// assert!(folder.join("src/lib.rs").exists());
    /// # std::fs::remove_dir_all(&folder).map_err(Error::other)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the name is none of a package, or there is something at the path, or a file cannot be written.
    pub fn write(&self, folder: impl AsRef<Path>, package: &str) -> Result<()> {
        let folder = folder.as_ref();
        let failed =
            |error: std::io::Error| Error::msg(format_args!("{}: {error}", folder.display()));
        let is_name = package.starts_with(|c: char| c.is_ascii_lowercase())
            && package
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
        if !is_name {
            return Err(Error::msg(format_args!(
                "`{}` is no name of a package: write it as `keyword_spotter`",
                package.escape_debug()
            )));
        }
        if folder.exists() {
            return Err(Error::msg(format_args!(
                "{}: there is something already",
                folder.display()
            )));
        }
        let source = folder.join("src");
        std::fs::create_dir_all(&source).map_err(failed)?;
        std::fs::write(folder.join("Cargo.toml"), source::manifest(package)).map_err(failed)?;
        std::fs::write(source.join("lib.rs"), &self.source).map_err(failed)?;
        if self.weight_bytes() > 0 {
            let floats = self.plan.weights.floats().iter();
            let bytes: Vec<u8> = floats.flat_map(|x| x.to_le_bytes()).collect();
            std::fs::write(source.join("weights.bin"), bytes).map_err(failed)?;
        }
        Ok(())
    }
}

impl fmt::Debug for StaticCrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticCrate")
            .field("steps", &self.steps())
            .field("weight_bytes", &self.weight_bytes())
            .field("arena_bytes", &self.arena_bytes())
            .finish_non_exhaustive()
    }
}
