//! Rows of a table at indices, the one step that can fail.

/// An index that a table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexError {
    /// The index.
    pub index: i64,
    /// The rows of the table.
    pub rows: usize,
}

impl core::fmt::Display for IndexError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let IndexError { index, rows } = self;
        write!(
            f,
            "the index {index} is not among the {rows} rows of a table"
        )
    }
}

impl core::error::Error for IndexError {}

/// The rows of a table at indices: `out` has as many rows of the table's size as there are indices.
///
/// ```
/// use fx_static::{IndexError, rows_at};
///
/// let mut out = [0.0; 2];
/// rows_at(2, &[1], &[1.0, 2.0, 3.0, 4.0], &mut out)?;
/// assert_eq!(out, [3.0, 4.0]);
/// assert_eq!(rows_at(2, &[2], &[1.0, 2.0, 3.0, 4.0], &mut out), Err(IndexError { index: 2, rows: 2 }));
/// # Ok::<(), IndexError>(())
/// ```
///
/// # Errors
/// Returns an error for an index that the table does not have.
pub fn rows_at(
    size: usize,
    indices: &[i64],
    table: &[f32],
    out: &mut [f32],
) -> Result<(), IndexError> {
    let rows = table.len().checked_div(size).unwrap_or(0);
    for (index, out) in indices.iter().zip(out.chunks_exact_mut(size.max(1))) {
        let row = usize::try_from(*index).ok().filter(|row| *row < rows);
        let row = row.ok_or(IndexError {
            index: *index,
            rows,
        })?;
        out.copy_from_slice(&table[row * size..][..size]);
    }
    Ok(())
}
