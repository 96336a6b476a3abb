//! Calls with other parameters, and the parameters of several modules as one.

use fx_nn::func::{functional_call, stack_module_state};
use fx_nn::prelude::*;

/// A layer that is called, whose weight is used by itself too, and a buffer.
#[derive(Module, Clone, Debug)]
struct Net {
    linear: nn::Linear,
    tied: nn::Linear,
    #[module(buffer)]
    shift: Tensor,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.tied.forward(&self.linear.forward(x)?)?;
        (h.matmul(&self.linear.weight)? + &self.shift)?.tanh()
    }
}

fn net() -> Result<Net> {
    let linear = nn::Linear::new(3, 3)?.bias(false);
    Ok(Net {
        tied: linear.clone(),
        linear,
        shift: Tensor::rand(3)?,
    })
}

fn other_weight() -> Result<Tensor> {
    Tensor::from_vec((0..9).map(|i| i as f32 / 9.0).collect(), (3, 3))?.into_parameter()
}

#[test]
fn given_tensors_count_for_one_call() -> Result<()> {
    let model = net()?;
    let gm = symbolic_trace(&model)?;
    let x = Tensor::rand((2, 3))?;
    let before = model.forward(&x)?.to_vec()?;
    let weight = other_weight()?;
    let by_hand = x
        .matmul(&weight.t()?)?
        .matmul(&weight.t()?)?
        .matmul(&weight)?;
    let by_hand = (by_hand + 1.0)?.tanh()?.to_vec()?;
    let shift = Tensor::ones(3)?;
    for path in ["linear.weight", "tied.weight"] {
        let given = [(path, &weight), ("shift", &shift)];
        let eager: Tensor = functional_call(&model, given, &x)?;
        let traced: Tensor = functional_call(&gm, given, &x)?;
        for found in [eager, traced] {
            let closeness = found.to_vec()?.into_iter().zip(&by_hand);
            assert!(
                closeness.into_iter().all(|(a, b)| (a - b).abs() < 1e-6),
                "{path}"
            );
        }
    }
    assert_eq!(model.forward(&x)?.to_vec()?, before);
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, before);
    // All tensors of a module, as it lists them; another shape where the operations take it.
    let all = model.named_parameters();
    assert_eq!(functional_call::<Tensor>(&gm, &all, &x)?.to_vec()?, before);
    let row = Tensor::zeros((1, 3))?;
    let wide: Tensor = functional_call(&gm, [("shift", &row)], &x)?;
    assert_eq!(wide.dims()?, [2, 3]);
    let wrong = functional_call::<Tensor>(&gm, [("shift", &Tensor::zeros(4)?)], &x);
    assert!(wrong.is_err_and(|e| e.node() == Some("add")));
    Ok(())
}

#[test]
fn gradients_flow_to_the_given_tensors() -> Result<()> {
    let model = net()?;
    let gm = symbolic_trace(&model)?;
    let (x, weight) = (Tensor::rand((2, 3))?, other_weight()?);
    let own: Tensor = {
        let mut same = model.clone();
        same.linear.weight = weight.clone();
        same.tied.weight = weight.clone();
        same.forward(&x)?
    };
    let gradient = |y: Tensor| -> Result<Vec<f64>> {
        let gradients = y.square()?.sum(..)?.backward()?;
        assert!(gradients.get(&model.linear.weight)?.is_none());
        let gradient = gradients.get(&weight)?;
        gradient.ok_or_else(|| Error::msg("no gradient"))?.to_vec()
    };
    let expected = gradient(own)?;
    assert!(expected.iter().any(|g| *g != 0.0));
    let given = [("linear.weight", &weight)];
    assert_eq!(gradient(functional_call(&gm, given, &x)?)?, expected);
    assert_eq!(gradient(functional_call(&model, given, &x)?)?, expected);
    Ok(())
}

#[test]
fn wrong_paths_and_tensors_are_errors() -> Result<()> {
    let model = net()?;
    let gm = symbolic_trace(&model)?;
    let (x, weight) = (Tensor::rand((2, 3))?, other_weight()?);
    let message = |given: Vec<(&str, Value)>| -> String {
        let on_both = [
            functional_call::<Tensor>(&gm, given.clone(), &x).map(drop),
            functional_call::<Tensor>(&model, given, &x).map(drop),
        ];
        let [a, b] = on_both.map(|result| result.err().map(|e| e.to_string()).unwrap_or_default());
        assert_eq!(a, b);
        a
    };
    let value = |tensor: &Tensor| Value::object(tensor.clone());
    assert_eq!(
        message(vec![("linear.wieght", value(&weight))]),
        "the module has no parameter or buffer at `linear.wieght`; did you mean `linear.weight`?"
    );
    let two = vec![
        ("linear.weight", value(&weight)),
        ("tied.weight", value(&other_weight()?)),
    ];
    assert!(message(two).contains("`linear.weight` and `tied.weight` are one tensor"));
    let twice = vec![
        ("linear.weight", value(&weight)),
        ("tied.weight", value(&weight)),
    ];
    assert_eq!(message(twice), "");
    assert!(message(vec![("shift", Value::Float(1.0))]).contains("cannot take its place"));
    Ok(())
}

#[test]
fn states_of_modules_are_stacked() -> Result<()> {
    let models = [
        nn::BatchNorm1d::new(2)?,
        nn::BatchNorm1d::new(2)?,
        nn::BatchNorm1d::new(2)?,
    ];
    let (params, buffers) = stack_module_state(&models.each_ref())?;
    assert_eq!(params.keys().collect::<Vec<_>>(), ["weight", "bias"]);
    assert_eq!(params["weight"].dims()?, [3, 2]);
    assert!(params["weight"].candle()?.is_variable());
    assert_eq!(buffers["running_mean"].dims()?, [3, 2]);
    assert_eq!(buffers["num_batches_tracked"].dims()?, [3]);

    let none: [&nn::Linear; 0] = [];
    assert!(stack_module_state(&none).is_err());
    let mut other = models[1].clone();
    other.eval();
    let error = stack_module_state(&[&models[0], &other]).map(drop);
    assert!(error.is_err_and(|e| {
        e.to_string()
            .contains("module 1 is of another structure or in another mode")
    }));
    let (a, b) = (nn::Linear::new(2, 2)?, nn::Linear::new(2, 2)?.bias(false));
    let error = stack_module_state(&[&a, &b]).map(drop);
    assert!(error.is_err_and(|e| e.to_string().contains("not both a tensor at `bias`")));
    let error = stack_module_state(&[&a, &nn::Linear::new(3, 2)?]).map(drop);
    assert!(error.is_err_and(|e| e.to_string().contains("`weight`")));
    let mut frozen = nn::Linear::new(2, 2)?;
    nn::set_requires_grad(&mut frozen, false)?;
    let error = stack_module_state(&[&a, &frozen]).map(drop);
    assert!(error.is_err_and(|e| e.to_string().contains("trained in 1 of 2 modules")));
    Ok(())
}
