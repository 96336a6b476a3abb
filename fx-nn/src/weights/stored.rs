//! `Stored`: where the elements of a tensor lie in a file, with strides.
//!
//! Invariant: what it names is inside of the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use fx_core::value::DType;
use fx_core::{Error, Result};

/// Files inside of a zip file, by name: where their bytes begin, and how many are there.
pub(super) type Files = HashMap<String, (u64, u64)>;

/// A tensor, and where its elements are.
#[derive(Debug)]
pub(super) struct Stored {
    /// The element type, or the name of one that fx does not have.
    pub dtype: Result<DType, String>,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
    /// The byte of the file with the first element.
    pub start: u64,
    /// How many elements lie from the first to the last one.
    pub span: usize,
}

impl Stored {
    /// A tensor whose first element is the one at `offset` of a file inside of the zip file.
    ///
    /// # Errors
    /// Returns an error if sizes and strides lead out of that file.
    pub fn new(
        dtype: Result<DType, String>,
        shape: Vec<usize>,
        strides: Vec<usize>,
        offset: usize,
        (start, length): (u64, u64),
        file: &str,
    ) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::msg(format_args!(
                "it has the sizes {shape:?} and the strides {strides:?}"
            )));
        }
        let width = dtype.as_ref().map_or(1, |dtype| dtype.size_in_bytes());
        let span = if shape.contains(&0) {
            Some(0)
        } else {
            let reach = |last: usize, (size, stride): (&usize, &usize)| {
                last.checked_add((size - 1).checked_mul(*stride)?)
            };
            shape.iter().zip(&strides).try_fold(1usize, reach)
        };
        let first = offset.checked_mul(width);
        let end = span.and_then(|span| span.checked_mul(width)?.checked_add(first?));
        let first = first.and_then(|first| start.checked_add(first as u64));
        let (Some(span), Some(start), true) =
            (span, first, end.is_some_and(|end| end as u64 <= length))
        else {
            return Err(Error::msg(format_args!(
                "its elements reach past the end of `{file}`, which has {length} bytes: sizes {shape:?}, strides \
                 {strides:?}, from element {offset} on"
            )));
        };
        Ok(Stored {
            dtype,
            shape,
            strides,
            start,
            span,
        })
    }

    /// Whether the elements lie in the order of the shape.
    pub fn is_contiguous(&self) -> bool {
        let mut wanted = 1usize;
        let mut dims = self.shape.iter().zip(&self.strides).rev();
        self.shape.contains(&0)
            || dims.all(|(size, stride)| {
                let fits = *size == 1 || *stride == wanted;
                wanted = wanted.saturating_mul(*size);
                fits
            })
    }

    /// The elements in the order of the shape.
    pub fn gathered(&self, file: &mut File, width: usize) -> Result<Vec<u8>> {
        file.seek(SeekFrom::Start(self.start)).map_err(Error::msg)?;
        let mut all = vec![0; self.span * width];
        file.read_exact(&mut all).map_err(Error::msg)?;
        let count: usize = self.shape.iter().product();
        let mut bytes = Vec::with_capacity(count * width);
        let mut place = vec![0usize; self.shape.len()];
        let mut at = 0usize;
        for _ in 0..count {
            bytes.extend_from_slice(&all[at * width..(at + 1) * width]);
            for dim in (0..place.len()).rev() {
                place[dim] += 1;
                // The stride of a dim of size 1 may be any number.
                at = at.wrapping_add(self.strides[dim]);
                if place[dim] < self.shape[dim] {
                    break;
                }
                at = at.wrapping_sub(self.strides[dim].wrapping_mul(self.shape[dim]));
                place[dim] = 0;
            }
        }
        Ok(bytes)
    }
}
