use fx_core::prelude::*;

pub fn root() -> fx_core::trace::TracedFn {
    traced!(missing)
}

fn main() {}
