//! Arguments that are structures: how each of their leaves is reached, and the types that a crate of its own has for
//! structures whose types it cannot name.
//!
//! Invariant: a type that is written is one that the crate can name, or one that is defined here.

use std::fmt::Write as _;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::crates::{crate_of, root_of};
use super::structs::{Taken, type_case};
use super::types::tuple;
use crate::ir::names::as_name;
use crate::ir::param_type::Meaning;
use crate::ir::rust_type::{RustType, TypePath};
use crate::text::Excerpt;
use crate::value::data::tensor_types;
use crate::value::tree::Tree;

/// How many items a tuple may have that goes through graphs.
pub(super) const MAX_TUPLE: usize = 6;

/// Types that fx's prelude has, or Rust's.
const KNOWN: [&str; 17] = [
    "bool", "i64", "usize", "f64", "f32", "str", "String", "Option", "Vec", "Int", "Float", "Bool",
    "Value", "List", "IndexMap", "DType", "Device",
];

/// Why something cannot be written.
pub(super) type Written<T> = Result<T, String>;

/// What is known of a leaf of a structure.
pub(super) struct Leaf {
    /// The type that its input is declared to have.
    pub declared: Option<RustType>,
    /// Whether it is checked to be nothing.
    pub is_none: bool,
}

/// How a leaf is reached.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Access {
    pub path: String,
    /// Whether what is reached is a value of its own, not a part of the argument.
    pub is_own: bool,
}

/// The structures that a crate defines.
pub(crate) struct Definitions {
    taken: Taken,
    /// By name and fields, what each is called.
    defined: IndexMap<Definition, String, FxBuildHasher>,
    /// The libraries that types are of.
    pub libraries: FxHashSet<&'static str>,
}

#[derive(PartialEq, Eq, Hash)]
struct Definition {
    /// What it was called, or what it is for.
    name: String,
    /// Names and types; places of a tuple are names too.
    fields: Vec<(String, String)>,
    is_tuple: bool,
}

impl Definitions {
    pub fn new(taken: Taken) -> Self {
        Definitions {
            taken,
            defined: IndexMap::default(),
            libraries: FxHashSet::default(),
        }
    }

    /// A type as the crate can name it.
    pub fn named(&mut self, ty: &RustType) -> Written<String> {
        let mut unknown = None;
        let libraries = &mut self.libraries;
        ty.for_each_path(&mut |path| match nameable(path) {
            Some(library) => libraries.extend(library),
            None => unknown = unknown.take().or(Some(path.plain())),
        });
        match unknown {
            None => Ok(ty.to_string()),
            Some(name) => Err(format!(
                "the type {} is none that a crate of its own can name",
                Excerpt(&name)
            )),
        }
    }

    fn define(&mut self, definition: Definition) -> String {
        if let Some(known) = self.defined.get(&definition) {
            return known.clone();
        }
        let name = self.taken.unique(&definition.name);
        self.defined.insert(definition, name.clone());
        name
    }

    /// The definitions as source.
    pub fn source(&self) -> String {
        let mut text = String::new();
        for (
            Definition {
                fields, is_tuple, ..
            },
            name,
        ) in &self.defined
        {
            let _ = writeln!(
                text,
                "\n/// A structure of values that the module takes.\n#[derive(Tree, Clone, Debug)]"
            );
            let _ = match is_tuple {
                true => {
                    let fields: Vec<String> =
                        fields.iter().map(|(_, ty)| format!("pub {ty}")).collect();
                    writeln!(text, "pub struct {name}({});", fields.join(", "))
                }
                false => {
                    let fields: Vec<String> = fields
                        .iter()
                        .map(|(name, ty)| {
                            format!("    /// One of its parts.\n    pub {name}: {ty},\n")
                        })
                        .collect();
                    writeln!(text, "pub struct {name} {{\n{}}}", fields.concat())
                }
            };
        }
        text
    }
}

/// Whether a crate of its own can name a path, and the library that it then needs.
fn nameable(path: &TypePath) -> Option<Option<&'static str>> {
    let plain = path.plain();
    match path.segments.as_slice() {
        [one] => {
            let is_tensor = || tensor_types().iter().any(|ty| ty.name() == one.name);
            (KNOWN.contains(&one.name.as_str()) || is_tensor()).then_some(None)
        }
        [root, ..] if matches!(root.name.as_str(), "std" | "core" | "alloc") => Some(None),
        _ => crate_of(root_of(&plain)).map(|info| Some(info.library)),
    }
}

/// How the leaves of one argument are reached.
pub(super) struct Structure<'d> {
    /// Of a crate of its own; none where the types are those of who traced.
    pub definitions: Option<&'d mut Definitions>,
    /// The type of leaves that say none; none where it is not known.
    pub tensor: Option<String>,
    pub leaves: std::vec::IntoIter<Leaf>,
    pub found: Vec<Access>,
}

impl Structure<'_> {
    /// Reads a structure, and gives its type. `name` is for what has no name.
    pub fn read(
        &mut self,
        ty: Option<&RustType>,
        tree: &Tree,
        path: &Access,
        name: &str,
    ) -> Written<String> {
        let ty = ty.map(RustType::referred);
        if let Some(inner) = ty.and_then(RustType::optional)
            && !tree.is_leaf()
        {
            return match self.definitions {
                // What is there always need not be optional.
                Some(_) => self.read(Some(inner), tree, path, name),
                None => Err(format!("`{name}` is optional, and taken apart")),
            };
        }
        let meaning = ty.map(RustType::meaning);
        // A `Value` says nothing of what is inside; outside of a crate of its own it stays one.
        if meaning == Some(Meaning::Value) && !tree.is_leaf() {
            return match self.definitions {
                Some(_) => self.read(None, tree, path, name),
                None => Err(format!("`{name}` is a `Value`, whose parts have no types")),
            };
        }
        match tree {
            Tree::Leaf => self.leaf(ty, path),
            Tree::List(items) => self.list(ty, items, path, name),
            Tree::Tuple(items) => self.tuple(ty, items, path, name),
            Tree::Dict(items) => match meaning {
                Some(Meaning::Map(item)) => self.map(Some(item), items, path, name),
                _ => self.fields(ty, items, path, name),
            },
        }
    }

    fn leaf(&mut self, declared: Option<&RustType>, path: &Access) -> Written<String> {
        let leaf = self.leaves.next();
        self.found.push(path.clone());
        let Some(definitions) = &mut self.definitions else {
            return Ok(String::new());
        };
        let is_value = |ty: &&RustType| ty.meaning() != Meaning::Value;
        let own = leaf.as_ref().and_then(|leaf| leaf.declared.as_ref());
        match (declared.filter(is_value).or(own), leaf.as_ref()) {
            (Some(ty), _) if ty.referred().meaning() == Meaning::Str => Ok("String".to_string()),
            (Some(ty), _) => definitions.named(ty.referred()),
            (None, leaf) => match (&self.tensor, leaf) {
                (Some(tensor), Some(Leaf { is_none: true, .. })) => Ok(format!("Option<{tensor}>")),
                (Some(tensor), _) => Ok(tensor.clone()),
                (None, _) => Err(format!(
                    "`{}` does not say its type, and no tensor type is known that it could be",
                    path.path
                )),
            },
        }
    }

    /// Items of one type, each reached as `step` says.
    fn same(
        &mut self,
        item: Option<&RustType>,
        items: &mut dyn Iterator<Item = (String, &Tree)>,
        path: &Access,
        name: &str,
    ) -> Written<String> {
        let mut all = None;
        for (step, tree) in items {
            let path = path.step(&step);
            let ty = self.read(item, tree, &path, name)?;
            match &all {
                None => all = Some(ty),
                Some(first) if *first == ty => {}
                Some(first) => {
                    return Err(format!(
                        "the items of `{name}` are of several types, `{first}` and `{ty}`: give them a struct with #[derive(Tree)]"
                    ));
                }
            }
        }
        let unknown = || self.tensor.clone().unwrap_or_else(|| "Value".to_string());
        Ok(all.unwrap_or_else(unknown))
    }

    fn list(
        &mut self,
        ty: Option<&RustType>,
        items: &[Tree],
        path: &Access,
        name: &str,
    ) -> Written<String> {
        let indexed = |(i, tree)| (format!("[{i}]"), tree);
        match (ty, ty.map(RustType::meaning)) {
            (Some(ty), Some(Meaning::Array(item))) => {
                let item = self.same(
                    Some(item),
                    &mut items.iter().enumerate().map(indexed),
                    path,
                    name,
                )?;
                Ok(match ty {
                    RustType::Array(..) => format!("[{item}; {}]", items.len()),
                    _ => format!("[{item}]"),
                })
            }
            (_, Some(Meaning::List(item))) => {
                let mut steps = items
                    .iter()
                    .enumerate()
                    .map(|(i, tree)| (format!(".get({i})?"), tree));
                let before = self.found.len();
                let item = self.same(Some(item), &mut steps, path, name)?;
                let mut found = self.found[before..].iter_mut();
                if found.any(|access| !access.path.ends_with(")?")) {
                    return Err(format!(
                        "`{name}` is a `List` of structures, whose parts cannot be lent"
                    ));
                }
                for access in &mut self.found[before..] {
                    access.is_own = true;
                }
                Ok(format!("List<{item}>"))
            }
            _ => {
                let item = ty.and_then(|ty| ty.last()?.1.first().copied());
                let item =
                    self.same(item, &mut items.iter().enumerate().map(indexed), path, name)?;
                Ok(format!("Vec<{item}>"))
            }
        }
    }

    fn tuple(
        &mut self,
        ty: Option<&RustType>,
        items: &[Tree],
        path: &Access,
        name: &str,
    ) -> Written<String> {
        let (parts, declared) = match ty {
            Some(RustType::Tuple(parts)) => (parts.as_slice(), None),
            Some(ty) => (&[][..], ty.last().map(|(name, _)| name)),
            None => (&[][..], None),
        };
        let mut types = Vec::with_capacity(items.len());
        for (i, tree) in items.iter().enumerate() {
            let path = path.step(&format!(".{i}"));
            types.push(self.read(parts.get(i), tree, &path, name)?);
        }
        match (&mut self.definitions, declared) {
            (Some(definitions), Some(declared)) => Ok(definitions.define(Definition {
                name: declared.to_string(),
                fields: types
                    .into_iter()
                    .enumerate()
                    .map(|(i, ty)| (i.to_string(), ty))
                    .collect(),
                is_tuple: true,
            })),
            (Some(_), None) if types.len() > MAX_TUPLE => Err(format!(
                "`{name}` is a tuple of {}, and no more than {MAX_TUPLE} go through graphs",
                types.len()
            )),
            _ => Ok(tuple(&types)),
        }
    }

    fn map(
        &mut self,
        item: Option<&RustType>,
        items: &[(Arc<str>, Tree)],
        path: &Access,
        name: &str,
    ) -> Written<String> {
        let steps = items.iter();
        let mut steps = steps.map(|(key, tree)| (format!("[{:?}]", &**key), tree));
        let item = self.same(item, &mut steps, path, name)?;
        Ok(format!("IndexMap<String, {item}>"))
    }

    /// The fields of a struct.
    fn fields(
        &mut self,
        ty: Option<&RustType>,
        items: &[(Arc<str>, Tree)],
        path: &Access,
        name: &str,
    ) -> Written<String> {
        let names: Option<Vec<_>> = items.iter().map(|(key, _)| as_name(key)).collect();
        let Some(names) = names else {
            // No field is called so: they are keys.
            return self.map(None, items, path, name);
        };
        let mut fields = Vec::with_capacity(items.len());
        for ((key, tree), field) in items.iter().zip(names) {
            let inner = self.read(None, tree, &path.step(&format!(".{field}")), key)?;
            fields.push((field.into_owned(), inner));
        }
        let Some(definitions) = &mut self.definitions else {
            return Ok(String::new());
        };
        let declared = ty
            .and_then(RustType::last)
            .map(|(name, _)| name.to_string());
        Ok(definitions.define(Definition {
            name: declared.unwrap_or_else(|| type_case(name)),
            fields,
            is_tuple: false,
        }))
    }
}

impl Access {
    fn step(&self, step: &str) -> Access {
        Access {
            path: format!("{}{step}", self.path),
            is_own: self.is_own,
        }
    }
}
