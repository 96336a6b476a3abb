//! The branches and loops of a trace whose recording has begun and not ended.
//!
//! Invariant: they end in the opposite order of their begin; what a jump leaves before its end is an
//! error of the trace.

use std::fmt;
use std::panic::Location;

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

impl OpenSides {
    pub fn open(&mut self, region: Region, caller: &'static Location<'static>) -> SideId {
        self.last += 1;
        let id = SideId(self.last);
        self.stack.push(OpenSide { id, region, caller });
        id
    }

    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// Says that a region is now another one.
    pub fn rename(&mut self, id: SideId, region: Region) {
        if let Some(side) = self.stack.iter_mut().find(|side| side.id == id) {
            side.region = region;
        }
    }

    /// Ends a region, which is the innermost one.
    ///
    /// # Errors
    /// Returns an error if there is one inside: a jump leaves both.
    pub fn end(&mut self, id: SideId) -> Result<()> {
        match self.stack.as_slice() {
            [.., inner] if inner.id == id => {
                self.stack.pop();
                Ok(())
            }
            [.., inner] => {
                let this = self.stack.iter().find(|side| side.id == id);
                let this = this.map(ToString::to_string).unwrap_or_default();
                Err(Error::msg(format_args!(
                    "{inner} leaves {this}, and traced values decide both: give the value by `else`, or join the two conditions"
                )))
            }
            [] => Ok(()),
        }
    }

    /// Notes that a region was left before its end.
    pub fn leave(&mut self, id: SideId) {
        if let Some(at) = self.stack.iter().position(|side| side.id == id) {
            let left = self.stack[at];
            self.left.get_or_insert(left);
            self.stack.truncate(at);
        }
    }

    /// # Errors
    /// Returns an error if a region was left before its end.
    pub fn check(&self) -> Result<()> {
        match &self.left {
            None => Ok(()),
            Some(left) => Err(Error::msg(format_args!(
                "{left} is decided by a traced value, and a jump or an error that was dropped left it while it was recorded: let it end, and decide by the value that it gives"
            ))),
        }
    }
}
