//! Crates without `std` compute what the compiled module does, and refuse what they cannot have.

use fx_nn::cpu::{Cpu, StaticCrate, Target, ToCrate};
use fx_nn::models::bert::{self, Bert};
use fx_nn::models::convnext::ConvNeXt;
use fx_nn::models::gpt2::{self, Gpt2};
use fx_nn::models::lstm_classifier::LstmClassifier;
use fx_nn::models::mobilenet::mobilenet_v2;
use fx_nn::models::resnet::resnet18;
use fx_nn::models::vit::{self, VisionTransformer};
use fx_nn::module::Module;
use fx_nn::no_grad;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, FromValue};
use fx_nn::value::Value;

/// The largest difference, and the largest number.
fn apart(a: &Tensor, b: &Tensor) -> Result<[f64; 2]> {
    assert_eq!(a.dims()?, b.dims()?);
    let (a, b): (Vec<f64>, Vec<f64>) = (a.reshape(-1)?.to_vec()?, b.reshape(-1)?.to_vec()?);
    let pairs = a.iter().zip(&b);
    let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    Ok([apart, b.iter().fold(0.0, |most: f64, x| most.max(x.abs()))])
}

/// A crate of a graph module, which gives what the compiled module gives.
fn agrees(gm: &GraphModule, inputs: &[&Tensor]) -> Result<StaticCrate> {
    let args = || CallArgs {
        args: inputs.iter().map(|x| Value::of((*x).clone())).collect(),
        kwargs: Vec::new(),
    };
    let made = gm.to_crate(Target::Static, args())?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(args()))?;
    let expected: Value = no_grad(|| fast.forward(args()))?;
    let expected = match &expected {
        Value::Tuple(items) | Value::List(items) => items.to_vec(),
        one => vec![one.clone()],
    };
    let found = made.run(inputs)?;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let expected = Tensor::from_value(expected)?;
        let [apart, largest] = apart(found, &expected)?;
        assert!(
            apart <= 1e-5 * largest.max(1.0),
            "{apart} of {largest}\n{}",
            made.source()
        );
    }
    Ok(made)
}

/// Has convolutions keep the size of what they are given, so that results depend on all of them.
fn enlarge(model: &dyn Module) -> Result<()> {
    for (_, value) in model.named_parameters() {
        if let Some(weight) = value.downcast_ref::<Tensor>()
            && weight.dims()?.len() == 4
        {
            // What a layer is made with, times the root of 6.
            weight.clone().copy_from(&(weight * 2.45)?)?;
        }
    }
    Ok(())
}

fn graph(mut model: impl Module + 'static) -> Result<GraphModule> {
    nn::set_requires_grad(&mut model, false)?;
    enlarge(&model)?;
    let mut gm = symbolic_trace(&model)?;
    gm.eval();
    Ok(gm)
}

#[test]
fn images() -> Result<()> {
    fx_nn::manual_seed(0);
    let x = Tensor::randn((1, 3, 64, 64))?;
    agrees(&graph(mobilenet_v2(10)?)?, &[&x])?;
    agrees(&graph(resnet18(10)?)?, &[&Tensor::randn((2, 3, 33, 47))?])?;
    let stages = [(16, 1), (24, 1), (32, 2), (32, 1)];
    agrees(&graph(ConvNeXt::new(stages, 0.0, 10)?)?, &[&x])?;
    let config = vit::Config {
        image_size: 32,
        patch_size: 8,
        num_layers: 2,
        num_heads: 4,
        hidden_dim: 32,
        mlp_dim: 64,
        num_classes: 10,
    };
    let x = Tensor::randn((2, 3, 32, 32))?;
    agrees(&graph(VisionTransformer::new(&config)?)?, &[&x])?;
    Ok(())
}

#[test]
fn texts() -> Result<()> {
    fx_nn::manual_seed(1);
    let config = gpt2::Config {
        vocab_size: 64,
        block_size: 32,
        n_layer: 2,
        n_head: 4,
        n_embd: 32,
        dropout: 0.0,
    };
    for length in [1, 17] {
        let tokens: Vec<i64> = (0..length).map(|i| i * 37 % 64).collect();
        let tokens = Tensor::from_vec(tokens, (1, length as usize))?;
        agrees(&graph(Gpt2::new(&config)?)?, &[&tokens])?;
        agrees(&graph(LstmClassifier::new(64, 16, 24, 5)?)?, &[&tokens])?;
    }
    let config = bert::Config {
        vocab_size: 64,
        max_positions: 16,
        length: 9,
        width: 32,
        heads: 4,
        intermediate: 48,
        layers: 2,
        labels: 3,
        dropout: 0.0,
    };
    let tokens = Tensor::from_vec((0..18).collect::<Vec<i64>>(), (2, 9))?;
    let kinds = Tensor::from_vec(vec![0i64; 18], (2, 9))?;
    let mask = Tensor::ones((2, 9))?;
    agrees(&graph(Bert::new(&config)?)?, &[&tokens, &mask, &kinds])?;
    Ok(())
}

/// What only moves elements goes where the function says, as a view or by a short table.
#[test]
fn moved_elements() -> Result<()> {
    fx_nn::manual_seed(2);
    let slopes = Tensor::from_vec(vec![0.5f32, -0.25, 0.1, 0.0], 4)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let turned = ops::flip(x, -1)?;
        let parts = ops::unbind(&turned, 0)?;
        let shuffled = ops::roll(&ops::pixel_shuffle(x, 2)?, 1, 2)?;
        let pooled = ops::max_pool1d(&parts.get(1)?, 2, 2, 1, 1, false)?;
        let means = ops::avg_pool1d(&pooled, 2, 1, 0, false, true)?;
        let bent = ops::prelu(x, &slopes)?;
        Ok((shuffled, means, bent, ops::movedim(x, 0, 2)?.contiguous()?))
    }))?;
    let x = Tensor::randn((2, 4, 3, 5))?;
    let made = gm.to_crate(Target::Static, &x)?;
    let expected: (Tensor, Tensor, Tensor, Tensor) = gm.forward(&x)?;
    let expected = [expected.0, expected.1, expected.2, expected.3];
    for (found, expected) in made.run(&[&x])?.iter().zip(&expected) {
        let [apart, _] = apart(found, expected)?;
        assert!(apart <= 1e-6, "{apart}\n{}", made.source());
    }
    assert!(
        made.source().contains("places: [4, 3, 2, 1, 0]"),
        "{}",
        made.source()
    );
    Ok(())
}

/// A network of images: convolutions of all kinds, norms, pools, and what moves pixels.
fn image_steps() -> Result<GraphModule> {
    let first = nn::Conv2d::new(2, 6, 3)?.stride(2).padding(1);
    let each = nn::Conv2d::grouped(6, 6, (3, 2), 6)?.padding((1, 0));
    let up = nn::ConvTranspose2d::new(6, 3, 2)?.stride(2);
    let mut norm = nn::BatchNorm2d::new(3)?;
    norm.running_mean = Some(Tensor::from_vec(vec![0.1f32, -0.2, 0.3], 3)?);
    norm.eval();
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = first.forward(x)?.relu()?;
        let z = ops::pad(&each.forward(&y)?, (0, 1), "constant", Some(0.5))?;
        let z = ops::hardswish(&(z + &y)?)?;
        let u = norm.forward(&up.forward(&z)?)?;
        let a = ops::max_pool2d(&u, 3, 2, 1, 1, true)?;
        let b = ops::avg_pool2d(&u, 2, 2, 0, false, true)?;
        let places = Tensor::from_vec(vec![3i64, 0, 0], 3)?;
        let c = ops::cat(
            &[a.narrow(2, 0, 3)?.narrow(3, 0, 6)?, b.narrow(2, 0, 3)?],
            1,
        )?
        .index_select(3, &places)?;
        Ok((
            ops::adaptive_avg_pool2d(&u, (2, 3))?,
            c.log_softmax(1)?,
            u.amax((2, 3))?,
        ))
    }))?;
    nn::set_requires_grad(&mut gm, false)?;
    Ok(gm)
}

/// Rows: products, attention, norms and functions of elements.
fn row_steps() -> Result<GraphModule> {
    let (q, k, v) = (
        nn::Linear::new(8, 8)?,
        nn::Linear::new(8, 8)?,
        nn::Linear::new(8, 8)?,
    );
    let (layer, rms) = (nn::LayerNorm::new(8)?, nn::RMSNorm::new(8)?);
    let mut gm = symbolic_trace(traced!(|x: &Tensor, mask: &Tensor| {
        let heads = |x: Tensor| x.reshape((2, 5, 2, 4))?.transpose(1, 2);
        let (q, k, v) = (
            heads(q.forward(x)?)?,
            heads(k.forward(x)?)?,
            heads(v.forward(x)?)?,
        );
        let causal = ops::scaled_dot_product_attention(&q, &k, &v, None, 0.0, true, None, false)?;
        let masked =
            ops::scaled_dot_product_attention(&q, &k, &v, Some(mask), 0.0, false, None, false)?;
        let y = (causal + masked)?.transpose(1, 2)?.reshape((2, 5, 8))?;
        let y = ops::gelu(&layer.forward(&(y + x)?)?, "none")?;
        let z = (rms.forward(&y)? * x.sigmoid()?)?;
        let scores = z.matmul(&y.transpose(1, 2)?)?.softmax(-1)?;
        let w = ((z.exp()? / 3.0)? - z.abs()?.sqrt()?)?
            .tanh()?
            .clamp(-0.5, 0.75)?;
        let chosen = ops::r#where(&w.gt(0.0)?, &w, &(w.neg()? * 2.0)?)?;
        Ok((scores, chosen.mean(1)?, chosen.sum_keepdim((0, 2))?))
    }))?;
    nn::set_requires_grad(&mut gm, false)?;
    Ok(gm)
}

/// Sequences: a table, and networks of three kinds.
fn sequence_steps() -> Result<GraphModule> {
    let table = nn::Embedding::new(7, 4)?;
    let lstm = nn::LSTM::new(4, 3)?.bidirectional(true)?;
    let gru = nn::GRU::new(6, 5)?;
    let rnn = nn::RNN::new(5, 2)?;
    let mut gm = symbolic_trace(traced!(|tokens: &Tensor| {
        let x = table.forward(tokens)?;
        let (x, _) = lstm.forward(&x, None)?;
        let (x, _) = gru.forward(&x, None)?;
        let (x, last) = rnn.forward(&x, None)?;
        Ok((x, last))
    }))?;
    nn::set_requires_grad(&mut gm, false)?;
    gm.eval();
    Ok(gm)
}

/// The crates that the tests of `fx-static` compile, with their inputs.
fn recorded() -> Result<Vec<(&'static str, GraphModule, Vec<Tensor>)>> {
    fx_nn::manual_seed(5);
    let ramp = |sizes: &[usize]| {
        let count = sizes.iter().product::<usize>();
        let floats = (0..count).map(|i| (i * 7 % 25) as f32 / 12.5 - 1.0);
        Tensor::from_vec(floats.collect(), sizes)
    };
    let tokens = Tensor::from_vec(vec![3i64, 0, 6, 6, 1, 2], (3, 2))?;
    Ok(vec![
        ("images", image_steps()?, vec![ramp(&[2, 2, 9, 11])?]),
        (
            "rows",
            row_steps()?,
            vec![ramp(&[2, 5, 8])?, ramp(&[5, 5])?],
        ),
        ("sequences", sequence_steps()?, vec![tokens]),
    ])
}

/// The texts that `fx-static` compiles are those that are written now: `UPDATE_STATIC=1` writes them again.
#[test]
fn recorded_crates_are_what_is_written() -> Result<()> {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fx-static/tests/crates");
    for (name, gm, inputs) in recorded()? {
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let made = agrees(&gm, &inputs)?;
        let folder = crates.join(name);
        if std::env::var_os("UPDATE_STATIC").is_some() {
            let _ = std::fs::remove_dir_all(&folder);
            made.write(&folder, name)?;
            let mut given = String::new();
            for tensor in made.run(&inputs)? {
                let floats: Vec<f32> = tensor.reshape(-1)?.to_vec1()?;
                given.extend(floats.iter().map(|x| format!("{x:?}\n")));
            }
            std::fs::write(folder.join("given.txt"), given).map_err(Error::other)?;
            // The crate is a module of a test there.
            std::fs::remove_file(folder.join("Cargo.toml")).map_err(Error::other)?;
        }
        let text = std::fs::read_to_string(folder.join("src/lib.rs")).map_err(Error::other)?;
        assert!(text == made.source(), "{name}: {}", made.source());
    }
    Ok(())
}

/// Why there is no crate.
fn refused(gm: &GraphModule, x: &Tensor) -> String {
    let error = gm.to_crate(Target::Static, x).map(drop).err();
    error.map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_a_crate_cannot_have_is_listed() -> Result<()> {
    let x = Tensor::ones((2, 3))?;
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let places = x.argmax(1, false)?;
        Ok((x.cumsum(1)?, places, x.relu()?))
    }))?;
    let error = refused(&gm, &x);
    for part in [
        "2 calls cannot be in a static crate",
        "%cumsum = fx_nn::ops::cumsum",
        "%argmax = fx_nn::ops::argmax",
        "static_crates.rs:",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // A layer in training.
    let gm = symbolic_trace(&nn::Sequential::new().push(nn::BatchNorm1d::new(3)?))?;
    let error = refused(&gm, &x);
    assert!(
        error.contains("%_0 = 0") && error.contains("is in training"),
        "{error}"
    );
    // A branch.
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        fx_nn::control::cond(x.sum(..)?.gt(0.0)?, || x.relu(), || x.neg())
    }))?;
    let error = refused(&gm, &x);
    assert!(error.contains("is a branch or a loop"), "{error}");
    // Another element type, by the name of its input.
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let error = refused(&gm, &x.to_dtype(DType::BF16)?);
    assert!(
        error.contains("%x = x") && error.contains("inputs are tensors of f32"),
        "{error}"
    );
    Ok(())
}
