//! The public surface of the crates, item by item, beside the one that is kept: a change of it is always seen.
//!
//! It is here because this crate has the parser. `UPDATE_PUBLIC_API=1 cargo test -p fx-macros --test public_api` writes
//! what there is now.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Fields, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the crates are in the repository");
    for entry in entries {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

fn text(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        out.push_str(word);
        out.push(' ');
    }
    out.trim_end().to_string()
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn is_hidden(attrs: &[syn::Attribute]) -> bool {
    let hidden = |attr: &syn::Attribute| text(attr).contains("doc (hidden)");
    attrs.iter().any(hidden)
}

fn fields(name: &str, fields: &Fields, all: bool, found: &mut BTreeSet<String>) {
    for (i, field) in fields.iter().enumerate() {
        if all || is_public(&field.vis) {
            let place = field
                .ident
                .as_ref()
                .map_or(i.to_string(), ToString::to_string);
            found.insert(format!("{name}.{place}: {}", text(&field.ty)));
        }
    }
}

/// What a crate's `lib.rs` makes public.
#[derive(Default)]
struct Exported {
    /// Names that it re-exports.
    names: BTreeSet<String>,
    /// Where they come from, and its public modules, as paths of files without their endings.
    modules: BTreeSet<PathBuf>,
}

impl Exported {
    fn of(items: &[Item]) -> Self {
        let mut exported = Exported::default();
        for item in items {
            match item {
                Item::Use(item) if is_public(&item.vis) => exported.add(&item.tree, PathBuf::new()),
                Item::Mod(item) if is_public(&item.vis) => {
                    exported.modules.insert(item.ident.to_string().into());
                }
                _ => {}
            }
        }
        exported
    }

    fn add(&mut self, tree: &UseTree, at: PathBuf) {
        match tree {
            UseTree::Path(path) => self.add(&path.tree, at.join(path.ident.to_string())),
            UseTree::Name(name) => {
                self.modules.insert(at.join(name.ident.to_string()));
                self.names.insert(name.ident.to_string());
            }
            UseTree::Rename(rename) => {
                self.modules.insert(at.join(rename.ident.to_string()));
                self.names.insert(rename.rename.to_string());
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add(tree, at.clone());
                }
            }
            UseTree::Glob(_) => {}
        }
    }

    /// Whether all public items of a file are, because it is a public module's or in one.
    fn has_all_of(&self, file: &Path) -> bool {
        let file = file.with_extension("");
        file == Path::new("lib") || file.ancestors().any(|outer| self.modules.contains(outer))
    }
}

/// The type that an item is about.
fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Const(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Impl(item) => match &*item.self_ty {
            Type::Path(path) => path.path.segments.last()?.ident.to_string(),
            _ => return None,
        },
        _ => return None,
    })
}

/// The public items of a file that are of an exported name, or all where the file is a public module's.
fn items(items: &[Item], exported: Option<&BTreeSet<String>>, found: &mut BTreeSet<String>) {
    for item in items {
        if let (Some(exported), Some(name)) = (exported, name_of(item))
            && !exported.contains(&name)
        {
            continue;
        }
        match item {
            Item::Fn(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                found.insert(text(&item.sig));
            }
            Item::Struct(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                let name = item.ident.to_string();
                found.insert(format!("struct {name}{}", text(&item.generics)));
                fields(&name, &item.fields, false, found);
            }
            Item::Enum(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                let name = item.ident.to_string();
                found.insert(format!("enum {name}{}", text(&item.generics)));
                for variant in &item.variants {
                    let variant_name = format!("{name}::{}", variant.ident);
                    found.insert(format!("variant {variant_name}"));
                    fields(&variant_name, &variant.fields, true, found);
                }
            }
            Item::Trait(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                let name = item.ident.to_string();
                found.insert(format!(
                    "trait {name}{}: {}",
                    text(&item.generics),
                    text(&item.supertraits)
                ));
                for inner in &item.items {
                    match inner {
                        TraitItem::Fn(method) => {
                            found.insert(format!("{name}::{}", text(&method.sig)));
                        }
                        TraitItem::Const(constant) => {
                            found.insert(format!(
                                "{name}::const {}: {}",
                                constant.ident,
                                text(&constant.ty)
                            ));
                        }
                        TraitItem::Type(ty) => {
                            found.insert(format!("{name}::type {}", ty.ident));
                        }
                        _ => {}
                    }
                }
            }
            Item::Impl(item) => {
                let ty = text(&item.self_ty);
                if let Some((of, _)) = &item.trait_ {
                    found.insert(format!("impl {} for {ty}", text(of)));
                    continue;
                }
                for inner in &item.items {
                    match inner {
                        ImplItem::Fn(method)
                            if is_public(&method.vis) && !is_hidden(&method.attrs) =>
                        {
                            found.insert(format!("{ty}::{}", text(&method.sig)));
                        }
                        ImplItem::Const(constant) if is_public(&constant.vis) => {
                            found.insert(format!(
                                "{ty}::const {}: {}",
                                constant.ident,
                                text(&constant.ty)
                            ));
                        }
                        _ => {}
                    }
                }
            }
            Item::Const(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                found.insert(format!("const {}: {}", item.ident, text(&item.ty)));
            }
            Item::Type(item) if is_public(&item.vis) => {
                found.insert(format!("type {} = {}", item.ident, text(&item.ty)));
            }
            Item::Use(item) if is_public(&item.vis) => {
                found.insert(format!("use {}", text(&item.tree)));
            }
            Item::Mod(item) => {
                let is_test = item
                    .attrs
                    .iter()
                    .any(|attr| text(attr).contains("cfg (test)"));
                if let (Some((_, inner)), false) = (&item.content, is_test) {
                    self::items(inner, exported, found);
                }
            }
            Item::Macro(item) => {
                let exported = item
                    .attrs
                    .iter()
                    .any(|attr| attr.path().is_ident("macro_export"));
                if let (Some(name), true) = (&item.ident, exported && !is_hidden(&item.attrs)) {
                    found.insert(format!("macro {name}!"));
                }
            }
            _ => {}
        }
    }
}

fn public_api(name: &str) -> String {
    let mut files = Vec::new();
    sources(&root().join(name).join("src"), &mut files);
    let parsed = |file: &Path| {
        let source = fs::read_to_string(file).expect("a source file can be read");
        syn::parse_file(&source).expect("a source file that compiles")
    };
    let folder = root().join(name).join("src");
    let exported = Exported::of(&parsed(&folder.join("lib.rs")).items);
    let mut found = BTreeSet::new();
    for file in files {
        let inside = file.strip_prefix(&folder).expect("a file of the folder");
        let names = (!exported.has_all_of(inside)).then_some(&exported.names);
        items(&parsed(&file).items, names, &mut found);
    }
    let lines: Vec<String> = found.into_iter().collect();
    lines.join("\n") + "\n"
}

fn is_kept(name: &str) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/public_api/{name}.txt"));
    let found = public_api(name);
    if std::env::var_os("UPDATE_PUBLIC_API").is_some() {
        fs::write(&kept, &found).expect("the snapshot can be written");
    }
    let expected = fs::read_to_string(&kept).expect("the snapshot is in the repository");
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (expected.lines().collect(), found.lines().collect());
    let gone: Vec<&&str> = old.difference(&new).collect();
    let added: Vec<&&str> = new.difference(&old).collect();
    assert!(
        gone.is_empty() && added.is_empty(),
        "the public surface of {name} changed:\ngone: {gone:#?}\nadded: {added:#?}\nUPDATE_PUBLIC_API=1 keeps it"
    );
}

#[test]
fn the_surface_of_fx_core_is_kept() {
    is_kept("fx-core");
}

#[test]
fn the_surface_of_fx_nn_is_kept() {
    is_kept("fx-nn");
}

#[test]
fn the_macros_are_kept() {
    is_kept("fx-macros");
}
