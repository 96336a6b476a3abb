//! The route of `fx_nn::testing` through a program: a call is written as StableHLO, and what runs
//! the text says what it gives.

use fx_nn::prelude::*;
use fx_nn::testing::{Given, Missing, Route, Sample};

use crate::{Export, StableHloExt};

/// A call written as StableHLO: the function gets the text, and says what a program of it gives.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::testing::{Given, Sample, check_op, samples};
/// use fx_stablehlo::testing::Written;
/// let written = Written(|_: &Sample<'_>, text: &str| {
///     assert!(text.contains("func.func"), "{text}");
///     Ok(Given::Agrees)
/// });
/// let report = check_op("tanh", &samples::one_float(function!(ops::tanh))?, &[&written]);
/// assert!(report.is_right(), "{report}");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Written<F>(pub F);

impl<F: Fn(&Sample<'_>, &str) -> Result<Given>> Route for Written<F> {
    fn name(&self) -> &str {
        "stablehlo"
    }

    fn run(&self, sample: &Sample<'_>) -> Result<Given> {
        if sample.is_random() {
            return Ok(Given::Missing(Missing::Random));
        }
        let gm = sample.module()?;
        let export = Export::example(sample.args());
        match gm.to_stablehlo_text(&export) {
            // A program does not look at elements, and refuses none.
            Ok(_) if sample.traced().is_err() => Ok(Given::Missing(Missing::Effect)),
            Ok(text) => (self.0)(sample, &text),
            Err(error) => Given::or_not_in_format(error),
        }
    }
}
