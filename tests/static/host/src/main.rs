//! Crates without `std` beside the compiled modules of the same models, and how long a run takes.

use std::process::ExitCode;
use std::time::Instant;

/// The bytes of a stack on which any arena has room.
const STACK: usize = 256 << 20;

fn all() -> bool {
    let mut is_close = true;
    macro_rules! compare {
        ($($name:ident)*) => {$(
            let mut arena = $name::Arena::new();
            let start = Instant::now();
            let apart = cases::$name(&mut arena);
            println!(
                "static.difference/{} {:.1e} of {:.2}, {} numbers, {} ms",
                stringify!($name),
                apart.difference,
                apart.largest,
                apart.count,
                start.elapsed().as_millis()
            );
            is_close &= apart.is_close();
        )*};
    }
    compare!(mlp keywords mobilenet_v2 resnet18 gpt2 bert lstm);
    is_close
}

fn main() -> ExitCode {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(all);
    match thread.map(|thread| thread.join()) {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
