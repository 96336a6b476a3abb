//! `Memory`: what names stand for while a program is read, with views of one memory.
//!
//! Invariant: what is written through one name is read through every name of the same memory.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};
use rustc_hash::FxHashMap;

use super::views;
use crate::call::Call;
use crate::rules;

/// How a view was made of another name.
#[derive(Debug)]
struct View<'n> {
    parent: &'n str,
    call: Call<'n>,
    /// Which of several results it is.
    index: Option<usize>,
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
    slots: FxHashMap<&'n str, Slot<'n>>,
    /// How often each memory was written.
    versions: Vec<usize>,
    /// The names that the memories began with.
    roots: Vec<&'n str>,
}

impl<'n> Memory<'n> {
    /// A value with a memory of its own.
    pub fn insert(&mut self, name: &'n str, value: Value) {
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
        index: Option<usize>,
    ) {
        let Some(of) = self.slots.get(parent) else {
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
        self.slots.insert(name, slot);
    }

    /// What a name stands for now.
    ///
    /// # Errors
    /// Returns an error if nothing has the name.
    pub fn get(&mut self, name: &str) -> Result<Value> {
        // The views between the name and what is up to date, from the inside out.
        let mut stale: Vec<&'n str> = Vec::new();
        let mut at = name;
        loop {
            let (known, slot) = self.slots.get_key_value(at).ok_or_else(|| {
                Error::msg(format_args!("`{at}` is read, and nothing before gives it"))
            })?;
            if slot.version == self.versions[slot.memory] {
                break;
            }
            match &slot.view {
                Some(view) => {
                    stale.push(known);
                    at = view.parent;
                }
                None => break,
            }
        }
        while let Some(name) = stale.pop() {
            let view = self.slots[name]
                .view
                .as_ref()
                .expect("a stale name is a view");
            let parent = self.slots[view.parent].value.clone();
            let given = rules::run(&view.call.with_own(parent))?;
            let value = views::part(&given, view.index)?;
            let slot = self.slots.get_mut(name).expect("it was found");
            slot.value = value;
            slot.version = self.versions[slot.memory];
        }
        Ok(self.slots[name].value.clone())
    }

    /// Writes what a name stands for, and so all that is of its memory; gives the name that the memory began with.
    ///
    /// # Errors
    /// Returns an error if nothing has the name, or its elements cannot be written through the view that it is.
    pub fn write(&mut self, name: &'n str, value: Tensor) -> Result<&'n str> {
        self.get(name)?;
        let (memory, mut at, mut value) = (self.slots[name].memory, name, value);
        self.versions[memory] += 1;
        loop {
            let slot = self.slots.get_mut(at).expect("a view's parent is there");
            slot.value = Value::object(value.clone());
            slot.version = self.versions[memory];
            let slot = &self.slots[at];
            let Some(view) = &slot.view else {
                break;
            };
            // What the parent stood for before.
            let whole = self.slots[view.parent].value.clone();
            value = views::put(&view.call.with_own(whole), view.index, value)?;
            at = view.parent;
        }
        Ok(self.roots[memory])
    }
}
