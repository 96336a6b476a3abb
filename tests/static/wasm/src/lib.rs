//! MobileNetV2 in WebAssembly: pixels are written where `input` says, and the scores are where `run` says.

use std::cell::RefCell;

use mobilenet_v2::{Arena, Inputs, run};

thread_local! {
    static PIXELS: RefCell<[f32; 150_528]> = const { RefCell::new([0.0; 150_528]) };
    static ARENA: RefCell<Arena> = const { RefCell::new(Arena::new()) };
}

/// Where the pixels are.
#[unsafe(no_mangle)]
pub extern "C" fn input() -> *mut f32 {
    PIXELS.with_borrow_mut(|pixels| pixels.as_mut_ptr())
}

/// Runs the model; where its scores are.
#[unsafe(no_mangle)]
pub extern "C" fn scores() -> *const f32 {
    PIXELS.with_borrow(|x| ARENA.with_borrow_mut(|arena| run(&Inputs { x }, arena).output.as_ptr()))
}
