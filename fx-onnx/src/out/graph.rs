//! The walk: a graph module as a graph of the file, node by node.
//!
//! Invariant: values are written in the order of the graph, and each is described with its shape.

use std::sync::Arc;

use fx_nn::ir::{Argument, Graph, NodeRef, Op, TensorMeta, ValueMeta};
use fx_nn::lowering::{
    Name, OpCall, Operand, Question, RegionCall, Val, Values, as_tensor, opened, operand, prepare,
    prepare_within, val_of,
};
use fx_nn::module::{Attributes, Callee};
use fx_nn::prelude::*;
use fx_nn::shapes::{ShapeEnv, Spec};
use fx_nn::trace::CallArgs;
use fx_nn::value::Dim;
use fx_nn::{Error, Result};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::context::{
    Constant, Cx, Elements, Mark, Place, SymbolSource, modules_of, put_all, texts_info, value_info,
};
use super::control::{Graphs, Written};
use super::model::Model;
use super::options::{Export, Inputs, Layers};
use super::report::ExportReport;
use super::{control, functions, results, write};
use crate::opaque::Opaque;
use crate::proto::{GraphProto, ValueInfoProto};
use crate::texts::Texts;

/// Writes graphs.
struct Writer<'e> {
    cx: Cx,
    export: &'e Export,
    /// The symbols of the graph that is being written.
    env: ShapeEnv,
    /// The constants of tensors by identity: tied ones are one.
    tied: FxHashMap<u64, Name>,
    folded: Vec<(String, String)>,
}

/// A graph module ready to be written, in half precision if that is asked for, and the symbols of its sizes; those of
/// a graph inside of another one are the outer one's.
fn prepared(
    gm: &GraphModule,
    specs: &[Spec],
    around: Option<&ShapeEnv>,
    export: &Export,
) -> Result<(GraphModule, ShapeEnv)> {
    let mut ready = opened(gm, |module| module.is::<Opaque>())?;
    if export.half {
        ready = halved(&ready)?;
    }
    let env = match around {
        None => prepare(&mut ready, specs, &export.rules, "ONNX")?,
        Some(env) => prepare_within(&mut ready, specs, env, &export.rules, "ONNX")?,
    };
    Ok((ready, env))
}

/// The same with `float16` in place of `float32`.
fn halved(gm: &GraphModule) -> Result<GraphModule> {
    let mut attributes = gm.attributes().clone();
    let tensors = gm.attributes().tensors.iter();
    for (path, (kind, value)) in tensors {
        if let Some(tensor) = value.downcast_ref::<Tensor>()
            && Tensor::dtype(tensor)? == DType::F32
        {
            let half = tensor.detach()?.to_dtype(DType::F16)?;
            attributes
                .tensors
                .insert(path.clone(), (*kind, Value::object(half)));
        }
    }
    GraphModule::new(attributes, gm.graph().clone(), gm.class_name())
}

/// The model of a graph module.
pub(crate) fn model(gm: &GraphModule, export: &Export) -> Result<Model> {
    if !(18..=23).contains(&export.opset) {
        return Err(Error::expected("an opset of 18 to 23", export.opset));
    }
    let specs = specs_of(gm, export)?;
    let (ready, env) = prepared(gm, &specs, None, export)?;
    let mut writer = Writer {
        cx: Cx::new(export.opset),
        export,
        env,
        tied: FxHashMap::default(),
        folded: Vec::new(),
    };
    let (inputs, input_infos) = writer.inputs(&ready)?;
    let (graph, attributes) = (ready.graph(), ready.attributes());
    let results = writer.graph(graph, attributes, inputs)?;
    let output_infos = results::outputs(&mut writer.cx, export, &input_infos, results)?;
    let constants = std::mem::take(&mut writer.cx.constants);
    let (mut proto, mut marks) = writer.cx.close(gm.class_name());
    proto.input = input_infos;
    let outputs = output_infos.iter().map(|info| info.name.clone()).collect();
    proto.output = output_infos;
    read_nodes(&mut proto, &mut marks);
    let constants = used(constants, &proto);
    proto.doc_string = format!("{} by fx", gm.class_name());
    let functions = match export.layers {
        Layers::Functions => {
            put_all(std::mem::take(&mut marks), &mut proto.node);
            functions::extract(&mut proto, export.opset, &writer.cx.domains)
        }
        _ => Vec::new(),
    };
    let mut domains = writer.cx.domains.clone();
    for function in &functions {
        if !domains.iter().any(|(name, _)| *name == function.domain) {
            domains.push((function.domain.clone(), 1));
        }
    }
    let nodes = proto.node.len();
    let graph = write::graph(proto, marks)?;
    let contract = ready.contract();
    let mut sized: Vec<(String, usize)> = constants
        .iter()
        .map(|c| (c.name.to_string(), bytes_of(c)))
        .collect();
    let weight_bytes = sized.iter().map(|(_, bytes)| bytes).sum();
    sized.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    sized.truncate(5);
    Ok(Model {
        report: ExportReport {
            nodes,
            functions: functions.len(),
            folded: writer.folded,
            dynamic: contract.map_or(Vec::new(), |contract| {
                contract
                    .symbols()
                    .map(|(name, ..)| name.to_string())
                    .collect()
            }),
            guards: contract.map_or(Vec::new(), |contract| {
                contract
                    .guards()
                    .iter()
                    .map(|guard| guard.claim.to_string())
                    .collect()
            }),
            left_out: writer.cx.left_out,
            constants: sized,
            weight_bytes,
            warnings: writer.cx.warnings,
            max_rel_err: None,
        },
        graph,
        outputs,
        draws: writer.cx.draws,
        functions,
        constants,
        opset: export.opset,
        domains,
    })
}

fn bytes_of(constant: &Constant) -> usize {
    let count = constant
        .dims
        .iter()
        .fold(1usize, |n, dim| n.saturating_mul(*dim));
    count.saturating_mul(constant.dtype.size_in_bytes())
}

/// Leaves out the nodes that nothing reads, such as those that only an assertion read.
fn read_nodes(graph: &mut GraphProto, marks: &mut Vec<Arc<Mark>>) {
    let mut read: FxHashSet<&str> =
        FxHashSet::with_capacity_and_hasher(graph.node.len(), FxBuildHasher);
    read.extend(graph.output.iter().map(|info| &*info.name));
    let mut kept = vec![false; graph.node.len()];
    for (node, kept) in graph.node.iter().zip(&mut kept).rev() {
        *kept = node.output.iter().any(|name| read.contains(&**name));
        if !*kept {
            continue;
        }
        read.extend(node.input.iter().map(String::as_str));
        let mut graphs: Vec<&GraphProto> =
            node.attribute.iter().filter_map(|a| a.g.as_ref()).collect();
        while let Some(graph) = graphs.pop() {
            read.extend(graph.output.iter().map(|info| &*info.name));
            for node in &graph.node {
                read.extend(node.input.iter().map(String::as_str));
                graphs.extend(node.attribute.iter().filter_map(|a| a.g.as_ref()));
            }
        }
    }
    if kept.iter().all(|kept| *kept) {
        return;
    }
    let described = graph
        .value_info
        .iter()
        .map(|info| read.contains(&*info.name));
    let described: Vec<bool> = described.collect();
    retain(&mut graph.value_info, &described);
    retain(&mut graph.node, &kept);
    retain(marks, &kept);
}

/// The items that are to be kept.
fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    items.retain(|_| kept.next().is_none_or(|kept| *kept));
}

/// The constants that nodes or outputs name.
fn used(constants: Vec<Constant>, graph: &GraphProto) -> Vec<Constant> {
    let places = constants.iter().enumerate();
    let places: FxHashMap<&str, usize> = places.map(|(at, c)| (&*c.name, at)).collect();
    let mut is_used = vec![false; constants.len()];
    let mut note = |name: &str| {
        if let Some(at) = places.get(name) {
            is_used[*at] = true;
        }
    };
    let mut graphs = vec![graph];
    while let Some(graph) = graphs.pop() {
        for node in &graph.node {
            node.input.iter().for_each(|name| note(name));
            graphs.extend(node.attribute.iter().filter_map(|a| a.g.as_ref()));
        }
        graph.output.iter().for_each(|info| note(&info.name));
    }
    let pairs = constants.into_iter().zip(is_used);
    pairs.filter(|(_, used)| *used).map(|(c, _)| c).collect()
}

/// What each input will be.
fn specs_of(gm: &GraphModule, export: &Export) -> Result<Vec<Spec>> {
    let (args, given): (CallArgs, &[Spec]) = match &export.given {
        Inputs::Example(args) => (args.clone(), &[]),
        Inputs::Specs(specs) => {
            let args = specs.iter().map(Spec::fake_value).collect::<Result<_>>()?;
            let kwargs = Vec::new();
            (CallArgs { args, kwargs }, specs)
        }
    };
    let values = gm.process_inputs(args)?;
    let names: Vec<String> = gm
        .graph()
        .placeholders()
        .map(|node| node.target().to_string())
        .collect();
    for (axis, inputs) in &export.axes {
        for (input, _) in inputs {
            if !names.contains(input) {
                return Err(Error::msg(format_args!(
                    "`{input}`, of which a dim is to be `{axis}`, is no input: the inputs are {}",
                    names.join(", ")
                )));
            }
        }
    }
    let mut specs = Vec::with_capacity(values.len());
    for (name, value) in names.iter().zip(values) {
        let mut spec = Spec::of(value.clone());
        if export.half
            && let ValueMeta::Single(meta) = ValueMeta::of(&value)
            && meta.dtype == Some(DType::F32)
        {
            spec = Spec::tensor(meta.shape.iter().cloned(), DType::F16);
        }
        for (axis, inputs) in &export.axes {
            for (input, dim) in inputs.iter().filter(|(input, _)| input == name) {
                let _ = input;
                spec = spec.dynamic(*dim, axis.as_str());
            }
        }
        specs.push(spec);
    }
    // What the user says of the sizes is of the whole call.
    if let Some(first) = specs.first_mut() {
        *first = first.clone().constrained_like(given);
    }
    Ok(specs)
}

impl Writer<'_> {
    /// The inputs, as values and with their types.
    fn inputs(&mut self, gm: &GraphModule) -> Result<(Vec<Val>, Vec<ValueInfoProto>)> {
        let mut infos = Vec::new();
        let mut values = Vec::new();
        let mut given = self.export.inputs.iter();
        for node in gm.graph().placeholders() {
            let meta = node.meta::<ValueMeta>();
            let Some(meta) = meta else {
                return Err(Error::msg(format_args!(
                    "nothing is known of the input {}",
                    node.name()
                )));
            };
            if let Some(known) = Val::known(meta, &|dim| dim.as_number().is_some()) {
                values.push(known);
                continue;
            }
            // A tensor without an element type is one of text.
            let text = meta.tensor().filter(|tensor| tensor.dtype.is_none());
            let tensor = text.map_or_else(|| as_tensor(meta), |text| Ok(text.clone()));
            let tensor = tensor.map_err(|error| node.blame("writing as ONNX", error))?;
            let hint = given
                .next()
                .cloned()
                .unwrap_or_else(|| node.name().to_string());
            let name = self.cx.fresh(&hint);
            if text.is_some() {
                infos.push(texts_info(&name, &tensor.shape));
                self.cx.knows(&name, &tensor.shape);
                values.push(Val::Texts(name, tensor.shape));
                continue;
            }
            infos.push(value_info(&name, &tensor)?);
            values.push(self.input(name, meta, &tensor)?);
        }
        if let Some(left) = given.next() {
            return Err(Error::msg(format_args!(
                "`{left}` is the name of no input: the graph takes {}",
                infos.len()
            )));
        }
        Ok((values, infos))
    }

    /// Writes the nodes of a graph; what it returns, flat.
    pub fn graph(
        &mut self,
        graph: &Graph,
        attributes: &Attributes,
        inputs: Vec<Val>,
    ) -> Result<Vec<Val>> {
        let mut values = Values::with_capacity_and_hasher(graph.len(), FxBuildHasher);
        self.cx.reserve(graph.len());
        let mut inputs = inputs.into_iter();
        for node in graph.nodes() {
            self.cx.mark = Arc::new(Mark {
                node: node.name().to_string(),
                place: node.location().cloned(),
                modules: modules_of(node.module_stack()),
            });
            if *node.op() == Op::Output {
                let mut flat = Vec::new();
                val_of(node.args().first().unwrap_or(&Argument::None), &values)?.flatten(&mut flat);
                return Ok(flat);
            }
            let val = match node.op() {
                Op::Placeholder(_) => inputs.next().ok_or_else(|| {
                    node.blame("writing as ONNX", Error::msg("nothing is given for it"))
                })?,
                _ => {
                    let val = self.node(node, attributes, &values);
                    val.map_err(|error| node.blame("writing as ONNX", error))?
                }
            };
            values.insert(node.id(), val);
        }
        Err(Error::msg("the graph has no output node"))
    }

    fn node(&mut self, node: NodeRef<'_>, attributes: &Attributes, values: &Values) -> Result<Val> {
        if let Op::GetAttr(path) = node.op() {
            let value = attributes.tensor(path)?.clone();
            return self.weight(path, value);
        }
        let unknown = ValueMeta::Opaque("a value".into());
        let meta = node.meta::<ValueMeta>().unwrap_or(&unknown);
        if let Some(known) = self.known(meta) {
            self.note_known(node, &known);
            return Ok(known);
        }
        if let Op::CallModule(path) = node.op() {
            let call = fx_nn::module::Call::of(node, attributes);
            let Callee::Module(module) = call.callee() else {
                return Err(Error::msg(format_args!("there is no module at {path}")));
            };
            let any: &dyn std::any::Any = *module;
            if let Some(opaque) = any.downcast_ref::<Opaque>() {
                let bound = call.bind()?;
                let args = bound.iter().map(|(_, argument)| val_of(&argument, values));
                let args: Vec<Val> = args.collect::<Result<_>>()?;
                let val = self.opaque(opaque, &args, meta)?;
                return self.describe(node, val, meta, None);
            }
            let start = self.cx.scope().here();
            let call = RegionCall::new(node, attributes, values, meta)?;
            return match control::write(self, *module, &call)? {
                Written::Region(val) => self.describe(node, val, meta, Some(start)),
                // Its nodes have names of their own.
                Written::InPlace(val) => self.describe(node, val, meta, None),
            };
        }
        let Op::CallFunction(function) = node.op() else {
            return Err(Error::msg("it is no function"));
        };
        let export = self.export;
        let start = self.cx.scope().here();
        if let Some(question) = Question::of(*function) {
            let call = OpCall::new(node, *function, attributes, values, meta)?;
            let val = self.cx.answer(question, &call, meta)?;
            return self.describe(node, val, meta, Some(start));
        }
        let Some(rule) = export.rules.get(*function)? else {
            return Err(Error::msg(format_args!(
                "`{}` has no rule",
                function.path()
            )));
        };
        if let Some(nothing) = self.without_elements(meta)? {
            return self.describe(node, nothing, meta, Some(start));
        }
        let call = OpCall::new(node, *function, attributes, values, meta)?;
        let val = rule.write(&mut self.cx, &call)?;
        if self.cx.scope().here().nodes == start.nodes {
            self.cx.left_out.push(function.name().to_string());
        }
        self.describe(node, val, meta, Some(start))
    }

    /// A result that has no elements, whatever a function computes: engines refuse many such calls.
    fn without_elements(&mut self, meta: &ValueMeta) -> Result<Option<Val>> {
        let Some((shape, dtype)) = meta
            .tensor()
            .and_then(|meta| Some((&meta.shape, meta.dtype?)))
        else {
            return Ok(None);
        };
        // A size that the call itself decides is none to write.
        let mut symbols = shape.iter().flat_map(|size| size.symbols());
        let is_known = symbols.all(|symbol| self.cx.symbol(&symbol).is_some());
        if !is_known || !shape.iter().any(|size| size.as_number() == Some(0)) {
            return Ok(None);
        }
        let name = self.cx.filled(shape, 0.0, dtype)?;
        Ok(Some(Val::Tensor(Operand {
            name,
            dtype,
            shape: shape.clone(),
        })))
    }

    /// Numbers that a node gives, if a file needs no node for them.
    fn known(&self, meta: &ValueMeta) -> Option<Val> {
        let is_known = |dim: &Dim| {
            let mut symbols = dim.symbols().into_iter();
            symbols.all(|symbol| self.cx.symbol(&symbol).is_some())
        };
        Val::known(meta, &is_known)
    }

    fn note_known(&mut self, node: NodeRef<'_>, known: &Val) {
        match known {
            Val::None => self.cx.left_out.push(node.target().to_string()),
            Val::Dim(dim) if dim.as_number().is_some() => {
                self.folded.push((node.name().to_string(), dim.to_string()));
            }
            _ => {}
        }
    }

    /// Names the one result of a call as the node, and says what the results are.
    fn describe(
        &mut self,
        node: NodeRef<'_>,
        val: Val,
        meta: &ValueMeta,
        start: Option<Place>,
    ) -> Result<Val> {
        let val = match (val, start) {
            (Val::Tensor(operand), Some(start)) => Val::Tensor(Operand {
                name: self.renamed(operand.name, start, &node.name().to_string()),
                ..operand
            }),
            (Val::Unranked(made, dtype), Some(start)) => {
                Val::Unranked(self.renamed(made, start, &node.name().to_string()), dtype)
            }
            (Val::Texts(made, shape), Some(start)) => {
                Val::Texts(self.renamed(made, start, &node.name().to_string()), shape)
            }
            (Val::Sequence(made, dtype), Some(start)) => {
                Val::Sequence(self.renamed(made, start, &node.name().to_string()), dtype)
            }
            (Val::Maps(made), Some(start)) => {
                Val::Maps(self.renamed(made, start, &node.name().to_string()))
            }
            (val, _) => val,
        };
        let mut pairs = vec![(&val, meta)];
        while let Some((val, meta)) = pairs.pop() {
            match (val, meta) {
                (Val::Tensor(operand), ValueMeta::Single(meta)) => {
                    self.cx.knows(&operand.name, &meta.shape);
                    self.cx.describe(&operand.name, meta)?;
                }
                (Val::Texts(name, _), ValueMeta::Single(meta)) => {
                    self.cx.knows(name, &meta.shape);
                    let info = texts_info(name, &meta.shape);
                    self.cx.scope().value_info.push(info);
                }
                (Val::Tensor(operand), ValueMeta::Int(dim)) => {
                    if let Some(symbol) = dim.as_symbol()
                        && self.cx.symbol(symbol).is_none()
                    {
                        let source = SymbolSource::Scalar(operand.name.clone());
                        self.cx.scope().symbols.insert(symbol.into(), source);
                    }
                }
                (Val::List(items), ValueMeta::List(metas) | ValueMeta::Tuple(metas)) => {
                    pairs.extend(items.iter().zip(metas))
                }
                _ => {}
            }
        }
        Ok(val)
    }

    /// Gives a value that was made from `start` on another name.
    fn renamed(&mut self, given: Name, start: Place, name: &str) -> Name {
        let scope = self
            .cx
            .scopes
            .last_mut()
            .expect("the file's graph is a scope");
        let made = &mut scope.nodes[start.nodes..];
        let is_made = made
            .iter()
            .any(|node| node.output.iter().any(|o| **o == *given));
        if !is_made || self.cx.names.contains(name) {
            return given;
        }
        for node in made {
            for text in node.output.iter_mut().chain(&mut node.input) {
                if **text == *given {
                    *text = name.to_string();
                }
            }
        }
        let own: Name = name.into();
        for (_, size) in &mut scope.sizes[start.sizes..] {
            if *size == given {
                *size = own.clone();
            }
        }
        self.cx.names.swap_remove(&given);
        self.cx.names.insert(own.clone());
        own
    }

    /// A tensor of the module as a constant; tied ones are one.
    fn weight(&mut self, path: &str, value: Value) -> Result<Val> {
        if matches!(value, Value::None) {
            return Ok(Val::None);
        }
        let Some(object) = value.as_object() else {
            return Err(Error::msg(format_args!(
                "`{path}` is {}, and not a tensor",
                value.describe()
            )));
        };
        let ValueMeta::Single(meta) = ValueMeta::of(&value) else {
            return Err(Error::msg(format_args!(
                "`{path}` is {}, and not a tensor",
                value.describe()
            )));
        };
        let id = object.object_id();
        let texts = value.downcast_ref::<Texts>();
        let val = |name: Name| match texts {
            Some(_) => Ok(Val::Texts(name, meta.shape.clone())),
            None => operand(name, &meta).map(Val::Tensor),
        };
        if let Some(known) = id.and_then(|id| self.tied.get(&id)) {
            return val(known.clone());
        }
        let dims = meta
            .known_shape()
            .ok_or_else(|| Error::msg(format_args!("the sizes of `{path}` are not known")))?;
        let name = self.cx.fresh(path);
        let constant = Constant {
            name: name.clone(),
            dtype: match (texts, meta.dtype) {
                (_, Some(dtype)) => dtype,
                // Of bytes, in which texts are.
                (Some(_), None) => DType::U8,
                (None, None) => {
                    return Err(Error::msg(format_args!(
                        "the element type of `{path}` is not known"
                    )));
                }
            },
            dims,
            elements: match texts {
                Some(texts) => Elements::Texts(texts.clone()),
                None => Elements::Tensor(value.clone()),
            },
        };
        self.cx.constants.push(constant);
        if let Some(id) = id {
            self.tied.insert(id, name.clone());
        }
        val(name)
    }

    /// A node that was read and not understood, as it was.
    fn opaque(&mut self, opaque: &Opaque, args: &[Val], meta: &ValueMeta) -> Result<Val> {
        let metas: Vec<&TensorMeta> = match meta {
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                items.iter().filter_map(ValueMeta::tensor).collect()
            }
            one => one.tensor().into_iter().collect(),
        };
        let proto = opaque.node();
        let mut args = args.iter();
        let mut names = Vec::new();
        for given in &proto.input {
            names.push(match given.is_empty() {
                true => None,
                false => match args.next() {
                    None | Some(Val::None) => None,
                    Some(Val::Tensor(of)) => Some(of.name.clone()),
                    Some(Val::Unranked(name, _) | Val::Texts(name, _) | Val::Maps(name)) => {
                        Some(name.clone())
                    }
                    Some(Val::Dim(dim)) => Some(self.cx.size_scalar(dim)?),
                    Some(Val::Float(number)) => Some(self.cx.number(*number, DType::F64)),
                    Some(Val::Bool(truth)) => Some(self.cx.whole(i64::from(*truth), DType::Bool)),
                    Some(other) => {
                        return Err(Error::msg(format_args!(
                            "an input of `{}` is {}",
                            proto.op_type,
                            other.describe()
                        )));
                    }
                },
            });
        }
        let mut node = self.cx.node(&proto.op_type);
        if !proto.domain.is_empty() {
            node = node.domain(&proto.domain, opaque.version());
        }
        for name in &names {
            node = node.optional(name.as_ref());
        }
        for attribute in &proto.attribute {
            node = node.raw(attribute.clone());
        }
        let names = node.outputs(metas.len());
        let all = names
            .into_iter()
            .zip(&metas)
            .map(|(name, meta)| operand(name, meta).map(Val::Tensor));
        let mut all = all.collect::<Result<Vec<Val>>>()?;
        Ok(match meta {
            ValueMeta::List(_) | ValueMeta::Tuple(_) => Val::List(all),
            _ => all.pop().unwrap_or(Val::None),
        })
    }
}

impl Graphs for Writer<'_> {
    fn cx(&mut self) -> &mut Cx {
        &mut self.cx
    }

    fn input(&mut self, name: Name, meta: &ValueMeta, tensor: &TensorMeta) -> Result<Val> {
        self.cx.knows(&name, &tensor.shape);
        if let ValueMeta::Int(dim) = meta
            && let Some(symbol) = dim.as_symbol()
            && self.cx.symbol(symbol).is_none()
        {
            let source = SymbolSource::Scalar(name.clone());
            self.cx.scope().symbols.insert(symbol.into(), source);
            return Ok(Val::Dim(dim.clone()));
        }
        operand(name, tensor).map(Val::Tensor)
    }

    fn prepared_branch(&mut self, gm: &GraphModule, specs: &[Spec]) -> Result<GraphModule> {
        let (ready, env) = prepared(gm, specs, Some(&self.env), self.export)?;
        self.env.learn(&env);
        Ok(ready)
    }

    fn branch(&mut self, gm: &GraphModule, specs: &[Spec], values: Vec<Val>) -> Result<Vec<Val>> {
        let (ready, env) = prepared(gm, specs, Some(&self.env), self.export)?;
        let around = std::mem::replace(&mut self.env, env);
        let results = self.graph(ready.graph(), ready.attributes(), values);
        let inside = std::mem::replace(&mut self.env, around);
        self.env.learn(&inside);
        results
    }
}
