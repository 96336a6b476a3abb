use fx_core::prelude::*;

pub fn half(n: Int, parts: usize) -> Result<Int> {
    let whole = n / parts;
    whole?;
    n / 2
}

fn main() {}
