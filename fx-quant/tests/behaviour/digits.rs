//! Networks that were trained on images of digits: integers find the same classes.

#[path = "../../examples/digits/nets.rs"]
mod nets;

use fx_nn::prelude::*;
use fx_nn::weights;
use fx_quant::{Integers, QConfig, Quantize};

use nets::{TRAIN, accuracy, classes_of, depthwise, digits, folder, mlp, part, residual, vit};

macro_rules! recorded {
    ($name:ident) => {{
        let mut model = $name()?;
        weights::load(
            &mut model,
            folder().join(concat!(stringify!($name), ".safetensors")),
        )?;
        model.eval();
        (stringify!($name), symbolic_trace(&model)?)
    }};
}

#[test]
fn integers_find_the_classes_of_floats() -> Result<()> {
    let (images, classes) = digits()?;
    let test = part(&images, TRAIN, classes.len() - TRAIN)?;
    let batches: Vec<Tensor> = (0..8)
        .map(|at| part(&images, at * 50, 50))
        .collect::<Result<_>>()?;
    for (name, gm) in [
        recorded!(mlp),
        recorded!(residual),
        recorded!(depthwise),
        recorded!(vit),
    ] {
        let right = accuracy(&gm, &test, &classes[TRAIN..])?;
        let float = classes_of(&gm, &test)?;
        let agrees = |config: QConfig| -> Result<f64> {
            let plan = Quantize::new(config).plan(&gm)?;
            let mut int8 = plan.convert(&plan.calibrate(&batches)?)?;
            let report = int8.lower(&Integers::new())?;
            assert!(report.failed.is_empty(), "{name}: {report}");
            let found = classes_of(&int8, &test)?;
            let same = found.iter().zip(&float).filter(|(a, b)| a == b).count();
            Ok(same as f64 / float.len() as f64)
        };
        let per_channel = agrees(QConfig::default())?;
        println!("{name}: right {right:.4} agreement {per_channel:.4}");
        assert!(right >= 0.95, "{name}: {right}");
        assert!(per_channel >= 0.98, "{name}: {per_channel}");
    }
    Ok(())
}
