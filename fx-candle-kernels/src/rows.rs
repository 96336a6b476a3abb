//! Layouts of one shape as rows: runs of elements that lie side by side, or are all the same one.
//!
//! A kernel over rows has one loop for slices and one for single values, and takes every broadcast without a copy.

use candle_core::{Layout, Result, Tensor};

#[derive(Clone, Copy)]
struct Row {
    len: usize,
    dims: usize,
    is_one_value: bool,
}

impl Row {
    /// The longest row of at most so many dims; `None` if the elements of the last dim lie apart.
    fn of(layout: &Layout, most: usize) -> Option<Row> {
        let mut row = Row {
            len: 1,
            dims: 0,
            is_one_value: true,
        };
        for (size, stride) in layout.dims().iter().zip(layout.stride()).rev().take(most) {
            if *size != 1 {
                let is_first = row.len == 1;
                match stride {
                    0 if row.is_one_value => {}
                    _ if *stride == row.len && (is_first || !row.is_one_value) => {
                        row.is_one_value = false;
                    }
                    _ if is_first => return None,
                    _ => break,
                }
                row.len *= size;
            }
            row.dims += 1;
        }
        Some(row)
    }
}

/// Where the rows of so many dims start.
fn starts(layout: &Layout, dims: usize) -> Vec<usize> {
    let outer = layout.dims().len() - dims;
    let mut starts = vec![layout.start_offset()];
    for (size, stride) in layout.dims()[..outer].iter().zip(layout.stride()) {
        let each = |start: &usize| {
            let start = *start;
            (0..*size).map(move |i| start + i * stride)
        };
        starts = starts.iter().flat_map(each).collect();
    }
    starts
}

/// The rows of layouts of one shape, of as many elements in each.
pub struct Rows<const N: usize> {
    /// How many elements a row has.
    pub len: usize,
    /// Whether the rows of a layout are one value each.
    pub is_one_value: [bool; N],
    starts: [Vec<usize>; N],
}

impl<const N: usize> Rows<N> {
    /// The rows; `None` if elements next to each other in a last dim lie apart.
    pub fn of(layouts: [&Layout; N]) -> Option<Self> {
        let mut dims = usize::MAX;
        for layout in layouts {
            dims = dims.min(Row::of(layout, dims)?.dims);
        }
        let mut len = 1;
        let mut is_one_value = [true; N];
        for (one, layout) in is_one_value.iter_mut().zip(layouts) {
            let row = Row::of(layout, dims)?;
            (len, *one) = (row.len, row.is_one_value);
        }
        Some(Rows {
            len,
            is_one_value,
            starts: layouts.map(|layout| starts(layout, dims)),
        })
    }

    /// Where each row starts in each layout.
    pub fn starts(&self) -> impl Iterator<Item = [usize; N]> + '_ {
        (0..self.count()).map(|row| std::array::from_fn(|of| self.starts[of][row]))
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.starts.first().map_or(0, Vec::len)
    }
}

impl Rows<2> {
    /// The rows of the two layouts the other way round.
    pub fn swapped(mut self) -> Self {
        self.is_one_value.swap(0, 1);
        self.starts.swap(0, 1);
        self
    }
}

/// The tensors, of one shape, so that their layouts have rows: only one whose last elements lie apart is copied.
///
/// # Errors
/// Returns only candle's errors.
pub fn in_rows<const N: usize>(tensors: [&Tensor; N]) -> Result<[Tensor; N]> {
    let mut owned = tensors.map(Tensor::clone);
    for tensor in &mut owned {
        if Row::of(tensor.layout(), usize::MAX).is_none() {
            *tensor = tensor.contiguous()?;
        }
    }
    Ok(owned)
}
