//! `Memory`: what names stand for while a program is read, with views of one memory.
//!
//! Invariant: what is written through one name is read through every name of the same memory.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

use super::views::{self, Part};
use crate::call::Call;
use crate::rules;

/// A name, and the graph that has it: 0 is the program, others are regions that are opened in it.
pub(crate) type Key<'n> = (u32, &'n str);

/// How a view was made of another name.
#[derive(Debug)]
struct View<'n> {
    parent: Key<'n>,
    call: Call<'n>,
    /// Which of several results it is.
    index: Option<Part>,
}

#[derive(Debug)]
struct Slot<'n> {
    value: Value,
    /// The memory, and its version that the value is of.
    memory: usize,
    version: usize,
    view: Option<View<'n>>,
}

/// The values by name.
#[derive(Debug, Default)]
pub(crate) struct Memory<'n> {
    slots: FxHashMap<Key<'n>, Slot<'n>>,
    /// How often each memory was written.
    versions: Vec<usize>,
    /// The names that the memories began with.
    roots: Vec<Key<'n>>,
    /// The graph whose nodes are read, and how many there were.
    graph: u32,
    graphs: u32,
}

impl<'n> Memory<'n> {
    /// Opens the graph of a region, whose names are its own; gives the one around it.
    pub fn enter(&mut self) -> u32 {
        self.graphs += 1;
        std::mem::replace(&mut self.graph, self.graphs)
    }

    /// Goes back to the graph around a region; gives that of the region.
    pub fn leave(&mut self, outer: u32) -> u32 {
        std::mem::replace(&mut self.graph, outer)
    }

    /// A name for what another graph has a name for.
    ///
    /// # Errors
    /// Returns an error if the other graph has no such name.
    pub fn alias(&mut self, name: &'n str, of: Key<'n>) -> Result<()> {
        let value = self.get_key(of)?;
        let same = Call {
            target: views::SAME,
            args: vec![("self", Value::None)],
            dtypes: Vec::new(),
        };
        self.insert_view_of(name, value, of, same, None);
        Ok(())
    }

    /// A value with a memory of its own.
    pub fn insert(&mut self, name: &'n str, value: Value) {
        let name = (self.graph, name);
        let memory = self.versions.len();
        self.versions.push(0);
        self.roots.push(name);
        let slot = Slot {
            value,
            memory,
            version: 0,
            view: None,
        };
        self.slots.insert(name, slot);
    }

    /// A view of another name, by a call whose first argument that is: its result, or the one at `index` of several.
    pub fn insert_view(
        &mut self,
        name: &'n str,
        value: Value,
        parent: &'n str,
        call: Call<'n>,
        index: Option<Part>,
    ) {
        self.insert_view_of(name, value, (self.graph, parent), call, index);
    }

    fn insert_view_of(
        &mut self,
        name: &'n str,
        value: Value,
        parent: Key<'n>,
        call: Call<'n>,
        index: Option<Part>,
    ) {
        let Some(of) = self.slots.get(&parent) else {
            return self.insert(name, value);
        };
        let slot = Slot {
            value,
            memory: of.memory,
            version: self.versions[of.memory],
            view: Some(View {
                parent,
                call,
                index,
            }),
        };
        self.slots.insert((self.graph, name), slot);
    }

    /// What a name stands for now.
    ///
    /// # Errors
    /// Returns an error if nothing has the name.
    pub fn get(&mut self, name: &'n str) -> Result<Value> {
        self.get_key((self.graph, name))
    }

    fn get_key(&mut self, name: Key<'n>) -> Result<Value> {
        // The views between the name and what is up to date, from the inside out.
        let mut stale: Vec<Key<'n>> = Vec::new();
        let mut at = name;
        loop {
            let slot = self.slots.get(&at).ok_or_else(|| {
                let name = at.1;
                Error::msg(format_args!(
                    "`{name}` is read, and nothing before gives it"
                ))
            })?;
            if slot.version == self.versions[slot.memory] {
                break;
            }
            match &slot.view {
                Some(view) => {
                    stale.push(at);
                    at = view.parent;
                }
                None => break,
            }
        }
        while let Some(name) = stale.pop() {
            let view = self.slots[&name]
                .view
                .as_ref()
                .expect("a stale name is a view");
            let parent = self.slots[&view.parent].value.clone();
            let given = rules::run(&view.call.with_own(parent))?;
            let value = views::part(&given, view.index.map(|part| part.at))?;
            let slot = self.slots.get_mut(&name).expect("it was found");
            slot.value = value;
            slot.version = self.versions[slot.memory];
        }
        Ok(self.slots[&name].value.clone())
    }

    /// Writes what a name stands for, and so all that is of its memory; gives the name that the memory began with.
    ///
    /// # Errors
    /// Returns an error if nothing has the name, or its elements cannot be written through the view that it is.
    pub fn write(&mut self, name: &'n str, value: Tensor) -> Result<Key<'n>> {
        let name = (self.graph, name);
        self.get_key(name)?;
        let (memory, mut at, mut value) = (self.slots[&name].memory, name, value);
        self.versions[memory] += 1;
        loop {
            let slot = self.slots.get_mut(&at).expect("a view's parent is there");
            slot.value = Value::object(value.clone());
            slot.version = self.versions[memory];
            let slot = &self.slots[&at];
            let Some(view) = &slot.view else {
                break;
            };
            // What the parent stood for before.
            let whole = self.slots[&view.parent].value.clone();
            value = views::put(&view.call.with_own(whole), view.index, value)?;
            at = view.parent;
        }
        Ok(self.roots[memory])
    }
}
