//! What is known about a node besides its computation: typed entries with a declared policy, and
//! provenance.
//!
//! Invariant: a node has at most one entry of each type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

/// What happens to an entry when its node is copied or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetaPolicy {
    /// The copy or the replacement has it too.
    Copy,
    /// It is dropped.
    Drop,
    /// It is dropped and must be recomputed: a shape, for example.
    Recompute,
}

/// A type of entry for nodes; a node has at most one of each type.
///
/// ```
/// use fx_core::ir::{Graph, Meta, MetaPolicy};
/// #[derive(Debug, Clone, PartialEq)]
/// struct Stage(u32);
/// impl Meta for Stage {
///     const ON_COPY: MetaPolicy = MetaPolicy::Copy;
///     const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
/// }
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x")?;
/// graph.node_mut(x)?.set_meta(Stage(2));
/// assert_eq!(graph.node(x)?.meta::<Stage>(), Some(&Stage(2)));
/// # Ok::<(), fx_core::Error>(())
/// ```
pub trait Meta: Any + fmt::Debug + Send + Sync {
    /// What happens to it when the node is copied.
    const ON_COPY: MetaPolicy;
    /// What happens to it when another node replaces this one.
    const ON_REPLACE: MetaPolicy;
    /// Whether nodes that become a part keep it at the part's border: an input of the part has that of the node whose
    /// value it takes, and the part that of the graph module. So a part of a sharded module is sharded.
    const IN_PARTS: bool = false;
}

/// An entry of dynamic type.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(super) ty: TypeId,
    pub(super) on_copy: MetaPolicy,
    pub(super) on_replace: MetaPolicy,
    in_parts: bool,
    pub(super) value: Arc<dyn Any + Send + Sync>,
}

/// What a pass did to produce a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeSource {
    /// The pass.
    pub pass: Arc<str>,
    /// What it did.
    pub action: NodeAction,
    /// The names of the nodes that it worked on.
    pub from: Vec<String>,
}

/// What a pass can do to produce a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeAction {
    /// Created the node.
    Create,
    /// Replaced other nodes by it.
    Replace,
}

impl NodeAction {
    /// The action in texts and saved files: `create` or `replace`.
    pub fn name(self) -> &'static str {
        match self {
            NodeAction::Create => "create",
            NodeAction::Replace => "replace",
        }
    }
}

/// A node's entries and its provenance.
#[derive(Clone, Default)]
pub(super) struct Extra {
    pub entries: Entries,
    /// There is inline room for two: creating a node, and replacing another by it.
    pub sources: SmallVec<[NodeSource; 2]>,
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries, {:?}", self.entries.0.len(), self.sources)
    }
}

/// Entries, at most one of each type.
#[derive(Clone, Default)]
pub(crate) struct Entries(pub(super) SmallVec<[Entry; 1]>);

impl Entries {
    /// The entry of a type.
    pub fn get<T: Meta>(&self) -> Option<&T> {
        let entry = self.0.iter().find(|e| e.ty == TypeId::of::<T>())?;
        entry.value.downcast_ref()
    }

    /// The entry of a type, to be changed: a copy of it, if others share it.
    pub fn get_mut<T: Meta + Clone>(&mut self) -> Option<&mut T> {
        let mut entries = self.0.iter_mut();
        let entry = entries.find(|e| e.ty == TypeId::of::<T>())?;
        if Arc::get_mut(&mut entry.value).is_none() {
            let own: T = entry.value.downcast_ref::<T>()?.clone();
            entry.value = Arc::new(own);
        }
        Arc::get_mut(&mut entry.value)?.downcast_mut()
    }

    /// Adds an entry, replacing one of the same type.
    pub fn put(&mut self, entry: Entry) {
        match self.0.iter_mut().find(|e| e.ty == entry.ty) {
            Some(old) => *old = entry,
            None => self.0.push(entry),
        }
    }

    /// [`put`](Entries::put) for several entries.
    pub fn put_all(&mut self, entries: Entries) {
        entries.0.into_iter().for_each(|entry| self.put(entry));
    }

    /// Removes the entry of a type. Returns `false` if there was none.
    pub fn remove<T: Meta>(&mut self) -> bool {
        let before = self.0.len();
        self.0.retain(|e| e.ty != TypeId::of::<T>());
        self.0.len() != before
    }

    /// The entries with their types.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &dyn Any)> {
        self.0.iter().map(|e| (e.ty, &*e.value as &dyn Any))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries that a part also has, or the input of a part that stands for the node.
    pub fn of_part(&self) -> Entries {
        Entries(self.0.iter().filter(|e| e.in_parts).cloned().collect())
    }

    /// The entries that a copy also has.
    pub fn copied(&self) -> Entries {
        let copied = self.0.iter().filter(|e| e.on_copy == MetaPolicy::Copy);
        Entries(copied.cloned().collect())
    }
}

impl Entry {
    /// Creates the entry of a value.
    pub fn of<T: Meta>(value: T) -> Self {
        Entry {
            ty: TypeId::of::<T>(),
            on_copy: T::ON_COPY,
            on_replace: T::ON_REPLACE,
            in_parts: T::IN_PARTS,
            value: Arc::new(value),
        }
    }

    /// Whether it describes the node's value, and must be recomputed when that changes.
    pub(super) fn is_computed(&self) -> bool {
        self.on_replace == MetaPolicy::Recompute
    }
}

impl Extra {
    /// The content of a node that a pass creates from others.
    pub fn created(pass: Arc<str>, from: Vec<String>) -> Arc<Self> {
        let mut created = Extra::default();
        created.sources.push(NodeSource {
            pass,
            action: NodeAction::Create,
            from,
        });
        Arc::new(created)
    }

    /// The content of a copy of the node; computed entries are included only if `gives_same`.
    pub fn copied(self: &Arc<Self>, gives_same: bool) -> Option<Arc<Extra>> {
        let is_copied =
            |e: &&Entry| e.on_copy == MetaPolicy::Copy && (gives_same || !e.is_computed());
        if self.entries.0.iter().all(|e| is_copied(&e)) {
            return Some(self.clone());
        }
        let entries = Entries(self.entries.0.iter().filter(is_copied).cloned().collect());
        let sources = self.sources.clone();
        (!entries.0.is_empty() || !sources.is_empty()).then(|| Arc::new(Extra { entries, sources }))
    }

    /// Whether it contains any computed entry about the node's value.
    pub fn is_computed(&self) -> bool {
        self.entries.0.iter().any(Entry::is_computed)
    }
}

/// The pass running on a graph.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    pub(super) name: Arc<str>,
    /// The content of the nodes that it creates.
    pub(super) created: Arc<Extra>,
}

/// The content that the running pass previously gave to its nodes.
pub(crate) struct MadeFrom(pub(super) Option<Arc<Extra>>);

/// The pass running on a graph, if any; a clone of the graph has none.
#[derive(Debug, Default)]
pub(crate) struct CurrentPass(pub(super) Option<Pass>);

impl CurrentPass {
    pub fn copied(&self) -> Self {
        CurrentPass(self.0.clone())
    }
}

impl Clone for CurrentPass {
    fn clone(&self) -> Self {
        CurrentPass::default()
    }
}
