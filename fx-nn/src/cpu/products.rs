//! Products of matrices on arrays.
//!
//! Invariant: operands are read where they are, whatever their strides.

use fx_core::{Error, Result};
use fx_kernels::matrix::{Finish, Matrices, Sizes, matmul};

use super::array::{Array, broadcast};
use super::draft::Id;
use super::frame::{Reading, Register, array};
use super::memory::Pool;

impl Reading<'_> {
    pub fn matmul(&self, inputs: &[Id], pool: &mut Pool) -> Result<Register> {
        let (a, b) = (self.array(inputs[0], pool)?, self.array(inputs[1], pool)?);
        let (is_row, is_column) = (a.dims.len() == 1, b.dims.len() == 1);
        let a = if is_row { a.with_one(0) } else { a };
        let b = if is_column { b.with_one(1) } else { b };
        let (Some(at), Some(bt)) = (a.dims.len().checked_sub(2), b.dims.len().checked_sub(2))
        else {
            return Err(Error::msg("a product of matrices needs dimensions"));
        };
        let (rows, depth, columns) = (a.dims[at], a.dims[at + 1], b.dims[bt + 1]);
        if b.dims[bt] != depth {
            return Err(Error::msg("the inner sizes of a product differ"));
        }
        let batch = broadcast([&a.dims[..at], &b.dims[..bt]])
            .ok_or_else(|| Error::msg("the batches of a product do not fit"))?;
        let expand = |x: &Array, rows: usize, columns: usize| {
            let mut dims = batch.clone();
            dims.extend([rows, columns]);
            x.expanded(&dims)
                .ok_or_else(|| Error::msg("the batches of a product do not fit"))
        };
        let (a, b) = (expand(&a, rows, depth)?, expand(&b, depth, columns)?);
        let at = batch.len();
        let mut dims = batch.clone();
        if !is_row {
            dims.push(rows);
        }
        if !is_column {
            dims.push(columns);
        }
        let left = Matrices {
            data: self.memory(&a),
            start: a.start,
            batch: &a.strides[..at],
            row: a.strides[at],
            column: a.strides[at + 1],
        };
        let right = Matrices {
            data: self.memory(&b),
            start: b.start,
            batch: &b.strides[..at],
            row: b.strides[at],
            column: b.strides[at + 1],
        };
        let sizes = Sizes {
            batch: &batch,
            rows,
            depth,
            columns,
        };
        array(dims, pool, |out| {
            matmul(self.level, sizes, left, right, 1.0, Finish::default(), out)
        })
    }
}
