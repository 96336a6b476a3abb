//! Tensors and models without data.

use fx_nn::models::{gpt2, lstm_classifier::LstmClassifier, resnet, unet};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::weights::{Checkpoint, Materialise};

/// What a module gives for a fake tensor.
fn shown<M: Module>(model: &M, input: &Tensor) -> Result<String> {
    let mut out = Value::None;
    model.run(&[&Value::of(input)], &mut out)?;
    Ok(format!("{:?}", Tensor::from_value(out)?))
}

#[test]
fn models_without_data_give_the_shapes_of_real_runs() -> Result<()> {
    let image = Tensor::fake(spec!["n", 3, 64, 64; F32])?;
    let mut model = nn::fake(|| resnet::resnet18(10))?;
    model.eval();
    assert_eq!(shown(&model, &image)?, "Tensor fake float32[n, 10]");
    let x = Tensor::fake(spec![2, 3, 50, 70; F32])?;
    assert_eq!(shown(&model, &x)?, "Tensor fake float32[2, 10]");
    // Through the graph too, whose parameters are fake.
    let gm = symbolic_trace(&model)?;
    let y: Tensor = gm.forward(&image)?;
    assert_eq!(format!("{y:?}"), "Tensor fake float32[n, 10]");
    assert_eq!(gm.named_parameters().len(), model.named_parameters().len());
    let real = Tensor::ones((1, 3, 32, 32))?;
    let problem = gm.forward::<Tensor>(&real).unwrap_err().to_string();
    assert!(
        problem.contains("has no data") || problem.contains("fake"),
        "{problem}"
    );

    let mut language = nn::fake(|| {
        gpt2::Gpt2::new(&gpt2::Config {
            vocab_size: 50,
            block_size: 8,
            n_layer: 2,
            n_head: 2,
            n_embd: 16,
            dropout: 0.0,
        })
    })?;
    language.eval();
    let ids = Tensor::fake(spec!["batch", 8; I64])?;
    assert_eq!(shown(&language, &ids)?, "Tensor fake float32[batch, 8, 50]");
    Ok(())
}

#[test]
fn other_models_too() -> Result<()> {
    let mut model = nn::fake(|| unet::UNet::new(3, 2, 8))?;
    model.eval();
    let x = Tensor::fake(spec!["n", 3, "16*h", "16*w"; F32])?;
    assert_eq!(shown(&model, &x)?, "Tensor fake float32[n, 2, 16*h, 16*w]");
    Ok(())
}

#[test]
fn sizes_of_fakes_are_numbers_or_names() -> Result<()> {
    let x = Tensor::fake(spec!["n", 6; F32])?;
    assert_eq!(x.size(1)?.concrete(), Some(6));
    assert_eq!(x.size(0)?.concrete(), None);
    assert_eq!(x.ndim()?.concrete(), Some(2));
    let doubled = (x.size(0)? * 2)?;
    assert_eq!(
        format!("{:?}", x.view((doubled, 3))?),
        "Tensor fake float32[2*n, 3]"
    );
    assert_eq!(
        format!("{:?}", x.i((.., 1..4))?),
        "Tensor fake float32[n, 3]"
    );
    assert_eq!(
        format!("{:?}", (&x + 1.0)?.gt(0.5)?),
        "Tensor fake bool[n, 6]"
    );
    assert_eq!(
        format!("{:?}", Tensor::zeros((x.size(0)?, 2))?),
        "Tensor fake float32[n, 2]"
    );
    assert_eq!(x.numel()?.to_string(), "6*n");
    assert!(
        x.dims()
            .unwrap_err()
            .to_string()
            .contains("known by name alone")
    );
    let (n, columns) = x.dims2()?;
    assert_eq!((n.to_string(), columns.concrete()), ("n".into(), Some(6)));
    let found = format!("{:?}", ops::nonzero(&x)?);
    assert!(found.starts_with("Tensor fake int64[u"), "{found}");
    let rows = Tensor::fake(spec![3, "n"; F32])?.unbind(0)?;
    assert_eq!(rows.known().len(), 3);
    Ok(())
}

#[test]
fn a_fake_model_is_loaded_whole_or_not_at_all() -> Result<()> {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("fx_fakes_{}.safetensors", std::process::id()));
    let mut trained = resnet::resnet18(10)?;
    trained.eval();
    fx_nn::weights::save(&trained, &path)?;
    let weights = Checkpoint::open(&path)?;

    let mut other = nn::fake(|| resnet::resnet18(12))?;
    let problem = other.materialise(&weights).unwrap_err().to_string();
    assert!(problem.contains("fc.weight"), "{problem}");
    assert!(
        other
            .named_parameters()
            .values()
            .all(|p| p.as_object().is_some_and(|p| p.is_fake()))
    );

    let mut model = nn::fake(|| resnet::resnet18(10))?;
    model.eval();
    model.materialise(&weights)?;
    std::fs::remove_file(&path).map_err(Error::other)?;
    let x = Tensor::rand((1, 3, 32, 32))?;
    assert_eq!(model.forward(&x)?.to_vec()?, trained.forward(&x)?.to_vec()?);
    assert!(model.fc.weight.candle()?.is_variable());
    Ok(())
}

#[test]
fn recurrent_layers_and_skips() -> Result<()> {
    let layer = nn::fake(|| nn::LSTM::new(5, 7))?;
    let (y, _) = layer.forward(&Tensor::fake(spec!["t", "n", 5; F32])?, None)?;
    assert_eq!(format!("{y:?}"), "Tensor fake float32[t, n, 7]");
    let model = nn::fake(|| LstmClassifier::new(30, 8, 16, 4))?;
    let tokens = Tensor::fake(spec!["n", 12; I64])?;
    assert_eq!(shown(&model, &tokens)?, "Tensor fake float32[n, 4]");
    Ok(())
}
