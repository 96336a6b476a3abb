//! Compiled code is refused what its graph is refused, and gives what its graph gives.

use fx_differential::{Call, compiled_agreement, recorded};
use fx_nn::Result;

#[test]
fn defect_t3_c2_every_recorded_call_agrees_with_its_graph() -> Result<()> {
    let (mut all, mut found) = (0, Vec::new());
    for line in recorded()?.lines() {
        let call = Call::parse(line)?;
        let (many, differences) = compiled_agreement(&call)?;
        all += many;
        let named = differences.into_iter();
        found.extend(named.map(|text| format!("{} #{}: {text}", call.name, call.id)));
    }
    assert!(all > 5_000, "{all} runs are compared");
    assert!(
        found.is_empty(),
        "{} of {all} differ:\n{}",
        found.len(),
        found[..found.len().min(60)].join("\n")
    );
    Ok(())
}
