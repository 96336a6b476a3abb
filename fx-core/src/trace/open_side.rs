//! The branches and loops of a trace whose recording has begun and not ended.
//!
//! Invariant: they end in the opposite order of their begin; what a jump leaves before its end is an
//! error of the trace.

use std::fmt;
use std::panic::Location;

use super::context::TraceContext;
use crate::error::{Error, Result};

/// What is recorded in a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Branch,
    Loop,
    /// What follows an `if` whose block ends in this jump, to the end of the function or loop.
    After(&'static str),
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Region::Branch => f.write_str("the branch"),
            Region::Loop => f.write_str("the loop"),
            Region::After(jump) => write!(f, "the `{jump}`"),
        }
    }
}

/// A region under way.
#[derive(Clone, Copy)]
struct OpenSide {
    id: SideId,
    region: Region,
    caller: &'static Location<'static>,
}

impl fmt::Display for OpenSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line) = (self.caller.file(), self.caller.line());
        write!(f, "{} at {file}:{line}", self.region)
    }
}

/// Names a region under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SideId(u32);

/// The regions of one trace.
#[derive(Default)]
pub(super) struct OpenSides {
    last: u32,
    /// Outermost first.
    stack: Vec<OpenSide>,
    /// The first one that was left before its end.
    left: Option<OpenSide>,
}

impl TraceContext {
    /// Begins a region.
    pub(crate) fn open_side(&self, region: Region, caller: &'static Location<'static>) -> SideId {
        let mut open = self.open.borrow_mut();
        open.last += 1;
        let id = SideId(open.last);
        open.stack.push(OpenSide { id, region, caller });
        id
    }

    /// Whether a branch or a loop is being recorded.
    pub(super) fn is_in_a_side(&self) -> bool {
        !self.open.borrow().stack.is_empty()
    }

    /// Says that a region is now another one.
    pub(crate) fn rename_side(&self, id: SideId, region: Region) {
        let mut open = self.open.borrow_mut();
        if let Some(side) = open.stack.iter_mut().find(|side| side.id == id) {
            side.region = region;
        }
    }

    /// Ends a region, which is the innermost one.
    ///
    /// # Errors
    /// Returns an error if there is one inside: a jump leaves both.
    pub(crate) fn end_side(&self, id: SideId) -> Result<()> {
        let mut open = self.open.borrow_mut();
        match open.stack.as_slice() {
            [.., inner] if inner.id == id => {
                open.stack.pop();
                Ok(())
            }
            [.., inner] => {
                let this = open.stack.iter().find(|side| side.id == id);
                let this = this.map(ToString::to_string).unwrap_or_default();
                Err(Error::msg(format_args!(
                    "{inner} leaves {this}, and traced values decide both: give the value by `else`, or join the two conditions"
                )))
            }
            [] => Ok(()),
        }
    }

    /// Notes that a region was left before its end.
    pub(crate) fn leave_side(&self, id: SideId) {
        let mut open = self.open.borrow_mut();
        if let Some(at) = open.stack.iter().position(|side| side.id == id) {
            let left = open.stack[at];
            open.left.get_or_insert(left);
            open.stack.truncate(at);
        }
    }

    /// # Errors
    /// Returns an error if a region was left before its end.
    pub(super) fn check_sides(&self) -> Result<()> {
        match &self.open.borrow().left {
            None => Ok(()),
            Some(left) => Err(Error::msg(format_args!(
                "{left} is decided by a traced value, and a jump or an error that was dropped left it while it was recorded: let it end, and decide by the value that it gives"
            ))),
        }
    }
}
