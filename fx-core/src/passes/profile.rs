//! A profile: how long each node takes and how much it returns, as a table and as a trace file.

use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::within;
use crate::run::interpreter::{Interpretation, Interpreter};
use crate::trace::call_args::IntoArgs;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// What one node cost, over all runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeCost {
    /// The node's name.
    pub name: String,
    /// Its opcode and target.
    pub call: String,
    /// The path of the module that it came from; empty for the root's own.
    pub module: String,
    /// How often it ran.
    pub calls: usize,
    /// How long all runs took.
    pub time: Duration,
    /// Bytes that one run returned.
    pub bytes: usize,
    /// The side of a branch or loop that it is in, whose own time has that of the node; empty for
    /// nodes of the graph itself.
    pub inside: String,
}

/// A node's step in one run.
#[derive(Debug, Clone)]
struct Event {
    node: usize,
    start: Duration,
    time: Duration,
}

/// How long each node took: made by [`GraphModule::profile`]; prints as a table, the most expensive
/// first.
#[derive(Debug, Clone)]
pub struct Profile {
    nodes: Vec<NodeCost>,
    events: Vec<Event>,
}

impl Profile {
    /// The nodes, in the order of the graph, and after them those of the sides of its branches and
    /// loops.
    pub fn nodes(&self) -> &[NodeCost] {
        &self.nodes
    }

    /// The time of all nodes.
    pub fn total(&self) -> Duration {
        let own = self.nodes.iter().filter(|node| node.inside.is_empty());
        own.map(|node| node.time).sum()
    }

    /// All steps as JSON, in the trace event format that Perfetto and `chrome://tracing` open:
    /// complete events, in microseconds.
    pub fn to_chrome_trace(&self) -> String {
        let mut text = String::from("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
        for (at, event) in self.events.iter().enumerate() {
            let node = &self.nodes[event.node];
            let comma = if at == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{comma}\n{{\"name\": {}, \"cat\": {}, \"ph\": \"X\", \"ts\": {:.3}, \"dur\": {:.3}, \"pid\": 1, \
                 \"tid\": 1, \"args\": {{\"call\": {}, \"bytes\": {}}}}}",
                quoted(&node.name),
                quoted(if node.module.is_empty() {
                    "root"
                } else {
                    &node.module
                }),
                event.start.as_secs_f64() * 1e6,
                event.time.as_secs_f64() * 1e6,
                quoted(&node.call),
                node.bytes
            );
        }
        text.push_str("\n]}\n");
        text
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().as_secs_f64().max(f64::MIN_POSITIVE);
        let mut nodes: Vec<&NodeCost> = self.nodes.iter().filter(|n| n.calls > 0).collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(node.time));
        let shown = |node: &NodeCost| within(&node.inside, &node.name);
        let width = nodes
            .iter()
            .map(|n| shown(n).len())
            .max()
            .unwrap_or(4)
            .max(4);
        writeln!(
            f,
            "{:width$}  {:>6}  {:>12}  {:>6}  {:>10}  call",
            "node", "calls", "time/call us", "share", "bytes"
        )?;
        for node in nodes {
            let time = node.time.as_secs_f64();
            writeln!(
                f,
                "{:width$}  {:>6}  {:>12.2}  {:>5.1}%  {:>10}  {}",
                shown(node),
                node.calls,
                time / node.calls as f64 * 1e6,
                time / total * 100.0,
                node.bytes,
                node.call
            )?;
        }
        writeln!(f, "total: {:.3} ms", total * 1e3)
    }
}

impl GraphModule {
    /// Runs the graph several times, node by node, and measures what each node costs.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let profile = gm.profile(3, 1.5)?;
    /// assert_eq!(profile.nodes().iter().map(|n| n.calls).collect::<Vec<_>>(), [0, 3, 3, 0]);
    /// assert!(profile.to_string().contains("mul") && profile.to_chrome_trace().contains("\"ph\": \"X\""));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`forward`](GraphModule::forward).
    pub fn profile(&self, runs: usize, args: impl IntoArgs) -> Result<Profile> {
        struct Profiler {
            profile: Profile,
            places: FxHashMap<NodeId, usize>,
            epoch: Instant,
        }
        impl Interpreter for Profiler {
            fn run_node(
                &mut self,
                run: &mut Interpretation<'_>,
                node: NodeRef<'_>,
            ) -> Result<Value> {
                let start = self.epoch.elapsed();
                let value = run.run_node(self, node)?;
                let time = self.epoch.elapsed() - start;
                if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
                    return Ok(value);
                }
                let at = self.places[&node.id()];
                let cost = &mut self.profile.nodes[at];
                cost.calls += 1;
                cost.time += time;
                cost.bytes = ValueMeta::of(&value).bytes();
                let event = Event {
                    node: at,
                    start,
                    time,
                };
                self.profile.events.push(event);
                Ok(value)
            }
        }
        let mut nodes = Vec::new();
        let mut places = FxHashMap::default();
        for (inside, side) in self.with_sides() {
            for node in side.graph() {
                places.insert(node.id(), nodes.len());
                let module = node.modules_around().next();
                nodes.push(NodeCost {
                    name: node.name().to_string(),
                    call: format!("{}[{}]", node.opcode().name(), node.target()),
                    module: module
                        .map(|scope| scope.path.to_string())
                        .unwrap_or_default(),
                    calls: 0,
                    time: Duration::ZERO,
                    bytes: 0,
                    inside: inside.clone(),
                });
            }
        }
        let mut profiler = Profiler {
            profile: Profile {
                nodes,
                events: Vec::new(),
            },
            places,
            epoch: Instant::now(),
        };
        let inputs = self.process_inputs(args)?;
        for _ in 0..runs {
            self.interpretation().run(&mut profiler, inputs.clone())?;
        }
        Ok(profiler.profile)
    }
}
