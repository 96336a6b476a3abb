//! Comparing numbers with a golden's float64 run; it owns that a result passes only when all that is known of it fits.

use std::fmt;

use crate::golden::{NumNode, NumOutput, Numbers};

/// How far a result is from a golden.
#[derive(Clone, Debug, PartialEq)]
pub struct NumComparison {
    /// The largest absolute error of any element the golden has, and of the mean and abs-max over all elements
    /// (neither can be off by more than the worst element is). NaN where a number is NaN.
    pub max_abs_err: f64,
    /// The same over the abs-max of the float64 data.
    pub max_rel_err: f64,
    /// Where the largest error is.
    pub worst: String,
    /// What makes the result wrong whatever the bar: another shape, a NaN.
    pub problem: Option<String>,
}

impl NumComparison {
    /// Whether the result is right: comparable, and within `bar` of abs-max.
    #[must_use]
    pub fn passed(&self, bar: f64) -> bool {
        self.problem.is_none() && self.max_rel_err <= bar
    }

    fn refused(problem: String) -> NumComparison {
        NumComparison {
            max_abs_err: f64::NAN,
            max_rel_err: f64::NAN,
            worst: String::new(),
            problem: Some(problem),
        }
    }
}

impl fmt::Display for NumComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Some(problem) => f.write_str(problem),
            None => write!(
                f,
                "largest error {:.3e}, {:.3e} of abs-max, at {}",
                self.max_abs_err, self.max_rel_err, self.worst
            ),
        }
    }
}

/// Compares all elements of a result, row-major, with an output of a golden.
#[must_use]
pub fn compare_numbers(golden: &NumOutput, data: &[f64], shape: &[usize]) -> NumComparison {
    let count: usize = golden.shape.iter().product();
    let known = count.div_ceil(golden.stride.max(1));
    if golden.f64.data.len() != known {
        return NumComparison::refused(format!(
            "the golden is broken: output {} has {} elements of data, not {known}",
            golden.path,
            golden.f64.data.len()
        ));
    }
    let place = format!("output {}", golden.path);
    compare(
        &place,
        &golden.shape,
        &golden.f64,
        golden.stride,
        data,
        shape,
    )
}

/// Compares all elements of a value inside the graph with what a golden has of it.
#[must_use]
pub fn compare_node_numbers(golden: &NumNode, data: &[f64], shape: &[usize]) -> NumComparison {
    let place = format!("node %{}", golden.name);
    compare(&place, &golden.shape, &golden.f64, 1, data, shape)
}

fn compare(
    place: &str,
    golden_shape: &[usize],
    golden: &Numbers,
    stride: usize,
    data: &[f64],
    shape: &[usize],
) -> NumComparison {
    if shape != golden_shape {
        return NumComparison::refused(format!(
            "{place}: PyTorch's shape is {golden_shape:?}, ours {shape:?}"
        ));
    }
    let count: usize = shape.iter().product();
    if data.len() != count {
        return NumComparison::refused(format!(
            "{place}: {} elements were given for the shape {shape:?}",
            data.len()
        ));
    }
    if let Some(i) = data.iter().position(|value| value.is_nan()) {
        return NumComparison::refused(format!("{place}: our element {i} is NaN"));
    }
    let mut worst = (0.0, "every element alike".to_owned());
    let mut see = |theirs: f64, ours: f64, at: &dyn Fn() -> String| {
        // Infinities of one sign are the same; all else that is not finite is infinitely far off.
        let error = if theirs == ours {
            0.0
        } else if theirs.is_finite() && ours.is_finite() {
            (theirs - ours).abs()
        } else {
            f64::INFINITY
        };
        if error > worst.0 {
            worst = (
                error,
                format!("{} (PyTorch {theirs:?}, ours {ours:?})", at()),
            );
        }
    };
    for (k, &theirs) in golden.data.iter().enumerate() {
        let i = k * stride.max(1);
        let Some(&ours) = data.get(i) else {
            return NumComparison::refused(format!("{place}: the golden has an element {i}"));
        };
        see(theirs, ours, &|| format!("{place}, element {i}"));
    }
    if count > 0 && data.iter().all(|value| value.is_finite()) {
        let mean = data.iter().sum::<f64>() / count as f64;
        let absmax = data
            .iter()
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        see(golden.mean, mean, &|| format!("{place}, its mean"));
        see(golden.absmax, absmax, &|| format!("{place}, its abs-max"));
    }
    let scale = golden
        .data
        .iter()
        .filter(|value| value.is_finite())
        .fold(0.0, |most: f64, value| most.max(value.abs()));
    let (max_abs_err, worst) = worst;
    NumComparison {
        max_abs_err,
        max_rel_err: if max_abs_err == 0.0 {
            0.0
        } else {
            max_abs_err / scale
        },
        worst,
        problem: None,
    }
}
