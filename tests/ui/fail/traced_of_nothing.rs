pub fn root() -> fx_core::TracedFn {
    fx_core::traced!()
}

fn main() {}
