//! Crates as fx writes them, compiled and run; and kernels beside what defines them.

#[path = "crates/images/src/lib.rs"]
#[allow(clippy::all, dead_code, unused_attributes, reason = "a crate, as a module")]
#[rustfmt::skip]
mod images;
#[path = "crates/rows/src/lib.rs"]
#[allow(clippy::all, dead_code, unused_attributes, reason = "a crate, as a module")]
#[rustfmt::skip]
mod rows;
#[path = "crates/sequences/src/lib.rs"]
#[allow(clippy::all, dead_code, unused_attributes, reason = "a crate, as a module")]
#[rustfmt::skip]
mod sequences;

mod kernels;

/// The input of the crates that have floats.
fn ramp<const N: usize>() -> [f32; N] {
    std::array::from_fn(|i| (i * 7 % 25) as f32 / 12.5 - 1.0)
}

/// Fails unless all numbers are those of a file, one a line.
fn are(found: &[&[f32]], given: &str) {
    let given: Vec<f32> = given
        .lines()
        .map(|line| line.parse().expect("a float a line"))
        .collect();
    let found: Vec<f32> = found.concat();
    assert_eq!(found.len(), given.len());
    for (at, (found, given)) in found.iter().zip(&given).enumerate() {
        let apart = (found - given).abs();
        assert!(
            apart <= 1e-6 * given.abs().max(1.0),
            "{at}: {found}, not {given}"
        );
    }
}

#[test]
fn images_are_as_recorded() {
    let mut arena = images::Arena::new();
    // A run leaves nothing behind for the next one.
    for _ in 0..2 {
        let all = images::run(&images::Inputs { x: &ramp() }, &mut arena);
        are(
            &[all.output_0, all.output_1, all.output_2],
            include_str!("crates/images/given.txt"),
        );
    }
}

#[test]
fn rows_are_as_recorded() {
    let mut arena = rows::Arena::new();
    for _ in 0..2 {
        let inputs = rows::Inputs {
            x: &ramp(),
            mask: &ramp(),
        };
        let all = rows::run(&inputs, &mut arena);
        are(
            &[all.output_0, all.output_1, all.output_2],
            include_str!("crates/rows/given.txt"),
        );
    }
}

#[test]
fn sequences_are_as_recorded() {
    let mut arena = sequences::Arena::default();
    let tokens = &[3, 0, 6, 6, 1, 2];
    let all = sequences::run(&sequences::Inputs { tokens }, &mut arena).expect("they are in range");
    are(
        &[all.output_0, all.output_1],
        include_str!("crates/sequences/given.txt"),
    );
    let tokens = &[3, 0, 6, 7, 1, 2];
    let error = sequences::run(&sequences::Inputs { tokens }, &mut arena).map(drop);
    assert_eq!(
        error.map_err(|error| error.to_string()),
        Err("the index 7 is not among the 7 rows of a table".to_string())
    );
}
