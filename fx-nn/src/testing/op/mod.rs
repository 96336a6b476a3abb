//! An operation by every route that computes it: each gives what the call gives, or says why it has
//! no part in it.
//!
//! Invariant: a sample that a route neither computes nor refuses with a [`Missing`] is counted as
//! missing without a reason.

mod report;
mod routes;
mod sample;
pub mod samples;
mod transforms;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_core::ir::{Function, FunctionTable};
use fx_core::value::Value;
use fx_core::{Error, ErrorKind, Result};

pub use report::{OpReport, RouteCount};
pub use routes::{EveryCall, routes, runs_kernels};
pub use sample::{Sample, structured};

/// Why a route has no part in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// The result is drawn.
    Random,
    /// The shape of the result depends on the elements.
    DataDependentShape,
    /// A value is needed that is not known before a run.
    HostValue,
    /// The format has nothing like it; its tables have the reason.
    NotInFormat,
    /// No element type of the sample is one of the route's.
    ElementType,
    /// Nothing in it can be differentiated.
    NotDifferentiable,
    /// PyTorch's gradient is not the derivative there: of half of a symmetric matrix, or of a result
    /// that is not unique.
    Convention,
    /// The operation has no form of this kind, and needs none.
    NoForm,
    /// The call has an effect that the route does not have.
    Effect,
    /// It is not written yet.
    NotYet,
}

/// What a route makes of a sample.
#[derive(Debug)]
#[non_exhaustive]
pub enum Given {
    /// The value of the call.
    Value(Value),
    /// The route has compared itself with the call: they agree.
    Agrees,
    /// The route has compared itself with the call: this differs.
    Differs(String),
    /// The route has no part in the sample.
    Missing(Missing),
}

impl Given {
    /// What a format that refuses a call has to do with it: no part, if its tables or its rules say
    /// why.
    ///
    /// # Errors
    /// Returns the error if it is another one.
    pub fn or_not_in_format(error: Error) -> Result<Self> {
        match error.kind() {
            ErrorKind::NotInFormat(_) => Ok(Given::Missing(Missing::NotInFormat)),
            _ => Err(error),
        }
    }
}

/// A way in which a call is computed.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::testing::{Given, Route, Sample, check_op, samples};
/// /// Runs the graph twice.
/// struct Twice;
/// impl Route for Twice {
///     fn name(&self) -> &str { "twice" }
///     fn run(&self, sample: &Sample<'_>) -> Result<Given> {
///         sample.module()?.forward::<Value>(sample.args())?;
///         Ok(Given::Value(sample.module()?.forward(sample.args())?))
///     }
/// }
/// let report = check_op("hypot", &samples::two_floats(function!(ops::hypot))?, &[&Twice]);
/// assert_eq!((report.wrong.len(), report.routes["twice"].missing), (0, 0));
/// # Ok::<(), Error>(())
/// ```
pub trait Route {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// What it gives for a sample.
    ///
    /// # Errors
    /// Returns the error of the call, which is right if the call is to be refused.
    fn run(&self, sample: &Sample<'_>) -> Result<Given>;
}

/// The samples of a function: an entry of a [`FunctionTable`], which
/// `#[op(samples = ..)]` registers in tests.
#[derive(Debug, Clone, Copy)]
pub struct Samples(pub fn(Function) -> Result<Vec<Sample<'static>>>);

/// The registered samples of a function.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::testing::{Samples, check_op, routes, samples, samples_of};
/// /// 2x.
/// #[wrap]
/// fn double(x: &Tensor) -> Result<Tensor> {
///     x * 2.0
/// }
/// fx_nn::function_table! { Samples {
///     function!(double) => Samples(samples::one_float),
/// } }
/// let report = check_op("double", &samples_of(function!(double))?, &routes());
/// assert!(report.is_right() && report.samples == 25, "{report}");
/// assert!(samples_of(function!(ops::exp)).is_err());
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if there are none, or one cannot be made.
pub fn samples_of(function: Function) -> Result<Vec<Sample<'static>>> {
    match FunctionTable::<Samples>::registered()?.get(function) {
        Some(Samples(make)) => make(function),
        None => Err(Error::msg(format_args!(
            "`{}` has no samples: give it some with `#[op(samples = ..)]`, or pass them to `check_op`",
            function.path()
        ))),
    }
}

/// Computes each sample by each route, and compares.
pub fn check_op(name: &str, samples: &[Sample<'_>], routes: &[&dyn Route]) -> OpReport {
    let mut report = OpReport::new(name);
    for sample in samples {
        report.samples += 1;
        for route in routes {
            let run = || match sample.missing(route.name()) {
                Some(reason) => Ok(Given::Missing(reason)),
                None => route.run(sample),
            };
            let given = catch_unwind(AssertUnwindSafe(run));
            let given = given.unwrap_or_else(|_| Ok(Given::Differs("a panic".to_string())));
            report.count(route.name(), sample, given);
        }
    }
    report
}
