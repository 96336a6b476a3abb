use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let owned = vec![1.0];
    let mut h = x;
    loop {
        h = (h * 0.5)?;
        if h < 1.0 {
            drop(owned);
            break;
        }
    }
    Ok(h)
}

fn main() -> Result<()> {
    let (f, gm) = (f(2.0.into())?, symbolic_trace(traced!(f))?);
    assert_eq!(f.concrete(), Some(gm.forward::<f64>(2.0)?));
    Ok(())
}
