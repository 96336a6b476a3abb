pub fn root() -> fx_core::trace::TracedFn {
    fx_core::traced!()
}

fn main() {}
