use fx_core::prelude::*;

pub fn root() -> fx_core::TracedFn {
    traced!(missing)
}

fn main() {}
