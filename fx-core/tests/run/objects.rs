//! Objects of the user's that are no tensors.

use fx_core::prelude::*;
use fx_core::tensor::Object;

#[derive(Debug, Clone)]
struct Settings {
    scale: f64,
}

impl Object for Settings {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }
}

#[wrap]
fn scaled(settings: Value, x: Float) -> Result<Float> {
    let settings = settings.downcast_ref::<Settings>();
    let settings = settings.ok_or_else(|| Error::msg("these are no settings"))?;
    x * settings.scale
}

#[test]
fn an_object_of_any_type_passes_through_a_graph() -> Result<()> {
    let gm = symbolic_trace(traced!(|settings: Value, x: Float| {
        let y = scaled(settings.clone(), x)?;
        Ok((settings, y))
    }))?;
    let settings = Value::object(Settings { scale: 3.0 });
    let (same, y): (Value, f64) = gm.forward((settings, 2.0))?;
    assert_eq!(y, 6.0);
    assert_eq!(
        same.downcast_ref::<Settings>()
            .map(|settings| settings.scale),
        Some(3.0)
    );
    let wrong = gm
        .forward::<Value>((Value::of(1.0), 2.0))
        .expect_err("a number has no scale");
    assert!(wrong.to_string().contains("%scaled") && wrong.to_string().contains("no settings"));
    Ok(())
}
