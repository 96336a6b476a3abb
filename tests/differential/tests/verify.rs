//! Every rewrite of the repository is a claim that 200 drawn cases verify.

use fx_differential::{ClaimKind, claims, recorded, verify_all};
use fx_nn::Result;

#[test]
fn every_rewrite_is_verified() -> Result<()> {
    let claims = claims(&recorded()?)?;
    let count = |kind: ClaimKind| claims.iter().filter(|claim| claim.kind == kind).count();
    assert!(count(ClaimKind::Rule) >= 4 && count(ClaimKind::Fusion) >= 10);
    assert!(count(ClaimKind::Decomposition) > 100);
    let tally = verify_all(&claims, 200, 1, &|_, _, _| {});
    let found = [&tally.failed[..], &tally.unverified[..]].concat();
    assert!(found.is_empty(), "{tally}\n{}", found.join("\n"));
    Ok(())
}
