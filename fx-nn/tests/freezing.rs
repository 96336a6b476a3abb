//! Parameters frozen by the patterns of their paths.

use fx_nn::ErrorKind;
use fx_nn::prelude::*;

#[derive(Module)]
struct Block {
    attention: nn::Linear,
    norm: nn::LayerNorm,
}

#[derive(Module)]
struct Model {
    embedding: nn::Embedding,
    blocks: Vec<Block>,
    head: nn::Linear,
}

fn model() -> Result<Model> {
    let block = || -> Result<Block> {
        Ok(Block {
            attention: nn::Linear::new(4, 4)?,
            norm: nn::LayerNorm::new(4)?,
        })
    };
    let embedding = nn::Embedding::new(4, 4)?;
    let mut head = nn::Linear::new(4, 4)?;
    head.weight = embedding.weight.clone();
    Ok(Model {
        embedding,
        blocks: (0..3).map(|_| block()).collect::<Result<_>>()?,
        head,
    })
}

/// The paths of the trained parameters.
fn trained(model: &Model) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for (path, value) in model.named_parameters() {
        let is_trained = value
            .downcast_ref::<Tensor>()
            .ok_or_else(|| Error::msg("a tensor"))?
            .candle()?
            .is_variable();
        if is_trained {
            paths.push(path);
        }
    }
    Ok(paths)
}

#[test]
fn patterns_have_braces_and_stars() -> Result<()> {
    let mut model = model()?;
    nn::set_requires_grad(&mut model, false)?;
    assert_eq!(trained(&model)?, Vec::<String>::new());
    let changed = nn::set_requires_grad_at(&mut model, "blocks.{0,2}.attention.*", true)?;
    assert_eq!(changed, 4);
    let expected = [
        "blocks.0.attention.weight",
        "blocks.0.attention.bias",
        "blocks.2.attention.weight",
        "blocks.2.attention.bias",
    ];
    assert_eq!(trained(&model)?, expected);
    assert_eq!(nn::set_requires_grad_at(&mut model, "**.bias", false)?, 7);
    assert_eq!(trained(&model)?, [expected[0], expected[2]]);
    // A star ends at a dot.
    assert!(nn::set_requires_grad_at(&mut model, "blocks.*.weight", true).is_err());
    assert_eq!(
        nn::set_requires_grad_at(&mut model, "blocks.?.norm.weight", true)?,
        3
    );
    Ok(())
}

#[test]
fn a_tied_parameter_is_one_under_each_of_its_paths() -> Result<()> {
    for path in ["embedding.*", "head.weight"] {
        let mut model = model()?;
        assert_eq!(nn::set_requires_grad_at(&mut model, path, false)?, 1);
        let id = |x: &Tensor| x.candle().map(candle_core::Tensor::id);
        assert_eq!(id(&model.embedding.weight)?, id(&model.head.weight)?);
        assert!(!model.embedding.weight.candle()?.is_variable());
        assert!(
            trained(&model)?
                .iter()
                .all(|path| !path.starts_with("embedding"))
        );
    }
    Ok(())
}

#[test]
fn a_pattern_of_nothing_is_an_error_that_names_paths() -> Result<()> {
    let mut model = model()?;
    let before = trained(&model)?;
    let error = nn::set_requires_grad_at(&mut model, "block.*", false)
        .err()
        .ok_or_else(|| Error::msg("an error"))?;
    assert!(matches!(error.kind(), ErrorKind::Unknown { name, .. } if name == "block.*"));
    assert!(error.to_string().contains("embedding.weight"), "{error}");
    assert_eq!(trained(&model)?, before);
    Ok(())
}
