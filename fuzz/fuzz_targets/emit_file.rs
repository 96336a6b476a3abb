//! Saved files with other names, types, paths, sizes and parts than they were written with: what still loads runs, is saved,
//! printed and emitted, and no text of the file becomes code.
#![no_main]

use std::cell::RefCell;

use fx_fuzz::emit::{Counts, Seeds, check};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static STATE: RefCell<(Seeds, Counts)> = RefCell::new((
        Seeds::new().expect("the seeds are traced and saved"),
        Counts::default(),
    ));
}

fuzz_target!(|data: &[u8]| {
    STATE.with_borrow_mut(|(seeds, counts)| {
        check(seeds, data, counts);
        if counts.inputs.is_power_of_two() || counts.inputs % 100 == 0 {
            eprintln!("{counts}");
        }
    });
});
