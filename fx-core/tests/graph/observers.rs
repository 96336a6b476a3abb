//! Observers of a graph are notified of what is made and erased.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fx_core::ir::{GraphObserver, NodeRef};
use fx_core::operator;
use fx_core::prelude::*;

use crate::support::*;

#[derive(Default)]
struct Counts {
    created: AtomicUsize,
    erased: AtomicUsize,
}

impl GraphObserver for Counts {
    fn created(&self, _: NodeRef<'_>) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }

    fn erased(&self, _: NodeRef<'_>) {
        self.erased.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counts {
    fn get(&self) -> (usize, usize) {
        (
            self.created.load(Ordering::Relaxed),
            self.erased.load(Ordering::Relaxed),
        )
    }
}

#[test]
fn observers_hear_of_nodes_until_they_are_removed() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Array| x.relu()))?;
    let (first, second) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    let ids = {
        let mut graph = gm.graph_mut();
        [graph.observe(first.clone()), graph.observe(second.clone())]
    };
    let relu = node(gm.graph(), "relu")?.id();
    let mut graph = gm.graph_mut();
    let neg = graph
        .inserting_after(relu)?
        .call_function(operator::neg, (relu,), ())?;
    assert_eq!((first.get(), second.get()), ((1, 0), (1, 0)));
    graph.erase_node(neg)?;
    assert_eq!((first.get(), second.get()), ((1, 1), (1, 1)));
    for id in ids {
        assert!(graph.unobserve(id));
        assert!(!graph.unobserve(id), "it is registered no more");
    }
    let output = graph.output_node().map(|n| n.id());
    let neg = graph
        .inserting_before(output)?
        .call_function(operator::neg, (relu,), ())?;
    graph.erase_node(neg)?;
    assert_eq!((first.get(), second.get()), ((1, 1), (1, 1)));
    Ok(())
}
