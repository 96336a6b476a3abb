//! What a program needs, and what of it is not known, without its weights.

use std::fmt;
use std::path::Path;

use fx_nn::Result;
use indexmap::{IndexMap, IndexSet};

use crate::schema::{Argument, Graph};
use crate::{archive, places, rules};

/// The operators of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// The operators by name, each with the number of its calls.
    pub operators: IndexMap<String, usize>,
    /// Those that are not known.
    pub missing: IndexMap<String, usize>,
    /// The modules whose own code made nodes, by class (`torch.nn.modules.conv.Conv2d`): their paths.
    pub modules: IndexMap<String, IndexSet<String>>,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: usize = self.operators.values().sum();
        write!(f, "{} operators in {calls} calls", self.operators.len())?;
        if self.missing.is_empty() {
            return write!(f, "; nothing is missing");
        }
        for (name, calls) in &self.missing {
            write!(f, "\nmissing: {name} ({calls})")?;
        }
        Ok(())
    }
}

/// What a file needs, without its weights.
///
/// ```no_run
/// let support = fx_torch::support("model.pt2")?;
/// assert!(support.missing.is_empty(), "{support}");
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the file is no exported program.
pub fn support(path: impl AsRef<Path>) -> Result<Support> {
    let program = archive::program(path.as_ref(), archive::Limits::default())?;
    let mut support = Support::default();
    let mut left: Vec<&Graph> = vec![&program.graph_module.graph];
    while let Some(graph) = left.pop() {
        for node in &graph.nodes {
            *support.operators.entry(node.target.clone()).or_default() += 1;
            if let Some(around) = places::modules(node).last() {
                let paths = support.modules.entry(around.class.to_string());
                paths.or_default().insert(around.path.to_string());
            }
            let inner = node.inputs.iter().filter_map(|input| match &input.arg {
                Argument::AsGraph(inner) => Some(&*inner.graph),
                _ => None,
            });
            let before = left.len();
            left.extend(inner);
            if left.len() == before && !rules::is_known(&node.target) {
                *support.missing.entry(node.target.clone()).or_default() += 1;
            }
        }
    }
    Ok(support)
}

/// The operators of PyTorch that are known, by name; those with `_` at the end are known where the one without it is.
pub fn operators() -> Vec<&'static str> {
    rules::names()
}
