//! Where nodes come from: interned source locations and module scopes, one small id of each per
//! node.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::location::SourceLocation;

/// One level of the module hierarchy that a node was recorded in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scope {
    /// The module's path; empty for the root.
    pub path: Arc<str>,
    /// The module's type.
    pub type_name: Cow<'static, str>,
    /// The number of earlier calls of the module, in the trace that recorded the node: 0 in its
    /// first call.
    pub call: u32,
    pub(crate) parent: ScopeId,
}

/// Path, call number and parent distinguish almost all scopes.
impl Hash for Scope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path.hash(state);
        self.call.hash(state);
        self.parent.hash(state);
    }
}

/// The source of a new node's location.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Site<'a> {
    /// The expression being executed.
    Caller(&'static Location<'static>),
    /// A location that was recorded before.
    Kept(&'a SourceLocation),
    /// A location in the graph's own table.
    Known(LocationId),
    /// Not known.
    Unknown,
}

/// Identifies a scope of one graph; 0 is outside any module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ScopeId(pub u32);

/// Identifies a location of one graph; 0 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct LocationId(pub u32);

/// The tables of a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    locations: IndexSet<SourceLocation, FxBuildHasher>,
    /// rustc emits one static per call site, so its address finds the entry without hashing text.
    by_address: FxHashMap<usize, LocationId>,
    /// The address of the last lookup; it is often looked up next.
    last: (usize, LocationId),
    scopes: Vec<Scope>,
    /// An index of the first scopes in `scopes`; a lookup adds the rest.
    by_scope: FxHashMap<Scope, ScopeId>,
    /// The number of indexed scopes.
    indexed: usize,
}

fn id(index: usize) -> u32 {
    u32::try_from(index + 1)
        .expect("a graph has fewer than 2^32 places, no more than nodes and scopes")
}

impl Places {
    /// Reserves room for locations, if their number is known.
    pub fn reserve(&mut self, locations: usize) {
        self.locations.reserve(locations);
    }

    /// Reserves room for scopes, if their number is known.
    pub fn reserve_scopes(&mut self, scopes: usize) {
        self.scopes.reserve(scopes);
    }

    pub fn site(&mut self, site: Site<'_>) -> LocationId {
        match site {
            Site::Caller(location) => self.caller(location),
            Site::Kept(location) => self.location(location.clone()),
            Site::Known(location) => location,
            Site::Unknown => LocationId::default(),
        }
    }

    fn caller(&mut self, location: &'static Location<'static>) -> LocationId {
        let address = std::ptr::from_ref(location) as usize;
        if self.last.0 == address {
            return self.last.1;
        }
        let found = self.caller_at(address, location);
        self.last = (address, found);
        found
    }

    fn caller_at(&mut self, address: usize, location: &'static Location<'static>) -> LocationId {
        if let Some(known) = self.by_address.get(&address) {
            return *known;
        }
        let found = self.location(location.into());
        self.by_address.insert(address, found);
        found
    }

    pub fn location(&mut self, location: SourceLocation) -> LocationId {
        LocationId(id(self.locations.insert_full(location).0))
    }

    pub fn get_location(&self, id: LocationId) -> Option<&SourceLocation> {
        self.locations.get_index((id.0 as usize).checked_sub(1)?)
    }

    /// The id of the scope, or of an existing equal one.
    pub fn scope(&mut self, scope: Scope) -> ScopeId {
        for (index, new) in self.scopes.iter().enumerate().skip(self.indexed) {
            self.by_scope.insert(new.clone(), ScopeId(id(index)));
        }
        self.indexed = self.scopes.len();
        match self.by_scope.get(&scope) {
            Some(known) => *known,
            None => self.push_scope(scope),
        }
    }

    /// The id of a scope that differs from all that [`new_scope`](Places::new_scope) added. A graph
    /// with only such scopes needs no index.
    pub fn new_scope(&mut self, scope: Scope) -> ScopeId {
        match self.indexed {
            0 => self.push_scope(scope),
            _ => self.scope(scope),
        }
    }

    fn push_scope(&mut self, scope: Scope) -> ScopeId {
        self.scopes.push(scope);
        ScopeId(id(self.scopes.len() - 1))
    }

    pub fn get_scope(&self, id: ScopeId) -> Option<&Scope> {
        self.scopes.get((id.0 as usize).checked_sub(1)?)
    }
}
