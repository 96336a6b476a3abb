//! Defects once found in emitting, each by its number: none may come back.

use fx_nn::emit::CodeOptions;
use fx_nn::file::Json;
use fx_nn::graph_module::Folder;
use fx_nn::prelude::*;

/// The mutations of files that the fuzz target makes, a few of them.
#[path = "../../../fuzz/src/emit.rs"]
mod emit;

fn mlp() -> Result<GraphModule> {
    let mut model = fx_nn::models::mlp::Mlp::new(3, 4, 2)?;
    model.eval();
    symbolic_trace(&model)
}

/// A saved module, loaded after a change of its JSON.
fn changed(gm: &GraphModule, change: impl FnOnce(&mut Json)) -> Result<GraphModule> {
    let bytes = gm.to_bytes()?;
    let file = safetensors::SafeTensors::deserialize(&bytes).map_err(Error::other)?;
    let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).map_err(Error::other)?;
    let text = metadata
        .metadata()
        .as_ref()
        .and_then(|m| m.get("fx").cloned());
    let mut json: Json = text.unwrap_or_default().parse().map_err(Error::other)?;
    change(&mut json);
    let metadata = [("fx".to_string(), json.to_string())].into_iter().collect();
    let file = safetensors::serialize(file.iter(), Some(metadata)).map_err(Error::other)?;
    GraphModule::from_bytes(&file)
}

fn problem<T>(result: Result<T>) -> String {
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

const HOSTILE: &str =
    "&Tensor) -> Result<Tensor> { println!(\"INJECTED\"); todo!() } pub fn other(&self, x: &Tensor";

#[test]
fn defect_r03_types_of_a_file_are_types() -> Result<()> {
    let gm = mlp()?;
    for (place, change) in [
        ("params[0].type", "/params/0/type"),
        ("nodes[0].type", "/nodes/0/type"),
    ] {
        let found = problem(changed(&gm, |json| {
            json["nodes"][0]["type"] = "&Tensor".into();
            if let Some(ty) = json.pointer_mut(change) {
                *ty = HOSTILE.into();
            }
        }));
        assert!(
            found.starts_with(place) && found.contains("is not a Rust type"),
            "{found}"
        );
    }
    Ok(())
}

#[test]
fn defect_r03_paths_of_a_file_stay_in_their_line() -> Result<()> {
    let evil = "p\n#[test] fn evil() { }\n//.a";
    let found = problem(changed(&mlp()?, |json| {
        json["modules"][0]["path"] = evil.into();
        json["nodes"][1]["target"] = evil.into();
    }));
    assert!(
        found.contains("characters that names cannot have"),
        "{found}"
    );

    // Characters that names can have are escaped wherever they would end a comment or a text.
    for path in [
        "deep.{evil}",
        "a*/ fn evil() {} /*",
        "``` fn evil",
        "a\"b\\",
        "a b.c#d",
        "Self.crate",
    ] {
        let gm = changed(&mlp()?, |json| {
            let old = json["modules"][0]["path"].clone();
            json["modules"][0]["path"] = path.into();
            for node in json["nodes"].as_array_mut().into_iter().flatten() {
                if node["target"] == old {
                    node["target"] = path.into();
                }
            }
        })?;
        let source = Folder::new("Net").source(&gm)?;
        syn::parse_file(&source).map_err(|e| Error::msg(format!("{e} in\n{source}")))?;
        assert!(
            gm.code().starts_with("// does not compile as it stands: "),
            "{}",
            gm.code()
        );
        assert!(
            !gm.code()
                .lines()
                .any(|line| line.trim_start().starts_with("fn evil"))
        );
    }
    Ok(())
}

#[test]
fn defect_r03_comments_hold_whatever_a_file_says() -> Result<()> {
    let evil = "a.rs\n} fn evil() {} /* */ \u{202e}";
    let gm = changed(&mlp()?, |json| {
        for location in json["locations"].as_array_mut().into_iter().flatten() {
            location[0] = evil.into();
        }
        for scope in json["scopes"].as_array_mut().into_iter().flatten() {
            scope["type"] = evil.into();
            scope["path"] = evil.into();
        }
    })?;
    let verbose = gm.rust_code(&CodeOptions::new().verbose(true)).to_string();
    for text in [gm.print_readable(), verbose] {
        assert!(text.contains("evil"), "{text}");
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        assert!(!code.collect::<String>().contains("evil"), "{text}");
        assert!(!text.contains('\u{202e}'));
    }
    Ok(())
}

/// Whatever file loads, its emitted source is Rust, and only its module.
#[test]
fn defect_r03_no_text_of_a_changed_file_becomes_code() -> Result<()> {
    let seeds = emit::Seeds::new()?;
    let mut counts = emit::Counts::default();
    let mut state = 7u64;
    for _ in 0..1500 {
        let mut data = [0u8; 32];
        for byte in &mut data {
            // Knuth's generator: the same inputs in every run.
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            *byte = (state >> 56) as u8;
        }
        emit::check(&seeds, &data, &mut counts);
    }
    assert!(counts.loaded * 5 >= counts.inputs, "{counts}");
    assert!(counts.emitted * 10 >= counts.inputs, "{counts}");
    Ok(())
}

/// Sizes that no tensor has are errors of the file.
#[test]
fn defect_r09_sizes_of_a_file_are_checked() -> Result<()> {
    let mut gm = mlp()?;
    gm.propagate_shapes(&Tensor::ones((2, 3))?)?;
    for huge in [i64::MAX, 1 << 62, 1 << 40] {
        let loaded = changed(&gm, |json| {
            for node in json["nodes"].as_array_mut().into_iter().flatten() {
                if let Some(shape) = node.pointer_mut("/meta/fx_core::ir::ValueMeta/shape") {
                    *shape = Json::from(vec![huge, huge]);
                }
            }
        })?;
        // Shapes that are only printed are text; computing with them must not fail.
        assert!(loaded.print_readable().contains(&huge.to_string()));
        assert!(fx_nn::summary(&loaded, &Tensor::ones((2, 3))?).is_ok());
    }
    let convolution = nn::Sequential::new().push(nn::Conv2d::new(1, 2, 3)?);
    let gm = symbolic_trace(&convolution)?;
    for name in ["padding", "stride", "dilation", "groups"] {
        for huge in [i64::MAX, 1 << 60, -1] {
            let loaded = changed(&gm, |json| {
                let config = &mut json["modules"][0]["config"];
                let options = if config["options"].is_object() {
                    &mut config["options"]
                } else {
                    config
                };
                options[name] = match options[name].is_array() {
                    true => Json::from(vec![huge, huge]),
                    false => Json::from(huge),
                };
            });
            // Refused, or emitted unchanged: the kernel's own checks report it when it runs.
            if let Ok(loaded) = loaded {
                Folder::new("Net").source(&loaded)?;
            }
        }
    }
    Ok(())
}

#[derive(Tree, Clone, Debug)]
struct Cache {
    k: Tensor,
}

#[derive(Tree, Clone, Debug)]
struct Nested {
    cache: Cache,
    size: Int,
}

/// The structures that are written compile in `fx-goldens`' tests, where their source is kept.
#[test]
fn defect_n03_structures_that_a_crate_cannot_name_are_defined_in_it() -> Result<()> {
    let gm = Trace::new(traced!(|x: &Tensor, c: Cache| x + c.k))
        .concrete("c", tree!({"k": PH}))
        .graph_module()?;
    let source = Folder::new("C").source(&gm)?;
    let definition = "#[derive(Tree, Clone, Debug)]\npub struct Cache {\n    /// One of its parts.\n    pub k: Tensor,\n}\n";
    assert!(source.contains(definition), "{source}");
    assert!(
        source.contains("c: Cache)") && source.contains("let c_1 = &c.k;"),
        "{source}"
    );
    // A name that the source already has is replaced.
    let gm = Trace::new(traced!(|x: &Tensor, c: Cache| x + c.k))
        .concrete("c", tree!({"k": PH}))
        .graph_module()?;
    let source = Folder::new("Cache").source(&gm)?;
    assert!(source.contains("c: Cache2)"), "{source}");
    Ok(())
}

/// A value without a form in source is an error, before anything is written.
#[test]
fn defect_n03_what_would_not_compile_is_refused() -> Result<()> {
    let path = std::env::temp_dir().join(format!("fx_defect_n03_{}", std::process::id()));
    let value = Trace::new(traced!(|x: &Tensor, c: Value| -> Result<Tensor> {
        let _ = c;
        x.relu()
    }))
    .concrete("c", tree!([PH, {"a": PH}]))
    .graph_module()?;
    let mut unknown = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let x = unknown.graph().nodes().next().map(|node| node.id());
    let x = x.ok_or_else(|| Error::msg("it has an input"))?;
    unknown
        .graph_mut()
        .node_mut(x)?
        .set_type_expr(Some("Unknown"));
    let mut number = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let relu = number.graph().nodes().nth(1).map(|node| node.id());
    let relu = relu.ok_or_else(|| Error::msg("it has a relu"))?;
    number.graph_mut().node_mut(relu)?.set_args((2.0,))?;
    for (gm, words) in [
        (&value, "are of several types"),
        (&unknown, "`Unknown` cannot be named in a separate crate"),
        (&number, "passed where a `Tensor` is expected"),
    ] {
        let found = problem(gm.to_folder(&path, "Net"));
        assert!(found.contains(words), "{found}");
        assert!(!path.exists());
    }
    let taken = problem(mlp()?.to_folder(&path, "Tensor"));
    assert!(
        taken.contains("the generated source uses") && !path.exists(),
        "{taken}"
    );
    Ok(())
}

#[trace]
fn both(x: &Tensor) -> Result<(Nested, Value)> {
    let size = x.size(0)?;
    let mixed = tree!({"n": 1, "all": [(x.clone()), 2.0]});
    Ok((
        Nested {
            cache: Cache { k: x.relu()? },
            size,
        },
        mixed,
    ))
}

/// A program that depends on fx-nn alone has no path that starts with fx-core's name.
#[test]
fn defect_b06_source_names_no_dependency_that_is_not_there() -> Result<()> {
    let gm = symbolic_trace(traced!(both))?;
    let power = symbolic_trace(traced!(|x: &Tensor| (2.0 / x)?.pow(x)))?;
    for gm in [&gm, &power] {
        for text in [gm.code(), Folder::new("Net").source(gm)?] {
            assert!(!text.contains("fx_core"), "{text}");
        }
    }
    let path = std::env::temp_dir().join(format!("fx_defect_b06_{}", std::process::id()));
    gm.to_folder(&path, "Net")?;
    let manifest = std::fs::read_to_string(path.join("Cargo.toml")).map_err(Error::other)?;
    std::fs::remove_dir_all(&path).map_err(Error::other)?;
    assert!(
        manifest.contains("fx-nn = { path = ") && !manifest.contains("fx-core ="),
        "{manifest}"
    );
    Ok(())
}

/// The first line of `code()` states that it does not compile where it was traced, and why.
#[test]
fn defect_m03_code_says_when_it_does_not_compile() -> Result<()> {
    let features = nn::Sequential::new()
        .push(nn::Linear::new(3, 3)?)
        .push(nn::ReLU::new());
    #[derive(Module)]
    struct Net {
        features: nn::Sequential,
        #[module(flatten)]
        blocks: IndexMap<String, nn::Linear>,
    }
    #[trace]
    impl Net {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            let mut x = self.features.forward(x)?;
            for block in self.blocks.values() {
                x = block.forward(&x)?;
            }
            Ok(x)
        }
    }
    let mut net = Net {
        features,
        blocks: IndexMap::new(),
    };
    let code = symbolic_trace(&net)?.code();
    let first = code.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("// does not compile as it stands: `features.0` is ")
            && first.contains("`to_folder`"),
        "{code}"
    );
    assert!(code.contains("self.features[0].forward(x)"), "{code}");

    net.features = nn::Sequential::new();
    for name in ["block1-0", "fn"] {
        net.blocks.insert(name.to_string(), nn::Linear::new(3, 3)?);
    }
    let code = symbolic_trace(&net)?.code();
    assert!(
        code.starts_with(
            "// does not compile as it stands: `block1-0` is an entry of a map, and no field"
        ),
        "{code}"
    );
    assert!(
        code.contains("self.r#fn.forward(") && code.contains("self[\"block1-0\"].forward("),
        "{code}"
    );
    syn::parse_file(&format!("impl Net {{ {code} }}")).map_err(Error::other)?;
    // Lists of layers are fields that are indexed, without such a line.
    #[derive(Module)]
    struct Lists {
        layers: Vec<nn::Linear>,
    }
    #[trace]
    impl Lists {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.layers[0].forward(x)
        }
    }
    let layers = vec![nn::Linear::new(3, 3)?];
    let code = symbolic_trace(&Lists { layers })?.code();
    assert!(
        !code.starts_with("//") && code.contains("self.layers[0]"),
        "{code}"
    );
    // A tensor that a trace met outside the module is not a field of it.
    let far = Tensor::ones(3)?;
    let code = symbolic_trace(traced!(move |x: &Tensor| x + &far))?.code();
    assert!(
        code.starts_with("// does not compile as it stands: `_tensor_constant0` is"),
        "{code}"
    );
    Ok(())
}

/// Weights are saved through links too.
#[cfg(unix)]
#[test]
fn defect_r13_weights_are_saved_through_links() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("fx_defect_r13_nn_{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::other)?;
    let (file, link) = (folder.join("file"), folder.join("link"));
    std::os::unix::fs::symlink("file", &link).map_err(Error::other)?;
    let mut linear = nn::Linear::new(2, 2)?;
    fx_nn::weights::save(&linear, &link)?;
    assert!(link.is_symlink() && file.is_file());
    fx_nn::weights::load(&mut linear, &file)?;
    assert!(fx_nn::weights::save(&linear, "/dev/null").is_err());
    std::fs::remove_dir_all(&folder).map_err(Error::other)
}
