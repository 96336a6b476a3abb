//! Instances of calls, for decompositions: the arguments are drawn by the types of the parameters.

use fx_core::ir::{Argument, Function, Graph, Op, ParamSpec, ParamType, ScalarType};
use fx_core::passes::Decompositions;
use fx_core::trace::CallArgs;
use fx_core::value::{IntoValue, Value};
use fx_core::{Error, GraphModule, Result};

use super::draw::Draw;
use super::literal;
use super::rewrite::{Did, Instance, Rewrite};

/// A table is verified function by function.
impl Rewrite for Decompositions {
    fn name(&self) -> String {
        "decompositions".to_string()
    }

    fn parts(&self) -> Vec<String> {
        let functions = self.functions().into_iter();
        functions.map(|f| f.path().to_string()).collect()
    }

    fn instance(&self, part: usize, draw: &mut Draw) -> Result<Instance> {
        call_of(self.functions()[part], draw)
    }

    fn rewrite(&self, part: usize, gm: &mut GraphModule) -> Result<Did> {
        let function = self.functions()[part];
        Ok(match gm.apply(self)?.changed && !calls(gm, function)? {
            true => Did::Rewrote,
            false => Did::Nothing,
        })
    }
}

/// Whether a graph calls a function, as a function or as a method.
fn calls(gm: &GraphModule, function: Function) -> Result<bool> {
    for node in gm.graph().nodes() {
        if gm.call(node)?.function() == Some(function) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A call of a function.
pub(super) fn call_of(function: Function, draw: &mut Draw) -> Result<Instance> {
    let mut graph = Graph::new();
    let mut inputs = Vec::new();
    let mut args: Vec<Argument> = Vec::new();
    for param in function.params() {
        let default = param.default.as_ref().map(Argument::from);
        args.push(match default {
            Some(default) if draw.chance(0.5) => default,
            default => {
                let own = default.unwrap_or(Argument::None);
                argument(
                    param,
                    &param.param_type,
                    &own,
                    draw,
                    &mut graph,
                    &mut inputs,
                )?
            }
        });
    }
    let result = graph.add(fx_core::ir::NewNode::new(Op::CallFunction(function)).args(args))?;
    graph.output(result)?;
    let gm = GraphModule::new(Default::default(), graph, "Instance")?;
    let call = CallArgs {
        args: inputs,
        kwargs: Vec::new(),
    };
    Ok(Instance::new(gm, call))
}

/// One argument.
fn argument(
    param: &ParamSpec,
    ty: &ParamType,
    own: &Argument,
    draw: &mut Draw,
    graph: &mut Graph,
    inputs: &mut Vec<Value>,
) -> Result<Argument> {
    let mut tensor = |draw: &mut Draw, graph: &mut Graph| -> Result<Argument> {
        inputs.push(draw.input()?.into_value());
        let name = match inputs.len() {
            1 => param.name.to_string(),
            n => format!("{}_{n}", param.name),
        };
        Ok(graph.placeholder(&name)?.into())
    };
    let is_tensor = |ty: &ParamType| match ty {
        ParamType::TensorOf(_) => true,
        ParamType::Reference(inner) => matches!(**inner, ParamType::TensorOf(_)),
        _ => false,
    };
    match ty {
        ty if is_tensor(ty) => tensor(draw, graph),
        ParamType::Reference(inner) => argument(param, inner, own, draw, graph, inputs),
        ParamType::Optional(_) if draw.chance(0.5) => Ok(Argument::None),
        ParamType::Optional(inner) => argument(param, inner, own, draw, graph, inputs),
        ParamType::Sequence(inner) | ParamType::List(inner) | ParamType::Slice(inner)
            if is_tensor(inner) =>
        {
            let count = 1 + draw.below(3);
            let items = (0..count).map(|_| tensor(draw, graph));
            Ok(Argument::List(items.collect::<Result<Vec<_>>>()?.into()))
        }
        ParamType::Scalar(scalar) | ParamType::Plain(scalar) => Ok(match scalar {
            ScalarType::Bool => Argument::Bool(draw.chance(0.5)),
            ScalarType::Int => Argument::Int(draw.below(6) as i64 - 2),
            _ => literal(&Argument::Float(1.0), draw),
        }),
        ParamType::Named(name) => match (name.to_string().as_str(), own) {
            ("TensorOrNumber", _) if draw.chance(0.5) => tensor(draw, graph),
            ("TensorOrNumber" | "Number" | "Bound", _) => Ok(literal(&Argument::Float(1.0), draw)),
            ("Dims", _) => Ok(Argument::Int(draw.below(4) as i64 - 2)),
            (_, own) if param.default.is_some() => Ok(own.clone()),
            (name, _) => Err(cannot(param, name)),
        },
        _ if param.default.is_some() => Ok(own.clone()),
        ty => Err(cannot(param, &ty.to_string())),
    }
}

fn cannot(param: &ParamSpec, ty: &str) -> Error {
    Error::msg(format_args!(
        "a `{ty}` for `{}` cannot be drawn: make instances with `testing::pass`",
        param.name
    ))
}
