//! Generated source: its lines, each with the node it belongs to, and options for what it shows.

use std::fmt;

use crate::ir::meta::Meta;
use crate::ir::node::NodeRef;
use crate::ir::value_meta::ValueMeta;
use crate::value::handle::NodeId;

/// One line of a generated body, without its indentation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeLine {
    /// The text.
    pub text: String,
    /// The node that it computes, if it belongs to one.
    pub node: Option<NodeId>,
}

impl From<&str> for CodeLine {
    fn from(text: &str) -> Self {
        CodeLine {
            text: text.to_string(),
            node: None,
        }
    }
}

impl From<String> for CodeLine {
    fn from(text: String) -> Self {
        CodeLine { text, node: None }
    }
}

/// Options for what generated source shows besides the computation.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::emit::CodeOptions;
/// let gm = symbolic_trace(traced!(|x: Float| x * 2.0))?;
/// let verbose = gm.rust_code(&CodeOptions::new().verbose(true));
/// assert!(verbose.source().contains("    // ") && verbose.source().contains(".rs:"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct CodeOptions {
    pub(crate) verbose: bool,
    pub(crate) details: bool,
    pub(crate) color: bool,
    pub(crate) expanded: bool,
    metas: Vec<ShownMeta>,
}

/// The text of a node's entry, if the node has one.
type ShownMeta = fn(NodeRef<'_>) -> Option<String>;

impl CodeOptions {
    /// Shows only the computation, as [`code`](crate::GraphModule::code) does.
    pub fn new() -> Self {
        CodeOptions::default()
    }

    /// Whether to show source lines and modules before the nodes that came from them, and shapes
    /// beside the names if they are known (`propagate_shapes`).
    #[must_use]
    pub fn verbose(mut self, yes: bool) -> Self {
        self.verbose = yes;
        self
    }

    /// Whether to show strides, devices and `requires_grad` beside the shapes too.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::emit::CodeOptions;
    /// use fx_core::ir::{TensorMeta, ValueMeta};
    /// use fx_core::value::{DType, Device};
    /// let mut gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let mul = gm.graph().find_name("mul").map(|node| node.id()).ok_or_else(|| Error::msg("it multiplies"))?;
    /// let meta = TensorMeta::new([2, 3]).dtype(DType::F32).strides([3, 1]).device(Device::Cpu);
    /// gm.graph_mut().node_mut(mul)?.set_meta(ValueMeta::from(meta));
    /// let code = gm.rust_code(&CodeOptions::new().details(true)).to_string();
    /// assert!(code.contains("let mul /* float32[2, 3], strides [3, 1], cpu */ = (x * 2.0)?;"));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn details(mut self, yes: bool) -> Self {
        self.details = yes;
        self
    }

    /// Shows entries of this type beside the names of the nodes that have one (torch.fx's
    /// `additional_meta`).
    ///
    /// ```
    /// use std::fmt;
    /// use fx_core::prelude::*;
    /// use fx_core::emit::CodeOptions;
    /// use fx_core::ir::{Meta, MetaPolicy};
    /// #[derive(Debug)]
    /// struct Stage(u32);
    /// impl Meta for Stage {
    ///     const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    ///     const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
    /// }
    /// impl fmt::Display for Stage {
    ///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "stage {}", self.0) }
    /// }
    /// let mut gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let mul = gm.graph().find_name("mul").map(|node| node.id()).ok_or_else(|| Error::msg("it multiplies"))?;
    /// gm.graph_mut().node_mut(mul)?.set_meta(Stage(2));
    /// let code = gm.rust_code(&CodeOptions::new().meta::<Stage>()).to_string();
    /// assert!(code.contains("let mul /* stage 2 */ = (x * 2.0)?;"));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn meta<T: Meta + fmt::Display>(mut self) -> Self {
        self.metas
            .push(|node| node.meta::<T>().map(ToString::to_string));
        self
    }

    /// The text beside the name of a node.
    pub(super) fn beside(&self, node: NodeRef<'_>) -> Option<String> {
        let value = match node.meta::<ValueMeta>() {
            // A number's value on the sample run says nothing about the next run.
            None
            | Some(
                ValueMeta::Float(_)
                | ValueMeta::Bool(_)
                | ValueMeta::Plain(_)
                | ValueMeta::Unranked(_)
                | ValueMeta::Opaque(_),
            ) => None,
            Some(ValueMeta::Int(dim)) if dim.as_number().is_some() => None,
            Some(value) if self.details => Some(format!("{value:#}")),
            Some(value) => self.verbose.then(|| value.to_string()),
        };
        let metas = self.metas.iter().filter_map(|shown| shown(node));
        let shown: Vec<String> = value.into_iter().chain(metas).collect();
        (!shown.is_empty()).then(|| shown.join("; "))
    }

    /// Whether to show names and comments in terminal colours.
    #[must_use]
    pub fn color(mut self, yes: bool) -> Self {
        self.color = yes;
        self
    }

    /// Whether to write each parameter of the function on its own line.
    #[must_use]
    pub fn expanded_head(mut self, yes: bool) -> Self {
        self.expanded = yes;
        self
    }
}

/// Generated source, with the node that each of its lines belongs to.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::emit::CodeOptions;
/// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let code = gm.rust_code(&CodeOptions::new());
/// let line = 1 + code.source().lines().position(|line| line.contains("x * 2.0")).unwrap_or(0);
/// let node = code.node_at(line).ok_or_else(|| Error::msg("the line is a node's"))?;
/// assert_eq!(gm.graph().node(node)?.name(), "mul");
/// assert_eq!(code.line_of(node), Some(line));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RustCode {
    source: String,
    /// By line, from the first.
    nodes: Vec<Option<NodeId>>,
}

impl RustCode {
    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The node that a line computes; lines count from 1, as compilers count them.
    pub fn node_at(&self, line: usize) -> Option<NodeId> {
        *self.nodes.get(line.checked_sub(1)?)?
    }

    /// The first line that belongs to a node.
    pub fn line_of(&self, node: NodeId) -> Option<usize> {
        self.nodes
            .iter()
            .position(|at| *at == Some(node))
            .map(|at| at + 1)
    }
}

impl fmt::Display for RustCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl From<RustCode> for String {
    fn from(code: RustCode) -> Self {
        code.source
    }
}

/// Source under construction.
#[derive(Default)]
pub(super) struct Text {
    source: String,
    nodes: Vec<Option<NodeId>>,
}

impl Text {
    pub fn with_capacity(lines: usize) -> Self {
        Text {
            source: String::with_capacity(lines * 48),
            nodes: Vec::with_capacity(lines),
        }
    }

    /// Adds the lines of one text, all belonging to one node.
    pub fn push(&mut self, indent: &str, text: &str, node: Option<NodeId>) {
        for line in text.split('\n') {
            if !line.is_empty() {
                self.source.push_str(indent);
                self.source.push_str(line);
            }
            self.source.push('\n');
            self.nodes.push(node);
        }
    }

    pub fn finish(self) -> RustCode {
        RustCode {
            source: self.source,
            nodes: self.nodes,
        }
    }
}
