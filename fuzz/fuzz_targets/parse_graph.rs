//! Parsing never panics, and what parses prints, and parses again to the same text.
#![no_main]

use fx_core::ir::Graph;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(graph) = text.parse::<Graph>() else {
        return;
    };
    let printed = graph.to_string();
    match printed.parse::<Graph>() {
        Ok(again) => assert_eq!(again.to_string(), printed),
        Err(error) => panic!("{error}\n{printed}"),
    }
});
