//! What a contract says of an argument holds for every kind of value.

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::value::IntoValue;

fn refused(gm: &GraphModule, args: Vec<Value>, words: &str) {
    let call = fx_nn::trace::CallArgs {
        args,
        kwargs: Vec::new(),
    };
    let error = gm.forward::<Value>(call).err().map(|e| e.to_string());
    assert!(
        error.as_ref().is_some_and(|e| e.contains(words)),
        "{error:?}"
    );
}

#[test]
fn defect_t3_v5_a_tensor_is_asked_for() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x + y))?;
    let x = Tensor::ones((2, 3))?;
    gm.infer_shapes(&[Spec::of(x.clone()), Spec::of(x.clone())])?;
    let x = || x.clone().into_value();
    gm.forward::<Tensor>((x(), x()))?;
    for other in [
        Value::Int(1),
        Value::Float(1.0),
        Value::Bool(true),
        Value::None,
        Value::List(Box::new([x()])),
        Value::Tuple(Box::new([x()])),
        Value::Str("x".into()),
    ] {
        let found = other.describe();
        refused(&gm, vec![x(), other.clone()], &format!("it is {found}"));
        refused(&gm, vec![other, x()], "argument `x`");
    }
    Ok(())
}

#[test]
fn defect_t3_v5_a_number_is_asked_for() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor, n: Int| x.narrow(0, 0, n)))?;
    let x = Tensor::ones((4, 3))?;
    gm.infer_shapes(&[Spec::of(x.clone()), Spec::int("n")])?;
    gm.forward::<Tensor>((&x, 2i64))?;
    let tensor = || x.clone().into_value();
    for other in [
        Value::Float(1.0),
        Value::Bool(true),
        Value::None,
        Value::List(Box::new([Value::Int(1)])),
        Tensor::ones(1)?.into_value(),
    ] {
        refused(&gm, vec![tensor(), other], "argument `n`");
    }
    Ok(())
}
