//! `Scene`: the nodes of a graph module, and of the graphs inside it, as a tree of groups.
//!
//! Invariant: a group has at most `MOST_CHILDREN` children, in the order of their first nodes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::graph_module::parts::graphs_of;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::within;
use crate::value::handle::NodeId;
use crate::value::object::short_type_name;

/// More children than a reader can survey are put into groups of consecutive ones.
const MOST_CHILDREN: usize = 60;
/// How many children such a group has.
const IN_RANGE: usize = 40;

/// A node in a drawing.
pub(crate) struct Item<'m> {
    pub node: NodeRef<'m>,
    /// The path of the graph module that the node is in; empty for the outermost.
    pub inside: Arc<str>,
    pub group: u32,
    /// The group with the graphs that the node runs.
    pub opens: Option<u32>,
    /// The items whose values it takes.
    pub inputs: Vec<u32>,
    pub change: Change,
}

/// What a difference says of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Change {
    #[default]
    Same,
    New,
    Gone,
    Changed,
}

/// Nodes that belong together: those of a call of a module, of a graph inside, or consecutive ones.
pub(crate) struct Group {
    pub title: String,
    /// The path of the module.
    pub path: Arc<str>,
    pub type_name: String,
    pub parent: Option<u32>,
    pub depth: u32,
    pub children: Vec<Unit>,
    /// The node that runs it.
    pub caller: Option<u32>,
    /// Whether it only holds consecutive children of its parent.
    pub is_range: bool,
    /// How many nodes are in it and in the groups inside.
    pub nodes: u32,
}

/// Graphs whose nodes are still to be added, with their groups and paths.
pub(crate) type Inner<'m> = Vec<(&'m GraphModule, u32, Arc<str>)>;

/// A child of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    Item(u32),
    Group(u32),
}

#[derive(Default)]
pub(crate) struct Scene<'m> {
    pub items: Vec<Item<'m>>,
    pub groups: Vec<Group>,
    /// The group of each step of the hierarchy: by the group around it, the path, and the number
    /// of the call.
    steps: FxHashMap<(u32, Arc<str>, u32), u32>,
}

impl<'m> Scene<'m> {
    /// The scene of a module, with the graphs that its nodes run.
    pub fn of(gm: &'m GraphModule) -> Self {
        let mut scene = Scene::new(gm);
        scene.add_inner(vec![(gm, 0, "".into())]);
        scene.finish();
        scene
    }

    /// A scene with the outermost group.
    pub fn new(gm: &GraphModule) -> Self {
        let mut scene = Scene::default();
        scene.push_group(gm.class_name(), "".into(), gm.class_name(), None);
        scene
    }

    /// Adds the nodes of graphs, and of the graphs that they run.
    pub fn add_inner(&mut self, mut left: Inner<'m>) {
        while let Some((module, group, inside)) = left.pop() {
            self.add_graph(module, group, &inside, &mut left);
        }
    }

    /// Adds the nodes of a graph, and notes the graphs that they run.
    fn add_graph(
        &mut self,
        module: &'m GraphModule,
        group: u32,
        inside: &Arc<str>,
        left: &mut Inner<'m>,
    ) {
        let mut items: FxHashMap<NodeId, u32> = FxHashMap::default();
        items.reserve(module.graph().len());
        for node in module.graph().nodes() {
            let inputs = node.all_input_nodes();
            let inputs = inputs.filter_map(|input| items.get(&input.id()).copied());
            let inputs = inputs.collect();
            let group = self.group_of(node, group);
            let item = self.push_item(node, group, inside, inputs);
            items.insert(node.id(), item);
            self.open_inner(module, item, left);
        }
    }

    pub fn push_item(
        &mut self,
        node: NodeRef<'m>,
        group: u32,
        inside: &Arc<str>,
        inputs: Vec<u32>,
    ) -> u32 {
        let item = index(self.items.len());
        self.items.push(Item {
            node,
            inside: inside.clone(),
            group,
            opens: None,
            inputs,
            change: Change::Same,
        });
        self.groups[group as usize].children.push(Unit::Item(item));
        item
    }

    pub fn push_group(
        &mut self,
        title: &str,
        path: Arc<str>,
        type_name: &str,
        parent: Option<u32>,
    ) -> u32 {
        let group = index(self.groups.len());
        self.groups.push(Group {
            title: title.to_string(),
            path,
            type_name: short_type_name(type_name),
            parent,
            depth: 0,
            children: Vec::new(),
            caller: None,
            is_range: false,
            nodes: 0,
        });
        if let Some(parent) = parent {
            let children = &mut self.groups[parent as usize].children;
            children.push(Unit::Group(group));
        }
        group
    }

    /// The group of a node, by the calls of modules that it was recorded in.
    pub fn group_of(&mut self, node: NodeRef<'_>, root: u32) -> u32 {
        let mut group = root;
        let mut around: Arc<str> = "".into();
        let scopes: Vec<_> = node.modules_around().collect();
        for scope in scopes
            .into_iter()
            .rev()
            .filter(|scope| !scope.path.is_empty())
        {
            group = self.container(group, &around, &scope.path);
            group = self.step(group, &scope.path, &scope.type_name, scope.call);
            around = scope.path.clone();
        }
        match node.op() {
            Op::CallModule(path) => self.container(group, &around, path),
            _ => group,
        }
    }

    /// The group of the containers between two paths: `h` for the steps from the root to `h.0`.
    fn container(&mut self, mut group: u32, around: &str, path: &str) -> u32 {
        let rest = match path.strip_prefix(around) {
            Some(rest) if around.is_empty() => rest,
            Some(rest) if rest.starts_with('.') => &rest[1..],
            _ => return group,
        };
        let start = path.len() - rest.len();
        for (dot, _) in rest.match_indices('.') {
            group = self.step(group, &path[..start + dot].into(), "", 0);
        }
        group
    }

    fn step(&mut self, around: u32, path: &Arc<str>, type_name: &str, call: u32) -> u32 {
        let key = (around, path.clone(), call);
        if let Some(known) = self.steps.get(&key) {
            return *known;
        }
        let outer = &self.groups[around as usize].path;
        let own = path.strip_prefix(&**outer).unwrap_or(path);
        let own = own.trim_start_matches('.');
        let title = match call {
            0 => own.to_string(),
            earlier => format!("{own} (call {})", earlier + 1),
        };
        let group = self.push_group(&title, path.clone(), type_name, Some(around));
        self.steps.insert(key, group);
        group
    }

    /// Turns the call of a module that holds graphs into a group with them.
    pub fn open_inner(&mut self, module: &'m GraphModule, item: u32, left: &mut Inner<'m>) {
        let Item { node, group, .. } = self.items[item as usize];
        let Op::CallModule(path) = node.op() else {
            return;
        };
        let Some(called) = module.attributes().modules.get(path) else {
            return;
        };
        let sides = graphs_of(&**called);
        if sides.is_empty() {
            return;
        }
        let inside: Arc<str> = within(&self.items[item as usize].inside, path).into();
        // The group takes the place of the item, which is the last child so far.
        self.groups[group as usize].children.pop();
        let opened = self.push_group(path, inside.clone(), called.type_name(), Some(group));
        self.groups[opened as usize].caller = Some(item);
        self.items[item as usize].opens = Some(opened);
        for (name, side) in sides {
            if name.is_empty() {
                left.push((side, opened, inside.clone()));
                continue;
            }
            let path: Arc<str> = within(&inside, name).into();
            let group = self.push_group(name, path.clone(), "", Some(opened));
            left.push((side, group, path));
        }
    }

    /// Counts, and puts consecutive children of long groups into groups.
    pub fn finish(&mut self) {
        for group in 0..self.groups.len() {
            while self.groups[group].children.len() > MOST_CHILDREN {
                self.put_into_ranges(index(group));
            }
        }
        // A group is deeper than its parent, whichever was made first.
        let mut order = vec![0u32];
        let mut next = 0;
        while let Some(group) = order.get(next).copied() {
            let depth = self.groups[group as usize].depth + 1;
            for at in 0..self.groups[group as usize].children.len() {
                if let Unit::Group(child) = self.groups[group as usize].children[at] {
                    self.groups[child as usize].depth = depth;
                    order.push(child);
                }
            }
            next += 1;
        }
        for group in order.into_iter().rev() {
            let children = self.groups[group as usize].children.iter();
            let nodes = children.map(|unit| match unit {
                Unit::Item(_) => 1,
                Unit::Group(child) => self.groups[*child as usize].nodes,
            });
            self.groups[group as usize].nodes = nodes.sum();
        }
    }

    fn put_into_ranges(&mut self, group: u32) {
        let children = std::mem::take(&mut self.groups[group as usize].children);
        let path = self.groups[group as usize].path.clone();
        let ranges = children.len().div_ceil(IN_RANGE);
        let size = children.len().div_ceil(ranges);
        for units in children.chunks(size) {
            let ends = [units.first(), units.last()].map(|unit| unit.map(|unit| self.name(*unit)));
            let title = ends.map(Option::unwrap_or_default).join(" … ");
            let range = self.push_group(&title, path.clone(), "", Some(group));
            for unit in units {
                match unit {
                    Unit::Item(item) => self.items[*item as usize].group = range,
                    Unit::Group(child) => self.groups[*child as usize].parent = Some(range),
                }
                if let Unit::Group(child) = unit
                    && let Some(caller) = self.groups[*child as usize].caller
                {
                    self.items[caller as usize].group = range;
                }
            }
            let range = &mut self.groups[range as usize];
            (range.children, range.is_range) = (units.to_vec(), true);
        }
    }

    fn name(&self, unit: Unit) -> String {
        match unit {
            Unit::Item(item) => self.items[item as usize].node.name().to_string(),
            Unit::Group(group) => {
                let group = &self.groups[group as usize];
                match group.title.split_once(" … ") {
                    Some((first, _)) if group.is_range => first.to_string(),
                    _ => group.title.clone(),
                }
            }
        }
    }

    /// The groups of modules' paths.
    ///
    /// # Errors
    /// Returns an error if a path has none.
    pub fn groups_at(&self, paths: &[String]) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for path in paths {
            let before = found.len();
            let groups = (0u32..).zip(&self.groups);
            let groups = groups.filter(|(_, group)| *group.path == **path && !group.is_range);
            found.extend(groups.map(|(at, _)| at));
            if found.len() == before {
                return Err(Error::msg(format_args!(
                    "no module `{path}` is in the picture: give the path of a module that the graph's nodes come from"
                )));
            }
        }
        Ok(found)
    }

    /// The group or item that stands for an item among the children of its group.
    pub fn unit_of(&self, item: u32) -> Unit {
        match self.items[item as usize].opens {
            Some(group) => Unit::Group(group),
            None => Unit::Item(item),
        }
    }
}

pub(crate) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a drawing has fewer than 2^32 nodes and groups")
}
