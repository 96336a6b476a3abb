//! A look at a file before anything is made of it: lengths fit, and what it would take in memory is within the limits.
//!
//! Invariant: nothing is allocated for what the file does not have.

use fx_nn::{Error, Result};

/// What a file may ask for; each limit can be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The number of nodes, in all graphs and functions, and of nodes after functions are opened.
    pub nodes: usize,
    /// How deep graphs are inside of each other.
    pub depth: usize,
    /// The bytes in memory of the messages of a file, beyond 16 MB, as a multiple of its size: a node that takes 20 bytes
    /// of a file takes about a kilobyte.
    pub memory: usize,
    /// The bytes of the constants that nodes make, such as one number repeated, beyond four times the file with its
    /// weights. 0 is 64 times the file with its weights, at least 256 MiB and at most 1 GiB.
    pub constant_bytes: usize,
}

impl Limits {
    /// The limits for a file of so many bytes, weights included.
    pub(super) fn of_file(mut self, bytes: u64) -> Self {
        if self.constant_bytes == 0 {
            let most = bytes.saturating_mul(64).clamp(256 << 20, 1 << 30);
            self.constant_bytes = usize::try_from(most).unwrap_or(usize::MAX);
        }
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            nodes: 1_000_000,
            depth: 16,
            memory: 64,
            constant_bytes: 0,
        }
    }
}

/// The messages that a file is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Sparse,
    Info,
    Type,
    TensorType,
    Shape,
    Dim,
    Element,
    Map,
    Entry,
    Opset,
    Function,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Model => "model",
            Kind::Graph => "graph",
            Kind::Node => "node",
            Kind::Attribute => "attribute",
            Kind::Tensor => "tensor",
            Kind::Sparse => "sparse tensor",
            Kind::Info => "value",
            Kind::Type | Kind::TensorType | Kind::Element | Kind::Map => "type",
            Kind::Shape | Kind::Dim => "shape",
            Kind::Entry => "entry",
            Kind::Opset => "operator set",
            Kind::Function => "function",
        }
    }

    /// The message in a field.
    fn field(self, field: u64) -> Option<Kind> {
        Some(match (self, field) {
            (Kind::Model, 7) => Kind::Graph,
            (Kind::Model, 8) | (Kind::Function, 9) => Kind::Opset,
            (Kind::Model, 14) | (Kind::Graph, 16) | (Kind::Node, 9) | (Kind::Info, 4) => {
                Kind::Entry
            }
            (Kind::Tensor, 13) | (Kind::Function, 14) => Kind::Entry,
            (Kind::Model, 25) => Kind::Function,
            (Kind::Graph, 1) | (Kind::Function, 7) => Kind::Node,
            (Kind::Graph, 5) | (Kind::Attribute, 5 | 10) | (Kind::Sparse, 1 | 2) => Kind::Tensor,
            (Kind::Graph, 15) | (Kind::Attribute, 22) => Kind::Sparse,
            (Kind::Graph, 11..=13) | (Kind::Function, 12) => Kind::Info,
            (Kind::Node, 5) | (Kind::Function, 11) => Kind::Attribute,
            (Kind::Attribute, 6 | 11) => Kind::Graph,
            (Kind::Attribute, 14) | (Kind::Info, 2) | (Kind::Element, 1) | (Kind::Map, 2) => {
                Kind::Type
            }
            (Kind::Type, 1 | 8) => Kind::TensorType,
            (Kind::Type, 4 | 9) => Kind::Element,
            (Kind::Type, 5) => Kind::Map,
            (Kind::TensorType, 2) => Kind::Shape,
            (Kind::Shape, 1) => Kind::Dim,
            _ => return None,
        })
    }

    /// The bytes in memory of one, in a list that has grown.
    fn size(self) -> usize {
        3 * match self {
            Kind::Model => size_of::<crate::proto::ModelProto>(),
            Kind::Graph => size_of::<crate::proto::GraphProto>(),
            Kind::Node => size_of::<crate::proto::NodeProto>(),
            Kind::Attribute => size_of::<crate::proto::AttributeProto>(),
            Kind::Tensor => size_of::<crate::proto::TensorProto>(),
            Kind::Sparse => size_of::<crate::proto::SparseTensorProto>(),
            Kind::Info => size_of::<crate::proto::ValueInfoProto>(),
            Kind::Function => size_of::<crate::proto::FunctionProto>(),
            _ => 64,
        }
    }
}

/// A varint at a place, and the place after it.
fn varint(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

/// Looks through a file.
pub(super) fn scan(bytes: &[u8], limits: &Limits) -> Result<()> {
    /// A message that is open: what it is, where it ends, which of its kind it is, and how deep.
    struct Open {
        kind: Kind,
        end: usize,
        depth: usize,
        at: usize,
    }
    let budget = (16usize << 20).saturating_add(bytes.len().saturating_mul(limits.memory));
    let mut open = vec![Open {
        kind: Kind::Model,
        end: bytes.len(),
        depth: 0,
        at: 0,
    }];
    let (mut memory, mut nodes, mut at) = (0usize, 0usize, 0usize);
    while let Some(top) = open.last() {
        if at == top.end {
            open.pop();
            continue;
        }
        let (kind, end, depth) = (top.kind, top.end, top.depth);
        let place = |problem: &str| {
            let path: Vec<String> = open
                .iter()
                .map(|o| format!("{} {}", o.kind.name(), o.at))
                .collect();
            Error::msg(format_args!(
                "byte {at} of the file, in {}: {problem}",
                path.join(", ")
            ))
        };
        let (key, mut next) =
            varint(bytes, at).ok_or_else(|| place("the file ends, or is no ONNX file"))?;
        let (field, wire) = (key >> 3, key & 7);
        match wire {
            0 => {
                next = varint(bytes, next)
                    .ok_or_else(|| place("the file ends in a number"))?
                    .1;
                // Numbers that are not packed.
                memory += 24;
            }
            1 => next += 8,
            5 => {
                next += 4;
                memory += 12;
            }
            2 => {
                let (length, start) =
                    varint(bytes, next).ok_or_else(|| place("the file ends in a length"))?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let stop = start.checked_add(length).filter(|stop| *stop <= end);
                let Some(stop) = stop else {
                    return Err(place(&format!(
                        "{length} bytes are announced, and {} are there",
                        end.saturating_sub(start)
                    )));
                };
                next = stop;
                memory += 96;
                if let Some(inner) = kind.field(field) {
                    memory = memory.saturating_add(inner.size());
                    nodes += usize::from(inner == Kind::Node);
                    let deeper = depth + usize::from(inner == Kind::Graph);
                    if deeper > limits.depth {
                        return Err(place(&format!(
                            "graphs are more than {} deep: raise `Limits::depth` if that is meant",
                            limits.depth
                        )));
                    }
                    if open.len() > 6 * limits.depth + 32 {
                        return Err(place("messages are nested deeper than graphs are"));
                    }
                    open.push(Open {
                        kind: inner,
                        end: stop,
                        depth: deeper,
                        at: nodes,
                    });
                    next = start;
                }
            }
            _ => return Err(place("a field of an unknown kind: this is no ONNX file")),
        }
        let end = open.last().map_or(0, |top| top.end);
        if next > end {
            let problem = Error::msg(format_args!(
                "byte {at} of the file: a number goes on past the end of its message"
            ));
            return Err(problem);
        }
        if nodes > limits.nodes {
            return Err(Error::msg(format_args!(
                "the file has more than {} nodes: raise `Limits::nodes` if that is meant",
                limits.nodes
            )));
        }
        if memory > budget {
            return Err(Error::msg(format_args!(
                "the {} bytes of the file would become more than {budget} in memory: raise `Limits::memory` if that is meant",
                bytes.len()
            )));
        }
        at = next;
    }
    Ok(())
}
