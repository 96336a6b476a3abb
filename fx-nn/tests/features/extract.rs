//! What a feature extractor returns, keeps and leaves out, in both modes.

use fx_nn::graph_module::DualGraphModule;
use fx_nn::ir::{Graph, Op};
use fx_nn::models::alexnet::alexnet;
use fx_nn::models::resnet::resnet18;
use fx_nn::module::Attributes;
use fx_nn::passes::{FeatureExtractor, create_feature_extractor, get_graph_node_names};
use fx_nn::prelude::*;

fn frozen<M: fx_nn::module::Component>(mut model: M) -> Result<M> {
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    Ok(model)
}

fn same(found: &Tensor, expected: &Value) -> Result<()> {
    let expected = Tensor::from_value(expected.clone())?;
    assert_eq!(found.dims()?, expected.dims()?);
    assert_eq!(found.to_vec()?, expected.to_vec()?);
    Ok(())
}

#[test]
fn a_path_of_a_module_means_its_last_node() -> Result<()> {
    let model = frozen(resnet18(10)?)?;
    let nodes = [
        ("layer3", "three"),
        ("layer1", "one"),
        ("layer1.1.relu_1", "again"),
        ("layer2.0.bn2", "inner"),
        ("x", "input"),
    ];
    let extractor = create_feature_extractor(&model, nodes)?;
    let x = Tensor::rand((1, 3, 64, 64))?;
    let found: IndexMap<String, Tensor> = extractor.forward(&x)?;
    // In the order of the nodes.
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["input", "one", "again", "inner", "three"]);
    let seen = symbolic_trace(&model)?.capture(&["layer[13].1", "layer2.0.bn2"], &x)?;
    same(&found["one"], &seen["layer1.1"])?;
    same(&found["again"], &Value::object(found["one"].clone()))?;
    same(&found["inner"], &seen["layer2.0.bn2"])?;
    same(&found["three"], &seen["layer3.1"])?;
    Ok(())
}

#[test]
fn what_the_nodes_do_not_need_is_gone() -> Result<()> {
    // In training mode too, in which the dropout behind the features draws.
    let extractor = create_feature_extractor(&alexnet(10)?, ["features.2", "features.4"])?;
    assert!(extractor.is_training());
    for graph in [extractor.train_graph(), extractor.eval_graph()] {
        let names: Vec<String> = graph
            .nodes()
            .map(|node| node.target().to_string())
            .collect();
        let expected = [
            "x",
            "features.0",
            "features.1",
            "features.2",
            "features.3",
            "features.4",
        ];
        assert_eq!(names[..6], expected);
        assert_eq!(names.len(), 7);
    }
    let paths: Vec<String> = extractor.named_parameters().keys().cloned().collect();
    let expected = [
        "features.0.weight",
        "features.0.bias",
        "features.3.weight",
        "features.3.bias",
    ];
    assert_eq!(paths, expected);
    assert!(extractor.graph_module().submodule("classifier").is_err());
    Ok(())
}

#[test]
fn an_unknown_node_is_an_error_with_names_like_it() -> Result<()> {
    let model = resnet18(10)?;
    let error = |nodes: &[(&str, &str)]| match create_feature_extractor(&model, nodes.to_vec()) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    let message = error(&[("layer1.0.rellu", "a")]);
    assert!(
        message.contains("no node `layer1.0.rellu` in either mode; did you mean `layer1.0.relu`")
    );
    assert!(
        message.contains("`get_graph_node_names` lists"),
        "{message}"
    );
    assert!(error(&[("layer9", "a")]).contains("did you mean `layer1`, `layer2`, `layer3`?"));
    assert!(error(&[("zzzzzzzz", "a")]).contains("in either mode; `get_graph_node_names`"));
    assert!(error(&[("", "a")]).contains("no node ``"));
    assert!(
        error(&[("layer1", "a"), ("layer2", "a")]).contains("two nodes are to be returned as `a`")
    );
    Ok(())
}

/// What it computes depends on the mode, and so does a constant.
#[derive(Module, Clone, Debug)]
struct Modal {
    linear: nn::Linear,
    noise: nn::Linear,
    training: bool,
}

#[trace]
impl Modal {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.linear.forward(x)?;
        if self.training {
            let shift = (Tensor::ones(2)? * 3.0)?;
            self.noise.forward(&(h + shift)?)
        } else {
            let shift = (Tensor::ones(2)? * 5.0)?;
            (h + shift)? * 2.0
        }
    }
}

fn modal() -> Result<Modal> {
    Ok(Modal {
        linear: nn::Linear::new(2, 2)?,
        noise: nn::Linear::new(2, 2)?,
        training: true,
    })
}

#[test]
fn each_mode_has_its_own_graph_over_one_set_of_layers() -> Result<()> {
    let model = modal()?;
    let (train, eval) = get_graph_node_names(&model)?;
    assert_eq!(train, ["x", "linear", "add", "noise"]);
    assert_eq!(eval, ["x", "linear", "add", "mul"]);
    let only_train = create_feature_extractor(&model, ["noise"]);
    assert!(
        only_train.is_err_and(|e| e.to_string().contains("no node `noise` in evaluation mode"))
    );

    let extractor = FeatureExtractor::new(&model);
    let mut extractor = extractor.create_for_modes(["add", "noise"], ["add", "mul"])?;
    assert!(model.training, "the model keeps its mode");
    let x = Tensor::rand((1, 2))?;
    let h = model.linear.forward(&x)?;
    for _ in 0..2 {
        extractor.train();
        let found: IndexMap<String, Tensor> = extractor.forward(&x)?;
        assert_eq!(found["add"].to_vec()?, (&h + 3.0)?.to_vec()?);
        assert_eq!(found["noise"].to_vec()?, model.forward(&x)?.to_vec()?);
        extractor.eval();
        let found: IndexMap<String, Tensor> = extractor.forward(&x)?;
        assert_eq!(found["add"].to_vec()?, (&h + 5.0)?.to_vec()?);
        assert_eq!(found["mul"].to_vec()?, ((&h + 5.0)? * 2.0)?.to_vec()?);
    }
    // The layers of both modes are there in either.
    assert!(extractor.named_parameters().contains_key("noise.weight"));
    let alone = extractor.clone().into_graph_module();
    assert!(!alone.named_parameters().contains_key("noise.weight"));
    let mut copy = extractor.clone();
    copy.train();
    assert!(!extractor.is_training());
    let found: IndexMap<String, Tensor> = copy.forward(&x)?;
    assert_eq!(found["noise"].to_vec()?, model.forward(&x)?.to_vec()?);
    Ok(())
}

#[test]
fn an_extractor_starts_in_the_mode_of_its_model() -> Result<()> {
    let mut model = modal()?;
    assert!(create_feature_extractor(&model, ["add"])?.is_training());
    model.eval();
    assert!(!create_feature_extractor(&model, ["add"])?.is_training());
    Ok(())
}

#[test]
fn statistics_of_training_are_seen_in_evaluation() -> Result<()> {
    let model = resnet18(10)?;
    let mut extractor = create_feature_extractor(&model, ["bn1"])?;
    let mean = || {
        model
            .bn1
            .running_mean
            .as_ref()
            .map(Tensor::to_vec)
            .transpose()
    };
    let before = mean()?;
    extractor.forward::<IndexMap<String, Tensor>>(&Tensor::rand((2, 3, 32, 32))?)?;
    assert_ne!(mean()?, before);
    extractor.eval();
    let x = Tensor::rand((1, 3, 32, 32))?;
    let found: IndexMap<String, Tensor> = extractor.forward(&x)?;
    let model = frozen(model)?;
    let expected = model.bn1.forward(&model.conv1.forward(&x)?)?;
    assert_eq!(found["bn1"].to_vec()?, expected.to_vec()?);
    Ok(())
}

#[test]
fn a_graph_module_is_a_model_too() -> Result<()> {
    let model = frozen(resnet18(10)?)?;
    let gm = symbolic_trace(&model)?;
    assert_eq!(get_graph_node_names(&gm)?, get_graph_node_names(&model)?);
    let extractor = create_feature_extractor(&gm, ["layer1", "avgpool"])?;
    let x = Tensor::rand((1, 3, 32, 32))?;
    let found: IndexMap<String, Tensor> = extractor.forward(&x)?;
    same(&found["avgpool"], &gm.capture(&["avgpool"], &x)?["avgpool"])
}

#[test]
fn an_extractor_is_a_layer_that_files_keep() -> Result<()> {
    let model = modal()?;
    let extractor = FeatureExtractor::new(&model);
    let extractor = extractor.create_for_modes(["noise"], ["mul"]);
    let mut attributes = Attributes::default();
    attributes
        .modules
        .insert("features".into(), Box::new(extractor?));
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let called = graph.call_module("features", (x,), ())?;
    graph.output(called)?;
    let mut gm = GraphModule::new(attributes, graph, "Net")?;
    let mut loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert!(
        loaded
            .submodule_as::<DualGraphModule>("features")?
            .is_training()
    );
    let x = Tensor::rand((1, 2))?;
    for training in [true, false] {
        gm.set_training(training);
        loaded.set_training(training);
        let expected: IndexMap<String, Tensor> = gm.forward(&x)?;
        let found: IndexMap<String, Tensor> = loaded.forward(&x)?;
        let name = if training { "noise" } else { "mul" };
        assert_eq!(found[name].to_vec()?, expected[name].to_vec()?);
    }
    // Traced through, it is its nodes.
    let flat = symbolic_trace(&gm)?;
    let target = |node: fx_nn::ir::NodeRef<'_>| matches!(node.op(), Op::CallModule(path) if &**path == "features.linear");
    assert!(flat.graph().nodes().any(target), "{}", flat.graph());
    Ok(())
}

#[test]
fn numbers_in_paths_leave_names_apart() -> Result<()> {
    let mut model = nn::Sequential::new();
    for name in ["a_1_5", "a_1_6", "a_1", "a", "a_2", "b_9", "b_"] {
        model = model.add_module(name, nn::Identity::default());
    }
    let (names, _) = get_graph_node_names(&model)?;
    let expected = ["x", "a_1", "a_1_1", "a_2", "a_3", "a_4", "b", "b_"];
    assert_eq!(names, expected);
    create_feature_extractor(&model, names.iter().map(String::as_str)).map(drop)
}

/// One mode calls the layer, the other uses its weight.
#[derive(Module, Clone, Debug)]
struct Borrows {
    linear: nn::Linear,
    training: bool,
}

#[trace]
impl Borrows {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self.training {
            true => self.linear.forward(x),
            false => x.matmul(&self.linear.weight),
        }
    }
}

#[test]
fn a_layer_of_one_mode_may_be_a_tensor_of_the_other() -> Result<()> {
    for training in [true, false] {
        let model = Borrows {
            linear: nn::Linear::new(2, 2)?.bias(false),
            training,
        };
        let extractor = FeatureExtractor::new(&model);
        let mut extractor = extractor.create_for_modes(["linear"], [("matmul", "linear")])?;
        let x = Tensor::rand((1, 2))?;
        let found: IndexMap<String, Tensor> = extractor.forward(&x)?;
        assert_eq!(found["linear"].to_vec()?, model.forward(&x)?.to_vec()?);
        extractor.set_training(!training);
        let w: Tensor = fx_nn::func::functional_call::<IndexMap<String, Tensor>>(
            &extractor,
            [("linear.weight", &Tensor::zeros((2, 2))?)],
            &x,
        )?["linear"]
            .clone();
        assert_eq!(w.to_vec()?, [0.0, 0.0]);
    }
    Ok(())
}

#[test]
fn graphs_of_other_arguments_or_layers_do_not_pair() -> Result<()> {
    let one = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    let two = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x + y))?;
    let error = DualGraphModule::new(one, two).map(drop);
    assert!(error.is_err_and(|e| e.to_string().contains("both take the same arguments")));
    let (mut first, mut second) = (modal()?, modal()?);
    (first.training, second.training) = (false, false);
    let constants = [symbolic_trace(&first)?, symbolic_trace(&second)?];
    let [first, second] = constants;
    let error = DualGraphModule::new(first, second).map(drop);
    assert!(error.is_err_and(|e| {
        e.to_string()
            .contains("different things at `_tensor_constant0`")
    }));
    Ok(())
}
