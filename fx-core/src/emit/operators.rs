//! Operators, indices and attributes as Rust source: Rust's own symbols, the names of the tensor
//! library, or plain calls.

use super::rust::Writer;
use super::tensor_source::{TensorSource, source_of};
use super::types::{attribute_type, operands};
use crate::ir::argument::Argument;
use crate::ir::function::Function;
use crate::ir::names::as_name;
use crate::ir::node::NodeRef;
use crate::ir::param_type::ParamType;
use crate::value::operator::Operator;

impl Writer<'_> {
    pub(super) fn operator(&self, op: Operator, function: Function, node: NodeRef<'_>) -> String {
        let args = &*operands(function, node);
        // rustc may infer `i32` for a literal, which is too narrow for large values.
        let operand = |arg: &Argument| match arg {
            Argument::Int(n) if i32::try_from(*n).is_err() => format!("{n}_i64"),
            arg => self.lent(arg),
        };
        let lent: Vec<String> = args.iter().map(operand).collect();
        match (op, args, lent.as_slice()) {
            (Operator::Neg, _, [a]) => format!("(-{a})?"),
            (Operator::Invert, _, [a]) => format!("(!{a})?"),
            (Operator::Getitem, [of, index], _) => self.getitem(of, index, self.types.of(node)),
            (Operator::Abs, [a], [lent]) => match self.types.of(node) {
                ty if ty.is_scalar() => format!("{}.abs()?", self.receiver(a)),
                ty => match self.spelt(op, a, &[]) {
                    Some(written) => written,
                    None => {
                        let core = self.input.core;
                        let lent = by_reference(lent);
                        format!(
                            "{core}::tensor::unary::<{ty}>({core}::value::Operator::{op:?}, {lent})?"
                        )
                    }
                },
            },
            (Operator::Matmul | Operator::Pow | Operator::Floordiv, [a, _], [_, b]) => {
                let ty = self.types.of(node);
                if ty.is_scalar() && op != Operator::Matmul {
                    let receiver = match a.as_node() {
                        Some(_) => self.receiver(a),
                        None => self.output(a),
                    };
                    return format!("{receiver}.{}({b})?", op.name());
                }
                match self.spelt(op, a, &[b]) {
                    Some(written) => written,
                    None => format!(
                        "{core}::tensor::binary::<{ty}>({core}::value::Operator::{op:?}, {}, {})?",
                        by_reference(&operand(a)),
                        by_reference(b),
                        core = self.input.core
                    ),
                }
            }
            (Operator::Add, [a, b], _) if self.is_list(a) => {
                format!("{}.concat({})?", self.receiver(a), self.list(b))
            }
            // A tensor and a truth value, which Rust's symbols do not join.
            (op, [a, b], [_, _])
                if op.infix().is_some()
                    && !self.types.of(node).is_scalar()
                    && [a, b].iter().any(|arg| matches!(arg, Argument::Bool(_))) =>
            {
                let path = self.item_path(function.path());
                let (a, b) = (self.lent(a), self.lent(b));
                format!("{path}.call_as::<{}>(({a}, {b}))?", self.types.of(node))
            }
            (op, _, [a, b]) => match op.infix() {
                Some(sign) => format!("({a} {sign} {b})?"),
                None => self.unwritten(op, &lent),
            },
            (op, _, lent) => self.unwritten(op, lent),
        }
    }

    /// How tensors of the argument's type are written, if that is registered.
    fn spelling(&self, of: &Argument) -> Option<&'static dyn TensorSource> {
        let node = self.graph.node(of.as_node()?).ok()?;
        match self.types.of(node) {
            ParamType::TensorOf(name) => source_of(name.id()?),
            _ => None,
        }
    }

    /// An operator as the library of its first operand writes it, if it does.
    fn spelt(&self, op: Operator, first: &Argument, others: &[&String]) -> Option<String> {
        let receiver = self.receiver(first);
        let mut operands = vec![receiver.as_str()];
        operands.extend(others.iter().map(|other| other.as_str()));
        let written = self.spelling(first)?.operator(op, &operands)?;
        Some(format!("{written}?"))
    }

    /// `x.shape`
    pub(super) fn attribute(&self, of: &Argument, name: &str) -> String {
        let spelling = self.spelling(of);
        match spelling.and_then(|spelling| spelling.attribute(&self.receiver(of), name)) {
            Some(written) => format!("{written}?"),
            None => format!(
                "{}::operator::getattr.call_as::<{}>(({}, {name:?}))?",
                self.input.core,
                attribute_type(name),
                self.lent(of)
            ),
        }
    }

    /// `x[index]`
    fn indexed(&self, of: &Argument, index: &Argument, ty: &ParamType) -> String {
        let spelling = self.spelling(of);
        let receiver = self.receiver(of);
        match spelling.and_then(|spelling| spelling.index(&receiver, &self.index(index))) {
            Some(written) => format!("{written}?"),
            None => format!(
                "{}::operator::getitem.call_as::<{ty}>(({}, {}))?",
                self.input.core,
                self.lent(of),
                self.index_value(index)
            ),
        }
    }

    /// A call to an operator that has no form in Rust.
    fn unwritten(&self, op: Operator, lent: &[String]) -> String {
        self.problem(format!(
            "`{}` of {} operands has no form in Rust",
            op.name(),
            lent.len()
        ));
        format!(
            "{}::operator::{}({})?",
            self.input.core,
            op.name(),
            lent.join(", ")
        )
    }

    fn is_list(&self, arg: &Argument) -> bool {
        let node = arg.as_node().and_then(|id| self.graph.node(id).ok());
        node.is_some_and(|node| matches!(self.types.of(node), ParamType::List(_)))
    }

    /// `x[i]`: one of several results, a list item, a map entry, or an index of a tensor.
    fn getitem(&self, of: &Argument, index: &Argument, ty: &ParamType) -> String {
        let receiver = self.receiver(of);
        let node = of.as_node().and_then(|id| self.graph.node(id).ok());
        match (node.map(|node| self.types.of(node)), index) {
            (Some(ParamType::Tuple(parts)), Argument::Int(i)) => {
                // Negative indices count from the end.
                let from_end = usize::try_from(i.unsigned_abs()).ok();
                let at = match i {
                    0.. => from_end,
                    _ => from_end.and_then(|back| parts.len().checked_sub(back)),
                };
                match at.filter(|at| *at < parts.len()) {
                    Some(at) => format!("{receiver}.{at}.clone()"),
                    None => {
                        self.problem(format!("a tuple of {} has no item {i}", parts.len()));
                        self.indexed(of, index, ty)
                    }
                }
            }
            (Some(ParamType::List(_)), Argument::Slice(ends)) => format!(
                "{receiver}.slice({}, {})?",
                self.lent(&ends[0]),
                self.lent(&ends[1])
            ),
            (Some(ParamType::List(_)), index) => format!("{receiver}.get({})?", self.lent(index)),
            (Some(ParamType::Sequence(_) | ParamType::Slice(_) | ParamType::Map(_)), index) => {
                format!("{receiver}[{}].clone()", self.lent(index))
            }
            // A field of a struct.
            (Some(ty), Argument::Str(name))
                if ty.is_struct()
                    && let Some(name) = as_name(name.as_str()) =>
            {
                format!("{receiver}.{name}.clone()")
            }
            (Some(ty), Argument::Int(i @ 0..=255)) if ty.is_struct() => {
                format!("{receiver}.{i}.clone()")
            }
            (_, index) => self.indexed(of, index, ty),
        }
    }
}

/// A reference to the borrowed expression, unless it already is one.
fn by_reference(lent: &str) -> String {
    match lent.starts_with('&') {
        true => lent.to_string(),
        false => format!("&{lent}"),
    }
}
