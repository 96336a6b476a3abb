//! Elements in another type of floats: what code computes in `f32` is rounded where the graph converts it.
//!
//! Invariant: what is of a type already is not rounded to it again.

use fx_core::ir::Argument;
use fx_core::value::DType;
use fx_kernels::pointwise::Unary;

use super::call::{Args, Lowering};
use super::draft::{Id, Kind, PointOp};
use super::types::{dtype, dtype_of};

impl Lowering<'_> {
    /// Elements in another type of floats.
    pub fn converted(&mut self, args: &Args<'_>) -> Option<Id> {
        match *args.get("dtype")? {
            Argument::DType(dtype) => self.converted_to(args, dtype),
            _ => None,
        }
    }

    /// Elements in the type of another tensor.
    pub fn converted_like(&mut self, args: &Args<'_>) -> Option<Id> {
        let other = args.get("other")?;
        let id = self.item_of(&other)?;
        let dtype = match self.draft.halves.get(&other.as_node()?) {
            Some(half) => dtype(*half),
            None if self.has_floats(id) => DType::F32,
            None => return None,
        };
        self.converted_to(args, dtype)
    }

    /// Elements in a type of floats, rounded to it where they are not of it.
    fn converted_to(&mut self, args: &Args<'_>, dtype: DType) -> Option<Id> {
        if !self.is_computed(dtype) {
            return None;
        }
        let floats = self.as_floats(args)?;
        match self.half_type(dtype) {
            Some(half) if self.half(args, "x") != Some(half) => {
                let steps = vec![PointOp::Input(0), PointOp::Unary(Unary::Rounded(half), 0)];
                self.push(args, Kind::Pointwise(steps), vec![floats])
            }
            _ => Some(floats),
        }
    }

    /// Elements as `f32`: what they are, or what a call gives.
    fn as_floats(&mut self, args: &Args<'_>) -> Option<Id> {
        let given = args.get("x")?;
        if let Some(mask) = self.mask_of(&given) {
            return Some(mask);
        }
        let id = self.item_of(&given)?;
        if let Some(floats) = self.floats_of(id) {
            return Some(floats);
        }
        let node = self.gm.graph().node(given.as_node()?).ok()?;
        let known = [
            DType::Bool,
            DType::U8,
            DType::U32,
            DType::I16,
            DType::I32,
            DType::I64,
        ];
        match self.is_known && dtype_of(node).is_some_and(|dtype| known.contains(&dtype)) {
            true => self.push(args, Kind::Convert, vec![id]),
            false => None,
        }
    }
}
