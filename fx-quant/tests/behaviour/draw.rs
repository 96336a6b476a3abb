//! Numbers by the formula of `goldens/make.py`, and what it recorded.

use std::path::Path;

use fx_nn::prelude::*;

/// Numbers in [-1, 1), each a `float32` without rounding.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    pub fn one(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / 8_388_608.0 - 1.0
    }

    /// Numbers raised to an odd power, scaled and shifted in `float64`.
    pub fn tensor(
        &mut self,
        shape: &[usize],
        power: i32,
        scale: f64,
        shift: f64,
    ) -> Result<Tensor> {
        let count = shape.iter().product();
        let numbers = (0..count).map(|_| (self.one().powi(power) * scale + shift) as f32);
        Tensor::from_vec(numbers.collect::<Vec<f32>>(), shape.to_vec())
    }
}

/// A recorded file.
pub fn golden(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/goldens")
        .join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("the file is JSON")
}
