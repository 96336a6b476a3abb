//! The public surface of the crates, item by item, compared with the kept one: a change of it is
//! always noticed.
//!
//! It is here because this crate has the parser.
//! `UPDATE_PUBLIC_API=1 cargo test -p fx-macros --test public_api` writes the current surface.

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

/// What a crate makes public, module by module.
struct Exported {
    src: PathBuf,
    /// Names that public modules re-export, wherever their items are.
    names: BTreeSet<String>,
    /// Public modules, as paths of files without their endings: everything public in them is
    /// exported.
    modules: BTreeSet<PathBuf>,
}

impl Exported {
    fn of(src: PathBuf) -> Self {
        let mut exported = Exported {
            src,
            names: BTreeSet::new(),
            modules: BTreeSet::new(),
        };
        let items = exported
            .items_of(Path::new("lib"))
            .expect("a crate has a lib.rs");
        exported.add_all(&items, Path::new(""));
        exported
    }

    /// The items of a module's file, or of its folder's `mod.rs`.
    fn items_of(&self, module: &Path) -> Option<Vec<Item>> {
        let file = self.src.join(module).with_extension("rs");
        let folder = self.src.join(module).join("mod.rs");
        let found = [file, folder].into_iter().find(|file| file.is_file())?;
        Some(parsed(&found))
    }

    fn add_all(&mut self, items: &[Item], at: &Path) {
        for item in items {
            match item {
                Item::Use(item) if is_public(&item.vis) => self.add_use(&item.tree, at.into()),
                Item::Mod(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                    let inside = at.join(item.ident.to_string());
                    match &item.content {
                        Some((_, items)) => self.add_all(items, &inside),
                        None => self.add_module(inside),
                    }
                }
                _ => {}
            }
        }
    }

    fn add_module(&mut self, module: PathBuf) {
        if let Some(items) = self.items_of(&module)
            && self.modules.insert(module.clone())
        {
            self.add_all(&items, &module);
        }
    }

    /// Adds what is re-exported from `from`.
    fn add_use(&mut self, tree: &UseTree, from: PathBuf) {
        match tree {
            UseTree::Path(path) if path.ident == "crate" => {
                self.add_use(&path.tree, PathBuf::new());
            }
            UseTree::Path(path) if path.ident == "self" => self.add_use(&path.tree, from),
            UseTree::Path(path) => {
                self.add_use(&path.tree, from.join(path.ident.to_string()));
            }
            UseTree::Name(name) => {
                self.names.insert(name.ident.to_string());
                self.add_module(from.join(name.ident.to_string()));
            }
            UseTree::Rename(rename) => {
                self.names.insert(rename.rename.to_string());
                self.add_module(from.join(rename.ident.to_string()));
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, from.clone());
                }
            }
            UseTree::Glob(_) => self.add_module(from),
        }
    }

    /// Whether all public items of a file are exported, because its module is public.
    fn has_all_of(&self, file: &Path) -> bool {
        let file = file.with_extension("");
        let module = match file.ends_with("mod") {
            true => file.parent().unwrap_or(&file),
            false => &file,
        };
        file == Path::new("lib") || self.modules.contains(module)
    }
}

fn parsed(file: &Path) -> Vec<Item> {
    let source = fs::read_to_string(file).expect("a source file can be read");
    let file = syn::parse_file(&source).expect("a source file that compiles");
    file.items
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

/// The public items of a file that have an exported name, or all if the file is a public module's.
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
            Item::Mod(item) if !is_hidden(&item.attrs) => {
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
    let folder = root().join(name).join("src");
    let exported = Exported::of(folder.clone());
    let mut found = BTreeSet::new();
    for file in files {
        let inside = file.strip_prefix(&folder).expect("a file of the folder");
        let names = (!exported.has_all_of(inside)).then_some(&exported.names);
        items(&parsed(&file), names, &mut found);
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
fn the_surface_of_fx_lm_is_kept() {
    is_kept("fx-lm");
}

#[test]
fn the_surface_of_fx_onnx_is_kept() {
    is_kept("fx-onnx");
}

#[test]
fn the_surface_of_fx_stablehlo_is_kept() {
    is_kept("fx-stablehlo");
}

#[test]
fn the_surface_of_fx_pjrt_is_kept() {
    is_kept("fx-pjrt");
}

#[test]
fn the_surface_of_fx_quant_is_kept() {
    is_kept("fx-quant");
}

#[test]
fn the_macros_are_kept() {
    is_kept("fx-macros");
}

/// The names that a glob import of a module brings, without those of its own globs.
fn names_in(items: &[Item]) -> BTreeSet<String> {
    fn of(tree: &UseTree, found: &mut BTreeSet<String>) {
        match tree {
            UseTree::Path(path) => of(&path.tree, found),
            UseTree::Name(name) => drop(found.insert(name.ident.to_string())),
            UseTree::Rename(rename) => drop(found.insert(rename.rename.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| of(tree, found)),
            UseTree::Glob(_) => {}
        }
    }
    let mut found = BTreeSet::new();
    for item in items {
        match item {
            Item::Use(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                of(&item.tree, &mut found);
            }
            Item::Mod(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                found.insert(item.ident.to_string());
            }
            _ => {}
        }
    }
    found
}

/// The names of a `prelude` that a file has.
fn prelude_in(items: &[Item]) -> BTreeSet<String> {
    let preludes = items.iter().filter_map(|item| match item {
        Item::Mod(item) if item.ident == "prelude" => item.content.as_ref(),
        _ => None,
    });
    preludes.flat_map(|(_, items)| names_in(items)).collect()
}

#[test]
#[allow(
    clippy::print_stdout,
    reason = "the counts are what the test is run for"
)]
fn the_names_that_a_user_meets_first_are_few() {
    let core = root().join("fx-core/src");
    let lib = parsed(&core.join("lib.rs"));
    let mut names = names_in(&lib);
    names.extend(prelude_in(&lib));
    names.extend(prelude_in(&parsed(&core.join("passes/mod.rs"))));
    let all = public_api("fx-core");
    let macros = all
        .lines()
        .filter_map(|line| line.strip_prefix("macro ")?.strip_suffix('!'));
    names.extend(macros.map(str::to_string));

    let nn = prelude_in(&parsed(&root().join("fx-nn/src/lib.rs")));
    let added = nn.difference(&names).count();
    println!("names of fx-core's root and preludes: {}", names.len());
    println!("names that fx-nn's prelude adds: {added}");
    assert!(names.len() <= 60, "{names:#?}");
    assert!(added <= 20, "{nn:#?}");
}

#[test]
fn every_public_module_says_how_stable_it_is() {
    let table = fs::read_to_string(root().join("docs/stability.md")).expect("the page is here");
    let marked: BTreeSet<String> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|row| row.split_once(" | "))
        .filter(|(_, mark)| {
            ["Stable", "Experimental", "Internal"]
                .iter()
                .any(|m| mark.starts_with(m))
        })
        .flat_map(|(names, _)| names.split('`').filter(|name| name.contains("::")))
        .map(str::to_string)
        .collect();
    let mut modules = BTreeSet::new();
    for (folder, name) in [
        ("fx-core", "fx_core"),
        ("fx-nn", "fx_nn"),
        ("fx-onnx", "fx_onnx"),
        ("fx-pjrt", "fx_pjrt"),
        ("fx-quant", "fx_quant"),
        ("fx-stablehlo", "fx_stablehlo"),
    ] {
        for item in parsed(&root().join(folder).join("src/lib.rs")) {
            if let Item::Mod(item) = item
                && is_public(&item.vis)
            {
                modules.insert(format!("{name}::{}", item.ident));
            }
        }
    }
    assert_eq!(marked, modules);
}
