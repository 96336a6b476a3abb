//! Saved files changed in their structure, and what must hold of each: it is refused, or it runs, is saved, printed and
//! emitted, and what is emitted is nothing but the structs, impls and functions of its module.

use std::collections::HashSet;
use std::fmt;

use fx_nn::emit::CodeOptions;
use fx_nn::file::Json;
use fx_nn::graph_module::Folder;
use fx_nn::ir::Op;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use syn::visit::{self, Visit};

/// How many inputs were seen, and how far they came.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub inputs: u64,
    pub loaded: u64,
    pub emitted: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            inputs,
            loaded,
            emitted,
        } = self;
        write!(f, "inputs {inputs} loaded {loaded} emitted {emitted}")
    }
}

/// The files that are changed, with what each can be run on.
pub struct Seeds(Vec<(Vec<u8>, Json, Vec<Value>)>);

/// What a layer has seen.
#[derive(Tree, Clone)]
struct Cache {
    k: Tensor,
    n: i64,
}

#[trace]
fn cached(x: &Tensor, cache: Cache, names: (Tensor, Vec<Tensor>)) -> Result<(Cache, Tensor)> {
    let y = (x + &cache.k)?;
    let y = (y * &names.1[0])?;
    let z = ops::cat(&[y.clone(), names.0], 0)?;
    Ok((Cache { k: y, n: cache.n }, z))
}

#[trace]
fn texts(x: &Tensor, scale: Float) -> Result<IndexMap<String, Tensor>> {
    let y = ops::gelu(&(x * scale)?, "tanh")?;
    let n = y.size(0)?;
    let z = ops::interpolate(&y.unsqueeze(0)?, None, 2.0, "nearest", None)?;
    assert!((x.amax(..)? < 1e9)?, "{scale} is \"large\"");
    let w = y.i((0.., every(2)))?.reshape((n, -1))?;
    Ok(IndexMap::from([("a".to_string(), z), ("b".to_string(), w)]))
}

#[trace]
fn halves(x: &Tensor, by: Float) -> Result<(Tensor, Tensor)> {
    Ok((x.relu()?, (x * by)?))
}

fn parts() -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    gm.add_submodule("parts.both", symbolic_trace(traced!(halves))?)?;
    gm.add_submodule("parts.0", nn::Linear::new(3, 3)?)?;
    gm.set_buffer("scales.x", &Tensor::ones(3)?)?;
    let relu = gm.graph().nodes().nth(1).map(|node| node.id());
    let relu = relu.ok_or_else(|| Error::msg("an input and a relu"))?;
    let mut graph = gm.graph_mut();
    let mut after = graph.inserting_after(relu)?;
    let linear = after.call_module("parts.0", (relu,), ())?;
    let pair = after.call_module("parts.both", (linear,), [("by", 2.0)])?;
    let first = after.call_function(fx_nn::operator::getitem, (pair, 0), ())?;
    let scale = after.get_attr("scales.x")?;
    let product = after.call_function(fx_nn::operator::mul, (first, scale), ())?;
    let output = after.output_node().map(|node| node.id());
    drop(after);
    if let Some(output) = output {
        graph.node_mut(output)?.set_args((product,))?;
    }
    drop(graph);
    Ok(gm)
}

impl Seeds {
    /// Traces and saves them.
    pub fn new() -> Result<Self> {
        let x = || Tensor::ones((2, 3));
        let mut mlp = fx_nn::models::mlp::Mlp::new(3, 4, 2)?;
        mlp.eval();
        let convolution = nn::Sequential::new()
            .push(nn::Conv2d::new(1, 2, 3)?)
            .push(nn::ReLU::new())
            .push(nn::MaxPool2d::new(2));
        let cache = tree!({"k": PH, "n": 3});
        let cached = Trace::new(traced!(cached))
            .concrete("cache", cache)
            .concrete("names", tree!((PH, [PH])))
            .graph_module()?;
        let mut shaped = symbolic_trace(&mlp)?;
        shaped.propagate_shapes(&x()?)?;
        let held = Value::of(Cache { k: x()?, n: 3 });
        let named = Value::of((x()?, vec![x()?]));
        let seeds = [
            (shaped, vec![Value::of(x()?)]),
            (
                symbolic_trace(&convolution)?,
                vec![Value::of(Tensor::ones((1, 1, 6, 6))?)],
            ),
            (cached, vec![Value::of(x()?), held, named]),
            (
                symbolic_trace(traced!(texts))?,
                vec![Value::of(x()?), Value::Float(0.5)],
            ),
            (parts()?, vec![Value::of(x()?)]),
        ];
        let mut found = Vec::new();
        for (gm, inputs) in seeds {
            gm.forward::<Value>(CallArgs {
                args: inputs.clone(),
                kwargs: Vec::new(),
            })?;
            let bytes = gm.to_bytes()?;
            let json = json_of(&bytes)?;
            found.push((bytes, json, inputs));
        }
        Ok(Seeds(found))
    }
}

fn json_of(bytes: &[u8]) -> Result<Json> {
    let (_, metadata) = safetensors::SafeTensors::read_metadata(bytes).map_err(Error::other)?;
    let metadata = metadata.metadata().as_ref();
    let text = metadata.and_then(|m| m.get("fx").cloned());
    text.unwrap_or_default().parse().map_err(Error::other)
}

fn with_json(bytes: &[u8], json: &Json) -> Option<Vec<u8>> {
    let file = safetensors::SafeTensors::deserialize(bytes).ok()?;
    let metadata = [("fx".to_string(), json.to_string())].into_iter().collect();
    safetensors::serialize(file.iter(), Some(metadata)).ok()
}

/// The bytes of an input as choices; zeros when they are used up.
struct Choices<'d>(std::slice::Iter<'d, u8>);

impl Choices<'_> {
    fn byte(&mut self) -> usize {
        self.0.next().copied().map_or(0, usize::from)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.byte() * 256 + self.byte()) % bound.max(1)
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        match all.len() {
            0 => None,
            many => all.get(self.below(many)),
        }
    }
}

/// Texts that would be code, end what they stand in, or hide. Each has `evil` in it, which no seed has.
const HOSTILE: [&str; 20] = [
    "&Tensor) -> Result<Tensor> { evil!(); todo!() } pub fn evil(&self, x: &Tensor",
    "p\n#[test] fn evil() {}\n//.a",
    "evil*/ fn evil() {} /*",
    "deep.{evil}",
    "{evil:?}",
    "evil\"); evil(\"",
    "evil\\",
    "\u{202e}evil",
    "evil\u{2028}fn evil() {}",
    "evil\r\nfn evil() {}",
    "evil`",
    "r#\"evil\"#",
    "shape()?; evil(); x.ndim",
    "evil = evil(), x",
    "<evil as Evil>::evil",
    "[u8; { evil() }]",
    "#![evil]",
    "evil;",
    "0; evil()",
    "evil'\0",
];

/// Texts that names, types and paths may be.
const FITTING: [&str; 24] = [
    "evil",
    "Evil",
    "fn",
    "self",
    "Self",
    "type",
    "0",
    "a.0.b",
    "a-b",
    "drop",
    "Tensor",
    "&Tensor",
    "Vec<Tensor>",
    "Option<&Tensor>",
    "(Tensor, Int)",
    "Float",
    "i64",
    "List<Tensor>",
    "IndexMap<String, Tensor>",
    "evil::Evil<'a, 3>",
    "fx_nn::Tensor",
    "std::fmt::Error",
    "Value",
    "a b",
];

const NUMBERS: [i64; 10] = [0, 1, 2, 3, -1, 255, 1 << 31, 1 << 53, 1 << 62, i64::MAX];

/// Where the texts and numbers of a JSON value are.
fn places(json: &Json, path: &str, found: &mut Vec<(String, bool)>) {
    match json {
        Json::String(_) => found.push((path.to_string(), true)),
        Json::Number(_) => found.push((path.to_string(), false)),
        Json::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                places(item, &format!("{path}/{i}"), found);
            }
        }
        Json::Object(fields) => {
            for (name, item) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(item, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Replaces one text by another wherever it stands alone, behind a `%`, or before a dot.
fn rename(json: &mut Json, from: &str, to: &str) {
    match json {
        Json::String(text) => {
            let (mark, name) = match text.strip_prefix('%') {
                Some(name) => ("%", name),
                None => ("", text.as_str()),
            };
            if name == from {
                *text = format!("{mark}{to}");
            } else if let Some(rest) = name.strip_prefix(from)
                && rest.starts_with('.')
            {
                *text = format!("{to}{rest}");
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Json::Object(fields) => fields.values_mut().for_each(|item| rename(item, from, to)),
        _ => {}
    }
}

fn text(choices: &mut Choices<'_>, before: &str) -> String {
    match choices.byte() % 8 {
        0..=2 => choices
            .of(&FITTING)
            .map_or(String::new(), |t| (*t).to_string()),
        3 | 4 => choices
            .of(&HOSTILE)
            .map_or(String::new(), |t| (*t).to_string()),
        5 => format!("{before}.{}", choices.of(&HOSTILE).unwrap_or(&"")),
        6 => format!("{before}_evil"),
        _ => {
            let depth = choices.byte();
            format!("{}{before}{}", "Vec<".repeat(depth), ">".repeat(depth))
        }
    }
}

/// Names that nodes can have.
const NODES: [&str; 6] = ["evil", "drop", "every", "evil_7", "_evil", "vec"];

/// Types that values can have.
const TYPES: [&str; 10] = [
    "Tensor",
    "&Tensor",
    "Vec<Tensor>",
    "Option<&Tensor>",
    "(Tensor, Int)",
    "Float",
    "Evil",
    "IndexMap<String, Tensor>",
    "evil::Evil<'a, 3>",
    "Value",
];

/// Changes one thing so that the file may still be one.
fn mutate_gently(json: &mut Json, choices: &mut Choices<'_>) {
    let mut all = Vec::new();
    places(json, "", &mut all);
    let is_free = |path: &str| {
        let outer = path.split('/').nth(1).unwrap_or_default();
        let field = path.rsplit('/').next().unwrap_or_default();
        match outer {
            "locations" | "scopes" | "class" => true,
            "params" => matches!(field, "name" | "type"),
            "nodes" => matches!(field, "name" | "type" | "target" | "str"),
            "modules" | "attributes" => field == "path",
            _ => false,
        }
    };
    all.retain(|(path, _)| is_free(path));
    let Some((path, is_text)) = choices.of(&all).cloned() else {
        return;
    };
    let field = path.rsplit('/').next().unwrap_or_default();
    let before = json
        .pointer(&path)
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_string();
    let seen: Vec<&str> = HOSTILE
        .into_iter()
        .filter(|t| !t.contains(char::is_control) && !t.contains(['\u{202e}', '\u{2028}']))
        .collect();
    let to = match (field, choices.byte() % 4) {
        ("type", _) if !path.starts_with("/scopes") => choices.of(&TYPES).copied(),
        ("name", _) => choices.of(&NODES).copied(),
        (_, 0) => choices.of(&FITTING).copied(),
        (_, 1) if path.starts_with("/locations") || path.starts_with("/scopes") => {
            choices.of(&HOSTILE).copied()
        }
        _ => choices.of(&seen).copied(),
    };
    let to = to.unwrap_or_default();
    match field {
        _ if !is_text => {
            if let Some(place) = json
                .pointer_mut(&path)
                .filter(|_| path.starts_with("/locations"))
            {
                *place = choices.byte().into();
            }
        }
        // Functions and methods are the program's.
        "target" if before.contains("::") || path_op(json, &path) == "call_method" => {}
        "name" | "path" | "target" => rename(json, &before, to),
        _ => {
            if let Some(place) = json.pointer_mut(&path) {
                *place = to.into();
            }
        }
    }
}

/// The operation of the node that a place is in.
fn path_op(json: &Json, path: &str) -> String {
    let node = path.rsplit_once('/').map_or("", |(node, _)| node);
    let op = json.pointer(&format!("{node}/op")).and_then(Json::as_str);
    op.unwrap_or_default().to_string()
}

/// Changes one thing.
fn mutate(json: &mut Json, choices: &mut Choices<'_>) {
    let mut all = Vec::new();
    places(json, "", &mut all);
    let Some((path, is_text)) = choices.of(&all).cloned() else {
        return;
    };
    let field = path.rsplit('/').next().unwrap_or_default();
    let before = json
        .pointer(&path)
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_string();
    match (choices.byte() % 8, is_text) {
        // A name that is used elsewhere is changed there too, so that the file still fits.
        (0..=4, true)
            if matches!(field, "name" | "path" | "class" | "target") || before.starts_with('%') =>
        {
            let to = text(choices, &before);
            rename(json, before.trim_start_matches('%'), &to);
        }
        (0..=6, true) => {
            let to = text(choices, &before);
            if let Some(place) = json.pointer_mut(&path) {
                *place = to.into();
            }
        }
        (0..=6, false) => {
            let number = *choices.of(&NUMBERS).unwrap_or(&0);
            if let Some(place) = json.pointer_mut(&path) {
                *place = match choices.byte() % 4 {
                    0 => Json::from(number as f64 * 0.5),
                    _ => Json::from(number),
                };
            }
        }
        // An item of a list comes twice, goes, or changes its place.
        _ => {
            let outer = path.rsplit_once('/').map_or("", |(outer, _)| outer);
            let outer = outer.rsplit_once('/').map_or(outer, |(list, _)| list);
            let Some(list) = json.pointer_mut(outer).and_then(Json::as_array_mut) else {
                return;
            };
            let (a, b) = (choices.below(list.len()), choices.below(list.len()));
            match (choices.byte() % 3, list.get(a).cloned()) {
                (0, Some(item)) => list.insert(b, item),
                (1, Some(_)) => drop(list.remove(a)),
                (_, Some(_)) => list.swap(a, b),
                _ => {}
            }
        }
    }
}

/// Whether running takes no longer than that of a seed: what sizes there are is small.
fn is_small(json: &Json) -> bool {
    match json {
        Json::Number(n) => n.as_f64().is_some_and(|n| n.abs() <= 64.0),
        Json::Array(items) => items.iter().all(is_small),
        Json::Object(fields) => fields.values().all(is_small),
        _ => true,
    }
}

/// Changes a seed as the input says, and checks all that must hold of the file.
pub fn check(seeds: &Seeds, data: &[u8], counts: &mut Counts) {
    counts.inputs += 1;
    let mut choices = Choices(data.iter());
    let Some((bytes, json, inputs)) = choices.of(&seeds.0) else {
        return;
    };
    let mut json = json.clone();
    let is_gentle = choices.byte() % 8 < 5;
    for _ in 0..=choices.byte() % 3 {
        match is_gentle {
            true => mutate_gently(&mut json, &mut choices),
            false => mutate(&mut json, &mut choices),
        }
    }
    let Some(file) = with_json(bytes, &json) else {
        return;
    };
    let Ok(gm) = GraphModule::from_bytes(&file) else {
        return;
    };
    counts.loaded += 1;
    let sizes = [&json["modules"], &json["nodes"]];
    if sizes.iter().all(|part| is_small(part)) {
        // What it gives is nobody's business, as long as it comes back.
        let _ = gm.forward::<Value>(CallArgs {
            args: inputs.clone(),
            kwargs: Vec::new(),
        });
    }
    let saved = gm.to_bytes();
    let saved = saved.unwrap_or_else(|e| panic!("what was loaded is not saved: {e}\n{json}"));
    let again = GraphModule::from_bytes(&saved).and_then(|again| again.to_bytes());
    let again = again.unwrap_or_else(|e| panic!("what was saved does not load: {e}\n{json}"));
    assert!(
        again == saved,
        "what was loaded again is saved otherwise\n{json}"
    );

    in_sight(&gm.graph().to_string(), &json);
    in_sight(&gm.to_string(), &json);
    let code = gm.code();
    only_code(
        &format!("impl Code {{\n{code}}}\n"),
        &Names::of(&gm, &json),
        &json,
    );
    let verbose = gm.rust_code(&CodeOptions::new().verbose(true).expanded_head(true));
    only_code(
        &format!("impl Code {{\n{verbose}}}\n"),
        &Names::of(&gm, &json),
        &json,
    );
    only_code(&gm.print_readable(), &Names::of(&gm, &json), &json);
    if let Ok(source) = Folder::new("Generated").source(&gm) {
        counts.emitted += 1;
        only_code(&source, &Names::of(&gm, &json), &json);
    }
}

/// Every character of a text can be seen, and is where it is shown to be.
fn in_sight(text: &str, json: &Json) {
    let hidden = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    assert!(
        !text.contains(hidden),
        "what cannot be seen is in\n{text}\n{json}"
    );
}

/// What source may name.
struct Names {
    /// Paths of functions and types.
    paths: HashSet<String>,
    /// How many structs there can be: a place in the hierarchy each, and a structure of arguments each.
    structs: usize,
}

impl Names {
    fn of(gm: &GraphModule, json: &Json) -> Self {
        let mut paths = HashSet::new();
        let mut places: HashSet<&str> = HashSet::from([""]);
        let core = |path: &str| path.replacen("fx_core::", "fx_nn::", 1);
        for node in gm.graph().nodes() {
            if let Op::CallFunction(function) = node.op() {
                paths.insert(core(function.path()));
                paths.insert(function.path().to_string());
            }
        }
        let attributes = gm.attributes();
        for path in attributes.modules.keys().chain(attributes.tensors.keys()) {
            places.extend(path.match_indices('.').map(|(dot, _)| &path[..dot]));
        }
        for module in json["modules"].as_array().into_iter().flatten() {
            let ty = module["type"].as_str().unwrap_or_default();
            paths.insert(core(ty));
        }
        let structures = gm.graph().placeholders().count() * 4;
        Names {
            paths,
            structs: places.len() + structures,
        }
    }
}

/// The text is Rust, of nothing but structs, their impls and what those of a generated module do.
fn only_code(text: &str, names: &Names, json: &Json) {
    in_sight(text, json);
    let file = syn::parse_file(text).unwrap_or_else(|e| panic!("{e} in\n{text}\n{json}"));
    let mut seen = Seen {
        names,
        problem: None,
        structs: 0,
        depth: 0,
    };
    seen.visit_file(&file);
    if seen.structs > names.structs + 1 {
        seen.problem = Some(format!("{} structs", seen.structs));
    }
    if let Some(problem) = seen.problem {
        panic!("{problem} in\n{text}\n{json}");
    }
}

struct Seen<'n> {
    names: &'n Names,
    problem: Option<String>,
    structs: usize,
    /// How many functions are around.
    depth: usize,
}

impl Seen<'_> {
    fn refuse(&mut self, what: impl Into<String>) {
        self.problem.get_or_insert(what.into());
    }
}

fn joined(path: &syn::Path) -> String {
    let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    names.join("::")
}

/// What generated source names by itself, beside what is of the graph.
const OWN: [&str; 23] = [
    "GraphModule::load",
    "Self::take",
    "FromValue::from_value",
    "Tag::default",
    "Value::of",
    "Value::None",
    "Value::Int",
    "Value::Bool",
    "Value::Float",
    "Value::Str",
    "Value::Tuple",
    "Value::DType",
    "Value::Device",
    "Value::Ellipsis",
    "Value::Slice",
    "Value::Range",
    "IndexMap::from_iter",
    "Error::msg",
    "Box::new",
    "Int::from",
    "Float::from",
    "Bool::from",
    "core::mem::drop",
];

impl<'ast> Visit<'ast> for Seen<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let fits = match item {
            syn::Item::Use(_) | syn::Item::Impl(_) => true,
            syn::Item::Struct(_) => {
                self.structs += 1;
                true
            }
            _ => false,
        };
        if !fits || self.depth > 0 {
            self.refuse("an item that no module has");
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let syn::UseTree::Path(path) = &item.tree else {
            return self.refuse("an import");
        };
        if path.ident != "fx_nn" && path.ident != "fx_core" {
            self.refuse(format!("an import of {}", path.ident));
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let known = ["take", "load", "forward"];
        match item {
            syn::ImplItem::Fn(f) if known.iter().any(|name| f.sig.ident == name) => {}
            _ => self.refuse("a function that no module has"),
        }
        self.depth += 1;
        visit::visit_impl_item(self, item);
        self.depth -= 1;
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let known = ["doc", "derive", "module", "trace", "default"];
        if !known.contains(&joined(attribute.path()).as_str()) {
            self.refuse("an attribute that no module has");
        }
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let known = ["assert", "format", "vec", "args"];
        if !known.contains(&joined(&mac.path).as_str()) {
            self.refuse(format!("a macro, {}", joined(&mac.path)));
        }
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let name = joined(&path.path);
        let is_own = OWN.contains(&name.as_str())
            || self.names.paths.contains(&name)
            || name.starts_with("DType::")
            || name.starts_with("Device::")
            || name.starts_with("f64::")
            || name.ends_with("::take")
            || matches!(
                name.as_str(),
                "fx_nn::tensor::binary" | "fx_core::tensor::binary"
            )
            || name.starts_with("fx_nn::value::Operator::")
            || name.starts_with("fx_nn::operator::");
        if path.path.segments.len() > 1 && !is_own {
            self.refuse(format!("a path, {name}"));
        }
    }

    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        use syn::Expr;
        let known = matches!(
            expr,
            Expr::Array(_)
                | Expr::Binary(_)
                | Expr::Block(_)
                | Expr::Call(_)
                | Expr::Closure(_)
                | Expr::Field(_)
                | Expr::If(_)
                | Expr::Index(_)
                | Expr::Lit(_)
                | Expr::Macro(_)
                | Expr::MethodCall(_)
                | Expr::Paren(_)
                | Expr::Path(_)
                | Expr::Range(_)
                | Expr::Reference(_)
                | Expr::Return(_)
                | Expr::Struct(_)
                | Expr::Try(_)
                | Expr::Tuple(_)
                | Expr::Unary(_)
        );
        if !known {
            self.refuse("an expression that no module has");
        }
        // What is left out where something is missing.
        if let Expr::Closure(closure) = expr
            && !closure.inputs.is_empty()
        {
            self.refuse("a closure");
        }
        visit::visit_expr(self, expr);
    }
}
