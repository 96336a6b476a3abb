//! `Tree`: the structure of a value without its leaves, like a pytree; it flattens only values of
//! that structure.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::nested::{self, MAX_DEPTH, Nested, Shown, ShownItems};
use super::value::Value;
use crate::error::{Error, Result};

/// The structure of a value: nested lists, tuples and dicts down to the leaves.
///
/// ```
/// use fx_core::value::{IntoValue, Tree};
/// let tree = Tree::of(&(1, vec![2, 3]).into_value())?;
/// assert_eq!(tree.to_string(), "(*, [*, *])");
/// assert_eq!(tree.leaves(), 3);
/// let flat = tree.flatten((4, vec![5, 6]).into_value())?;
/// assert_eq!(tree.unflatten(flat)?.to_string(), "a tuple of 2");
/// assert!(tree.flatten(7.into_value()).is_err());
/// # Ok::<(), fx_core::Error>(())
/// ```
///
/// `#[derive(Tree)]` makes a struct such a structure: it flows through graphs as a dict of its
/// fields.
///
/// ```
/// use fx_core::value::IntoValue;
/// use fx_core::prelude::*;
///
/// #[derive(Tree, Clone)]
/// struct Batch {
///     ids: Value,
///     masks: Vec<Value>,
/// }
///
/// #[trace]
/// fn second(batch: Batch) -> Result<(Value, Value)> {
///     Ok((batch.masks[1].clone(), batch.ids))
/// }
/// let gm = Trace::new(traced!(second))
///     .concrete("batch", tree!({"ids": PH, "masks": [PH, PH]}))
///     .graph_module()?;
/// let batch = Batch { ids: 1.into_value(), masks: vec![2.into_value(), 3.into_value()] };
/// assert_eq!(gm.forward::<(i64, i64)>(batch)?, (3, 1));
/// # Ok::<(), Error>(())
/// ```
/// Trees of any depth can be cloned, compared and dropped. Display shows 64 levels, and values have
/// at most 64.
#[non_exhaustive]
pub enum Tree {
    /// One value of any kind.
    Leaf,
    /// A list.
    List(Vec<Tree>),
    /// A tuple.
    Tuple(Vec<Tree>),
    /// Named values, in order.
    Dict(Vec<(Arc<str>, Tree)>),
}

impl Tree {
    /// The structure of a value.
    ///
    /// # Errors
    /// Returns an error if it nests deeper than 64 levels.
    pub fn of(value: &Value) -> Result<Self> {
        nested::check_depth(value, "a structure")?;
        Ok(Tree::of_shallow(value))
    }

    fn of_shallow(value: &Value) -> Self {
        let all = |items: &[Value]| items.iter().map(Tree::of_shallow).collect();
        match value {
            Value::List(items) => Tree::List(all(items)),
            Value::Tuple(items) => Tree::Tuple(all(items)),
            Value::Dict(map) => {
                let items = map.iter();
                Tree::Dict(
                    items
                        .map(|(key, item)| (key.clone(), Tree::of_shallow(item)))
                        .collect(),
                )
            }
            _ => Tree::Leaf,
        }
    }

    /// Whether it is a single leaf, with nothing to flatten.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Tree::Leaf)
    }

    /// The number of leaves.
    pub fn leaves(&self) -> usize {
        let mut count = 0;
        let mut pending: SmallVec<[&Tree; 8]> = SmallVec::new();
        pending.push(self);
        while let Some(tree) = pending.pop() {
            count += usize::from(tree.is_leaf());
            pending.extend((0..).map_while(|at| tree.child(at)));
        }
        count
    }

    /// The path of each leaf, as Rust writes it: `.0[2]["mask"]`; empty for a single leaf.
    pub fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        // The trees on the way to the current one, each with its next item and the path length
        // before it.
        let mut path = String::new();
        let mut way: Vec<(&Tree, usize, usize)> = vec![(self, 0, 0)];
        while let Some((tree, next, before)) = way.pop() {
            let Some(item) = tree.child(next) else {
                if tree.is_leaf() {
                    found.push(path.clone());
                }
                path.truncate(before);
                continue;
            };
            way.push((tree, next + 1, before));
            let before = path.len();
            path.push_str(&match tree {
                Tree::Dict(items) => format!("[{:?}]", items[next].0),
                Tree::Tuple(_) => format!(".{next}"),
                _ => format!("[{next}]"),
            });
            way.push((item, 0, before));
        }
        found
    }

    /// Flattens a value of this structure into its leaves, in order.
    ///
    /// # Errors
    /// Returns an error if the value has another structure; the error names the place.
    pub fn flatten(&self, value: Value) -> Result<Vec<Value>> {
        nested::check_depth(self, "a structure")?;
        let mut flat = Vec::with_capacity(self.leaves());
        self.flatten_into(value, &mut String::new(), &mut flat)?;
        Ok(flat)
    }

    fn flatten_into(
        &self,
        mut value: Value,
        path: &mut String,
        flat: &mut Vec<Value>,
    ) -> Result<()> {
        let mut inside = |tree: &Tree, value, step: String| {
            let before = path.len();
            path.push_str(&step);
            tree.flatten_into(value, path, flat)?;
            path.truncate(before);
            Ok::<_, Error>(())
        };
        match (self, &mut value) {
            (Tree::Leaf, value) => flat.push(std::mem::take(value)),
            (Tree::List(trees), Value::List(items)) if trees.len() == items.len() => {
                for (i, (tree, item)) in trees.iter().zip(items).enumerate() {
                    inside(tree, std::mem::take(item), format!("[{i}]"))?;
                }
            }
            (Tree::Tuple(trees), Value::Tuple(items)) if trees.len() == items.len() => {
                for (i, (tree, item)) in trees.iter().zip(items).enumerate() {
                    inside(tree, std::mem::take(item), format!(".{i}"))?;
                }
            }
            (Tree::Dict(trees), Value::Dict(map))
                if trees.len() == map.len()
                    && trees.iter().all(|(key, _)| map.contains_key(key)) =>
            {
                // Keys are in the tree's order, whatever the map's order is.
                for (key, tree) in trees {
                    let item = map.get_mut(key).map(std::mem::take).unwrap_or_default();
                    inside(tree, item, format!("[{key:?}]"))?;
                }
            }
            (tree, value) => {
                let found = match Tree::of(value) {
                    Ok(Tree::Leaf) => value.describe(),
                    Ok(found) => format!("`{found}`"),
                    Err(error) => return Err(error),
                };
                let place = if path.is_empty() {
                    String::new()
                } else {
                    format!(" at `{path}`")
                };
                return Err(Error::expected(
                    format_args!("a structure `{tree}`{place}"),
                    found,
                ));
            }
        }
        Ok(())
    }

    /// Builds a value of this structure from leaves.
    ///
    /// # Errors
    /// Returns an error if the number of leaves does not match the structure.
    pub fn unflatten(&self, leaves: Vec<Value>) -> Result<Value> {
        nested::check_depth(self, "a structure")?;
        let (expected, found) = (self.leaves(), leaves.len());
        if expected != found {
            return Err(Error::expected(
                format_args!("{expected} leaves for `{self}`"),
                found,
            ));
        }
        Ok(self.build(&mut leaves.into_iter()))
    }

    fn build(&self, leaves: &mut impl Iterator<Item = Value>) -> Value {
        match self {
            Tree::Leaf => leaves.next().unwrap_or_default(),
            Tree::List(items) => Value::List(items.iter().map(|item| item.build(leaves)).collect()),
            Tree::Tuple(items) => {
                Value::Tuple(items.iter().map(|item| item.build(leaves)).collect())
            }
            Tree::Dict(items) => Value::Dict(Box::new(
                items
                    .iter()
                    .map(|(key, item)| (key.clone(), item.build(leaves)))
                    .collect(),
            )),
        }
    }
}

impl Nested for Tree {
    fn is_structure(&self) -> bool {
        !self.is_leaf()
    }

    fn child(&self, at: usize) -> Option<&Self> {
        match self {
            Tree::Leaf => None,
            Tree::List(items) | Tree::Tuple(items) => items.get(at),
            Tree::Dict(items) => items.get(at).map(|(_, item)| item),
        }
    }

    fn take_structures(&mut self, out: &mut SmallVec<[Self; 4]>) {
        let take = |child: &mut Tree| {
            if !child.is_leaf() {
                out.push(std::mem::replace(child, Tree::Leaf));
            }
        };
        match self {
            Tree::Leaf => {}
            Tree::List(items) | Tree::Tuple(items) => items.iter_mut().for_each(take),
            Tree::Dict(items) => items.iter_mut().map(|(_, item)| item).for_each(take),
        }
    }

    fn with(&self, inside: Vec<Self>) -> Self {
        match self {
            Tree::Leaf => Tree::Leaf,
            Tree::List(_) => Tree::List(inside),
            Tree::Tuple(_) => Tree::Tuple(inside),
            Tree::Dict(items) => {
                let keys = items.iter().map(|(key, _)| key.clone());
                Tree::Dict(keys.zip(inside).collect())
            }
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Tree::Leaf, Tree::Leaf) => true,
            (Tree::List(a), Tree::List(b)) | (Tree::Tuple(a), Tree::Tuple(b)) => a.len() == b.len(),
            (Tree::Dict(a), Tree::Dict(b)) => {
                let mut keys = a.iter().zip(b);
                a.len() == b.len() && keys.all(|((a, _), (b, _))| a == b)
            }
            _ => false,
        }
    }
}

impl Clone for Tree {
    fn clone(&self) -> Self {
        match self {
            Tree::Leaf => Tree::Leaf,
            structure => nested::copy(structure),
        }
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        nested::are_equal(self, other)
    }
}

impl Eq for Tree {}

impl Drop for Tree {
    fn drop(&mut self) {
        nested::release(self);
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, MAX_DEPTH).fmt(f)
    }
}

impl fmt::Debug for Shown<'_, Tree> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(tree, levels) = *self;
        if levels == 0 && !tree.is_leaf() {
            return f.write_str("..");
        }
        let inside = levels.saturating_sub(1);
        match tree {
            Tree::Leaf => f.write_str("Leaf"),
            Tree::List(items) => f
                .debug_tuple("List")
                .field(&ShownItems(items, inside))
                .finish(),
            Tree::Tuple(items) => f
                .debug_tuple("Tuple")
                .field(&ShownItems(items, inside))
                .finish(),
            Tree::Dict(items) => {
                let items = items.iter().map(|(key, item)| (key, Shown(item, inside)));
                f.debug_tuple("Dict")
                    .field(&items.collect::<Vec<_>>())
                    .finish()
            }
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, MAX_DEPTH).fmt_tree(f)
    }
}

impl Shown<'_, Tree> {
    fn fmt_tree(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(tree, levels) = *self;
        if levels == 0 && !tree.is_leaf() {
            return f.write_str("..");
        }
        let (open, close) = match tree {
            Tree::Leaf => return f.write_str("*"),
            Tree::List(_) => ("[", "]"),
            Tree::Tuple(items) if items.len() == 1 => ("(", ",)"),
            Tree::Tuple(_) => ("(", ")"),
            Tree::Dict(_) => ("{", "}"),
        };
        f.write_str(open)?;
        for (at, item) in (0..).map_while(|at| Some((at, tree.child(at)?))) {
            if at > 0 {
                f.write_str(", ")?;
            }
            if let Tree::Dict(items) = tree {
                write!(f, "{:?}: ", items[at].0)?;
            }
            Shown(item, levels.saturating_sub(1)).fmt_tree(f)?;
        }
        f.write_str(close)
    }
}

/// Builds a structured value of lists, tuples, dicts and leaves; [`PH`](crate::trace::PH) marks
/// what stays symbolic.
///
/// A leaf is one token (`PH`, `2`, `"sum"`, `name`) or an expression in parentheses; a one-element
/// tuple is `(a,)`.
///
/// ```
/// use fx_core::{Tree, tree};
/// use fx_core::trace::PH;
/// use fx_core::value::Tree;
/// let rate = 0.1;
/// let value = tree!({"x": PH, "sizes": [2, 3], "pair": (PH, None), "rate": (rate / 2.0)});
/// let tree = Tree::of(&value)?;
/// assert_eq!(tree.to_string(), r#"{"x": *, "sizes": [*, *], "pair": (*, *), "rate": *}"#);
/// # Ok::<(), fx_core::Error>(())
/// ```
#[macro_export]
macro_rules! tree {
    ({ $($key:tt : $value:tt),* $(,)? }) => {
        $crate::__private::Value::Dict(::std::boxed::Box::new(
            [$((::std::sync::Arc::<str>::from($key), $crate::tree!($value))),*]
                .into_iter()
                .collect(),
        ))
    };
    ([ $($value:tt),* $(,)? ]) => {
        $crate::__private::Value::List(::std::boxed::Box::new([$($crate::tree!($value)),*]))
    };
    (()) => {
        $crate::__private::Value::Tuple(::std::boxed::Box::new([]))
    };
    (( $value:tt , $($rest:tt),* $(,)? )) => {
        $crate::__private::Value::Tuple(::std::boxed::Box::new([
            $crate::tree!($value) $(, $crate::tree!($rest))*
        ]))
    };
    (None) => {
        $crate::__private::Value::None
    };
    ($value:expr) => {
        $crate::__private::IntoValue::into_value($value)
    };
}
