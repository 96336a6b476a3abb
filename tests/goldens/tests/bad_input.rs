//! Wrong input: each an error that names the node or argument, the source line, the module path and what
//! was expected; nothing panics.

use std::sync::Mutex;

use fx_core::ir::Graph;
use fx_core::prelude::*;
use fx_nn::{Tensor, nn, ops, weights};
use indexmap::IndexMap;

#[derive(Module, Clone, Debug)]
struct Block {
    linear: nn::Linear,
}

#[trace]
impl Block {
    fn forward(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let h = self.linear.forward(x)?;
        h + y
    }
}

#[derive(Module, Clone, Debug)]
struct Net {
    block: Block,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        self.block.forward(x, y)
    }
}

fn net() -> Result<Net> {
    Ok(Net {
        block: Block {
            linear: nn::Linear::new(3, 2)?,
        },
    })
}

fn refused<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("this must be refused"),
        Err(error) => error,
    }
}

fn says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_wrong_number_of_arguments() -> Result<()> {
    let traced = symbolic_trace(&net()?)?;
    let x = Tensor::ones((1, 3))?;
    let error = refused(traced.forward::<Tensor>(&x));
    says(
        &error,
        &[
            "`Net`",
            "missing its argument `y`",
            "x: &Tensor, y: &Tensor",
        ],
    );
    let error = refused(traced.forward::<Tensor>((&x, &x, &x)));
    says(&error, &["`Net`", "takes 2 arguments but 3 were given"]);
    let error = refused(traced.forward::<Tensor>(args![&x, z = &x]));
    says(&error, &["`Net`", "no parameter `z`"]);
    let error = refused(traced.forward::<Tensor>(args![&x, x = &x]));
    says(&error, &["more than one value for `x`"]);
    Ok(())
}

#[test]
fn a_wrong_type_of_argument() -> Result<()> {
    let traced = symbolic_trace(&net()?)?;
    let x = Tensor::ones((1, 3))?;
    let error = refused(traced.forward::<Tensor>(("text", &x)));
    says(
        &error,
        &[
            "%block_linear",
            "bad_input.rs:19:29",
            "in block",
            "`Tensor`",
            "a string",
        ],
    );
    let error = refused(traced.forward::<f64>((&x, &Tensor::ones((1, 2))?)));
    says(&error, &["expected `f64`", "a tensor of shape [1, 2]"]);
    Ok(())
}

#[test]
fn a_shape_mismatch_inside_a_graph() -> Result<()> {
    let traced = symbolic_trace(&net()?)?;
    let (x, y) = (Tensor::ones((4, 3))?, Tensor::ones((5, 2))?);
    let error = refused(traced.forward::<Tensor>((&x, &y)));
    says(
        &error,
        &[
            "while executing %add",
            "bad_input.rs:20:9",
            "in block",
            "[4, 2] and [5, 2] do not broadcast",
        ],
    );
    assert_eq!(error.node(), Some("add"));
    assert_eq!(error.module_path(), Some("block"));
    Ok(())
}

#[test]
fn a_parameter_file_that_does_not_fit() -> Result<()> {
    let mut module = net()?;
    let before = module.block.linear.weight.to_vec()?;
    let state = IndexMap::from([
        ("block.linear.weight".to_string(), Tensor::ones((2, 4))?),
        ("block.linear.extra".to_string(), Tensor::ones(1)?),
    ]);
    let error = refused(weights::load_state_dict(&mut module, &state));
    says(
        &error,
        &[
            "`block.linear.weight` has shape [2, 4] in the file and [2, 3] in the model",
            "`block.linear.extra` is in the file but not in the model",
            "`block.linear.bias` of shape [2] is in the model but not in the file",
        ],
    );
    assert_eq!(module.block.linear.weight.to_vec()?, before);

    let folder = std::env::temp_dir().join(format!("fx-bad-input-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::other)?;
    let file = folder.join("broken.safetensors");
    std::fs::write(&file, b"not a safetensors file").map_err(Error::other)?;
    says(
        &refused(weights::load(&mut module, &file)),
        &["broken.safetensors"],
    );
    says(
        &refused(weights::load(
            &mut module,
            folder.join("absent.safetensors"),
        )),
        &["absent.safetensors"],
    );
    std::fs::remove_dir_all(&folder).map_err(Error::other)
}

#[test]
fn weights_survive_a_file() -> Result<()> {
    let module = net()?;
    let file = std::env::temp_dir().join(format!("fx-weights-{}.safetensors", std::process::id()));
    weights::save(&module, &file)?;
    let mut other = net()?;
    let traced = symbolic_trace(&other)?;
    weights::load(&mut other, &file)?;
    std::fs::remove_file(&file).map_err(Error::other)?;
    let (x, y) = (Tensor::ones((4, 3))?, Tensor::ones((4, 2))?);
    let expected = module.forward(&x, &y)?.to_vec()?;
    assert_eq!(other.forward(&x, &y)?.to_vec()?, expected);
    // The traced module shares the parameters' storage, so it sees what was loaded.
    assert_eq!(traced.forward::<Tensor>((&x, &y))?.to_vec()?, expected);
    Ok(())
}

static STOLEN: Mutex<Option<Tensor>> = Mutex::new(None);

#[trace]
fn stores_its_input(x: &Tensor) -> Result<Tensor> {
    *STOLEN.lock().unwrap_or_else(|e| e.into_inner()) = Some(x.clone());
    Ok(x.clone())
}

#[test]
fn a_proxy_that_outlived_its_trace() -> Result<()> {
    symbolic_trace(traced!(stores_its_input))?;
    let stolen = STOLEN.lock().unwrap_or_else(|e| e.into_inner()).clone();
    let stolen = stolen.expect("the traced function stored it");
    says(
        &refused(stolen.relu()),
        &["Proxy(", "has ended", "return it"],
    );
    says(&refused(&stolen + 1.0), &["has ended"]);
    Ok(())
}

#[trace]
fn escapes(x: &Tensor) -> Result<Tensor> {
    let total = x.sum(..)?.item()?;
    x * total
}

#[test]
fn a_value_that_escapes_a_trace() -> Result<()> {
    let error = refused(symbolic_trace(traced!(escapes)));
    says(
        &error,
        &["`item`", "%sum", "symbolic", "#[wrap]", "bad_input.rs"],
    );
    Ok(())
}

#[trace]
fn with_flag(x: &Tensor, flag: bool) -> Result<Tensor> {
    if flag { ops::relu(x) } else { ops::neg(x) }
}

#[test]
fn a_plain_argument_left_unspecialised() -> Result<()> {
    let error = refused(symbolic_trace(traced!(with_flag)));
    says(&error, &["`flag`", "`bool`", "Trace::concrete"]);

    let traced = Trace::new(traced!(with_flag))
        .concrete("flag", true)
        .graph_module()?;
    let x = Tensor::from_vec(vec![-1.0f32, 2.0], 2)?;
    let y: Tensor = traced.forward((&x, true))?;
    assert_eq!(y.to_vec()?, [0.0, 2.0]);
    let error = refused(traced.forward::<Tensor>((&x, false)));
    says(&error, &["\"flag\"", "specialised to true", "false came"]);
    let error = refused(
        Trace::new(traced!(with_flag))
            .concrete("flug", true)
            .graph(),
    );
    says(&error, &["no parameter `flug`"]);
    Ok(())
}

#[test]
fn an_unknown_attribute_or_method() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let y = graph.call_method("no_such_method", (x,), ())?;
    graph.output(y)?;
    let error = refused(GraphModule::new(Default::default(), graph, "Broken"));
    says(
        &error,
        &[
            "while compiling %no_such_method",
            "no method at `no_such_method`",
        ],
    );

    let mut graph = Graph::new();
    let x = graph.get_attr("layers.3.weight")?;
    graph.output(x)?;
    let error = refused(GraphModule::new(Default::default(), graph, "Broken"));
    says(
        &error,
        &[
            "%layers_3_weight",
            "no parameter, buffer or constant at `layers.3.weight`",
        ],
    );
    Ok(())
}
