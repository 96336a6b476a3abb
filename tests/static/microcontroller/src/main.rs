//! An MLP and a network for keywords on a Cortex-M4, beside their compiled modules.

#![no_std]
#![no_main]

use panic_semihosting as _;

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};

#[entry]
fn main() -> ! {
    static mut MLP: mlp::Arena = mlp::Arena::new();
    static mut KEYWORDS: keywords::Arena = keywords::Arena::new();
    let all = [
        ("mlp", cases::mlp(MLP)),
        ("keywords", cases::keywords(KEYWORDS)),
    ];
    for (name, apart) in all {
        hprintln!(
            "static.cortex_m4_difference/{} {:e} of {}, {} numbers",
            name,
            apart.difference,
            apart.largest,
            apart.count
        );
    }
    let is_close = all.iter().all(|(_, apart)| apart.is_close());
    debug::exit(match is_close {
        true => debug::EXIT_SUCCESS,
        false => debug::EXIT_FAILURE,
    });
    loop {}
}
