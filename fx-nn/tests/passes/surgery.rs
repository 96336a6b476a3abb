//! Modules replaced by path and type, and the inserted layers: LoRA adapters and int8 weights.

use fx_nn::graph_module::Surgery;
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;

use crate::passes::{is_close, says};

fn gpt2() -> Result<(GraphModule, Tensor)> {
    let mut model = Gpt2::new(&Config {
        vocab_size: 31,
        block_size: 8,
        n_layer: 2,
        n_head: 2,
        n_embd: 16,
        dropout: 0.1,
    })?;
    model.eval();
    nn::set_requires_grad(&mut model, false)?;
    let tokens = Tensor::from_vec((0..8).collect::<Vec<i64>>(), (1, 8))?;
    Ok((symbolic_trace(&model)?, tokens))
}

fn adapters(gm: &mut GraphModule) -> Result<Surgery> {
    gm.replace_modules("h.*.attn.c_attn", |_, linear: &nn::Linear| {
        nn::LoraLinear::from_linear(linear, 4, 0.5)
    })
}

#[test]
fn adapters_change_nothing_until_they_are_trained_and_are_taken_back() -> Result<()> {
    let (mut gm, tokens) = gpt2()?;
    let printed = gm.graph().to_string();
    let before: Tensor = gm.forward(&tokens)?;
    let surgery = adapters(&mut gm)?;
    let paths: Vec<&str> = surgery.replaced.iter().map(|r| &*r.path).collect();
    assert_eq!(paths, ["h.0.attn.c_attn", "h.1.attn.c_attn"]);
    assert_eq!(surgery.replaced[0].old_type, "Linear");
    assert_eq!(surgery.replaced[0].new_type, "LoraLinear");
    // Each adapter: 4 x 16 and 48 x 4 elements.
    let added = 2 * (4 * 16 + 48 * 4) * 4;
    assert_eq!(surgery.bytes_after - surgery.bytes_before, added);
    assert_eq!(gm.graph().to_string(), printed);
    assert_eq!(gm.forward::<Tensor>(&tokens)?.to_vec()?, before.to_vec()?);
    assert_eq!(nn::variables(&gm)?.len(), 4);

    // One step of descent moves the outputs; training in place does not change the module's
    // identity.
    let y: Tensor = gm.forward(&tokens)?;
    let loss = (&y * &y)?.sum(..)?;
    let grads = loss.candle()?.backward().map_err(Error::other)?;
    for variable in nn::variables(&gm)? {
        let gradient = grads.get(variable.as_tensor());
        let gradient = gradient.ok_or_else(|| Error::msg("every adapter has a gradient"))?;
        let step = gradient.affine(-1e-3, 0.0).map_err(Error::other)?;
        let next = (variable.as_tensor() + step).map_err(Error::other)?;
        variable.set(&next.detach()).map_err(Error::other)?;
    }
    let trained: Tensor = gm.forward(&tokens)?;
    assert_ne!(trained.to_vec()?, before.to_vec()?);

    // Merged into the weights, the same numbers.
    let mut merged = gm.clone();
    merged.replace_modules("**", |_, lora: &nn::LoraLinear| lora.merged())?;
    is_close(&merged.forward(&tokens)?, &trained, 1e-5)?;

    // A copy can be undone too, and nothing is lost by undoing twice on different modules.
    let mut copy = gm.clone();
    surgery.undo(&mut copy)?;
    surgery.undo(&mut gm)?;
    for gm in [&gm, &copy] {
        assert_eq!(gm.forward::<Tensor>(&tokens)?.to_vec()?, before.to_vec()?);
        assert_eq!(nn::variables(gm)?.len(), 0);
    }
    let again = surgery.undo(&mut gm).err().map(|e| e.to_string());
    says(
        &again.unwrap_or_default(),
        &["`h.0.attn.c_attn` has been changed", "a `Linear`"],
    );
    Ok(())
}

#[test]
fn undo_refuses_a_place_that_was_changed() -> Result<()> {
    let (mut gm, tokens) = gpt2()?;
    let surgery = adapters(&mut gm)?;
    let lora = nn::LoraLinear::from_linear(&nn::Linear::new(16, 48)?, 2, 1.0)?;
    gm.set_submodule("h.1.attn.c_attn", lora)?;
    let before: Tensor = gm.forward(&tokens)?;
    let error = surgery.undo(&mut gm).err().map(|e| e.to_string());
    says(
        &error.unwrap_or_default(),
        &[
            "`h.1.attn.c_attn` has been changed",
            "other tensors",
            "set_submodule",
        ],
    );
    // Not even the first was put back.
    assert_eq!(gm.forward::<Tensor>(&tokens)?.to_vec()?, before.to_vec()?);
    assert!(gm.delete_submodule("h.1.attn.c_attn"));
    assert!(surgery.undo(&mut gm).is_err());
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Net {
    act: nn::LeakyReLU,
    drop: nn::Dropout,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.drop.forward(&self.act.forward(x)?)
    }
}

fn leaky(negative_slope: f64) -> nn::LeakyReLU {
    nn::LeakyReLU { negative_slope }
}

/// Modules without tensors differ by their configuration, which does not include the training flag.
#[test]
fn undo_tells_modules_of_other_configurations() -> Result<()> {
    let mut gm = symbolic_trace(&Net {
        act: leaky(0.1),
        drop: nn::Dropout::new(0.5)?,
    })?;
    let surgery = gm.replace_modules("act", |_, _: &nn::LeakyReLU| Ok(leaky(0.2)))?;
    let dropped = gm.replace_modules("drop", |_, _: &nn::Dropout| nn::Dropout::new(0.25))?;
    gm.eval();
    dropped.undo(&mut gm)?;
    gm.set_submodule("act", leaky(0.3))?;
    let error = surgery.undo(&mut gm).err().map(|e| e.to_string());
    says(
        &error.unwrap_or_default(),
        &["`act` has been changed", "another configuration"],
    );
    gm.set_submodule("act", leaky(0.2))?;
    surgery.undo(&mut gm)
}

/// A module that takes a structure apart is not called like one that takes it whole.
#[test]
fn a_graph_module_of_structures_stands_where_one_was() -> Result<()> {
    let pair = || {
        let sum = traced!(|xs: IndexMap<String, Tensor>| &xs["a"] + &xs["b"]);
        let structure = fx_nn::tree!({"a": PH, "b": PH});
        Trace::new(sum).concrete("xs", structure).graph_module()
    };
    let whole = symbolic_trace(traced!(|xs: &Tensor| xs * 2.0))?;
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    gm.add_submodule("pair", pair()?)?;
    gm.add_submodule("whole", whole.clone())?;
    assert!(!gm.submodule("pair")?.module()?.input_trees().is_empty());
    let result = gm.replace_modules("pair", |_, _: &GraphModule| Ok(whole.clone()));
    says(
        &result.err().map(|e| e.to_string()).unwrap_or_default(),
        &["`pair`", "arguments taken apart as"],
    );
    let result = gm.replace_modules("whole", |_, _: &GraphModule| pair());
    assert!(result.is_err());
    gm.replace_modules("pair", |_, _: &GraphModule| pair())
        .map(drop)
}

#[derive(Module, Clone, Debug)]
struct Bilinear {
    linear: nn::Linear,
}

#[trace(leaf)]
impl Bilinear {
    fn forward(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        self.linear.forward(&(x * y)?)
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_changes() -> Result<()> {
    let (mut gm, tokens) = gpt2()?;
    let before: Tensor = gm.forward(&tokens)?;
    let types = |gm: &GraphModule| -> Vec<&str> {
        let modules = gm.attributes().modules.values();
        modules.map(|m| (**m).type_name()).collect()
    };
    let types_before: Vec<String> = types(&gm).iter().map(ToString::to_string).collect();
    let refused = |gm: &mut GraphModule, result: Result<Surgery>, parts: &[&str]| -> Result<()> {
        says(
            &result.err().map(|e| e.to_string()).unwrap_or_default(),
            parts,
        );
        assert_eq!(types(gm), types_before);
        assert_eq!(gm.forward::<Tensor>(&tokens)?.to_vec()?, before.to_vec()?);
        Ok(())
    };
    // Half way.
    let result = gm.replace_modules("**", |path, linear: &nn::Linear| match path {
        "h.1.mlp.c_fc" => Err(Error::msg("enough")),
        _ => nn::Int8Linear::from_linear(linear),
    });
    refused(
        &mut gm,
        result,
        &[
            "while replacing %h_1_mlp_c_fc",
            "gpt2.rs",
            "`h.1.mlp.c_fc`: enough",
        ],
    )?;
    let result = gm.replace_modules("h.*.mlp.c_fc", |_, linear: &nn::Linear| {
        Ok(Bilinear {
            linear: linear.clone(),
        })
    });
    refused(
        &mut gm,
        result,
        &[
            "while replacing %h_0_mlp_c_fc",
            "the `Linear` at `h.0.mlp.c_fc` takes (x: &Tensor)",
            "the `Bilinear` for its place (x: &Tensor, y: &Tensor)",
            "must take the same parameters",
        ],
    )?;
    let result = gm.replace_modules(
        "h.*.attn.c_atn",
        |_, linear: &nn::Linear| Ok(linear.clone()),
    );
    refused(&mut gm, result, &["`h.*.attn.c_atn` matches no module"])?;
    let result = gm.replace_modules("h.*.attn.attn_dropout", |_, linear: &nn::Linear| {
        Ok(linear.clone())
    });
    refused(
        &mut gm,
        result,
        &["fits no `Linear`", "`h.0.attn.attn_dropout` is a `Dropout`"],
    )
}

#[test]
fn bytes_stand_for_weights_to_half_a_step() -> Result<()> {
    let mut linear = nn::Linear::new(50, 20)?;
    let mut data = linear.weight.to_vec()?;
    // A row of zeros, and one of one large number.
    data[..50].fill(0.0);
    data[50..100].fill(0.0);
    data[77] = -300.0;
    let data: Vec<f32> = data.into_iter().map(|x| x as f32).collect();
    linear.weight = Tensor::from_vec(data, (20, 50))?;
    let small = nn::Int8Linear::from_linear(&linear)?;
    let (exact, rounded) = (
        linear.weight.to_vec()?,
        small.dequantized()?.weight.to_vec()?,
    );
    let scales = small.scale.to_vec()?;
    for (at, (a, b)) in exact.iter().zip(&rounded).enumerate() {
        assert!(
            (a - b).abs() <= scales[at / 50] * 0.5001,
            "{at}: {a} and {b}"
        );
    }
    assert_eq!((rounded[0], rounded[77]), (0.0, -300.0));
    let x = Tensor::randn((4, 50))?;
    is_close(
        &small.forward(&x)?,
        &small.dequantized()?.forward(&x)?,
        1e-5,
    )?;
    assert_eq!(nn::variables(&small)?.len(), 0);
    // Traced through, it computes the same.
    let through = Trace::new(&small).graph_module()?;
    assert_eq!(
        through.forward::<Tensor>(&x)?.to_vec()?,
        small.forward(&x)?.to_vec()?
    );
    linear.weight = Tensor::full((2, 2), f64::NAN, DType::F32)?;
    let error = nn::Int8Linear::from_linear(&linear)
        .err()
        .map(|e| e.to_string());
    says(
        &error.unwrap_or_default(),
        &["int8: the weight at [0, 0] is NaN"],
    );
    Ok(())
}

/// Steps are counted in the scale that is kept, and none is too small for its type.
#[test]
fn scales_are_those_of_the_weights_type() -> Result<()> {
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        for size in [1.37, 1.37e-6, 1e-41] {
            let data: Vec<f32> = (0..64).map(|i| ((i - 31) as f64 * size) as f32).collect();
            let weight = Tensor::from_vec(data, (1, 64))?.to_dtype(dtype)?;
            let exact = weight.to_vec()?;
            let small = nn::Int8Linear::from_linear(&nn::Linear { weight, bias: None })?;
            assert_eq!(small.scale.dtype()?, dtype);
            let scale = small.scale.to_vec()?[0];
            assert!(scale > 0.0, "{dtype:?} {size}");
            for (a, q) in exact.iter().zip(small.weight.to_vec()?) {
                let off = (a - scale * (q - 128.0)).abs() / scale;
                assert!(off <= 0.5001, "{dtype:?} {size}: {off} steps");
            }
        }
    }
    Ok(())
}

#[test]
fn quantized_and_adapted_modules_are_saved_and_loaded() -> Result<()> {
    let (mut gm, tokens) = gpt2()?;
    let surgery = gm.replace_modules("h.*.mlp.*", |_, l: &nn::Linear| {
        nn::Int8Linear::from_linear(l)
    })?;
    assert!(surgery.bytes_after < surgery.bytes_before);
    adapters(&mut gm)?;
    let path = std::env::temp_dir().join(format!("fx_surgery_{}.safetensors", std::process::id()));
    gm.save(&path)?;
    let loaded = GraphModule::load(&path)?;
    std::fs::remove_file(&path).map_err(Error::other)?;
    assert_eq!(
        loaded.forward::<Tensor>(&tokens)?.to_vec()?,
        gm.forward::<Tensor>(&tokens)?.to_vec()?
    );
    Ok(())
}

#[test]
fn ranks_must_fit() -> Result<()> {
    let linear = nn::Linear::new(4, 6)?;
    for rank in [0, 5] {
        let error = nn::LoraLinear::from_linear(&linear, rank, 1.0).err();
        says(
            &error.map(|e| e.to_string()).unwrap_or_default(),
            &["between 1 and the smaller size"],
        );
    }
    Ok(())
}
