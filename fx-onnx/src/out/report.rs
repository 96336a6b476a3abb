//! `ExportReport`: what was written, and what is not in it.

use std::fmt;

/// What a file has.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExportReport {
    /// The number of nodes.
    pub nodes: usize,
    /// How many functions the file has.
    pub functions: usize,
    /// The numbers that were computed when the file was written: the node, and the number.
    pub folded: Vec<(String, String)>,
    /// The names of the sizes that a run decides.
    pub dynamic: Vec<String>,
    /// What must hold of them.
    pub guards: Vec<String>,
    /// The nodes that leave nothing in the file, by function.
    pub left_out: Vec<String>,
    /// The largest constants, with their bytes.
    pub constants: Vec<(String, usize)>,
    /// The bytes of all constants.
    pub weight_bytes: usize,
    /// What to know about nodes.
    pub warnings: Vec<String>,
    /// The largest relative difference to the graph module, if it was asked for.
    pub max_rel_err: Option<f64>,
}

impl fmt::Display for ExportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nodes", self.nodes)?;
        if self.functions > 0 {
            write!(f, "; functions: {}", self.functions)?;
        }
        if !self.folded.is_empty() {
            write!(f, "; folded: {} numbers", self.folded.len())?;
        }
        if !self.dynamic.is_empty() {
            write!(f, "; kept dynamic: {}", self.dynamic.join(", "))?;
        }
        if !self.guards.is_empty() {
            write!(f, "; needs {}", self.guards.join(", "))?;
        }
        if !self.left_out.is_empty() {
            let mut counted: Vec<(&str, usize)> = Vec::new();
            for name in &self.left_out {
                match counted.iter_mut().find(|(known, _)| known == name) {
                    Some((_, count)) => *count += 1,
                    None => counted.push((name, 1)),
                }
            }
            let shown: Vec<String> = counted.iter().map(|(n, c)| format!("{n} {c}")).collect();
            write!(f, "; left out: {}", shown.join(", "))?;
        }
        write!(f, "; constants: {} bytes", self.weight_bytes)?;
        if let Some((name, bytes)) = self.constants.first() {
            write!(f, ", the largest {name} {bytes}")?;
        }
        if let Some(error) = self.max_rel_err {
            write!(f, "; numbers checked: {error:.1e}")?;
        }
        for warning in &self.warnings {
            write!(f, "\n{warning}")?;
        }
        Ok(())
    }
}
