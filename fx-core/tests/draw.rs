//! Drawings, pages and differences: what is in them, that boxes and lines keep apart, and that a
//! hostile name stays a text.

#[path = "draw/pages.rs"]
mod pages;

use std::sync::Arc;

use fx_core::draw::{ColorBy, DrawOptions};
use fx_core::ir::{Argument, Graph, Op};
use fx_core::passes::{Cse, DeadCode, FoldConstants};
use fx_core::prelude::*;
use fx_core::value::NodeId;
use fx_core::{control, operator};
use proptest::prelude::*;

#[derive(Module)]
struct Scale {
    by: f64,
}

#[trace(leaf)]
impl Scale {
    fn forward(&self, x: Float) -> Result<Float> {
        x * self.by
    }
}

#[derive(Module)]
struct Block {
    first: Scale,
    second: Scale,
}

#[trace]
impl Block {
    fn forward(&self, x: Float) -> Result<Float> {
        let y = self.second.forward((self.first.forward(x)? + 1.0)?)?;
        y + x
    }
}

#[derive(Module)]
struct Net {
    blocks: Vec<Block>,
    last: Scale,
}

#[trace]
impl Net {
    fn forward(&self, x: Float) -> Result<Float> {
        let mut x = x;
        for block in &self.blocks {
            x = block.forward(x)?;
        }
        let sign: Bool = operator::gt.call_as((x, 0.0))?;
        control::cond(sign, || self.last.forward(x), || -x)
    }
}

fn net(blocks: usize) -> Result<GraphModule> {
    let scale = || Scale { by: 2.0 };
    let block = || Block {
        first: scale(),
        second: scale(),
    };
    symbolic_trace(&Net {
        blocks: (0..blocks).map(|_| block()).collect(),
        last: scale(),
    })
}

#[test]
fn modules_are_clusters_and_closed_ones_boxes() -> Result<()> {
    let gm = net(2)?;
    insta::assert_snapshot!(gm.draw(&DrawOptions::new().title("a \"net\""))?.dot());
    let closed = DrawOptions::new().depth(0).open("blocks.1");
    insta::assert_snapshot!(gm.draw(&closed)?.mermaid());
    let missing = gm.draw(&DrawOptions::new().open("blocks.7")).err();
    let text = missing.map(|error| error.to_string()).unwrap_or_default();
    assert!(
        text.starts_with("no module `blocks.7` is in the picture"),
        "{text}"
    );
    Ok(())
}

#[test]
fn an_svg_has_each_node_once_with_its_colour() -> Result<()> {
    let gm = net(3)?;
    let by_users = ColorBy::value(|node| Some(node.num_users() as f64));
    let svg = gm.draw(&DrawOptions::new().color_by(by_users))?.svg();
    let document = roxmltree::Document::parse(&svg).map_err(Error::other)?;
    let texts: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    for node in gm
        .graph()
        .nodes()
        .filter(|node| !node.op().target().starts_with("cond"))
    {
        let name = node.name().to_string();
        assert!(
            texts.iter().filter(|text| **text == name).count() >= 1,
            "{name}: {texts:?}"
        );
    }
    assert!(
        texts.contains(&"otherwise") && texts.contains(&"blocks"),
        "{texts:?}"
    );
    Ok(())
}

#[test]
fn a_difference_names_what_is_new_gone_and_changed() -> Result<()> {
    let before = symbolic_trace(traced!(|x: Float| {
        let (a, b) = ((x * 2.0)?, (x * 2.0)?);
        let _unused = (a - 1.0)?;
        (a + b)? / 4.0
    }))?;
    let mut after = before.clone();
    after.apply(&FoldConstants::new())?;
    after.apply(&Cse::new())?;
    after.apply(&DeadCode)?;
    let div = after.graph().find_name("truediv").map(|node| node.id());
    let div = div.ok_or_else(|| Error::msg("it divides"))?;
    let neg = after
        .graph_mut()
        .inserting_after(div)?
        .call_function(operator::neg, (div,), ())?;
    after
        .graph_mut()
        .node_mut(div)?
        .replace_uses_with_filter(neg, |user| user.id() != neg)?;
    let diff = before.diff(&after);
    assert_eq!(diff.counts(), [1, 2, 2]);
    insta::assert_snapshot!(diff);
    insta::assert_snapshot!(format!("{diff:#}").escape_debug());
    assert!(after.diff(&after).is_empty() && !diff.is_empty());

    // Nodes of branches too.
    let (mut one, other) = (net(1)?, net(1)?);
    let side = one.graph().nodes().find_map(|node| match node.op() {
        Op::CallModule(path) if path.starts_with("cond") => Some(path.to_string()),
        _ => None,
    });
    let side = format!("{}.otherwise", side.unwrap_or_default());
    let side = one.submodule_as_mut::<GraphModule>(&side)?;
    let neg = side
        .graph()
        .nodes()
        .find(|node| node.op().is_call())
        .map(|node| node.id());
    let neg = neg.ok_or_else(|| Error::msg("a branch negates"))?;
    side.graph_mut()
        .node_mut(neg)?
        .set_op(Op::CallFunction(operator::abs))?;
    insta::assert_snapshot!(one.diff(&other));
    Ok(())
}

/// A graph of `neg` and `add`, each on earlier values.
fn random_graph(choices: &[(u8, u8, bool)]) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let mut values: Vec<NodeId> = vec![graph.placeholder("x")?];
    for (a, b, is_sum) in choices {
        let pick = |at: u8| values[usize::from(at) % values.len()];
        values.push(match is_sum {
            true => graph.call_function(operator::add, (pick(*a), pick(*b)), ())?,
            false => graph.call_function(operator::neg, (pick(*a),), ())?,
        });
    }
    let results = values.iter().step_by(3).map(|id| (*id).into()).collect();
    graph.output(Argument::Tuple(Arc::new(results)))?;
    GraphModule::new(Default::default(), graph, "Random")
}

/// The boxes of an SVG: left, top, right, bottom.
fn boxes(svg: &str) -> Result<Vec<[i64; 4]>> {
    let document = roxmltree::Document::parse(svg).map_err(Error::other)?;
    let is_box = |node: &roxmltree::Node<'_, '_>| {
        let class = node.attribute("class").unwrap_or_default();
        node.has_tag_name("rect") && (class.starts_with('c') || class == "p")
    };
    let of = |node: roxmltree::Node<'_, '_>| {
        let number = |name: &str| -> Result<i64> {
            node.attribute(name)
                .unwrap_or_default()
                .parse()
                .map_err(Error::other)
        };
        let (x, y) = (number("x")?, number("y")?);
        Ok([x, y, x + number("width")?, y + number("height")?])
    };
    // Those of the legend are below all others.
    let found: Result<Vec<[i64; 4]>> = document.descendants().filter(is_box).map(of).collect();
    Ok(found?
        .into_iter()
        .filter(|[x, _, right, _]| right - x > 14)
        .collect())
}

proptest! {
    #[test]
    fn boxes_do_not_overlap_and_lines_go_down(
        choices in prop::collection::vec(any::<(u8, u8, bool)>(), 1..150),
        depth in 0u32..3,
    ) {
        let gm = random_graph(&choices)?;
        let svg = gm.draw(&DrawOptions::new().depth(depth))?.svg();
        let boxes = boxes(&svg)?;
        for (at, a) in boxes.iter().enumerate() {
            for b in &boxes[at + 1..] {
                let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                prop_assert!(apart, "{a:?} {b:?}");
            }
        }
        for path in svg.lines().filter_map(|line| line.split(" d=\"M").nth(1)) {
            let ends: Vec<i64> = path
                .split(['V', 'C', ' ', '"'])
                .filter_map(|number| number.parse().ok())
                .collect();
            // The start, and the end of the last curve.
            prop_assert!(ends.get(1) < ends.last(), "{path}");
        }
    }
}
