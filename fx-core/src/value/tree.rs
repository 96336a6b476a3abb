//! `Tree`: the structure of a value without its leaves, as pytrees have it; it flattens values of that structure and no other.

use std::fmt;
use std::sync::Arc;

use super::value::Value;
use crate::error::{Error, Result};

/// How deep structures may nest, so that walks over them may recurse.
const MAX_DEPTH: usize = 64;

/// The structure of a value: lists, tuples and dicts down to the leaves.
///
/// ```
/// use fx_core::{IntoValue, Tree};
/// let tree = Tree::of(&(1, vec![2, 3]).into_value())?;
/// assert_eq!(tree.to_string(), "(*, [*, *])");
/// assert_eq!(tree.leaves(), 3);
/// let flat = tree.flatten((4, vec![5, 6]).into_value())?;
/// assert_eq!(tree.unflatten(flat)?.to_string(), "a tuple of 2");
/// assert!(tree.flatten(7.into_value()).is_err());
/// # Ok::<(), fx_core::Error>(())
/// ```
///
/// `#[derive(Tree)]` makes a struct such a structure: it goes through graphs as a dict of its fields.
///
/// ```
/// use fx_core::IntoValue;
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tree {
    /// One value, whatever it is.
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
    /// When it nests deeper than 64 levels.
    pub fn of(value: &Value) -> Result<Self> {
        Tree::at_depth(value, 0)
    }

    fn at_depth(value: &Value, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(Error::msg(format_args!(
                "a structure nests deeper than {MAX_DEPTH} levels"
            )));
        }
        let all = |items: &[Value]| {
            items
                .iter()
                .map(|item| Tree::at_depth(item, depth + 1))
                .collect::<Result<Vec<_>>>()
        };
        Ok(match value {
            Value::List(items) => Tree::List(all(items)?),
            Value::Tuple(items) => Tree::Tuple(all(items)?),
            Value::Dict(map) => Tree::Dict(
                map.iter()
                    .map(|(key, item)| Ok((key.clone(), Tree::at_depth(item, depth + 1)?)))
                    .collect::<Result<_>>()?,
            ),
            _ => Tree::Leaf,
        })
    }

    /// Whether it is one leaf, so that there is nothing to flatten.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Tree::Leaf)
    }

    /// How many leaves it has.
    pub fn leaves(&self) -> usize {
        match self {
            Tree::Leaf => 1,
            Tree::List(items) | Tree::Tuple(items) => items.iter().map(Tree::leaves).sum(),
            Tree::Dict(items) => items.iter().map(|(_, item)| item.leaves()).sum(),
        }
    }

    /// Where each leaf is, as Rust writes it: `.0[2]["mask"]`; nothing for a tree that is a leaf.
    pub fn paths(&self) -> Vec<String> {
        fn walk(tree: &Tree, path: &mut String, found: &mut Vec<String>) {
            let mut inside = |step: String, item: &Tree| {
                let before = path.len();
                path.push_str(&step);
                walk(item, path, found);
                path.truncate(before);
            };
            match tree {
                Tree::Leaf => found.push(path.clone()),
                Tree::List(items) => {
                    for (i, item) in items.iter().enumerate() {
                        inside(format!("[{i}]"), item);
                    }
                }
                Tree::Tuple(items) => {
                    for (i, item) in items.iter().enumerate() {
                        inside(format!(".{i}"), item);
                    }
                }
                Tree::Dict(items) => {
                    for (key, item) in items {
                        inside(format!("[{key:?}]"), item);
                    }
                }
            }
        }
        let mut found = Vec::new();
        walk(self, &mut String::new(), &mut found);
        found
    }

    /// The leaves of a value of this structure, in order.
    ///
    /// # Errors
    /// When the value has another structure: the error says where.
    pub fn flatten(&self, value: Value) -> Result<Vec<Value>> {
        let mut flat = Vec::with_capacity(self.leaves());
        self.flatten_into(value, &mut String::new(), &mut flat)?;
        Ok(flat)
    }

    fn flatten_into(&self, mut value: Value, path: &mut String, flat: &mut Vec<Value>) -> Result<()> {
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
                // The order of the keys is the tree's, whatever the map's is.
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

    /// A value of this structure with these leaves.
    ///
    /// # Errors
    /// When there are more or fewer leaves than the structure has.
    pub fn unflatten(&self, leaves: Vec<Value>) -> Result<Value> {
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

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, items: &[Tree]| {
            for (i, item) in items.iter().enumerate() {
                write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
            }
            Ok(())
        };
        match self {
            Tree::Leaf => f.write_str("*"),
            Tree::List(items) => {
                f.write_str("[")?;
                list(f, items)?;
                f.write_str("]")
            }
            Tree::Tuple(items) => {
                f.write_str("(")?;
                list(f, items)?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            Tree::Dict(items) => {
                f.write_str("{")?;
                for (i, (key, item)) in items.iter().enumerate() {
                    write!(f, "{}{key:?}: {item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A structured value: lists, tuples, dicts and leaves, [`PH`](crate::PH) for what stays symbolic.
///
/// A leaf is one token (`PH`, `2`, `"sum"`, `name`) or an expression in parentheses; a tuple of one is `(a,)`.
///
/// ```
/// use fx_core::{PH, Tree, tree};
/// let rate = 0.1;
/// let value = tree!({"x": PH, "sizes": [2, 3], "pair": (PH, None), "rate": (rate / 2.0)});
/// let tree = Tree::of(&value)?;
/// assert_eq!(tree.to_string(), r#"{"x": *, "sizes": [*, *], "pair": (*, *), "rate": *}"#);
/// # Ok::<(), fx_core::Error>(())
/// ```
#[macro_export]
macro_rules! tree {
    ({ $($key:tt : $value:tt),* $(,)? }) => {
        $crate::Value::Dict(::std::boxed::Box::new(
            [$((::std::sync::Arc::<str>::from($key), $crate::tree!($value))),*]
                .into_iter()
                .collect(),
        ))
    };
    ([ $($value:tt),* $(,)? ]) => {
        $crate::Value::List(::std::boxed::Box::new([$($crate::tree!($value)),*]))
    };
    (()) => {
        $crate::Value::Tuple(::std::boxed::Box::new([]))
    };
    (( $value:tt , $($rest:tt),* $(,)? )) => {
        $crate::Value::Tuple(::std::boxed::Box::new([
            $crate::tree!($value) $(, $crate::tree!($rest))*
        ]))
    };
    (None) => {
        $crate::Value::None
    };
    ($value:expr) => {
        $crate::IntoValue::into_value($value)
    };
}
