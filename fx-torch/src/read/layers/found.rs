//! `Found`: the nodes of one call of a module of `torch.nn`, and what they say of the layer that it is.
//!
//! Invariant: an option that is not asked for is at its default, or the nodes are no layer.

use std::cell::RefCell;

use fx_nn::module::Module;
use fx_nn::prelude::*;
use fx_nn::tensor::{Pair, Triple};
use rustc_hash::FxHashMap;

use super::super::memory::Memory;
use super::super::values::{argument, tensors};
use crate::rules;
use crate::schema::{Argument, Graph, NamedArgument, Node, Size};

/// The tensors of a program by the names that nodes read, each with its path.
pub(super) type Weights<'p> = FxHashMap<&'p str, (&'p str, &'p Tensor)>;

/// The nodes of a call of a module.
pub(super) struct Found<'p> {
    /// Its path.
    pub path: &'p str,
    /// The nodes that compute something.
    pub nodes: Vec<&'p Node>,
    pub graph: &'p Graph,
    pub weights: &'p Weights<'p>,
}

/// What a layer is called with.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    One(Argument),
    Tuple(Vec<Argument>),
    Plain(Value),
}

/// A layer, and what it is called with.
pub(super) struct Layer<'p> {
    pub module: Box<dyn Module>,
    /// The options: calls of a module for which they are equal are calls of one layer.
    pub options: String,
    pub args: Vec<(Option<&'static str>, Given)>,
    /// The results by name, each with where it stands in what the layer gives.
    pub results: Vec<(&'p str, Vec<usize>)>,
    /// Whether the first argument becomes the result.
    pub writes: bool,
}

impl<'p> Found<'p> {
    /// The only node, if it is of the operator, or of the one that writes its first argument.
    pub fn one(&self, operator: &str) -> Option<One<'_, 'p>> {
        match self.nodes.as_slice() {
            [node] => self.of(node, operator),
            _ => None,
        }
    }

    /// A node, if it is of the operator, or of the one that writes its first argument.
    pub fn of(&self, node: &'p Node, operator: &str) -> Option<One<'_, 'p>> {
        let (_, own) = rules::short(&node.target);
        let writes = own.strip_suffix('_') == Some(operator);
        (own == operator || writes).then(|| One {
            found: self,
            node,
            writes,
            asked: RefCell::default(),
        })
    }

    /// The sizes of a tensor, if the file knows them; an open one is `None`.
    pub fn sizes(&self, argument: &Argument) -> Option<Vec<Option<usize>>> {
        let Argument::AsTensor(named) = argument else {
            return None;
        };
        let sizes = self.graph.tensor_values.get(&named.name)?.sizes.iter();
        let sizes = sizes.map(|size| match size {
            Size::AsInt(number) => usize::try_from(*number).ok(),
            Size::AsExpr(_) => None,
        });
        Some(sizes.collect())
    }

    /// A tensor of the program beside the module's others.
    pub fn beside(&self, name: &str) -> Option<Tensor> {
        let path = format!("{}.{name}", self.path);
        let all = self.weights.values();
        all.into_iter()
            .find(|(known, _)| *known == path)
            .map(|(_, tensor)| (*tensor).clone())
    }

    /// Whether a node adds one to a tensor beside the module's weights.
    pub fn counts(&self, node: &Node, name: &str) -> bool {
        let [own, by, ..] = node.inputs.as_slice() else {
            return false;
        };
        let path = format!("{}.{name}", self.path);
        let is_own = tensors(&own.arg).iter().any(|own| {
            let known = self.weights.get(own);
            known.is_some_and(|(known, _)| *known == path)
        });
        rules::short(&node.target).1 == "aten.add_"
            && is_own
            && matches!(by.arg, Argument::AsInt(1))
    }

    /// The tensor of the program that an argument is.
    pub fn weight(&self, argument: &Argument) -> Option<Tensor> {
        let Argument::AsTensor(named) = argument else {
            return None;
        };
        let (_, tensor) = self.weights.get(&*named.name)?;
        Some((*tensor).clone())
    }
}

/// A node of a module.
pub(super) struct One<'f, 'p> {
    found: &'f Found<'p>,
    pub node: &'p Node,
    writes: bool,
    /// The arguments that were asked for.
    asked: RefCell<Vec<&'p str>>,
}

/// What a layer's option is read from.
pub(super) trait Opt: Sized {
    /// The option that an argument is, if it is known.
    fn of(found: &Found<'_>, argument: &Argument) -> Option<Self>;
}

macro_rules! constants {
    ($($t:ty),*) => {$(
        impl Opt for $t {
            fn of(_: &Found<'_>, given: &Argument) -> Option<Self> {
                let value = argument(given, &mut Memory::default()).ok()?;
                <$t>::from_value(match &value {
                    // Layers over one dim have lists of one number.
                    Value::List(items) if items.len() == 1 => items[0].clone(),
                    _ => value,
                })
                .ok()
            }
        }
    )*};
}
constants!(usize, i64, f64, bool, String, Pair, Triple);

macro_rules! lists {
    ($($t:ty),*) => {$(
        impl Opt for Vec<$t> {
            fn of(_: &Found<'_>, given: &Argument) -> Option<Self> {
                Vec::from_value(argument(given, &mut Memory::default()).ok()?).ok()
            }
        }
    )*};
}
lists!(usize, i64, f64);

impl Opt for Tensor {
    fn of(found: &Found<'_>, given: &Argument) -> Option<Self> {
        found.weight(given)
    }
}

impl<T: Opt> Opt for Option<T> {
    fn of(found: &Found<'_>, given: &Argument) -> Option<Self> {
        match given {
            Argument::AsNone(_) => Some(None),
            given => T::of(found, given).map(Some),
        }
    }
}

impl<'p> One<'_, 'p> {
    /// The argument of a name.
    pub fn argument(&self, name: &str) -> Option<&'p Argument> {
        let input = self.node.inputs.iter().find(|input| input.name == name)?;
        self.asked.borrow_mut().push(&input.name);
        Some(&input.arg)
    }

    /// An option that has to be there.
    pub fn get<T: Opt>(&self, name: &str) -> Option<T> {
        T::of(self.found, self.argument(name)?)
    }

    /// An option, or what it is where it is left out.
    pub fn or<T: Opt>(&self, name: &str, otherwise: T) -> Option<T> {
        match self.argument(name) {
            None => Some(otherwise),
            Some(Argument::AsInts(all)) if all.is_empty() => Some(otherwise),
            Some(given) => T::of(self.found, given),
        }
    }

    /// A layer of the first argument, if nothing else is said of it.
    pub fn layer(&self, module: impl Module) -> Option<Layer<'p>> {
        let own = &self.node.inputs.first()?.name;
        self.layer_of(own, module)
    }

    /// A layer of an argument, if nothing else is said of it.
    pub fn layer_of(&self, own: &str, module: impl Module) -> Option<Layer<'p>> {
        let given = self.argument(own)?;
        let result = match self.node.outputs.as_slice() {
            // A layer stands for nodes whose other results nobody reads.
            [Argument::AsTensor(named), ..] => &*named.name,
            _ => return None,
        };
        let is_open = matches!(given, Argument::AsTensor(_)) && self.found.weight(given).is_none();
        (is_open && self.says_all()).then(|| Layer {
            module: Box::new(module),
            options: self.options(),
            args: vec![(None, Given::One(given.clone()))],
            results: vec![(result, Vec::new())],
            writes: self.writes,
        })
    }

    /// Whether all arguments were asked for, or say nothing.
    pub fn says_all(&self) -> bool {
        let asked = self.asked.borrow();
        self.node.inputs.iter().all(|input| {
            asked.contains(&&*input.name)
                || matches!(input.arg, Argument::AsNone(_))
                || rules::is_without_meaning(&input.name)
        })
    }

    /// The operator and what is the same in each of its runs.
    pub fn options(&self) -> String {
        let is_plain = |input: &&NamedArgument| tensors(&input.arg).is_empty();
        let plain = self.node.inputs.iter().filter(is_plain);
        let plain = plain.map(|input| format!("{}={:?}", input.name, input.arg));
        let plain: Vec<String> = plain.collect();
        format!("{} {}", self.node.target, plain.join(" "))
    }

    /// A tensor of the program at a name beside the module's weights.
    pub fn beside(&self, name: &str) -> Option<Tensor> {
        self.found.beside(name)
    }

    /// Whether an argument is given.
    pub fn has(&self, name: &str) -> bool {
        self.argument(name)
            .is_some_and(|given| !matches!(given, Argument::AsNone(_)))
    }

    /// The size of the first argument's second dim.
    pub fn channels(&self) -> Option<usize> {
        let own = &self.node.inputs.first()?.arg;
        *self.found.sizes(own)?.get(1)?
    }
}
