//! The structs that hold what a graph names: one for each place in the hierarchy, with equal ones
//! merged.
//!
//! Invariant: a field's name in paths is its original segment, whatever its Rust name is.

use std::fmt::Write as _;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::tensor_source;
use crate::error::{Error, Result};
use crate::ir::graph::Graph;
use crate::ir::names::is_reserved;
use crate::module::attributes::{Attributes, within};
use crate::module::walk::TensorKind;
use crate::text::{Doc, Excerpt};
use crate::value::object::short_type_name;
use crate::value::tensor_types::tensor_types;

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holds {
    /// A module, by the path of its type.
    Module(String),
    Parameter,
    Buffer {
        persistent: bool,
    },
    /// The fields of a generated struct, by index.
    Shape(usize),
}

/// A place in the hierarchy.
struct Place {
    path: String,
    children: IndexMap<String, usize, FxBuildHasher>,
    holds: Option<Holds>,
    /// Whether it is a struct though nothing is in it.
    is_struct: bool,
}

impl Place {
    fn is_struct(&self) -> bool {
        self.is_struct || !self.children.is_empty()
    }
}

/// A field of a struct.
#[derive(Debug, Clone)]
struct Field {
    segment: String,
    /// Its name in Rust: an identifier, or the position in a tuple.
    name: String,
    holds: Holds,
}

/// One struct.
struct Struct {
    name: String,
    /// Its `forward`, if it was a graph module.
    forward: Option<String>,
    fields: Vec<Field>,
    is_tuple: bool,
    /// The paths that it is used at.
    paths: Vec<String>,
}

/// What makes places one struct: the segments, what they hold, and the function.
type Shape<'f> = (Vec<(String, Holds)>, Option<&'f String>);

/// The places of what a graph module holds, with the names that lead there.
pub(crate) struct Places {
    places: Vec<Place>,
    /// The fields of each place that is one of a struct: the child, its segment, and its name.
    children: Vec<Vec<(usize, String, String)>>,
    /// How each path is written as fields.
    pub fields: FxHashMap<String, String>,
}

/// The structs of a graph module.
pub(crate) struct Structs {
    structs: Vec<Struct>,
    tensor: String,
}

/// Names used by Rust's prelude, fx's prelude and generated code.
const TAKEN: [&str; 68] = [
    "Arg",
    "AsMut",
    "AsRef",
    "Bool",
    "Box",
    "Clone",
    "ComponentExt",
    "Copy",
    "DType",
    "Debug",
    "Default",
    "Device",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "Err",
    "Error",
    "ExactSizeIterator",
    "Extend",
    "Float",
    "Fn",
    "FnMut",
    "FnOnce",
    "Forward",
    "From",
    "FromIterator",
    "FromValue",
    "Future",
    "Graph",
    "GraphModule",
    "Hash",
    "IndexMap",
    "Int",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "List",
    "Module",
    "NodeId",
    "None",
    "Ok",
    "Op",
    "Option",
    "Ord",
    "PH",
    "PartialEq",
    "PartialOrd",
    "Proxy",
    "Result",
    "Self",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "Trace",
    "TraceContext",
    "TracedExt",
    "Tracer",
    "Tree",
    "Tag",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

/// The names that new types of a crate cannot take.
#[derive(Debug, Clone)]
pub(crate) struct Taken(FxHashSet<String>);

impl Default for Taken {
    fn default() -> Self {
        let mut names: FxHashSet<String> = TAKEN.iter().map(|name| (*name).to_string()).collect();
        names.insert("Value".to_string());
        let tensors = tensor_types().iter().map(|ty| ty.name());
        names.extend(tensors.chain(tensor_source::names()).map(str::to_string));
        Taken(names)
    }
}

impl Taken {
    /// Takes a name if it is free, and returns whether it was.
    pub fn take(&mut self, name: &str) -> bool {
        self.0.insert(name.to_string())
    }

    /// Takes a name, or the first free numbered variant of it.
    pub fn unique(&mut self, name: &str) -> String {
        let mut numbered = name.to_string();
        let mut number = 1;
        while !self.take(&numbered) {
            number += 1;
            numbered = format!("{name}{number}");
        }
        numbered
    }
}

impl Places {
    /// The places of what is held, and of graph modules that are written; `type_of` returns the type path of a called
    /// module.
    ///
    /// # Errors
    /// Returns an error if something is both at a path and inside it, or a path has an empty
    /// segment.
    pub fn of<'p>(
        attributes: &Attributes,
        written: impl IntoIterator<Item = &'p str>,
        mut type_of: impl FnMut(&str) -> String,
    ) -> Result<Self> {
        let mut places = vec![Place {
            path: String::new(),
            children: IndexMap::default(),
            holds: None,
            is_struct: true,
        }];
        for path in attributes.modules.keys() {
            let at = enter(&mut places, path);
            places[at].holds = Some(Holds::Module(type_of(path)));
        }
        for (path, (kind, _)) in &attributes.tensors {
            if attributes.enclosing(path).is_some() {
                continue;
            }
            let at = enter(&mut places, path);
            places[at].holds = Some(match kind {
                TensorKind::Parameter => Holds::Parameter,
                TensorKind::Buffer => Holds::Buffer { persistent: true },
                TensorKind::NonPersistentBuffer => Holds::Buffer { persistent: false },
            });
        }
        for path in written {
            let at = enter(&mut places, path);
            places[at].is_struct = true;
        }
        let mut children = Vec::with_capacity(places.len());
        let mut access = vec![String::new(); places.len()];
        let mut fields = FxHashMap::default();
        // A place's children come after it.
        for (at, place) in places.iter().enumerate() {
            if at > 0 {
                fields.insert(place.path.clone(), access[at].clone());
            }
            if !place.is_struct() {
                children.push(Vec::new());
                continue;
            }
            if place.holds.is_some() || place.children.contains_key("") {
                return Err(Error::source_of(format_args!(
                    "the paths at and inside of {} are none of fields: something is there and inside of it, or a name is empty",
                    Excerpt(&place.path)
                )));
            }
            let mut own: Vec<(&String, usize)> = (place.children.iter())
                .map(|(segment, child)| (segment, *child))
                .collect();
            own.sort_by_key(|(segment, _)| segment.parse::<u64>().unwrap_or(u64::MAX));
            let is_tuple = is_tuple(own.iter().map(|(segment, _)| segment.as_str()));
            let mut taken = FxHashSet::default();
            let prefix = match at {
                0 => String::new(),
                _ => format!("{}.", access[at]),
            };
            let own = own.into_iter().map(|(segment, child)| {
                let name = match is_tuple {
                    true => segment.clone(),
                    false => field_name(segment, &mut taken),
                };
                access[child] = format!("{prefix}{name}");
                (child, segment.clone(), name)
            });
            children.push(own.collect());
        }
        Ok(Places {
            places,
            children,
            fields,
        })
    }

    /// How the paths inside of a place are written as fields of its struct.
    pub fn inside(&self, path: &str) -> FxHashMap<String, String> {
        let Some(outer) = self.fields.get(path) else {
            return FxHashMap::default();
        };
        let all = self.fields.iter().filter_map(|(key, access)| {
            let own = key.strip_prefix(path)?.strip_prefix('.')?;
            let access = access.strip_prefix(&**outer)?.strip_prefix('.')?;
            Some((own.to_string(), access.to_string()))
        });
        all.collect()
    }
}

impl Structs {
    /// The structs of places; `types` are the types of the modules that were at paths, and `forwards` the functions of
    /// those that are written.
    pub fn new(
        root: &str,
        places: &Places,
        types: &FxHashMap<String, String>,
        forwards: &FxHashMap<String, String>,
        tensor: &str,
        taken: &mut Taken,
    ) -> Self {
        let Places {
            places, children, ..
        } = places;
        let mut shapes: Vec<(Vec<Field>, Option<String>)> = Vec::new();
        let mut known: FxHashMap<Shape<'_>, usize> = FxHashMap::default();
        let mut holds: Vec<Option<Holds>> =
            places.iter().map(|place| place.holds.clone()).collect();
        // A place's children come after it.
        for (at, place) in places.iter().enumerate().rev() {
            if !place.is_struct() {
                continue;
            }
            let own = children[at].iter().map(|(child, segment, name)| Field {
                segment: segment.clone(),
                name: name.clone(),
                holds: holds[*child].clone().unwrap_or(Holds::Parameter),
            });
            let fields: Vec<Field> = own.collect();
            let key: Vec<(String, Holds)> = fields
                .iter()
                .map(|field| (field.segment.clone(), field.holds.clone()))
                .collect();
            let key = (key, forwards.get(&place.path));
            let shape = match (at, known.get(&key)) {
                (1.., Some(shape)) => *shape,
                _ => {
                    shapes.push((fields, key.1.cloned()));
                    shapes.len() - 1
                }
            };
            if at > 0 {
                known.insert(key, shape);
            }
            holds[at] = Some(Holds::Shape(shape));
        }
        // Names of the shapes, in the order of their first places.
        let mut order: IndexMap<usize, Struct, FxBuildHasher> = IndexMap::default();
        for (at, place) in places.iter().enumerate() {
            let Some(Holds::Shape(shape)) = holds[at] else {
                continue;
            };
            let (fields, forward) = &shapes[shape];
            let entry = order.entry(shape).or_insert_with(|| Struct {
                name: match at {
                    0 => root.to_string(),
                    _ => taken.unique(&type_name(&place.path, types)),
                },
                forward: forward.clone(),
                is_tuple: is_tuple(fields.iter().map(|field| field.segment.as_str())),
                fields: fields.clone(),
                paths: Vec::new(),
            });
            entry.paths.push(place.path.clone());
        }
        // Fields refer to structs by position in this order.
        let place_of: FxHashMap<usize, usize> = order
            .keys()
            .enumerate()
            .map(|(at, shape)| (*shape, at))
            .collect();
        let mut structs: Vec<Struct> = order.into_values().collect();
        for one in &mut structs {
            for field in &mut one.fields {
                if let Holds::Shape(shape) = &mut field.holds {
                    *shape = place_of[shape];
                }
            }
        }
        Structs {
            structs,
            tensor: tensor.to_string(),
        }
    }

    /// The structs as source, the root first, each with the function that takes it out of a saved
    /// module.
    pub fn source(&self) -> String {
        let mut text = String::new();
        for (at, one) in self.structs.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            self.definition(at, one, &mut text);
            text.push('\n');
            self.take(at, one, &mut text);
            if let Some(forward) = &one.forward {
                let _ = write!(text, "\n#[trace]\nimpl {} {{\n{forward}}}\n", one.name);
            }
        }
        text
    }

    fn definition(&self, at: usize, one: &Struct, text: &mut String) {
        let shown: Vec<String> = one
            .paths
            .iter()
            .take(4)
            .map(|p| format!("`{}`", Doc(p)))
            .collect();
        let more = one.paths.len().saturating_sub(shown.len());
        let of = match (at, more) {
            (0, _) => "The module.".to_string(),
            (_, 0) => format!("What is at {}.", shown.join(", ")),
            (_, more) => format!("What is at {} and {more} more places.", shown.join(", ")),
        };
        let Struct { name, fields, .. } = one;
        let _ = writeln!(text, "/// {of}\n#[derive(Module)]");
        let typed = |field: &Field| {
            let buffer = match field.holds {
                Holds::Buffer { persistent: true } => "#[module(buffer)] ",
                Holds::Buffer { persistent: false } => "#[module(buffer, persistent = false)] ",
                _ => "",
            };
            (buffer, self.type_of(&field.holds))
        };
        if fields.is_empty() {
            // A module must not be zero-sized.
            let _ = writeln!(
                text,
                "pub struct {name} {{\n    /// Tells it from others.\n    pub tag: Tag,\n}}"
            );
        } else if one.is_tuple {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| {
                    let (buffer, ty) = typed(field);
                    format!("{buffer}pub {ty}")
                })
                .collect();
            let _ = writeln!(text, "pub struct {name}({});", fields.join(", "));
        } else {
            let _ = writeln!(text, "pub struct {name} {{");
            for field in fields {
                let (buffer, ty) = typed(field);
                if field.name.trim_start_matches("r#") != field.segment {
                    let _ = writeln!(text, "    #[module(name = {:?})]", field.segment);
                }
                let _ = writeln!(
                    text,
                    "    /// `{}`.\n    {buffer}pub {}: {ty},",
                    Doc(&field.segment),
                    field.name
                );
            }
            text.push_str("}\n");
        }
    }

    /// The function that takes a struct out of a saved module.
    fn take(&self, at: usize, one: &Struct, text: &mut String) {
        let name = &one.name;
        let (unused, root) = match (one.fields.is_empty(), at) {
            (true, _) => ("_", ""),
            (false, 0) => ("", ""),
            (false, _) => ("", "{path}."),
        };
        let path = match at {
            0 => String::new(),
            _ => format!(", {unused}path: &str"),
        };
        let doc = match at {
            0 => {
                "    /// Takes the layers and weights out of a graph module that has them.\n    ///\n    /// # Errors\n    /// When it does not have them all.\n    pub "
            }
            _ => "    ",
        };
        let _ = writeln!(
            text,
            "impl {name} {{\n{doc}fn take({unused}saved: &mut GraphModule{path}) -> Result<Self> {{"
        );
        let taken = |field: &Field| {
            let at = match root.is_empty() {
                true => format!("{:?}", field.segment),
                false => {
                    let segment = field.segment.replace('{', "{{").replace('}', "}}");
                    format!("&format!({:?})", format!("{root}{segment}"))
                }
            };
            match &field.holds {
                Holds::Module(_) => format!("saved.take_submodule({at})?"),
                Holds::Parameter => format!("FromValue::from_value(saved.parameter({at})?)?"),
                Holds::Buffer { .. } => format!("FromValue::from_value(saved.buffer({at})?)?"),
                Holds::Shape(shape) => {
                    format!("{}::take(saved, {at})?", self.structs[*shape].name)
                }
            }
        };
        let (open, close) = match one.is_tuple {
            true => ("(", ")"),
            false => (" {", "}"),
        };
        if one.fields.is_empty() {
            let _ = writeln!(text, "        Ok({name} {{ tag: Tag::default() }})");
        } else {
            let _ = writeln!(text, "        Ok({name}{open}");
            for field in &one.fields {
                let _ = match one.is_tuple {
                    true => writeln!(text, "            {},", taken(field)),
                    false => writeln!(text, "            {}: {},", field.name, taken(field)),
                };
            }
            let _ = writeln!(text, "        {close})");
        }
        text.push_str("    }\n}\n");
    }

    fn type_of(&self, holds: &Holds) -> String {
        match holds {
            Holds::Module(path) => path.clone(),
            Holds::Parameter | Holds::Buffer { .. } => self.tensor.clone(),
            Holds::Shape(shape) => self.structs[*shape].name.clone(),
        }
    }
}

/// The place of a path, created together with its parents.
fn enter(places: &mut Vec<Place>, path: &str) -> usize {
    let mut at = 0;
    let mut end = 0;
    for segment in path.split('.') {
        end += segment.len();
        at = match places[at].children.get(segment) {
            Some(child) => *child,
            None => {
                let child = places.len();
                places[at].children.insert(segment.to_string(), child);
                places.push(Place {
                    path: path[..end].to_string(),
                    children: IndexMap::default(),
                    holds: None,
                    is_struct: false,
                });
                child
            }
        };
        end += 1;
    }
    at
}

/// Whether segments are 0, 1, 2 .. in order.
fn is_tuple<'s>(segments: impl Iterator<Item = &'s str>) -> bool {
    let mut count = 0usize;
    for segment in segments {
        if segment != count.to_string() {
            return false;
        }
        count += 1;
    }
    count > 0
}

/// A field's name for a segment of a path.
fn field_name(segment: &str, taken: &mut FxHashSet<String>) -> String {
    let mut name: String = segment
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'm');
    }
    if matches!(name.as_str(), "self" | "Self" | "super" | "crate" | "_") {
        name.push('_');
    } else if is_reserved(&name) {
        name.insert_str(0, "r#");
    }
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// Adds the types of the modules that a graph's nodes came from, by path; the graph is that of the module at `around`.
pub(crate) fn add_types(graph: &Graph, around: &str, types: &mut FxHashMap<String, String>) {
    for node in graph.nodes() {
        for scope in node.modules_around() {
            let path = within(around, &scope.path);
            if !scope.path.is_empty() && !types.contains_key(&path) {
                let name = short_type_name(&scope.type_name);
                let name = name.split('<').next().unwrap_or_default().to_string();
                types.insert(path, name);
            }
        }
    }
}

/// A struct's name for a path: the type that the module had, or a name derived from the path.
fn type_name(path: &str, types: &FxHashMap<String, String>) -> String {
    if let Some(name) = types.get(path)
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_alphanumeric())
    {
        return name.clone();
    }
    let is_number = |segment: &&str| segment.bytes().all(|b| b.is_ascii_digit());
    let last = path.rsplit('.').find(|segment| !is_number(segment));
    type_case(last.unwrap_or("Part"))
}

/// A name in type case: `down_sample` is `DownSample`.
pub(super) fn type_case(name: &str) -> String {
    let mut text = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut chars = word.chars();
        text.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        text.extend(chars);
    }
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        text.insert_str(0, "Part");
    }
    text
}
