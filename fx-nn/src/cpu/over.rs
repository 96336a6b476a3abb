//! Steps whose result is written over an operand that nothing reads after them, so that a run keeps one array for two.
//!
//! Invariant: what is written over is a buffer of the pool that nothing else reads, in order.

use fx_core::Result;
use fx_kernels::SizeError;
use fx_kernels::pointwise::{Operand, Tape};
use smallvec::SmallVec;

use super::array::Array;
use super::draft::Id;
use super::frame::{Reading, Register, array, result, room_of, sizes_differ, spread};
use super::memory::Pool;

/// Lends those of some registers that a step may write over to it.
pub(super) fn lend(registers: &mut [Register], candidates: &[Id], pool: &mut Pool) {
    pool.lent.clear();
    for id in candidates {
        let register = &mut registers[*id];
        if matches!(register, Register::Array(array) if pool.is_alone(array))
            && let Register::Array(array) = std::mem::take(register)
        {
            pool.lent.push((*id, array));
        }
    }
}

/// A register with what a kernel makes of an array that was [taken over](Pool::taken_over), where that was.
pub(super) fn write(
    own: Array,
    pool: &mut Pool,
    change: impl FnOnce(&mut [f32]) -> Result<(), SizeError>,
) -> Result<Register> {
    let made = pool.write_over(own, |out| change(out).map_err(sizes_differ))?;
    Ok(Register::Array(made))
}

impl Reading<'_> {
    /// Steps element by element: over the first operand that nothing else reads, if there is one of the result's sizes.
    pub fn pointwise(&self, tape: &Tape, inputs: &[Id], pool: &mut Pool) -> Result<Register> {
        let level = self.level;
        let (dims, mut arrays) = {
            let arrays: Result<SmallVec<[Array; 6]>> =
                inputs.iter().map(|id| self.array(*id, pool)).collect();
            spread(&arrays?)?
        };
        let mut own = inputs.iter().enumerate();
        let own = own.find_map(|(at, id)| Some((at, pool.taken_over(*id, &dims)?)));
        if let Some((at, _)) = own {
            arrays.remove(at);
        }
        let operands: SmallVec<[Operand<'_>; 6]> =
            arrays.iter().map(|array| self.operand(array)).collect();
        if let Some((at, own)) = own {
            return write(own, pool, |out| {
                tape.run_over(level, &dims, &operands, at, out)
            });
        }
        if pool.gives_result {
            room_of(&dims)?;
            let floats = tape.collect(level, &dims, &operands);
            return Ok(result(dims, floats.map_err(sizes_differ)?));
        }
        array(dims.clone(), pool, |out| {
            tape.run(level, &dims, &operands, &mut [out])
        })
    }
}
