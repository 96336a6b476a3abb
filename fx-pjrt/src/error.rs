//! `PjrtError`: what a plugin says of a call that failed, and what to do about it.

use std::fmt;

use fx_nn::Error;

use crate::sys;

/// The error of a call into a plugin. It is the source of the [`Error`] that the crate returns:
/// `error.source()` leads to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {code}: {message}{}", self.advice())]
#[non_exhaustive]
pub struct PjrtError {
    /// The entry of the plugin that failed, such as `PJRT_Client_Compile`.
    pub call: &'static str,
    /// The kind of error.
    pub code: Code,
    /// What the plugin says.
    pub message: String,
}

impl PjrtError {
    /// An error of a call.
    pub(crate) fn new(call: &'static str, code: Code, message: impl fmt::Display) -> Self {
        PjrtError {
            call,
            code,
            message: message.to_string(),
        }
    }

    /// Whether the same call may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        use Code::{Aborted, Cancelled, DeadlineExceeded, ResourceExhausted, Unavailable};
        [
            Aborted,
            Cancelled,
            DeadlineExceeded,
            ResourceExhausted,
            Unavailable,
        ]
        .contains(&self.code)
    }

    /// What a user can do, where the kind alone says it.
    fn advice(&self) -> &'static str {
        match self.code {
            Code::ResourceExhausted => {
                "\nThe device's memory is full: use a smaller batch, drop tensors on the device, or donate those that are replaced"
            }
            Code::InvalidArgument if self.message.contains("Unexpected PJRT_") => {
                "\nThe plugin is newer than fx's bindings: `fx-pjrt/bindings.py` makes them of a newer header, or get an older plugin"
            }
            Code::Unimplemented => "\nThis plugin does not have it: try a newer one",
            Code::Unavailable | Code::DataLoss | Code::Aborted => {
                "\nThe device or another process may be gone: make a new client"
            }
            Code::DeadlineExceeded => {
                "\nA device or another process did not answer in time: check that all of them run"
            }
            _ => "",
        }
    }
}

/// An error about a node of the graph.
#[derive(Debug, thiserror::Error)]
#[error("%{node}: {error}")]
pub(crate) struct AtNode {
    pub node: String,
    #[source]
    pub error: Error,
}

impl From<PjrtError> for Error {
    fn from(error: PjrtError) -> Self {
        Error::other(error)
    }
}

/// Kinds of errors, as in [Abseil's status codes](https://abseil.io/docs/cpp/guides/status-codes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Code {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

/// The codes from 1 on, with their names.
const CODES: [(Code, &str); 16] = [
    (Code::Cancelled, "CANCELLED"),
    (Code::Unknown, "UNKNOWN"),
    (Code::InvalidArgument, "INVALID_ARGUMENT"),
    (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
    (Code::NotFound, "NOT_FOUND"),
    (Code::AlreadyExists, "ALREADY_EXISTS"),
    (Code::PermissionDenied, "PERMISSION_DENIED"),
    (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    (Code::FailedPrecondition, "FAILED_PRECONDITION"),
    (Code::Aborted, "ABORTED"),
    (Code::OutOfRange, "OUT_OF_RANGE"),
    (Code::Unimplemented, "UNIMPLEMENTED"),
    (Code::Internal, "INTERNAL"),
    (Code::Unavailable, "UNAVAILABLE"),
    (Code::DataLoss, "DATA_LOSS"),
    (Code::Unauthenticated, "UNAUTHENTICATED"),
];

impl Code {
    /// The code of a number; those that are not known count as unknown.
    pub(crate) fn of(number: sys::PJRT_Error_Code) -> Self {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| CODES.get(at))
            .map_or(Code::Unknown, |(code, _)| *code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = CODES.iter().find(|(code, _)| code == self);
        f.write_str(found.map_or("UNKNOWN", |(_, name)| *name))
    }
}
