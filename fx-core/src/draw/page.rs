//! `Page`: a graph as one HTML file, whose modules open on a click.
//!
//! Invariant: the file loads nothing and has one script; texts of the graph are data in it, and
//! become text only.

use std::fmt::Write as _;
use std::path::Path;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::color::ColorBy;
use super::column::{Column, totals};
use super::geometry::{shape, texts};
use super::layout::layouts;
use super::scene::{Change, Scene, Unit};
use super::slots::{GroupLayout, Place};
use super::svg::Markup;
use crate::error::{Error, Result};
use crate::file::disk;
use crate::graph_module::GraphModule;
use crate::ir::print::Template;
use crate::value::handle::NodeId;

const FRAME: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// What a page shows.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::draw::{ColorBy, Column, Page};
/// let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
/// let page = Page::new()
///     .title("affine")
///     .column(Column::profile(&gm.profile(5, 1.5)?))
///     .color_by("users", ColorBy::label(|node| Some(node.num_users().to_string())));
/// let html = gm.html(&page)?;
/// assert_eq!(html.matches("<script").count(), 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Page<'a> {
    title: Option<String>,
    columns: Vec<Column<'a>>,
    colors: Vec<(String, ColorBy<'a>)>,
    open: Vec<String>,
    table: String,
}

impl<'a> Page<'a> {
    /// A page whose boxes can be coloured by operation and by module.
    pub fn new() -> Self {
        Page::default()
    }

    /// The title; without one, the name of the module's type.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds a number per node.
    #[must_use]
    pub fn column(mut self, column: Column<'a>) -> Self {
        self.columns.push(column);
        self
    }

    /// Adds colours that the reader can choose; the first added are shown at first.
    #[must_use]
    pub fn color_by(mut self, title: impl Into<String>, color_by: ColorBy<'a>) -> Self {
        self.colors.push((title.into(), color_by));
        self
    }

    /// Opens the module at a path.
    #[must_use]
    pub fn open(mut self, path: impl Into<String>) -> Self {
        self.open.push(path.into());
        self
    }

    /// Adds a text that is shown until a node is chosen: a summary, a report of passes.
    #[must_use]
    pub fn table(mut self, table: impl std::fmt::Display) -> Self {
        self.table = table.to_string();
        self
    }

    pub(super) fn html_of(&self, scene: &Scene<'_>, name: &str) -> Result<String> {
        let title = self.title.as_deref().unwrap_or(name);
        let mut open = scene.groups_at(&self.open)?;
        let changed = (0u32..).zip(&scene.items);
        let changed = changed.filter(|(_, item)| item.change != Change::Same);
        open.extend(changed.map(|(_, item)| item.group).take(40));
        let mut data = Data::new(scene);
        data.text("title", title);
        data.field("open", |out| {
            numbers(out, open.iter().map(|group| i64::from(*group)))
        });
        data.text("table", &self.table);
        data.write_nodes();
        data.write_groups(&layouts(scene));
        let columns: Vec<Vec<Option<f64>>> = self
            .columns
            .iter()
            .map(|column| column.values(scene))
            .collect();
        data.write_columns(&self.columns, &columns);
        let css = data.write_colors(&self.colors, &self.columns, &columns);
        let data = data.finish();
        let title = Markup(title).to_string();
        let parts = [
            ("{title}", &*title),
            ("{colors}", &css),
            ("{data}", &data),
            ("{script}", SCRIPT),
        ];
        Ok(fill(FRAME, &parts))
    }
}

impl GraphModule {
    /// Writes the graph as a page of HTML: one file that needs no network. Modules, branches, loops
    /// and graph modules open on a click; nodes are found by name, operation, path and source line;
    /// a node shows its arguments, its shape, where it was written and what passes did. A link with
    /// `#node=NAME` shows a node.
    ///
    /// # Errors
    /// Returns an error if a path to be opened is no module's, or the file cannot be written.
    pub fn to_html(&self, path: impl AsRef<Path>, page: &Page<'_>) -> Result<()> {
        write(path.as_ref(), &self.html(page)?)
    }

    /// The page of [`to_html`](GraphModule::to_html) as text.
    ///
    /// # Errors
    /// Returns an error if a path to be opened is no module's.
    pub fn html(&self, page: &Page<'_>) -> Result<String> {
        page.html_of(&Scene::of(self), self.class_name())
    }
}

pub(super) fn write(path: &Path, html: &str) -> Result<()> {
    disk::replace(path, |file| {
        file.write_all(html.as_bytes()).map_err(Error::other)
    })
}

/// Puts texts into the places of a frame, which are not searched in turn.
fn fill(frame: &str, parts: &[(&str, &str)]) -> String {
    let size: usize = parts.iter().map(|(_, text)| text.len()).sum();
    let mut out = String::with_capacity(frame.len() + size);
    let mut rest = frame;
    for (place, text) in parts {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The data of a page, as an object of JavaScript.
struct Data<'s, 'm> {
    scene: &'s Scene<'m>,
    out: String,
    strings: IndexSet<String, FxBuildHasher>,
}

impl<'s, 'm> Data<'s, 'm> {
    fn new(scene: &'s Scene<'m>) -> Self {
        let mut out = String::with_capacity(128 * scene.items.len());
        out.push('{');
        Data {
            scene,
            out,
            strings: IndexSet::from_iter([String::new()]),
        }
    }

    fn field(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        _ = write!(self.out, "{name}:");
        write(&mut self.out);
        self.out.push_str(",\n");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.field(name, |out| string(out, text));
    }

    fn number_of(&mut self, text: String) -> i64 {
        let (at, _) = self.strings.insert_full(text);
        i64::try_from(at).unwrap_or(0)
    }

    fn write_nodes(&mut self) {
        let scene = self.scene;
        let items = &scene.items;
        let mut columns: [Vec<i64>; 6] = Default::default();
        let [called, target, args, shapes, files, lines] = &mut columns;
        let mut orders = Vec::new();
        let mut notes = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let node = item.node;
            called.push(self.number_of(texts(node)[1].clone()));
            target.push(self.number_of(format!("{}[{}]", node.opcode().name(), node.target())));
            args.push(self.number_of(Template(node).to_string()));
            shapes.push(self.number_of(shape(node).unwrap_or_default()));
            let location = node.location();
            files.push(self.number_of(location.map(|l| l.file.to_string()).unwrap_or_default()));
            lines.push(location.map_or(0, |location| location.line.into()));
            if !node.sources().is_empty()
                && let Ok(text) = node.graph().explain(node.id())
            {
                notes.push((at, text));
            }
            if let Some(order) = order_of(item.node) {
                orders.push((at, order));
            }
        }
        self.out.push_str("nodes:{");
        self.field("name", |out| {
            list(out, items.iter(), |out, item| {
                string(out, &item.node.name().to_string())
            });
        });
        let names = ["called", "target", "args", "shape", "file", "line"];
        for (name, column) in names.into_iter().zip(&columns) {
            self.field(name, |out| numbers(out, column.iter().copied()));
        }
        self.field("inputs", |out| {
            let flat = (0i64..).zip(items).flat_map(|(at, item)| {
                let count = i64::try_from(item.inputs.len()).unwrap_or(0);
                let back = item.inputs.iter().map(move |input| at - i64::from(*input));
                std::iter::once(count).chain(back)
            });
            numbers(out, flat);
        });
        self.field("order", |out| {
            object(out, orders.iter(), |out, order| {
                numbers(out, order.iter().copied())
            });
        });
        self.out.push_str("},\n");
        self.field("notes", |out| {
            object(out, notes.iter(), |out, text| string(out, text))
        });
    }

    fn write_groups(&mut self, layouts: &[GroupLayout]) {
        self.out.push_str("groups:[");
        for (group, layout) in self.scene.groups.iter().zip(layouts) {
            self.out.push('{');
            self.text("title", &group.title);
            self.text("path", &group.path);
            self.text("type", &group.type_name);
            let caller = group.caller.map_or(-1, i64::from);
            _ = write!(
                self.out,
                "caller:{caller},nodes:{},depth:{},range:{},",
                group.nodes, group.depth, group.is_range
            );
            let mut rows: Vec<i64> = Vec::new();
            for slot in &layout.slots {
                rows.resize(rows.len().max(slot.row as usize + 1), 0);
                rows[slot.row as usize] += 1;
            }
            self.field("rows", |out| numbers(out, rows.iter().copied()));
            self.field("slots", |out| {
                let slots = layout.slots.iter().flat_map(|slot| {
                    let (kind, of) = match slot.place {
                        Place::Child(Unit::Item(item)) => (0, item),
                        Place::Child(Unit::Group(group)) => (1, group),
                        Place::In(item) => (2, item),
                        Place::Out(item) => (3, item),
                        Place::Ins(count) => (4, count),
                        Place::Outs(count) => (5, count),
                        Place::Bend => (6, 0),
                    };
                    [kind, i64::from(of), i64::from(slot.x)]
                });
                numbers(out, slots);
            });
            self.field("lines", |out| {
                let lines = layout.lines.iter().flat_map(|line| {
                    let count = i64::try_from(line.slots.len()).unwrap_or(0);
                    std::iter::once(count).chain(line.slots.iter().map(|slot| i64::from(*slot)))
                });
                numbers(out, lines);
            });
            self.field("refs", |out| {
                let found = layout.references.iter();
                let found = found.flat_map(|one| [i64::from(one.user), i64::from(one.source)]);
                numbers(out, found);
            });
            self.out.push_str("},\n");
        }
        self.out.push_str("],\n");
    }

    fn write_columns(&mut self, columns: &[Column<'_>], values: &[Vec<Option<f64>>]) {
        self.out.push_str("columns:[");
        for (column, values) in columns.iter().zip(values) {
            self.out.push('{');
            self.text("title", &column.title);
            self.text("unit", &column.unit);
            self.text("chart", column.chart.name());
            self.field("values", |out| {
                list(out, values.iter(), |out, value| rounded(out, *value))
            });
            let totals = totals(self.scene, values);
            self.field("totals", |out| {
                list(out, totals.iter(), |out, total| rounded(out, Some(*total)));
            });
            self.out.push_str("},\n");
        }
        self.out.push_str("],\n");
    }

    /// Writes what the reader can colour by; returns the style of the colours.
    fn write_colors(
        &mut self,
        own: &[(String, ColorBy<'_>)],
        columns: &[Column<'_>],
        values: &[Vec<Option<f64>>],
    ) -> String {
        let mut css = String::new();
        let scene = self.scene;
        let own = own
            .iter()
            .map(|(title, color_by)| (title.clone(), color_by.colors(scene)));
        let standard = [
            ("operation".to_string(), ColorBy::operation().colors(scene)),
            ("module".to_string(), ColorBy::module().colors(scene)),
        ];
        let columns = columns.iter().zip(values).map(|(column, values)| {
            (
                column.title.clone(),
                super::color::Colors::of_numbers(scene, values),
            )
        });
        self.out.push_str("colors:[");
        for (number, (title, colors)) in own.chain(standard).chain(columns).enumerate() {
            for (color, [light, dark]) in colors.palette().iter().enumerate() {
                _ = writeln!(
                    css,
                    ".c{number}_{color}{{fill:{light}}}:root[data-theme=dark] .c{number}_{color}{{fill:{dark}}}"
                );
            }
            self.out.push('{');
            self.text("title", &title);
            let items = (0u32..).zip(&scene.items);
            self.field("items", |out| {
                numbers(out, items.map(|(at, _)| color_number(colors.of_item(at))))
            });
            let groups = (0u32..).zip(&scene.groups);
            self.field("groups", |out| {
                numbers(out, groups.map(|(at, _)| color_number(colors.of_group(at))))
            });
            self.out.push_str("},\n");
        }
        self.out.push_str("],\n");
        css
    }

    fn finish(mut self) -> String {
        let strings = std::mem::take(&mut self.strings);
        self.field("strings", |out| {
            list(out, strings.iter(), |out, text| string(out, text))
        });
        self.out.push('}');
        self.out
    }
}

fn color_number(color: usize) -> i64 {
    i64::try_from(color).unwrap_or(0)
}

/// Which of the node's inputs, each of which counts once, stands at each place of its arguments.
/// `None` if they are in order.
fn order_of(node: crate::ir::node::NodeRef<'_>) -> Option<Vec<i64>> {
    let mut numbers: FxHashMap<NodeId, i64> = FxHashMap::default();
    for (number, input) in (0i64..).zip(node.all_input_nodes()) {
        numbers.insert(input.id(), number);
    }
    let mut order = Vec::new();
    let kwargs = node.kwargs().iter().map(|(_, argument)| argument);
    for argument in node.args().iter().chain(kwargs) {
        argument.for_each_node(&mut |id| order.extend(numbers.get(&id).copied()));
    }
    let in_order = (0i64..).zip(&order).all(|(at, number)| at == *number);
    (!in_order).then_some(order)
}

fn list<T>(out: &mut String, items: impl Iterator<Item = T>, write: impl Fn(&mut String, T)) {
    out.push('[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

fn object<'t, T: 't>(
    out: &mut String,
    items: impl Iterator<Item = &'t (usize, T)>,
    write: impl Fn(&mut String, &T),
) {
    out.push('{');
    for (key, value) in items {
        _ = write!(out, "{key}:");
        write(out, value);
        out.push(',');
    }
    out.push('}');
}

fn numbers(out: &mut String, numbers: impl Iterator<Item = i64>) {
    list(out, numbers, |out, number| _ = write!(out, "{number}"));
}

/// A number with at most four digits behind the point; an integer has none.
fn rounded(out: &mut String, value: Option<f64>) {
    match value {
        Some(value) if value.fract() == 0.0 => _ = write!(out, "{value}"),
        Some(value) if value.abs() >= 0.01 => _ = write!(out, "{value:.4}"),
        Some(value) => _ = write!(out, "{value:e}"),
        None => out.push_str("null"),
    }
}

/// A string of JavaScript, in which nothing can end the script.
fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c if c.is_control() => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
}
