//! Regression tests for defects in emitting, each named by its number.

use fx_core::graph_module::Folder;
use fx_core::ir::{Graph, NewNode, Op};
use fx_core::module::Attributes;
use fx_core::operator;
use fx_core::prelude::*;

/// A graph of one negation, whose input has this type.
fn of_type(ty: &str) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let x = graph.add(NewNode::new(Op::Placeholder("x".into())).type_expr(ty))?;
    let y = graph.call_function(operator::neg, (x,), ())?;
    graph.output(y)?;
    GraphModule::new(Attributes::default(), graph, "Negation")
}

const HOSTILE: &str =
    "&Tensor) -> Result<Tensor> { println!(\"INJECTED\"); todo!() } pub fn other(&self, x: &Tensor";

/// Types that were set by hand when a graph was built are parsed as types too, where their text
/// would be emitted.
#[test]
fn defect_r03_a_type_of_a_graph_by_hand_is_no_code() -> Result<()> {
    let gm = of_type(HOSTILE)?;
    let error = Folder::new("Net").source(&gm).err();
    let error = error.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("is not a Rust type"), "{error}");
    for text in [gm.code(), gm.print_readable()] {
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        assert!(!code.collect::<String>().contains("INJECTED"), "{text}");
    }
    let first = gm.code();
    let first = first.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("// does not compile as it stands: ") && first.contains("`to_folder`"),
        "{first}"
    );
    assert!(
        gm.to_bytes()
            .is_err_and(|e| e.to_string().contains("is not a Rust type"))
    );
    // The printed form of the graph can be parsed.
    assert!(gm.graph().to_string().parse::<Graph>().is_ok());
    Ok(())
}

/// A valid type is emitted as the grammar writes it.
#[test]
fn defect_r03_types_are_written_as_the_grammar_has_them() -> Result<()> {
    let gm = of_type(" Vec < Float , > ")?;
    assert!(gm.code().contains("x: Vec<Float>)"), "{}", gm.code());
    for deep in ["(", "&", "Vec<"] {
        let gm = of_type(&deep.repeat(50_000))?;
        assert!(gm.code().starts_with("// does not compile"));
    }
    Ok(())
}

/// Class names, paths and scopes stay inside their comments.
#[test]
fn defect_r03_names_stay_in_their_comments() -> Result<()> {
    let evil = "a\nfn evil() {} */ \u{202e}";
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    graph.output(x)?;
    let mut gm = GraphModule::new(Attributes::default(), graph, evil)?;
    gm.add_submodule("inner\nfn evil() {}", of_type("Float")?)?;
    for text in [gm.print_readable(), gm.to_string()] {
        assert!(
            !text
                .lines()
                .any(|line| line.trim_start().starts_with("fn evil")),
            "{text}"
        );
        assert!(!text.contains(['\u{202e}', '\r']), "{text}");
    }
    assert!(
        gm.to_bytes().is_err(),
        "names of several lines are kept in no file"
    );
    Ok(())
}

/// Invalid attributes of tensors and invalid methods are not emitted as code either.
#[test]
fn defect_r03_texts_of_arguments_are_no_code() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let y = graph.call_function(operator::getattr, (x, "shape()?; evil(); x.ndim"), ())?;
    graph.output(y)?;
    let gm = GraphModule::new(Attributes::default(), graph, "Attribute")?;
    let code = gm.code();
    let code: Vec<&str> = code.lines().skip(1).collect();
    assert!(!code.concat().contains("evil"), "{code:?}");
    assert!(Folder::new("Net").source(&gm).is_err());
    Ok(())
}

/// A generated crate never asks a registry for a library.
#[test]
fn defect_n02_dependencies_are_paths() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| (x * 2.0)? + 1.0))?;
    let path = std::env::temp_dir().join(format!("fx_defect_n02_{}", std::process::id()));
    for by_path in [false, true] {
        let folder = Folder::new("Affine").dependencies_by_path(by_path);
        folder.write(&gm, &path)?;
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).map_err(Error::other)?;
        std::fs::remove_dir_all(&path).map_err(Error::other)?;
        let (_, dependencies) = manifest
            .split_once("[dependencies]\n")
            .ok_or_else(|| Error::msg("the manifest has dependencies"))?;
        let expected = format!("fx-core = {{ path = {:?} }}\n", env!("CARGO_MANIFEST_DIR"));
        assert!(dependencies.starts_with(&expected), "{manifest}");
    }
    Ok(())
}

/// No tracked file asks a registry for a crate of ours, and none of our crates can be published to
/// one.
#[test]
fn defect_n02_no_file_names_a_version_of_ours() -> Result<()> {
    let prefix = env!("CARGO_PKG_NAME").trim_end_matches("core");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![root];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).map_err(Error::other)? {
            let path = entry.map_err(Error::other)?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | "shared") {
                    folders.push(path);
                }
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            read += 1;
            for ours in ["core", "macros", "nn"] {
                let version = format!("{prefix}{ours} = \"");
                assert!(!text.contains(&version), "{}", path.display());
            }
            if name == "Cargo.toml" && text.contains("[package]") {
                assert!(
                    text.contains("publish = false") || text.contains("publish.workspace = true"),
                    "{}",
                    path.display()
                );
                let registry = |line: &str| line.starts_with(prefix) && line.contains("version");
                assert!(!text.lines().any(registry), "{}", path.display());
            }
        }
    }
    assert!(read > 300, "{read} files");
    Ok(())
}

/// An expression from a macro is taken as the expression itself.
#[test]
fn defect_b10_traced_takes_a_macros_expression() -> Result<()> {
    macro_rules! tr {
        ($f:expr) => {
            symbolic_trace(traced!($f))
        };
    }
    #[trace]
    fn twice(x: Float) -> Result<Float> {
        x * 2.0
    }
    assert_eq!(tr!(|x: Float| x + 1.0)?.forward::<f64>(2.0)?, 3.0);
    assert_eq!(tr!(twice)?.forward::<f64>(2.0)?, 4.0);
    assert_eq!(symbolic_trace(traced!((twice)))?.forward::<f64>(2.0)?, 4.0);
    Ok(())
}

/// Saving follows links, to existing and to missing files, and replaces nothing but files.
#[cfg(unix)]
#[test]
fn defect_r13_save_writes_through_links() -> Result<()> {
    use std::os::unix::fs::symlink;
    let folder = std::env::temp_dir().join(format!("fx_defect_r13_{}", std::process::id()));
    std::fs::create_dir_all(folder.join("inside")).map_err(Error::other)?;
    let gm = of_type("Float")?;
    let bytes = gm.to_bytes()?;
    let (file, link, second) = (
        folder.join("inside/file"),
        folder.join("link"),
        folder.join("second"),
    );
    symlink("inside/file", &link).map_err(Error::other)?;
    symlink(&link, &second).map_err(Error::other)?;
    for path in [&link, &second] {
        gm.save(path)?;
        assert!(path.is_symlink() && !file.is_symlink());
        assert_eq!(std::fs::read(&file).map_err(Error::other)?, bytes);
        std::fs::write(&file, "old").map_err(Error::other)?;
    }
    gm.save(&file)?;
    assert_eq!(std::fs::read(&file).map_err(Error::other)?, bytes);

    let circle = folder.join("circle");
    symlink("circle", &circle).map_err(Error::other)?;
    for (path, words) in [
        (folder.join("inside"), "is not a file"),
        (circle, "is a circular link"),
        ("/dev/null".into(), "is not a file"),
    ] {
        let error = gm
            .save(&path)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(error.contains(words), "{error}");
    }
    assert!(
        !std::fs::metadata("/dev/null")
            .map_err(Error::other)?
            .is_file()
    );
    let left: Vec<_> = std::fs::read_dir(&folder).map_err(Error::other)?.collect();
    assert_eq!(left.len(), 4);
    std::fs::remove_dir_all(&folder).map_err(Error::other)
}
