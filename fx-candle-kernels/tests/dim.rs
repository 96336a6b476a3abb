//! Tests of `dim`.

use candle_core::Result;
use fx_candle_kernels::dim::*;

#[test]
fn counts_from_both_ends() -> Result<()> {
    assert_eq!(dim("sum", 1, 3)?, 1);
    assert_eq!(dim("sum", -1, 3)?, 2);
    assert_eq!(dim("sum", -3, 3)?, 0);
    assert_eq!(dim("sum", -1, 0)?, 0);
    Ok(())
}

#[test]
fn names_the_range() {
    let text = dim("sum", 3, 3).unwrap_err().to_string();
    assert!(
        text.contains("sum: dim 3 is out of range") && text.contains("[-3, 2]"),
        "{text}"
    );
    assert!(dim("sum", -4, 3).is_err());
    assert!(dim("sum", i64::MIN, 3).is_err());
}
