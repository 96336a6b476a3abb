//! Caches of keys and values that grow from run to run: an argument to which a program appends, and which it returns.
//!
//! Invariant: a program that appends to an argument reads no argument where it is, since what is appended may lie in the
//! same storage; it reads keys and values only behind what it appended.

use std::collections::HashMap;

use fx_core::value::{DType, Value};
use fx_core::{Error, Result};
use fx_kernels::convert::Half;

use super::draft::{Draft, Id, Item, Kind};
use super::frame::{Reading, Register, place};
use super::memory::Pool;
use super::types::dtype;
use crate::Tensor;
use crate::tensor::Rows;

/// Finds the arguments that are caches, and appends to them.
pub(super) fn caches(draft: &mut Draft) {
    let appended = appended(draft);
    if appended.is_empty() {
        return;
    }
    let mut made: Vec<Item> = Vec::with_capacity(draft.items.len());
    // The item of each item of the draft as floats, and as it is given.
    let mut renamed: Vec<Id> = Vec::with_capacity(draft.items.len());
    let mut given: Vec<Id> = Vec::with_capacity(draft.items.len());
    let mut is_argument: Vec<bool> = Vec::with_capacity(draft.items.len());
    for (at, mut item) in std::mem::take(&mut draft.items).into_iter().enumerate() {
        let first = item.inputs.first().copied();
        let attended = match item.kind {
            Kind::Attention(_) => Some([item.inputs[1], item.inputs[2]]),
            _ => None,
        };
        item.visit_uses(&mut |id| *id = renamed[*id]);
        match (&item.kind, first, appended.get(&at)) {
            (Kind::Cat(dim), Some(first), Some(half)) => {
                item.kind = Kind::Append(*dim, *half);
                item.inputs[0] = given[first];
            }
            (Kind::ShapeOf | Kind::SizeOf(_) | Kind::RankOf, Some(first), _) => {
                item.inputs[0] = given[first];
            }
            _ => {}
        }
        // Keys and values that are arguments are read where they are.
        for (input, old) in attended.into_iter().flatten().enumerate() {
            if matches!(made[given[old]].kind, Kind::Input(_)) {
                item.inputs[1 + input] = given[old];
            }
        }
        let is_input = matches!(item.kind, Kind::Input(_));
        let source = match (&item.kind, first) {
            (Kind::Floats, Some(first)) => given[first],
            _ => made.len(),
        };
        let copied = (is_input && item.is_floats).then(|| {
            item.is_floats = false;
            Item {
                kind: Kind::Floats,
                inputs: vec![made.len()],
                nodes: item.nodes.clone(),
                is_floats: true,
                is_kept: false,
            }
        });
        made.push(item);
        given.push(source);
        is_argument.push(is_input);
        if let Some(copied) = copied {
            made.push(copied);
        }
        renamed.push(made.len() - 1);
    }
    draft.items = made;
    for id in draft.returned.values_mut() {
        *id = match is_argument[*id] {
            true => given[*id],
            false => renamed[*id],
        };
    }
    draft.without_dead();
}

/// Which items append to a cache, and its type of 16 bits: they are returned, are keys or values of an attention, and put one
/// part behind an argument of their type, along the places, that nothing else reads, but for its sizes.
fn appended(draft: &mut Draft) -> HashMap<Id, Option<Half>> {
    let mut reads = vec![0; draft.items.len()];
    let mut is_attended = vec![false; draft.items.len()];
    for item in &mut draft.items {
        match item.kind {
            Kind::ShapeOf | Kind::SizeOf(_) | Kind::RankOf => continue,
            Kind::Attention(_) => item.inputs[1..3]
                .iter()
                .for_each(|id| is_attended[*id] = true),
            _ => {}
        }
        item.visit_uses(&mut |id| reads[*id] += 1);
    }
    // The type of 16 bits of an argument that is read once.
    let alone = |id: Id| -> Option<Option<Half>> {
        let item = &draft.items[id];
        let of = match (&item.kind, &item.inputs[..]) {
            (Kind::Input(_), _) => id,
            (Kind::Floats, [of]) if reads[*of] == 1 => *of,
            _ => return None,
        };
        match draft.items[of].kind {
            Kind::Input(place) if reads[id] == 1 => draft.input_halves.get(place).copied(),
            _ => None,
        }
    };
    let mut found: HashMap<Id, Option<Half>> = HashMap::new();
    let mut of_two_types: Vec<Id> = Vec::new();
    for (node, id) in &draft.returned {
        let item = &draft.items[*id];
        let half = draft.halves.get(node).copied();
        if let (Kind::Cat(2 | -2), [first, more]) = (&item.kind, &item.inputs[..])
            && first != more
            && is_attended[*id]
            && alone(*first) == Some(half)
            && found.insert(*id, half).is_some_and(|other| other != half)
        {
            of_two_types.push(*id);
        }
    }
    found.retain(|id, _| !of_two_types.contains(id));
    found
}

impl Reading<'_> {
    /// A cache with more behind it, which is of a type of 16 bits or `f32`.
    pub fn append(
        &self,
        inputs: &[Id],
        dim: i64,
        half: Option<Half>,
        pool: &mut Pool,
    ) -> Result<Register> {
        let Register::Value(cache) = &self.registers[inputs[0]] else {
            return Err(Error::msg("a cache is no argument"));
        };
        let cache = cache.downcast_ref::<Tensor>();
        let cache = cache.ok_or_else(|| Error::msg("a cache is no tensor"))?;
        if cache.dtype()? != half.map_or(DType::F32, dtype) {
            return Err(Error::msg(
                "a cache is of another type than what is appended",
            ));
        }
        let rows = self.in_order(inputs[1], pool)?;
        let made = cache.appended(&Rows {
            floats: self.floats(&rows),
            dims: &rows.dims,
            dim: place(dim, rows.dims.len())?,
        })?;
        Ok(Register::Value(Value::of(made)))
    }
}
