//! Pytrees: how PyTorch's arguments and results are made of their leaves.

use std::sync::Arc;

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::{Error, Result, operator};
use indexmap::IndexMap;
use serde::Deserialize;

/// A structure with a place for each leaf, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Leaf,
    Tuple(Vec<Tree>),
    List(Vec<Tree>),
    Dict(Vec<(Arc<str>, Tree)>),
}

/// A structure as PyTorch writes it.
#[derive(Debug, Deserialize)]
struct Written {
    #[serde(rename = "type")]
    class: Option<String>,
    #[serde(default)]
    context: Option<String>,
    #[serde(default)]
    children_spec: Vec<Written>,
}

impl Tree {
    /// Reads what PyTorch wrote.
    ///
    /// # Errors
    /// Returns an error if it is of another version, or of a class whose parts have no names.
    pub fn parse(text: &str) -> Result<Tree> {
        let (version, written): (u64, Written) =
            serde_json::from_str(text).map_err(|e| Error::msg(format_args!("a structure: {e}")))?;
        match version {
            1 => written.tree(),
            other => Err(Error::msg(format_args!(
                "a structure of version {other}, and 1 is understood"
            ))),
        }
    }

    /// How many leaves it has.
    pub fn leaves(&self) -> usize {
        match self {
            Tree::Leaf => 1,
            Tree::Tuple(items) | Tree::List(items) => items.iter().map(Tree::leaves).sum(),
            Tree::Dict(items) => items.iter().map(|(_, item)| item.leaves()).sum(),
        }
    }

    /// The structure of leaves.
    ///
    /// # Errors
    /// Returns an error if there are too few of them.
    pub fn filled(&self, leaves: &mut impl Iterator<Item = Value>) -> Result<Value> {
        let all = |items: &[Tree], leaves: &mut _| {
            let items = items.iter().map(|item| item.filled(leaves));
            items.collect::<Result<Vec<Value>>>()
        };
        Ok(match self {
            Tree::Leaf => leaves
                .next()
                .ok_or_else(|| Error::msg("a structure has more leaves than there are values"))?,
            Tree::Tuple(items) => Value::Tuple(all(items, leaves)?.into()),
            Tree::List(items) => Value::List(all(items, leaves)?.into()),
            Tree::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), item.filled(leaves)?)));
                Value::Dict(Box::new(items.collect::<Result<IndexMap<_, _>>>()?))
            }
        })
    }

    /// What the specs of leaves are together.
    pub fn spec(&self, leaves: &mut impl Iterator<Item = Spec>) -> Result<Spec> {
        let all = |items: &[Tree], leaves: &mut _| {
            let items = items.iter().map(|item| item.spec(leaves));
            items.collect::<Result<Vec<Spec>>>()
        };
        Ok(match self {
            Tree::Leaf => leaves
                .next()
                .ok_or_else(|| Error::msg("a structure has more leaves than there are inputs"))?,
            Tree::Tuple(items) => Spec::tuple(all(items, leaves)?),
            Tree::List(items) => Spec::list(all(items, leaves)?),
            Tree::Dict(items) => {
                let items = items
                    .iter()
                    .map(|(key, item)| Ok((&**key, item.spec(leaves)?)));
                Spec::dict(items.collect::<Result<Vec<_>>>()?)
            }
        })
    }

    /// Adds the leaves of a value of this structure.
    ///
    /// # Errors
    /// Returns an error if the value has another one.
    pub fn flatten(&self, value: &Value, leaves: &mut Vec<Value>) -> Result<()> {
        match (self, value) {
            (Tree::Leaf, value) => leaves.push(value.clone()),
            (
                Tree::Tuple(items) | Tree::List(items),
                Value::Tuple(values) | Value::List(values),
            ) if items.len() == values.len() => {
                for (item, value) in items.iter().zip(values) {
                    item.flatten(value, leaves)?;
                }
            }
            (Tree::Dict(items), Value::Dict(values)) if items.len() == values.len() => {
                for (key, item) in items {
                    let value = values
                        .get(key)
                        .ok_or_else(|| Error::msg(format_args!("an argument has no `{key}`")))?;
                    item.flatten(value, leaves)?;
                }
            }
            // A structure that a run gives is taken apart in the graph.
            (Tree::Tuple(items) | Tree::List(items), Value::Proxy(_)) => {
                for (at, item) in (0i64..).zip(items) {
                    let part: Value = operator::getitem.call_as((value.clone(), at))?;
                    item.flatten(&part, leaves)?;
                }
            }
            (Tree::Dict(items), Value::Proxy(_)) => {
                for (key, item) in items {
                    let part: Value =
                        operator::getitem.call_as((value.clone(), key.to_string()))?;
                    item.flatten(&part, leaves)?;
                }
            }
            (_, value) => {
                return Err(Error::msg(format_args!(
                    "an argument is {}, and `forward` takes {self:?}",
                    value.describe()
                )));
            }
        }
        Ok(())
    }
}

/// The names in a context: a list of texts with one for each part, wherever it stands.
fn names(context: &str, count: usize) -> Option<Vec<Arc<str>>> {
    let json: serde_json::Value = serde_json::from_str(context).ok()?;
    let mut left = vec![&json];
    while let Some(json) = left.pop() {
        let Some(items) = json.as_array() else {
            continue;
        };
        let texts: Option<Vec<Arc<str>>> = items
            .iter()
            .map(|item| match item {
                serde_json::Value::String(text) => Some(Arc::from(text.as_str())),
                serde_json::Value::Number(number) => Some(Arc::from(number.to_string())),
                _ => None,
            })
            .collect();
        match texts {
            Some(texts) if texts.len() == count => return Some(texts),
            _ => left.extend(items),
        }
    }
    None
}

impl Written {
    fn tree(&self) -> Result<Tree> {
        let items = || {
            let items = self.children_spec.iter().map(Written::tree);
            items.collect::<Result<Vec<Tree>>>()
        };
        Ok(match self.class.as_deref() {
            None => Tree::Leaf,
            Some("builtins.tuple" | "collections.namedtuple" | "torch.Size") => {
                Tree::Tuple(items()?)
            }
            Some("builtins.list" | "collections.deque") => Tree::List(items()?),
            // What functions with several results give: `torch.return_types.max`.
            Some(class) if class.starts_with("torch.return_types.") => Tree::Tuple(items()?),
            Some(class) => {
                let context = self.context.as_deref().unwrap_or("null");
                let names = names(context, self.children_spec.len()).ok_or_else(|| {
                    Error::msg(format_args!(
                        "a structure of the class `{class}`, whose parts have no names: give and return dicts, lists and tuples"
                    ))
                })?;
                Tree::Dict(names.into_iter().zip(items()?).collect())
            }
        })
    }
}
