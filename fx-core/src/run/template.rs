//! `Template`: a structured argument with computed values inside, filled again for each call.
//!
//! Invariant: a structure that is filled again keeps its memory, and holds no value between calls.

use std::sync::Arc;

use crate::ir::argument::Argument;
use crate::value::value::Value;

use super::operand::Operand;

/// A structured argument. Its depth is bounded where arguments enter the graph.
#[derive(Debug)]
pub(super) enum Template {
    Leaf(Operand),
    List(Box<[Template]>),
    Tuple(Box<[Template]>),
    Dict(Box<[(Arc<str>, Template)]>),
    Slice(Box<[Template; 3]>),
    Range(Box<[Template; 3]>),
}

impl Template {
    /// The template of an argument, with the operands of what is no structure.
    pub fn of<E>(
        arg: &Argument,
        leaf: &mut dyn FnMut(&Argument) -> Result<Operand, E>,
    ) -> Result<Template, E> {
        fn all<E>(
            items: &[Argument],
            leaf: &mut dyn FnMut(&Argument) -> Result<Operand, E>,
        ) -> Result<Box<[Template]>, E> {
            items.iter().map(|arg| Template::of(arg, leaf)).collect()
        }
        fn three<E>(
            [a, b, c]: &[Argument; 3],
            leaf: &mut dyn FnMut(&Argument) -> Result<Operand, E>,
        ) -> Result<Box<[Template; 3]>, E> {
            Ok(Box::new([
                Template::of(a, leaf)?,
                Template::of(b, leaf)?,
                Template::of(c, leaf)?,
            ]))
        }
        Ok(match arg {
            Argument::List(items) => Template::List(all(items, leaf)?),
            Argument::Tuple(items) => Template::Tuple(all(items, leaf)?),
            Argument::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(k, arg)| Ok((k.clone(), Template::of(arg, leaf)?)));
                Template::Dict(items.collect::<Result<_, E>>()?)
            }
            Argument::Slice(parts) => Template::Slice(three(parts, leaf)?),
            Argument::Range(parts) => Template::Range(three(parts, leaf)?),
            plain => Template::Leaf(leaf(plain)?),
        })
    }

    /// Fills a value that this template filled before, or any other.
    pub fn fill(&self, value: &mut Value, of: &impl Fn(Operand) -> Value) {
        if !self.fits(value) {
            *value = self.hollow();
        }
        self.each(value, &mut |leaf, value| *value = of(leaf));
    }

    /// Drops the objects of a value that this template filled.
    pub fn empty(&self, value: &mut Value) {
        if self.fits(value) {
            self.each(value, &mut |_, value| {
                if !matches!(value, Value::Int(_) | Value::Bool(_) | Value::Float(_)) {
                    *value = Value::None;
                }
            });
        }
    }

    /// Whether a value has the structure on the outside; inside it has too then.
    fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Template::Leaf(_), _)
            | (Template::Slice(_), Value::Slice(_))
            | (Template::Range(_), Value::Range(_)) => true,
            (Template::List(items), Value::List(values))
            | (Template::Tuple(items), Value::Tuple(values)) => items.len() == values.len(),
            (Template::Dict(items), Value::Dict(values)) => items.len() == values.len(),
            _ => false,
        }
    }

    /// The structure without values.
    fn hollow(&self) -> Value {
        let all = |items: &[Template]| items.iter().map(Template::hollow).collect();
        let three = |parts: &[Template; 3]| Box::new(parts.each_ref().map(Template::hollow));
        match self {
            Template::Leaf(_) => Value::None,
            Template::List(items) => Value::List(all(items)),
            Template::Tuple(items) => Value::Tuple(all(items)),
            Template::Dict(items) => {
                let items = items.iter().map(|(k, item)| (k.clone(), item.hollow()));
                Value::Dict(Box::new(items.collect()))
            }
            Template::Slice(parts) => Value::Slice(three(parts)),
            Template::Range(parts) => Value::Range(three(parts)),
        }
    }

    /// Shows each operand beside its place in a value of this structure.
    fn each(&self, value: &mut Value, show: &mut impl FnMut(Operand, &mut Value)) {
        match (self, value) {
            (Template::Leaf(operand), value) => show(*operand, value),
            (Template::List(items), Value::List(values))
            | (Template::Tuple(items), Value::Tuple(values)) => {
                let pairs = items.iter().zip(values.iter_mut());
                pairs.for_each(|(item, value)| item.each(value, show));
            }
            (Template::Dict(items), Value::Dict(values)) => {
                let pairs = items.iter().zip(values.values_mut());
                pairs.for_each(|((_, item), value)| item.each(value, show));
            }
            (Template::Slice(parts), Value::Slice(values))
            | (Template::Range(parts), Value::Range(values)) => {
                let pairs = parts.iter().zip(values.iter_mut());
                pairs.for_each(|(part, value)| part.each(value, show));
            }
            _ => debug_assert!(false, "the value has the structure of its template"),
        }
    }
}
