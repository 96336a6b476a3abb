//! The Rust types of a graph's values: what functions, methods and modules declare, and what
//! operators return.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::input::{Control, Input};
use super::tuple::{MAX_TUPLE, one_or_tuple, tuple};
use crate::ir::argument::Argument;
use crate::ir::bound::BoundArgs;
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::operator;
use crate::ir::param_type::{ParamType, ScalarType, TypePart};
use crate::ir::rust_type::RustType;
use crate::ir::signature::ParamSpec;
use crate::module::attributes::Attributes;
use crate::value::operator::Operator;
use crate::value::tensor_types::only_tensor_type;
use crate::value::tree::Tree;
use crate::value::value::Value;

/// `List<Int>`: a shape.
const SIZES: ParamType = ParamType::List(TypePart::Fixed(&ParamType::Scalar(ScalarType::Int)));

/// Properties of a type that generated source needs.
impl ParamType {
    /// Whether its values are held by a name and borrowed: not a scalar, which is copied, and not
    /// one of fx's own structures.
    pub(super) fn is_object(&self) -> bool {
        !self.is_scalar()
            && !matches!(
                self,
                ParamType::Tuple(_)
                    | ParamType::List(_)
                    | ParamType::Sequence(_)
                    | ParamType::Slice(_)
                    | ParamType::Map(_)
            )
    }

    /// Whether its values are copied: scalars, and tuples of them.
    pub(super) fn is_copied(&self) -> bool {
        match self {
            ParamType::Tuple(parts) => parts.iter().all(ParamType::is_scalar),
            one => one.is_scalar(),
        }
    }

    /// Whether it is a user's struct.
    pub(super) fn is_struct(&self) -> bool {
        matches!(self, ParamType::Named(_))
    }

    /// Whether both name the same type, known to be a tensor or not.
    pub(super) fn is_tensor_of(&self, wanted: &ParamType) -> bool {
        match (self, wanted) {
            (
                ParamType::TensorOf(found) | ParamType::Named(found),
                ParamType::TensorOf(wanted) | ParamType::Named(wanted),
            ) => found == wanted,
            _ => false,
        }
    }
}

/// The type of tensors about which a graph says nothing else: that of its module's tensors, else
/// the only registered one, else the first that a function of the graph declares.
pub(crate) fn tensor_of(graph: &Graph, attributes: &Attributes) -> Option<ParamType> {
    let of_attributes = attributes.tensors.values().find_map(|(_, value)| {
        let object = value.as_object()?;
        Some(ParamType::of_tensor(object))
    });
    if of_attributes.is_some() {
        return of_attributes;
    }
    if let Some(only) = only_tensor_type() {
        return Some(ParamType::of_registered(only));
    }
    let mut declared = graph.nodes().flat_map(|node| {
        let function = node.functions().one();
        let params = function.map_or(&[][..], Function::params);
        let params = params.iter().map(|param| &param.param_type);
        params.chain(function.and_then(|function| function.def().result))
    });
    let name = declared.find_map(ParamType::tensor)?;
    Some(ParamType::TensorOf(name.clone()))
}

/// The types of a graph's values.
pub(super) struct Types {
    /// By the nodes' indices.
    of: Vec<ParamType>,
    /// The type of undeclared values: a tensor, or any value if no tensor type is known.
    unknown: ParamType,
    /// Whether `unknown` is a tensor.
    knows_tensors: bool,
}

/// The declarations that types are derived from.
struct Declared<'g> {
    attributes: &'g Attributes,
    params: &'g [ParamSpec],
    /// The structures of the parameters; empty if each is one input.
    trees: &'g [Tree],
    /// What the called graph modules return, by path.
    results: &'g FxHashMap<&'g str, String>,
    /// The branches and loops that it calls, by path.
    regions: &'g FxHashMap<&'g str, Control<'g>>,
    /// The types of the inputs of a side.
    operands: &'g [ParamType],
}

/// A type's text, or `Value` if a generated crate cannot name the type.
pub(super) fn nameable(input: &Input<'_>, ty: &ParamType) -> String {
    let text = ty.to_string();
    let named = RustType::parse(&text).is_ok_and(|ty| match input.own {
        Some(own) => own.definitions.borrow_mut().named(&ty).is_ok(),
        None => true,
    });
    if named { text } else { "Value".to_string() }
}

impl Control<'_> {
    /// The type of what a call gives, whose arguments have these types.
    pub fn result(&self, args: &[ParamType]) -> String {
        let operands = args.get(1..).unwrap_or_default();
        let types = match self {
            Control::Scan(step, carried) => {
                let types = Types::new(step, args);
                let results = step.graph.results().iter().enumerate();
                let results = results.map(|(at, arg)| (at < *carried, types.result(step, arg)));
                let texts = results.map(|(is_carried, ty)| match is_carried {
                    true => ty,
                    false => format!("List<{ty}>"),
                });
                texts.collect()
            }
            Control::Branch(sides) => {
                let [then, otherwise] = sides.each_ref();
                let [of_then, of_otherwise] =
                    [then, otherwise].map(|side| Types::new(side, operands));
                branch_types([(then, &of_then), (otherwise, &of_otherwise)])
            }
            Control::Loop(body) => {
                let types = Types::new(body, operands);
                let carried = body.graph.results().iter().skip(1);
                carried.map(|arg| types.result(body, arg)).collect()
            }
        };
        one_or_tuple(&types)
    }
}

/// The types of what a branch gives: those that both sides have, and else any value.
pub(super) fn branch_types(sides: [(&Input<'_>, &Types); 2]) -> Vec<String> {
    let [(then, of_then), (otherwise, of_otherwise)] = sides;
    let pairs = then.graph.results().iter().zip(otherwise.graph.results());
    let types = pairs.map(|(one, other)| {
        let ty = of_then.result(then, one);
        match ty == of_otherwise.result(otherwise, other) {
            true => ty,
            false => "Value".to_string(),
        }
    });
    types.collect()
}

impl Types {
    /// The types of a graph whose inputs have these types; none if they say themselves.
    pub fn new(input: &Input<'_>, operands: &[ParamType]) -> Self {
        let declared = Declared {
            attributes: input.attributes,
            params: input.params,
            trees: input.trees,
            results: &input.results,
            regions: &input.regions,
            operands,
        };
        Types::declared_by(input.graph, &declared)
    }

    fn declared_by(graph: &Graph, declared: &Declared<'_>) -> Self {
        let tensor = tensor_of(graph, declared.attributes);
        let mut types = Types {
            knows_tensors: tensor.is_some(),
            unknown: tensor.unwrap_or(ParamType::AnyValue),
            of: Vec::new(),
        };
        types.of = vec![types.unknown.clone(); graph.index_bound()];
        types.inputs(graph, declared);
        for node in graph.nodes() {
            if matches!(node.op(), Op::Placeholder(_) | Op::Output) {
                continue;
            }
            let ty = types.node(node, declared);
            types.of[node.index()] = ty;
        }
        types
    }

    pub fn of(&self, node: NodeRef<'_>) -> &ParamType {
        &self.of[node.index()]
    }

    /// The type of undeclared values: a tensor type, or any value.
    pub fn unknown(&self) -> &ParamType {
        &self.unknown
    }

    /// The same, if it is a tensor type.
    pub fn tensor(&self) -> Option<&ParamType> {
        self.knows_tensors.then_some(&self.unknown)
    }

    /// The type of a result of the graph, as far as it is declared; otherwise a tensor.
    pub fn result(&self, input: &Input<'_>, arg: &Argument) -> String {
        match arg {
            Argument::Node(id) => match input.graph.node(*id) {
                Ok(node) => nameable(input, self.of(node)),
                Err(_) => self.unknown.to_string(),
            },
            Argument::Tuple(items) if items.len() > MAX_TUPLE => "Value".to_string(),
            Argument::Tuple(items) => {
                let items = items.iter().map(|item| self.result(input, item));
                tuple(&items.collect::<Vec<_>>())
            }
            Argument::List(items) => format!("Vec<{}>", self.item(input, items.iter())),
            Argument::Dict(items) => {
                let item = self.item(input, items.iter().map(|(_, item)| item));
                format!("IndexMap<String, {item}>")
            }
            Argument::None => format!("Option<{}>", self.unknown),
            Argument::Bool(_) => "Bool".to_string(),
            Argument::Int(_) => "Int".to_string(),
            Argument::Float(_) => "Float".to_string(),
            _ => "Value".to_string(),
        }
    }

    /// The type of all items: their common type if they share one, otherwise `Value`.
    pub fn item<'a>(
        &self,
        input: &Input<'_>,
        mut items: impl Iterator<Item = &'a Argument>,
    ) -> String {
        let Some(first) = items.next().map(|item| self.result(input, item)) else {
            return self.unknown.to_string();
        };
        match items.all(|item| self.result(input, item) == first) {
            true => first,
            false => "Value".to_string(),
        }
    }

    /// The types of inputs: declared by the input, by its parameter, or by its position in the
    /// parameter.
    fn inputs(&mut self, graph: &Graph, declared: &Declared<'_>) {
        let mut places = Vec::new();
        for (param, tree) in declared.params.iter().zip(declared.trees) {
            leaves(Some(&param.param_type), tree, &mut places);
        }
        let by_name: FxHashMap<&str, &ParamSpec> = declared
            .params
            .iter()
            .rev()
            .map(|param| (&*param.name, param))
            .collect();
        let mut places = places.into_iter();
        for node in graph.placeholders() {
            let place = places.next().flatten();
            let is_known = |ty: &&ParamType| *ty.referred() != ParamType::AnyValue;
            let param = by_name.get(node.target()).copied();
            let ty = match (node.type_expr(), param) {
                (Some(text), Some(param)) if *text == *param.ty => Some(param.param_type.clone()),
                (Some(text), _) => text.parse().ok(),
                (None, param) => place
                    .or(param.map(|param| &param.param_type))
                    .filter(is_known)
                    .cloned(),
            };
            if let Some(ty) = ty {
                let ty = ty.optional().unwrap_or(&ty).referred();
                self.of[node.index()] = ty.clone();
            }
        }
        for (node, ty) in graph.placeholders().zip(declared.operands) {
            self.of[node.index()] = ty.clone();
        }
    }

    /// The result type that a signature declares; the text adds the author's name for a type, which
    /// macros cannot know.
    fn declared(&self, result: Option<ParamType>, text: &str) -> ParamType {
        let known = match result {
            Some(named @ ParamType::Named(_)) => match text.parse() {
                Ok(written @ ParamType::Named(_)) => written,
                _ => named,
            },
            Some(known) => known,
            None => text.parse().unwrap_or_else(|_| self.unknown.clone()),
        };
        match known {
            ParamType::Reference(inner) => inner.referred().clone(),
            known => known,
        }
    }

    fn node(&self, node: NodeRef<'_>, declared: &Declared<'_>) -> ParamType {
        let attributes = declared.attributes;
        match node.op() {
            Op::GetAttr(path) => match attributes.tensors.get(path) {
                Some((_, Value::Bool(_))) => ParamType::Scalar(ScalarType::Bool),
                Some((_, Value::Int(_))) => ParamType::Scalar(ScalarType::Int),
                Some((_, Value::Float(_))) => ParamType::Scalar(ScalarType::Float),
                Some((_, value)) if let Some(object) = value.as_object() => {
                    ParamType::of_tensor(object)
                }
                _ => match attributes.modules.get(path) {
                    Some(module) => ParamType::of_value(&**module, module.type_name()),
                    None => self.unknown.clone(),
                },
            },
            Op::CallModule(path) => match attributes.modules.get(path) {
                Some(_) if let Some(region) = declared.regions.get(&**path) => {
                    let args = node.args().iter();
                    let operands = args.map(|arg| self.argument(arg));
                    let operands = operands.map(|ty| ty.unwrap_or_else(|| self.unknown.clone()));
                    let result = region.result(&operands.collect::<Vec<_>>());
                    self.declared(None, &result)
                }
                Some(module) => match declared.results.get(&**path) {
                    Some(result) => self.declared(None, result),
                    None => self.declared(module.result_type(), module.returns()),
                },
                None => self.unknown.clone(),
            },
            Op::CallFunction(function) => match function.def().operator {
                Some(op) => self.operator(op, &operands(*function, node)),
                None => self.function(*function, node),
            },
            Op::CallMethod(_) => match node.functions().one() {
                Some(method) => self.function(method, node),
                None => self.unknown.clone(),
            },
            Op::Placeholder(_) | Op::Output => self.unknown.clone(),
        }
    }

    fn function(&self, function: Function, node: NodeRef<'_>) -> ParamType {
        if function == operator::getattr
            && let Some(Argument::Str(name)) = operands(function, node).get(1)
        {
            return attribute_type(name.as_str());
        }
        let def = function.def();
        if let Some(written) = def.written {
            let given = given(function, node);
            if let Some(result) = written(&given).and_then(|written| written.result) {
                return result;
            }
        }
        self.declared(def.result.cloned(), def.returns)
    }

    pub fn argument(&self, argument: &Argument) -> Option<ParamType> {
        Some(match argument {
            Argument::Node(id) => self.of.get(id.index as usize)?.clone(),
            Argument::Bool(_) => ParamType::Scalar(ScalarType::Bool),
            Argument::Int(_) => ParamType::Scalar(ScalarType::Int),
            Argument::Float(_) => ParamType::Scalar(ScalarType::Float),
            _ => return None,
        })
    }

    fn operator(&self, op: Operator, args: &[Argument]) -> ParamType {
        let operands: Option<Vec<ParamType>> = args.iter().map(|arg| self.argument(arg)).collect();
        match op {
            Operator::Getitem => {
                let of = args.first().and_then(|of| self.argument(of));
                let part = match (of, args.get(1)) {
                    (Some(list @ ParamType::List(_)), Some(Argument::Slice(_))) => Some(list),
                    (Some(tuple @ ParamType::Tuple(_)), Some(Argument::Int(i))) => {
                        usize::try_from(*i)
                            .ok()
                            .and_then(|i| tuple.item(i).cloned())
                    }
                    (
                        Some(
                            ParamType::List(item)
                            | ParamType::Sequence(item)
                            | ParamType::Slice(item)
                            | ParamType::Map(item),
                        ),
                        _,
                    ) => Some((*item).clone()),
                    // The types of its fields are not known.
                    (Some(ty), _) if ty.is_struct() => Some(self.unknown.clone()),
                    _ => None,
                };
                let of = || args.first().and_then(|of| self.argument(of));
                return part.or_else(of).unwrap_or_else(|| self.unknown.clone());
            }
            Operator::Add => {
                let first = args.first().and_then(|of| self.argument(of));
                if let Some(list @ ParamType::List(_)) = first {
                    return list;
                }
            }
            _ => {}
        }
        let object = args
            .iter()
            .filter_map(|arg| self.argument(arg))
            .find(ParamType::is_object);
        if let Some(object) = object {
            return object;
        }
        let widest = operands.and_then(|operands| {
            let scalars = operands.iter().map(|ty| match ty {
                ParamType::Scalar(scalar) | ParamType::Plain(scalar) => Some(*scalar),
                _ => None,
            });
            scalars.collect::<Option<Vec<_>>>()?.into_iter().max()
        });
        match (widest, op) {
            (None, _) | (_, Operator::Matmul) => self.unknown.clone(),
            (
                Some(_),
                Operator::Eq
                | Operator::Ne
                | Operator::Lt
                | Operator::Le
                | Operator::Gt
                | Operator::Ge,
            ) => ParamType::Scalar(ScalarType::Bool),
            (Some(_), Operator::Truediv) => ParamType::Scalar(ScalarType::Float),
            (Some(widest), _) => ParamType::Scalar(widest),
        }
    }
}

/// The type of a tensor's attribute.
pub(super) fn attribute_type(name: &str) -> ParamType {
    match name {
        "shape" => SIZES,
        "ndim" => ParamType::Scalar(ScalarType::Int),
        _ => ParamType::AnyValue,
    }
}

/// The types of the inputs that a parameter is flattened into, as far as its own type determines
/// them.
fn leaves<'t>(ty: Option<&'t ParamType>, tree: &Tree, found: &mut Vec<Option<&'t ParamType>>) {
    let ty = ty.map(|ty| ty.referred());
    let ty = match (ty, tree) {
        (ty, Tree::Leaf) => return found.push(ty.filter(|ty| **ty != ParamType::AnyValue)),
        (Some(ParamType::Optional(inner)), _) => Some(inner.referred()),
        (ty, _) => ty,
    };
    let item = |at: usize| ty.and_then(|ty| ty.item(at));
    match tree {
        Tree::Leaf => {}
        Tree::List(items) | Tree::Tuple(items) => {
            for (at, tree) in items.iter().enumerate() {
                leaves(item(at), tree, found);
            }
        }
        Tree::Dict(items) => {
            // The field types of a struct are not known here.
            let item = item(0).filter(|_| matches!(ty, Some(ParamType::Map(_))));
            for (_, tree) in items.iter() {
                leaves(item, tree, found);
            }
        }
    }
}

/// A call's arguments in signature order with defaults filled in; unchanged if they do not fit.
pub(super) fn given(function: Function, node: NodeRef<'_>) -> Vec<Argument> {
    bound_arguments(function.path(), function.params(), node)
        .unwrap_or_else(|| node.args().to_vec())
}

/// An operator's operands in signature order, including those passed by name.
pub(super) fn operands(function: Function, node: NodeRef<'_>) -> Cow<'_, [Argument]> {
    if node.kwargs().is_empty() {
        return Cow::Borrowed(node.args());
    }
    let bound = bound_arguments(function.path(), function.params(), node);
    Cow::Owned(bound.unwrap_or_else(|| {
        let kwargs = node.kwargs().iter().map(|(_, arg)| arg);
        node.args().iter().chain(kwargs).cloned().collect()
    }))
}

/// A call's arguments in signature order with defaults filled in; `None` if they do not fit.
pub(super) fn bound_arguments(
    callee: &str,
    params: &[ParamSpec],
    node: NodeRef<'_>,
) -> Option<Vec<Argument>> {
    let bound = BoundArgs::of(node, callee, params).ok()?;
    Some(bound.iter().map(|(_, arg)| arg.into_owned()).collect())
}
