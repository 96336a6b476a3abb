//! The printed forms of a graph: torch.fx's lines, and the table.

use std::fmt;

use super::argument::Argument;
use super::graph::Graph;
use super::node::NodeRef;
use super::op::Op;
use super::value_meta::ValueMeta;

/// An argument in printed form, `%name` for a node; without a graph, [`HOLE`].
struct Shown<'g> {
    graph: Option<&'g Graph>,
    arg: &'g Argument,
}

/// Stands for a node in a [`Template`].
pub(crate) const HOLE: char = '\u{1}';

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |arg| Shown {
            graph: self.graph,
            arg,
        };
        match self.arg {
            Argument::Node(id) => match self.graph.map(|graph| graph.node(*id)) {
                Some(Ok(node)) => write!(f, "%{}", node.name()),
                Some(Err(_)) => f.write_str("%<erased>"),
                None => write!(f, "{HOLE}"),
            },
            Argument::None => f.write_str("None"),
            Argument::Ellipsis => f.write_str("..."),
            Argument::Bool(b) => write!(f, "{b}"),
            Argument::Int(n) => write!(f, "{n}"),
            Argument::Float(x) => write!(f, "{x:?}"),
            Argument::Str(s) => write!(f, "{s:?}"),
            Argument::DType(d) => write!(f, "{d}"),
            Argument::Device(d) => write!(f, "{d}"),
            Argument::List(items) => {
                f.write_str("[")?;
                separated(f, items.iter().map(show))?;
                f.write_str("]")
            }
            Argument::Tuple(items) => write!(f, "{}", ShownTuple(self.graph, items)),
            Argument::Dict(items) => {
                f.write_str("{")?;
                for (i, (key, arg)) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{key:?}: {}", show(arg))?;
                }
                f.write_str("}")
            }
            Argument::Slice(parts) => {
                f.write_str("slice(")?;
                separated(f, parts.iter().map(show))?;
                f.write_str(")")
            }
            Argument::Range(parts) => {
                f.write_str("range(")?;
                separated(f, parts.iter().map(show))?;
                f.write_str(")")
            }
        }
    }
}

struct ShownTuple<'g>(Option<&'g Graph>, &'g [Argument]);

impl fmt::Display for ShownTuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        separated(f, self.1.iter().map(|arg| Shown { graph: self.0, arg }))?;
        f.write_str(if self.1.len() == 1 { ",)" } else { ")" })
    }
}

fn separated(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = impl fmt::Display>,
) -> fmt::Result {
    for (i, item) in items.enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// A node's arguments with holes where nodes stand, so that equal ones are equal texts.
pub(crate) struct Template<'g>(pub NodeRef<'g>);

impl fmt::Display for Template<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_with(f, None)
    }
}

impl Template<'_> {
    /// Writes the arguments with the names of nodes, if there is a graph.
    pub fn fmt_with(&self, f: &mut fmt::Formatter<'_>, graph: Option<&Graph>) -> fmt::Result {
        let shown = |arg| Shown { graph, arg };
        f.write_str("(")?;
        separated(f, self.0.args().iter().map(shown))?;
        for (at, (key, arg)) in self.0.kwargs().iter().enumerate() {
            let comma = if at > 0 || !self.0.args().is_empty() {
                ", "
            } else {
                ""
            };
            write!(f, "{comma}{key}={}", shown(arg))?;
        }
        f.write_str(")")
    }
}

/// Text that is printed bare if it can be parsed back, otherwise quoted.
struct Bare<'a> {
    text: &'a str,
    readable: bool,
}

impl fmt::Display for Bare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readable =
            self.readable && !self.text.starts_with('"') && !self.text.contains(char::is_control);
        match readable {
            true => f.write_str(self.text),
            false => write!(f, "{:?}", self.text),
        }
    }
}

fn bare_type(text: &str) -> Bare<'_> {
    let readable = !text.is_empty() && text.trim() == text && !text.contains("[num_users=");
    Bare { text, readable }
}

fn bare_target(text: &str) -> Bare<'_> {
    let readable = !text.contains(']');
    Bare { text, readable }
}

fn bare_keyword(text: &str) -> Bare<'_> {
    let readable = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    Bare { text, readable }
}

fn write_kwargs(f: &mut fmt::Formatter<'_>, node: NodeRef<'_>) -> fmt::Result {
    f.write_str("{")?;
    for (i, (key, arg)) in node.kwargs().iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        let graph = Some(node.graph());
        write!(f, "{}: {}", bare_keyword(key), Shown { graph, arg })?;
    }
    f.write_str("}")
}

/// torch.fx's `format_node`; `{:#}` adds what is known about the node's value
/// (`include_tensor_metadata`).
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::{TensorMeta, ValueMeta};
/// use fx_core::value::DType;
/// let mut gm = symbolic_trace(traced!(|x: Float| -x))?;
/// let neg = gm.graph().find_name("neg").map(|node| node.id()).ok_or_else(|| Error::msg("it negates"))?;
/// let meta = TensorMeta::new([2, 3]).dtype(DType::F32).strides([3, 1]);
/// gm.graph_mut().node_mut(neg)?.set_meta(ValueMeta::from(meta));
/// let text = format!("{:#}", gm.graph().node(neg)?);
/// assert!(text.ends_with("(args = (%x,), kwargs = {})  # float32[2, 3], strides [3, 1]"));
/// # Ok::<(), Error>(())
/// ```
impl fmt::Display for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line(f)?;
        match self.meta::<ValueMeta>() {
            Some(meta) if f.alternate() => write!(f, "  # {meta:#}"),
            _ => Ok(()),
        }
    }
}

impl NodeRef<'_> {
    fn line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graph = Some(self.graph());
        let plain = self.kwargs().is_empty() && self.num_users() == 0 && self.type_expr().is_none();
        if *self.op() == Op::Output && plain {
            f.write_str("return ")?;
            return separated(f, self.args().iter().map(|arg| Shown { graph, arg }));
        }
        write!(f, "%{} : ", self.name())?;
        if let Some(ty) = self.type_expr() {
            write!(f, "{} ", bare_type(ty))?;
        }
        write!(
            f,
            "[num_users={}] = {}[target={}]",
            self.num_users(),
            self.opcode(),
            bare_target(self.target())
        )?;
        match (self.op(), self.args(), self.kwargs()) {
            (Op::Placeholder(_) | Op::GetAttr(_), [], []) => Ok(()),
            (Op::Placeholder(_), [arg], []) => write!(f, "(default={})", Shown { graph, arg }),
            _ => {
                write!(f, "(args = {}, kwargs = ", ShownTuple(graph, self.args()))?;
                write_kwargs(f, *self)?;
                f.write_str(")")
            }
        }
    }
}

/// A line per node; `{:#}` adds what is known about their values.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("graph():")?;
        for node in self.nodes() {
            f.write_str("\n    ")?;
            node.fmt(f)?;
        }
        Ok(())
    }
}

struct ShownKwargs<'g>(NodeRef<'g>);

impl fmt::Display for ShownKwargs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_kwargs(f, self.0)
    }
}

impl Graph {
    /// The graph as a table: opcode, name, target, args, kwargs (torch.fx's `print_tabular`).
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::Graph;
    /// # let mut graph = Graph::new();
    /// # let x = graph.placeholder("x")?;
    /// # let y = graph.call_function(operator::neg, (x,), ())?;
    /// # graph.output(y)?;
    /// println!("{}", graph.tabular());
    /// # assert!(graph.tabular().starts_with("opcode"));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn tabular(&self) -> String {
        let mut rows: Vec<[String; 5]> =
            vec![["opcode", "name", "target", "args", "kwargs"].map(String::from)];
        for node in self.nodes() {
            rows.push([
                node.opcode().to_string(),
                node.name().to_string(),
                node.target().to_string(),
                ShownTuple(Some(self), node.args()).to_string(),
                ShownKwargs(node).to_string(),
            ]);
        }
        let widths: [usize; 5] =
            std::array::from_fn(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0));
        rows.insert(1, widths.map(|w| "-".repeat(w)));
        let mut text = String::new();
        for row in rows {
            let line: Vec<String> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            text.push_str(line.join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// Prints [`tabular`](Graph::tabular).
    #[allow(clippy::print_stdout, reason = "printing is what it is for")]
    pub fn print_tabular(&self) {
        print!("{}", self.tabular());
    }
}
