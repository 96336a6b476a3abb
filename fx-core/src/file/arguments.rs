//! Arguments, plain values, literals and trees as JSON.
//!
//! Invariant: a value loads as it was saved, with the same kind: an int is not a float, a list is
//! not a tuple.

use std::sync::Arc;

use super::json::{self, Excerpt, Json, tag};
use super::limits::check_depth;
use super::loader::Loader;
use super::names::argument::{ALL, DEVICE, DICT, DTYPE, ELLIPSIS, FLOAT, RANGE, SLICE, STR, TUPLE};
use super::names::reference::TENSOR;
use super::saver::Saver;
use crate::error::{Error, Result};
use crate::ir::argument::Argument;
use crate::ir::signature::Literal;
use crate::value::device::Device;
use crate::value::dtype::DType;
use crate::value::handle::NodeId;
use crate::value::tree::Tree;
use crate::value::value::Value;

/// A float among other kinds of values. Strings are a separate kind, so `nan` needs a tag.
fn float(x: f64) -> Json {
    match json::from_float(x) {
        Json::String(name) => tag(FLOAT, name),
        number => number,
    }
}

/// An argument as JSON: a node is `"%name"`, a string `{"str": ..}`, a list a list, the rest tagged
/// objects.
///
/// Arguments nest at most 64 levels; their graph ensures that.
pub(crate) fn from_argument(arg: &Argument, node: &dyn Fn(NodeId) -> Result<Json>) -> Result<Json> {
    let all = |items: &[Argument]| -> Result<Json> {
        items.iter().map(|item| from_argument(item, node)).collect()
    };
    Ok(match arg {
        Argument::Node(id) => node(*id)?,
        Argument::None => Json::Null,
        Argument::Ellipsis => tag(ELLIPSIS, Json::Null),
        Argument::Bool(x) => Json::from(*x),
        Argument::Int(x) => Json::from(*x),
        Argument::Float(x) => float(*x),
        Argument::Str(x) => tag(STR, x.as_str()),
        Argument::DType(x) => tag(DTYPE, x.name()),
        Argument::Device(x) => tag(DEVICE, x.to_string()),
        Argument::List(items) => all(items)?,
        Argument::Tuple(items) => tag(TUPLE, all(items)?),
        Argument::Dict(items) => tag(
            DICT,
            items
                .iter()
                .map(|(key, item)| {
                    Ok(Json::Array(vec![
                        Json::from(&**key),
                        from_argument(item, node)?,
                    ]))
                })
                .collect::<Result<Vec<_>>>()?,
        ),
        Argument::Slice(parts) => tag(SLICE, all(&parts[..])?),
        Argument::Range(parts) => tag(RANGE, all(&parts[..])?),
    })
}

/// The argument of [`from_argument`]; `node` finds nodes by name.
pub(crate) fn to_argument(
    saved: &Json,
    depth: usize,
    node: &dyn Fn(&str) -> Result<NodeId>,
) -> Result<Argument> {
    check_depth(depth)?;
    Ok(match saved {
        Json::Null => Argument::None,
        Json::Bool(x) => Argument::Bool(*x),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(n), _) => Argument::Int(n),
            (None, Some(x)) if number.is_f64() => Argument::Float(x),
            _ => return Err(json::expected("an integer of 64 bits", saved)),
        },
        Json::String(text) => match text.strip_prefix('%') {
            Some(name) => Argument::Node(node(name)?),
            None => {
                return Err(json::expected(
                    "a node (`\"%name\"`) or a text (`{\"str\": ..}`)",
                    saved,
                ));
            }
        },
        Json::Array(_) => Argument::List(Arc::new(arguments(saved, depth, node)?)),
        Json::Object(_) => {
            let (kind, inner) = json::tagged(saved)?;
            to_tagged(kind, inner, depth, node).map_err(|e| e.inside(format_args!(".{kind}")))?
        }
    })
}

fn arguments(
    saved: &Json,
    depth: usize,
    node: &dyn Fn(&str) -> Result<NodeId>,
) -> Result<Vec<Argument>> {
    json::items(saved, |item| to_argument(item, depth + 1, node))
}

fn to_tagged(
    kind: &str,
    inner: &Json,
    depth: usize,
    node: &dyn Fn(&str) -> Result<NodeId>,
) -> Result<Argument> {
    let three = || -> Result<Arc<[Argument; 3]>> {
        let parts = <[Argument; 3]>::try_from(arguments(inner, depth, node)?);
        parts
            .map(Arc::new)
            .map_err(|_| json::expected("start, stop and step", inner))
    };
    Ok(match kind {
        STR => Argument::from(json::text(inner)?),
        FLOAT => Argument::Float(json::to_float(inner)?),
        ELLIPSIS => Argument::Ellipsis,
        DTYPE => Argument::DType(to_dtype(inner)?),
        DEVICE => Argument::Device(to_device(inner)?),
        TUPLE => Argument::Tuple(Arc::new(arguments(inner, depth, node)?)),
        SLICE => Argument::Slice(three()?),
        RANGE => Argument::Range(three()?),
        DICT => Argument::Dict(Arc::new(json::items(inner, |pair| {
            match json::array(pair)? {
                [key, item] => Ok((json::text(key)?.into(), to_argument(item, depth + 1, node)?)),
                _ => Err(json::expected("a key and a value", pair)),
            }
        })?)),
        kind => {
            return Err(Error::saved(format_args!(
                "{} is not a kind of argument: expected one of {}",
                Excerpt(kind),
                ALL.join(", ")
            )));
        }
    })
}

/// An element type by its name.
pub(crate) fn to_dtype(saved: &Json) -> Result<DType> {
    let name = json::text(saved)?;
    DType::from_name(name)
        .ok_or_else(|| json::expected("an element type, such as `float32`", saved))
}

/// A device by its name.
pub(crate) fn to_device(saved: &Json) -> Result<Device> {
    json::text(saved)?
        .parse()
        .map_err(|e: Error| Error::saved(e))
}

/// The value of a `get_attr` node as JSON: a tensor, or a plain value.
pub(crate) fn from_value(value: &Value, saver: &mut Saver) -> Result<Json> {
    match value.as_object() {
        Some(object) => saver.tensor(object),
        None => {
            let argument = plain_argument(value, 0)?;
            from_argument(&argument, &|_| {
                Err(Error::saved("a constant holds no node"))
            })
        }
    }
}

/// The value of [`from_value`].
pub(crate) fn to_value(saved: &Json, loader: &mut Loader<'_>) -> Result<Value> {
    if let Ok((TENSOR, _)) = json::tagged(saved) {
        return loader.tensor_value(saved);
    }
    let argument = to_argument(saved, 0, &|_| Err(Error::saved("a constant holds no node")))?;
    argument.to_value(&mut |_| Ok(Value::None))
}

pub(super) fn plain_argument(value: &Value, depth: usize) -> Result<Argument> {
    check_depth(depth)?;
    let all = |items: &[Value]| -> Result<Vec<Argument>> {
        let items = items.iter();
        items.map(|item| plain_argument(item, depth + 1)).collect()
    };
    let three = |parts: &[Value; 3]| -> Result<Arc<[Argument; 3]>> {
        let parts = <[Argument; 3]>::try_from(all(&parts[..])?);
        parts
            .map(Arc::new)
            .map_err(|_| Error::saved("three parts stay three"))
    };
    Ok(match value {
        Value::None => Argument::None,
        Value::Bool(x) => Argument::Bool(*x),
        Value::Int(x) => Argument::Int(*x),
        Value::Float(x) => Argument::Float(*x),
        Value::Str(x) => Argument::from(&**x),
        Value::DType(x) => Argument::DType(*x),
        Value::Device(x) => Argument::Device(*x),
        Value::Ellipsis => Argument::Ellipsis,
        Value::List(items) => Argument::List(Arc::new(all(items)?)),
        Value::Tuple(items) => Argument::Tuple(Arc::new(all(items)?)),
        Value::Dict(map) => Argument::Dict(Arc::new(
            map.iter()
                .map(|(key, item)| Ok((key.clone(), plain_argument(item, depth + 1)?)))
                .collect::<Result<_>>()?,
        )),
        Value::Slice(parts) => Argument::Slice(three(parts)?),
        Value::Range(parts) => Argument::Range(three(parts)?),
        Value::Object(_) | Value::Proxy(_) => {
            return Err(Error::saved(format_args!(
                "{} inside a constant cannot be saved",
                value.describe()
            )));
        }
    })
}

/// A default as JSON.
pub(crate) fn from_literal(literal: &Literal) -> Json {
    match literal {
        Literal::None => Json::Null,
        Literal::Bool(x) => Json::from(*x),
        Literal::Int(x) => Json::from(*x),
        Literal::Float(x) => float(*x),
        Literal::Str(x) => tag(STR, x.as_ref()),
    }
}

/// The default of [`from_literal`].
pub(crate) fn to_literal(saved: &Json) -> Result<Literal> {
    let no_node = |_: &str| Err(Error::saved("a default cannot be a node"));
    Ok(match to_argument(saved, 0, &no_node)? {
        Argument::None => Literal::None,
        Argument::Bool(x) => Literal::Bool(x),
        Argument::Int(x) => Literal::Int(x),
        Argument::Float(x) => Literal::Float(x),
        Argument::Str(ref x) => Literal::Str(x.to_string().into()),
        _ => {
            return Err(json::expected(
                "null, a truth value, a number or a text",
                saved,
            ));
        }
    })
}

/// A tree as JSON: a leaf is `"*"`.
pub(crate) fn from_tree(tree: &Tree, depth: usize) -> Result<Json> {
    check_depth(depth)?;
    let all = |items: &[Tree]| -> Result<Json> {
        items
            .iter()
            .map(|item| from_tree(item, depth + 1))
            .collect()
    };
    Ok(match tree {
        Tree::Leaf => Json::from("*"),
        Tree::List(items) => all(items)?,
        Tree::Tuple(items) => tag(TUPLE, all(items)?),
        Tree::Dict(items) => {
            let pairs = items.iter().map(|(key, item)| {
                Ok(Json::Array(vec![
                    Json::from(&**key),
                    from_tree(item, depth + 1)?,
                ]))
            });
            tag(DICT, pairs.collect::<Result<Vec<_>>>()?)
        }
    })
}

/// The tree of [`from_tree`].
pub(crate) fn to_tree(saved: &Json, depth: usize) -> Result<Tree> {
    check_depth(depth)?;
    let all = |items| json::items(items, |item| to_tree(item, depth + 1));
    match saved {
        Json::String(leaf) if leaf == "*" => Ok(Tree::Leaf),
        Json::Array(_) => Ok(Tree::List(all(saved)?)),
        Json::Object(_) => match json::tagged(saved)? {
            (TUPLE, items) => Ok(Tree::Tuple(all(items)?)),
            (DICT, items) => Ok(Tree::Dict(json::items(items, |pair| {
                match json::array(pair)? {
                    [key, item] => Ok((json::text(key)?.into(), to_tree(item, depth + 1)?)),
                    _ => Err(json::expected("a key and a tree", pair)),
                }
            })?)),
            _ => Err(json::expected("`tuple` or `dict`", saved)),
        },
        _ => Err(json::expected("`\"*\"`, a list, a tuple or a dict", saved)),
    }
}
