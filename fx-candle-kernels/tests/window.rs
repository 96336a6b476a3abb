//! Tests of `window`.

use candle_core::Result;
use fx_candle_kernels::window::*;

const AXIS: Axis = Axis {
    size: 5,
    kernel: 3,
    stride: 2,
    padding: 1,
    dilation: 1,
};

#[test]
fn counts_as_pytorch() -> Result<()> {
    assert_eq!(AXIS.windows("pool", &[5], false)?, 3);
    let six = Axis { size: 6, ..AXIS };
    assert_eq!(six.windows("pool", &[6], false)?, 3);
    assert_eq!(six.windows("pool", &[6], true)?, 4);
    let late = Axis {
        size: 2,
        kernel: 2,
        stride: 3,
        ..AXIS
    };
    assert_eq!(late.windows("pool", &[2], true)?, 1);
    assert_eq!(AXIS.at(0, 0), None);
    assert_eq!(AXIS.at(0, 1), Some(0));
    assert_eq!(AXIS.at(2, 2), None);
    Ok(())
}

#[test]
fn refuses_what_does_not_fit() {
    let large = Axis { kernel: 8, ..AXIS };
    let text = large.windows("pool", &[5], false).unwrap_err().to_string();
    assert!(text.contains("pool: a kernel of 8"), "{text}");
    assert!(
        Axis { stride: 0, ..AXIS }
            .windows("p", &[5], false)
            .is_err()
    );
    let options = [(3, 3), (1, 1), (2, 0), (1, 1)];
    assert!(pooled("pool", &[1, 5, 5], options, false).is_err());
}
