//! Arguments that are structures: how each leaf is accessed, and the types that a generated crate
//! defines for structures whose types it cannot name.
//!
//! Invariant: every type that is written is one that the crate can name, or one that is defined
//! here.

use std::fmt::Write as _;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::crates::{crate_of, root_of};
use super::structs::{Taken, type_case};
use super::tuple::{MAX_TUPLE, tuple};
use crate::ir::names::as_name;
use crate::ir::param_type::Meaning;
use crate::ir::rust_type::{RustType, TypePath};
use crate::text::Excerpt;
use crate::value::tensor_types::tensor_types;
use crate::value::tree::Tree;

/// Types from fx's or Rust's prelude.
const KNOWN: [&str; 17] = [
    "bool", "i64", "usize", "f64", "f32", "str", "String", "Option", "Vec", "Int", "Float", "Bool",
    "Value", "List", "IndexMap", "DType", "Device",
];

/// A result, or the reason why something cannot be written.
pub(super) type Written<T> = Result<T, String>;

/// What is known about a leaf of a structure.
pub(super) struct Leaf {
    /// The type that its input is declared to have.
    pub declared: Option<RustType>,
    /// Whether it is checked to be `None`.
    pub is_none: bool,
}

/// How a leaf is accessed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Access {
    pub path: String,
    /// Whether the access yields an owned value, not a part of the argument.
    pub is_own: bool,
}

/// The structures that a crate defines.
pub(crate) struct Definitions {
    taken: Taken,
    /// The names of definitions, by name and fields.
    defined: IndexMap<Definition, String, FxBuildHasher>,
    /// The libraries that the types come from.
    pub libraries: FxHashSet<&'static str>,
}

#[derive(PartialEq, Eq, Hash)]
struct Definition {
    /// Its original name, or the name of what it is for.
    name: String,
    /// Names and types; tuple positions are names too.
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

    /// The names that are taken, for the types that are made next.
    pub fn taken_mut(&mut self) -> &mut Taken {
        &mut self.taken
    }

    /// A type as the generated crate names it.
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
                "the type {} cannot be named in a separate crate",
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

/// Whether a generated crate can name a path, and the library that it then needs.
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

/// How the leaves of one argument are accessed.
pub(super) struct Structure<'d> {
    /// Those of a generated crate; `None` if the caller's own types are used.
    pub definitions: Option<&'d mut Definitions>,
    /// The type of leaves that declare none; `None` if it is unknown.
    pub tensor: Option<String>,
    pub leaves: std::vec::IntoIter<Leaf>,
    pub found: Vec<Access>,
}

impl Structure<'_> {
    /// Reads a structure and returns its type. `name` is used for unnamed types.
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
                // A value that is always present need not be optional.
                Some(_) => self.read(Some(inner), tree, path, name),
                None => Err(format!("`{name}` is optional, and taken apart")),
            };
        }
        let meaning = ty.map(RustType::meaning);
        // A `Value` does not say what is inside; outside a generated crate it stays a `Value`.
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
                    "`{}` has no type, and no tensor type is known that it could have",
                    path.path
                )),
            },
        }
    }

    /// Items of one type, each accessed by its step.
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
            // These cannot be field names, so they are keys.
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
