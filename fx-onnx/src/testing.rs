//! The route of `fx_nn::testing` through a file: a call is written as ONNX, read back and run.

use fx_nn::prelude::*;
use fx_nn::testing::{Given, Missing, Route, Sample, structured};
use fx_nn::trace::CallArgs;

use crate::{Export, Load, OnnxExt};

/// A call written as ONNX, read back and run; what is written and not read is [`Missing::NotYet`].
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::testing::{check_op, samples};
/// use fx_onnx::testing::ReadBack;
/// let report = check_op("hypot", &samples::two_floats(function!(ops::hypot))?, &[&ReadBack]);
/// assert!(report.is_right(), "{report}");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadBack;

impl Route for ReadBack {
    fn name(&self) -> &str {
        "onnx"
    }

    fn run(&self, sample: &Sample<'_>) -> Result<Given> {
        if sample.is_random() {
            return Ok(Given::Missing(Missing::Random));
        }
        let (gm, args) = (sample.module()?, sample.args());
        let given = gm.process_inputs(args.clone())?;
        let export = Export::example(args);
        let bytes = match gm.to_onnx_bytes(&export) {
            Ok((bytes, _)) => bytes,
            Err(error) => return Given::or_not_in_format(error),
        };
        let Ok(read) = Load::new().from_bytes(bytes) else {
            return Ok(Given::Missing(Missing::NotYet));
        };
        let tensors = given
            .into_iter()
            .filter(|value| value.as_object().is_some());
        let result: Value = read.module.forward(CallArgs {
            args: tensors.collect(),
            kwargs: Vec::new(),
        })?;
        match sample.traced() {
            Ok(like) => structured(&like, &result).map(Given::Value),
            // A file does not look at elements, and refuses none.
            Err(_) => Ok(Given::Missing(Missing::Effect)),
        }
    }
}
