//! Errors and questions of a running trace: each names the user's line and the module, and an
//! answer is added to the report.

use std::panic::Location;

use super::context::TraceContext;
use super::report::Frozen;
use super::scope::{self, Active};
use super::tracer::Tracer;
use crate::error::{Error, ErrorKind, Result};
use crate::value::handle::Proxy;

/// The error of asking a symbolic value for what only a run knows. It names the caller's line: mark
/// the methods that call this `#[track_caller]`, so that it is the user's line.
#[track_caller]
pub fn escape(what: &str, proxy: Proxy) -> Error {
    escape_with(
        what,
        "keep it in the graph, or make the function or module that needs it a leaf with `#[wrap]` or \
         `#[trace(leaf)]`; the root of a trace is always traced through",
        proxy,
    )
}

/// As [`escape`], with what to do instead.
#[track_caller]
pub fn escape_with(what: &str, hint: &str, proxy: Proxy) -> Error {
    let location = Location::caller();
    let error: Error = ErrorKind::Escape {
        what: what.to_string(),
        hint: hint.to_string(),
        value: value_name(proxy),
    }
    .into();
    match scope::of_proxy(proxy) {
        Ok(active) => {
            active.context.set_location(location);
            blame(&active, what, error)
        }
        Err(stray) => stray,
    }
}

/// Asks a proxy's tracer a question of the program; an answer is added to the trace's report.
pub(super) fn asked<R>(
    proxy: Proxy,
    question: &'static str,
    location: &'static Location<'static>,
    ask: impl FnOnce(&dyn Tracer, &TraceContext) -> Result<(R, Option<String>)>,
) -> Result<R> {
    let active = scope::of_proxy(proxy)?;
    active.context.set_location(location);
    let (result, answer) =
        ask(&*active.tracer, &active.context).map_err(|e| blame(&active, question, e))?;
    if let Some(answer) = answer {
        active.context.report(Frozen::Answer {
            question,
            of: active.context.name_of(proxy),
            answer,
        });
    }
    Ok(result)
}

fn value_name(proxy: Proxy) -> String {
    scope::of_proxy(proxy).map_or_else(|_| proxy.to_string(), |a| a.context.name_of(proxy))
}

pub(crate) fn blame(active: &Active, what: &str, error: Error) -> Error {
    error.at(
        "tracing",
        format_args!("`{what}`"),
        Some(active.context.location()),
        active.context.current_module(),
    )
}
