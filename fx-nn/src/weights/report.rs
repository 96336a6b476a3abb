//! `Report`: how the tensors of a checkpoint fit those of a module.
//!
//! Invariant: what is not in the report fits, by name and shape.

use std::fmt;

use fx_core::{Error, ErrorKind};

/// The differences between a checkpoint and a module; empty if everything fits.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::weights::Checkpoint;
/// # let path = std::env::temp_dir().join(format!("fx_doc_report_{}.safetensors", std::process::id()));
/// fx_nn::weights::save(&nn::Linear::new(4, 3)?, &path)?;
/// let mut wider = nn::Linear::new(5, 3)?.bias(false);
/// let report = Checkpoint::open(&path)?.load_partial(&mut wider)?;
/// # std::fs::remove_file(&path).map_err(Error::other)?;
/// assert_eq!(report.unexpected, ["bias"]);
/// assert!(report.missing.is_empty());
/// assert_eq!(report.mismatched[0].to_string(), "`weight` has shape [3, 4] in the file and [3, 5] in the model");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Names of the module that the checkpoint does not have.
    pub missing: Vec<Missing>,
    /// Names of the checkpoint that the module does not have.
    pub unexpected: Vec<String>,
    /// Tensors whose shapes differ from the module's.
    pub mismatched: Vec<Mismatched>,
}

/// A tensor that a checkpoint does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Its name in the module.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// A tensor whose shape differs in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatched {
    /// Its name in the module.
    pub name: String,
    /// The checkpoint's shape.
    pub found: Vec<usize>,
    /// The module's shape.
    pub expected: Vec<usize>,
}

impl Report {
    /// Whether everything fits.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.mismatched.is_empty()
    }

    /// Succeeds if everything fits.
    ///
    /// # Errors
    /// Returns an error if a tensor does not fit, with a line for each.
    pub(crate) fn strict(&self) -> Result<(), Error> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(ErrorKind::Weights(self.to_string()).into()),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing { name, shape } = self;
        write!(
            f,
            "`{name}` of shape {shape:?} is in the model but not in the file"
        )
    }
}

impl fmt::Display for Mismatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatched {
            name,
            found,
            expected,
        } = self;
        write!(
            f,
            "`{name}` has shape {found:?} in the file and {expected:?} in the model"
        )
    }
}

/// A line for each tensor that does not fit.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unexpected = self.unexpected.iter();
        let unexpected =
            unexpected.map(|name| format!("`{name}` is in the file but not in the model"));
        let mismatched = self.mismatched.iter().map(ToString::to_string);
        let missing = self.missing.iter().map(ToString::to_string);
        let lines: Vec<String> = unexpected.chain(mismatched).chain(missing).collect();
        f.write_str(&lines.join("\n"))
    }
}
