//! A laid out scene as SVG.
//!
//! Invariant: the file names nothing outside itself, and runs nothing.

use std::fmt::{self, Write as _};

use super::color::Colors;
use super::geometry::{
    BOX, Extent, HEAD, LABEL, PORT, Placed, closed_extent, group_texts, label, many, placed,
    port_text, texts,
};
use super::scene::{Scene, Unit};
use super::slots::{GroupLayout, Place};

/// Text within XML: what has a meaning there is escaped, and what cannot be there is replaced.
pub(super) struct Markup<'a>(pub &'a str);

impl fmt::Display for Markup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' => f.write_str("&#10;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                c if c.is_control() => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

const STYLE: &str = "\
text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#18181b}
.s{font-size:10px;fill:#52525b}.t{font-size:14px;font-weight:600}
rect{stroke:#a1a1aa;rx:6px}.g{fill:#8881;stroke-dasharray:none}.p{fill:none;rx:10px;stroke-dasharray:3 2}
path{fill:none;stroke:#71717a;stroke-width:1.2}circle{fill:#71717a}
";
const DARK: &str = "text{fill:#e4e4e7}.s{fill:#a1a1aa}rect{stroke:#52525b}path{stroke:#a1a1aa}circle{fill:#a1a1aa}.bg{fill:#18181b}";

/// The height above the drawing, for the title.
const TITLE: i32 = 34;
const LEGEND_ROW: i32 = 20;
/// A legend lists at most so many labels.
const MOST_LABELS: usize = 24;

pub(super) fn svg(
    scene: &Scene<'_>,
    layouts: &[GroupLayout],
    is_open: &[bool],
    colors: &Colors,
    title: &str,
) -> String {
    let placed = place_open(scene, layouts, is_open);
    let root = &placed[0];
    let legend = colors.legend.len().min(MOST_LABELS);
    let rows = i32::try_from(legend).unwrap_or(0);
    let title_width = i32::try_from(title.chars().count()).unwrap_or(0) * 9 + 28;
    let (width, height) = (
        root.width.max(260).max(title_width),
        root.height + TITLE + rows * LEGEND_ROW,
    );
    let mut out = String::new();
    _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}",
        Markup(title)
    );
    for (number, [light, _]) in colors.palette().iter().enumerate() {
        _ = write!(out, ".c{number}{{fill:{light}}}");
    }
    _ = write!(
        out,
        ".bg{{fill:#fff;stroke:none}}\n@media (prefers-color-scheme:dark){{{DARK}"
    );
    for (number, [_, dark]) in colors.palette().iter().enumerate() {
        _ = write!(out, ".c{number}{{fill:{dark}}}");
    }
    out.push_str("}</style>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" style=\"fill:#71717a;stroke:none\"/></marker></defs>\n");
    _ = writeln!(
        out,
        "<rect class=\"bg\" width=\"{width}\" height=\"{height}\"/>"
    );
    _ = writeln!(
        out,
        "<text class=\"t\" x=\"14\" y=\"24\">{}</text>",
        Markup(title)
    );
    let mut left = vec![(0u32, 0, TITLE - HEAD + 8)];
    while let Some((group, x, y)) = left.pop() {
        let one = Open {
            scene,
            layout: &layouts[group as usize],
            placed: &placed[group as usize],
            colors,
            x,
            y,
        };
        one.write(&mut out, is_open, &mut left);
    }
    for (row, (label, color)) in (0i32..).zip(colors.legend.iter().take(MOST_LABELS)) {
        let y = TITLE + root.height + row * LEGEND_ROW;
        _ = writeln!(
            out,
            "<rect class=\"c{color}\" x=\"14\" y=\"{y}\" width=\"14\" height=\"14\"/><text class=\"s\" x=\"34\" y=\"{}\">{}</text>",
            y + 11,
            Markup(label)
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Where the slots of each open group are; closed ones are left out.
pub(super) fn place_open(
    scene: &Scene<'_>,
    layouts: &[GroupLayout],
    is_open: &[bool],
) -> Vec<Placed> {
    let mut order: Vec<usize> = (0..scene.groups.len())
        .filter(|group| is_open[*group])
        .collect();
    order.sort_by_key(|group| std::cmp::Reverse(scene.groups[*group].depth));
    let mut all = vec![Placed::default(); scene.groups.len()];
    for group in order {
        let slots = layouts[group].slots.iter();
        let closed: Vec<Extent> = slots.map(|slot| closed_extent(scene, slot.place)).collect();
        let mut now = closed.clone();
        for (slot, extent) in layouts[group].slots.iter().zip(&mut now) {
            if let Place::Child(Unit::Group(child)) = slot.place
                && is_open[child as usize]
            {
                let inside = &all[child as usize];
                let right = inside.width - inside.width / 2;
                *extent = Extent {
                    left: inside.width / 2,
                    right: right.max(extent.right),
                    height: inside.height + if extent.height > BOX { LABEL } else { 0 },
                };
            }
        }
        all[group] = placed(&layouts[group], &closed, now);
    }
    all
}

/// An open group at its place in the picture.
struct Open<'s> {
    scene: &'s Scene<'s>,
    layout: &'s GroupLayout,
    placed: &'s Placed,
    colors: &'s Colors,
    x: i32,
    y: i32,
}

impl Open<'_> {
    fn write(&self, out: &mut String, is_open: &[bool], left: &mut Vec<(u32, i32, i32)>) {
        for line in &self.layout.lines {
            self.write_line(out, &line.slots);
        }
        for at in 0..self.layout.slots.len() {
            let extent = self.placed.extents[at];
            let (x, y) = (self.x + self.placed.x[at], self.y + self.top(at));
            match self.layout.slots[at].place {
                Place::Bend => {}
                Place::In(item) | Place::Out(item) => {
                    self.write_port(out, x, y, extent, &port_text(self.scene, item));
                }
                Place::Ins(count) | Place::Outs(count) => {
                    self.write_port(out, x, y, extent, &many(count));
                }
                Place::Child(Unit::Group(group)) if is_open[group as usize] => {
                    let inside = extent.left * 2;
                    let below = label(self.scene, Unit::Group(group));
                    let height = extent.height - below.as_ref().map_or(0, |_| LABEL);
                    let title = &self.scene.groups[group as usize];
                    _ = writeln!(
                        out,
                        "<rect class=\"g\" x=\"{}\" y=\"{y}\" width=\"{inside}\" height=\"{height}\"/><text x=\"{}\" y=\"{}\">{}<title>{}</title></text>",
                        x - extent.left,
                        x - extent.left + 10,
                        y + 18,
                        Markup(&super::geometry::cut(&title.title)),
                        Markup(&format!("{} {}", title.path, title.type_name)),
                    );
                    self.write_label(out, x, y + height, below);
                    left.push((group, x - extent.left, y));
                }
                Place::Child(unit) => self.write_box(out, x, y, at, unit),
            }
        }
    }

    /// The top of a slot's row.
    fn top(&self, slot: usize) -> i32 {
        self.row(slot).0
    }

    fn row(&self, slot: usize) -> (i32, i32) {
        self.placed.rows[self.layout.slots[slot].row as usize]
    }

    fn write_port(&self, out: &mut String, x: i32, y: i32, extent: Extent, text: &str) {
        _ = writeln!(
            out,
            "<rect class=\"p\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{PORT}\"/><text class=\"s\" text-anchor=\"middle\" x=\"{x}\" y=\"{}\">{}</text>",
            x - extent.left,
            extent.left + extent.right,
            y + 14,
            Markup(text)
        );
    }

    fn write_label(&self, out: &mut String, x: i32, y: i32, label: Option<String>) {
        if let Some(label) = label {
            _ = writeln!(
                out,
                "<text class=\"s\" x=\"{}\" y=\"{}\">{}</text>",
                x + 5,
                y + 11,
                Markup(&label)
            );
        }
    }

    fn write_box(&self, out: &mut String, x: i32, y: i32, slot: usize, unit: Unit) {
        let half = self.placed.extents[slot].left;
        let (lines, tooltip) = match unit {
            Unit::Item(item) => {
                let node = self.scene.items[item as usize].node;
                let line = node.location().map(|at| format!("\n{at}"));
                (texts(node), format!("{node}{}", line.unwrap_or_default()))
            }
            Unit::Group(group) => {
                let found = &self.scene.groups[group as usize];
                (
                    group_texts(self.scene, group),
                    format!("{} {}", found.path, found.type_name),
                )
            }
        };
        let sources = self
            .layout
            .references
            .iter()
            .filter(|found| found.user as usize == slot);
        let sources: Vec<String> = sources
            .map(|found| self.name(found.source as usize))
            .collect();
        let also = match sources.as_slice() {
            [] => String::new(),
            some => format!("\nalso uses {}", some.join(", ")),
        };
        let color = self.colors.of(unit);
        _ = write!(
            out,
            "<g><title>{}{}</title><rect class=\"c{color}\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{BOX}\"/>",
            Markup(&tooltip),
            Markup(&also),
            x - half,
            2 * half,
        );
        for (line, (class, below)) in lines.iter().zip([("", 16), (" class=\"s\"", 30)]) {
            _ = write!(
                out,
                "<text{class} text-anchor=\"middle\" x=\"{x}\" y=\"{}\">{}</text>",
                y + below,
                Markup(line)
            );
        }
        if !also.is_empty() {
            _ = write!(
                out,
                "<circle cx=\"{}\" cy=\"{}\" r=\"2.5\"/>",
                x - half + 7,
                y + 7
            );
        }
        out.push_str("</g>\n");
        self.write_label(out, x, y + BOX, label(self.scene, unit));
    }

    fn name(&self, slot: usize) -> String {
        match self.layout.slots[slot].place {
            Place::In(item) | Place::Out(item) | Place::Child(Unit::Item(item)) => {
                port_text(self.scene, item)
            }
            Place::Child(Unit::Group(group)) => self.scene.groups[group as usize].title.clone(),
            Place::Ins(count) | Place::Outs(count) => many(count),
            Place::Bend => String::new(),
        }
    }

    /// A line leaves its box downward, crosses the space between two rows in a curve, and passes
    /// rows straight.
    fn write_line(&self, out: &mut String, slots: &[u32]) {
        let x = |slot: u32| self.x + self.placed.x[slot as usize];
        let Some((first, rest)) = slots.split_first() else {
            return;
        };
        let (top, height) = self.row(*first as usize);
        let mut bottom = self.y + top + height;
        let extent = self.placed.extents[*first as usize];
        let has_label = match self.layout.slots[*first as usize].place {
            Place::Child(unit) => label(self.scene, unit).is_some(),
            _ => false,
        };
        let start = self.y + top + extent.height - if has_label { LABEL } else { 0 };
        let mut from = x(*first);
        _ = write!(
            out,
            "<path marker-end=\"url(#a)\" d=\"M{from} {start}V{bottom}"
        );
        for slot in rest {
            let (top, height) = self.row(*slot as usize);
            let (to, end) = (x(*slot), self.y + top);
            let middle = (bottom + end) / 2;
            _ = write!(out, "C{from} {middle} {to} {middle} {to} {end}");
            bottom = self.y + top + height;
            from = to;
            if self.layout.slots[*slot as usize].place == Place::Bend {
                _ = write!(out, "V{bottom}");
            }
        }
        out.push_str("\"/>\n");
    }
}
