//! `Drawing`: a graph as a picture in one of several formats, with what is open and how it is
//! coloured.
//!
//! Invariant: texts of the graph are escaped for the format that they are written in.

use std::fmt::Write as _;

use rustc_hash::{FxHashMap, FxHashSet};

use super::color::{ColorBy, Colors};
use super::geometry::{group_texts, shape, texts};
use super::layout::layouts;
use super::scene::{Scene, Unit};
use super::slots::GroupLayout;
use super::svg;
use crate::error::Result;
use crate::graph_module::GraphModule;

/// Drawings of at most so many nodes are open as a whole.
const MOST_OPEN: u32 = 300;

/// What a drawing shows.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::draw::{ColorBy, DrawOptions};
/// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let options = DrawOptions::new()
///     .title("affine")
///     .color_by(ColorBy::label(|node| Some(format!("{} users", node.num_users()))));
/// let svg = gm.draw(&options)?.svg();
/// assert!(svg.starts_with("<svg ") && svg.contains(">mul<") && svg.contains(">1 users<"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct DrawOptions<'a> {
    title: Option<String>,
    depth: Option<u32>,
    open: Vec<String>,
    color_by: ColorBy<'a>,
}

impl<'a> DrawOptions<'a> {
    /// Colours by operation, and opens all modules if there are at most 300 nodes, or else only the
    /// outermost.
    pub fn new() -> Self {
        DrawOptions::default()
    }

    /// The title above the drawing; without one, the name of the module's type.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// How many levels of modules are open: with 0, only the graph itself is.
    #[must_use]
    pub fn depth(mut self, levels: u32) -> Self {
        self.depth = Some(levels);
        self
    }

    /// Opens the module at a path, and what is around it, whatever the depth.
    #[must_use]
    pub fn open(mut self, path: impl Into<String>) -> Self {
        self.open.push(path.into());
        self
    }

    /// What the colours stand for.
    #[must_use]
    pub fn color_by(mut self, color_by: ColorBy<'a>) -> Self {
        self.color_by = color_by;
        self
    }
}

/// A graph as a picture: made by [`GraphModule::draw`].
pub struct Drawing<'m> {
    scene: Scene<'m>,
    layouts: Vec<GroupLayout>,
    is_open: Vec<bool>,
    colors: Colors,
    title: String,
}

impl GraphModule {
    /// Draws the graph: a box per node, in groups by the modules that the nodes come from, with the
    /// shapes that are known. Branches, loops and graph modules that the graph calls are groups
    /// too. [`to_html`](GraphModule::to_html) writes a page in which groups open on a click.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::draw::DrawOptions;
    /// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    /// let mermaid = gm.draw(&DrawOptions::new())?.mermaid();
    /// assert!(mermaid.starts_with("flowchart TD\n"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a path to be opened is no module's.
    pub fn draw(&self, options: &DrawOptions<'_>) -> Result<Drawing<'_>> {
        let scene = Scene::of(self);
        let default = if scene.groups[0].nodes <= MOST_OPEN {
            u32::MAX
        } else {
            0
        };
        let depth = options.depth.unwrap_or(default);
        let is_open = scene.groups.iter().map(|group| group.depth <= depth);
        let mut is_open: Vec<bool> = is_open.collect();
        for group in scene.groups_at(&options.open)? {
            let mut around = Some(group);
            while let Some(group) = around {
                is_open[group as usize] = true;
                around = scene.groups[group as usize].parent;
            }
        }
        let colors = options.color_by.colors(&scene);
        let title = options.title.clone();
        Ok(Drawing {
            layouts: layouts(&scene),
            scene,
            is_open,
            colors,
            title: title.unwrap_or_else(|| self.class_name().to_string()),
        })
    }
}

impl Drawing<'_> {
    /// The drawing as SVG, in light or dark colours as the viewer prefers.
    pub fn svg(&self) -> String {
        svg::svg(
            &self.scene,
            &self.layouts,
            &self.is_open,
            &self.colors,
            &self.title,
        )
    }

    /// The drawing as Graphviz's DOT, with a cluster per open group.
    pub fn dot(&self) -> String {
        let mut out = format!(
            "digraph {} {{\n  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\"];\n",
            dot_text(&self.title)
        );
        let label = |lines: [String; 2]| dot_text(&lines.join("\n"));
        self.write_groups(&mut out, &mut |out, step| match step {
            Step::Node(at, lines, color) => {
                let color = self.colors.hex(color);
                _ = writeln!(
                    out,
                    "  {at} [label={}, fillcolor=\"{color}\"];",
                    label(lines)
                );
            }
            Step::Enter(at, title) => {
                _ = writeln!(
                    out,
                    "  subgraph cluster_{at} {{\n  label={};",
                    dot_text(&title)
                );
            }
            Step::Leave => out.push_str("  }\n"),
            Step::Edge(from, to, shape) => {
                let label = shape.map(|shape| format!(" [label={}]", dot_text(&shape)));
                _ = writeln!(out, "  {from} -> {to}{};", label.unwrap_or_default());
            }
        });
        out.push_str("}\n");
        out
    }

    /// The drawing as a Mermaid flowchart, which code hosts show in Markdown.
    pub fn mermaid(&self) -> String {
        let mut out = "flowchart TD\n".to_string();
        let text = |lines: &[String]| {
            let lines: Vec<String> = lines.iter().map(|line| mermaid_text(line)).collect();
            format!("\"{}\"", lines.join("<br/>"))
        };
        self.write_groups(&mut out, &mut |out, step| match step {
            Step::Node(at, lines, color) => {
                _ = writeln!(out, "  {at}[{}]", text(&lines));
                _ = writeln!(
                    out,
                    "  style {at} fill:{},color:#111",
                    self.colors.hex(color)
                );
            }
            Step::Enter(at, title) => _ = writeln!(out, "  subgraph {at}[{}]", text(&[title])),
            Step::Leave => out.push_str("  end\n"),
            Step::Edge(from, to, None) => _ = writeln!(out, "  {from} --> {to}"),
            Step::Edge(from, to, Some(shape)) => {
                _ = writeln!(out, "  {from} -- {} --> {to}", text(&[shape]));
            }
        });
        out
    }

    /// The boxes and lines for formats that are laid out by others.
    fn write_groups(&self, out: &mut String, write: &mut dyn FnMut(&mut String, Step)) {
        let scene = &self.scene;
        let name = |unit: Unit| match unit {
            Unit::Item(item) => format!("n{item}"),
            Unit::Group(group) => format!("g{group}"),
        };
        let mut left = vec![Walk::Unit(Unit::Group(0))];
        while let Some(step) = left.pop() {
            match step {
                Walk::Leave => write(out, Step::Leave),
                Walk::Unit(Unit::Item(item)) => {
                    let lines = texts(scene.items[item as usize].node);
                    write(
                        out,
                        Step::Node(format!("n{item}"), lines, self.colors.of_item(item)),
                    );
                }
                Walk::Unit(Unit::Group(at)) if !self.is_open[at as usize] => {
                    let lines = group_texts(scene, at);
                    write(
                        out,
                        Step::Node(format!("g{at}"), lines, self.colors.of_group(at)),
                    );
                }
                Walk::Unit(Unit::Group(at)) => {
                    let group = &scene.groups[at as usize];
                    if at != 0 {
                        write(out, Step::Enter(format!("g{at}"), group.title.clone()));
                        left.push(Walk::Leave);
                    }
                    left.extend(group.children.iter().rev().map(|unit| Walk::Unit(*unit)));
                    left.extend(group.caller.map(|item| Walk::Unit(Unit::Item(item))));
                }
            }
        }
        let mut shown: FxHashMap<u32, Unit> = FxHashMap::default();
        let mut seen: FxHashSet<(String, String)> = FxHashSet::default();
        for (to, item) in (0u32..).zip(&scene.items) {
            let user = *shown.entry(to).or_insert_with(|| self.shown_as(to));
            for from in &item.inputs {
                let source = *shown.entry(*from).or_insert_with(|| self.shown_as(*from));
                let ends = (name(source), name(user));
                if source != user && seen.insert(ends.clone()) {
                    let shape = shape(scene.items[*from as usize].node);
                    write(out, Step::Edge(ends.0, ends.1, shape));
                }
            }
        }
    }

    /// The outermost closed group that an item is in, or else the item.
    fn shown_as(&self, item: u32) -> Unit {
        let mut shown = Unit::Item(item);
        let opens = self.scene.items[item as usize].opens;
        let mut around = opens.or(Some(self.scene.items[item as usize].group));
        while let Some(group) = around {
            if !self.is_open[group as usize] {
                shown = Unit::Group(group);
            }
            around = self.scene.groups[group as usize].parent;
        }
        shown
    }
}

enum Walk {
    Unit(Unit),
    Leave,
}

/// What is written next.
enum Step {
    /// The box of a node or a closed group: its name, its lines and its colour.
    Node(String, [String; 2], usize),
    Enter(String, String),
    Leave,
    Edge(String, String, Option<String>),
}

fn dot_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that mean something to Mermaid, or to HTML, by their codes.
fn mermaid_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() || " ._-+,:…▸".contains(c) => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => _ = write!(out, "#{};", u32::from(c)),
        }
    }
    out
}
