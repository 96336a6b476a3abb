//! torchvision's names of a graph's nodes: the path of the module around, and the operation.
//!
//! Invariant: no two nodes have one name.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph_module::GraphModule;
use crate::ir::op::Op;
use crate::module::attributes::within;
use crate::module::walk::TensorKind;
use crate::value::handle::NodeId;

/// The nodes that have a name, in order: all but the output, and reads of what is no parameter.
pub(super) fn node_names(gm: &GraphModule) -> Vec<(NodeId, String)> {
    let mut numbers = Numbers::default();
    let mut names = Vec::with_capacity(gm.graph().len());
    for node in gm.graph() {
        let path = match node.op() {
            Op::Output => continue,
            Op::GetAttr(path) if !is_parameter(gm, path) => continue,
            Op::CallModule(path) => path.to_string(),
            _ => {
                let around = node.modules_around().next();
                let around = around.map_or("", |scope| &*scope.path);
                within(around, &node.name().to_string())
            }
        };
        names.push((node.id(), numbers.name(&path)));
    }
    names
}

fn is_parameter(gm: &GraphModule, path: &str) -> bool {
    let tensor = gm.attributes().tensors.get(path);
    tensor.is_some_and(|(kind, _)| *kind == TensorKind::Parameter)
}

/// Numbers repeated names in their order: `relu`, `relu_1`.
#[derive(Default)]
struct Numbers {
    given: FxHashSet<String>,
    /// The number that the next node of a name gets.
    next: FxHashMap<String, u64>,
}

impl Numbers {
    /// The name of the next node at a path. A number at its end counts for nothing: a graph numbers
    /// its nodes, and here each module does.
    fn name(&mut self, path: &str) -> String {
        let plain = numbered(path).map_or(path, |(plain, _)| plain);
        let mut name = match self.next.get(plain) {
            Some(number) => format!("{plain}_{number}"),
            None => plain.to_string(),
        };
        while self.given.contains(&name) {
            let number = self.next.get(plain).copied().unwrap_or(1);
            name = format!("{plain}_{number}");
            self.next.insert(plain.to_string(), number + 1);
        }
        if let Some((plain, number)) = numbered(&name) {
            self.next
                .insert(plain.to_string(), number.saturating_add(1));
        }
        self.next.insert(name.clone(), 1);
        self.given.insert(name.clone());
        name
    }
}

/// A name without the number at its end, and the number.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let (plain, digits) = name.rsplit_once('_')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !plain.is_empty()).then(|| (plain, digits.parse().unwrap_or(u64::MAX - 1)))
}
