//! The recorded calls of every operation and layer as StableHLO: each is written, or refused with a reason; no rule leaves
//! an argument unread.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_differential::{Call, Outcome, graph_of, recorded};
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_stablehlo::{Export, StableHloExt};

#[test]
fn defect_t3_e1_no_rule_leaves_an_argument_unread() -> Result<()> {
    let (mut written, mut wrong) = (0, BTreeMap::<String, Vec<String>>::new());
    for line in recorded()?.lines() {
        let call = Call::parse(line)?;
        if matches!(call.outcome, Outcome::Refused) {
            continue;
        }
        let text = catch_unwind(AssertUnwindSafe(|| {
            let (gm, args) = graph_of(&call)?;
            let args = CallArgs {
                args,
                kwargs: Vec::new(),
            };
            gm.to_stablehlo_text(&Export::example(args))
        }));
        let text = match text {
            Ok(Ok(_)) => {
                written += 1;
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "a panic".to_string(),
        };
        if text.contains("does not read") || text == "a panic" {
            wrong
                .entry(call.name.clone())
                .or_default()
                .push(format!("#{} {text}", call.id));
        }
    }
    println!("written {written}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(written > 7_000, "{written} calls are written");
    Ok(())
}
