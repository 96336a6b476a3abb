//! `support`: what a file needs, and what of it fx does not have, all at once.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use fx_nn::Result;

use super::scan::Limits;
use super::{bytes_of, decoded, ops};
use crate::dtype;
use crate::proto::GraphProto;

/// What a file needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// Every operator with its number of nodes, and whether fx has it.
    pub operators: Vec<(String, usize, bool)>,
    /// The element types of constants and inputs that fx holds no tensors of.
    pub types: Vec<String>,
}

impl Support {
    /// Whether fx has everything.
    pub fn is_complete(&self) -> bool {
        self.types.is_empty() && self.operators.iter().all(|(_, _, has)| *has)
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count, has) in &self.operators {
            writeln!(
                f,
                "{count:>6} {name}{}",
                if *has { "" } else { "  missing" }
            )?;
        }
        for name in &self.types {
            writeln!(f, "       elements of type {name}  missing")?;
        }
        Ok(())
    }
}

/// What a file needs, and what of it fx does not have.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_onnx::{Export, OnnxExt};
/// let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
/// let path = std::env::temp_dir().join("fx_onnx_support.onnx");
/// gm.to_onnx(&path, &Export::example(&Tensor::ones(3)?))?;
/// assert_eq!(fx_onnx::support(&path)?.to_string().trim(), "1 Relu");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn support(path: impl AsRef<Path>) -> Result<Support> {
    let path = path.as_ref();
    let model = decoded(bytes_of(path)?, &Limits::default())?;
    let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut types: Vec<String> = Vec::new();
    let mut graphs: Vec<&GraphProto> = model.graph.iter().collect();
    let mut lists: Vec<&[crate::proto::NodeProto]> =
        model.functions.iter().map(|f| &*f.node).collect();
    while let Some(graph) = graphs.pop() {
        lists.push(&graph.node);
        for constant in &graph.initializer {
            note(&mut types, constant.data_type);
        }
        while let Some(nodes) = lists.pop() {
            for node in nodes {
                *counted
                    .entry((node.domain.clone(), node.op_type.clone()))
                    .or_default() += 1;
                graphs.extend(node.attribute.iter().filter_map(|a| a.g.as_ref()));
            }
        }
    }
    let operators = counted.into_iter().map(|((domain, op), count)| {
        let has = ops::is(&domain, &op, |_| true)
            || model
                .functions
                .iter()
                .any(|f| f.domain == domain && f.name == op);
        let name = if domain.is_empty() {
            op
        } else {
            format!("{domain}.{op}")
        };
        (name, count, has)
    });
    Ok(Support {
        operators: operators.collect(),
        types,
    })
}

/// An operator that fx reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ReadOperator {
    /// The domain; empty for ONNX's own.
    pub domain: &'static str,
    /// The name.
    pub name: &'static str,
}

/// The operators that fx reads, by domain and name.
///
/// ```
/// assert!(fx_onnx::operators().iter().any(|op| op.domain.is_empty() && op.name == "Conv"));
/// ```
pub fn operators() -> Vec<ReadOperator> {
    let each = ops::all().map(|entry| ReadOperator {
        domain: entry.domain,
        name: entry.name,
    });
    let mut all: Vec<ReadOperator> = each.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn note(types: &mut Vec<String>, code: i32) {
    let name = dtype::name(code).to_string();
    if dtype::known(code).is_none() && code != dtype::TEXT && !types.contains(&name) {
        types.push(name);
    }
}
