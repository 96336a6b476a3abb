//! `CpuLowering`: how the compiler for the CPU computes calls of a function.
//!
//! Invariant: a function is found by itself, never by its name, so that any crate's has an entry.

use std::fmt;

use fx_core::Result;
use fx_core::ir::{Function, FunctionTable};

use super::call::{Args, Lowering};
use super::draft::Id;
use super::points::{Point, Points};

/// The item of a call; `None` if there is none for its arguments.
type MakeItem = for<'g> fn(&mut Lowering<'g>, &Args<'g>) -> Result<Option<Id>>;

/// How compiled code computes calls of a function: an entry of a [`FunctionTable`]. What has no entry
/// is called as it is. [`Points`] has an example.
#[derive(Clone, Copy)]
pub struct CpuLowering(How);

#[derive(Clone, Copy)]
pub(super) enum How {
    /// Element by element.
    Pointwise(fn(&mut Points<'_, '_>) -> Option<Point>),
    /// By a kernel of its own.
    Kernel(MakeItem),
    /// By a kernel that packs weights, or does as much work.
    Work(MakeItem),
    /// By other sizes and strides over the same elements, or as a number: nothing is computed.
    View(MakeItem),
}

impl CpuLowering {
    /// Element by element: the steps that give an element of the result. Calls for which the function
    /// returns `None` are made as they are.
    pub const fn pointwise(steps: fn(&mut Points<'_, '_>) -> Option<Point>) -> Self {
        CpuLowering(How::Pointwise(steps))
    }

    pub(super) const fn kernel(item: MakeItem) -> Self {
        CpuLowering(How::Kernel(item))
    }

    pub(super) const fn work(item: MakeItem) -> Self {
        CpuLowering(How::Work(item))
    }

    pub(super) const fn view(item: MakeItem) -> Self {
        CpuLowering(How::View(item))
    }

    /// The entry of a function.
    ///
    /// # Errors
    /// Returns an error if two entries are registered for one function.
    pub fn of(function: Function) -> Result<Option<Self>> {
        let table = FunctionTable::<CpuLowering>::registered()?;
        Ok(table.get(function).copied())
    }

    pub(super) fn how(self) -> How {
        self.0
    }

    /// Whether a program is worth it for one call.
    pub(super) fn is_work(self) -> bool {
        matches!(self.0, How::Work(_))
    }

    /// Whether a program computes something for it.
    pub(super) fn has_kernel(self) -> bool {
        !matches!(self.0, How::View(_))
    }
}

impl fmt::Debug for CpuLowering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            How::Pointwise(_) => "CpuLowering(pointwise)",
            How::Kernel(_) | How::Work(_) => "CpuLowering(kernel)",
            How::View(_) => "CpuLowering(view)",
        })
    }
}
