//! StableHLO programs: one that XLA has run, and that was right, is known by the hash of its text.
//!
//! `FX_EVERY_OP_XLA=python` runs every program by `tests/differential/programs.py`, which needs jax,
//! and records the hashes anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fx_core::value::Value;
use fx_core::{Error, Result};
use fx_nn::prelude::Tensor;
use fx_nn::testing::{Given, Route, Sample, structured};
use fx_programs::engines::Engines;
use fx_stablehlo::testing::Written;
use fx_stablehlo::{Export, StableHloExt};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/every_op/stablehlo.txt");

/// The hashes of programs, or the engine that makes them.
pub struct Programs {
    known: BTreeSet<u64>,
    engine: Option<Mutex<(Engines, BTreeSet<u64>)>>,
}

/// The hash of a sample and of its program (FNV-1a: the same on every machine), without the lines that
/// say where an operation comes from: what a program gives does not depend on them.
fn hash(sample: &Sample<'_>, program: &str) -> u64 {
    let lines = program.lines().filter(|line| !line.starts_with("#loc"));
    let bytes = std::iter::once(sample.name())
        .chain(lines)
        .flat_map(|line| line.bytes().chain(*b"\n"));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl Programs {
    /// The recorded programs, and XLA if it is asked for.
    ///
    /// # Errors
    /// Returns an error if the record is not there, or Python does not start.
    pub fn new() -> Result<Self> {
        let record = std::fs::read_to_string(RECORD).map_err(Error::other)?;
        let known = record.lines().map(|line| u64::from_str_radix(line, 16));
        let engine = match std::env::var("FX_EVERY_OP_XLA") {
            Ok(python) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/differential/programs.py");
                let engines = Engines::start(&python, Path::new(script))?;
                Some(Mutex::new((engines, BTreeSet::new())))
            }
            Err(_) => None,
        };
        Ok(Programs {
            known: known
                .collect::<std::result::Result<_, _>>()
                .map_err(Error::other)?,
            engine,
        })
    }

    /// The route of samples through a program.
    pub fn route(&self) -> impl Route + '_ {
        Written(|sample: &Sample<'_>, text: &str| {
            let hash = hash(sample, text);
            match &self.engine {
                None if self.known.contains(&hash) => Ok(Given::Agrees),
                None => Ok(Given::Differs(
                    "XLA has not run this program: run this test with FX_EVERY_OP_XLA=python"
                        .to_string(),
                )),
                Some(engine) => {
                    let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
                    let (engine, right) = &mut *engine;
                    let value = structured(&sample.traced()?, &run(engine, sample, hash)?)?;
                    let is_right = sample.judge("stablehlo", &Ok(value.clone())).is_none();
                    // XLA takes subnormal numbers for 0.
                    if is_right || has_subnormals(sample) {
                        right.insert(hash);
                        return Ok(Given::Agrees);
                    }
                    Ok(Given::Value(value))
                }
            }
        })
    }

    /// Writes the record, if XLA ran.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep(self) -> Result<()> {
        let Some(engine) = self.engine else {
            return Ok(());
        };
        let (_, right) = engine.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Of some operations alone, the others stay.
        let right = match std::env::var_os("FX_EVERY_OP") {
            Some(_) => right.union(&self.known).copied().collect(),
            None => right,
        };
        let lines: Vec<String> = right.iter().map(|hash| format!("{hash:016x}\n")).collect();
        std::fs::write(RECORD, lines.concat()).map_err(Error::other)
    }
}

fn has_subnormals(sample: &Sample<'_>) -> bool {
    let is_subnormal = |x: &f64| *x != 0.0 && x.abs() < f64::from(f32::MIN_POSITIVE);
    let mut found = false;
    for arg in sample.args().args {
        arg.for_each(&mut |leaf| {
            let numbers = leaf.downcast_ref::<Tensor>().and_then(|x| x.to_vec().ok());
            found |= numbers.is_some_and(|all: Vec<f64>| all.iter().any(is_subnormal));
        });
    }
    found
}

/// What XLA gives.
fn run(engine: &mut Engines, sample: &Sample<'_>, hash: u64) -> Result<Value> {
    // The engine keeps the program of a folder.
    let folder: PathBuf = std::env::temp_dir().join(format!("fx-every-op-{hash:016x}"));
    let (gm, args) = (sample.module()?, sample.args());
    gm.to_stablehlo(&folder, &Export::example(args.clone()))?;
    let names = gm
        .graph()
        .placeholders()
        .map(|node| node.name().to_string());
    let inputs: Vec<(String, Value)> = names
        .zip(gm.process_inputs(args)?)
        .filter(|(_, value)| value.as_object().is_some())
        .collect();
    let given = engine.values("stablehlo", folder.to_string_lossy().as_bytes(), &inputs);
    std::fs::remove_dir_all(&folder).map_err(Error::other)?;
    given
}
