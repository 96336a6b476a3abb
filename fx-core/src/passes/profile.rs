//! A profile: how long each node takes and how much it returns, as a table and as a trace file.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use rustc_hash::FxHashMap;
use serde_json::json;
use web_time::Instant;

use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::graph_module::compiled::{Compiled, StepReport};
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
    /// The floating-point operations of one run, where a backend's code counts them; else 0.
    pub flops: u64,
    /// What its time is part of: the side of a branch or loop, or the part that a backend compiled;
    /// empty for nodes of the graph itself.
    pub inside: String,
}

impl NodeCost {
    /// Floating-point operations per second, in thousands of millions; `None` if they are not
    /// counted.
    pub fn gflops(&self) -> Option<f64> {
        let time = self.time.as_secs_f64();
        let flops = self.flops as f64 * self.calls as f64;
        (flops > 0.0 && time > 0.0).then(|| flops / time / 1e9)
    }
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
    peak_flops: Option<f64>,
}

impl Profile {
    /// The nodes, in the order of the graph, and after them those of the sides of its branches and
    /// loops, and the steps of the parts that a backend compiled, as they ran.
    pub fn nodes(&self) -> &[NodeCost] {
        &self.nodes
    }

    /// The time of all nodes.
    pub fn total(&self) -> Duration {
        let own = self.nodes.iter().filter(|node| node.inside.is_empty());
        own.map(|node| node.time).sum()
    }

    /// The floating-point operations that the machine does in a second at best, where a backend that
    /// compiled a part knows.
    pub fn peak_flops(&self) -> Option<f64> {
        self.peak_flops
    }

    /// All steps as JSON, in the trace event format that Perfetto and `chrome://tracing` open:
    /// complete events, in microseconds.
    pub fn to_chrome_trace(&self) -> String {
        let micros = |time: Duration| (time.as_secs_f64() * 1e9).round() / 1e3;
        let events = self.events.iter().map(|event| {
            let node = &self.nodes[event.node];
            let module = match node.module.as_str() {
                "" => "root",
                module => module,
            };
            json!({
                "name": node.name, "cat": module, "ph": "X", "pid": 1, "tid": 1,
                "ts": micros(event.start), "dur": micros(event.time),
                "args": {"call": node.call, "bytes": node.bytes},
            })
        });
        let events: Vec<_> = events.collect();
        json!({"displayTimeUnit": "ms", "traceEvents": events}).to_string()
    }
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
        let counts = nodes.iter().any(|node| node.flops > 0);
        let column = |text: &dyn fmt::Display| match counts {
            true => format!("{text:>7}  "),
            false => String::new(),
        };
        writeln!(
            f,
            "{:width$}  {:>6}  {:>12}  {:>6}  {:>10}  {}call",
            "node",
            "calls",
            "time/call us",
            "share",
            "bytes",
            column(&"GFLOP/s")
        )?;
        for node in nodes {
            let time = node.time.as_secs_f64();
            let speed = node.gflops().map(|speed| format!("{speed:.0}"));
            writeln!(
                f,
                "{:width$}  {:>6}  {:>12.2}  {:>5.1}%  {:>10}  {}{}",
                shown(node),
                node.calls,
                time / node.calls as f64 * 1e6,
                time / total * 100.0,
                node.bytes,
                column(&speed.unwrap_or_default()),
                node.call
            )?;
        }
        writeln!(f, "total: {:.3} ms", total * 1e3)?;
        if let Some(peak) = self.peak_flops.filter(|_| counts) {
            writeln!(f, "peak: {:.0} GFLOP/s", peak / 1e9)?;
        }
        Ok(())
    }
}

/// Measures the nodes of a run.
struct Profiler {
    profile: Profile,
    /// Where the cost of each node is.
    places: FxHashMap<NodeId, usize>,
    /// Where the cost of each step is: of which part, and what it does.
    steps: FxHashMap<(String, StepReport), usize>,
    epoch: Instant,
}

impl Profiler {
    fn ran(&mut self, at: usize, start: Duration, time: Duration) {
        let cost = &mut self.profile.nodes[at];
        cost.calls += 1;
        cost.time += time;
        let event = Event {
            node: at,
            start,
            time,
        };
        self.profile.events.push(event);
    }

    /// Runs the code that a backend made of a module, step by step; `None` if there is none.
    fn compiled(
        &mut self,
        module: &GraphModule,
        inside: &str,
        args: &[Value],
    ) -> Result<Option<Value>> {
        let peak = module.compiled().and_then(Compiled::peak_flops);
        self.profile.peak_flops = self.profile.peak_flops.or(peak);
        let run = module.run_compiled_timed(args, &mut |run| {
            let key = (inside.to_string(), run.step.clone());
            let at = *self.steps.entry(key).or_insert_with(|| {
                self.profile.nodes.push(NodeCost {
                    name: run.step.nodes.join(", "),
                    call: run.step.name.clone(),
                    module: inside.to_string(),
                    calls: 0,
                    time: Duration::ZERO,
                    bytes: 0,
                    flops: run.flops,
                    inside: inside.to_string(),
                });
                self.profile.nodes.len() - 1
            });
            let start = self.epoch.elapsed().saturating_sub(run.time);
            self.ran(at, start, run.time);
        });
        run.transpose()
    }
}

impl Interpreter for Profiler {
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        let start = self.epoch.elapsed();
        let mut value = None;
        if let Op::CallModule(path) = node.op()
            && let Some(module) = <dyn Any>::downcast_ref::<GraphModule>(run.fetch_module(path)?)
            && module.compiled().is_some()
        {
            let inside = run.path_of(node);
            let args = module.process_inputs(run.fetch_args_kwargs_from_env(node)?)?;
            value = self.compiled(module, &inside, &args)?;
        }
        let value = match value {
            Some(value) => value,
            None => run.run_node(self, node)?,
        };
        let time = self.epoch.elapsed() - start;
        if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
            return Ok(value);
        }
        let at = self.places[&node.id()];
        self.profile.nodes[at].bytes = ValueMeta::of(&value).bytes();
        self.ran(at, start, time);
        Ok(value)
    }
}

impl GraphModule {
    /// Runs the graph several times, node by node, and measures what each node costs. What a
    /// backend compiled runs as its code does, and its steps are costs of their own, inside of the
    /// node that calls the part.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let profile = gm.profile(3, 1.5)?;
    /// assert_eq!(profile.nodes().iter().map(|n| n.calls).collect::<Vec<_>>(), [0, 3, 3, 0]);
    /// assert!(profile.to_string().contains("mul") && profile.to_chrome_trace().contains("\"ph\":\"X\""));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`forward`](GraphModule::forward).
    pub fn profile(&self, runs: usize, args: impl IntoArgs) -> Result<Profile> {
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
                    flops: 0,
                    inside: inside.clone(),
                });
            }
        }
        let mut profiler = Profiler {
            profile: Profile {
                nodes,
                events: Vec::new(),
                peak_flops: self.compiled().and_then(Compiled::peak_flops),
            },
            places,
            steps: FxHashMap::default(),
            epoch: Instant::now(),
        };
        let inputs = self.process_inputs(args)?;
        for _ in 0..runs {
            if profiler.compiled(self, "", &inputs)?.is_none() {
                self.interpretation().run(&mut profiler, inputs.clone())?;
            }
        }
        Ok(profiler.profile)
    }
}
