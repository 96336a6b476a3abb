//! Saved files: a saved graph module loads as the same module; other files are errors that say
//! where and why.

#[path = "save_load/hostile.rs"]
mod hostile;
#[path = "save_load/meta.rs"]
mod meta;
#[path = "save_load/modules.rs"]
mod modules;
#[path = "save_load/streamed.rs"]
mod streamed;
#[path = "save_load/support.rs"]
mod support;

use fx_goldens::golden::NumGolden;
use fx_goldens::model;
use fx_nn::ir::{Graph, NewNode, Op};
use fx_nn::models::{
    alexnet, autoencoder, bert, dict_out, gpt2, lstm_classifier, mlp, mobilenet, nested, resnet,
    shared_sub, siamese, transformer, tuple_out, unet, vgg, vit,
};
use fx_nn::module::{Attributes, ComponentExt, Module};
use fx_nn::prelude::*;
use fx_nn::run::PlainInterpreter;
use fx_nn::shapes::spec;
use fx_nn::tensor::Object;
use fx_nn::value::IntoValue;
use fx_nn::{Module, operator};

use support::{Scratch, bits, json_of, loads_the_same, run};

/// A traced model, saved and loaded; in evaluation mode.
fn survives(name: &str, mut model: impl Module, inputs: Vec<Value>) -> Result<()> {
    model.eval();
    let traced = model::trace_with(&model, inputs.len()).graph_module()?;
    loads_the_same(name, &traced, inputs)
}

/// PyTorch's inputs for the model of a golden.
fn inputs(name: &str) -> Result<Vec<Value>> {
    model::inputs(&NumGolden::load(name).map_err(Error::other)?)
}

#[test]
fn models_are_the_same_after_loading() -> Result<()> {
    survives(
        "autoencoder",
        autoencoder::AutoEncoder::new()?,
        inputs("autoencoder")?,
    )?;
    survives("bert", small_bert()?, inputs("bert_small")?)?;
    survives("dict_out", dict_out::DictOut::new(8)?, inputs("dict_out")?)?;
    survives("gpt2", small_gpt2()?, inputs("gpt2_small")?)?;
    survives(
        "lstm_classifier",
        lstm_classifier::LstmClassifier::new(50, 16, 24, 5)?,
        inputs("lstm_classifier")?,
    )?;
    survives("mlp", mlp::Mlp::new(16, 32, 4)?, inputs("mlp")?)?;
    survives(
        "mobilenet_v2",
        mobilenet::mobilenet_v2(10)?,
        inputs("mobilenet_v2")?,
    )?;
    survives("nested", nested::Nested::new(8)?, inputs("nested")?)?;
    survives("resnet18", resnet::resnet18(10)?, inputs("resnet18")?)?;
    survives(
        "shared_sub",
        shared_sub::SharedSub::new(6)?,
        inputs("shared_sub")?,
    )?;
    survives("siamese", siamese::Siamese::new()?, inputs("siamese")?)?;
    survives(
        "transformer",
        transformer::TransformerEncoderLayer::new(32, 4, 64)?,
        inputs("transformer_encoder_hand")?,
    )?;
    let mut tuple_inputs = inputs("tuple_out")?;
    tuple_inputs.resize(2, Value::None);
    survives("tuple_out", tuple_out::TupleOut::new(8)?, tuple_inputs)?;
    survives("unet", unet::UNet::new(3, 2, 8)?, inputs("unet_small")?)?;
    let config = vit::Config {
        image_size: 64,
        patch_size: 16,
        num_layers: 2,
        num_heads: 2,
        hidden_dim: 16,
        mlp_dim: 24,
        num_classes: 5,
    };
    survives(
        "vit",
        vit::VisionTransformer::new(&config)?,
        inputs("vit_b_16_img64")?,
    )
}

#[test]
#[ignore = "saves models of up to 500 MB: run it with --release"]
fn large_models_are_the_same_after_loading() -> Result<()> {
    survives("alexnet", alexnet::alexnet(1000)?, inputs("alexnet")?)?;
    survives("resnet50", resnet::resnet50(1000)?, inputs("resnet50")?)?;
    survives("vgg11_bn", vgg::vgg11_bn(1000)?, inputs("vgg11_bn")?)?;
    survives(
        "vit_b_16",
        vit::vit_b_16(64, 1000)?,
        inputs("vit_b_16_img64")?,
    )
}

fn small_bert() -> Result<bert::Bert> {
    bert::Bert::new(&bert::Config {
        vocab_size: 97,
        max_positions: 24,
        length: 10,
        width: 48,
        heads: 4,
        intermediate: 96,
        layers: 2,
        labels: 3,
        dropout: 0.1,
    })
}

fn small_gpt2() -> Result<gpt2::Gpt2> {
    gpt2::Gpt2::new(&gpt2::Config {
        vocab_size: 101,
        block_size: 16,
        n_layer: 2,
        n_head: 4,
        n_embd: 64,
        dropout: 0.1,
    })
}

#[test]
fn a_module_inside_a_module_goes_through_a_file() -> Result<()> {
    #[derive(Module)]
    struct Nested {
        st: nn::Linear,
    }
    #[trace]
    impl Nested {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.st.forward(x)
        }
    }
    let traced = symbolic_trace(&Nested {
        st: nn::Linear::new(4, 4)?,
    })?;
    let file = Scratch::new("pickle_graphmodule");
    traced.save(file.path())?;
    let loaded = GraphModule::load(file.path())?;
    let x = Tensor::rand((3, 4))?;
    let (a, b): (Tensor, Tensor) = (traced.forward(&x)?, loaded.forward(&x)?);
    assert_eq!(bits(&Value::object(a))?, bits(&Value::object(b))?);
    Ok(())
}

/// A user-defined leaf.
#[wrap]
fn scaled_sum(x: &Tensor, y: &Tensor, #[kw] by: f64) -> Result<Tensor> {
    (x + y)? * by
}

#[test]
fn a_users_function_is_found_by_its_path() -> Result<()> {
    let traced = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| scaled_sum(x, y, 0.5)))?;
    let (x, y) = (Tensor::rand(3)?, Tensor::rand(3)?);
    loads_the_same("custom_ops", &traced, vec![x.into_value(), y.into_value()])?;
    let json = json_of(&traced.to_bytes()?)?;
    assert_eq!(
        json["nodes"][2]["target"],
        "behaviour::save_load::scaled_sum"
    );
    assert_eq!(json["nodes"][2]["kwargs"]["by"], 0.5);
    Ok(())
}

#[test]
fn names_types_places_and_provenance_come_back() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.add(NewNode::new(Op::Placeholder("x".into())).type_expr("&Tensor"))?;
    let mut pass = graph.in_pass("double");
    let y = pass.add(
        NewNode::new(Op::CallFunction(operator::mul))
            .args((x, 2.0))
            .name("twice")
            .type_expr("Tensor"),
    )?;
    drop(pass);
    graph.output(y)?;
    let gm = GraphModule::new(Attributes::default(), graph, "Doubled")?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert_eq!(loaded.class_name(), "Doubled");
    for (a, b) in gm.graph().nodes().zip(loaded.graph().nodes()) {
        assert_eq!(a.name().to_string(), b.name().to_string());
        assert_eq!(a.type_expr(), b.type_expr());
        assert_eq!(a.location(), b.location());
        assert_eq!(a.sources(), b.sources());
    }
    let twice = loaded.graph().find_name("twice").map(|n| n.id());
    let told = loaded
        .graph()
        .explain(twice.ok_or_else(|| Error::msg("lost"))?)?;
    assert!(told.contains("save_load.rs") && told.contains("made by pass `double`"));
    Ok(())
}

#[test]
fn what_the_graph_does_not_name_is_kept() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    gm.add_submodule("foo", nn::Linear::new(2, 2)?)?;
    gm.set_buffer("dummy_buffer", &Tensor::ones(1)?)?;
    gm.set_parameter("dummy_parameter", &Tensor::ones(1)?.into_parameter()?)?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert!(loaded.submodule("foo").is_ok());
    assert!(loaded.buffer("dummy_buffer").is_ok());
    assert!(loaded.parameter("dummy_parameter").is_ok());
    assert!(loaded.buffer("dummy_parameter").is_err());
    Ok(())
}

#[test]
fn what_a_transform_made_is_saved() -> Result<()> {
    let mut model = mlp::Mlp::new(4, 8, 2)?;
    model.eval();
    let transformed = symbolic_trace(&model)?.transform(&mut PlainInterpreter)?;
    let x = Tensor::rand((3, 4))?;
    loads_the_same("transformed", &transformed, vec![x.clone().into_value()])?;
    // Saved, loaded, traced again, saved, loaded: still the same numbers.
    let again = symbolic_trace(&GraphModule::from_bytes(&transformed.to_bytes()?)?)?;
    assert_eq!(
        bits(&run(&again, vec![x.clone().into_value()])?)?,
        bits(&run(&transformed, vec![x.into_value()])?)?
    );
    Ok(())
}

#[test]
fn modules_that_nodes_came_from_are_saved() -> Result<()> {
    let traced = symbolic_trace(&nested::Nested::new(4)?)?;
    let loaded = GraphModule::from_bytes(&traced.to_bytes()?)?;
    let stacks = |gm: &GraphModule| -> Vec<Vec<(String, String)>> {
        let nodes = gm.graph().nodes();
        nodes
            .map(|node| {
                let stack = node.module_stack();
                stack
                    .map(|scope| (scope.path.to_string(), scope.type_name.to_string()))
                    .collect()
            })
            .collect()
    };
    let expected = stacks(&traced);
    assert!(expected.iter().any(|stack| stack.len() > 1));
    assert_eq!(stacks(&loaded), expected);
    Ok(())
}

#[test]
fn structures_and_defaults_of_the_signature_are_saved() -> Result<()> {
    let pair = fx_nn::trace::Trace::new(traced!(|pair: Vec<Tensor>, by: f64| &pair[0] * by))
        .concrete("pair", tree!([PH, PH]))
        .concrete("by", 3.0)
        .graph_module()?;
    let x = Tensor::ones(2)?;
    let args = vec![vec![x.clone(), x].into_value(), 3.0.into_value()];
    loads_the_same("structures", &pair, args)
}

#[test]
fn a_tensor_of_two_names_is_stored_once_and_stays_one() -> Result<()> {
    let traced = symbolic_trace(&shared_sub::SharedSub::new(64)?)?;
    let state = traced.state_dict();
    let ids = |gm: &GraphModule| -> Vec<Option<u64>> {
        let state = gm.state_dict();
        state
            .values()
            .map(|value| value.as_object().and_then(Object::object_id))
            .collect()
    };
    let distinct: std::collections::BTreeSet<_> = ids(&traced).into_iter().collect();
    let bytes = traced.to_bytes()?;
    let file = safetensors::SafeTensors::deserialize(&bytes).map_err(Error::other)?;
    assert_eq!(file.len(), distinct.len());
    let loaded = GraphModule::from_bytes(&bytes)?;
    let again: std::collections::BTreeSet<_> = ids(&loaded).into_iter().collect();
    assert_eq!(loaded.state_dict().len(), state.len());
    assert_eq!(again.len(), distinct.len());

    // Two names of one tensor, in one module: trained through one, seen through the other.
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    let tied = Tensor::ones(2)?.into_parameter()?;
    gm.set_parameter("a", &tied)?;
    gm.set_parameter("b", &tied)?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert_eq!(json_of(&gm.to_bytes()?)?["aliases"]["b"], "a");
    let mut a = Tensor::from_value(loaded.parameter("a")?)?;
    a.copy_from(&Tensor::full(2, 7.0, fx_nn::value::DType::F32)?)?;
    assert_eq!(
        Tensor::from_value(loaded.parameter("b")?)?.to_vec()?,
        [7.0, 7.0]
    );
    Ok(())
}

#[test]
fn every_element_type_comes_back() -> Result<()> {
    use fx_nn::value::DType;
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    let values = Tensor::from_vec(vec![0.0f64, 1.0, 2.0, 100.0], [2, 2])?;
    let none = Tensor::from_vec(Vec::<f64>::new(), [0, 2])?;
    let held = DType::ALL.iter().copied();
    for dtype in held.filter(|dtype| fx_nn::candle_dtype(*dtype).is_ok()) {
        let tensor = values.to_dtype(dtype)?;
        gm.set_buffer(&format!("of.{dtype}"), &tensor)?;
        gm.set_buffer(&format!("empty.{dtype}"), &none.to_dtype(dtype)?)?;
        gm.set_buffer(&format!("turned.{dtype}"), &tensor.transpose(0, 1)?)?;
    }
    gm.set_buffer("scalar", &Tensor::from_vec(vec![5i64], ())?)?;
    gm.set_parameter("learned", &values.clone().into_parameter()?)?;
    gm.set_parameter("frozen", &values)?;
    loads_the_same("dtypes", &gm, vec![Tensor::ones(1)?.into_value()])?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let is_variable = |path: &str| -> Result<bool> {
        Ok(Tensor::from_value(loaded.parameter(path)?)?
            .candle()?
            .is_variable())
    };
    assert!(is_variable("learned")? && !is_variable("frozen")?);
    Ok(())
}

#[test]
fn a_loaded_module_learns_and_batch_norm_still_counts() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    gm.add_submodule("bn", nn::BatchNorm2d::new(2)?)?;
    let add = gm.graph().find_name("add").map(|node| node.id());
    let add = add.ok_or_else(|| Error::msg("the graph adds"))?;
    let mut graph = gm.graph_mut();
    let bn = graph.inserting_after(add)?.call_module("bn", (add,), ())?;
    graph
        .node_mut(add)?
        .replace_uses_with_filter(bn, |user| user.id() != bn)?;
    drop(graph);
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    loaded.forward::<Tensor>(&Tensor::rand((2, 2, 3, 3))?)?;
    let count = Tensor::from_value(loaded.buffer("bn.num_batches_tracked")?)?;
    assert_eq!(count.item()?, 1.0);
    assert_eq!(loaded.named_parameters().len(), 2);
    Ok(())
}

#[test]
fn the_file_is_readable_as_weights() -> Result<()> {
    let model = mlp::Mlp::new(4, 8, 2)?;
    let file = Scratch::new("as_weights");
    symbolic_trace(&model)?.save(file.path())?;
    let mut other = mlp::Mlp::new(4, 8, 2)?;
    fx_nn::weights::load(&mut other, file.path())?;
    assert_eq!(other.fc1.weight.to_vec()?, model.fc1.weight.to_vec()?);
    Ok(())
}

/// A file of schema 1, kept permanently: whatever the schema becomes, it loads.
#[test]
fn the_file_of_schema_1_loads() -> Result<()> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/save_load/schema_1.safetensors"
    );
    let gm = GraphModule::load(path)?;
    let x = Tensor::from_vec(vec![1.0f32, -2.0], [1, 2])?;
    let y: Tensor = gm.forward(&x)?;
    assert_eq!(y.to_vec()?, [1.5, 0.0]);
    assert_eq!(
        gm.graph().to_string(),
        include_str!("save_load/schema_1.txt").trim_end()
    );
    Ok(())
}

/// A file of schema 2, which knows its shapes.
#[test]
fn the_file_of_schema_2_loads() -> Result<()> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/save_load/schema_2.safetensors"
    );
    let gm = GraphModule::load(path)?;
    let x = Tensor::from_vec(vec![1.0f32, -2.0], [1, 2])?;
    let y: Tensor = gm.forward(&x)?;
    assert_eq!(y.to_vec()?, [1.5, 0.0]);
    assert_eq!(
        format!("{:#}", gm.graph()),
        include_str!("save_load/schema_2.txt").trim_end()
    );
    Ok(())
}

/// Writes the file that `the_file_of_schema_2_loads` loads.
#[test]
#[ignore = "only a new schema needs a new file, beside this one"]
fn write_the_file_of_this_schema() -> Result<()> {
    let mut layer = nn::Linear::new(2, 2)?;
    layer.weight = Tensor::from_vec(vec![0.5f32, 0.0, 0.0, 1.0], [2, 2])?.into_parameter()?;
    layer.bias = Some(Tensor::from_vec(vec![1.0f32, 0.5], [2])?.into_parameter()?);
    let model = nn::Sequential::new().push(layer).push(nn::ReLU::new());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/save_load");
    let mut gm = symbolic_trace(&model)?;
    gm.infer_shapes(&[spec!["n", 2; F32]])?;
    gm.save(format!("{folder}/schema_2.safetensors"))?;
    std::fs::write(
        format!("{folder}/schema_2.txt"),
        format!("{:#}\n", gm.graph()),
    )
    .map_err(Error::other)
}
