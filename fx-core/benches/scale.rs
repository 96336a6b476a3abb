//! How the graph's operations scale: ns (or bytes) per node at 10^5 and 10^6 nodes, and the
//! exponent between.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod support;

use std::alloc::System;
use std::hint::black_box;
use std::time::Instant;

use fx_core::ir::{Graph, Op};
use fx_core::value::NodeId;
use fx_core::{Result, operator};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::wanted;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A figure for each size.
struct Figures {
    what: &'static str,
    unit: &'static str,
    values: Vec<(usize, f64)>,
}

impl Figures {
    fn print(&self) {
        for (n, value) in &self.values {
            println!("graph.{}/{n} {value:.1} {}", self.what, self.unit);
        }
        if let [(a, x), (b, y)] = self.values.as_slice() {
            let exponent = 1.0 + (y / x).ln() / (*b as f64 / *a as f64).ln();
            println!("graph.{}/exponent {exponent:.2}", self.what);
        }
    }
}

const TOTAL: usize = 1_000_000;
const SIZES: [usize; 2] = [TOTAL / 10, TOTAL];

/// Runs on as many graphs as make a million nodes, built beforehand: both sizes work on the same
/// amount of memory, so that the exponent shows the growth of the algorithm and not the sizes of
/// the caches.
fn measure<S>(
    what: &'static str,
    mut setup: impl FnMut(usize) -> Result<S>,
    mut run: impl FnMut(&mut S) -> Result<()>,
) -> Result<()> {
    if !wanted(what) {
        return Ok(());
    }
    let mut values = Vec::new();
    for n in SIZES {
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let mut states = (0..TOTAL / n)
                .map(|_| setup(n))
                .collect::<Result<Vec<_>>>()?;
            let start = Instant::now();
            for state in &mut states {
                run(state)?;
            }
            best = best.min(start.elapsed().as_secs_f64());
            black_box(&states);
        }
        values.push((n, best * 1e9 / TOTAL as f64));
    }
    Figures {
        what,
        unit: "ns",
        values,
    }
    .print();
    Ok(())
}

fn chain(n: usize) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut x = graph.placeholder("x")?;
    for _ in 2..n {
        x = graph.call_function(operator::neg, (x,), ())?;
    }
    graph.output(x)?;
    Ok(graph)
}

fn ids(graph: &Graph) -> Vec<NodeId> {
    graph.nodes().map(|node| node.id()).collect()
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap_or(0)
    }
}

/// A chain whose nodes stand in the graph in random order.
fn shuffled(n: usize) -> Result<Graph> {
    let mut graph = chain(n)?;
    let ids = ids(&graph);
    let mut random = Random(7);
    for i in (1..ids.len()).rev() {
        let j = random.below(i);
        graph.node_mut(ids[j])?.prepend(ids[i])?;
    }
    Ok(graph)
}

/// Random pairs, each of a random graph among those that make a million nodes.
fn is_before() -> Result<()> {
    if !wanted("is_before") {
        return Ok(());
    }
    let mut values = Vec::new();
    for n in SIZES {
        let graphs = (0..TOTAL / n)
            .map(|_| chain(n))
            .collect::<Result<Vec<_>>>()?;
        let ids: Vec<_> = graphs.iter().map(ids).collect();
        let mut random = Random(3);
        let pairs: Vec<_> = (0..TOTAL)
            .map(|_| {
                let graph = random.below(graphs.len());
                let mut id = || ids[graph][random.below(n)];
                (graph, id(), id())
            })
            .collect();
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            let mut count = 0usize;
            for (graph, a, b) in &pairs {
                count += usize::from(graphs[*graph].is_before(*a, *b)?);
            }
            black_box(count);
            best = best.min(start.elapsed().as_secs_f64());
        }
        values.push((n, best * 1e9 / TOTAL as f64));
    }
    Figures {
        what: "is_before",
        unit: "ns",
        values,
    }
    .print();
    Ok(())
}

fn main() -> Result<()> {
    measure(
        "create_node",
        |n| Ok((n, Graph::new())),
        |(n, graph)| {
            let mut x = graph.placeholder("x")?;
            for _ in 1..*n {
                x = graph.call_function(operator::neg, (x,), ())?;
            }
            Ok(())
        },
    )?;

    let mut values = Vec::new();
    for n in SIZES.into_iter().filter(|_| wanted("bytes")) {
        let before = ALLOCATOR.stats();
        let graph = chain(n)?;
        let after = ALLOCATOR.stats();
        let held = |s: &stats_alloc::Stats| s.bytes_allocated as f64 - s.bytes_deallocated as f64;
        values.push((n, (held(&after) - held(&before)) / n as f64));
        drop(graph);
    }
    Figures {
        what: "bytes",
        unit: "bytes",
        values,
    }
    .print();

    measure("iterate", chain, |graph| {
        black_box(graph.nodes().map(|node| node.id()).max());
        Ok(())
    })?;
    measure("lint", chain, |graph| graph.lint())?;
    measure(
        "dead_code",
        |n| {
            let mut graph = Graph::new();
            let mut x = graph.placeholder("x")?;
            for _ in 1..n / 2 {
                graph.call_function(operator::neg, (x,), ())?;
                x = graph.call_function(operator::neg, (x,), ())?;
            }
            graph.output(x)?;
            Ok(graph)
        },
        |graph| {
            graph
                .eliminate_dead_code()
                .map(|erased| assert!(erased > 0))
        },
    )?;
    measure(
        "copy",
        |n| Ok((chain(n)?, None)),
        |(graph, copy)| {
            *copy = Some(graph.compact()?);
            Ok(())
        },
    )?;
    measure(
        "clone",
        |n| Ok((chain(n)?, None)),
        |(graph, copy)| {
            *copy = Some(graph.clone());
            Ok(())
        },
    )?;
    measure(
        "print",
        |n| Ok((chain(n)?, String::new())),
        |(graph, text)| {
            *text = graph.to_string();
            Ok(())
        },
    )?;
    measure(
        "parse",
        |n| Ok((chain(n)?.to_string(), None)),
        |(text, graph)| {
            *graph = Some(text.parse::<Graph>()?);
            Ok(())
        },
    )?;
    measure(
        "erase_all",
        |n| {
            let graph = chain(n)?;
            let ids = ids(&graph);
            Ok((graph, ids))
        },
        |(graph, ids)| {
            for id in ids.iter().rev() {
                graph.erase_node(*id)?;
            }
            Ok(())
        },
    )?;
    measure(
        "replace_hub",
        |n| {
            let mut graph = Graph::new();
            let x = graph.placeholder("x")?;
            let y = graph.placeholder("y")?;
            for _ in 0..n {
                graph.call_function(operator::neg, (x,), ())?;
            }
            Ok((graph, x, y))
        },
        |(graph, x, y)| graph.node_mut(*x)?.replace_all_uses_with(*y).map(drop),
    )?;
    measure(
        "insert_after_each",
        |n| {
            let graph = chain(n)?;
            let mut ids = ids(&graph);
            ids.pop();
            Ok((graph, ids))
        },
        |(graph, ids)| {
            for id in ids.iter() {
                let new = graph
                    .inserting_after(*id)?
                    .call_function(operator::neg, (*id,), ())?;
                graph.node_mut(*id)?.replace_all_uses_with(new)?;
            }
            Ok(())
        },
    )?;
    is_before()?;
    measure("find_nodes", chain, |graph| {
        let found = graph.find_nodes(&Op::CallFunction(operator::neg));
        assert!(!found.is_empty());
        // Kept, like all results here: the memory of one is not reused for the next.
        std::mem::forget(black_box(found));
        Ok(())
    })?;
    measure("sort", shuffled, |graph| graph.sort())?;
    measure(
        "drop",
        |n| Ok(Some(chain(n)?)),
        |graph| {
            *graph = None;
            Ok(())
        },
    )?;
    Ok(())
}
