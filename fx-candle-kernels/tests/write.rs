//! Tests of `write`.

use crate::testing::{near, varied};
use candle_core::Result;
use fx_candle_kernels::write::*;

#[test]
fn views_are_written() -> Result<()> {
    let whole = varied(&[2, 2])?.zeros_like()?;
    let column = whole.narrow(1, 1, 1)?.squeeze(1)?;
    write("test", &column, &varied(&[2])?.ones_like()?)?;
    near(&whole, &[0., 1., 0., 1.])?;
    let wide = whole.narrow(0, 0, 1)?.broadcast_as((3, 2))?;
    let text = write("test", &wide, &varied(&[3, 2])?).unwrap_err();
    assert!(text.to_string().contains("is expanded"), "{text}");
    Ok(())
}
